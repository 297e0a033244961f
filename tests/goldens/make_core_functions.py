"""Writes core_functions.json: values of jax.numpy and jax.lax functions by name of a small program."""
import golden_io as io

import warnings

import jax
import jax.numpy as jnp
import numpy as np

warnings.filterwarnings("ignore")
inf, nan = float("inf"), float("nan")
# The reader has the same: floats A, integers I, bools B by formula, and N with special values.
A = lambda *s, k=0: jnp.asarray((((np.arange(int(np.prod(s))) * 7 + k) % 11 - 5) / 4).astype(np.float32)).reshape(s)
I = lambda *s, k=0: jnp.asarray(((np.arange(int(np.prod(s))) * 5 + k) % 7 - 2).astype(np.int32)).reshape(s)
B = lambda *s: A(*s) > 0
N = jnp.array([[1.0, nan, -2.0, 0.5], [nan, nan, nan, nan], [inf, 3.0, -inf, 0.0], [-0.0, 2.0, 2.0, -1.5]], jnp.float32)
P = {
    # creation
    "logspace": lambda: jnp.logspace(0, 2, 5), "geomspace": lambda: jnp.geomspace(1, 1000, 4), "identity": lambda: jnp.identity(3), "meshgrid xy 0": lambda: jnp.meshgrid(A(3), A(2))[0],
    "meshgrid xy 1": lambda: jnp.meshgrid(A(3), A(2))[1], "meshgrid ij": lambda: jnp.meshgrid(A(3), A(2), indexing="ij")[1], "indices": lambda: jnp.indices((2, 3)),
    "tril_indices": lambda: jnp.tril_indices(3, -1)[0], "triu_indices": lambda: jnp.triu_indices(3, 1, 4)[1], "vander": lambda: jnp.vander(A(3)), "vander 2": lambda: jnp.vander(A(3), 2, increasing=True),
    # elementwise
    "fmax": lambda: jnp.fmax(N, 0.25), "fmin": lambda: jnp.fmin(N, 0.25), "logaddexp2": lambda: jnp.logaddexp2(A(4), A(4, k=3)), "heaviside": lambda: jnp.heaviside(N, 0.5), "copysign": lambda: jnp.copysign(A(4), N[3]),
    "signbit": lambda: jnp.signbit(N), "signbit i32": lambda: jnp.signbit(I(4)), "sinc": lambda: jnp.sinc(A(11)), "sinc grad": lambda: jax.vmap(jax.grad(jnp.sinc))(A(11)), "sinc hessian at 0": lambda: jax.grad(jax.grad(jnp.sinc))(0.0),
    "deg2rad": lambda: jnp.deg2rad(A(4) * 90), "rad2deg": lambda: jnp.rad2deg(A(4)), "angle": lambda: jnp.angle(A(5)), "angle complex": lambda: jnp.angle(A(4) + 1j * A(4, k=2)), "rint": lambda: jnp.rint(A(6) * 2), "rint i32": lambda: jnp.rint(I(3)),
    "isposinf": lambda: jnp.isposinf(N), "isneginf": lambda: jnp.isneginf(N), "bitwise_count": lambda: jnp.bitwise_count(I(7) * 37), "polyval": lambda: jnp.polyval(A(4), A(5)), "round 2": lambda: jnp.round(A(6) * 1.2345, 2), "round -1": lambda: jnp.round(A(6) * 50, -1),
    "gcd": lambda: jnp.gcd(I(6) * 6, I(6, k=3) * 4), "lcm": lambda: jnp.lcm(I(6) * 6, I(6, k=3) * 4), "divmod 0": lambda: jnp.divmod(A(6), 0.75)[0], "divmod 1": lambda: jnp.divmod(A(6), 0.75)[1], "modf 0": lambda: jnp.modf(A(6) * 3)[0], "modf 1": lambda: jnp.modf(A(6) * 3)[1],
    "ldexp": lambda: jnp.ldexp(A(4), I(4)), "float_power": lambda: jnp.float_power(I(4) + 3, 2), "isclose": lambda: jnp.isclose(N, N + 1e-6), "isclose nan": lambda: jnp.isclose(N, N, equal_nan=True), "isclose i32": lambda: jnp.isclose(I(4), I(4) + 1), "allclose": lambda: jnp.allclose(A(4), A(4) * (1 + 1e-6)),
    "array_equal": lambda: jnp.array_equal(A(4), A(4)), "array_equal shapes": lambda: jnp.array_equal(A(4), A(3)), "array_equal nan": lambda: jnp.array_equal(N, N, equal_nan=True), "array_equiv": lambda: jnp.array_equiv(jnp.ones((2, 3)), jnp.ones(3)),
    "nan_to_num": lambda: jnp.nan_to_num(N, nan=7.0, posinf=8.0, neginf=-8.0), "select": lambda: jnp.select([A(4) > 0.5, A(4) > 0], [A(4), A(4) * 10], -1.0), "choose": lambda: jnp.choose(jnp.array([0, 1, 1, 0]), [A(4), A(4, k=3)]),
    "view u32": lambda: A(3).view(jnp.uint32), "view u8": lambda: A(2).view(jnp.uint8), "view wider": lambda: jnp.arange(8, dtype=jnp.uint8).view(jnp.uint16),
    # sums along axes
    "cumulative_sum": lambda: jnp.cumulative_sum(A(3, 4), axis=1, include_initial=True), "cumulative_sum i8": lambda: jnp.cumulative_sum(I(4).astype(jnp.int8)), "cumulative_prod": lambda: jnp.cumulative_prod(A(4)), "diff": lambda: jnp.diff(A(3, 4), 2), "diff bool": lambda: jnp.diff(B(5)), "diff axis 0": lambda: jnp.diff(A(3, 4), axis=0),
    "ediff1d": lambda: jnp.ediff1d(A(2, 3)), "trapezoid": lambda: jnp.trapezoid(A(3, 4), dx=0.5), "trapezoid x": lambda: jnp.trapezoid(A(4), jnp.arange(4.0) ** 2), "gradient": lambda: jnp.gradient(A(3, 4), 0.5, axis=1),
    # shapes
    "moveaxis lists": lambda: jnp.moveaxis(A(2, 3, 4), [0, 1], [-1, 0]), "rollaxis": lambda: jnp.rollaxis(A(2, 3, 4), 2), "matrix_transpose": lambda: jnp.matrix_transpose(A(2, 3, 4)), "atleast_2d": lambda: jnp.atleast_2d(A(3)), "atleast_3d": lambda: jnp.atleast_3d(A(2, 3)), "append": lambda: jnp.append(A(2, 2), A(3)),
    "append axis": lambda: jnp.append(A(2, 2), A(1, 2), 0), "vstack": lambda: jnp.vstack([A(3), A(3, k=1)]), "hstack": lambda: jnp.hstack([A(2, 1), A(2, 2)]), "hstack 1d": lambda: jnp.hstack([A(2), A(3)]), "dstack": lambda: jnp.dstack([A(2, 3), A(2, 3, k=1)]), "column_stack": lambda: jnp.column_stack([A(3), A(3, 2)]),
    "block": lambda: jnp.block([[A(2, 2), A(2, 1)], [A(1, 2), A(1, 1)]]), "array_split": lambda: jnp.array_split(A(7), 3)[1], "hsplit": lambda: jnp.hsplit(A(2, 4), 2)[1], "repeat counts": lambda: jnp.repeat(A(3, 2), jnp.array([2, 0, 3]), axis=0), "repeat total": lambda: jnp.repeat(A(3), jnp.array([2, 0, 3]), total_repeat_length=7),
    "rot90": lambda: jnp.rot90(A(2, 3)), "rot90 3": lambda: jnp.rot90(A(2, 3), 3), "roll flat": lambda: jnp.roll(A(2, 3), 2), "pad edge": lambda: jnp.pad(A(2, 3), ((1, 2), (0, 1)), "edge"), "pad reflect": lambda: jnp.pad(A(4), 6, "reflect"), "pad symmetric": lambda: jnp.pad(A(3), (4, 2), "symmetric"), "pad wrap": lambda: jnp.pad(A(3), (4, 5), "wrap"),
    "insert": lambda: jnp.insert(A(3, 2), 1, 9.0, axis=0), "delete": lambda: jnp.delete(A(3, 2), -1, axis=0), "resize": lambda: jnp.resize(A(2, 3), (3, 3)), "diagflat": lambda: jnp.diagflat(A(2), 1), "diagonal": lambda: jnp.diagonal(A(2, 3, 4), 1, 1, 2), "diagonal 0 2": lambda: jnp.diagonal(A(2, 3, 4), -1, 0, 2), "trace": lambda: jnp.trace(A(3, 4)), "trace i32": lambda: jnp.trace(I(3, 3), 1),
    "unravel_index": lambda: jnp.unravel_index(jnp.array([5, 0, -1, 99]), (2, 3))[1], "ravel_multi_index": lambda: jnp.ravel_multi_index((jnp.array([0, 1]), jnp.array([2, 1])), (2, 3)), "packbits": lambda: jnp.packbits(B(11)), "packbits axis little": lambda: jnp.packbits(B(2, 10), axis=1, bitorder="little"),
    "unpackbits": lambda: jnp.unpackbits(jnp.array([5, 200], jnp.uint8)), "unpackbits axis little": lambda: jnp.unpackbits(jnp.array([[5], [200]], jnp.uint8), axis=1, bitorder="little"),
    # products
    "tensordot lists": lambda: jnp.tensordot(A(2, 3, 4), A(4, 2, 5), ([0, 2], [1, 0])), "vecdot": lambda: jnp.vecdot(A(2, 3), A(3)), "matvec": lambda: jnp.matvec(A(2, 2, 3), A(3)), "vecmat": lambda: jnp.vecmat(A(2), A(4, 2, 3)), "kron": lambda: jnp.kron(A(2, 2), A(1, 3)), "kron vectors": lambda: jnp.kron(A(2), A(3)), "cross": lambda: jnp.cross(A(2, 3), A(2, 3, k=4)), "cross 2": lambda: jnp.cross(A(2), A(2, k=4)),
    "cross 2 3": lambda: jnp.cross(A(2), A(3)), "einsum chain": lambda: jnp.einsum("ab,bc,cd,de,ef->af", A(2, 3), A(3, 4), A(4, 2), A(2, 5), A(5, 3)),
    # statistics
    "average": lambda: jnp.average(A(3, 4), 1, jnp.arange(1.0, 5.0)), "average all": lambda: jnp.average(I(4)), "median": lambda: jnp.median(A(3, 4), 1), "median all": lambda: jnp.median(A(3, 4)), "median even": lambda: jnp.median(A(4)), "median nan": lambda: jnp.median(N, 1), "median i32": lambda: jnp.median(I(5)), "median keepdims": lambda: jnp.median(A(3, 4), (0, 1), keepdims=True),
    **{f"quantile {m}": (lambda m: lambda: jnp.quantile(A(3, 5), jnp.array([0.1, 0.4, 0.5, 0.93]), axis=1, method=m))(m) for m in "linear lower higher midpoint nearest".split()},
    "quantile scalar": lambda: jnp.quantile(A(3, 5), 0.3, axis=0), "quantile clamped": lambda: jnp.quantile(A(5), jnp.array([-1.0, 2.0])), "percentile": lambda: jnp.percentile(A(3, 5), 40.0), "ptp": lambda: jnp.ptp(A(3, 4), 1), "cov": lambda: jnp.cov(A(3, 5)), "cov vector": lambda: jnp.cov(A(5)), "corrcoef": lambda: jnp.corrcoef(A(3, 5)),
    **{f"{n} axis": (lambda f: lambda: f(N, axis=1))(getattr(jnp, n)) for n in "nansum nanprod nanmean nanvar nanstd nanmax nanmin nanargmax nanargmin nancumsum".split()},
    "nanmean all": lambda: jnp.nanmean(N[0]), "nanvar ddof": lambda: jnp.nanvar(N, axis=1, ddof=1),
    "bincount": lambda: jnp.bincount(jnp.array([1, 3, 1, 0])), "bincount weights": lambda: jnp.bincount(jnp.array([1, 3, 1, -2]), A(4), length=3), "bincount minlength": lambda: jnp.bincount(jnp.array([1, 0]), minlength=5), "histogram": lambda: jnp.histogram(A(11), 4)[0], "histogram edges": lambda: jnp.histogram(A(11), 4)[1],
    "histogram range": lambda: jnp.histogram(A(11), 3, (-1.0, 1.0))[0], "histogram density": lambda: jnp.histogram(A(11), jnp.array([-2.0, 0, 0.5, 3]), density=True)[0], "histogram flat": lambda: jnp.histogram(jnp.ones(3), 2)[1], "histogram weights": lambda: jnp.histogram(A(11), 4, weights=A(11, k=5))[0],
    "digitize": lambda: jnp.digitize(A(6), jnp.array([-1.0, 0, 1])), "digitize right": lambda: jnp.digitize(A(6), jnp.array([-1.0, 0.25, 1]), right=True), "digitize descending": lambda: jnp.digitize(A(6), jnp.array([1.0, 0, -1])),
    # searches
    "nonzero 0": lambda: jnp.nonzero(B(3, 4))[0], "nonzero 1": lambda: jnp.nonzero(B(3, 4))[1], "nonzero size": lambda: jnp.nonzero(B(3, 4), size=9, fill_value=-1)[1], "nonzero cut": lambda: jnp.nonzero(B(3, 4), size=2)[1], "flatnonzero": lambda: jnp.flatnonzero(B(3, 4)), "argwhere": lambda: jnp.argwhere(B(3, 4)),
    "unique": lambda: jnp.unique(I(3, 4)), "unique nan": lambda: jnp.unique(N), **{f"unique size {k} {i}": (lambda k, i: lambda: jnp.unique(I(3, 4), size=k, return_index=True, return_inverse=True, return_counts=True)[i])(k, i) for k, i in ((9, 0), (9, 1), (9, 3), (3, 0))},
    "unique indices": lambda: jnp.unique(I(12), return_index=True)[1], "unique inverse": lambda: jnp.unique(I(12), return_inverse=True)[1], "unique counts": lambda: jnp.unique(I(12), return_counts=True)[1], "unique counts cut": lambda: jnp.unique(I(12), return_counts=True, size=3)[1], "unique fill": lambda: jnp.unique(I(12), size=9, fill_value=50),
    "isin": lambda: jnp.isin(I(3, 4), jnp.array([0, 3])), "isin invert": lambda: jnp.isin(I(4), jnp.array([0, 3]), invert=True), "union1d": lambda: jnp.union1d(I(4), jnp.array([9, -2])), "intersect1d": lambda: jnp.intersect1d(I(6), jnp.array([9, -2, 3])), "setdiff1d": lambda: jnp.setdiff1d(I(6), jnp.array([9, -2, 3])),
    "lexsort": lambda: jnp.lexsort((A(8), I(8) // 3)), "interp": lambda: jnp.interp(A(9) * 2, jnp.array([-1.0, 0, 0.5, 2]), jnp.array([3.0, 1, 4, -1])), "interp ends": lambda: jnp.interp(A(9) * 2, jnp.array([-1.0, 0, 0.5, 1]), jnp.array([3.0, 1, 4, -1]), left=-9.0, right=9.0),
    "searchsorted nan": lambda: jnp.searchsorted(jnp.array([1.0, 2, nan]), jnp.array([nan, 0, inf, 2])), "searchsorted nan right": lambda: jnp.searchsorted(jnp.array([1.0, 2, nan, nan]), jnp.array([nan, 0, inf, 2]), side="right"), "searchsorted empty": lambda: jnp.searchsorted(jnp.zeros(0), A(2)),
    "put_along_axis": lambda: jnp.put_along_axis(A(2, 3), jnp.array([[1], [2]]), 9.0, axis=1, inplace=False),
    # linalg without decompositions
    "norm": lambda: jnp.linalg.norm(A(3, 4)), "norm axis": lambda: jnp.linalg.norm(A(3, 4), axis=1), "norm 1": lambda: jnp.linalg.norm(A(4), 1), "norm inf": lambda: jnp.linalg.norm(A(4), inf), "norm -inf": lambda: jnp.linalg.norm(A(4), -inf), "norm 0": lambda: jnp.linalg.norm(A(5), 0), "norm 3": lambda: jnp.linalg.norm(A(5), 3), "norm matrix 1": lambda: jnp.linalg.norm(A(3, 4), 1), "norm matrix inf": lambda: jnp.linalg.norm(A(3, 4), inf),
    "norm keepdims": lambda: jnp.linalg.norm(A(3, 4), axis=1, keepdims=True), "matrix_power": lambda: jnp.linalg.matrix_power(A(3, 3), 5), "multi_dot": lambda: jnp.linalg.multi_dot([A(2, 3), A(3, 4), A(4, 2)]),
}
out = {}
for name, f in P.items():
    y = f()
    out[name] = {**io.array(y), "weak": bool(getattr(y, "weak_type", False))}
io.dump({"origin": io.origin("jax", "jaxlib") + ", CPU", "made_by": "make_core_functions.py",
         "layout": {"results": "result of each program; A = ((7 i + k) mod 11 - 5) / 4, I = (5 i + k) mod 7 - 2"}, "results": out}, "core_functions.json", depth=2)
