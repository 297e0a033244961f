"""base's conversions against ml_dtypes and JAX, its printing against NumPy, on fresh random values."""

import built
import jax
import ml_dtypes
import numpy as np
import pytest

FLOATS = ["float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4", "float8_e4m3", "float8_e4m3fn",
          "float8_e4m3fnuz", "float8_e4m3b11fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "bfloat16",
          "float16"]
BITS = {"float4_e2m1fn": 4, "float6_e2m3fn": 6, "float6_e3m2fn": 6}
INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def dtype(name):
    return np.dtype(getattr(ml_dtypes, name, name))


def codes(name):
    t = dtype(name)
    return np.arange(1 << BITS.get(name, 8 * t.itemsize), dtype=f"u{t.itemsize}").view(t)


def convert(tool, a, to):
    _, out, _ = built.run(tool("base"), "convert", a.dtype.name, to, stdin=a.tobytes())
    return np.frombuffer(out, dtype(to)).reshape(a.shape)


def assert_same_bits(got, want, given):
    """Equal bits, but for the sign and payload of NaNs."""
    unsigned = f"u{got.dtype.itemsize}"
    wrong = got.view(unsigned) != want.view(unsigned)
    if got.dtype.kind in "fV":
        with np.errstate(all="ignore"):
            wrong &= ~(np.isnan(got.astype(np.float64)) & np.isnan(want.astype(np.float64)))
    if got.dtype.name in BITS:          # NaN becomes -0 here, whatever its sign
        with np.errstate(all="ignore"):
            wrong &= ~np.isnan(given.astype(np.float64))
    assert not wrong.any(), (given[wrong][:5], got[wrong][:5], want[wrong][:5])


def samples(seed):
    r = np.random.default_rng(seed)
    any_bits = r.integers(0, 2**32, 200_000, dtype=np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        wide = np.exp(r.normal(size=200_000) * 8).astype(np.float32) * r.choice([-1, 1], 200_000).astype(np.float32)
    return np.concatenate([any_bits, wide, np.array([0, -0.0, np.inf, -np.inf, np.nan], np.float32)])


@pytest.mark.parametrize("name", FLOATS)
def test_f32_rounds_as_in_ml_dtypes(tool, name):
    x = samples(FLOATS.index(name))
    with np.errstate(all="ignore"):
        want = x.astype(dtype(name))
    assert_same_bits(convert(tool, x, name), want, x)


@pytest.mark.parametrize("source", FLOATS)
def test_every_code_of_every_pair_converts_as_in_ml_dtypes(tool, source):
    x = codes(source)
    with np.errstate(all="ignore"):
        wide = x.astype(np.float32)
        for target in FLOATS:
            if target != source:
                assert_same_bits(convert(tool, x, target), wide.astype(dtype(target)), x)


@pytest.mark.parametrize("name", INTS + ["bool"])
@pytest.mark.parametrize("source", ["float32", "float64", "bfloat16", "float16"])
def test_floats_become_integers_as_in_compiled_jax(tool, source, name):
    r = np.random.default_rng(1)
    with np.errstate(all="ignore"):
        x = np.concatenate([r.normal(size=1000) * 10.0 ** r.uniform(-2, 20, size=1000),
                            [0, -0.0, 0.99, -0.99, 1e30, -1e30, np.inf, -np.inf, np.nan]]).astype(dtype(source))
    with jax.enable_x64(True):
        want = np.asarray(jax.jit(lambda v: v.astype(name))(x))
    got = convert(tool, x, name)
    assert np.array_equal(got, want), (x[got != want][:5], got[got != want][:5], want[got != want][:5])


@pytest.mark.parametrize("source", INTS)
def test_integers_round_once(tool, source):
    info = np.iinfo(source)
    r = np.random.default_rng(2)
    x = np.concatenate([r.integers(info.min, info.max, 20_000, dtype=source, endpoint=True),
                        np.array([info.min, info.max, 0, 1], source)])
    for target in ("float32", "float64"):
        assert_same_bits(convert(tool, x, target), x.astype(target), x)
    with jax.enable_x64(True):
        for target in INTS:
            assert_same_bits(convert(tool, x, target), x.astype(target), x)


def printed(tool, arrays):
    stdin = b"".join(f"{a.dtype.name} {','.join(map(str, a.shape)) or '-'} {a.nbytes}\n".encode() + a.tobytes()
                     for a in arrays)
    _, out, _ = built.run(tool("base"), "print", stdin=stdin)
    return out.decode().split("\0")[:-1]


@pytest.mark.parametrize("name", ["float16", "float32", "float64", "complex64", "complex128", "int8", "int64", "uint64",
                                  "bool", "bfloat16", "float8_e4m3fn", "int4"])
def test_arrays_print_as_in_numpy(tool, name):
    r = np.random.default_rng(3)
    arrays = []
    with np.errstate(all="ignore"):
        for _ in range(1500):
            shape = tuple(r.integers(0, 6, size=r.integers(0, 5)))
            spread = r.uniform(0, 6)
            a = np.asarray(r.normal(size=shape) * 10.0 ** r.uniform(-spread, spread, size=shape))
            if name.startswith("complex"):
                a = a + 1j * r.normal(size=shape)
            if r.random() < 0.2:
                a = np.round(a)
            if r.random() < 0.2 and a.size and name not in ("int8", "int64", "uint64", "int4"):
                a.flat[r.integers(a.size)] = r.choice([np.nan, np.inf, -np.inf, 0.0])
            a = np.asarray(a)
            arrays.append(a.astype(np.int32).astype(dtype(name)) if name == "int4" else a.astype(dtype(name)))
        for shape in ((1000,), (1001,), (40, 40), (5, 300), (7, 7, 30)):
            big = np.arange(np.prod(shape)).reshape(shape) % 100
            arrays.append(big.astype(np.int32).astype(dtype(name)) if name == "int4" else big.astype(dtype(name)))
    for a, text in zip(arrays, printed(tool, arrays), strict=True):
        assert text == str(a), (a.dtype, a.shape)
