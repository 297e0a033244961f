"""Programs of real JAX that call LAPACK: every routine that JAX's CPU back end has, over dtypes, shapes, batches and gradients."""

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
from jax import lax
from jax._src.lax import linalg as internal  # geqrf and geqp3 have no public name

DTYPES = {"s": np.float32, "d": np.float64, "c": np.complex64, "z": np.complex128}


def matrix(shape, dtype, seed=0):
    """Entries of a fixed generator; leading sizes are a batch."""
    r = np.random.default_rng([seed, *shape])
    a = r.standard_normal(shape)
    if np.issubdtype(dtype, np.complexfloating):
        a = a + 1j * r.standard_normal(shape)
    return a.astype(dtype)


def hermitian(n, dtype, batch=()):
    a = matrix((*batch, n, n), dtype, 1)
    return (a + np.conj(np.swapaxes(a, -1, -2)) + np.diag(np.arange(n) * 3)).astype(dtype)


def up_to_phase(v):
    """Columns scaled so that their largest element is positive: LAPACKs differ in the factor."""
    k = jnp.argmax(jnp.abs(v), axis=-2, keepdims=True)
    top = jnp.take_along_axis(v, k, axis=-2)
    return v * jnp.conj(top) / jnp.abs(top)


def svd(a, **kw):
    u, s, vh = jnp.linalg.svd(a, **kw)
    k = s.shape[-1]
    return s, up_to_phase(u[..., :k]), (u[..., :k] * s[..., None, :].astype(u.dtype)) @ vh[..., :k, :], u @ jnp.conj(u.mT), vh @ jnp.conj(vh.mT)


def eigh(a, **kw):
    w, v = jnp.linalg.eigh(a, **kw)
    return w, up_to_phase(v)


def eig(a):
    w, vl, vr = lax.linalg.eig(a)
    order = jnp.argsort(w.real * 1.37 + w.imag, axis=-1)
    take = lambda v: jnp.take_along_axis(v, order[..., None, :], axis=-1)
    return jnp.take_along_axis(w, order, -1), up_to_phase(take(vl)), up_to_phase(take(vr))


def schur(a):
    t, z = lax.linalg.schur(a)
    return z @ t @ jnp.conj(z.mT), jnp.tril(t, -2), z @ jnp.conj(z.mT)


PROGRAMS = {}
for letter, dtype in DTYPES.items():
    A, B, S = matrix((5, 3), dtype), matrix((2, 3, 5), dtype), matrix((4, 4), dtype)
    H = hermitian(4, dtype, (2,))
    D = [matrix((2, 6), dtype, k) + (4 if k == 1 else 0) for k in range(3)]
    PROGRAMS |= {
        f"{letter}_getrf": (lambda a, b: (lax.linalg.lu(a), lax.linalg.lu(b)), A, B),
        f"{letter}_solve": (lambda a, b: (jnp.linalg.solve(a, b), jnp.linalg.inv(a), jnp.linalg.det(a), jnp.linalg.slogdet(a)), S, S[::-1]),
        f"{letter}_geqrf": (lambda a, b: (internal.geqrf(a), jnp.linalg.qr(a), jnp.linalg.qr(b), jnp.linalg.qr(a, mode="complete")), A, B),
        f"{letter}_geqp3": (lambda a: jsl.qr(a, pivoting=True, mode="economic"), A),
        f"{letter}_ormqr": (lambda a, c: [lax.linalg.ormqr(*internal.geqrf(a), c if left else c.T, left=left, transpose=t) for left in (True, False) for t in (True, False)],
                            A, matrix((5, 2), dtype, 7)),
        f"{letter}_gesdd": (lambda a, b: (svd(a), svd(b, full_matrices=False), jnp.linalg.svdvals(b)), A, B),
        f"{letter}_gesvd": (lambda a: lax.linalg.svd(a, algorithm=lax.linalg.SvdAlgorithm.QR, compute_uv=False), B),
        f"{letter}_syevd": (lambda a: (eigh(a), eigh(a, UPLO="U"), jnp.linalg.eigvalsh(a)), H),
        f"{letter}_geev": (lambda a: (eig(a), jnp.sort(jnp.linalg.eigvals(a))), S),
        f"{letter}_gees": (schur, S),
        f"{letter}_gehrd": (lambda a: jsl.hessenberg(a, calc_q=True), S),
        f"{letter}_sytrd": (lambda a: (lax.linalg.tridiagonal(a), lax.linalg.tridiagonal(a, lower=False)), H),
        f"{letter}_gtsv": (lambda dl, d, du, b: lax.linalg.tridiagonal_solve(dl, d, du, b), *D, matrix((2, 6, 3), dtype, 5)),
    }

A, S, H = matrix((5, 3), np.float64), matrix((4, 4), np.float64), hermitian(4, np.float64)
C, HC = matrix((4, 3), np.complex128), hermitian(3, np.complex128)
W = matrix((4, 4), np.float64, 9)
NAN = S.copy()
NAN[1, 2] = np.nan


def real(x):
    return jnp.sum(jnp.real(x) * np.arange(1, x.size + 1).reshape(x.shape) / x.size)


PROGRAMS |= {
    "qr_grad": (jax.grad(lambda a: sum(jnp.sum(jnp.sin(x)) for x in jnp.linalg.qr(a))), A),
    "qr_complex_grad": (jax.grad(lambda a: sum(real(jnp.sin(x)) for x in jnp.linalg.qr(a))), C),
    "lu_grad": (jax.grad(lambda a: jnp.sum(jnp.sin(lax.linalg.lu(a)[0]))), A),
    "eigh_grad": (jax.grad(lambda a: (lambda w, v: jnp.sum(w ** 2) + jnp.sum(W * v ** 2))(*jnp.linalg.eigh(a))), H),
    "eigh_complex_grad": (jax.grad(lambda a: (lambda w, v: real(w) + real(v * v.conj()))(*jnp.linalg.eigh(a))), HC),
    "svd_grad": (jax.grad(lambda a: (lambda u, s, v: jnp.sum(s ** 3) + real(u ** 2) + real(v ** 2))(*jnp.linalg.svd(a, full_matrices=False))), A),
    "svd_hermitian": (lambda a: jnp.linalg.svd(a, hermitian=True, compute_uv=False), H),
    "eigvals_grad": (jax.grad(lambda a: jnp.sum(jnp.abs(jnp.linalg.eigvals(a)))), S),
    "solve_grad": (jax.grad(lambda a, b: jnp.sum(jnp.sin(jnp.linalg.solve(a, b))), argnums=(0, 1)), S, W),
    "solve_hessian": (jax.hessian(lambda b: jnp.sum(jnp.sin(jnp.linalg.solve(S, b)))), W[0]),
    "det_grad": (jax.grad(lambda a: jnp.linalg.det(a) + jnp.linalg.slogdet(a)[1]), S),
    "pinv_lstsq": (lambda a, b: (jnp.linalg.pinv(a), jnp.linalg.lstsq(a, b)), A, matrix((5, 2), np.float64, 3)),
    "norms": (lambda a: [jnp.linalg.norm(a, ord=o) for o in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)] + [jnp.linalg.cond(a), jnp.linalg.matrix_rank(a)], A),
    "expm": (lambda a: (jsl.expm(a), jsl.expm(a * 20)), S / 4),
    "expm_f32": (lambda a: jsl.expm(a), (S / 4).astype(np.float32)),
    "sqrtm": (lambda a: jsl.sqrtm(a @ a.T), S),
    "lu_factor_solve": (lambda a, b: (jsl.lu_solve(jsl.lu_factor(a), b), jsl.lu_solve(jsl.lu_factor(a), b, trans=1), jsl.lu(a)), S, W),
    "cho_factor_solve": (lambda a, b: jsl.cho_solve(jsl.cho_factor(a), b), H @ H + np.eye(4), W),
    "polar": (lambda a: jsl.polar(a), A),
    "linalg_not_finite": (lambda a: (jnp.linalg.eigh(a), jnp.linalg.svd(a), jnp.linalg.eig(a), lax.linalg.schur(a)), NAN),
    "linalg_singular": (lambda a: (jnp.linalg.inv(a), jnp.linalg.slogdet(a), lax.linalg.lu(a)), np.ones((3, 3))),
    "linalg_empty": (lambda a: (jnp.linalg.eigh(a), lax.linalg.lu(a), jnp.linalg.qr(a[:, :0]), jnp.linalg.svd(a, full_matrices=False)), np.zeros((2, 0, 0))),
    "linalg_scan": (lambda a: lax.scan(lambda c, _: ((lambda q, r: (q @ c @ q.T, jnp.diagonal(r)))(*jnp.linalg.qr(c))), a, None, length=3), H),
    "linalg_vmap": (jax.vmap(lambda a: jnp.linalg.eigvalsh(a) @ jnp.linalg.solve(a, jnp.ones(4))), np.stack([H, 2 * H + np.eye(4)])),
}
WIDE = {name for name, (_, *args) in PROGRAMS.items() if any(np.asarray(a).dtype in (np.float64, np.complex128) for a in args)}
