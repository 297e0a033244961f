"""jax.export in both directions: what Xylem exported JAX calls and differentiates, and what JAX exported Xylem does."""

import subprocess

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax

X = jnp.array([0.5, -1.0, 2.0], jnp.float32)
Y = jnp.array([1.0, 2.0, 3.0], jnp.float32)


def pair(a, b):
    return jnp.exp(a) + b, [jnp.sum(b), jnp.argmax(a)]


def layer(p, v):
    return {"out": jnp.tanh(p["kernel"] @ v + p["bias"])}


def loop(a):
    return lax.fori_loop(0, 3, lambda _, c: jnp.sin(c) * c, a)


KERNEL = jnp.arange(9.0).reshape(3, 3) / 10
WRITTEN = {
    "wave": (lambda a, b: jnp.sin(a) * b, (X, Y)),
    "pair": (pair, (X, Y)),
    "layer": (layer, ({"kernel": KERNEL, "bias": Y}, X)),
    "loop": (loop, (X,)),
    "ints": (lambda a, n: (a * n, n + 1), (X, jnp.arange(3))),
    "key": (lambda k: jax.random.normal(k, (4,)), (jax.random.key(3),)),
}


def close(got, want):
    assert jax.tree.structure(got) == jax.tree.structure(want)
    for g, w in zip(jax.tree.leaves(got), jax.tree.leaves(want)):
        assert g.dtype == w.dtype and g.shape == w.shape
        np.testing.assert_allclose(np.asarray(g, np.float64), np.asarray(w, np.float64), rtol=2e-6, atol=1e-6)


def total(f):
    """The sum of everything that f returns, in f32."""
    return lambda *args: sum(jnp.sum(leaf.astype(jnp.float32)) for leaf in jax.tree.leaves(f(*args)))


@pytest.fixture
def written(tool, tmp_path):
    def make(name):
        path = tmp_path / f"{name}.bin"
        subprocess.run([tool("export"), "write", name, path], check=True)
        return export.deserialize(bytearray(path.read_bytes()))
    return make


@pytest.mark.parametrize("name", WRITTEN)
def test_jax_calls_what_xylem_exported(written, name):
    f, args = WRITTEN[name]
    e = written(name)
    close(e.call(*args), f(*args))
    close(jax.jit(e.call)(*args), f(*args))


@pytest.mark.parametrize("name", [n for n in WRITTEN if n != "key"])
def test_jax_differentiates_what_xylem_exported_twice(written, name):
    f, args = WRITTEN[name]
    e = written(name)
    assert e.has_vjp() and e.vjp().has_vjp()
    close(jax.grad(total(e.call))(*args), jax.grad(total(f))(*args))
    twice = lambda h: jax.grad(lambda *a: total(jax.grad(total(h)))(*a))
    close(twice(e.call)(*args), twice(f)(*args))


READ = {
    "sine": (lambda a, b: jnp.sin(a) * b, 2),
    "scan": (lambda a: lax.scan(lambda c, x: (c * 0.5 + x, c), 0.0, a), 1),
    "cond": (lambda a: lax.cond(a[0] > 0, jnp.sin, jnp.cos, a), 1),
    "nested": (lambda a: jax.jit(jax.nn.softmax)(a) + jax.nn.relu(a), 1),
    "gather": (lambda a, b: a[jnp.array([2, 0])] * b[1:], 2),
    "sort": (lambda a: jnp.sort(a) * jnp.arange(3.0), 1),
    "matmul": (lambda a, b: jnp.outer(a, b) @ a, 2),
    "special": (lambda a: jax.scipy.special.erf(a) + jnp.log1p(a * a), 1),
    "unused": (lambda a, b: jnp.tan(a), 2),
}


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("symbolic", [False, True])
def test_xylem_calls_and_differentiates_what_jax_exported(tool, tmp_path, name, symbolic):
    f, count = READ[name]
    args = tuple(X + i for i in range(count))
    if symbolic and name in ("sort", "matmul", "gather"):
        types = args
    elif symbolic:
        (n,) = export.symbolic_shape("n")
        types = (jax.ShapeDtypeStruct((n,), jnp.float32),) * count
    else:
        types = args
    path = tmp_path / "f.bin"
    path.write_bytes(export.export(jax.jit(f))(*types).serialize(vjp_order=1))

    def run(kind):
        out = subprocess.run([tool("export"), "call", path, kind], check=True, capture_output=True, text=True).stdout
        return [np.array(line.split(), np.float64) for line in out.splitlines()]

    wanted = jax.tree.leaves(f(*args))
    got = run("call")
    assert len(got) == len(wanted)
    for g, w in zip(got, wanted):
        np.testing.assert_allclose(g, np.asarray(w, np.float64).ravel(), rtol=2e-6, atol=1e-6)
    np.testing.assert_allclose(run("grad")[0], jax.grad(total(f))(*args), rtol=4e-6, atol=2e-6)
