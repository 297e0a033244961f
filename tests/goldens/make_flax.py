"""Writes flax.json: initial values, outputs and gradients of Flax NNX layers built from Rngs(0)."""
import golden_io as io

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx


def params(module):
    return {".".join(str(k) for k in path): io.array(v[...])
            for path, v in nnx.to_flat_state(nnx.state(module, nnx.Param))}


def perturb(module):
    """Replace ones and zeros by values that a test can tell apart."""
    for i, (path, v) in enumerate(nnx.to_flat_state(nnx.state(module, nnx.Param))):
        if path[-1] in ("bias", "scale"):
            noise = jax.random.normal(jax.random.key(101 + i), v[...].shape) * 0.5
            v[...] = (noise + 1 if path[-1] == "scale" else noise).astype(v[...].dtype)


def record(name, make, inputs, call=None, args=None, grad=True):
    """One layer: values at construction, then output and gradients with perturbed parameters."""
    rngs = nnx.Rngs(0)
    module = make(rngs)
    out = {"layer": name, "args": args or {}, "draws": int(rngs.default.count[...]), "initial": params(module)}
    perturb(module)
    out["params"] = params(module)
    call = call or (lambda m, *xs: m(*xs))
    y = call(module, *inputs)
    cotangent = jnp.asarray(np.random.default_rng(9).standard_normal(y.shape).astype(np.float32))
    out["inputs"] = [io.array(x) for x in inputs]
    out["output"] = io.array(y)
    if grad:
        floats = tuple(i for i, x in enumerate(inputs) if jnp.issubdtype(x.dtype, jnp.floating))
        graph, state, rest = nnx.split(module, nnx.Param, ...)
        f = lambda s, *xs: (call(nnx.merge(graph, s, rest), *xs) * cotangent).sum()
        gs, *gx = jax.grad(f, argnums=(0,) + tuple(i + 1 for i in floats))(state, *inputs)
        out["cotangent"] = io.array(cotangent)
        out["param_gradients"] = {".".join(str(k) for k in p): io.array(v[...]) for p, v in nnx.to_flat_state(gs)}
        out["input_gradients"] = [io.array(g) for g in gx]
    return out


def x(*shape, seed=3):
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def attention(m, inputs):
    return m(inputs, mask=nnx.make_causal_mask(jnp.zeros(inputs.shape[:2])), decode=False)


def decode():
    """Token by token with the cache, beside the full causal pass."""
    m = nnx.MultiHeadAttention(num_heads=2, in_features=8, decode=True, rngs=nnx.Rngs(0))
    m.init_cache((1, 5, 8))
    seq = x(1, 5, 8)
    return {"layer": "MultiHeadAttention", "args": {"num_heads": 2, "in_features": 8, "decode": True, "max_length": 5},
            "initial": params(m), "inputs": [io.array(seq)],
            "output": io.array(jnp.concatenate([m(seq[:, i:i + 1]) for i in range(5)], 1)),
            "cached_key": io.array(m.cached_key[...]), "cached_value": io.array(m.cached_value[...])}


def dropout():
    out = []
    for rate, shape in ((0.5, (4, 6)), (0.1, (3, 20)), (0.0, (2, 2)), (1.0, (2, 2))):
        m = nnx.Dropout(rate, rngs=nnx.Rngs(0))
        ones = jnp.ones(shape)
        out.append({"rate": rate, "input": io.array(ones), "first_call": io.array(m(ones)),
                    "second_call": io.array(m(ones)), "calls_that_drew": int(m.rngs.count[...])})
    return out


def streams():
    word = lambda k: [int(v) for v in np.asarray(jax.random.key_data(k)).ravel()]
    r, s, named = nnx.Rngs(0), nnx.Rngs(0), nnx.Rngs(params=3, dropout=4)
    return {
        "Rngs(0): three draws": [word(r.params()), word(r.dropout()), word(r())],
        "Rngs(0): fork, then its first draw": word(nnx.Rngs(0).default.fork()()),
        "Rngs(0): key of the first fork": word(nnx.Rngs(0).default.fork().key[...]),
        "Rngs(0).split(2): keys": word(s.split(2).default.key[...]),
        "Rngs(params=3, dropout=4): params, dropout, params": [word(named.params()), word(named.dropout()), word(named.params())],
    }


tokens = jnp.array([[0, 4, 2], [1, 1, 3]], jnp.int32)
layers = [
    record("Linear", lambda r: nnx.Linear(3, 4, rngs=r), [x(2, 3)], args={"in": 3, "out": 4}),
    record("Linear", lambda r: nnx.Linear(3, 4, use_bias=False, rngs=r), [x(2, 3)], args={"in": 3, "out": 4, "use_bias": False}),
    record("Linear", lambda r: nnx.Linear(5, 2, rngs=r), [x(2, 3, 5)], args={"in": 5, "out": 2}),
    record("Linear", lambda r: nnx.Linear(64, 48, rngs=r), [x(3, 64)], args={"in": 64, "out": 48}, grad=False),
    record("Embed", lambda r: nnx.Embed(5, 4, rngs=r), [tokens], args={"num": 5, "features": 4}),
    record("Embed", lambda r: nnx.Embed(5, 4, rngs=r), [x(2, 4)], call=lambda m, q: m.attend(q),
           args={"num": 5, "features": 4, "method": "attend"}),
    record("LayerNorm", lambda r: nnx.LayerNorm(6, rngs=r), [x(3, 6)], args={"features": 6}),
    record("LayerNorm", lambda r: nnx.LayerNorm(6, use_fast_variance=False, rngs=r), [x(3, 6) + 50.0],
           args={"features": 6, "use_fast_variance": False}),
    record("LayerNorm", lambda r: nnx.LayerNorm(6, use_bias=False, rngs=r), [x(3, 6)], args={"features": 6, "use_bias": False}),
    record("RMSNorm", lambda r: nnx.RMSNorm(6, rngs=r), [x(3, 6)], args={"features": 6}),
    record("RMSNorm", lambda r: nnx.RMSNorm(6, use_scale=False, rngs=r), [x(3, 6)], args={"features": 6, "use_scale": False}),
    record("MultiHeadAttention", lambda r: nnx.MultiHeadAttention(num_heads=2, in_features=8, decode=False, rngs=r),
           [x(2, 5, 8)], call=lambda m, q: m(q), args={"num_heads": 2, "in_features": 8}),
    record("MultiHeadAttention", lambda r: nnx.MultiHeadAttention(num_heads=2, in_features=8, decode=False, rngs=r),
           [x(2, 5, 8)], call=attention, args={"num_heads": 2, "in_features": 8, "causal": True}),
    record("MultiHeadAttention", lambda r: nnx.MultiHeadAttention(num_heads=2, in_features=8, qkv_features=12, use_bias=False,
                                                                   decode=False, rngs=r),
           [x(2, 5, 8)], call=attention,
           args={"num_heads": 2, "in_features": 8, "qkv_features": 12, "use_bias": False, "causal": True}),
    record("MultiHeadAttention", lambda r: nnx.MultiHeadAttention(num_heads=4, num_kv_heads=2, in_features=8, decode=False,
                                                                   rngs=r),
           [x(2, 5, 8)], call=attention,
           args={"num_heads": 4, "num_kv_heads": 2, "in_features": 8, "causal": True}),
    record("MultiHeadAttention", lambda r: nnx.MultiHeadAttention(num_heads=2, in_features=8, normalize_qk=True, decode=False,
                                                                   rngs=r),
           [x(2, 5, 8)], call=attention, args={"num_heads": 2, "in_features": 8, "normalize_qk": True, "causal": True}),
]
g = x(40, seed=5) * 4
io.dump({
    "origin": io.origin("jax", "flax", "optax"),
    "made_by": "make_flax.py",
    "layout": {
        "layers": "`initial`: parameters built from Rngs(0), which made `draws` draws; `params`: those of the call, where "
                  "biases and scales are replaced; gradients are those of sum(output * cotangent)",
        "order of draws": "Linear kernel, bias; Embed embedding; LayerNorm scale, bias; RMSNorm scale; MultiHeadAttention "
                          "query, key, value, (query_ln, key_ln), out, each kernel then bias; one draw per parameter that exists",
        "attention kernels": "query, key, value [in, heads, dim], out [heads, dim, out], initialised as the flattened matrix",
        "tolerance": "keys and uniforms exact; initial values within 2 ulp; outputs about 1e-6 relative to the row's size",
    },
    "layers": layers,
    "decode": decode(),
    "dropout": dropout(),
    "streams": streams(),
    "gelu": {"input": io.array(g), "tanh": io.array(jax.nn.gelu(g)), "exact": io.array(jax.nn.gelu(g, approximate=False)),
             "tanh_gradient": io.array(jax.grad(lambda v: jax.nn.gelu(v).sum())(g))},
}, "flax.json", depth=3)
