"""Encoding shared by the golden makers.

An array is {"dtype", "shape", and one of
  "hex":    one string, fixed width per element (two digits per byte, most significant byte
            first), row-major; complex as real then imaginary      floats and complex
  "values": list of integers (booleans as 0 and 1, keys as their ui32 words)  everything else
}. Element types are named as in StableHLO.
"""
import importlib.metadata
import json
import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault(
    "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))

SHLO = {"float16": "f16", "float32": "f32", "float64": "f64", "bfloat16": "bf16", "bool": "i1",
        "complex64": "complex<f32>", "complex128": "complex<f64>"}
for _w in (2, 4, 8, 16, 32, 64):
    SHLO[f"int{_w}"] = f"i{_w}"
    SHLO[f"uint{_w}"] = f"ui{_w}"


def hexed(a):
    """The elements of a float or complex array as one hex string."""
    a = np.ascontiguousarray(a)
    return a.astype(a.dtype.newbyteorder(">")).tobytes().hex() if a.dtype.kind in "fc" \
        else a.view(f"u{a.itemsize}").astype(f">u{a.itemsize}").tobytes().hex()


def array(x):
    import jax
    if isinstance(x, jax.Array) and jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
        x = jax.random.key_data(x)
    a = np.asarray(x)
    out = {"dtype": SHLO[a.dtype.name], "shape": list(a.shape)}
    if a.dtype == np.bool_ or a.dtype.name.startswith(("int", "uint")):
        out["values"] = [int(v) for v in a.ravel()]
    else:
        out["hex"] = hexed(a)
    return out


def origin(*packages):
    return " / ".join(f"{p} {importlib.metadata.version(p)}" for p in packages)


def dump(obj, name, depth=3):
    """Write JSON: one line per entry down to the given depth, the rest compact."""
    def enc(o, d):
        pad = " " * (d + 1)
        if d < depth and isinstance(o, dict) and o and not {"hex", "values"} & set(o):
            return "{\n" + ",\n".join(
                f"{pad}{json.dumps(k)}: {enc(v, d + 1)}" for k, v in o.items()) + "\n" + pad[1:] + "}"
        if d < depth and isinstance(o, list) and o and isinstance(o[0], (dict, list)):
            return "[\n" + ",\n".join(f"{pad}{enc(v, d + 1)}" for v in o) + "\n" + pad[1:] + "]"
        return json.dumps(o, separators=(",", ":"))

    text = enc(obj, 0) + "\n"
    json.loads(text)
    assert len(text) < 300_000, (name, len(text))
    with open(os.path.join(os.environ.get("XYLEM_GOLDENS_OUT", HERE), name), "w") as f:
        f.write(text)
    print(f"{name}: {len(text)} bytes")
