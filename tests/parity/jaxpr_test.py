"""make_jaxpr beside jax.make_jaxpr: the same text for the same programs."""

import subprocess

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.ad_checkpoint import checkpoint_name

S, V, M, I = jnp.ones(()), jnp.ones(3), jnp.ones((2, 3)), jnp.int32(2)


def wave(a):
    return jnp.sin(a)


shared = jax.jit(wave)

PROGRAMS = {
    "mul": (lambda x, y: x * y, V, V),
    "scalars": (lambda x, y: x * y + 1.0, S, S),
    "product": (lambda x, y: jnp.sin(x) @ y, M, V),
    "sum": (lambda x: jnp.sum(x, 0) * 2, M),
    "reductions": (lambda x: (jnp.max(x), jnp.min(x, 1), jnp.prod(x, 0)), M),
    "elementwise": (lambda x: jnp.exp(jnp.log1p(jnp.tanh(-x))) + jnp.sqrt(jnp.abs(x)) - jnp.floor(jnp.cos(x)), V),
    "shapes": (lambda x: jnp.transpose(x).reshape(6), M),
    "cast": (lambda x: x.astype(jnp.float32) + 1.5, I),
    "scan": (lambda x, xs: lax.scan(lambda c, y: (c + y, c * y), x, xs), S, V),
    "while": (lambda n, x: lax.while_loop(lambda c: c < n, lambda c: c * 2, x), I, I),
    "cond": (lambda p, x: lax.cond(p, jnp.sin, lambda a: a * 2, x), jnp.array(True), S),
    "remat": (lambda x: jax.checkpoint(lambda y: jnp.sin(jnp.sin(y)))(x), V),
    "shared": (lambda x: shared(shared(x)), S),
    "named": (lambda x: checkpoint_name(x * x, "square"), S),
    "concatenate": (lambda x, y: lax.concatenate([x, y], 0), V, V),
    "iota": (lambda x: x + lax.iota(jnp.float32, 3), V),
}


@pytest.fixture(scope="module")
def texts(tool):
    out = subprocess.run([tool("jaxpr")], check=True, capture_output=True, text=True).stdout
    parts = out.split("== ")[1:]
    return {p.partition("\n")[0]: p.partition("\n")[2].rstrip("\n") for p in parts}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_text_is_that_of_jax(texts, name):
    f, *args = PROGRAMS[name]
    assert texts[name] == str(jax.make_jaxpr(f)(*args))
