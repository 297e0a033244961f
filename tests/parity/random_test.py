"""Random programs beside the real stack: what Xylem's interpreter computes for a program that it drew, jaxlib's CPU client
computes from the written text.

XYLEM_RANDOM is the number of programs (default 2000), XYLEM_SEED the first seed. A program that differs is shrunk to a few
ops, and printed with its seed."""

import os
import pathlib
import subprocess

# Every op rounds to its own type.
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_allow_excess_precision=false"

import jax
import jax._src.interpreters.mlir as jax_mlir
import ml_dtypes
import numpy as np
import pytest
from jax._src import xla_bridge
from jax._src.lib import xla_client
from jaxlib.mlir import ir

COUNT = int(os.environ.get("XYLEM_RANDOM", "2000"))
SEED = int(os.environ.get("XYLEM_SEED", "7000000"))


def load(path):
    a = np.load(path)
    return a.view(ml_dtypes.bfloat16) if a.dtype == np.dtype("V2") else a


def arrays(stem, kind):
    out = []
    while (path := pathlib.Path(f"{stem}.{kind}{len(out)}.npy")).exists():
        out.append(load(path))
    return out


def theirs(stem):
    client = xla_bridge.get_backend("cpu")
    with jax_mlir.make_ir_context():
        module = ir.Module.parse(pathlib.Path(f"{stem}.mlir").read_text())
        executable = client.compile_and_load(module, xla_client.DeviceList(tuple(client.local_devices()[:1])), xla_client.CompileOptions())
    results = executable.execute_sharded([jax.device_put(x) for x in arrays(stem, "in")])
    return [np.asarray(r[0]) for r in results.disassemble_into_single_device_arrays()]


def parts(a):
    """Real numbers, wide enough to compare; whole numbers as they are."""
    if a.dtype.kind == "c":
        a = np.stack([a.real, a.imag])
    return a if a.dtype.kind in "biu" else a.astype(np.float64)


def differs(ours, other, exact):
    """What is wrong with the first result that is, or None. XLA contracts products and sums and keeps no sign of zero in
    extremes, so floats agree within a few roundings of their type."""
    if len(ours) != len(other):
        return f"{len(ours)} results, jaxlib has {len(other)}"
    for k, (a, b) in enumerate(zip(ours, other)):
        if a.dtype != b.dtype or a.shape != b.shape:
            return f"result {k}: {a.dtype}{a.shape}, jaxlib has {b.dtype}{b.shape}"
        x, y = parts(a), parts(b)
        if x.dtype != np.float64:
            if not np.array_equal(x, y):
                at = np.flatnonzero((x != y).ravel())[0]
                return f"result {k}: element {at} is {x.ravel()[at]}, jaxlib has {y.ravel()[at]}"
            continue
        bits = ml_dtypes.finfo(a.dtype).nmant if a.dtype.kind != "c" else np.finfo(a.dtype).nmant
        tolerance = 2.0 ** -(bits - 3) if exact else 1e-3
        with np.errstate(all="ignore"):
            good = (x == y) | (np.isnan(x) & np.isnan(y)) | (np.abs(x - y) <= tolerance * np.maximum(np.abs(x), 1))
        if not good.all():
            at = np.flatnonzero(~good.ravel())[0]
            return f"result {k}: element {at} is {x.ravel()[at]!r}, jaxlib has {y.ravel()[at]!r} ({a.dtype})"
    return None


def shrunk(tool, folder, seed, mode):
    process = subprocess.Popen([tool, "shrink", folder, str(seed), mode], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        if line != "TRY\n":
            break
        stem = folder / "try"
        try:
            bad = differs(arrays(stem, "out"), theirs(stem), mode == "exact") is not None
        except Exception:
            bad = False
        for path in folder.glob("try.*.npy"):
            path.unlink()
        process.stdin.write("fails\n" if bad else "agrees\n")
        process.stdin.flush()
    text = process.stdout.read()
    process.wait()
    return text


@pytest.mark.parametrize("mode", ["exact", "close"])
def test_jaxlib_computes_what_the_interpreter_computes(mode, tool, tmp_path):
    first, count = (SEED, COUNT * 3 // 4) if mode == "exact" else (SEED + 10**6, COUNT // 4)
    print(f"seeds {first} to {first + count - 1}, {mode}")
    program = tool("random")
    done = subprocess.run([program, "draw", tmp_path, str(first), str(count), mode], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    stems = sorted({p.name.split(".")[0] for p in tmp_path.glob("*.mlir")})
    assert len(stems) > count // 2
    failures = []
    with jax.enable_x64(True):
        for name in stems:
            stem = tmp_path / name
            try:
                why = differs(arrays(stem, "out"), theirs(stem), mode == "exact")
            except Exception as e:
                why = f"jaxlib refuses: {str(e)[:400]}"
            if why:
                failures.append(f"seed {name}: {why}\n{shrunk(program, tmp_path, int(name), mode)}")
            if len(failures) == 5:
                break
    assert not failures, "\n".join(failures)
