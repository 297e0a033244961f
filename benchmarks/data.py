#!/usr/bin/env python3
"""Data pipelines beside Grain, and beside torch's DataLoader where torch is installed, in one run.

    data.py [--build DIR] [--folder DIR]     DIR for the file of 200,000 records of 1 KB

Prints both and the ratios (ours / the peer's; above 1 is faster, but for seconds).
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent


def cases(command):
    """{case: object} of a program that prints one object a line."""
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {c["case"]: c for c in map(json.loads, out.splitlines()) if c}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=str(ROOT / "build"))
    parser.add_argument("--folder", default=os.path.join(tempfile.gettempdir(), "xylem-data-bench"))
    args = parser.parse_args()
    os.makedirs(args.folder, exist_ok=True)
    records = os.path.join(args.folder, "records-200k-1k.array_record")
    python = os.environ.get("XYLEM_PYTHON", str(ROOT / "build" / "venv" / "bin" / "python"))
    peers = {"grain": cases([python, HERE / "data_peers" / "grain_pipeline.py", "--records", records])}
    torch = os.environ.get("XYLEM_BENCH_PYTHON", str(ROOT / "build" / "venv-bench" / "bin" / "python"))
    if os.path.exists(torch):
        peers["torch"] = cases([torch, HERE / "data_peers" / "torch_loader.py"])
    ours = cases([os.path.join(args.build, "benchmarks", "data_pipeline"), "--records", records])
    print(f"{'':62}{'xylem':>11}{'first s':>10}" + "".join(f"{p:>11}{'ratio':>9}" for p in peers))
    for name, case in ours.items():
        row = f"{name + ', ' + case['unit']:62}{case['value']:11.3g}"
        row += f"{case['first_batch_s']:10.2g}" if "first_batch_s" in case else f"{'':10}"
        for peer in peers.values():
            theirs = peer.get(name)
            row += f"{theirs['value']:11.3g}{case['value'] / theirs['value']:9.3g}" if theirs else f"{'':20}"
        print(row)
    print(json.dumps({"xylem": ours, **peers}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
