"""Writes dtypes_narrow.json and dtypes_half.json: conversions of StableHLO's narrow types.

Values come from ml_dtypes (f16: NumPy). ml_dtypes converts f64 to a narrow type through f32 and
so rounds twice; the f64 entries here are rounded once (f64 to f32 by rounding to odd, which
loses nothing that the second rounding needs). `--verify` compares every table of
dtypes_narrow.json with ml_dtypes on all 2^32 f32 inputs (minutes).
"""
import sys

import golden_io as io
import ml_dtypes
import numpy as np

NARROW = {
    "f4E2M1FN": (4, ml_dtypes.float4_e2m1fn), "f6E2M3FN": (6, ml_dtypes.float6_e2m3fn),
    "f6E3M2FN": (6, ml_dtypes.float6_e3m2fn), "f8E3M4": (8, ml_dtypes.float8_e3m4),
    "f8E4M3": (8, ml_dtypes.float8_e4m3), "f8E4M3FN": (8, ml_dtypes.float8_e4m3fn),
    "f8E4M3FNUZ": (8, ml_dtypes.float8_e4m3fnuz), "f8E4M3B11FNUZ": (8, ml_dtypes.float8_e4m3b11fnuz),
    "f8E5M2": (8, ml_dtypes.float8_e5m2), "f8E5M2FNUZ": (8, ml_dtypes.float8_e5m2fnuz),
    "f8E8M0FNU": (8, ml_dtypes.float8_e8m0fnu),
}
INTS = {"i2": (2, ml_dtypes.int2), "i4": (4, ml_dtypes.int4),
        "ui2": (2, ml_dtypes.uint2), "ui4": (4, ml_dtypes.uint4)}
INF32 = 0x7F800000
INF64 = 0x7FF0000000000000


def f32(bits):
    return np.asarray(bits, np.uint32).view(np.float32)


def f64(bits):
    return np.asarray(bits, np.uint64).view(np.float64)


def to_odd(x):
    """f64 to f32, rounded to odd: truncated, then the last bit set if anything was lost."""
    with np.errstate(all="ignore"):
        y = x.astype(np.float32)
        over = np.isinf(y) & np.isfinite(x)
        y = np.where(over, np.copysign(np.float32(3.4028235e38), y), y)
        bits = y.view(np.uint32)
        away = np.abs(y.astype(np.float64)) > np.abs(x)      # rounded away from zero: step back
        bits = bits - away.astype(np.uint32)
        inexact = (bits.view(np.float32).astype(np.float64) != x) & ~np.isnan(x)
    return np.where(np.isnan(x), y, (bits | inexact.astype(np.uint32)).view(np.float32))


def cast(x, t):
    """Codes of x (f32 or f64) in type t, rounded once."""
    x = np.atleast_1d(x)
    if t is np.float16:
        with np.errstate(all="ignore"):
            return x.astype(np.float16).view(np.uint16)
    y = to_odd(x) if x.dtype == np.float64 else x
    with np.errstate(all="ignore"):
        y = y.astype(t)
    return y.view(np.uint16 if np.dtype(t).itemsize == 2 else np.uint8)


def segments(t, view, top, sign):
    """[[first input bits, code], ...] over the inputs 0 .. inf of one sign."""
    code = lambda b: int(cast(view([b | sign]), t)[0])
    out = [[0, code(0)]]
    binade = 1 << (23 if top == INF32 else 52)
    ends = [0, 1, *range(binade, top, binade), top - 1, top]
    stack = list(zip(ends, ends[1:]))                        # one per binade: f8E8M0FNU maps both 0 and infinity to NaN
    found = []
    while stack:                                             # every change of a monotone function
        lo, hi = stack.pop()
        if code(lo) == code(hi):
            continue
        if hi - lo == 1:
            found.append([hi, code(hi)])
            continue
        mid = (lo + hi) // 2
        stack += [(lo, mid), (mid, hi)]
    return out + sorted(found)


def hex_segments(segs, digits):
    return {"first": "".join(f"{a:0{digits}x}" for a, _ in segs), "code": "".join(f"{c:02x}" for _, c in segs)}


def verify(name, t, positive, negative):
    for sign, segs in ((0, positive), (1 << 31, negative)):
        first = np.array([a for a, _ in segs], np.uint32)
        codes = np.array([c for _, c in segs], np.uint8)
        for start in range(0, INF32 + 1, 1 << 22):
            bits = np.arange(start, min(start + (1 << 22), INF32 + 1), dtype=np.uint32)
            want = cast((bits | np.uint32(sign)).view(np.float32), t)
            lo = np.searchsorted(first, bits[0], "right") - 1
            hi = np.searchsorted(first, bits[-1], "right")
            got = np.repeat(codes[lo:hi], np.diff(np.clip(np.append(first[lo:hi], bits[-1] + 1), bits[0], None)))
            assert np.array_equal(got, want), (name, hex(start))
    print("verified", name)


def narrow():
    types = {}
    nans = np.array([0x7FC00000, 0xFFC00000, 0x7F800001, 0xFF800001, 0x7FFFFFFF], np.uint32)
    for name, (bits, t) in NARROW.items():
        codes = np.arange(1 << bits, dtype=np.uint8)
        s32 = [segments(t, f32, INF32, s) for s in (0, 1 << 31)]
        s64 = [segments(t, f64, INF64, s) for s in (0, 1 << 63)]
        if "--verify" in sys.argv:
            verify(name, t, *s32)
        types[name] = {
            "bits": bits,
            "to_f32": io.hexed(codes.view(t).astype(np.float32)),
            "from_f32": {"positive": hex_segments(s32[0], 8), "negative": hex_segments(s32[1], 8)},
            "from_f64": {"positive": hex_segments(s64[0], 16), "negative": hex_segments(s64[1], 16)},
            "from_f32_nan": {"input": io.hexed(nans.view(np.float32)),
                             "code": "".join(f"{c:02x}" for c in cast(nans.view(np.float32), t))},
        }
    ints = {}
    for name, (bits, t) in INTS.items():
        codes = np.arange(1 << bits, dtype=np.uint8)
        wide = np.arange(-20, 21, dtype=np.int32)
        lo, hi = (-(1 << bits - 1), (1 << bits - 1) - 1) if name[0] == "i" else (0, (1 << bits) - 1)
        reals = np.arange(lo * 4, hi * 4 + 4, dtype=np.float32) / 4
        reals = reals[(np.trunc(reals) >= lo) & (np.trunc(reals) <= hi)]
        mask = (1 << bits) - 1
        ints[name] = {
            "bits": bits,
            "to_i32": [int(v) for v in codes.view(t).astype(np.int32)],
            "from_i32": {"input": wide.tolist(), "code": [int(v) & mask for v in wide.astype(t).view(np.uint8)]},
            "from_f32": {"input": reals.tolist(), "code": [int(v) & mask for v in reals.astype(t).view(np.uint8)]},
        }
    io.dump({
        "origin": io.origin("ml_dtypes", "numpy"),
        "made_by": "make_dtypes.py",
        "layout": {
            "to_f32": "f32 bits of codes 0, 1, 2, ...: 8 hex digits each; a NaN's payload is free",
            "from_f32": "per sign: `first` holds the magnitude bits (sign bit clear, 8 digits each) from which "
                        "the code (2 digits each) in `code` holds, up to the next; the last entry reaches infinity. "
                        "This is the whole conversion, NaN aside; its boundaries are the halfway points",
            "from_f64": "the same with 16 digits, rounded once (ml_dtypes itself goes through f32)",
            "from_f32_nan": "what ml_dtypes makes of NaNs; the sign of a NaN is free",
            "integers": "wrap from wider integers, truncate from floats in range",
        },
        "floats": types,
        "integers": ints,
    }, "dtypes_narrow.json")


def half_inputs(t):
    """Codes spread over all exponents, their upper halfway points and those points' neighbours."""
    mant = 7 if t is not np.float16 else 10
    top = 0x7F80 if t is not np.float16 else 0x7C00
    codes = set(range(0, 6)) | set(range(top - 6, top))
    for e in range(0, top, 1 << mant):
        codes |= {e, e + 1, e + (1 << mant) // 3, e + (1 << mant) - 2, e + (1 << mant) - 1}
    codes = np.array(sorted(c for c in codes if c < top), np.uint16)
    if t is not np.float16:                                   # a quarter of the many bf16 exponents
        codes = np.array([c for c in codes if (c >> mant) % 4 == 1 or c < 256 or c > top - 300], np.uint16)
    value = codes.view(t).astype(np.float64)
    after = (codes + 1).view(t).astype(np.float64)
    after = np.where(np.isinf(after), 2 * value - (codes - 1).view(t).astype(np.float64), after)
    return codes, (value + after) / 2


def half():
    types = {}
    for name, t in (("f16", np.float16), ("bf16", ml_dtypes.bfloat16)):
        codes, mid = half_inputs(t)
        with np.errstate(all="ignore"):
            m32 = mid.astype(np.float32)
        exact = codes.view(t).astype(np.float32)
        x32 = np.concatenate([exact, m32, np.nextafter(m32, np.float32(0)), np.nextafter(m32, np.float32(np.inf)),
                              f32([0, 1, 2, 0x007FFFFF, 0x00800000, 0x33000000, 0x33000001, 0x32FFFFFF, 0x477FEFFF,
                                   0x477FF000, 0x7F7F7FFF, 0x7F7F8000, 0x7F7FFFFF, 0x7F800000])])
        x32 = np.unique(x32.view(np.uint32)).view(np.float32)
        x32 = np.concatenate([x32, -x32[::5]])
        # Just off a halfway point by less than half an f32 ulp: two roundings would lose it.
        x64 = np.concatenate([mid, np.nextafter(mid, 0), np.nextafter(mid, np.inf), mid * (1 + 2.0 ** -30)])
        x64 = x64[: len(mid) * 3 : 2].tolist() + x64[len(mid) * 3 :].tolist() + [5e-324, 2.0 ** -25, 65520.0, 65519.99999999999,
                                                                                 1e300, float("inf"), 2.0 ** 128, 2.0 ** -150]
        x64 = np.unique(np.array(x64).view(np.uint64)).view(np.float64)
        x64 = np.concatenate([x64, -x64[::9]])
        nans = np.array([0x7FC00000, 0xFFC00000, 0x7F800001, 0x7FC12345], np.uint32).view(np.float32)
        types[name] = {
            "to_f32": {"code": io.hexed(codes), "value": io.hexed(exact)},
            "from_f32": {"input": io.hexed(x32), "code": io.hexed(cast(x32, t))},
            "from_f64": {"input": io.hexed(x64), "code": io.hexed(cast(x64, t))},
            "from_f32_nan": {"input": io.hexed(nans), "code": io.hexed(cast(nans, t))},
        }
        print(name, len(codes), len(x32), len(x64))
    io.dump({
        "origin": io.origin("ml_dtypes", "numpy"),
        "made_by": "make_dtypes.py",
        "layout": "pairs of hex strings; f32 8 digits, f64 16 digits, codes 4 digits each; f64 rounded once. "
                  "NaN payloads and signs are free",
        "types": types,
    }, "dtypes_half.json")


narrow()
half()
