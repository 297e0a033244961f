"""Writes core_random.json: generators other than the default, and samplers with parameters, by name of a program."""
import golden_io as io

import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax import random
from jax.extend import random as extend_random

warnings.filterwarnings("ignore")
inf, nan = float("inf"), float("nan")
KINDS = {"threefry2x32_legacy": ("threefry2x32", False), "rbg": ("rbg", True), "unsafe_rbg": ("unsafe_rbg", True)}


def generators():
    out = {}
    for name, (impl, partitionable) in KINDS.items():
        with jax.threefry_partitionable(partitionable):
            for seed in (0, 42, -7):
                k = random.key(seed, impl=impl)
                p = {"key": lambda: k, "split": lambda: random.split(k), "split 3": lambda: random.split(k, 3), "split (2, 2)": lambda: random.split(k, (2, 2)),
                     "fold_in 7": lambda: random.fold_in(k, 7), "bits": lambda: random.bits(k, (5,)), "bits (2, 3)": lambda: random.bits(k, (2, 3)), "bits u8": lambda: random.bits(k, (7,), "uint8"),
                     "bits u16": lambda: random.bits(k, (5,), "uint16"), "bits scalar": lambda: random.bits(k), "uniform": lambda: random.uniform(k, (5,)), "normal": lambda: random.normal(k, (5,)),
                     "permutation": lambda: random.permutation(k, 9), "randint": lambda: random.randint(k, (6,), 0, 100), "gamma": lambda: random.gamma(k, jnp.array([0.4, 3.0])),
                     "vmap bits": lambda: jax.vmap(lambda q: random.bits(q, (3,)))(random.split(k, 3)) if impl == "threefry2x32" else jax.vmap(lambda q: random.bits(q, (3,)))(random.split(k, 3))}
                for n, f in p.items():
                    out[f"{name} {seed} {n}"] = io.array(f())
                with jax.enable_x64(True):
                    out[f"{name} {seed} bits u64"] = io.array(random.bits(random.wrap_key_data(random.key_data(k), impl=impl), (3,), "uint64"))
    return out


def samplers():
    a = jnp.array([0.01, 0.3, 0.9, 1.0, 1.5, 4.0, 25.0, 1000.0], jnp.float32)
    b = jnp.array([2.0, 0.5, 0.9, 1.0, 7.5, 4.0, 3.0, 10.0], jnp.float32)
    r = jnp.array([0.0, 0.5, 3.0, 9.99, 10.0, 55.0, 1e4, nan], jnp.float32)
    n = jnp.array([0.0, 3.0, 10.0, 40.0, 100.0, 1000.0, -1.0, nan, 1000.0], jnp.float32)
    p = jnp.array([0.5, 0.2, 0.9, 0.1, 0.5, 0.7, 0.5, 0.5, nan], jnp.float32)
    mean = jnp.array([[1.0, -1.0, 0.5], [0.0, 2.0, 3.0]])
    cov = jnp.array([[2.0, 0.3, 0.1], [0.3, 1.0, -0.2], [0.1, -0.2, 0.5]])
    x = jnp.arange(12, dtype=jnp.float32).reshape(3, 4)
    w = jnp.array([0.1, 0.2, 0.3, 0.4])
    out = {}
    for seed in (0, 42):
        k = random.key(seed)
        P = {
            "gamma": lambda: random.gamma(k, a), "gamma shape": lambda: random.gamma(k, a, (3, 8)), "gamma scalar": lambda: random.gamma(k, 2.5, (40,)), "gamma bf16": lambda: random.gamma(k, a[2:].astype(jnp.bfloat16), dtype=jnp.bfloat16),
            "gamma gradient": lambda: jax.vmap(jax.grad(lambda v: random.gamma(k, v)))(a[1:]), "gamma vjp": lambda: jax.grad(lambda v: jnp.sum(jnp.sin(random.gamma(k, v, (3, 8)))))(a),
            "loggamma": lambda: random.loggamma(k, a), "loggamma small": lambda: random.loggamma(k, jnp.array([1e-3, 1e-5, 1e-8])), "loggamma gradient": lambda: jax.grad(lambda v: jnp.sum(random.loggamma(k, v)))(a[1:]),
            "beta": lambda: random.beta(k, a, b), "beta gradient": lambda: jax.grad(lambda u, v: jnp.sum(random.beta(k, u, v)))(a[1:], b[1:]),
            "dirichlet": lambda: random.dirichlet(k, a[1:5]), "dirichlet shape": lambda: random.dirichlet(k, b[:3], (4,)), "dirichlet batch": lambda: random.dirichlet(k, jnp.stack([b[:3], a[1:4]])),
            "chisquare": lambda: random.chisquare(k, a * 2), "f": lambda: random.f(k, a + 1, b), "t": lambda: random.t(k, b), "t shape": lambda: random.t(k, 3.0, (2, 5)),
            "poisson": lambda: random.poisson(k, r), "poisson shape": lambda: random.poisson(k, 4.0, (30,)), "poisson large": lambda: random.poisson(k, 30.0, (30,)), "poisson i16": lambda: random.poisson(k, r[:6], dtype=jnp.int16),
            "binomial": lambda: random.binomial(k, n, p), "binomial shape": lambda: random.binomial(k, 7, 0.3, (30,)), "binomial large": lambda: random.binomial(k, 90.0, 0.4, (30,)),
            "multinomial": lambda: random.multinomial(k, 20, w), "multinomial shape": lambda: random.multinomial(k, 50.0, w, shape=(3, 4)),
            "geometric": lambda: random.geometric(k, jnp.array([0.9, 0.5, 0.1, 0.01, 1.0])), "geometric shape": lambda: random.geometric(k, 0.3, (20,)),
            "wald": lambda: random.wald(k, b), "wald shape": lambda: random.wald(k, 1.5, (20,)), "triangular": lambda: random.triangular(k, -1.0, 0.5, 3.0, (20,)), "triangular arrays": lambda: random.triangular(k, -a, a, a + b),
            "maxwell": lambda: random.maxwell(k, (2, 5)), "double_sided_maxwell": lambda: random.double_sided_maxwell(k, 1.0, 2.0, (9,)), "double_sided_maxwell arrays": lambda: random.double_sided_maxwell(k, a[:2], b[:2], (3,)),
            "generalized_normal": lambda: random.generalized_normal(k, 1.5, (9,)), "ball": lambda: random.ball(k, 3, shape=(5,)), "ball 1": lambda: random.ball(k, 2, 1.0, (4,)), "ball of one": lambda: random.ball(k, 4),
            "weibull_min": lambda: random.weibull_min(k, 2.0, 1.5, (9,)), "pareto": lambda: random.pareto(k, 2.5, (9,)), "rayleigh": lambda: random.rayleigh(k, 2.0, (9,)), "cauchy": lambda: random.cauchy(k, (9,)),
            "logistic": lambda: random.logistic(k, (9,)), "lognormal": lambda: random.lognormal(k, 0.7, (9,)), "laplace": lambda: random.laplace(k, (9,)), "rademacher": lambda: random.rademacher(k, (9,)),
            "bernoulli high": lambda: random.bernoulli(k, 0.3, (30,), mode="high"), "gumbel high": lambda: random.gumbel(k, (20,), mode="high"), "categorical high": lambda: random.categorical(k, jnp.log(w), shape=(20,), mode="high"),
            "categorical no replacement": lambda: random.categorical(k, jnp.log(w), shape=(3,), replace=False), "categorical batch no replacement": lambda: random.categorical(k, x, axis=1, shape=(2, 3), replace=False),
            "choice axis": lambda: random.choice(k, x, (5,), axis=1), "choice axis no replacement": lambda: random.choice(k, x, (2,), replace=False, axis=1), "choice shape": lambda: random.choice(k, x, (2, 2), axis=0),
            "choice p axis": lambda: random.choice(k, x, (3,), p=w, axis=1), "choice p no replacement": lambda: random.choice(k, x, (3,), replace=False, p=w, axis=-1), "choice none": lambda: random.choice(k, x, (0,), axis=1),
            "permutation axis": lambda: random.permutation(k, x, axis=1), "permutation independent": lambda: random.permutation(k, x, axis=1, independent=True), "permutation rows": lambda: random.permutation(k, x, independent=True),
            "multivariate_normal": lambda: random.multivariate_normal(k, mean[0], cov), "multivariate_normal batch": lambda: random.multivariate_normal(k, mean, cov), "multivariate_normal shape": lambda: random.multivariate_normal(k, mean, cov, (4, 2)),
            "multivariate_normal eigh": lambda: jnp.mean(jnp.square(random.multivariate_normal(k, mean[0] * 0, jnp.diag(jnp.array([1.0, 4.0, 9.0])), (2,), method="eigh")), 0),
            "multivariate_normal svd": lambda: jnp.square(random.multivariate_normal(k, mean[0] * 0, jnp.diag(jnp.array([1.0, 4.0, 9.0])), (2,), method="svd")),
            "orthogonal": lambda: random.orthogonal(k, 4), "orthogonal batch": lambda: random.orthogonal(k, 3, (2,)), "orthogonal wide": lambda: random.orthogonal(k, 2, m=4), "orthogonal tall": lambda: random.orthogonal(k, 4, m=2),
        }
        for name, f in P.items():
            out[f"{seed} {name}"] = io.array(f())
    return out


def special():
    a = np.array([0.1, 0.5, 1.0, 1.5, 3.0, 10.0, 50.0, 200.0])
    x = np.array([1e-6, 0.05, 0.7, 1.0, 2.5, 9.0, 11.0, 60.0, 190.0, 250.0])
    a, x = (v.ravel() for v in np.meshgrid(a, x))
    edges = np.array([[0, 0], [0, 1], [1, 0], [-1, 1], [1, -1], [nan, 1], [1, nan], [2, inf], [0.5, inf]]).T
    a, x = np.concatenate([a, edges[0]]), np.concatenate([x, edges[1]])
    out = {"a": io.array(a), "x": io.array(x)}
    with jax.enable_x64(True):
        for n, f in {"gammainc": jax.scipy.special.gammainc, "gammaincc": jax.scipy.special.gammaincc, "igamma_grad_a": jax.lax.igamma_grad_a, "random_gamma_grad": jax.lax.random_gamma_grad}.items():
            out[n] = io.array(f(jnp.asarray(a), jnp.asarray(x)))
            out[n + " f32"] = io.array(f(jnp.asarray(a, jnp.float32), jnp.asarray(x, jnp.float32)))
        out["gammainc grad x"] = io.array(jax.vmap(jax.grad(jax.scipy.special.gammainc, 1))(jnp.asarray(a[:80]), jnp.asarray(x[:80])))
    return out


io.dump({"origin": io.origin("jax", "jaxlib") + ", CPU", "made_by": "make_core_random.py",
         "layout": {"generators": "kind, seed, program; integers and bits exactly", "samplers": "seed and program; integers exactly, floats within a few ulp of the largest intermediate value", "gamma": "incomplete gamma functions at (a, x), f64, and f32 of the rounded points"},
         "generators": generators(), "samplers": samplers(), "gamma": special()}, "core_random.json", depth=2)
