"""Writes core_transforms.json: Jacobians, associative scans, implicit derivatives and collectives under vmap."""
import golden_io as io

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

X = lambda *s: jnp.asarray(((np.arange(int(np.prod(s))) * 7 % 11 - 5) / 4).astype(np.float32)).reshape(s)
W = lambda *s: jnp.asarray((np.arange(int(np.prod(s))) * 3 % 5 - 2).astype(np.float32)).reshape(s)
f = lambda x: jnp.sin(x @ W(3, 2)) * x[0]
g = lambda x: jnp.sum(jnp.sin(x) * x[::-1] ** 2)
pair = lambda p: {"u": p["a"] * p["b"], "v": jnp.sum(jnp.exp(p["b"]))}
P = {"a": X(3), "b": W(3) / 2}
out = {"jacfwd": jax.jacfwd(f)(X(3)), "jacrev": jax.jacrev(f)(X(3)), "hessian": jax.hessian(g)(X(4)),
       "hvp": jax.hessian(g)(X(4)) @ W(4), "jacrev of jacfwd": jax.jacrev(jax.jacfwd(f))(X(3)),
       "jacfwd by 1": jax.jacfwd(lambda a, b: jnp.outer(a, b * b), argnums=1)(X(2), X(3)),
       "jacrev of a struct to an array": [v for k, v in sorted(jax.jacrev(lambda p: jnp.cos(p["a"]) * p["b"])(P).items())],
       "jacfwd of a struct to a struct": jax.tree.leaves(jax.jacfwd(pair)(P)), "jacrev of a struct to a struct": jax.tree.leaves(jax.jacrev(pair)(P))}
for n in (1, 2, 3, 4, 5, 8, 9):
    out[f"associative_scan add {n}"] = lax.associative_scan(jnp.add, X(n, 2))
    out[f"associative_scan reverse {n}"] = lax.associative_scan(jnp.multiply, X(2, n) + 1, reverse=True, axis=1)
affine = lambda p, q: (p[0] * q[0], p[1] * q[0] + q[1])
out["associative_scan affine"] = list(lax.associative_scan(affine, (X(7), W(7))))
out["grad of associative_scan"] = jax.grad(lambda x: jnp.sum(lax.associative_scan(jnp.multiply, x) * W(5)))(X(5))
for b in (None, 0, 1, 2, 3, 7):
    out[f"map {b}"] = lax.map(lambda r: jnp.sin(r) * jnp.sum(r), X(5, 2), batch_size=b)

newton = lambda h, x0: lax.fori_loop(0, 30, lambda i, x: x - h(x) / jax.grad(h)(x), x0)
root = lambda a: lax.custom_root(lambda x: x * x * x - a, 1.0, newton, lambda h, y: y / h(1.0))
out |= {"custom_root": root(5.0), "custom_root grad": jax.grad(root)(5.0), "custom_root hessian": jax.grad(jax.grad(root))(5.0),
        "custom_root vmap": jax.vmap(jax.grad(root))(jnp.array([1.0, 2.0, 8.0])), "custom_root jvp": jax.jvp(root, (5.0,), (2.0,))[1]}
A, B = jnp.array([[4.0, 1.0, 0.5], [1.0, 3.0, -1.0], [0.25, -0.5, 5.0]]), X(3)
S = A @ A.T


def jacobi(mv, b):
    return lax.fori_loop(0, 200, lambda i, x: x + 0.15 * (b - mv(x)), jnp.zeros_like(b))


solve = lambda a, b: lax.custom_linear_solve(lambda x: a @ x, b, jacobi, jacobi)
ssolve = lambda a, b: lax.custom_linear_solve(lambda x: a @ x, b, lambda mv, b: jnp.linalg.solve(a, b), symmetric=True)
loss = lambda s: lambda a, b: jnp.sum(jnp.sin(s(a, b)))
out |= {"linear_solve": solve(A, B), "linear_solve grads": list(jax.grad(loss(solve), (0, 1))(A, B)), "linear_solve jvp": jax.jvp(solve, (A, B), (A * 0.1, W(3)))[1],
        "linear_solve vmap": jax.vmap(solve, (None, 0))(A, X(2, 3)), "linear_solve vmap of grad": jax.vmap(jax.grad(loss(solve), 0), (None, 0))(A, X(2, 3)),
        "linear_solve hvp": jax.jvp(jax.grad(loss(solve), 1), (A, B), (A * 0.1, W(3)))[1]}
out["linear_transpose"] = jax.linear_transpose(lambda x, y: W(2, 3) @ x + 2 * y[:2], jnp.zeros(3), jnp.zeros(4))(jnp.array([1.0, -2.0]))
out["linear_transpose"] = list(out["linear_transpose"])


def over(name, fn, x, out_axes=0, in_axes=0):
    h = jax.vmap(fn, in_axes, out_axes, axis_name="i")
    out[name] = h(x)
    try:
        out[name + ": grad inside"] = jax.vmap(jax.grad(lambda x: jnp.sum(jnp.sin(fn(x)))), in_axes, axis_name="i")(x)
    except (NotImplementedError, ValueError):  # no rule, or (all_to_all with two axes) a wrong one
        pass
    else:
        y = h(x)
        out[name + ": grad outside"] = jax.grad(lambda x: jnp.sum(jnp.sin(h(x)) * W(*y.shape)))(x)


over("psum", lambda x: x * lax.psum(x, "i"), X(3, 2))
over("pmean", lambda x: x - lax.pmean(x, "i"), X(3, 2))
over("pmax", lambda x: lax.pmax(x, "i"), X(3, 2))
over("pmin", lambda x: lax.pmin(x, "i"), X(3, 2), 0, 0)
over("psum of a constant", lambda x: x + lax.psum(W(2), "i"), X(3, 2))
over("all_gather", lambda x: lax.all_gather(x, "i", axis=1), X(3, 2))
over("all_gather tiled", lambda x: lax.all_gather(x, "i", axis=-1, tiled=True), X(3, 2, 2))
over("psum_scatter", lambda x: lax.psum_scatter(x, "i"), X(3, 3))
over("psum_scatter 1", lambda x: lax.psum_scatter(x, "i", scatter_dimension=1), X(3, 2, 3))
over("psum_scatter tiled", lambda x: lax.psum_scatter(x, "i", tiled=True), X(3, 6))
over("all_to_all", lambda x: lax.all_to_all(x, "i", 0, 0), X(3, 3, 2))
over("all_to_all 0 1", lambda x: lax.all_to_all(x, "i", 0, 1), X(3, 3, 2))
over("all_to_all 1 0", lambda x: lax.all_to_all(x, "i", 1, 0), X(3, 2, 3, 2))
over("all_to_all tiled", lambda x: lax.all_to_all(x, "i", 0, 1, tiled=True), X(3, 6, 2))
over("all_to_all tiled 1 0", lambda x: lax.all_to_all(x, "i", 1, 0, tiled=True), X(3, 2, 3))
over("ppermute", lambda x: lax.ppermute(x, "i", [(0, 2), (1, 0), (2, 1)]), X(3, 2))
over("axis_index", lambda x: x * lax.axis_index("i"), X(3, 2))
over("in_axes 1", lambda x: lax.psum(x, "i") * x, X(2, 3), 1, 1)
out["psum in scan"] = jax.vmap(lambda x: lax.scan(lambda c, y: (c + lax.psum(y * x[0], "i"), c * y), x[0], x)[1], axis_name="i")(X(3, 4))
out["two axes"] = jax.vmap(jax.vmap(lambda x: lax.psum(x, ("i", "j")) + 10 * lax.axis_index("j") + lax.psum(x, "i"), axis_name="j"), axis_name="i")(X(2, 3))
out["out_axes none"] = jax.vmap(lambda x: lax.psum(x, "i"), axis_name="i", out_axes=None)(X(3, 2))
out["axis_size"] = jax.vmap(lambda: lax.axis_index("i") * lax.axis_size("i"), axis_name="i", axis_size=4)()
flat = {k: [io.array(v) for v in vs] if isinstance(vs, list) else [io.array(vs)] for k, vs in out.items()}
io.dump({"origin": io.origin("jax", "jaxlib") + ", CPU", "made_by": "make_core_transforms.py",
         "layout": {"results": "leaves of the result of each program; X = (7 i mod 11 - 5) / 4, W = 3 i mod 5 - 2"}, "results": flat}, "core_transforms.json", depth=2)
