"""Writes print.json: arrays and the text that NumPy prints for them.

Run with the parity environment's Python. Each case is {"dtype", "shape", "hex", "text"}; "hex" holds
the bytes of the elements, little-endian, row-major.
"""
import json
import os
import warnings

import ml_dtypes
import numpy as np

warnings.simplefilter("ignore")
np.seterr(all="ignore")
random = np.random.default_rng(0)
cases = []


def add(a):
    a = np.asarray(a)
    cases.append({"dtype": a.dtype.name, "shape": list(a.shape), "hex": a.tobytes().hex(), "text": str(a)})


inf, nan = np.inf, np.nan
for t in (np.float16, np.float32, np.float64):
    for v in (0, -0.0, 1, 1.5, 1e-4, 9e-5, 999.5, 1000, 123456, 999999, 1e6, 1e8, 1e15, 1e16, 1e17, 0.1, 1 / 3, 2**-6,
              65504, inf, -inf, nan, 1e-40, 3.4e38, 5e-324):
        add(np.array(v, t))
    for row in ([1, 2, 3], [[1, 2], [3, 4.5]], [0.1, -0.25, 100], [1e-5, 1], [1e-5, 1.2345678e10], [nan, 1, -2.5],
                [inf, 1], [-inf, 1], [nan], [inf], [0, 0], [-0.0, 0.5], [1e10, 2e10], [123456, 1000], [1 / 3, 2 / 3]):
        add(np.array(row, t))
    add(random.normal(size=(3, 4)).astype(t))
    add(random.normal(size=(2, 30)).astype(t))
for t in (np.complex64, np.complex128):
    for v in (1 + 2j, 2j, -0.5j, complex(-0.0, 1), complex(nan, inf), 1e20 - 1e-20j, 0, 1.5):
        add(np.array(v, t))
    add(np.array([[1 + 2j, 3], [0, -1j]], t))
    add(np.array([complex(nan, 1), complex(1, inf), 0.25 - 100j], t))
    add((random.normal(size=6) + 1j * random.normal(size=6)).astype(t))
for t in (np.int8, np.int64, np.uint8, np.uint64):
    add(np.array(7, t))
    add(np.array([[1, 20], [127, 0]], t))
add(np.array([np.iinfo(np.int64).min, 0]))
add(np.array([np.iinfo(np.uint64).max, 0], np.uint64))
add(np.array(True))
add(np.array([[True, False], [False, True]]))
for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "float8_e8m0fnu"):
    add(np.array([[1, 0.3], [100, 1e-3]], getattr(ml_dtypes, name)))
    add(np.array(2, getattr(ml_dtypes, name)))
add(np.array([nan, inf, -inf, 0, -0.0, 3e38, 1e-40], ml_dtypes.bfloat16))
for name in ("int4", "uint4", "int2"):
    add(np.array([[1, 0], [-1, 7]], np.int32).astype(getattr(ml_dtypes, name)))
for shape in ((0,), (2, 0, 3), (1, 1, 1), (2, 2, 2), (2, 1, 3, 2), (60,), (3, 26)):
    add(np.arange(int(np.prod(shape))).reshape(shape))
for shape in ((1000,), (1001,), (40, 40), (5, 300), (300, 5), (7, 7, 30)):
    add((np.arange(int(np.prod(shape))) % 120).astype(np.int8).reshape(shape))
add((np.arange(1100) / 8).astype(np.float16))

here = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(here, "print.json"), "w") as f:
    f.write('{"origin": "numpy %s, ml_dtypes %s", "made_by": "make_print.py", "cases": [\n' %
            (np.__version__, ml_dtypes.__version__))
    f.write(",\n".join(json.dumps(c) for c in cases))
    f.write("\n]}\n")
print(len(cases), "cases")
