#!/usr/bin/env python3
"""Save and restore 496 MB in 150 f32 arrays: Xylem beside Orbax, safetensors and raw writes. Medians, in one run.

    checkpoint.py [--repeats N] [--dir FOLDER]
"""

import argparse
import collections
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("XYLEM_BUILD_DIR", ROOT / "build"))
PROGRAM = BUILD / "benchmarks" / "checkpoint_tree"

PEERS = r"""
import os, shutil, sys, time, json, logging
os.environ["JAX_PLATFORMS"] = "cpu"
import absl.logging; absl.logging.set_verbosity(absl.logging.FATAL); logging.disable(logging.WARNING)
import jax, jax.numpy as jnp, numpy as np, orbax.checkpoint as ocp, safetensors.numpy
folder, repeats = sys.argv[1], int(sys.argv[2])
def emit(name, value): print(json.dumps({"name": name, "value": value}), flush=True)
arrays, n = 150, (500 << 20) // 150 // 4 // 256 * 256
base = np.random.default_rng(0).standard_normal(n, np.float32)
tree = {f"layer{i // 6}": {} for i in range(arrays)}
for i in range(arrays): tree[f"layer{i // 6}"][f"w{i % 6}"] = jnp.asarray(np.roll(base, i).reshape(-1, 256))
jax.block_until_ready(tree)
flat = {f"{k}.{j}": np.asarray(v) for k, s in tree.items() for j, v in s.items()}
blob = np.concatenate([a.reshape(-1) for a in flat.values()])
for r in range(repeats):
    path = os.path.join(folder, "raw"); start = time.perf_counter()
    with open(path, "wb", buffering=0) as out:
        view = memoryview(blob).cast("B")
        for i in range(0, len(view), 8 << 20): out.write(view[i:i + (8 << 20)])
        os.fdatasync(out.fileno())
    emit("raw write with fdatasync", time.perf_counter() - start); os.remove(path)
del blob
abstract = jax.tree.map(ocp.utils.to_shape_dtype_struct, tree)
for r in range(repeats):
    for ocdbt in (True, False):
        tail = "" if ocdbt else " without ocdbt"
        path = os.path.join(folder, f"s{r}"); shutil.rmtree(path, ignore_errors=True)
        with ocp.Checkpointer(ocp.PyTreeCheckpointHandler(use_ocdbt=ocdbt)) as c:
            start = time.perf_counter(); c.save(path, tree); emit("orbax save" + tail, time.perf_counter() - start)
            start = time.perf_counter(); back = c.restore(path, item=abstract); jax.block_until_ready(back)
            emit("orbax restore" + tail, time.perf_counter() - start); del back
        shutil.rmtree(path)
    path = os.path.join(folder, f"a{r}")
    with ocp.AsyncCheckpointer(ocp.PyTreeCheckpointHandler()) as c:
        start = time.perf_counter(); c.save(path, tree); emit("orbax async stall", time.perf_counter() - start); c.wait_until_finished()
    shutil.rmtree(path)
    path = os.path.join(folder, "t.safetensors"); start = time.perf_counter(); safetensors.numpy.save_file(flat, path)
    emit("safetensors save", time.perf_counter() - start)
    start = time.perf_counter(); loaded = {k: jnp.asarray(v) for k, v in safetensors.numpy.load_file(path).items()}
    jax.block_until_ready(loaded); emit("safetensors load", time.perf_counter() - start); del loaded; os.remove(path)
"""

# What is compared with what.
RATIOS = [("save", "raw write with fdatasync"), ("save", "orbax save"), ("save without ocdbt", "orbax save without ocdbt"),
          ("save", "safetensors save"), ("async stall", "orbax async stall"), ("restore", "orbax restore"),
          ("restore without ocdbt", "orbax restore without ocdbt"), ("restore", "safetensors load")]


def samples(command, into):
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True)
    for line in done.stdout.splitlines():
        record = json.loads(line)
        into[record["name"]].append(record["value"])
    os.sync()
    time.sleep(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--dir", default=None)
    options = parser.parse_args()
    if not PROGRAM.exists():
        sys.exit(f"{PROGRAM} does not exist: ./x build benchmarks")
    python = os.environ.get("XYLEM_PYTHON", ROOT / "build" / "venv" / "bin" / "python")
    folder = tempfile.mkdtemp(prefix="checkpoint-bench", dir=options.dir)
    found = collections.defaultdict(list)
    try:
        for _ in range(options.repeats):
            samples([PROGRAM, folder, 1], found)
            samples([python, "-c", PEERS, folder, 1], found)
    finally:
        shutil.rmtree(folder)
    for name, values in found.items():
        print(f"{name:32} {statistics.median(values):10.4f}   ({min(values):.4f} to {max(values):.4f})")
    print()
    for ours, peer in RATIOS:
        print(f"{ours} / {peer}: {statistics.median(found[ours]) / statistics.median(found[peer]):.2f}")


if __name__ == "__main__":
    main()
