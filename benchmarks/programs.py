"""Single operations and small models of JAX, exported as StableHLO: the least time of a call of `xylem run`, beside JAX on the same arguments.

  ./x bench programs              all of them
  NAMES=conv,fft ./x bench programs    those whose name contains one of the words

Both compile for the CPU and use all cores; each side's arguments are on the device before the clock starts."""

import os
import pathlib
import re
import subprocess
import tempfile
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

BUILD = pathlib.Path(os.environ.get("XYLEM_BUILD_DIR", "build"))
RUNS = int(os.environ.get("RUNS", 20))
NAMES = [n for n in os.environ.get("NAMES", "").split(",") if n]
RANDOM = np.random.default_rng(0)


def floats(*shape, scale=1.0):
    return jnp.asarray(RANDOM.standard_normal(shape) * scale, jnp.float32)


def integers(high, *shape, dtype=jnp.int32):
    return jnp.asarray(RANDOM.integers(0, high, shape), dtype)


def convolution(layout, **options):
    return lambda x, w: lax.conv_general_dilated(x, w, (1,) * (x.ndim - 2), "SAME", dimension_numbers=layout, **options)


def pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def recurrent(x, w):
    def body(h, _):
        h = jnp.tanh(h @ w)
        return h, h.sum()

    return lax.scan(body, x, None, length=200)


def mlp(p, x, y):
    def loss(p):
        return jnp.mean((jax.nn.relu(jax.nn.relu(x @ p[0]) @ p[1]) @ p[2] - y) ** 2)

    return jax.grad(loss)(p)


def cnn(p, x, y):
    layout = ("NHWC", "HWIO", "NHWC")

    def loss(p):
        h = pool(jax.nn.relu(convolution(layout)(x, p[0])))
        h = pool(jax.nn.relu(convolution(layout)(h, p[1])))
        logits = h.reshape(h.shape[0], -1) @ p[2]
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], 1))

    return jax.grad(loss)(p)


def counted(x):
    return lax.while_loop(lambda s: s[0] < 10000, lambda s: (s[0] + 1, s[1] * 1.0001 + 0.1), (0, x))


NHWC = ("NHWC", "HWIO", "NHWC")
PROGRAMS = {
    "matmul 512": lambda: (jnp.matmul, floats(512, 512), floats(512, 512)),
    "matmul 1024": lambda: (jnp.matmul, floats(1024, 1024), floats(1024, 1024)),
    "matmul 512 bf16": lambda: (jnp.matmul, floats(512, 512).astype(jnp.bfloat16), floats(512, 512).astype(jnp.bfloat16)),
    "matmul 512 i8": lambda: (
        lambda a, b: lax.dot(a, b, preferred_element_type=jnp.int32), integers(9, 512, 512, dtype=jnp.int8), integers(9, 512, 512, dtype=jnp.int8)),
    "matrix times vector": lambda: (jnp.matmul, floats(4096, 1024), floats(1024)),
    "64 products of 64": lambda: (jnp.matmul, floats(64, 64, 64), floats(64, 64, 64)),
    "attention": lambda: (lambda q, k, v: jax.nn.dot_product_attention(q, k, v, is_causal=True), *[floats(4, 256, 8, 64)] * 3),
    "convolution NHWC": lambda: (convolution(NHWC), floats(8, 32, 32, 64), floats(3, 3, 64, 64)),
    "convolution NCHW": lambda: (convolution(("NCHW", "OIHW", "NCHW")), floats(4, 32, 28, 28), floats(64, 32, 3, 3)),
    "convolution by channel": lambda: (convolution(NHWC, feature_group_count=64), floats(4, 32, 32, 64), floats(3, 3, 1, 64)),
    "convolution 1-d": lambda: (convolution(("NWC", "WIO", "NWC")), floats(8, 256, 64), floats(5, 64, 64)),
    "max pool": lambda: (pool, floats(8, 64, 64, 32)),
    "softmax": lambda: (jax.nn.softmax, floats(1024, 1024)),
    "layer norm": lambda: (lambda x: (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5), floats(2048, 512)),
    "gelu": lambda: (jax.nn.gelu, floats(1_000_000)),
    "exp": lambda: (jnp.exp, floats(1_000_000)),
    "erf": lambda: (lax.erf, floats(1_000_000)),
    "sum": lambda: (jnp.sum, floats(4_000_000)),
    "sum of columns": lambda: (lambda x: x.sum(0), floats(2000, 1000)),
    "argmax": lambda: (lambda x: x.argmax(-1), floats(1000, 1000)),
    "sort": lambda: (jnp.sort, floats(100_000)),
    "sort rows": lambda: (lambda x: jnp.sort(x, -1), floats(1000, 100)),
    "argsort": lambda: (jnp.argsort, floats(100_000)),
    "top_k": lambda: (lambda x: lax.top_k(x, 8), floats(64, 10_000)),
    "cumsum": lambda: (jnp.cumsum, floats(1_000_000)),
    "cumsum of rows": lambda: (lambda x: jnp.cumsum(x, -1), floats(1000, 1000)),
    "transpose": lambda: (lambda x: x.T + 1, floats(2000, 1000)),
    "gather rows": lambda: (lambda x, i: x[i], floats(10_000, 256), integers(10_000, 4096)),
    "scatter add rows": lambda: (lambda x, i, u: x.at[i].add(u), floats(10_000, 64), integers(10_000, 4096), floats(4096, 64)),
    "fft": lambda: (jnp.fft.fft, floats(64, 4096) + 0j),
    "rfft": lambda: (jnp.fft.rfft, floats(64, 4096)),
    "cholesky": lambda: (lambda x: lax.linalg.cholesky(x @ x.T + 256 * jnp.eye(256)), floats(256, 256)),
    "triangular solve": lambda: (
        lambda a, b: lax.linalg.triangular_solve(jnp.tril(a) + 20 * jnp.eye(256), b, left_side=True, lower=True), floats(256, 256), floats(256, 256)),
    "random uniform": lambda: (lambda k: jax.random.uniform(k, (1_000_000,)), jax.random.PRNGKey(0)),
    "random normal": lambda: (lambda k: jax.random.normal(k, (1_000_000,)), jax.random.PRNGKey(0)),
    "recurrent scan": lambda: (recurrent, floats(32, 128), floats(128, 128, scale=0.1)),
    "scalar while": lambda: (counted, jnp.float32(1)),
    "gradient of an MLP": lambda: (mlp, [floats(256, 512), floats(512, 512), floats(512, 64)], floats(128, 256), floats(128, 64)),
    "gradient of a CNN": lambda: (
        cnn, [floats(3, 3, 1, 32, scale=0.1), floats(3, 3, 32, 64, scale=0.1), floats(7 * 7 * 64, 10, scale=0.01)],
        floats(32, 28, 28, 1), integers(10, 32)),
}


def raw(leaf):
    array = np.asarray(leaf)
    return array.view("V2") if array.dtype == jnp.bfloat16 else array


def measure(folder, function, *arguments):
    lowered = jax.jit(function).lower(*arguments)
    compiled = lowered.compile()
    jax.block_until_ready(compiled(*arguments))
    (folder / "program.mlir").write_text(lowered.as_text())
    command = [BUILD / "bin" / "xylem", "run", "--time", str(RUNS), "--output-dir", folder / "out"]
    for i, leaf in enumerate(jax.tree.leaves(arguments)):
        np.save(folder / f"{i}.npy", raw(leaf))
        command += ["--input", folder / f"{i}.npy"]
    theirs = np.inf
    for _ in range(RUNS):
        start = time.perf_counter()
        jax.block_until_ready(compiled(*arguments))
        theirs = min(theirs, time.perf_counter() - start)
    done = subprocess.run([*map(str, command), str(folder / "program.mlir")], capture_output=True, text=True)
    found = re.search(r"min_us=([\d.]+)", done.stdout)
    if not found:
        raise SystemExit(f"xylem run: {done.stderr}")
    return float(found.group(1)), theirs * 1e6


def main():
    print(f"{'program':24s} {'Xylem us':>12s} {'JAX us':>12s} {'ratio':>7s}")
    for name, make in PROGRAMS.items():
        if NAMES and not any(n in name for n in NAMES):
            continue
        with tempfile.TemporaryDirectory() as folder:
            ours, theirs = measure(pathlib.Path(folder), *make())
        print(f"{name:24s} {ours:12.1f} {theirs:12.1f} {ours / theirs:7.2f}", flush=True)


if __name__ == "__main__":
    main()
