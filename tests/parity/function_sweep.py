"""How functions_test.py draws operands, calls a function tool and JAX, and compares."""

import dataclasses
import subprocess

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

BOOL, INTS = ["bool"], ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS, COMPLEX = ["bfloat16", "float16", "float32", "float64"], ["complex64", "complex128"]
REAL = BOOL + INTS + FLOATS
ALL = REAL + COMPLEX
SHAPES = [(), (0,), (3, 0), (1,), (5,), (2, 3), (4, 1, 3), (4099,)]
PAIRS = [((), ()), ((5,), ()), ((), (2, 3)), ((2, 3), (3,)), ((4, 1, 3), (2, 1)), ((0,), (1,)), ((3, 0), (3, 1)), ((2,), (3,)),
         ((1, 5), (4, 1)), ((1031,), (1031,))]
WEAK = [True, 3, -2, 0, 1.5, -0.0, 2 + 1j]


def dtype_of(name):
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def is_float(d):
    return d == ml_dtypes.bfloat16 or d.kind == "f"


drawing = True                     # off while cases are only counted, or passed over


def draw(rng, dtype, shape, kind="special"):
    """Numbers of a kind: "special" (NaN, infinities, -0, extremes among them), "plain" (finite and moderate), "small" (whole, 0 to 4),
    "positive" (0.1 to 3), "unit" (inside (-1, 1))."""
    d = dtype_of(dtype)
    n = int(np.prod(shape))
    if not drawing:
        return np.broadcast_to(np.zeros((), d), shape)
    if d.kind == "b":
        r = rng.integers(0, 2, n).astype(bool)
    elif d.kind in "iu":
        r = rng.integers(0 if d.kind == "u" or kind in ("small", "positive") else -9, 5 if kind == "small" else 10, n).astype(d)
        if kind == "positive":
            r = np.maximum(r, 1).astype(d)
        if kind == "special":
            at = rng.random(n) < 0.2
            info = np.iinfo(d)
            r[at] = rng.choice(np.array([info.min, info.max, info.max - 1, info.min + 1, 0, info.max // 2], d), int(at.sum()))
    elif d.kind == "c":
        part = "float32" if d.itemsize == 8 else "float64"
        r = (draw(rng, part, (n,), kind) + 1j * draw(rng, part, (n,), "plain" if kind == "special" else kind)).astype(d)
        if kind == "special":
            r[~(np.abs(r) < 100)] = 1.5 - 2j
    else:
        r = {"special": lambda: rng.normal(0, 3, n), "plain": lambda: rng.normal(0, 3, n), "small": lambda: rng.integers(0, 5, n),
             "positive": lambda: rng.uniform(0.1, 3, n), "unit": lambda: rng.uniform(-0.95, 0.95, n)}[kind]().astype(d)
        if kind == "special":
            at = rng.random(n) < 0.3
            info = ml_dtypes.finfo(d)
            big, tiny = float(info.max), float(info.tiny)
            special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, big, -big, tiny, 1e-3, 30.0, -30.0, 88.5]).astype(d)
            r[at] = rng.choice(special, int(at.sum()))
    return np.asarray(r).reshape(shape)


@dataclasses.dataclass
class Case:
    name: str
    operands: list
    attrs: dict
    f: object                      # JAX's function of (operands, attrs)

    def __str__(self):
        shown = ", ".join(repr(o) if isinstance(o, (bool, int, float, complex)) else f"{o.dtype}{list(o.shape)}" for o in self.operands)
        return f"{self.name}({shown}; {self.attrs})"

    def wide(self):
        """Whether 64-bit types take part: then JAX runs with them."""
        arrays = [o for o in self.operands if isinstance(o, np.ndarray)]
        kinds = {o.dtype.kind for o in arrays}
        if {"i", "u"} <= kinds and any(o.dtype == np.uint32 for o in arrays):
            return True            # they meet in i64
        return any(o.dtype.itemsize == 8 and o.dtype.kind != "c" or o.dtype.itemsize == 16 for o in arrays) or \
            any(str(self.attrs.get(k)) in ("int64", "uint64", "float64", "complex128") for k in ("dtype",))

    def message(self, mode):
        operands, data = [], []
        for o in self.operands:
            if isinstance(o, bool):
                operands.append(f"weak_bool:{int(o)}")
            elif isinstance(o, int):
                operands.append(f"weak_int:{o}")
            elif isinstance(o, float):
                operands.append(f"weak_float:{o!r}")
            elif isinstance(o, complex):
                operands.append(f"weak_complex:{o.real!r},{o.imag!r}")
            else:
                operands.append(f"{o.dtype.name}:{','.join(map(str, o.shape))}")
                data.append(np.ascontiguousarray(o).tobytes())
        words = [self.name, mode, ";".join(operands) or "-"]
        for k, v in self.attrs.items():
            if v is None:
                continue
            if isinstance(v, bool):
                v = int(v)
            elif isinstance(v, list):
                v = ";".join(",".join(map(str, p)) for p in v)
            elif isinstance(v, tuple):
                v = ",".join(map(str, v)) or ("()" if k == "axis" else "")
            words.append(f"{k}={v}")
        return (" ".join(words) + "\n").encode() + b"".join(data)


class Tool:
    """A running function tool."""

    def __init__(self, path):
        self.path = path
        self.names = subprocess.run([str(path), "list"], check=True, capture_output=True, text=True).stdout.split()
        self.start()

    def start(self):
        self.process = subprocess.Popen([str(self.path), "run"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def close(self):
        self.process.stdin.close()
        self.process.wait()

    def call(self, case, mode="eager"):
        """("ok", arrays) or (why, message)."""
        try:
            self.process.stdin.write(case.message(mode))
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        line = self.process.stdout.readline().decode()
        if not line:
            status = self.process.wait()
            self.start()
            return "crashed", f"the tool ended with status {status}"
        word, _, rest = line.rstrip("\n").partition(" ")
        if word != "ok":
            return word, rest
        arrays = []
        for _ in range(int(rest)):
            dtype, _, shape = self.process.stdout.readline().decode().strip().partition(":")
            shape = tuple(int(d) for d in shape.split(",")) if shape else ()
            d = dtype_of(dtype)
            arrays.append(np.frombuffer(self.process.stdout.read(d.itemsize * int(np.prod(shape))), d).reshape(shape))
        return "ok", arrays


def flat(x):
    """JAX's results as arrays."""
    return [np.asarray(a) for a in jax.tree.leaves(x) if a is not None]


def expected(case):
    operands = [jnp.asarray(o) if isinstance(o, np.ndarray) else o for o in case.operands]
    return flat(case.f(operands, dict(case.attrs)))


def oracle(case):
    """("ok", arrays) or ("refused", message)."""
    try:
        with jax.enable_x64(case.wide()):
            return "ok", expected(case)
    except (TypeError, ValueError, IndexError, OverflowError, NotImplementedError, ZeroDivisionError, KeyError) as e:
        return "refused", f"{type(e).__name__}: {e}".split("\n")[0]


# Relative to the value, and to the largest of the result.
CLOSE = {"bfloat16": 2**-7, "float16": 2**-9, "float32": 3e-5, "float64": 1e-11, "complex64": 3e-5, "complex128": 1e-11}
NARROW = {"int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64"}


def differs(case, got, want, tolerance=1.0):
    """What is different, or None."""
    if len(got) != len(want):
        return f"{len(got)} results, not {len(want)}"
    for i, (g, w) in enumerate(zip(got, want)):
        if g.shape != w.shape:
            return f"result {i}: shape {g.shape}, not {w.shape}"
        if g.dtype != w.dtype and not narrowed(case, g.dtype.name, w.dtype.name):
            return f"result {i}: {g.dtype}, not {w.dtype}"
        if g.dtype != w.dtype and g.dtype.kind in "fc" and any(np.abs(np.asarray(o).astype(np.complex128)).max(initial=0) > 2**20 for o in case.operands):
            continue               # the integers themselves are rounded here
        why = values_differ(g, w, tolerance * LOOSE.get(case.name, 1), case.name.startswith(("linalg.", "fft.", "nn.dot")))
        if why:
            return f"result {i}: {why}"
    return None


def narrowed(case, got, want):
    """Xylem has no 64-bit mode: what JAX makes wide by itself (positions, floats of integers) is narrow here."""
    if NARROW.get(want) != got:
        return False
    inputs = {o.dtype.name for o in case.operands if isinstance(o, np.ndarray)} | {str(case.attrs.get("dtype"))}
    if want in ("float64", "complex128"):
        return not inputs & {"float64", "complex128"}
    return case.name in POSITIONS or not inputs & {"int64", "uint64"}


POSITIONS = set()                  # names of functions whose integers are positions or counts


# In multiples of CLOSE: JAX rounds intermediate results, or computes in a narrower type.
LOOSE = {"special.betaln": 8, "special.polygamma": 8, "nn.dot_product_attention": 1e5, "linalg.cond": 100, "linalg.lstsq": 1e6, "linalg.inv": 30, "linalg.pinv": 30, "linalg.solve": 30,
         "linalg.expm": 10, "linalg.matrix_power": 30}


def values_differ(g, w, tolerance, whole=False):
    if g.dtype.kind in "biu" or w.dtype.kind in "biu":
        bad = g.astype(w.dtype) != w
    elif w.dtype.kind == "c":
        both = np.isnan(g) & np.isnan(w)       # a complex NaN has one NaN part or two
        g, w = np.where(both, 0, g), np.where(both, 0, w)
        return values_differ(g.real, w.real, tolerance, whole) or values_differ(g.imag, w.imag, tolerance, whole) if np.isnan(w).any() or np.isinf(w).any() \
            else far(g, w, tolerance * CLOSE[g.dtype.name], whole=whole)
    else:
        a, b = g.astype(np.float64), w.astype(np.float64)
        nan = np.isnan(a) != np.isnan(b)
        inf = (np.isinf(a) | np.isinf(b)) & (a != b) & ~np.isnan(a) & ~np.isnan(b)
        sign = (a == 0) & (b == 0) & (np.signbit(a) != np.signbit(b))
        bad = nan | inf | (sign if not whole else np.False_)
        if not bad.any():
            return far(a, b, tolerance * CLOSE[g.dtype.name], float(ml_dtypes.finfo(g.dtype).tiny), whole)
    if bad.any():
        at = tuple(int(k) for k in np.argwhere(bad)[0])
        return f"[{at}] is {g[at]}, not {w[at]} ({int(bad.sum())} of {bad.size})"
    return None


def far(a, b, close, tiny=0.0, whole=False):
    """Where the difference is too large beside the value (or the largest one of the `whole` result)."""
    finite = np.isfinite(a) & np.isfinite(b)
    if not finite.any():
        return None
    with np.errstate(all="ignore"):
        scale = np.maximum(np.abs(b), np.max(np.abs(b[finite])) if whole else min(np.median(np.abs(b[finite])), 1.0))
        off = np.where(finite, np.abs(a - b) - 2 * tiny, 0) / np.maximum(scale, 1e-300)
    at = np.unravel_index(int(np.argmax(off)), off.shape)
    if off[at] > close:
        return f"[{tuple(int(k) for k in at)}] is {a[at]!r}, not {b[at]!r} (off by {off[at]:.2g})"
    return None


def describe(arrays):
    return ", ".join(f"{a.dtype}{list(a.shape)}" for a in arrays)
