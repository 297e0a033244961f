"""Writes examples.json: what the programs of examples/ must find, computed in f64 by JAX and SciPy.

Data are drawn with the keys that the examples use. Minima are SciPy's, from gradients of JAX.
"""
import golden_io as io

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp
import numpy as np
import optax
import scipy.optimize
from jax.experimental.ode import odeint

DIGITS = io.os.path.join(io.HERE, "..", "..", "examples", "data", "digits.csv.gz")


def digits():
    """Training images in [0, 1] and labels: all but the last fifth of the lines."""
    rows = np.loadtxt(DIGITS, delimiter=",")
    rows = rows[: len(rows) - len(rows) // 5]
    return jnp.asarray(rows[:, :64] / 16), jnp.asarray(rows[:, 64].astype(np.int32))


def minimum(loss, start):
    """The place of the minimum, by L-BFGS and then Newton's method."""
    gradient, curvature = jax.jit(jax.grad(loss)), jax.jit(jax.hessian(loss))
    x = scipy.optimize.minimize(loss, start, jac=gradient, method="L-BFGS-B", options={"maxiter": 5000}).x
    for _ in range(5):
        x = x - np.linalg.solve(curvature(x), gradient(x))
    assert np.linalg.norm(gradient(x)) < 1e-9
    return x


def logistic_regression(l2=0.001):
    image, label = digits()

    @jax.jit
    def loss(theta):
        w, b = theta[:640].reshape(64, 10), theta[640:]
        cross_entropy = optax.softmax_cross_entropy_with_integer_labels(image @ w + b, label)
        return cross_entropy.mean() + l2 / 2 * (w ** 2).sum() + b.sum() ** 2 / 2

    return {"loss": io.array(loss(minimum(loss, np.zeros(650))))}


def n_body(n=64, softening=0.1):
    x = jax.random.normal(jax.random.key(1), (n, 3))
    v = jax.random.normal(jax.random.key(2), (n, 3)) / 2
    v = v - v.mean(0)
    r = jnp.sqrt(((x[None] - x[:, None]) ** 2).sum(-1) + softening ** 2)
    pairs = jnp.triu(1 / r, 1).sum()
    return {"energy": io.array((v ** 2).sum() / 2 / n - pairs / n ** 2)}


def ode_adjoint():
    def rates(s, t, p):
        x, y = s
        return jnp.stack([p[0] * x - p[1] * x * y, p[3] * x * y - p[2] * y])

    times = jnp.arange(21) * 0.25
    states = lambda p: odeint(rates, jnp.ones(2), times, p, rtol=1e-12, atol=1e-12)[1:]
    observed = states(jnp.array([1.5, 1, 3, 1]))
    loss = lambda p: ((states(p) - observed) ** 2).mean()
    return {"gradient": io.array(jax.jit(jax.grad(loss))(jnp.array([1.3, 1.1, 2.8, 1.1])))}


def gaussian_process(n=60):
    x = jax.random.uniform(jax.random.key(0), (n,), minval=-2.0, maxval=2.0)
    y = jnp.sin(3 * x) + x / 2 + 0.2 * jax.random.normal(jax.random.key(1), (n,))

    @jax.jit
    def loss(v):
        d = (x[:, None] - x[None]) / jnp.exp(v[1])
        k = jnp.exp(2 * v[0] - d ** 2 / 2) + jnp.exp(2 * v[2]) * jnp.eye(n)
        return -jax.scipy.stats.multivariate_normal.logpdf(y, jnp.zeros(n), k)

    v = minimum(loss, np.zeros(3))
    return {"loss": io.array(loss(v)), "kernel": io.array(np.exp(v))}


def implicit_differentiation(d=40):
    def draw(seed, n):
        x = jax.random.normal(jax.random.key(seed), (n, d))
        w = jnp.where(jnp.arange(d) < d // 2, 1.0, 0.0)
        return x, x @ w + jax.random.normal(jax.random.key(seed + 100), (n,))

    (x, y), (x_new, y_new) = draw(0, 3 * d), draw(1, 20 * d)

    def error(v):
        penalty = jnp.repeat(jnp.exp(v), d // 2)
        w = jnp.linalg.solve(x.T @ x / len(y) + jnp.diag(penalty), x.T @ y / len(y))
        return ((x_new @ w - y_new) ** 2).mean()

    start = jnp.array([-1.0, -1.0])
    return {"gradient": io.array(jax.grad(error)(start)), "before": io.array(error(start)),
            "lowest": io.array(scipy.optimize.minimize(error, start, jac=jax.grad(error)).fun)}


if __name__ == "__main__":
    io.dump({"origin": io.origin("jax", "jaxlib", "scipy", "optax"),
             "layout": "by example; f64",
             "logistic_regression": logistic_regression(),
             "n_body": n_body(),
             "ode_adjoint": ode_adjoint(),
             "gaussian_process": gaussian_process(),
             "implicit_differentiation": implicit_differentiation()}, "examples.json")
