"""Writes core_lax.json: values and gradients of jax.lax functions by name of a small program."""
import golden_io as io

import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

warnings.filterwarnings("ignore")
inf, nan = float("inf"), float("nan")
# The reader has the same: floats A, integers I by formula, and N with special values.
A = lambda *s, k=0: jnp.asarray((((np.arange(int(np.prod(s))) * 7 + k) % 11 - 5) / 4).astype(np.float32)).reshape(s)
I = lambda *s, k=0: jnp.asarray(((np.arange(int(np.prod(s))) * 5 + k) % 7 - 2).astype(np.int32)).reshape(s)
N = jnp.array([[1.0, nan, -2.0, 0.5], [nan, nan, nan, nan], [inf, 3.0, -inf, 0.0], [-0.0, 2.0, 2.0, -1.5]], jnp.float32)
R = lambda *a: jnp.array(a)
idx = lambda rows: jnp.array(rows, jnp.int32)


def grads(f, *args):
    """Gradients of the sum of sin(f) W with respect to every argument, flat, one after the other."""
    def loss(*a):
        y = f(*a)
        return jnp.sum(jnp.sin(y) * A(*y.shape, k=2))
    return jnp.concatenate([jnp.ravel(g) for g in jax.grad(loss, argnums=tuple(range(len(args))))(*args)])


def both(name, f, *args):
    return {name: lambda: f(*args), name + ", gradients": lambda: grads(f, *args)}


conv = lax.conv_general_dilated
dn = lambda *a: a
P = {
    # convolutions
    **both("conv", lambda x, k: lax.conv(x, k, (1, 2), "SAME"), A(2, 3, 5, 6), A(4, 3, 2, 3, k=3)),
    **both("conv VALID", lambda x, k: lax.conv(x, k, (2, 1), "VALID"), A(1, 2, 5, 6), A(3, 2, 2, 3, k=3)),
    **both("conv SAME_LOWER", lambda x, k: lax.conv(x, k, (2,), "SAME_LOWER"), A(1, 2, 6), A(3, 2, 3, k=3)),
    **both("conv general padding", lambda x, k: lax.conv_with_general_padding(x, k, (2,), [(2, -1)], (3,), (2,)), A(2, 2, 5), A(3, 2, 3, k=3)),
    **both("conv NHWC", lambda x, k: conv(x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")), A(2, 4, 5, 3), A(3, 2, 3, 4, k=3)),
    **both("conv mixed layout", lambda x, k: conv(x, k, (1, 2), [(1, 0), (0, 2)], dimension_numbers=("HNCW", "WOIH", "CWNH")), A(4, 2, 3, 5), A(3, 2, 3, 2, k=1)),
    **both("conv feature groups", lambda x, k: conv(x, k, (1,), "VALID", feature_group_count=2), A(2, 4, 5), A(6, 2, 2, k=3)),
    **both("conv batch groups", lambda x, k: conv(x, k, (1,), "SAME", batch_group_count=2), A(4, 3, 5), A(6, 3, 2, k=3)),
    **both("conv 3d", lambda x, k: conv(x, k, (1, 1, 2), "SAME", rhs_dilation=(1, 2, 1)), A(1, 2, 3, 4, 3), A(2, 2, 2, 2, 2, k=3)),
    **both("conv 0d", lambda x, k: conv(x, k, (), []), A(2, 3), A(4, 3)),
    "conv i32": lambda: conv(I(1, 2, 5), I(3, 2, 2), (1,), "SAME"),
    "conv bf16": lambda: conv(A(1, 2, 5).astype(jnp.bfloat16), A(3, 2, 2).astype(jnp.bfloat16), (1,), "SAME"),
    "conv preferred": lambda: conv(A(1, 2, 5).astype(jnp.bfloat16), A(3, 2, 2).astype(jnp.bfloat16), (1,), "SAME", preferred_element_type=jnp.float32),
    "conv empty batch": lambda: conv(A(0, 2, 5), A(3, 2, 2), (1,), "SAME"),
    **{f"conv_transpose {p} {s}": (lambda p, s: lambda: lax.conv_transpose(A(1, 4, 3, 2), A(3, 2, 2, 5, k=3), s, p))(p, s) for p in ("SAME", "VALID") for s in ((1, 1), (2, 3), (3, 1))},
    **both("conv_transpose kernel", lambda x, k: lax.conv_transpose(x, k, (2,), "SAME", transpose_kernel=True), A(2, 4, 3), A(3, 5, 3, k=3)),
    **both("conv_transpose dilated", lambda x, k: lax.conv_transpose(x, k, (2,), [(1, 2)], rhs_dilation=(2,), dimension_numbers=("NCH", "OIH", "NCH")), A(1, 2, 4), A(3, 2, 3, k=3)),
    "conv_transpose consistent": lambda: lax.conv_transpose(A(1, 4, 2), A(3, 2, 5, k=3), (2,), [(1, 0)], use_consistent_padding=True),
    **both("patches", lambda x: lax.conv_general_dilated_patches(x, (2, 3), (1, 2), "SAME"), A(1, 2, 4, 5)),
    "patches NHWC": lambda: lax.conv_general_dilated_patches(A(1, 4, 5, 2), (2, 2), (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")),
    **both("local", lambda x, k: lax.conv_general_dilated_local(x, k, (1, 1), "VALID", (2, 2), dimension_numbers=("NHWC", "HWIO", "NHWC")), A(2, 3, 4, 2), A(2, 3, 8, 3, k=3)),
    "conv vmap lhs": lambda: jax.vmap(lambda x: lax.conv(x, A(3, 2, 2), (1,), "SAME"), 1)(A(2, 3, 2, 5)),
    "conv vmap rhs": lambda: jax.vmap(lambda k: lax.conv(A(2, 2, 5), k, (1,), "SAME"), 2, 1)(A(3, 2, 4, 2)),
    "conv vmap both": lambda: jax.vmap(lambda x, k: lax.conv(x, k, (1,), "SAME"))(A(3, 2, 2, 5), A(3, 4, 2, 2)),
    "conv hvp": lambda: jax.jvp(jax.grad(lambda k: jnp.sum(jnp.sin(lax.conv(A(1, 2, 5), k, (1,), "SAME")))), (A(3, 2, 2),), (A(3, 2, 2, k=5),))[1],
    # reductions by functions and windows
    "reduce max": lambda: lax.reduce(A(3, 4), -jnp.inf, lax.max, (1,)),
    **both("reduce mul", lambda x: lax.reduce(x, 1.0, lax.mul, (0,)), A(3, 4)),
    **both("reduce logaddexp", lambda x: lax.reduce(x, -100.0, lambda a, b: jnp.logaddexp(a, b), (0, 1)), A(3, 4)),
    "reduce argmax": lambda: lax.reduce((A(3, 5), lax.broadcasted_iota(jnp.int32, (3, 5), 1)), (-jnp.inf, 0), lambda a, b: (jnp.where(a[0] >= b[0], a[0], b[0]), jnp.where(a[0] >= b[0], a[1], b[1])), (1,))[1],
    **{f"window {n} {p}": (lambda f, i, p: lambda: lax.reduce_window(A(2, 7), i, f, (1, 3), (1, 2), p))(f, i, p) for n, f, i in (("add", lax.add, 0.0), ("max", lax.max, -inf), ("min", lax.min, inf), ("mul", lax.mul, 1.0)) for p in ("SAME", "VALID")},
    **both("window add dilated", lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 3), (1, 2), [(1, 0), (2, 2)], (2, 1), (1, 2)), A(4, 6)),
    "window max dilated": lambda: lax.reduce_window(A(4, 6), -inf, lax.max, (2, 3), (1, 2), [(1, 0), (2, 2)], (2, 1), (1, 2)),
    **both("window max padded", lambda x: lax.reduce_window(x, -inf, lax.max, (2, 3), (1, 2), [(1, 0), (2, 2)]), A(4, 6)),
    **both("window min padded", lambda x: lax.reduce_window(x, inf, lax.min, (2, 3), (1, 2), [(1, 0), (2, 2)]), A(4, 6)),
    **both("window max ties", lambda x: lax.reduce_window(jnp.round(x), -inf, lax.max, (3,), (1,), "SAME") * lax.reduce_window(x, -inf, lax.max, (3,), (1,), "SAME"), A(9)),
    "window max of equals, gradients": lambda: jax.grad(lambda x: jnp.sum(lax.reduce_window(x, -inf, lax.max, (3,), (1,), "SAME") * A(6, k=1)))(jnp.ones(6)),
    "window i32": lambda: lax.reduce_window(I(3, 5), 0, lax.add, (2, 2), (1, 1), "SAME"),
    "window nan": lambda: lax.reduce_window(N, -inf, lax.max, (2, 2), (1, 1), "SAME"),
    "window general": lambda: lax.reduce_window(A(7), 1.0, lambda a, b: a * b + 0 * a, (2,), (2,), "VALID"),
    "window vmap": lambda: jax.vmap(lambda x: lax.reduce_window(x, -inf, lax.max, (2,), (2,), "VALID"), 1)(A(6, 3)),
    "window of pairs": lambda: lax.reduce_window((A(8), lax.iota(jnp.int32, 8)), (-inf, -1), lambda a, b: (jnp.where(a[0] >= b[0], a[0], b[0]), jnp.where(a[0] >= b[0], a[1], b[1])), (3,), (2,), "VALID")[1],
    # gather and scatter
    **{f"gather {m}": (lambda m: lambda: lax.gather(A(5, 4), idx([[3, 2], [9, 0], [-2, 1]]), lax.GatherDimensionNumbers((1, 2), (), (0, 1)), (2, 2), mode=m))(m) for m in ("clip", "fill", "promise_in_bounds")},
    "gather fill i32": lambda: lax.gather(I(5), idx([[3], [7]]), lax.GatherDimensionNumbers((), (0,), (0,)), (1,), mode="fill"),
    "gather fill value": lambda: lax.gather(A(5), idx([[3], [7]]), lax.GatherDimensionNumbers((), (0,), (0,)), (1,), mode="fill", fill_value=-9.0),
    **{k: v for m in ("clip", "fill") for k, v in both(f"gather rows {m}", (lambda m: lambda x: lax.gather(x, idx([[3], [3], [8], [0]]), lax.GatherDimensionNumbers((1,), (0,), (0,)), (1, 4), mode=m, fill_value=0.5))(m), A(5, 4)).items()},
    "gather batching": lambda: lax.gather(A(3, 5), idx([[[1], [4]], [[0], [2]], [[3], [3]]]), lax.GatherDimensionNumbers((), (1,), (1,), (0,), (0,)), (1, 1)),
    **{f"{n} {m}": (lambda f, m: lambda: f(A(5, 3), idx([[1], [1], [6], [-1]]), A(4, 3, k=4), lax.ScatterDimensionNumbers((1,), (0,), (0,)), mode=m))(getattr(lax, n), m) for n in ("scatter_add", "scatter_sub", "scatter_mul", "scatter_min", "scatter_max") for m in ("drop", "clip")},
    **{k: v for n in ("scatter", "scatter_add", "scatter_sub", "scatter_min", "scatter_max") for k, v in both(n + " twice", (lambda f: lambda x, u: f(x, idx([[1], [1], [6], [0]]), u, lax.ScatterDimensionNumbers((1,), (0,), (0,))))(getattr(lax, n)), A(5, 3), A(4, 3, k=4)).items()},
    **both("scatter_mul unique", lambda x, u: lax.scatter_mul(x, idx([[1], [3]]), u, lax.ScatterDimensionNumbers((1,), (0,), (0,)), unique_indices=True), A(5, 3), A(2, 3, k=4)),
    "scatter windows": lambda: lax.scatter(A(5, 4), idx([[0, 1], [3, 3], [4, 2]]), A(3, 2, 2, k=4), lax.ScatterDimensionNumbers((1, 2), (), (0, 1))),
    "scatter windows clip": lambda: lax.scatter(A(5, 4), idx([[0, 1], [3, 3]]), A(2, 2, 2, k=4), lax.ScatterDimensionNumbers((1, 2), (), (0, 1)), mode="clip"),
    "scatter batching": lambda: lax.scatter_add(A(3, 5), idx([[[1], [4]], [[0], [2]], [[3], [3]]]), A(3, 2, k=4), lax.ScatterDimensionNumbers((), (1,), (1,), (0,), (0,))),
    "scatter i32": lambda: lax.scatter_add(I(5), idx([[1], [1]]), I(2, k=3), lax.ScatterDimensionNumbers((), (0,), (0,))),
    "scatter_apply": lambda: lax.scatter_apply(A(5), idx([[1], [3], [7]]), jnp.sin, lax.ScatterDimensionNumbers((), (0,), (0,)), update_shape=(3,)),
    # products
    "dot_general preferred": lambda: lax.dot_general(A(2, 3).astype(jnp.bfloat16), A(3, 4).astype(jnp.bfloat16), (((1,), (0,)), ((), ())), preferred_element_type=jnp.float32),
    "dot_general i8": lambda: lax.dot_general(I(2, 3).astype(jnp.int8), I(3, 4).astype(jnp.int8), (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32),
    "batch_matmul": lambda: lax.batch_matmul(A(2, 3, 4), A(2, 4, 2, k=3)),
    **both("ragged_dot", lambda x, w: lax.ragged_dot(x, w, jnp.array([2, 0, 3], jnp.int32)), A(6, 4), A(3, 4, 2, k=3)),
    "ragged_dot long": lambda: lax.ragged_dot(A(4, 3), A(2, 3, 2), jnp.array([3, 9], jnp.int32)),
    "ragged_dot_general contracting": lambda: lax.ragged_dot_general(A(5, 3), A(5, 2, k=3), jnp.array([2, 3], jnp.int32), lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), [0], [])),
    # order
    "sort pairs": lambda: lax.sort((I(9) // 3, A(9)), num_keys=2)[1],
    "sort pairs stable": lambda: lax.sort((I(9) // 3, A(9)), num_keys=1)[1],
    **both("sort pairs by first", lambda a, b: lax.sort((a, b), num_keys=1)[0] * 2 + lax.sort((a, b), num_keys=1)[1], A(8), A(8, k=5)),
    "sort nan": lambda: lax.sort(N, dimension=0),
    "sort_key_val": lambda: lax.sort_key_val(A(3, 4), I(3, 4), dimension=0)[1],
    "top_k axis": lambda: lax.top_k(A(5, 3), 2, axis=0)[0], "top_k axis indices": lambda: lax.top_k(A(5, 3), 2, axis=0)[1],
    "approx_max_k": lambda: lax.approx_max_k(A(3, 9), 4)[0], "approx_max_k indices": lambda: lax.approx_max_k(A(3, 9), 4)[1],
    "approx_min_k": lambda: lax.approx_min_k(A(3, 9), 4)[0], "approx_min_k axis": lambda: lax.approx_min_k(A(9, 2), 3, reduction_dimension=0)[1],
    **both("approx_max_k sums", lambda x: lax.approx_max_k(x, 3)[0], A(2, 7)), **both("approx_min_k sums", lambda x: lax.approx_min_k(x, 3)[0], A(2, 7)),
    # running and reduced
    **{k: v for n in ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp") for r in (False, True) for k, v in both(f"{n} {r}", (lambda n, r: lambda x: getattr(lax, n)(x, 1, reverse=r))(n, r), A(3, 5)).items()},
    "cumlogsumexp inf": lambda: lax.cumlogsumexp(jnp.array([-inf, -inf, 1.0, inf, 2.0])),
    "argmax": lambda: lax.argmax(N, 1, jnp.int32), "argmin": lambda: lax.argmin(N, 0, jnp.int32),
    **{n: (lambda n: lambda: getattr(lax, n)(A(3, 4), (0,)))(n) for n in ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min")},
    **{n: (lambda n: lambda: getattr(lax, n)(I(3, 4) > 0, (1,)))(n) for n in ("reduce_and", "reduce_or", "reduce_xor")},
    "reduce_xor i32": lambda: lax.reduce_xor(I(3, 4), (1,)),
    # the rest
    "index_take": lambda: lax.index_take(A(4, 3, 5), (idx([3, 0, -1]), idx([1, 1, 4])), (0, 2)),
    "broadcast": lambda: lax.broadcast(A(3), (2, 1)), "broadcast_to_rank": lambda: lax.broadcast_to_rank(A(3), 3),
    "select_n": lambda: lax.select_n(idx([0, 2, 1, 5, -1]), A(5), A(5, k=1), A(5, k=2)), "select_n bool": lambda: lax.select_n(A(5) > 0, A(5), A(5, k=1)),
    "shift_right_logical": lambda: lax.shift_right_logical(I(7), jnp.int32(1)), "shift_right_arithmetic": lambda: lax.shift_right_arithmetic(I(7), jnp.int32(1)),
    "complex": lambda: lax.complex(A(3), A(3, k=1)),
    **both("pad", lambda x: lax.pad(x, 2.0, ((1, -1, 0), (-2, 3, 2))), A(3, 4)),
}
out = {}
for name, f in P.items():
    y = f()
    out[name] = {**io.array(y), "weak": bool(getattr(y, "weak_type", False))}
io.dump({"origin": io.origin("jax", "jaxlib") + ", CPU", "made_by": "make_core_lax.py",
         "layout": {"results": "result of each program, or its gradients: of sum(sin(y) W) by every argument, flat; A = ((7 i + k) mod 11 - 5) / 4, I = (5 i + k) mod 7 - 2, W = A with k = 2; at most 2e-6 · max(1, |y|) apart"}, "results": out}, "core_lax.json", depth=2)
