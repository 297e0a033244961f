"""Writes nn_functions.json: values and gradients of jax.nn's functions by name of a small program."""
import golden_io as io

import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax import nn

warnings.filterwarnings("ignore")
inf, nan = float("inf"), float("nan")
A = lambda *s, k=0: jnp.asarray((((np.arange(int(np.prod(s))) * 7 + k) % 11 - 5) / 4).astype(np.float32)).reshape(s)
I = lambda *s, k=0: jnp.asarray(((np.arange(int(np.prod(s))) * 5 + k) % 7 - 2).astype(np.int32)).reshape(s)
POINTS = jnp.array([0.0, -0.0, 1e-30, -1e-5, 0.25, -0.25, 0.5, -0.5, 1.0, -1.0, 1.5, -1.5, 3.0, -3.0, 6.0, -6.0, 5.5, 17.5, -17.5, 40.0, -40.0, 1e10, -1e10, inf, -inf, nan], jnp.float32)
M = A(3, 4) > -0.6


def grads(f, *args):
    def loss(*a):
        y = f(*a)
        return jnp.sum(jnp.sin(y) * A(*y.shape, k=2))
    return jnp.concatenate([jnp.ravel(g) for g in jax.grad(loss, argnums=tuple(range(len(args))))(*args)])


def both(name, f, *args):
    return {name: lambda: f(*args), name + ", gradients": lambda: grads(f, *args)}


P = {}
for n in "relu relu6 silu swish mish sigmoid hard_sigmoid hard_silu hard_swish hard_tanh softplus log_sigmoid soft_sign squareplus sparse_plus sparse_sigmoid elu celu selu leaky_relu gelu log1mexp".split():
    f = getattr(nn, n)
    P[n] = lambda f=f: f(POINTS)
    P[n + " grad"] = lambda f=f: jax.vmap(jax.grad(f))(POINTS)
    P[n + " bf16"] = lambda f=f: f(POINTS.astype(jnp.bfloat16))
    if n not in ("log1mexp", "silu", "swish", "sigmoid"):
        P[n + " i32"] = lambda f=f: f(I(7))
P |= {
    "gelu exact": lambda: nn.gelu(POINTS, approximate=False), "elu 2": lambda: nn.elu(POINTS, 2.0), "celu 2": lambda: nn.celu(POINTS, 2.0), "leaky_relu 0.3": lambda: nn.leaky_relu(POINTS, 0.3), "squareplus 1": lambda: nn.squareplus(POINTS, 1.0),
    **both("glu", nn.glu, A(3, 4)), "glu axis 0": lambda: nn.glu(A(4, 3), 0),
    **both("softmax", nn.softmax, A(3, 4)), **both("softmax axis 0", lambda x: nn.softmax(x, 0), A(3, 4)), **both("softmax axes", lambda x: nn.softmax(x, (0, 1)), A(3, 4)),
    **both("softmax where", lambda x: nn.softmax(x, where=M), A(3, 4)), "softmax where none": lambda: nn.softmax(A(2, 3), where=jnp.zeros((2, 3), bool)), "softmax inf": lambda: nn.softmax(jnp.array([inf, 1.0])), "softmax -inf": lambda: nn.softmax(jnp.array([-inf, -inf])), "softmax i32": lambda: nn.softmax(I(5)), "softmax empty": lambda: nn.softmax(A(0)), "softmax bf16": lambda: nn.softmax(A(3, 4).astype(jnp.bfloat16)),
    **both("log_softmax", nn.log_softmax, A(3, 4)), "log_softmax where": lambda: nn.log_softmax(A(3, 4), where=M), "log_softmax axes": lambda: nn.log_softmax(A(3, 4), (0, 1)),
    **both("logsumexp", lambda x: nn.logsumexp(x, axis=1), A(3, 4)), **both("logsumexp b", lambda x, b: nn.logsumexp(x, axis=1, b=b), A(3, 4), jnp.abs(A(3, 4, k=1)) + 0.1),
    "logsumexp negative": lambda: nn.logsumexp(A(3, 4), axis=1, b=-jnp.ones((3, 4))), "logsumexp sign": lambda: nn.logsumexp(A(3, 4), axis=1, b=A(3, 4, k=1), return_sign=True)[0], "logsumexp the sign": lambda: nn.logsumexp(A(3, 4), axis=1, b=A(3, 4, k=1), return_sign=True)[1],
    "logsumexp where": lambda: nn.logsumexp(A(3, 4), axis=1, where=M), "logsumexp keepdims": lambda: nn.logsumexp(A(3, 4), axis=(0, 1), keepdims=True), "logsumexp empty": lambda: nn.logsumexp(A(0)), "logsumexp zero b": lambda: nn.logsumexp(jnp.array([1.0, inf]), b=jnp.array([1.0, 0.0])),
    **both("logmeanexp", lambda x: nn.logmeanexp(x, axis=0), A(3, 4)), "logmeanexp where": lambda: nn.logmeanexp(A(3, 4), axis=1, where=M, keepdims=True),
    **both("standardize", nn.standardize, A(3, 4)), "standardize axes": lambda: nn.standardize(A(3, 4), (0, 1)), "standardize stable": lambda: nn.standardize(A(3, 4), algorithm="stable"), "standardize where": lambda: nn.standardize(A(3, 4), where=M), "standardize given": lambda: nn.standardize(A(3, 4), mean=jnp.float32(0.5), variance=jnp.float32(2.0), epsilon=0.1), "standardize bf16": lambda: nn.standardize(A(3, 4).astype(jnp.bfloat16)),
    "one_hot": lambda: nn.one_hot(I(5), 4), "one_hot axis": lambda: nn.one_hot(I(2, 3), 4, axis=0), "one_hot axis -2": lambda: nn.one_hot(I(2, 3), 4, axis=-2), "one_hot i32": lambda: nn.one_hot(I(5), 4, dtype=jnp.int32),
}
q, k, v = A(2, 5, 4, 3), A(2, 6, 4, 3, k=1), A(2, 6, 4, 3, k=2)
g, h = A(2, 6, 2, 3, k=1), A(2, 6, 2, 3, k=2)
mask = A(2, 1, 5, 6) > -0.9
bias = A(1, 4, 5, 6, k=4)
lengths = (jnp.array([3, 5], jnp.int32), jnp.array([6, 2], jnp.int32))
att = nn.dot_product_attention
for name, kw in {"": {}, " causal": {"is_causal": True}, " mask": {"mask": mask}, " bias": {"bias": bias}, " scale": {"scale": 0.3}, " window": {"local_window_size": (2, 1)}, " window of one number": {"local_window_size": 1},
                 " lengths": {"query_seq_lengths": lengths[0], "key_value_seq_lengths": lengths[1]}, " key lengths": {"key_value_seq_lengths": lengths[1]}, " all": {"mask": mask, "bias": bias, "is_causal": True, "local_window_size": (3, 0), "key_value_seq_lengths": lengths[1], "scale": 0.7}}.items():
    P |= both("attention" + name, lambda a, b, c, kw=kw: att(a, b, c, **kw), q, k, v)
    P |= both("attention of groups" + name, lambda a, b, c, kw=kw: att(a, b, c, **kw), q, g, h)
P |= both("attention bias gradient", lambda b: att(q, k, v, b), bias)
P |= {
    "attention 3d": lambda: att(q[0], k[0], v[0], is_causal=True), "attention bf16": lambda: att(*(x.astype(jnp.bfloat16) for x in (q, k, v))), "attention nothing seen": lambda: att(q, k, v, mask=jnp.zeros((1, 1, 5, 6), bool)),
    "attention residual": lambda: att(q, g, h, is_causal=True, return_residual=True)[1], "attention residual value": lambda: att(q, g, h, is_causal=True, return_residual=True)[0],
    "attention -inf bias": lambda: att(q, k, v, jnp.where(jnp.arange(6) < 3, 0.0, -inf)[None, None, None]),
}
out = {}
for name, f in P.items():
    y = f()
    out[name] = {**io.array(y), "weak": bool(getattr(y, "weak_type", False))}
io.dump({"origin": io.origin("jax", "jaxlib") + ", CPU", "made_by": "make_nn_functions.py",
         "layout": {"results": "result of each program, or its gradients: of sum(sin(y) W) by every argument, flat; A, I as in core_functions.json, W = A with k = 2"}, "results": out}, "nn_functions.json", depth=2)
