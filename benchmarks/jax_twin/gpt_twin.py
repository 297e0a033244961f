#!/usr/bin/env python3
"""The demo's language model in JAX, Flax NNX and Optax: what Xylem's trainer is compared with.

    gpt_twin.py [--config configs/demo.yaml] [--variant unrolled|scan] [--steps N]
                [--init FILE.safetensors] [--batches FILE.npy] [--json OUT] [key=value ...]

Trains for N steps and prints one JSON object: losses (nats per byte), gradient norms before
clipping, step times, times of tracing, lowering and compiling, seconds from process start to the
end of the first step, and peak memory. See README.md for the model, names and the order of draws.
"""
import argparse
import json
import os
import subprocess
import sys
import time

# glibc's defaults map and fault every large result anew; with these XLA's CPU client is at its best.
TUNED = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "68719476736", "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}

if __name__ == "__main__" and "--tuned" in sys.argv and any(os.environ.get(k) != v for k, v in TUNED.items()):
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **TUNED})   # glibc reads them at start

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import jax
import jax.numpy as jnp
import numpy as np
import optax
import yaml
from flax import nnx

HERE = os.path.dirname(os.path.abspath(__file__))
DEMO = os.path.join(HERE, "..", "..", "configs", "demo.yaml")
DEFAULTS = dict(
    vocab_size=256, base_emb_dim=128, base_num_decoder_layers=4, base_num_query_heads=4, base_mlp_dim=512, head_dim=32,
    max_target_length=256, per_device_batch_size=2, steps=1000, rope_max_timescale=10000, trainable_position_size=-1,
    scale_embedding=False,
    normalization_layer_epsilon=1e-6, learning_rate=1e-3, warmup_steps_fraction=0.1, learning_rate_final_fraction=0.1,
    adam_b1=0.9, adam_b2=0.95, adam_eps=1e-8, adam_weight_decay=0.1, gradient_clipping_threshold=1.0, init_weights_seed=0,
    data_shuffle_seed=0)


# ---------------------------------------------------------------- configuration

def load_config(path=DEMO, overrides=()):
    with open(path) as f:
        config = {**DEFAULTS, **yaml.safe_load(f)}
    for word in overrides:
        key, value = word.split("=", 1)
        if key not in config:
            raise SystemExit(f"gpt_twin.py: unknown key {key}")
        config[key] = yaml.safe_load(value)
    return {k: float(v) if isinstance(DEFAULTS.get(k), float) else v for k, v in config.items()}   # YAML reads 1e-8 as text


# ---------------------------------------------------------------- model

def rope_tables(config, length):
    """cos and sin [length, head_dim / 2], computed in f64."""
    half = config["head_dim"] // 2
    frequency = float(config["rope_max_timescale"]) ** (-np.arange(half) / half)
    angle = np.arange(length)[:, None] * frequency
    return np.cos(angle), np.sin(angle)


def rotate(x, cos, sin):
    """Rotary positions, half-split layout: channel i is paired with i + head_dim / 2."""
    a, b = jnp.split(x, 2, -1)
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


class Attention(nnx.Module):
    def __init__(self, config, dtype, rngs):
        width, inner = config["base_emb_dim"], config["base_num_query_heads"] * config["head_dim"]
        linear = lambda i, o: nnx.Linear(i, o, use_bias=False, param_dtype=dtype, rngs=rngs)
        self.query = linear(width, inner)
        self.key = linear(width, inner)
        self.value = linear(width, inner)
        self.out = linear(inner, width)
        self.heads = config["base_num_query_heads"]

    def __call__(self, x, tables):
        split = lambda y: y.reshape(*y.shape[:2], self.heads, -1)
        query, key, value = split(self.query(x)), split(self.key(x)), split(self.value(x))
        if tables is not None:
            query, key = rotate(query, *tables), rotate(key, *tables)
        y = jax.nn.dot_product_attention(query, key, value, is_causal=True)
        return self.out(y.reshape(*x.shape[:2], -1))


class Mlp(nnx.Module):
    def __init__(self, config, dtype, rngs):
        width, inner = config["base_emb_dim"], config["base_mlp_dim"]
        self.up = nnx.Linear(width, inner, use_bias=False, param_dtype=dtype, rngs=rngs)
        self.down = nnx.Linear(inner, width, use_bias=False, param_dtype=dtype, rngs=rngs)

    def __call__(self, x):
        return self.down(jax.nn.gelu(self.up(x)))


class Layer(nnx.Module):
    def __init__(self, config, dtype, rngs):
        norm = lambda: nnx.RMSNorm(config["base_emb_dim"], epsilon=config["normalization_layer_epsilon"],
                                   param_dtype=dtype, rngs=rngs)
        self.attention_norm = norm()
        self.attention = Attention(config, dtype, rngs)
        self.mlp_norm = norm()
        self.mlp = Mlp(config, dtype, rngs)

    def __call__(self, x, tables):
        x = x + self.attention(self.attention_norm(x), tables)
        return x + self.mlp(self.mlp_norm(x))


class Gpt(nnx.Module):
    def __init__(self, config, rngs, dtype=jnp.float32):
        width = config["base_emb_dim"]
        embed = lambda n: nnx.Embed(n, width, param_dtype=dtype, rngs=rngs)
        self.embed = embed(config["vocab_size"])
        if config["trainable_position_size"] > 0:
            self.positions = embed(config["trainable_position_size"])
        self.layers = nnx.List([Layer(config, dtype, rngs) for _ in range(config["base_num_decoder_layers"])])
        self.norm = nnx.RMSNorm(width, epsilon=config["normalization_layer_epsilon"], param_dtype=dtype, rngs=rngs)
        self.scale = width ** 0.5 if config["scale_embedding"] else 1.0

    def start(self, tokens):
        x = self.embed(tokens) * self.scale
        if hasattr(self, "positions"):
            x = x + self.positions(jnp.arange(tokens.shape[1]))
        return x

    def finish(self, x):
        return self.embed.attend(self.norm(x))


def parameter_name(path):
    return "".join(f"[{k}]" if isinstance(k, int) else f".{k}" for k in path).lstrip(".")


def merge(graph, paths, params):
    return nnx.merge(graph, nnx.from_flat_state({path: nnx.Param(params[n]) for n, path in paths.items()}))


def split(module):
    graph, state = nnx.split(module)
    return graph, {parameter_name(path): path for path, _ in nnx.to_flat_state(state)}


class Twin:
    """The model as a function of a flat dictionary: parameter name -> array."""

    def __init__(self, config, variant="unrolled", dtype=jnp.float32):
        self.config, self.scan, self.layers = config, variant == "scan", range(config["base_num_decoder_layers"])
        model = Gpt(config, nnx.Rngs(params=config["init_weights_seed"]), dtype)
        self.initial = {parameter_name(path): v[...] for path, v in nnx.to_flat_state(nnx.state(model))}
        self.layer_graph, self.layer_paths = split(model.layers[0])
        model.layers = nnx.List([])
        self.graph, self.paths = split(model)       # what stands before and after the layers
        self.tables = None
        if config["trainable_position_size"] <= 0:
            self.tables = tuple(jnp.asarray(t[None, :, None, :], dtype)
                                for t in rope_tables(config, config["max_target_length"]))

    def stack(self, params):
        """For the scan variant: the layers' parameters as `layers.<name>` with a leading axis."""
        if not self.scan:
            return dict(params)
        return {n: params[n] for n in self.paths} | {
            f"layers.{n}": jnp.stack([params[f"layers[{i}].{n}"] for i in self.layers]) for n in self.layer_paths}

    def unstack(self, params):
        if not self.scan:
            return dict(params)
        return {n: params[n] for n in self.paths} | {
            f"layers[{i}].{n}": params[f"layers.{n}"][i] for i in self.layers for n in self.layer_paths}

    def logits(self, params, tokens):
        shell = merge(self.graph, self.paths, params)
        tables = None if self.tables is None else tuple(t[:, :tokens.shape[1]] for t in self.tables)
        layer = lambda x, p: merge(self.layer_graph, self.layer_paths, p)(x, tables)
        x = shell.start(tokens)
        if self.scan:
            x, _ = jax.lax.scan(lambda y, p: (layer(y, p), None), x, {n: params[f"layers.{n}"] for n in self.layer_paths})
        else:
            for i in self.layers:
                x = layer(x, {n: params[f"layers[{i}].{n}"] for n in self.layer_paths})
        return shell.finish(x)

    def loss(self, params, windows):
        """Mean cross entropy (nats per byte) of windows [B, T + 1]."""
        windows = windows.astype(jnp.int32)
        logits = self.logits(params, windows[:, :-1])
        return optax.softmax_cross_entropy_with_integer_labels(logits, windows[:, 1:]).mean()


def make_optimizer(config):
    steps = config["steps"]
    schedule = optax.warmup_cosine_decay_schedule(
        0.0, config["learning_rate"], int(steps * config["warmup_steps_fraction"]), steps,
        config["learning_rate"] * config["learning_rate_final_fraction"])
    matrices = lambda params: {n: n.endswith((".kernel", ".embedding")) for n in params}
    adamw = optax.adamw(schedule, b1=config["adam_b1"], b2=config["adam_b2"], eps=config["adam_eps"],
                        weight_decay=config["adam_weight_decay"], mask=matrices)
    if config["gradient_clipping_threshold"] > 0:
        return optax.chain(optax.clip_by_global_norm(config["gradient_clipping_threshold"]), adamw)
    return adamw


def make_step(twin, tx):
    def step(params, state, windows):
        loss, grads = jax.value_and_grad(twin.loss)(params, windows)
        updates, state = tx.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss, optax.global_norm(grads)
    return step


# ---------------------------------------------------------------- data

def corpus(path):
    """Training and validation bytes: the last 5 % are for validation, contiguous."""
    if path == "bible":
        text = subprocess.run(["bible", "-f", "gen1:1-rev22:21"], check=True, capture_output=True).stdout
    else:
        with open(path, "rb") as f:
            text = f.read()
    data = np.frombuffer(text, np.uint8)
    held_out = len(data) // 20
    return data[:-held_out], data[-held_out:]


def windows_of(data, length):
    """All non-overlapping windows [N, length + 1]; neighbours share the byte that one predicts and the next reads."""
    return np.stack([data[i:i + length + 1] for i in range(0, len(data) - length, length)])


def own_batches(config, train):
    """Batches for a run without --batches: windows in an order drawn anew for each epoch."""
    windows = windows_of(train, config["max_target_length"])
    rng, batch, order = np.random.default_rng(config["data_shuffle_seed"]), config["per_device_batch_size"], np.array([], int)
    while True:
        while len(order) < batch:
            order = np.concatenate([order, rng.permutation(len(windows))])
        yield windows[order[:batch]]
        order = order[batch:]


def evaluate(loss, params, windows, batch=32):
    """Mean loss over all windows, nats per byte."""
    total = 0.0
    for i in range(0, len(windows), batch):
        part = windows[i:i + batch]
        total += float(loss(params, part)) * len(part)
    return total / len(windows)


# ---------------------------------------------------------------- measuring

def seconds_since_start():
    """Seconds since this process was started, from the kernel's clock ticks."""
    with open("/proc/self/stat") as f:
        ticks = int(f.read().rsplit(")", 1)[1].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")


def peak_rss_mb():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))


def load_init(path, like):
    """Parameters by name; a kernel of another shape but equal size ([in, heads, dim]) is reshaped."""
    from safetensors.numpy import load_file
    got = load_file(path)
    missing, extra = sorted(set(like) - set(got)), sorted(set(got) - set(like))
    if missing or extra:
        raise SystemExit(f"gpt_twin.py: {path}: missing parameters {missing}, unknown parameters {extra}")
    return {n: jnp.asarray(got[n].reshape(v.shape), v.dtype) for n, v in like.items()}


def save(path, params):
    from safetensors.numpy import save_file
    save_file({n: np.asarray(v) for n, v in params.items()}, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", default=DEMO)
    parser.add_argument("--variant", choices=("unrolled", "scan"), default="unrolled", help="layers as a loop in the program (scan) or not")
    parser.add_argument("--tuned", action="store_true", help="restart with glibc's allocator tuned: " + " ".join(f"{k}={v}" for k, v in TUNED.items()))
    parser.add_argument("--steps", type=int, help="stop after so many steps (the schedule stays the configuration's)")
    parser.add_argument("--init", help="initial parameters by name, instead of Flax's own")
    parser.add_argument("--batches", help="token windows [steps, batch, length + 1], uint8 or int32; instead of an own order")
    parser.add_argument("--eval", type=int, default=0, metavar="N", help="loss over all validation windows every N steps and at the end")
    parser.add_argument("--save-init", help="write the initial parameters as safetensors")
    parser.add_argument("--save", help="write the final parameters as safetensors")
    parser.add_argument("--json", help="write the result here instead of to standard output")
    parser.add_argument("overrides", nargs="*", metavar="key=value")
    args = parser.parse_args()

    config = load_config(args.config, args.overrides)
    twin = Twin(config, args.variant)
    params = load_init(args.init, twin.initial) if args.init else twin.initial
    if args.save_init:
        save(args.save_init, params)
    params = twin.stack(params)
    train, validation = corpus(config["dataset_path"]) if args.eval or not args.batches else (None, None)
    batches = iter(np.load(args.batches, mmap_mode="r")) if args.batches else own_batches(config, train)
    steps = config["steps"] if args.steps is None else args.steps

    tx = make_optimizer(config)
    state = tx.init(params)
    windows = np.array(next(batches))
    marks = [time.perf_counter()]
    traced = jax.jit(make_step(twin, tx), donate_argnums=(0, 1)).trace(params, state, windows)
    marks.append(time.perf_counter())
    lowered = traced.lower()
    marks.append(time.perf_counter())
    step = lowered.compile()
    marks.append(time.perf_counter())

    loss_of = jax.jit(twin.loss)
    losses, norms, times, evals, first = [], [], [], [], None
    for i in range(steps):
        begin = time.perf_counter()
        params, state, loss, norm = step(params, state, windows)
        jax.block_until_ready((params, loss))
        times.append(time.perf_counter() - begin)
        first = seconds_since_start() if first is None else first
        losses.append(float(loss))
        norms.append(float(norm))
        if args.eval and ((i + 1) % args.eval == 0 or i + 1 == steps):
            value = evaluate(loss_of, params, windows_of(validation, config["max_target_length"]))
            evals.append({"steps": i + 1, "eval_loss": value, "eval_bits_per_byte": value / np.log(2)})
            print(f"step {i + 1}: loss {losses[-1]:.4f}, validation {value / np.log(2):.4f} bits per byte", file=sys.stderr)
        if i + 1 < steps:
            windows = next(batches, None)
            if windows is None:
                break
            windows = np.array(windows)
    if args.save:
        save(args.save, twin.unstack(params))

    later = np.array(times[1:] or times)
    result = {
        "peer": "jax", "version": jax.__version__, "variant": args.variant,
        "tuned": all(os.environ.get(k) == v for k, v in TUNED.items()), "threads": len(os.sched_getaffinity(0)),
        "parameters": int(sum(v.size for v in params.values())), "batch": list(np.shape(lowered.args_info[0][2])), "steps": len(losses),
        "step_seconds_median": float(np.median(later)), "step_seconds_min": float(later.min()),
        "trace_seconds": marks[1] - marks[0], "lower_seconds": marks[2] - marks[1], "compile_seconds": marks[3] - marks[2],
        "trace_to_executable_seconds": marks[3] - marks[0], "start_to_first_step_seconds": first, "peak_rss_mb": peak_rss_mb(),
        "config": config, "evals": evals, "losses": losses, "grad_norms": norms, "step_seconds": times,
    }
    text = json.dumps(result) + "\n"
    if args.json:
        with open(args.json, "w") as f:
            f.write(text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
