"""Writes gpt_tiny.json: a two-layer GPT of benchmarks/jax_twin in f32 and f64.

In f64 the softmax of attention is computed in f64; jax.nn.dot_product_attention, which the f32
part uses, would round to f32 there.
"""
import os
import sys

import golden_io as io

sys.path.insert(0, os.path.join(io.HERE, "..", "..", "benchmarks", "jax_twin"))

import gpt_twin
import jax
import jax.numpy as jnp
import numpy as np
import optax

CONFIG = {**gpt_twin.DEFAULTS, "vocab_size": 24, "base_emb_dim": 16, "base_num_decoder_layers": 2, "base_num_query_heads": 2,
          "head_dim": 8, "base_mlp_dim": 32, "max_target_length": 10, "scale_embedding": True, "steps": 20, "learning_rate": 1e-2,
          "warmup_steps_fraction": 0.25, "learning_rate_final_fraction": 0.1, "adam_b2": 0.99}
WINDOWS = np.random.default_rng(0).integers(0, 24, (20, 2, 11), np.int32)       # [step, batch, length + 1]


def attention_f64(query, key, value, *, is_causal):
    logits = jnp.einsum("BTNH,BSNH->BNTS", query, key) / np.sqrt(query.shape[-1])
    keep = jnp.tril(jnp.ones(logits.shape[-2:], bool))
    return jnp.einsum("BNTS,BSNH->BTNH", jax.nn.softmax(jnp.where(keep, logits, -jnp.inf)), value)


def perturbed(twin):
    """Flax's initial values, but scales of their own, so that no parameter is special."""
    rng = np.random.default_rng(1)
    return {n: v * jnp.asarray(1 + 0.3 * rng.standard_normal(v.shape).astype(np.float32), v.dtype)
            if n.endswith(".scale") else v for n, v in sorted(twin.initial.items())}


def run(config, dtype, start, whole):
    twin = gpt_twin.Twin(config, dtype=dtype)
    params = {n: jnp.asarray(v, dtype) for n, v in start.items()}
    loss, grads = jax.value_and_grad(twin.loss)(params, jnp.asarray(WINDOWS[0]))
    out = {"loss": io.array(loss), "grad_norm": io.array(optax.global_norm(grads))}
    if whole:
        out["logits"] = io.array(twin.logits(params, jnp.asarray(WINDOWS[0][:, :-1])))
        out["gradients"] = {n: io.array(g) for n, g in grads.items()}
    else:
        out["gradient_norms"] = {n: io.array(optax.global_norm(g)) for n, g in grads.items()}
    tx = gpt_twin.make_optimizer(config)
    state, step, losses, norms = tx.init(params), jax.jit(gpt_twin.make_step(twin, tx)), [], []
    for windows in WINDOWS:
        params, state, loss, norm = step(params, state, windows)
        losses.append(loss)
        norms.append(norm)
    out["training"] = {"losses": io.array(jnp.stack(losses)), "grad_norms": io.array(jnp.stack(norms))}
    if whole:
        names = ["embed.embedding", "layers[0].attention.query.kernel", "layers[1].mlp_norm.scale", "norm.scale"]
        out["training"]["params"] = {n: io.array(params[n]) for n in names}
    return out


def part(config, whole):
    twin = gpt_twin.Twin(config)
    start = perturbed(twin)
    out = {"config": {k: config[k] for k in gpt_twin.DEFAULTS if "shuffle" not in k},
           "params": {n: io.array(v) for n, v in start.items()}} if whole else {
               "changed": {k: config[k] for k in ("trainable_position_size", "scale_embedding")},
               "params": {n: io.array(v) for n, v in start.items()}}
    out["f32"] = run(config, jnp.float32, start, whole)
    core, jax.nn.dot_product_attention = jax.nn.dot_product_attention, attention_f64
    with jax.enable_x64(True):
        out["f64"] = run(config, jnp.float64, {n: np.asarray(v) for n, v in start.items()}, whole)
    jax.nn.dot_product_attention = core
    assert abs(np.asarray(run(config, jnp.float32, start, False)["loss"] == out["f32"]["loss"])) == 1
    return out


io.dump({
    "origin": io.origin("jax", "flax", "optax"),
    "made_by": "make_gpt.py",
    "layout": {
        "model": "benchmarks/jax_twin/README.md; names and shapes as there; `params` are f32 values, exact in f64",
        "windows": "[step, batch, length + 1] tokens; loss, logits and gradients are those of windows[0] with `params`",
        "training": "clip_by_global_norm, adamw, warmup cosine of `config`; loss and norm before clipping of each step; "
                    "some parameters after the last",
        "tolerance": "f32 about 1e-5 relative to a leaf's largest entry, f64 1e-12",
    },
    "windows": io.array(WINDOWS),
    "rotary": part(CONFIG, True),
    "learned": part({**CONFIG, "trainable_position_size": 10, "scale_embedding": False}, False),
}, "gpt_tiny.json", depth=4)
