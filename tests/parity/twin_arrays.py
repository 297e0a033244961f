"""Arrays of the golden files, and comparisons that say where and by how much two arrays differ."""

import json
import pathlib

import ml_dtypes  # noqa: F401  (registers bfloat16 and the rest with NumPy)
import numpy as np

GOLDENS = pathlib.Path(__file__).resolve().parents[1] / "goldens"

DTYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16, "i1": np.bool_,
          "complex<f32>": np.complex64, "complex<f64>": np.complex128,
          **{f"i{w}": getattr(np, f"int{w}") for w in (8, 16, 32, 64)},
          **{f"ui{w}": getattr(np, f"uint{w}") for w in (8, 16, 32, 64)}}


def golden(name):
    return json.loads((GOLDENS / name).read_text())


def is_array(node):
    return isinstance(node, dict) and "dtype" in node and ("hex" in node or "values" in node)


def decode(node):
    """A NumPy array from its golden form."""
    dtype = np.dtype(DTYPES[node["dtype"]])
    if "values" in node:
        return np.array(node["values"], dtype).reshape(node["shape"])
    width = dtype.itemsize // (2 if dtype.kind == "c" else 1)
    words = np.frombuffer(bytes.fromhex(node["hex"]), f">u{width}").astype(f"u{width}")
    return words.view(dtype).reshape(node["shape"])


def ulps(got, want):
    """Distance in units in the last place, elementwise, as integers; NaN is at distance 0 from NaN."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype and got.shape == want.shape, (got.dtype, got.shape, want.dtype, want.shape)
    bits = 8 * got.dtype.itemsize

    def order(x):                                            # monotone: -0 and +0 fall together
        i = x.view(f"i{x.dtype.itemsize}").astype(object)
        return np.where(i < 0, -(i + (1 << bits - 1)), i)

    distance = abs(order(np.atleast_1d(got)) - order(np.atleast_1d(want)))
    both_nan = np.isnan(np.atleast_1d(got)) & np.isnan(np.atleast_1d(want))
    return np.where(both_nan, 0, distance).reshape(got.shape)


def assert_ulps(got, want, limit, what=""):
    distance = ulps(got, want)
    if distance.size and distance.max() > limit:
        at = np.unravel_index(distance.argmax(), distance.shape)
        raise AssertionError(f"{what}: {distance.max()} ulp apart at {list(map(int, at))}: got {got[at]!r}, "
                             f"wanted {want[at]!r} (limit {limit})")


def assert_close(got, want, relative, what=""):
    """Every element within `relative` of the largest magnitude of `want`; infinities and NaN in the same places."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, f"{what}: shape {got.shape}, wanted {want.shape}"
    wide = np.complex128 if np.iscomplexobj(want) else np.float64
    got, want = got.astype(wide), want.astype(wide)
    finite = np.isfinite(want)
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    assert np.all(finite | same), f"{what}: infinities or NaN in other places"
    if not finite.any():
        return
    scale = np.abs(want[finite]).max()
    error = np.where(finite, np.abs(np.where(finite, got, 0) - np.where(finite, want, 0)), 0)
    if not error.max() <= relative * scale:
        at = np.unravel_index(np.nanargmax(error), error.shape)
        raise AssertionError(f"{what}: off by {error[at]:.3g} at {list(map(int, at))}: got {got[at]!r}, wanted {want[at]!r} "
                             f"(limit {relative:g} of {scale:.3g})")
