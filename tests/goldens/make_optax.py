"""Writes optax.json: optimizer trajectories, schedules and losses in f32 and f64.

Optimizers run on a tree of three leaves with gradients that are given, not computed, so an error
does not feed on itself: every step of `params` depends on the reader's arithmetic alone. Computed
op by op (not jitted): each operation is rounded on its own, as a reader without fused
multiply-add would; a fused program may differ by 1 or 2 ulp.
"""
import golden_io as io

import jax
import jax.numpy as jnp
import numpy as np
import optax

STEPS = 100
SHAPES = {"bias": (2,), "kernel": (2, 3), "scale": (3,)}      # in tree order
MASK = {"bias": False, "kernel": True, "scale": False}


def tree(rng, dtype, size=1.0):
    return {n: jnp.asarray((rng.standard_normal(s) * size).astype(np.float32), dtype) for n, s in SHAPES.items()}


def flat(t):
    return np.concatenate([np.asarray(t[n]).ravel() for n in SHAPES])


def rows(list_of_trees):
    return io.array(np.stack([flat(t) for t in list_of_trees]))


def gradients(dtype):
    """Per step: noise whose scale sweeps four decades, some exact zeros, one large outlier."""
    rng = np.random.default_rng(1)
    out = []
    for i in range(STEPS):
        g = tree(rng, dtype, 10.0 ** (-3 + 4 * (i % 10) / 9))
        if i % 17 == 5:
            g["scale"] = g["scale"] * 0
        out.append(g)
    return out


def schedule():
    return optax.warmup_cosine_decay_schedule(0.0, 3e-2, 10, 90, 3e-3)


OPTIMIZERS = {
    "sgd(0.1)": lambda: optax.sgd(0.1),
    "sgd(0.1, momentum=0.9)": lambda: optax.sgd(0.1, momentum=0.9),
    "sgd(0.1, momentum=0.9, nesterov=True)": lambda: optax.sgd(0.1, momentum=0.9, nesterov=True),
    "adam(0.01)": lambda: optax.adam(0.01),
    "adamw(0.01, weight_decay=0.1, mask=kernel)": lambda: optax.adamw(0.01, weight_decay=0.1, mask=MASK),
    "chain(clip_by_global_norm(1), adamw(warmup_cosine, b1=0.9, b2=0.99, eps=1e-8, weight_decay=0.1, mask=kernel))":
        lambda: optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(
            schedule(), b1=0.9, b2=0.99, eps=1e-8, weight_decay=0.1, mask=MASK)),
    "chain(clip_by_global_norm(0.5), sgd(warmup_cosine, momentum=0.9))":
        lambda: optax.chain(optax.clip_by_global_norm(0.5), optax.sgd(schedule(), momentum=0.9)),
}


def state_leaves(state):
    return {jax.tree_util.keystr(p): io.array(v) for p, v in jax.tree_util.tree_flatten_with_path(state)[0]}


def trajectories(dtype):
    start, grads = tree(np.random.default_rng(0), dtype), gradients(dtype)
    out = {"dtype": io.SHLO[np.dtype(dtype).name], "start": rows([start]), "gradients": rows(grads), "runs": []}
    for name, make in OPTIMIZERS.items():
        tx, p, trace = make(), start, []
        state = tx.init(p)
        for i, g in enumerate(grads):
            updates, state = tx.update(g, state, p)
            p = optax.apply_updates(p, updates)
            trace.append(p)
            if i == 0:
                first = {"updates": rows([updates]), "state": state_leaves(state)}
        out["runs"].append({"optimizer": name, "params": rows(trace), "state_after_1": first["state"],
                            "updates_of_1": first["updates"], "state_after_100": state_leaves(state)})
    return out


def schedules(dtype):
    made = {
        "constant(0.5)": optax.constant_schedule(0.5),
        "linear(0.0, 1.0, 10)": optax.linear_schedule(0.0, 1.0, 10),
        "cosine_decay(1.0, 20, alpha=0.1)": optax.cosine_decay_schedule(1.0, 20, alpha=0.1),
        "warmup_cosine_decay(0.0, 0.03, 10, 90, 0.003)": schedule(),
        "warmup_cosine_decay(0.01, 1.0, 5, 40, 0.0)": optax.warmup_cosine_decay_schedule(0.01, 1.0, 5, 40),
        "warmup_cosine_decay(0.0, 0.004, 225, 4500, 0.0002)":
            optax.warmup_cosine_decay_schedule(0.0, 0.004, 225, 4500, 0.0002),
    }
    out = []
    for name, f in made.items():
        counts = list(range(0, 101)) if "4500" not in name else [0, 1, 2, 100, 224, 225, 226, 1000, 2362, 4499, 4500, 9000]
        out.append({"schedule": name, "count": counts,
                    "value": io.array(np.stack([np.asarray(f(jnp.int32(c)), dtype) for c in counts]))})
    return out


def global_norms(dtype):
    out = []
    for g in gradients(dtype)[:12]:
        clip = optax.clip_by_global_norm(1.0)
        out.append({"gradients": rows([g]), "global_norm": io.array(optax.global_norm(g)),
                    "clipped_to_1": rows([clip.update(g, clip.init(g))[0]])})
    return out


def losses(dtype):
    rng = np.random.default_rng(2)
    logits = jnp.asarray((rng.standard_normal((6, 5)) * 4).astype(np.float32), dtype)
    logits = logits.at[4].set(jnp.asarray([1e4, -1e4, 0, 3, 1], dtype)).at[5].set(0)
    labels = jnp.array([0, 4, 2, 1, 1, 3], jnp.int32)
    f = lambda x: optax.softmax_cross_entropy_with_integer_labels(x, labels)
    one_hot = jax.nn.one_hot(labels, 5, dtype=dtype) * 0.9 + 0.02
    g = lambda x: optax.softmax_cross_entropy(x, one_hot)
    targets = jnp.asarray(rng.standard_normal((6, 5)).astype(np.float32), dtype)
    return [
        {"loss": "softmax_cross_entropy_with_integer_labels", "logits": io.array(logits), "labels": io.array(labels),
         "value": io.array(f(logits)), "gradient_of_mean": io.array(jax.grad(lambda x: f(x).mean())(logits))},
        {"loss": "softmax_cross_entropy", "logits": io.array(logits), "labels": io.array(one_hot),
         "value": io.array(g(logits)), "gradient_of_mean": io.array(jax.grad(lambda x: g(x).mean())(logits))},
        {"loss": "l2_loss", "logits": io.array(logits[:4]), "labels": io.array(targets[:4]),
         "value": io.array(optax.l2_loss(logits[:4], targets[:4])),
         "gradient_of_mean": io.array(jax.grad(lambda x: optax.l2_loss(x, targets[:4]).mean())(logits[:4]))},
    ]


def part(dtype):
    return {"trajectories": trajectories(dtype), "schedules": schedules(dtype), "clipping": global_norms(dtype),
            "losses": losses(dtype)}


result = {
    "origin": io.origin("jax", "flax", "optax"),
    "made_by": "make_optax.py",
    "layout": {
        "tree": {n: list(s) for n, s in SHAPES.items()},
        "rows": "trees are flattened in the order of `tree`, row-major, one row per step (11 numbers)",
        "trajectories": "gradients[i] gives params[i] (after step i); `state_*`: leaf path -> array; kernel alone decays",
        "clipping": "one row each",
    },
    "f32": part(jnp.float32),
}
with jax.enable_x64(True):
    result["f64"] = part(jnp.float64)
io.dump(result, "optax.json", depth=4)
