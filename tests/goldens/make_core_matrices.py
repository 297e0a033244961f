"""Writes core_matrices.json: linear algebra in f64 and c128, values and derivatives."""
import golden_io as io

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
from jax import lax
from jax._src.lax.linalg import geqrf

la, ll = jnp.linalg, lax.linalg


def M(*shape, k=0):
    i = np.arange(int(np.prod(shape)))
    return jnp.asarray(((i * i * 5 + i * 7 + k) % 31 - 15) / 8).reshape(shape)


def Z(*shape, k=0):
    return M(*shape, k=k) + 1j * M(*shape, k=k + 9)


def flat(*xs):
    """All results in one real vector: real parts, then, of complex ones, imaginary parts."""
    parts = []
    for x in jax.tree.leaves(xs):
        parts += [jnp.real(x).ravel().astype(jnp.float64)] + ([jnp.imag(x).ravel()] if jnp.iscomplexobj(x) else [])
    return jnp.concatenate(parts)


def loss(*xs):
    v = flat(*xs)
    return jnp.sum(jnp.sin(v) * M(v.size, k=4))


def squared(x):
    """Without phase."""
    return jnp.real(x * jnp.conj(x))


def grad(f):
    return lambda *a: flat(jax.grad(lambda *b: loss(f(*b)), argnums=tuple(range(len(a))))(*a))


def twice(f):
    return lambda a: flat(jax.grad(lambda b: jnp.sum(squared(jax.grad(lambda c: loss(f(c)))(b))))(a))


def sums(w):
    return [jnp.sum(w ** k) for k in (1, 2, 3)]


P = {}
for t, A in (("d", M), ("z", Z)):
    H = lambda n, k=0: (A(n, n, k=k) + jnp.conj(A(n, n, k=k).T)) / 2 + jnp.diag(3.0 * jnp.arange(n))
    PD = lambda n: A(n, n) @ jnp.conj(A(n, n).T) + jnp.eye(n)
    S = lambda n, k=0: A(n, n, k=k) + 3 * jnp.eye(n)
    tall, wide, s4, h4, p4 = A(5, 3), A(3, 5, k=2), S(4), H(4), PD(4)
    eigh = lambda x: (lambda w, v: (w, squared(v)))(*la.eigh(x))
    svd = lambda x: (lambda u, s, v: (s, squared(u), squared(v), u @ v))(*la.svd(x, full_matrices=False))
    eig = lambda x: (lambda w, vl, vr: (sums(w), jnp.sum(squared(vl) * squared(w), -1), jnp.sum(squared(vr) * squared(w), -1)))(*ll.eig(x, enable_eigvec_derivs=True))
    d = [A(2, 5, k=k) + (4 if k == 1 else 0) for k in range(3)]
    Q = {
        "qr": lambda: (la.qr(tall), la.qr(wide), la.qr(tall, mode="complete"), la.qr(A(2, 4, 3))),
        "qr r raw": lambda: (la.qr(tall, mode="r"), la.qr(wide, mode="raw")),
        "qr pivoting": lambda: (jsl.qr(tall, pivoting=True, mode="economic"), jsl.qr(wide, pivoting=True)),
        "lu": lambda: (ll.lu(tall), ll.lu(wide), ll.lu(A(2, 3, 3)), jsl.lu(tall), jsl.lu(wide, permute_l=True)),
        "svd": lambda: (svd(tall), svd(wide), svd(A(2, 3, 3)), la.svdvals(wide), [squared(x) for x in la.svd(s4)]),
        "svd hermitian": lambda: (lambda u, s, vh: (s, squared(u), (u * s) @ vh))(*la.svd(h4, hermitian=True)),
        "eigh": lambda: (eigh(h4), eigh(H(3, 5)), la.eigvalsh(s4, UPLO="U", symmetrize_input=False)),
        "eig": lambda: (eig(s4), sums(la.eigvals(A(3, 3, k=1)))),
        "solve": lambda: (la.solve(s4, A(4, k=3)), la.solve(s4, A(4, 2, k=3)), la.solve(A(2, 3, 3), A(3, 2)), la.solve(s4, A(2, 4, 2)), jsl.solve(p4, A(4, k=1), assume_a="pos")),
        "inv": lambda: (la.inv(s4), la.inv(A(2, 3, 3)), la.matrix_power(s4, -2), la.matrix_power(s4, 5)),
        "det": lambda: (la.det(s4), la.det(A(2, 2)), la.det(A(2, 3, 3)), la.det(A(1, 1, k=3)), la.slogdet(s4), la.slogdet(A(2, 2)), la.slogdet(A(2, 5, 5)), la.slogdet(jnp.ones((3, 3)))),
        "pinv": lambda: (la.pinv(tall), la.pinv(wide), la.pinv(h4, hermitian=True), la.pinv(tall @ wide, rtol=1e-3)),
        "lstsq": lambda: (la.lstsq(tall, A(5, k=1)), la.lstsq(wide, A(3, 2)), la.lstsq(tall @ wide, A(5, 2))),
        "norms": lambda: [la.norm(tall, ord=o) for o in (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)] + [la.norm(A(2, 3, 4), ord=o, axis=(2, 0), keepdims=True) for o in ("nuc", 1, 2)]
        + [la.norm(A(7), ord=o) for o in (None, 0, 1, 2, 3, 0.5, np.inf, -np.inf)] + [la.cond(s4, p) for p in (None, 2, -2, 1, -1, np.inf, "fro", "nuc")] + [la.matrix_norm(A(2, 3, 4), ord=2)],
        "rank": lambda: (la.matrix_rank(tall @ wide), la.matrix_rank(s4, rtol=3.0), la.matrix_rank(h4, hermitian=True), la.matrix_rank(A(4)), la.matrix_rank(jnp.zeros((2, 3, 4)))),
        "tensors": lambda: (la.tensorinv(A(4, 6, 8, 3), ind=2)[:2, :1], la.tensorsolve(A(2, 3, 6) + jnp.eye(6).reshape(2, 3, 6), A(2, 3)), la.tensorsolve(A(2, 6, 3) + 1, A(2, 3), axes=(1,)), la.multi_dot([A(2, 5), tall, A(3)])),
        "expm": lambda: (jsl.expm(A(3, 3) / 32), jsl.expm(A(3, 3) / 4), jsl.expm(A(2, 3, 3)), jsl.expm(jnp.triu(s4), upper_triangular=True), jsl.expm_frechet(A(3, 3) / 4, A(3, 3, k=1))),
        "sqrtm": lambda: (jsl.sqrtm(p4), jsl.sqrtm(s4)),
        "cho": lambda: (jsl.cho_solve(jsl.cho_factor(p4), A(4)), jsl.cho_solve(jsl.cho_factor(p4, lower=True), A(4, 2)), jnp.tril(jsl.cho_factor(p4, lower=True)[0])),
        "lu_solve": lambda: [jsl.lu_solve(jsl.lu_factor(s4), A(4, 2), trans=k) for k in range(3)] + [jsl.lu_solve(jsl.lu_factor(s4), A(4))],
        "householder": lambda: (ll.householder_product(*geqrf(tall)), [ll.ormqr(*geqrf(tall), A(5, 2) if left else A(2, 5), left=left, transpose=tr) for left in (True, False) for tr in (True, False)]),
        "qr_multiply": lambda: (jsl.qr_multiply(tall, A(2, 5)), jsl.qr_multiply(tall, A(3, 2), mode="left"), jsl.qr_multiply(wide, A(3), conjugate=True)),
        "schur": lambda: (lambda f, z: (f @ f, z @ f @ jnp.conj(z.T)))(*jsl.schur(h4)),
        "hessenberg": lambda: (jsl.hessenberg(s4, calc_q=True), jsl.hessenberg(A(1, 1), calc_q=True)),
        "tridiagonal": lambda: (ll.tridiagonal(h4), ll.tridiagonal(h4, lower=False)),
        "tridiagonal_solve": lambda: ll.tridiagonal_solve(*d, A(2, 5, 3)),
        "polar": lambda: (jsl.polar(tall, method="svd"), jsl.polar(s4, side="left", method="svd")),
        "matrices": lambda: (jsl.block_diag(tall, A(2), A(1, 2)), jsl.toeplitz(A(3), A(4, k=1)), jsl.toeplitz(A(3)), jsl.hankel(A(3), A(2)), jsl.hankel(A(3)), jsl.circulant(A(4)), jsl.companion(A(4) + 2)),
        "sylvester": lambda: jsl.solve_sylvester(S(3), S(2, k=1), A(3, 2)),
        "qr grad": lambda: (grad(la.qr)(tall), grad(la.qr)(wide), grad(lambda x: la.qr(x, mode="complete"))(tall), grad(la.qr)(s4), grad(lambda x: jsl.qr(x, pivoting=True)[:2])(s4)),
        "lu grad": lambda: [grad(lambda x: ll.lu(x)[0])(x) for x in (tall, wide, s4)],
        "eigh grad": lambda: (grad(eigh)(h4), grad(la.eigvalsh)(h4), grad(la.eigvalsh)(jnp.eye(3, dtype=h4.dtype))),
        "svd grad": lambda: (grad(svd)(tall), grad(svd)(wide), grad(svd)(s4), grad(la.svdvals)(wide), grad(la.svdvals)(jnp.eye(3, dtype=h4.dtype))),
        "eig grad": lambda: (grad(lambda x: sums(la.eigvals(x)))(s4), grad(eig)(s4)),
        "solve grad": lambda: (grad(la.solve)(s4, A(4, 2)), grad(la.solve)(s4, A(4)), grad(lambda a, b: jsl.solve(a, b, assume_a="pos"))(p4, A(4)), grad(la.inv)(s4)),
        "det grad": lambda: [grad(la.det)(x) for x in (s4, A(2, 2), A(3, 3), A(1, 1), jnp.diag(jnp.array([0.0, 2, 3, 1], h4.dtype)))] + [grad(la.slogdet)(x) for x in (s4, A(2, 2), A(1, 1) + 1)],
        "pinv grad": lambda: (grad(la.pinv)(tall), grad(la.pinv)(wide), grad(lambda x: la.pinv(x, hermitian=True))(h4), grad(lambda a, b: la.lstsq(a, b)[0])(tall, A(5))),
        "norm grad": lambda: [grad(lambda x: la.norm(x, ord=o))(tall) for o in ("fro", "nuc", 2, -2, 1, np.inf)] + [grad(la.cond)(s4)],
        "expm grad": lambda: (grad(jsl.expm)(A(3, 3) / 4), grad(jsl.expm)(A(2, 3, 3) / 2)),
        "tridiagonal_solve grad": lambda: grad(ll.tridiagonal_solve)(*d, A(2, 5, 3)),
        "lu_solve grad": lambda: [grad(lambda a, b: jsl.lu_solve(jsl.lu_factor(a), b, trans=k))(s4, A(4)) for k in range(3)],
        "second qr": lambda: twice(la.qr)(S(3)),
        "second eigh": lambda: twice(eigh)(H(3)),
        "second svd": lambda: twice(svd)(A(4, 3)),
        "second inv": lambda: twice(la.inv)(p4),
        "second det": lambda: (twice(la.det)(s4), twice(lambda x: la.slogdet(x)[1])(s4)),
        "second lu": lambda: twice(lambda x: ll.lu(x)[0])(S(3)),
        "second pinv": lambda: twice(la.pinv)(tall),
        "mapped": lambda: (jax.vmap(eigh)(jnp.stack([h4, 2 * h4])), jax.vmap(la.solve, in_axes=(None, 2))(s4, A(4, 2, 3)), jax.vmap(grad(svd), in_axes=1)(A(4, 2, 3)), jax.vmap(la.det)(A(3, 4, 4)), jax.vmap(jax.vmap(la.qr))(A(2, 2, 3, 2))),
    }
    P |= {f"{n} {t}": flat(f()) for n, f in Q.items()}  # now, while A and what is made of it stand

V = jnp.vectorize
P |= {
    "degenerate eigh": grad(lambda x: la.eigh(x)[1])(jnp.eye(3)),
    "degenerate svd": grad(lambda x: la.svd(x)[0])(jnp.eye(3)),
    "degenerate tall svd": grad(lambda x: la.svd(x, full_matrices=False)[0])(jnp.zeros((3, 2)).at[0, 0].set(1.0)),
    "special": flat(jsl.hilbert(3), jsl.pascal(4), jsl.pascal(3, kind="lower"), jsl.pascal(3, kind="upper"), jsl.hadamard(4), jsl.dft(3), jsl.dft(4, scale="n"), jsl.dft(4, scale="sqrtn")),
    "vectorize": flat(V(jnp.dot, signature="(n),(n)->()")(M(2, 1, 3), M(4, 3)), V(la.solve, signature="(n,n),(n)->(n)")(M(2, 3, 3), M(3)), V(lambda a, b: a * b + 1)(M(2, 1), M(3)),
                              V(lambda a: (a.sum(), a @ a.T), signature="(n,m)->(),(n,n)")(M(2, 3, 2, 2))),
}
io.dump({"origin": io.origin("jax", "jaxlib") + ", CPU, x64", "made_by": "make_core_matrices.py",
         "layout": {"results": "all results of a program in one vector, real parts before imaginary ones"},
         "results": {n: io.array(v) for n, v in P.items()}}, "core_matrices.json", depth=2)
