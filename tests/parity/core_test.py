"""core's one-op programs and their transformations against JAX's: value, jvp, vjp, vmap, jvp of vjp, in f64."""

import built
import jax
import jax.numpy as jnp
import jax.scipy.special as jss
import numpy as np
import pytest
from jax import lax

ONE = {n: getattr(jnp, n) for n in (
    "abs negative exp exp2 expm1 log log1p log2 log10 sqrt cbrt square reciprocal sin cos tan arcsin arccos arctan sinh cosh "
    "tanh arcsinh arctanh sign floor nan_to_num sum prod mean var max min cumsum cumprod sort ravel squeeze std transpose flip "
    "tril").split()}
ONE |= {n: getattr(jss, n) for n in "erf erfc erfinv expit logit ndtr logsumexp".split()}
ONE |= {n: getattr(jnp, n) for n in "add subtract multiply divide power maximum minimum arctan2 hypot logaddexp mod fmod outer matmul".split()}


def scanned(x):
    c, y = lax.scan(lambda s, row: (jnp.sin(s) * row, s * row), x[0], x)
    return jnp.concatenate([c[None], y])


PROGRAMS = ONE | {
    "arccosh(x + 1)": lambda x: jnp.arccosh(x + 1.0), "rsqrt": lax.rsqrt, "x ** 3": lambda x: x ** 3, "x ** -2": lambda x: x ** -2,
    "xlogy": jss.xlogy, "where": lambda x, y: jnp.where(x > 0.5, x, y), "clip": lambda x, y: jnp.clip(x, 0.4, y),
    "sum 1": lambda x: jnp.sum(x, 1), "max 0": lambda x: jnp.max(x, 0), "prod 1": lambda x: jnp.prod(x, 1), "cumsum 0": lambda x: jnp.cumsum(x, 0),
    "broadcast_to": lambda x: jnp.broadcast_to(x, (2, 2, 3)), "roll": lambda x: jnp.roll(x, 2, 1), "pad": lambda x: jnp.pad(x, ((1, 0), (0, 2))),
    "take": lambda x: jnp.take(x, jnp.array([2, 0, 2]), 1), "take_along_axis": lambda x: jnp.take_along_axis(x, jnp.array([[1, 0, 1]]), 0),
    "dynamic_slice": lambda x: lax.dynamic_slice(x, (0, 1), (1, 2)), "top_k": lambda x: lax.top_k(x, 2)[0], "tile": lambda x: jnp.tile(x, (2, 2)),
    "scan": scanned, "fori_loop": lambda x: lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) + c, x),
    "cond": lambda x: lax.cond(jnp.sum(x) > 2.0, jnp.sin, lambda a: a * a, x), "remat": jax.checkpoint(lambda x: jnp.sin(jnp.sin(x))),
    "vmap of grad": jax.vmap(jax.grad(lambda row: jnp.prod(jnp.sin(row)))),
    "grad of grad": jax.grad(lambda a: jnp.sum(jnp.square(jax.grad(lambda b: jnp.sum(b * b * b))(a)))),
    "einsum": lambda a, b: jnp.einsum("bij,bki->bkj", a, b), "einsum diagonal": lambda a, b: jnp.einsum("ii,i->i", a, b),
    "concatenate": lambda a, b: jnp.concatenate([a, b], 1), "dynamic_update_slice": lambda a, b: lax.dynamic_update_slice(a, b, (1, 0)),
}
# JAX's own f64 functions are this far from the true values, or lose digits by their formula.
LOOSE = {"erfinv": 1e-11, "ndtr": 1e-11, "logit": 1e-11}


def listed(tool):
    _, out, _ = built.run(tool("core"), "list", stdin=b"")
    for line in out.decode().splitlines():
        name, shapes = line.split("\t")
        yield name, [tuple(int(d) for d in s.split(",")) if s != "-" else () for s in shapes.split(";")]


@pytest.mark.parametrize("platform", ["interpreter", "cpu"])
def test_programs_and_their_transformations_equal_jax(tool, platform, monkeypatch):
    monkeypatch.setenv("XYLEM_PLATFORM", platform)
    rng = np.random.default_rng(0)
    sent, expected = [], []
    with jax.enable_x64(True):
        for name, shapes in listed(tool):
            f = PROGRAMS[name]
            # Away from ties and edges: distinct values within every function's domain.
            draw = lambda shape: rng.permutation(np.linspace(0.11, 0.93, int(np.prod(shape)))).reshape(shape) + rng.uniform(0, 1e-3)
            x, t, s = ([draw(d) for d in shapes] for _ in range(3))
            batch = [draw((3, *d)) for d in shapes]
            y = f(*x)
            ct = draw(y.shape)
            pulled = lambda *a: jax.vjp(f, *a)[1](ct)
            sent += x + t + s + batch + [ct]
            expected.append((name, [y, jax.jvp(f, x, t)[1], *pulled(*x), jax.vmap(f)(*batch), *jax.jvp(pulled, x, s)[1]]))
    _, out, _ = built.run(tool("core"), "run", stdin=b"".join(np.ascontiguousarray(a, np.float64).tobytes() for a in sent))
    got, at, wrong = np.frombuffer(out, np.float64), 0, []
    for name, arrays in expected:
        for i, want in enumerate(arrays):
            want = np.asarray(want)
            ours = got[at:at + want.size].reshape(want.shape)
            at += want.size
            off = np.max(np.abs(ours - want)) / max(1.0, np.max(np.abs(want)))
            if not off <= LOOSE.get(name, 1e-12):
                wrong.append((name, i, float(off)))
    assert at == got.size
    assert not wrong, wrong
    assert len(expected) >= 90
