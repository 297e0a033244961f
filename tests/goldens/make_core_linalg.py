"""Writes core_linalg.json: Fourier transforms, triangular systems, special functions and samplers."""
import golden_io as io

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import jax.scipy.special as jss
import numpy as np
from jax import lax, random

A = lambda *s, k=0: jnp.asarray((((np.arange(int(np.prod(s))) * 7 + k) % 11 - 5) / 4).astype(np.float32)).reshape(s)
C = lambda *s: A(*s) + 1j * A(*s, k=3)
S = A(3, 3) @ A(3, 3).T + jnp.eye(3)
L = jnp.tril(A(3, 3)) + 3.0 * jnp.eye(3)
ch, st, key = jnp.linalg.cholesky, jsl.solve_triangular, random.key(42)
w4 = jnp.array([.1, .2, .3, .4], jnp.float32)
P = {
    "fft": lambda: jnp.fft.fft(C(5)), "fft real": lambda: jnp.fft.fft(A(2, 4)), "fft n": lambda: jnp.fft.fft(C(2, 3), 5), "fft cut axis 0": lambda: jnp.fft.fft(C(4, 2), 3, 0), "ifft": lambda: jnp.fft.ifft(C(6)), "ifft ortho": lambda: jnp.fft.ifft(C(6), norm="ortho"),
    "fft forward": lambda: jnp.fft.fft(C(6), norm="forward"), "rfft": lambda: jnp.fft.rfft(A(7)), "rfft even": lambda: jnp.fft.rfft(A(2, 6)), "irfft": lambda: jnp.fft.irfft(C(4)), "irfft odd": lambda: jnp.fft.irfft(C(4), 7), "fft2": lambda: jnp.fft.fft2(A(3, 4)),
    "ifftn": lambda: jnp.fft.ifftn(C(2, 3, 2)), "rfftn": lambda: jnp.fft.rfftn(A(2, 3, 4)), "irfft2": lambda: jnp.fft.irfft2(C(3, 3)), "fftfreq": lambda: jnp.fft.fftfreq(5, 0.5), "rfftfreq": lambda: jnp.fft.rfftfreq(6), "fftshift": lambda: jnp.fft.fftshift(A(5)), "ifftshift": lambda: jnp.fft.ifftshift(A(3, 4), 1),
    "fft grad": lambda: jax.grad(lambda x: jnp.sum(jnp.abs(jnp.fft.fft(x)) ** 2 * A(5, k=2)))(A(5)), "rfft grad": lambda: jax.grad(lambda x: jnp.sum(jnp.abs(jnp.fft.rfft(x)) ** 2 * A(4, k=2)))(A(6)),
    "rfft odd grad": lambda: jax.grad(lambda x: jnp.sum(jnp.real(jnp.fft.rfft(x)) * A(4, k=2)))(A(7)), "irfft grad": lambda: jax.grad(lambda x: jnp.sum(jnp.fft.irfft(x + 1j * x) ** 2 * A(6, k=2)))(A(4)),
    "cholesky": lambda: ch(S), "cholesky upper": lambda: ch(S, upper=True), "cholesky batch": lambda: ch(jnp.stack([S, S * 2])), "cholesky grad": lambda: jax.grad(lambda x: jnp.sum(ch(x) * A(3, 3, k=4)))(S),
    "cholesky hessian": lambda: jax.grad(lambda x: jnp.sum(jax.grad(lambda y: jnp.sum(ch(y) * A(3, 3, k=4)))(x) ** 2))(S),
    "solve_triangular": lambda: st(L, A(3), lower=True), "solve_triangular upper": lambda: st(L.T, A(3, 2)), "solve_triangular transposed": lambda: st(L, A(3, 2), lower=True, trans=1), "solve_triangular unit": lambda: st(L, A(3, 2), lower=True, unit_diagonal=True),
    "solve_triangular grad a": lambda: jax.grad(lambda a: jnp.sum(jnp.sin(st(a, A(3, 2), lower=True))))(L), "solve_triangular grad b": lambda: jax.grad(lambda b: jnp.sum(jnp.sin(st(L, b, lower=True, trans=1))))(A(3, 2)), "cho_solve": lambda: jsl.cho_solve((ch(S), True), A(3)),
    "gammaln": lambda: jss.gammaln(A(11) + 3), "gammaln grad": lambda: jax.vmap(jax.grad(jss.gammaln))(A(11) + 3), "digamma": lambda: jss.digamma(A(11) + 3), "polygamma": lambda: jss.polygamma(2, A(11) + 3), "zeta": lambda: jss.zeta(A(5) + 4, 2.0), "i1e": lambda: jss.i1e(A(11)),
    "betaln": lambda: jss.betaln(A(5) + 3, 2.0), "xlog1py": lambda: jss.xlog1py(A(5), A(5, k=2) + 2), "entr": lambda: jss.entr(A(11)), "rel_entr": lambda: jss.rel_entr(A(11), A(11, k=4)), "kl_div": lambda: jss.kl_div(A(11), A(11, k=4)),
    "laplace": lambda: random.laplace(key, (5,)), "logistic": lambda: random.logistic(key, (5,)), "cauchy": lambda: random.cauchy(key, (5,)), "rademacher": lambda: random.rademacher(key, (8,)), "rayleigh": lambda: random.rayleigh(key, 2.0, (5,)), "weibull_min": lambda: random.weibull_min(key, 2.0, 1.5, (5,)),
    "pareto": lambda: random.pareto(key, 3.0, (5,)), "lognormal": lambda: random.lognormal(key, 0.5, (5,)), "multivariate_normal": lambda: random.multivariate_normal(key, A(3), S, (2,)), "choice": lambda: random.choice(key, 10, (5,)), "choice no replacement": lambda: random.choice(key, 10, (4,), replace=False),
    "choice of an array": lambda: random.choice(key, A(6, 2), (3,), replace=False), "choice weights": lambda: random.choice(key, 4, (6,), p=w4), "choice weights no replacement": lambda: random.choice(key, 4, (3,), replace=False, p=w4),
}
io.dump({"origin": io.origin("jax", "jaxlib") + ", CPU", "made_by": "make_core_linalg.py",
         "layout": {"results": "result of each program; A = ((7 i + k) mod 11 - 5) / 4"}, "results": {n: io.array(f()) for n, f in P.items()}}, "core_linalg.json", depth=2)
