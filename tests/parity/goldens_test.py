"""The recorded goldens are what the installed libraries say today."""

import os
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
import twin_arrays as arrays

# File -> (script, tolerance of f32 and narrower, tolerance of f64): relative to an array's largest entry. The compiler
# behind JAX may order sums otherwise on another processor.
FILES = {
    "core_indexing.json": ("make_core_indexing.py", 1e-6, 1e-13),
    "core_functions.json": ("make_core_functions.py", 1e-5, 1e-13),
    "core_transforms.json": ("make_core_transforms.py", 1e-5, 1e-13),
    "core_linalg.json": ("make_core_linalg.py", 1e-5, 1e-13),
    "core_matrices.json": ("make_core_matrices.py", 1e-5, 1e-8),  # LAPACKs of other processors round otherwise
    "random.json": ("make_random.py", 1e-6, 1e-14),
    "optax.json": ("make_optax.py", 1e-6, 1e-13),
    "flax.json": ("make_flax.py", 1e-5, 1e-13),
    "examples.json": ("make_examples.py", 1e-5, 1e-6),
    "gpt_tiny.json": ("make_gpt.py", 1e-3, 1e-10),
}


def same(got, want, tolerance, path=""):
    if arrays.is_array(want):
        assert got["dtype"] == want["dtype"] and got["shape"] == want["shape"], path
        a, b = arrays.decode(got), arrays.decode(want)
        if b.dtype.kind in "iub":
            assert np.array_equal(a, b), path
        else:
            arrays.assert_close(a, b, tolerance[b.dtype.itemsize >= 8], path)
    elif isinstance(want, dict):
        assert list(got) == list(want), path
        for key in want:
            same(got[key], want[key], tolerance, f"{path}/{key}")
    elif isinstance(want, list):
        assert len(got) == len(want), path
        for i, (a, b) in enumerate(zip(got, want)):
            same(a, b, tolerance, f"{path}[{i}]")
    else:
        assert got == want, path


@pytest.mark.parametrize("name", FILES)
def test_reproduces(name, tmp_path):
    script, *tolerance = FILES[name]
    done = subprocess.run([sys.executable, str(arrays.GOLDENS / script)], capture_output=True, text=True,
                          env={**os.environ, "XYLEM_GOLDENS_OUT": str(tmp_path)})
    assert done.returncode == 0, done.stderr[-4000:]
    import json
    same(json.loads((tmp_path / name).read_text()), arrays.golden(name), tolerance)


def intervals(table, width):
    first = np.array([int(table["first"][i:i + width], 16) for i in range(0, len(table["first"]), width)], np.uint64)
    code = np.frombuffer(bytes.fromhex(table["code"]), np.uint8)
    return first, code


@pytest.mark.parametrize("name", arrays.golden("dtypes_narrow.json")["floats"])
def test_narrow_intervals(name):
    """At and beside each boundary, and on every value that has the upper half of an f32 (all of bf16)."""
    entry = arrays.golden("dtypes_narrow.json")["floats"][name]
    dtype = getattr(ml_dtypes, "float" + name[1:].lower().replace("e", "_e", 1))
    for sign, side in ((0, "positive"), (1 << 31, "negative")):
        first, code = intervals(entry["from_f32"][side], 8)
        bits = np.concatenate([first, first[1:] - 1, np.arange(0, 0x7F81, dtype=np.uint64) << 16])
        want = code[np.searchsorted(first, bits, "right") - 1]
        with np.errstate(all="ignore"):
            got = (bits.astype(np.uint32) | np.uint32(sign)).view(np.float32).astype(dtype).view(np.uint8)
        assert np.array_equal(got, want)


@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_half_cases(name):
    entry = arrays.golden("dtypes_half.json")["types"][name]
    dtype = np.float16 if name == "f16" else ml_dtypes.bfloat16
    words = lambda text, width: np.frombuffer(bytes.fromhex(text), f">u{width}").astype(f"u{width}")
    with np.errstate(all="ignore"):
        got = words(entry["from_f32"]["input"], 4).view(np.float32).astype(dtype).view(np.uint16)
    assert np.array_equal(got, words(entry["from_f32"]["code"], 2))
    value = words(entry["to_f32"]["code"], 2).view(dtype).astype(np.float32)
    assert np.array_equal(value.view(np.uint32), words(entry["to_f32"]["value"], 4))
