#!/usr/bin/env python3
"""The demo's training step beside its JAX twin, in one run.

    train.py [--steps N] [--rounds R] [--config FILE]

Runs benchmarks/train_step and the four forms of benchmarks/jax_twin in turn, prints both and the ratios
(ours / the best of the four; below 1 is faster or smaller).
"""
import argparse
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(HERE, "jax_twin"))

COLUMNS = ("step_seconds_median", "step_seconds_min", "trace_to_executable_seconds",
           "start_to_first_step_seconds", "peak_rss_mb")


def ours(build, config, steps):
    program = os.path.join(build, "benchmarks", "train_step")
    out = subprocess.run([program, config, "--steps", str(steps)], check=True, capture_output=True, text=True)
    return json.loads(out.stdout)


def main():
    import run_four
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--config", default=os.path.join(ROOT, "configs", "demo.yaml"))
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    args = parser.parse_args()
    best = {}
    rows = []
    for _ in range(args.rounds):
        row = ours(args.build, args.config, args.steps)
        rows.append(row)
        peers = run_four.four(["--steps", str(args.steps), "--config", args.config], 1)
        for peer in peers["table"]:
            for column in COLUMNS:
                best[column] = min(best.get(column, float("inf")), peer[column])
    us = {column: min(row[column] for row in rows) for column in COLUMNS}
    print(f"{'':32}{'xylem':>12}{'best twin':>12}{'ratio':>8}")
    for column in COLUMNS:
        print(f"{column:32}{us[column]:12.4f}{best[column]:12.4f}{us[column] / best[column]:8.2f}")
    print(json.dumps({"xylem": us, "jax": best, "rounds": args.rounds, "steps": args.steps}))


if __name__ == "__main__":
    main()
