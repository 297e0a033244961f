"""Writes npy.json: arrays as NumPy saves them.

Run with the parity environment's Python. Each case is {"name", "dtype", "raw", "shape", "hex", "file"}:
"hex" holds the elements (little-endian, row-major), "file" the bytes of the .npy file; "raw" says that
the file does not name the type, "exact" that writing the array gives the same file.
"""
import io
import json
import os

import ml_dtypes
import numpy as np

cases = []


def add(name, a, exact=True, version=None):
    f = io.BytesIO()
    np.lib.format.write_array(f, a, version=version)
    little = np.ascontiguousarray(a).astype(a.dtype.newbyteorder("<")) if a.dtype.kind not in "V" else a
    cases.append({"name": name, "dtype": a.dtype.newbyteorder("=").name if a.dtype.kind != "V" else a.dtype.name,
                  "raw": a.dtype.kind == "V", "exact": exact, "shape": list(a.shape),
                  "hex": little.tobytes().hex(), "file": f.getvalue().hex()})


for t in ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
          "float64", "complex64", "complex128"):
    add(t, np.arange(6).reshape(2, 3).astype(t))
for t in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "int4", "uint4"):
    # NumPy writes "<f1" for float8_e5m2, which it cannot read back.
    add(t, np.array([0, 1, 2, 3], np.float32).astype(getattr(ml_dtypes, t)), exact=t != "float8_e5m2")
add("scalar", np.array(2.5))
add("empty", np.zeros((0, 3), np.float32))
add("one axis", np.arange(100, dtype=np.int32))
add("six axes", np.arange(64, dtype=np.uint8).reshape(2, 2, 2, 2, 2, 2))
add("big-endian", np.arange(4, dtype=">i4"), exact=False)
add("big-endian complex", (np.arange(3) + 1j).astype(">c16"), exact=False)
add("Fortran order", np.asfortranarray(np.arange(24, dtype=np.float32).reshape(2, 3, 4)), exact=False)
add("version 2", np.arange(3.0), exact=False, version=(2, 0))
add("version 3", np.arange(3.0), exact=False, version=(3, 0))

here = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(here, "npy.json"), "w") as f:
    f.write('{"origin": "numpy %s, ml_dtypes %s", "made_by": "make_npy.py", "cases": [\n' %
            (np.__version__, ml_dtypes.__version__))
    f.write(",\n".join(json.dumps(c) for c in cases))
    f.write("\n]}\n")
print(len(cases), "cases")
