"""Writes serializations of jax.export that export_test.cc reads. Run with JAX 0.10.2 on the CPU."""

import os
import pathlib

os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
from jax import export

HERE = pathlib.Path(__file__).parent


def save(name, exported, vjp_order):
    (HERE / f"{name}.bin").write_bytes(exported.serialize(vjp_order=vjp_order))


x = jnp.ones(3)
save("pair", export.export(jax.jit(lambda x, y: (jnp.sin(x) * y, (x > 0).sum())))(x, x), 2)
save(
    "dicts",
    export.export(jax.jit(lambda d, i: {"z": d["b"] * d["a"] + i, "c": d["a"][0]}))({"b": x, "a": x}, jnp.arange(3)),
    1,
)
(b,) = export.symbolic_shape("b")
open_rows = jax.ShapeDtypeStruct((b, 4), jnp.float32)
save(
    "open",
    export.export(jax.jit(lambda x: jnp.tanh(x).sum(0) + x.shape[0]), platforms=("tpu", "cpu"))(open_rows),
    1,
)
save("tpu", export.export(jax.jit(jnp.sin), platforms=("tpu",))(x), 0)
save("key", export.export(jax.jit(lambda k: jax.random.uniform(k, (2,))))(jax.random.key(0)), 0)
save("unused", export.export(jax.jit(lambda x, y, z: x * z))(x, x, x), 1)
