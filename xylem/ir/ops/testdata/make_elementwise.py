"""Records what JAX gives for elementwise ops, for golden_test.cc.

Run:  python make_elementwise.py > elementwise.txt     (JAX 0.10.2, CPU)

Each line: op, operand dtype, then the operands and the result as hex of their little-endian bytes.
"""
import sys

import jax
import ml_dtypes
import numpy as np

jax.config.update("jax_enable_x64", True)
from jax import lax  # noqa: E402

UNARY = {
    "stablehlo.exponential": lax.exp, "stablehlo.exponential_minus_one": lax.expm1,
    "stablehlo.log": lax.log, "stablehlo.log_plus_one": lax.log1p,
    "stablehlo.logistic": lax.logistic, "stablehlo.tanh": lax.tanh, "stablehlo.sine": lax.sin,
    "stablehlo.cosine": lax.cos, "stablehlo.tan": lax.tan, "stablehlo.cbrt": lax.cbrt,
    "stablehlo.sqrt": lax.sqrt, "stablehlo.rsqrt": lax.rsqrt, "chlo.square": lax.square,
    "chlo.erf": lax.erf, "chlo.erfc": lax.erfc, "chlo.erf_inv": lax.erf_inv,
    "chlo.asin": lax.asin, "chlo.acos": lax.acos, "chlo.atan": lax.atan, "chlo.sinh": lax.sinh,
    "chlo.cosh": lax.cosh, "chlo.asinh": lax.asinh, "chlo.acosh": lax.acosh,
    "chlo.atanh": lax.atanh, "stablehlo.sign": lax.sign, "stablehlo.abs": lax.abs,
    "stablehlo.floor": lax.floor, "stablehlo.ceil": lax.ceil, "stablehlo.negate": lax.neg,
    "stablehlo.is_finite": lax.is_finite,
}
REAL_ONLY = {"chlo.erf", "chlo.erfc", "chlo.erf_inv", "stablehlo.floor", "stablehlo.ceil",
             "stablehlo.is_finite", "stablehlo.cbrt"}
BINARY = {
    "stablehlo.add": lax.add, "stablehlo.subtract": lax.sub, "stablehlo.multiply": lax.mul,
    "stablehlo.divide": lax.div, "stablehlo.remainder": lax.rem, "stablehlo.maximum": lax.max,
    "stablehlo.minimum": lax.min, "stablehlo.power": lax.pow, "stablehlo.atan2": lax.atan2,
    "chlo.next_after": lax.nextafter,
    "stablehlo.and": lax.bitwise_and, "stablehlo.shift_left": lax.shift_left,
    "stablehlo.shift_right_logical": lax.shift_right_logical,
    "stablehlo.shift_right_arithmetic": lax.shift_right_arithmetic,
}
FLOAT_BINARY = list(BINARY)[:10]
INT_BINARY = [n for n in BINARY
              if n not in ("stablehlo.atan2", "stablehlo.power", "chlo.next_after")]
NAMES = {"float32": "f32", "float64": "f64", "bfloat16": "bf16", "float16": "f16",
         "complex64": "c64", "int32": "i32", "int8": "i8", "uint32": "ui32", "uint8": "ui8"}

X = [0.0, -0.0, 1e-30, 1e-8, 1e-3, 0.1, 0.5, 0.9, 0.999, 1.0, 1.001, 1.5, 2.0, 2.5, 3.0, 5.0, 7.5,
     10.0, 25.0, 88.0, 1e4, 1e10, 1e30, -1e-8, -0.01, -0.25, -0.5, -0.75, -0.999, -1.0, -1.5, -2.0,
     -2.5, -5.0, -17.0, -40.0, -104.0, -1e10, np.inf, -np.inf, np.nan]
A = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.0, 3.0, -8.0, 5.5, -5.5, 1e30, np.inf, -np.inf, np.nan, 7.0]
B = [0.0, 0.0, -0.0, 2.0, -3.0, 0.5, 3.0, -2.0, 1 / 3, 2.0, -2.0, 2.0, 1.0, np.inf, 1.0, np.nan]
I = [0, 1, -1, 2, -2, 7, -7, 100, -100, 127, -128, 5, 3, 31, -5]
J = [0, 0, 0, 3, -3, -2, 2, 7, 31, -1, -1, 40, -1, 1, 4]
Z = [(0, 0), (1, 0), (-1, 0), (0, 1), (0.5, -0.25), (1e-6, 1e-6), (-2, 3), (10, -4), (30, 2),
     (-0.75, 0.5), (3, 4)]


def text(x):
    return np.ascontiguousarray(x).tobytes().hex()


def emit(op, f, *xs):
    y = np.asarray(f(*xs))
    print(op, NAMES[xs[0].dtype.name], *[text(x) for x in xs], text(y))


def main():
    print(f"# JAX {jax.__version__}, NumPy {np.__version__}, CPU; made by make_elementwise.py")
    with np.errstate(all="ignore"):
        for dtype in (np.float32, np.float64, ml_dtypes.bfloat16, np.float16):
            for op, f in UNARY.items():
                emit(op, f, np.array(X).astype(dtype))
            for op in FLOAT_BINARY:
                emit(op, BINARY[op], np.array(A).astype(dtype), np.array(B).astype(dtype))
        z = np.array([complex(*p) for p in Z], np.complex64)
        for op, f in UNARY.items():
            if op not in REAL_ONLY:
                emit(op, f, z)
        for op in ("stablehlo.add", "stablehlo.multiply", "stablehlo.divide"):
            emit(op, BINARY[op], z[1:], z[1:][::-1])
        for dtype in (np.int32, np.int8, np.uint32, np.uint8):
            for op in INT_BINARY:
                emit(op, BINARY[op], np.array(I).astype(dtype), np.array(J).astype(dtype))


if __name__ == "__main__":
    sys.exit(main())
