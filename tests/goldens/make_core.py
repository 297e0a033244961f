"""Writes core.json and core_points.json: values, dtypes and edge gradients of jax.numpy functions that core has.

A reader looks every name up in a list of its own programs; a name stands for one program.
"""
import golden_io as io

import warnings

import jax
import jax.numpy as jnp
import jax.scipy.special as jss
import numpy as np
from jax import lax, nn

warnings.filterwarnings("ignore")
inf, nan = float("inf"), float("nan")
POINTS = [0.0, -0.0, 1e-30, -1e-30, 1e-10, -1e-10, 1e-5, -1e-5, 0.1, -0.1, 0.25, -0.25, 0.5, -0.5, 0.75, -0.75, 0.999,
          -0.999, 1.0, -1.0, 1.5, -1.5, 2.0, -2.0, 2.5, -2.5, 3.14159274101257324, -3.14159274101257324, 5.0, -5.0, 10.0,
          -10.0, 17.5, -17.5, 40.0, -40.0, 88.0, -88.0, 100.5, -100.5, 1e4, -1e4, 1e10, -1e10, 1e30, -1e30, inf, -inf, nan]
POINTS = [float(np.float32(p)) for p in POINTS]
UNARY = {n: getattr(jnp, n) for n in (
    "abs negative sign exp exp2 expm1 log log2 log10 log1p sqrt cbrt square reciprocal sin cos tan arcsin arccos arctan "
    "sinh cosh tanh arcsinh arccosh arctanh floor ceil round trunc isnan isinf isfinite nan_to_num").split()}
UNARY |= {n: getattr(jss, n) for n in "erf erfc erfinv expit logit ndtr".split()}
UNARY |= {"rsqrt": lax.rsqrt, "x ** 0": lambda x: x ** 0, "x ** 3": lambda x: x ** 3, "x ** -2": lambda x: x ** -2}
NN = {n: getattr(nn, n) for n in "relu gelu silu softplus log_sigmoid sigmoid elu leaky_relu".split()}
NN |= {"gelu exact": lambda x: nn.gelu(x, approximate=False)}
BINARY = {n: getattr(jnp, n) for n in (
    "add subtract multiply divide floor_divide mod fmod power maximum minimum arctan2 hypot logaddexp equal less "
    "less_equal nextafter").split()} | {"xlogy": jss.xlogy}
PAIRS = [(a, b) for a in (0.0, -0.0, 1.0, -1.0, 2.0, -3.5, 0.5, 7.0, -7.0, 1e30, inf, -inf, nan)
         for b in (0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -0.5, inf, -inf, nan)]
INT_BINARY = {n: getattr(jnp, n) for n in (
    "add subtract multiply floor_divide mod fmod maximum minimum bitwise_and bitwise_or bitwise_xor left_shift "
    "right_shift divide").split()}
INTS = {"i8": [0, 1, -1, 2, -2, 3, 7, -7, 100, 127, -128], "i32": [0, 1, -1, 2, 3, -7, 31, 2**31 - 1, -2**31],
        "ui8": [0, 1, 2, 3, 7, 8, 100, 255], "ui32": [0, 1, 2, 3, 31, 2**31, 2**32 - 1]}
NUMPY = {"i1": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "ui8": "uint8", "ui16": "uint16",
         "ui32": "uint32", "ui64": "uint64", "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64",
         "c64": "complex64", "c128": "complex128"}
NAMES = io.SHLO | {"float8_e4m3fn": "f8E4M3FN", "float8_e5m2": "f8E5M2"}
SHORT = {v: NAMES[v] for v in NUMPY.values()}


def elementwise(dtype):
    x = jnp.asarray(POINTS, dtype)
    a, b = (jnp.asarray(c, dtype) for c in zip(*PAIRS))
    return {"unary": {n: io.array(f(x)) for n, f in UNARY.items()}, "nn": {n: io.array(f(x)) for n, f in NN.items()},
            "binary": {n: io.array(f(a, b)) for n, f in BINARY.items()}}


def integers():
    out = {}
    for t, values in INTS.items():
        a, b = (jnp.asarray(c, NUMPY[t]) for c in zip(*[(p, q) for p in values for q in values]))
        out[t] = {"x": io.array(a), "y": io.array(b), "out": {n: io.array(f(a, b)) for n, f in INT_BINARY.items()}}
    return out


# --- records: name, inputs, program ----------------------------------------------------------------
def rand(*shape, seed=0, dtype=np.float32):
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape).astype(np.float32), dtype)


i32 = lambda *v: jnp.array(v, jnp.int32)
m23, m34, v3, t234, t243 = rand(2, 3), rand(3, 4, seed=1), rand(3, seed=2), rand(2, 3, 4, seed=3), rand(2, 4, 3, seed=4)
s33, q3333 = rand(3, 3, seed=5), rand(3, 3, 2, seed=6)
odd = jnp.array([[2.0, nan, -1.0, inf], [-0.0, 0.0, -nan, 5.0], [nan, nan, nan, nan], [3.0, 1.0, 2.0, 1.0]], jnp.float32)
EINSUM = [("ij,jk->ik", m23, m34), ("ij->ji", m23), ("ij->", m23), ("ij->j", m23), ("ij,ij->", m23, m23), ("ii->i", s33),
          ("ii->", s33), ("ii", s33), ("i,j->ij", v3, v3), ("ij,j", m23, v3), ("bij,bjk->bik", t234, t243),
          ("bij,bkj->bik", t234, rand(2, 5, 4, seed=7)), ("...ij,...jk->...ik", t234, t243), ("...j->...", t234),
          ("ij,jk,kl->il", m23, m34, rand(4, 5, seed=8)), ("ba,b->ab", m23, rand(2, seed=9)), ("iij->ij", q3333),
          ("bthk,bshk->bhts", rand(1, 3, 2, 4, seed=10), rand(1, 5, 2, 4, seed=11)), ("ij,ik->jk", m23, rand(2, 4, seed=12)),
          ("abc,cd,def->abf", t234, rand(4, 2, seed=13), rand(2, 3, 2, seed=14)[:, :, :]), ("i...,i...->i...", m23, m23),
          ("ij,kj->ik", m23, jnp.ones((4, 3))), ("a,a,a->a", v3, v3, v3), ("...,...->...", m23, rand(3, seed=2))]
EINSUM[19] = ("abc,cd,de->abe", t234, rand(4, 2, seed=13), rand(2, 3, seed=14))


def records():
    r = [(f"einsum {s}", list(x), (lambda s: lambda *x: jnp.einsum(s, *x))(s)) for s, *x in EINSUM]
    for name, a, b in (("1,1", v3, v3), ("2,1", m23, v3), ("1,2", v3, m34), ("2,2", m23, m34), ("3,2", t234, rand(4, 5)),
                       ("2,3", rand(5, 3), t234), ("1,3", v3, t234), ("3,1", t243, v3), ("3,3", t234, t243),
                       ("4,3", rand(3, 1, 2, 4), rand(2, 4, 3))):
        r += [(f"matmul {name}", [a, b], jnp.matmul)]
    r += [("dot 3,2", [t234, rand(4, 5)], jnp.dot), ("dot 2,3", [m23, t234], jnp.dot), ("dot scalar", [v3, jnp.float32(2)], jnp.dot),
          ("vdot", [m23, m23], jnp.vdot), ("inner", [m23, rand(4, 3)], jnp.inner), ("outer", [m23, v3], jnp.outer),
          ("tensordot 0", [v3, v3], lambda a, b: jnp.tensordot(a, b, 0)), ("tensordot 1", [m23, m34], lambda a, b: jnp.tensordot(a, b, 1)),
          ("tensordot 2", [t234, rand(3, 4, 2)], lambda a, b: jnp.tensordot(a, b, 2))]
    ix = i32(0, 2, -1, 3, -4, -3, 100)
    r += [("take", [v3, ix], lambda x, i: jnp.take(x, i)), ("take axis 1", [t234, i32(1, -1, 7)], lambda x, i: jnp.take(x, i, axis=1)),
          ("take 2d indices", [m34, jnp.array([[0, 1], [2, 9]], jnp.int32)], lambda x, i: jnp.take(x, i, axis=0)),
          ("take i32", [i32(1, 2, 3), ix], jnp.take), ("take u8", [jnp.array([1, 2, 3], jnp.uint8), ix], jnp.take),
          ("take bool", [jnp.array([False, False, False]), ix], jnp.take), ("take flat", [m23, i32(4, -1, 6)], jnp.take),
          ("take_along_axis 0", [m34, jnp.array([[0, 2, 1, -1]], jnp.int32)], lambda x, i: jnp.take_along_axis(x, i, 0)),
          ("take_along_axis 1", [m34, jnp.array([[0], [3], [-5]], jnp.int32)], lambda x, i: jnp.take_along_axis(x, i, 1))]
    for d in (False, True):
        r += [(f"sort descending={d}", [odd], lambda x, d=d: jnp.sort(x, descending=d)),
              (f"argsort descending={d}", [odd], lambda x, d=d: jnp.argsort(x, descending=d))]
    r += [("sort axis 0", [m34], lambda x: jnp.sort(x, axis=0)), ("sort i8", [jnp.array([3, -1, 2], jnp.int8)], jnp.sort),
          ("sort u8", [jnp.array([3, 255, 2], jnp.uint8)], jnp.sort),
          ("argmax", [odd], jnp.argmax), ("argmax 1", [odd], lambda x: jnp.argmax(x, 1)), ("argmin 1", [odd], lambda x: jnp.argmin(x, 1)),
          ("argmax keepdims", [odd], lambda x: jnp.argmax(x, 0, keepdims=True)), ("argmax all keepdims", [odd], lambda x: jnp.argmax(x, keepdims=True)),
          ("argmax ties", [i32(1, 5, 5)], jnp.argmax), ("argmin bool", [jnp.array([True, False, False])], jnp.argmin),
          ("max", [odd], lambda x: jnp.max(x, 1)), ("min", [odd], lambda x: jnp.min(x, 1)),
          ("searchsorted left", [jnp.array([1.0, 2, 2, 5]), jnp.array([0.0, 1, 2, 3, 9])], jnp.searchsorted),
          ("searchsorted right", [jnp.array([1.0, 2, 2, 5]), jnp.array([0.0, 1, 2, 3, 9])], lambda a, v: jnp.searchsorted(a, v, side="right")),
          ("top_k", [jnp.array([[1.0, 5, 5, 2], [9, -1, 3, 9]])], lambda x: lax.top_k(x, 3)[0]),
          ("top_k indices", [jnp.array([[1.0, 5, 5, 2], [9, -1, 3, 9]])], lambda x: lax.top_k(x, 3)[1])]
    for dtype in ("bool", "int8", "uint8", "int16", "int32", "uint32", "float16", "bfloat16", "float32"):
        x = jnp.asarray([[1, 0, 100], [0, 0, 120], [1, 3, 100]], dtype)
        for n in "sum prod mean max min any all var std cumsum cumprod argmax argmin count_nonzero".split():
            for axis in (None, 1) if n not in ("var", "std") else (1,):
                r.append((f"{n} axis={axis} {SHORT[dtype]}", [x], lambda x, f=getattr(jnp, n), a=axis: f(x, axis=a)))
    r += [("sum axes", [t234], lambda x: jnp.sum(x, (0, -1))), ("sum keepdims", [t234], lambda x: jnp.sum(x, 1, keepdims=True)),
          ("sum none", [t234], lambda x: jnp.sum(x, ())), ("var ddof", [m34], lambda x: jnp.var(x, 1, ddof=1)), ("var ddof all", [v3], lambda x: jnp.var(x, ddof=3)),
          ("mean empty", [jnp.zeros((0,))], jnp.mean), ("sum empty", [jnp.zeros((0, 2))], lambda x: jnp.sum(x, 0)), ("prod empty", [jnp.zeros((0, 2))], lambda x: jnp.prod(x, 0)),
          ("any empty", [jnp.zeros((0,))], jnp.any), ("all empty", [jnp.zeros((0,))], jnp.all),
          ("logsumexp", [odd], lambda x: jax.nn.logsumexp(x, axis=1)), ("logsumexp -inf", [jnp.array([-inf, -inf])], jax.nn.logsumexp),
          ("logsumexp empty", [jnp.zeros((0,))], jax.nn.logsumexp), ("logsumexp large", [jnp.array([1e4, 1e4 - 1, -1e4])], jax.nn.logsumexp),
          ("any nan", [odd], lambda x: jnp.any(x, 1)), ("count_nonzero nan", [odd], lambda x: jnp.count_nonzero(x, 1)), ("cumsum axis 0", [m34], lambda x: jnp.cumsum(x, 0))]
    for lo, hi in ((0, 1), (1, 0), (-inf, inf), (nan, 1)):
        r.append((f"clip {lo} {hi}", [jnp.asarray(POINTS, jnp.float32)], lambda x, lo=lo, hi=hi: jnp.clip(x, lo, hi)))
    r += [("where scalars", [jnp.array([True, False])], lambda c: jnp.where(c, 1, 2.5)), ("where broadcast", [jnp.array([[True], [False]]), v3, m23], jnp.where),
          ("where condition of numbers", [jnp.array([0.0, 2.0, nan]), v3, v3 * 2], jnp.where),
          ("clamp", [jnp.array([1.0, nan, 5.0, -3.0])], lambda x: lax.clamp(0.0, x, 2.0)),
          ("transpose", [t234], jnp.transpose), ("swapaxes", [t234], lambda x: jnp.swapaxes(x, 0, -1)), ("moveaxis", [t234], lambda x: jnp.moveaxis(x, 0, -1)),
          ("moveaxis back", [t234], lambda x: jnp.moveaxis(x, -1, 0)), ("expand_dims", [m23], lambda x: jnp.expand_dims(x, (0, -1))), ("expand_dims 1", [m23], lambda x: jnp.expand_dims(x, 1)),
          ("squeeze", [jnp.ones((1, 3, 1))], jnp.squeeze), ("squeeze -1", [jnp.ones((1, 3, 1))], lambda x: jnp.squeeze(x, -1)),
          ("concatenate", [m23, m23], lambda a, b: jnp.concatenate([a, b], 1)), ("concatenate promotes", [i32(1, 2), jnp.array([0.5], jnp.bfloat16)], lambda a, b: jnp.concatenate([a, b])),
          ("stack", [v3, v3], lambda a, b: jnp.stack([a, b], -1)), ("stack promotes", [i32(1, 2), jnp.array([True, False])], lambda a, b: jnp.stack([a, b])),
          ("split", [m34], lambda x: jnp.split(x, 2, 1)[1]), ("split indices", [m34], lambda x: jnp.split(x, [1, 3], 1)[1]), ("unstack", [m34], lambda x: jnp.unstack(x, axis=1)[2]),
          ("tile", [m23], lambda x: jnp.tile(x, (2, 2))), ("tile longer", [v3], lambda x: jnp.tile(x, (2, 1, 2))), ("repeat", [m23], lambda x: jnp.repeat(x, 2, 1)),
          ("flip", [m23], jnp.flip), ("flip 1", [m23], lambda x: jnp.flip(x, 1)), ("roll", [m34], lambda x: jnp.roll(x, 5, 1)), ("roll back", [m34], lambda x: jnp.roll(x, -1, 0)),
          ("pad", [m23], lambda x: jnp.pad(x, ((1, 0), (0, 2)), constant_values=7)), ("tril", [t234], lambda x: jnp.tril(x, 1)), ("triu", [t234], lambda x: jnp.triu(x, -1)),
          ("diag", [v3], lambda x: jnp.diag(x, 1)), ("diag of a matrix", [m34], lambda x: jnp.diag(x, 1)), ("diag below", [m34], lambda x: jnp.diag(x, -1)),
          ("dynamic_slice", [jnp.arange(6)], lambda x: lax.dynamic_slice(x, (5,), (3,))), ("dynamic_slice negative", [jnp.arange(6)], lambda x: lax.dynamic_slice(x, (-1,), (3,))),
          ("dynamic_slice far negative", [jnp.arange(6)], lambda x: lax.dynamic_slice(x, (-9,), (3,))),
          ("dynamic_update_slice", [jnp.arange(6), i32(7, 8)], lambda x, u: lax.dynamic_update_slice(x, u, (5,))),
          ("linspace 5", [], lambda: jnp.linspace(0, 1, 5)), ("linspace open", [], lambda: jnp.linspace(-1, 2, 7, endpoint=False)), ("linspace 1", [], lambda: jnp.linspace(3, 9, 1)), ("linspace 50", [], lambda: jnp.linspace(0.1, 0.7)),
          ("arange", [], lambda: jnp.arange(2, 11, 3)), ("arange back", [], lambda: jnp.arange(5, 0, -2)), ("arange none", [], lambda: jnp.arange(5, 0)), ("eye", [], lambda: jnp.eye(3, 4, 1)), ("tri", [], lambda: jnp.tri(3, 4, -1)),
          ("i8 + 300", [jnp.array([1], jnp.int8)], lambda x: x + jnp.asarray(300, jnp.int32).astype(jnp.int8)), ("sum of ones bf16", [jnp.ones((4096,), jnp.bfloat16)], jnp.sum),
          ("f32 to i32", [jnp.array([3e9, -3e9, nan, inf, -inf, 1.9, -1.9])], lambda x: x.astype(jnp.int32)), ("f32 to u8", [jnp.array([300.0, -5.0, 1.9, nan])], lambda x: x.astype(jnp.uint8)),
          ("i32 to i8", [i32(300, -129, 127)], lambda x: x.astype(jnp.int8)), ("f32 to bool", [jnp.array([0.0, -0.0, nan, 0.5])], lambda x: x.astype(bool))]
    names = [n for n, *_ in r]
    assert len(set(names)) == len(names), [n for n in names if names.count(n) > 1]
    out = []
    for name, inputs, f in r:
        y = f(*inputs)
        out.append({"name": name, "in": [io.array(x) for x in inputs], "out": io.array(y), "weak": bool(y.weak_type)})
    return out


# --- dtypes -----------------------------------------------------------------------------------------
def promotion():
    order = ["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "bfloat16", "float16",
             "float32", "float64", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2", "int4", "i*", "f*", "c*"]
    weak = {"i*": 1, "f*": 1.0, "c*": 1j}
    value = lambda t: weak[t] if t in weak else jnp.ones((), t)

    def join(a, b):
        try:
            t, is_weak = jax.dtypes.result_type(value(a), value(b), return_weak_type_flag=True)
        except Exception:
            return "!"
        kind = {"i": "i*", "f": "f*", "c": "c*"}
        return kind[np.dtype(t).kind] if is_weak and np.dtype(t) != bool else NAMES[np.dtype(t).name]
    with jax.enable_x64(True):
        return {"order": [t if t in weak else NAMES[np.dtype(jnp.dtype(t)).name] for t in order], "join": [[join(a, b) for b in order] for a in order]}


def dtype_results():
    functions = UNARY | {n: getattr(jnp, n) for n in (
        "sum prod mean var std max min any all argmax argmin cumsum cumprod count_nonzero sort argsort invert logical_not "
        "real imag conj zeros_like ones_like").split()} | {"logsumexp": nn.logsumexp}
    types = "bool int8 uint8 int16 uint16 int32 uint32 bfloat16 float16 float32 complex64".split()
    out = {}
    for n, f in functions.items():
        row = {}
        for t in types:
            try:
                y = f(jnp.ones((2,), t))
                row[SHORT[t]] = SHORT[y.dtype.name] + ("*" if y.weak_type else "")
            except Exception:
                row[SHORT[t]] = "!"
        out[n] = row
    scalars = {"1": 1, "1.5": 1.5, "true": True}
    two = {n: getattr(jnp, n) for n in "add subtract multiply divide floor_divide mod power maximum arctan2 equal left_shift bitwise_and logical_and".split()}
    two["where"] = lambda a, b: jnp.where(jnp.ones((2,), bool), a, b)
    pairs = {}
    for n, f in two.items():
        row = {}
        names = [(SHORT[t], jnp.ones((2,), t)) for t in types] + list(scalars.items())
        for an, a in names:
            for bn, b in names:
                try:
                    y = f(a, b)
                    row[f"{an} {bn}"] = SHORT[y.dtype.name] + ("*" if y.weak_type else "")
                except Exception:
                    row[f"{an} {bn}"] = "!"
        pairs[n] = row
    return {"one": out, "two": pairs}


# --- gradients at edges -------------------------------------------------------------------------------
SCALAR = {
    "abs": jnp.abs, "sign": jnp.sign, "max(x, 0)": lambda x: jnp.maximum(x, 0), "min(x, 0)": lambda x: jnp.minimum(x, 0),
    "max(x, x)": lambda x: jnp.maximum(x, x), "clip(x, 0, 1)": lambda x: jnp.clip(x, 0, 1), "lax.clamp(0, x, 1)": lambda x: lax.clamp(jnp.zeros_like(x), x, jnp.ones_like(x)),
    "sqrt": jnp.sqrt, "rsqrt": lax.rsqrt, "cbrt": jnp.cbrt, "log": jnp.log, "log1p": jnp.log1p, "expm1": jnp.expm1, "expit": jss.expit,
    "tanh": jnp.tanh, "tan": jnp.tan, "arcsin": jnp.arcsin, "arctanh": jnp.arctanh, "arccosh": jnp.arccosh, "arcsinh": jnp.arcsinh,
    "where(x > 0, log x, 0)": lambda x: jnp.where(x > 0, jnp.log(x), 0), "x ** 0.0": lambda x: x ** 0.0, "x ** 0": lambda x: x ** 0, "x ** 2": lambda x: x ** 2, "x ** 2.0": lambda x: x ** 2.0,
    "x ** -1": lambda x: x ** -1, "2 ** x": lambda x: 2.0 ** x, "0 ** x": lambda x: 0.0 ** x, "square": jnp.square, "reciprocal": jnp.reciprocal, "floor": jnp.floor, "round": jnp.round,
    "mod(x, 2)": lambda x: jnp.mod(x, 2.0), "fmod(x, 2)": lambda x: jnp.fmod(x, 2.0), "floor_divide(x, 2)": lambda x: jnp.floor_divide(x, 2.0),
    "arctan2(x, 0)": lambda x: jnp.arctan2(x, 0.0), "hypot(x, 0)": lambda x: jnp.hypot(x, 0.0), "logaddexp(x, 0)": lambda x: jnp.logaddexp(x, 0.0),
    "erf": jss.erf, "erfc": jss.erfc, "erfinv": jss.erfinv, "nan_to_num": jnp.nan_to_num, "exp2": jnp.exp2, "log2": jnp.log2, "xlogy(x, 0)": lambda x: jss.xlogy(x, jnp.zeros_like(x)),
}
SCALAR_NN = {"relu": nn.relu, "gelu": nn.gelu, "softplus": nn.softplus, "silu": nn.silu, "elu": nn.elu, "leaky_relu": nn.leaky_relu, "log_sigmoid": nn.log_sigmoid}
GRAD_AT = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 40.0, -40.0, inf, -inf, nan]
VECTOR = {
    "max": ([1.0, 1.0, 0.0], jnp.max), "min": ([1.0, 1.0, 0.0], jnp.min), "max nan": ([1.0, nan, 0.0], jnp.max), "prod one zero": ([0.0, 2.0, 3.0], jnp.prod), "prod two zeros": ([0.0, 0.0, 3.0], jnp.prod),
    "norm at zero": ([0.0, 0.0], lambda x: jnp.sqrt(jnp.sum(x * x))), "std constant": ([2.0, 2.0], jnp.std), "var": ([1.0, 2.0, 4.0], jnp.var),
    "logsumexp": ([0.0, 1.0, -inf], nn.logsumexp), "logsumexp -inf": ([-inf, -inf], nn.logsumexp), "logsumexp inf": ([inf, 0.0], nn.logsumexp), "sort": ([3.0, 1.0, 1.0], lambda x: jnp.sum(jnp.sort(x) * jnp.arange(1.0, 4.0, dtype=x.dtype))),
    "cumsum": ([1.0, 2.0, 3.0], lambda x: jnp.sum(jnp.cumsum(x) ** 2)), "cumprod with zero": ([2.0, 0.0, 3.0], lambda x: jnp.sum(jnp.cumprod(x))), "take outside": ([1.0, 2.0], lambda x: jnp.nansum(jnp.take(x, i32(0, 1, 1, 7)))),
    "top_k": ([1.0, 3.0, 2.0], lambda x: jnp.sum(lax.top_k(x, 2)[0] * jnp.array([1.0, 10.0], x.dtype))), "index": ([1.0, 2.0, 3.0], lambda x: x[1] * x[-1]), "mean": ([1.0, 2.0], jnp.mean), "dynamic_slice": ([1.0, 2.0, 3.0], lambda x: jnp.sum(lax.dynamic_slice(x, (2,), (2,)) ** 2)),
}


def edge_gradients(dtype):
    at = jnp.asarray(GRAD_AT, dtype)
    g = lambda f: io.array(jnp.stack([jax.grad(f)(p) for p in at]))
    return {"scalar": {n: g(f) for n, f in SCALAR.items()}, "scalar_nn": {n: g(f) for n, f in SCALAR_NN.items()},
            "vector": {n: {"x": io.array(jnp.asarray(x, dtype)), "gradient": io.array(jax.grad(f)(jnp.asarray(x, dtype)))} for n, (x, f) in VECTOR.items()}}


head = {"origin": io.origin("jax", "jaxlib") + ", CPU", "made_by": "make_core.py"}
points = {
    **head,
    "layout": {"elementwise": "functions of `points`, or of `pairs`, by name; f64 at the same points",
               "integers": "functions of all pairs of edge values",
               "gradients": "of a scalar function at each of `gradient_points`; of a function of a vector"},
    "points": io.array(jnp.asarray(POINTS, jnp.float32)), "pairs": io.array(np.asarray(PAIRS)),
    "gradient_points": io.array(jnp.asarray(GRAD_AT, jnp.float32)),
    "elementwise": {"f32": elementwise(jnp.float32)}, "integers": integers(), "gradients": {"f32": edge_gradients(jnp.float32)},
}
with jax.enable_x64(True):
    points["elementwise"]["f64"] = elementwise(jnp.float64)
    points["gradients"]["f64"] = edge_gradients(jnp.float64)
io.dump(points, "core_points.json", depth=4)
io.dump({
    **head,
    "layout": {"records": "name of a program, its arguments and its result",
               "promotion": "join[i][j] of order[i] and order[j] in 64-bit mode, ! for none, i* f* c* weak",
               "dtypes": "result dtypes on arrays of ones, * if weak, ! if refused; 32-bit mode"},
    "records": records(), "promotion": promotion(), "dtypes": dtype_results(),
}, "core.json", depth=3)
