#!/usr/bin/env python3
"""Runs the demo's twin in its four forms, {unrolled, scan} x {default, tuned allocator}.

    run_four.py [--steps N] [--rounds R] [--init FILE] [--batches FILE] [--out FILE] [gpt_twin.py's key=value ...]

Each form is a process of its own; the forms are visited in turn, R times, and the best round of each
counts, so that a disturbance of the machine does not fall on one form alone. Prints one JSON object:
`table` (a row per form) and `best` (the form with the smallest median step).
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TUNED = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "68719476736", "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
COLUMNS = ("step_seconds_median", "step_seconds_min", "trace_seconds", "lower_seconds", "compile_seconds",
           "trace_to_executable_seconds", "start_to_first_step_seconds", "peak_rss_mb")


def run(variant, tuned, arguments):
    env = {k: v for k, v in os.environ.items() if k not in TUNED} | (TUNED if tuned else {})
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        subprocess.run([sys.executable, os.path.join(HERE, "gpt_twin.py"), "--variant", variant, "--json", out.name, *arguments],
                       check=True, env=env, stdout=sys.stderr)
        return json.load(open(out.name))


def four(arguments, rounds=1):
    rows = {}
    for _ in range(rounds):
        for variant in ("unrolled", "scan"):
            for tuned in (False, True):
                result = run(variant, tuned, arguments)
                row = rows.setdefault((variant, tuned), {"variant": variant, "allocator": "tuned" if tuned else "default"})
                for column in COLUMNS:
                    row[column] = min(row.get(column, float("inf")), round(result[column], 5))
                row["last_loss"] = result["losses"][-1]
    table = list(rows.values())
    best = min(table, key=lambda row: row["step_seconds_median"])
    return {"peer": "jax", "version": result["version"], "threads": result["threads"], "batch": result["batch"],
            "parameters": result["parameters"], "steps": result["steps"], "rounds": rounds, "table": table,
            "best": {k: best[k] for k in ("variant", "allocator", "step_seconds_median")}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--config")
    parser.add_argument("--init")
    parser.add_argument("--batches")
    parser.add_argument("--out", help="write the JSON here as well")
    parser.add_argument("overrides", nargs="*", metavar="key=value")
    args = parser.parse_args()
    arguments = ["--steps", str(args.steps)]
    for name in ("config", "init", "batches"):
        if getattr(args, name):
            arguments += [f"--{name}", getattr(args, name)]
    result = four(arguments + args.overrides, args.rounds)
    text = json.dumps(result, indent=1)
    print(text)
    if args.out:
        with open(args.out, "w") as f:
            f.write(text + "\n")


if __name__ == "__main__":
    main()
