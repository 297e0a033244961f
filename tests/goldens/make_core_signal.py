"""Writes core_signal.json: sequences, polynomials, NaN statistics, sets and other compositions of jax.numpy by name."""
import golden_io as io

import warnings

import jax
import jax.numpy as jnp
import numpy as np

warnings.filterwarnings("ignore")
inf, nan = float("inf"), float("nan")
A = lambda *s, k=0: jnp.asarray((((np.arange(int(np.prod(s))) * 7 + k) % 11 - 5) / 4).astype(np.float32)).reshape(s)
I = lambda *s, k=0: jnp.asarray(((np.arange(int(np.prod(s))) * 5 + k) % 7 - 2).astype(np.int32)).reshape(s)
N = jnp.array([[1.0, nan, -2.0, 0.5], [nan, nan, nan, nan], [inf, 3.0, -inf, 0.0], [-0.0, 2.0, 2.0, -1.5]], jnp.float32)
C = lambda n: A(n) + 1j * A(n, k=2)
Q = jnp.array([0.1, 0.4, 0.93])
P = {
    **{f"{n} {m}": (lambda n, m: lambda: getattr(jnp, n)(A(7), A(3, k=2), m))(n, m) for n in ("convolve", "correlate") for m in ("full", "same", "valid")},
    **{f"{n} short {m}": (lambda n, m: lambda: getattr(jnp, n)(A(3), A(6, k=2), m))(n, m) for n in ("convolve", "correlate") for m in ("full", "same", "valid")},
    "convolve i32": lambda: jnp.convolve(I(4), I(3)), "convolve complex": lambda: jnp.convolve(C(5), C(3)), "correlate complex": lambda: jnp.correlate(C(5), C(3)), "correlate complex short": lambda: jnp.correlate(C(3), C(5)),
    "convolve gradient": lambda: jax.grad(lambda x, y: jnp.sum(jnp.sin(jnp.convolve(x, y))), 1)(A(7), A(3)),
    **{f"{n} {m}": (lambda n, m: lambda: getattr(jnp, n)(m))(n, m) for n in ("bartlett", "blackman", "hamming", "hanning") for m in (0, 1, 6, 7)}, "kaiser": lambda: jnp.kaiser(7, 4.5), "kaiser 0": lambda: jnp.kaiser(6, 0.0), "kaiser 1": lambda: jnp.kaiser(1, 3.0),
    "unwrap": lambda: jnp.unwrap(A(9) * 5), "unwrap axis": lambda: jnp.unwrap(A(3, 4) * 6, axis=0), "unwrap period": lambda: jnp.unwrap(A(9) * 5, period=2.0), "unwrap discont": lambda: jnp.unwrap(A(9) * 5, discont=5.0), "unwrap i32": lambda: jnp.unwrap(I(9) * 3, period=5),
    "trim_zeros": lambda: jnp.trim_zeros(jnp.array([0, 0, 1, 0, 2, 0])), "trim_zeros f": lambda: jnp.trim_zeros(jnp.array([0, 0, 1, 0, 2, 0]), "f"), "trim_zeros b": lambda: jnp.trim_zeros(jnp.array([0.0, 1.0, 0.0]), "b"), "trim_zeros all": lambda: jnp.trim_zeros(jnp.zeros(3)),
    "polyadd": lambda: jnp.polyadd(A(2), A(4, k=1)), "polyadd i32": lambda: jnp.polyadd(I(3), I(2)), "polysub": lambda: jnp.polysub(A(4), A(3, k=1)), "polymul": lambda: jnp.polymul(A(4), A(3, k=1)),
    "polydiv": lambda: jnp.polydiv(A(5), A(3, k=1))[0], "polydiv rest": lambda: jnp.polydiv(A(5), A(3, k=1))[1], "polydiv short": lambda: jnp.polydiv(A(2), A(3, k=1))[0], "polydiv short rest": lambda: jnp.polydiv(A(2), A(3, k=1))[1],
    **{f"polyder {m}": (lambda m: lambda: jnp.polyder(A(5), m))(m) for m in (0, 1, 2, 4)}, "polyder i32": lambda: jnp.polyder(I(4)), "polyint": lambda: jnp.polyint(A(4)), "polyint 2": lambda: jnp.polyint(A(4), 2, jnp.array([3.0, -1.0])), "polyint 3": lambda: jnp.polyint(A(3), 3, 2.0), "polyint 0": lambda: jnp.polyint(A(3), 0),
    "poly": lambda: jnp.poly(A(4)), "poly complex": lambda: jnp.poly(C(3)), "poly none": lambda: jnp.poly(jnp.zeros(0)), "poly matrix": lambda: jnp.real(jnp.poly(A(3, 3))),
    "roots": lambda: jnp.sort(jnp.roots(jnp.array([1.0, -6.0, 11.0, -6.0]))), "roots zeros": lambda: jnp.sort(jnp.roots(jnp.array([0.0, 2.0, 0.0, -8.0]))), "roots none": lambda: jnp.roots(jnp.array([0.0, 3.0])),
    "polyfit": lambda: jnp.polyfit(A(7), A(7, k=3), 2), "polyfit weights": lambda: jnp.polyfit(A(7), A(7, k=3), 2, w=jnp.abs(A(7)) + 0.1), "polyfit columns": lambda: jnp.polyfit(A(7), A(7, 2, k=3), 1),
    "nancumprod": lambda: jnp.nancumprod(N, 1), "nancumprod flat": lambda: jnp.nancumprod(N[0]), "nanmedian": lambda: jnp.nanmedian(N[:3], 1), "nanmedian all": lambda: jnp.nanmedian(A(3, 4)), "nanmedian keepdims": lambda: jnp.nanmedian(N[jnp.array([0, 3])], (0, 1), keepdims=True),
    **{f"nanquantile {m}": (lambda m: lambda: jnp.nanquantile(N[jnp.array([0, 1, 3])], Q, axis=1, method=m))(m) for m in "linear lower higher midpoint nearest".split()}, "nanquantile scalar": lambda: jnp.nanquantile(N[jnp.array([0, 3])], 0.3, axis=0), "nanpercentile": lambda: jnp.nanpercentile(N[jnp.array([0, 3])], jnp.array([20.0, 70.0]), axis=1, keepdims=True),
    "histogram2d": lambda: jnp.histogram2d(A(40), A(40, k=3), 4)[0], "histogram2d edges": lambda: jnp.histogram2d(A(40), A(40, k=3), 4)[2], "histogram2d range": lambda: jnp.histogram2d(A(40), A(40, k=3), 3, [(-1.0, 1.0), (-1.25, 1.25)])[0],
    "histogram2d weights": lambda: jnp.histogram2d(A(40), A(40, k=3), 3, weights=jnp.abs(A(40)))[0], "histogram2d density": lambda: jnp.histogram2d(A(40), A(40, k=3), 3, density=True)[0], "histogramdd": lambda: jnp.histogramdd(A(40, 3), [jnp.array([-2.0, 0.0, 2.0]), jnp.array([-1.0, 0.25, 1.0]), jnp.array([-1.25, 1.25])])[0],
    "setxor1d": lambda: jnp.setxor1d(I(6), jnp.array([9, -2, 3])), "setxor1d empty": lambda: jnp.setxor1d(I(3), I(3)), "unique_counts": lambda: jnp.unique_counts(I(12)).counts, "unique_inverse": lambda: jnp.unique_inverse(I(3, 4)).inverse_indices, "unique_values": lambda: jnp.unique_values(I(12)),
    "compress": lambda: jnp.compress(jnp.array([True, False, True]), A(3, 4), axis=0), "compress flat": lambda: jnp.compress(jnp.array([0, 1, 1]), A(3, 4)), "compress size": lambda: jnp.compress(jnp.array([False, True, False, True]), A(3, 4), axis=1, size=3, fill_value=7.0), "extract": lambda: jnp.extract(A(3, 4) > 0, I(3, 4)), "extract size": lambda: jnp.extract(A(3, 4) > 0, I(3, 4), size=9, fill_value=-5),
    "put": lambda: jnp.put(A(3, 4), jnp.array([1, -1, 5, 40]), A(2), inplace=False), "put clip": lambda: jnp.put(A(3, 4), jnp.array([1, -1, 40]), 9.0, mode="clip", inplace=False), "put wrap": lambda: jnp.put(A(3, 4), jnp.array([1, -1, 14]), 9.0, mode="wrap", inplace=False),
    "place": lambda: jnp.place(A(3, 4), A(3, 4) > 0, jnp.array([7.0, 8.0]), inplace=False), "fill_diagonal": lambda: jnp.fill_diagonal(A(3, 4), 9.0, inplace=False), "fill_diagonal array": lambda: jnp.fill_diagonal(A(4, 3), A(2), inplace=False), "fill_diagonal cube": lambda: jnp.fill_diagonal(A(3, 3, 3), 9.0, inplace=False),
    "ix_": lambda: A(4, 5)[jnp.ix_(jnp.array([0, 2]), jnp.array([1, 1, 4]))], "tril_indices_from": lambda: jnp.tril_indices_from(A(3, 4), 1)[1], "triu_indices_from": lambda: jnp.triu_indices_from(A(3, 4), 1)[0], "sort_complex": lambda: jnp.sort_complex(C(9)), "sort_complex real": lambda: jnp.sort_complex(A(5)), "dsplit": lambda: jnp.dsplit(A(2, 2, 4), 2)[1],
    **{f"frexp {t} {i}": (lambda t, i: lambda: jnp.frexp(jnp.array([0.0, -0.0, 1.0, -0.75, 3.0, 1e4, -1e-3, inf, -inf, nan], t))[i])(t, i) for t in ("float32", "float16", "bfloat16") for i in (0, 1)}, "frexp i32": lambda: jnp.frexp(I(7))[0],
    "spacing": lambda: jnp.spacing(jnp.array([1.0, -1.0, 1e10, -3.5, inf, nan])), "spacing f16": lambda: jnp.spacing(jnp.array([1.0, -1.0, 100.0], jnp.float16)), "i0": lambda: jnp.i0(A(11) * 4), "i0 gradient": lambda: jax.vmap(jax.grad(jnp.i0))(A(11) * 4), "i0 large": lambda: jnp.i0(jnp.array([19.0, 21.0, 50.0, -60.0])),
    "i0e": lambda: jax.scipy.special.i0e(A(11) * 40), "i1": lambda: jax.scipy.special.i1(A(11) * 4),
    "apply_along_axis": lambda: jnp.apply_along_axis(lambda v: jnp.cumsum(v) * v[0], 1, A(2, 3, 4)), "apply_along_axis scalar": lambda: jnp.apply_along_axis(jnp.max, 0, A(3, 4)), "apply_along_axis matrix": lambda: jnp.apply_along_axis(lambda v: jnp.outer(v, v), 1, A(2, 3, 4)), "apply_along_axis last": lambda: jnp.apply_along_axis(lambda v: v[:2], -1, A(2, 3, 4)),
    "piecewise": lambda: jnp.piecewise(A(9), [A(9) < -0.5, A(9) > 0.5], [lambda x: -x, lambda x: x * x, lambda x: x * 0 + 3]), "piecewise rest": lambda: jnp.piecewise(A(9), [A(9) < 0.5, A(9) < -0.5], [lambda x: x + 10, lambda x: x + 20]), "piecewise i32": lambda: jnp.piecewise(I(7), [I(7) > 0], [lambda x: x * 1.5]),
}
out = {}
for name, f in P.items():
    y = f()
    out[name] = {**io.array(y), "weak": bool(getattr(y, "weak_type", False))}
io.dump({"origin": io.origin("jax", "jaxlib") + ", CPU", "made_by": "make_core_signal.py",
         "layout": {"results": "result of each program; A = ((7 i + k) mod 11 - 5) / 4, I = (5 i + k) mod 7 - 2"}, "results": out}, "core_signal.json", depth=2)
