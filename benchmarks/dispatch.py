#!/usr/bin/env python3
"""Speed of core's front beside JAX, in one run.

    dispatch.py [--quick] [--build DIR]

Runs benchmarks/dispatch and the same work in JAX; ratios are ours / JAX's (below 1 is faster). A call is timed until
it returns, as a training loop sees it; the results of small programs are ready by then on our side. `chain` is an
unrolled function of n ops, traced and compiled; JAX's chain ends at 10^4 ops, which takes it a minute.
"""
import argparse
import json
import os
import subprocess
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)

GOALS = {"cached call": "1 µs + 10 ns per leaf, 1/5 of JAX", "eager": "1 µs", "compile": "10^4 ops ≤ 15 × 10^3 ops"}


def seconds_per_call(f, budget):
    """The least of several batches, because other work on the machine only adds."""
    import jax
    for _ in range(3):
        out = f()
    start = time.perf_counter()
    jax.block_until_ready(f())
    batch = int(min(max(budget / 20 / max(time.perf_counter() - start, 1e-7), 1), 100000))
    best, end = 1e9, time.perf_counter() + budget
    while time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(batch):
            out = f()
        best = min(best, (time.perf_counter() - start) / batch)
        jax.block_until_ready(out)
    return best


def peer(budget, counts):
    import jax
    import jax.numpy as jnp
    jax.config.update("jax_platforms", "cpu")
    rows = {"call_one_result": {}, "call_all_results": {}, "eager": {}, "trace": {}, "trace_and_compile": {}}
    for n in (1, 10, 100, 1000):
        x = [jnp.float32(i) for i in range(n)]

        @jax.jit
        def one(v):
            s = v[0] + 1
            for a in v[1:]:
                s = s + a
            return s

        @jax.jit
        def each(v):
            return [a + 1 for a in v]

        rows["call_one_result"][str(n)] = seconds_per_call(lambda: one(x), budget)
        rows["call_all_results"][str(n)] = seconds_per_call(lambda: each(x), budget)
    a, b, v, m = jnp.float32(1.5), jnp.float32(0.25), jnp.ones(8), jnp.ones((8, 8))
    for name, f in {"add_scalars": lambda: a + b, "add_literal": lambda: a + 1.0, "exp": lambda: jnp.exp(a),
                    "add_vectors": lambda: v + v, "sum": lambda: jnp.sum(v), "matmul": lambda: m @ m}.items():
        rows["eager"][name] = seconds_per_call(f, budget)

    def chain(x, n):
        for _ in range(n // 2):
            x = jnp.sin(x) * 1.01
        return x

    x = jnp.ones(16) * 0.5
    for n in counts:
        start = time.perf_counter()
        jax.eval_shape(lambda v: chain(v, n), x)
        rows["trace"][str(n)] = time.perf_counter() - start
        start = time.perf_counter()
        jax.block_until_ready(jax.jit(lambda v: chain(v, n))(x))
        rows["trace_and_compile"][str(n)] = time.perf_counter() - start
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--build", default=os.environ.get("XYLEM_BUILD_DIR", os.path.join(ROOT, "build")))
    args = parser.parse_args()
    command = [os.path.join(args.build, "benchmarks", "dispatch")] + (["--quick"] if args.quick else [])
    ours = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    theirs = peer(0.05 if args.quick else 0.4, (100, 1000) if args.quick else (100, 1000, 10000))
    print(f"{'':20}{'':14}{'Xylem, µs':>14}{'JAX, µs':>14}{'ratio':>8}")
    for name in ("call_one_result", "call_all_results", "eager", "trace", "trace_and_compile"):
        for key, value in ours[name].items():
            other = theirs[name].get(key)
            ratio = f"{14 * ' '}{8 * ' '}" if other is None else f"{other * 1e6:14.2f}{value / other:8.3f}"
            print(f"{name:20}{key:>14}{value * 1e6:14.2f}{ratio}")
    growth = ours["trace_and_compile"]
    for few, many in zip(list(growth), list(growth)[1:]):
        print(f"compile time of {many} ops over that of {few}: {growth[many] / growth[few]:.1f}")
    print("grad(scan): growth of its peak memory over 4 bytes × length × width: " +
          ", ".join(f"{n}: {r:.2f}" for n, r in ours["grad_scan_memory"].items()))
    print(json.dumps({"xylem": ours, "jax": theirs}))


if __name__ == "__main__":
    main()
