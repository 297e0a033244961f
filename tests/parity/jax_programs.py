"""Programs of real JAX that the suites export: what users write, over operations, dtypes, control flow and gradients."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax
from jax.scipy import linalg as jsl
from jax.scipy import special as jsp

import jax_linalg_programs


def arange(shape, dtype=np.float32, scale=0.37, shift=-1.1):
    n = int(np.prod(shape))
    return np.asarray(np.sin(np.arange(n) * 1.7 + shift) * (1 + scale * np.arange(n)), np.float64).reshape(shape).astype(dtype)


def ints(shape, dtype=np.int32, low=-9, high=10):
    return np.random.default_rng(5).integers(low, high, shape).astype(dtype)


F = arange((3, 4))
V = arange((4,))
I = ints((3, 4))
KEY = np.array([7, 42], np.uint32)


def mlp(params, x):
    for w, b in params[:-1]:
        x = jax.nn.gelu(x @ w + b)
    w, b = params[-1]
    return x @ w + b


PARAMS = [(arange((4, 8)), arange((8,))), (arange((8, 5)), arange((5,)))]


def loss(params, x, y):
    logits = mlp(params, x)
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], axis=1))


def attention(q, k, v):
    s = jnp.einsum("bthd,bshd->bhts", q, k) / np.sqrt(q.shape[-1])
    mask = jnp.tril(jnp.ones(s.shape[-2:], bool))
    p = jax.nn.softmax(jnp.where(mask, s, -1e9), axis=-1)
    return jnp.einsum("bhts,bshd->bthd", p, v)


def layer_norm(x, g, b):
    m = x.mean(-1, keepdims=True)
    v = jnp.var(x, -1, keepdims=True)
    return (x - m) * lax.rsqrt(v + 1e-5) * g + b


def scanned(x, ws):
    def body(c, w):
        c = jnp.tanh(c @ w)
        return c, c.sum()
    return lax.scan(body, x, ws)


def nested_control(x, n):
    def body(i, c):
        return lax.cond(i % 2 == 0, lambda y: y * x.sum(), lambda y: y - i.astype(jnp.float32), c)
    return lax.fori_loop(0, n, body, x)


def newton(x):
    return lax.while_loop(lambda s: jnp.abs(s[0] * s[0] - s[1]).max() > 1e-3, lambda s: (0.5 * (s[0] + s[1] / s[0]), s[1]), (x, x))[0]


PROGRAMS = {
    "arithmetic": (lambda a, b: (a + b, a - b, a * b, a / b, -a, abs(a), jnp.sign(a), jnp.maximum(a, b), jnp.minimum(a, b)), F, F[::-1]),
    "elementary": (lambda a: (jnp.exp(a), jnp.expm1(a), jnp.log1p(abs(a)), jnp.log(abs(a)), jnp.tanh(a), jnp.sin(a), jnp.cos(a),
                              jnp.tan(a), jnp.sqrt(abs(a)), lax.rsqrt(abs(a)), jnp.cbrt(a), jax.nn.sigmoid(a)), F),
    "special": (lambda a: (lax.erf(a), lax.erfc(a), lax.erf_inv(a / 10), jnp.arcsin(a / 10), jnp.arccos(a / 10), jnp.arctan(a),
                           jnp.sinh(a), jnp.cosh(a), jnp.arcsinh(a), jnp.arctanh(a / 10)), F),
    "rounding": (lambda a: (jnp.floor(a), jnp.ceil(a), jnp.round(a), lax.round(a, lax.RoundingMethod.AWAY_FROM_ZERO), jnp.isfinite(a),
                            lax.reduce_precision(a, 5, 10)), F),
    "integers": (lambda a, b: (a // b, a % b, lax.div(a, b), lax.rem(a, b), a & b, a | b, a ^ b, ~a, a << 2, a >> 1, lax.shift_right_logical(a, 1),
                               lax.population_count(a), lax.clz(a), a ** 3), I, ints((3, 4), low=1)),
    "unsigned": (lambda a, b: (a + b, a * b, a // b, a - b, a >> 3), ints((5,), np.uint8, 0, 255), ints((5,), np.uint8, 1, 255)),
    "booleans": (lambda a, b: (a & b, a | ~b, a ^ b, jnp.any(a), jnp.all(b), jnp.where(a, 1, 2)), I > 0, I > 2),
    "compare": (lambda a, b: (a < b, a <= b, a == b, a != b, a > b, a >= b, jnp.isnan(a / 0.0 * 0.0), jnp.clip(a, -1.0, 1.0)), F, F[::-1]),
    "complex": (lambda a, b: (lax.complex(a, b) * lax.complex(b, a), jnp.real(lax.complex(a, b)), jnp.imag(jnp.exp(lax.complex(a, b) / 20)),
                              jnp.abs(lax.complex(a, b)), jnp.conj(lax.complex(a, b)) + 2j), F, F[::-1]),
    "convert": (lambda a: (a.astype(jnp.int32), a.astype(jnp.bfloat16), a.astype(jnp.float16).astype(jnp.float32), (a > 0).astype(jnp.int8),
                           a.astype(jnp.float8_e4m3fn).astype(jnp.float32), lax.bitcast_convert_type(a, jnp.uint32),
                           lax.bitcast_convert_type(a, jnp.uint8)), F),
    "bfloat16": (lambda a, b: (a + b, a @ b.T, jnp.sum(a), jax.nn.softmax(a)), F.astype(ml_dtypes.bfloat16), F[::-1].astype(ml_dtypes.bfloat16)),
    "constants": (lambda: (jnp.array([1.5, np.inf, -0.0, np.nan], np.float32), np.arange(300, dtype=np.float32) / 7, np.eye(3, dtype=np.int8),
                           jnp.full((2, 3), 2.5), np.array([[True, False]]), np.array([1 + 2j], np.complex64),
                           np.arange(4).astype(ml_dtypes.bfloat16), np.array([1e-45, 3.4028235e38, 0.1], np.float32))),
    "iota": (lambda: (jnp.arange(5), jnp.arange(3.0), lax.broadcasted_iota(jnp.int32, (2, 3), 1), jnp.eye(3), jnp.tri(4))),
    "shapes": (lambda a: (a.T, a.reshape(2, 6), a.ravel(), a[None, :, None], jnp.broadcast_to(a, (2, 3, 4)), a[::-1, ::-1], jnp.squeeze(a[:1]),
                          jnp.concatenate([a, a], 0), jnp.stack([a, a], 1), jnp.tile(a, (2, 1)), jnp.roll(a, 1, 1)), F),
    "slicing": (lambda a, i: (a[1:, ::2], a[i], a[-1], lax.dynamic_slice(a, (i, 0), (2, 2)), a.at[0].set(1.0), a.at[i, 1].add(2.0),
                              lax.dynamic_update_slice(a, a[:1, :2], (i, i)), jnp.pad(a, ((1, 0), (0, 2))), lax.pad(a, 0.0, ((0, -1, 1), (2, 0, 0)))),
                F, np.int32(1)),
    "gather": (lambda a, i: (jnp.take(a, i, axis=0), a[i, i + 1], jnp.take_along_axis(a, i[:, None] % 2, axis=1), a[:, i]), F, np.array([2, 0, 1], np.int32)),
    "scatter": (lambda a, i: (a.at[i].set(0.0), a.at[i].add(a), a.at[i].max(0.5), a.at[i, 1].multiply(3.0), a.at[:, 1:3].min(0.0)), F, np.array([2, 0, 2], np.int32)),
    "reductions": (lambda a: (a.sum(), a.sum(0), a.prod(1), a.max(), a.min(0), a.mean(), a.std(1), jnp.argmax(a, 1), jnp.argmin(a), jnp.any(a > 1, 0),
                              jax.nn.logsumexp(a, axis=1)), F),
    "cumulative": (lambda a: (jnp.cumsum(a, 0), jnp.cumprod(a, 1), lax.cummax(a, axis=1), lax.cumlogsumexp(a, axis=0)), F),
    "windows": (lambda a: (lax.reduce_window(a, -jnp.inf, lax.max, (2, 2), (1, 2), "VALID"), lax.reduce_window(a, 0.0, lax.add, (3, 1), (1, 1), "SAME")), F),
    "dot": (lambda a, b: (a @ b.T, jnp.dot(a[0], b[0]), jnp.outer(a[0], b[1]), jnp.einsum("ij,ij->i", a, b), jnp.tensordot(a, b, ([0, 1], [0, 1])),
                          jnp.matmul(a, b.T, precision="highest")), F, F[::-1]),
    "dot_mixed": (lambda a: lax.dot_general(a, a, (((1,), (1,)), ((), ())), preferred_element_type=jnp.int32), ints((3, 4), np.int8)),
    "sort": (lambda a, i: (jnp.sort(a, 1), jnp.argsort(a, 1), lax.sort((i, a), num_keys=2), lax.top_k(a, 2), jnp.median(a), jnp.sort(i, 0, descending=True)), F, I),
    "cond": (lambda a, p: lax.cond(p, lambda x: (x * 2, x.sum()), lambda x: (x + a[0], x.max()), a), F, np.bool_(True)),
    "switch": (lambda a, i: lax.switch(i, [jnp.sin, lambda x: x * a.sum(), lambda x: x], a), F, np.int32(1)),
    "fori_loop": (lambda a: lax.fori_loop(0, 5, lambda i, c: c * 0.5 + i, a), F),
    "while_loop": (newton, abs(F) + 1),
    "nested_control": (nested_control, V, np.int32(5)),
    "scan": (scanned, arange((2, 4)), arange((3, 4, 4))),
    "mlp": (mlp, PARAMS, F),
    "mlp_grad": (jax.value_and_grad(loss), PARAMS, F, np.array([1, 0, 3])),
    "softmax_grad": (jax.grad(lambda a: (jax.nn.softmax(a) * F).sum()), F),
    "layer_norm": (layer_norm, F, V, V),
    "layer_norm_grad": (jax.grad(lambda x, g, b: (layer_norm(x, g, b) ** 2).sum(), argnums=(0, 1, 2)), F, V, V),
    "attention": (attention, *(arange((2, 3, 2, 4), shift=s) for s in (0.0, 1.0, 2.0))),
    "attention_grad": (jax.grad(lambda *a: attention(*a).sum(), argnums=(0, 1, 2)), *(arange((1, 3, 2, 4), shift=s) for s in (0.0, 1.0, 2.0))),
    "scan_grad": (jax.grad(lambda x, w: scanned(x, w)[1].sum(), argnums=(0, 1)), arange((2, 4)), arange((3, 4, 4))),
    "vmap": (jax.vmap(lambda a, i: lax.dynamic_slice(a, (i,), (2,)).sum()), F, np.array([0, 1, 9], np.int32)),
    "jvp": (lambda a: jax.jvp(lambda x: jnp.sin(x) * x.sum(), (a,), (a,)), F),
    "hessian": (jax.hessian(lambda x: (jnp.sin(x) * x ** 2).sum()), V),
    "remat": (jax.grad(jax.checkpoint(lambda a: jnp.sin(jnp.sin(a)).sum())), F),
    "custom_jvp": (jax.grad(lambda a: jax.nn.relu(a).sum() + jax.nn.silu(a).sum()), F),
    "random_bits": (lambda k: jax.random.bits(jax.random.wrap_key_data(k), (5,)), KEY),
    "random_split": (lambda k: [jax.random.key_data(s) for s in jax.random.split(jax.random.wrap_key_data(k), 3)], KEY),
    "random_uniform": (lambda k: jax.random.uniform(k, (2, 3)), KEY),
    "random_normal": (lambda k: jax.random.normal(k, (7,)), KEY),
    "random_randint": (lambda k: jax.random.randint(k, (6,), 0, 10), KEY),
    "random_permutation": (lambda k: jax.random.permutation(k, 8), KEY),
    "random_categorical": (lambda k, a: jax.random.categorical(k, a), KEY, F),
    "random_bernoulli": (lambda k: jax.random.bernoulli(k, 0.3, (9,)), KEY),
    "rbg_uint32": (lambda k: lax.rng_bit_generator(k, (6,), dtype=np.uint32, algorithm=lax.RandomAlgorithm.RNG_THREE_FRY), np.array([3, 4], np.uint64).view(np.uint32)),
    "one_hot": (lambda i: jax.nn.one_hot(i, 5), np.array([1, 4, 7], np.int32)),
    "adam_step": (lambda p, g, m, v: (p - 1e-3 * (0.9 * m + 0.1 * g) / (jnp.sqrt(0.999 * v + 0.001 * g * g) + 1e-8), 0.9 * m + 0.1 * g), F, F[::-1], F, abs(F)),
    "clip_by_norm": (lambda a: a * jnp.minimum(1.0, 1.0 / jnp.sqrt(jnp.sum(a * a))), F),
    "inner_jits": (lambda a: jax.jit(jnp.sin)(a) + jax.jit(lambda x: jax.jit(jnp.cos)(x) * 2)(a), F),
    "linspace": (lambda: jnp.linspace(0, 1, 7)),
    "donated": (lambda a, b: a + b, F, F),
    "empty": (lambda a: (a[:0], a[:0].sum(), jnp.concatenate([a[:0], a])), F),
    "tree_outputs": (lambda a: {"x": a, "y": [a + 1, (a.sum(),)]}, F),
}


# ---------------------------------------------------------------- convolutions

X2 = arange((2, 3, 7, 6), scale=0.01)
W2 = arange((4, 3, 3, 2), scale=0.01)


def conv(**options):
    options.setdefault("window_strides", (1, 1))
    options.setdefault("padding", "SAME")
    return lambda x, w: lax.conv_general_dilated(x, w, **options)


def conv_grad(**options):
    f = conv(**options)
    return jax.grad(lambda x, w: (jnp.sin(f(x, w))).sum(), argnums=(0, 1))


def cnn(params, x):
    w1, w2, w3 = params
    dn = ("NHWC", "HWIO", "NHWC")
    x = jax.nn.relu(lax.conv_general_dilated(x, w1, (1, 1), "SAME", dimension_numbers=dn))
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    x = jax.nn.relu(lax.conv_general_dilated(x, w2, (2, 2), "SAME", dimension_numbers=dn))
    x = lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 1, 1, 1), "SAME") / 4.0
    return x.reshape(x.shape[0], -1) @ w3


CNN = [arange((3, 3, 1, 4), scale=0.01), arange((3, 3, 4, 5), scale=0.001), arange((20, 3), scale=0.001)]
IMAGES = arange((2, 8, 8, 1), scale=0.01)

PROGRAMS |= {
    "conv_same": (conv(), X2, W2),
    "conv_valid_strided": (conv(window_strides=(2, 3), padding="VALID"), X2, W2),
    "conv_dilated": (conv(rhs_dilation=(2, 3)), X2, W2),
    "conv_transposed": (conv(lhs_dilation=(2, 2), padding=((1, 2), (0, 3))), X2, W2),
    "conv_negative_padding": (conv(padding=((-1, 2), (1, -2))), X2, W2),
    "conv_groups": (conv(feature_group_count=3), X2, arange((6, 1, 3, 2), scale=0.01)),
    "conv_depthwise": (conv(feature_group_count=3), X2, arange((3, 1, 2, 2))),
    "conv_batch_groups": (conv(batch_group_count=2), X2, arange((4, 3, 3, 2), scale=0.01)),
    "conv_nhwc": (conv(dimension_numbers=("NHWC", "HWIO", "NHWC")), arange((2, 7, 6, 3), scale=0.01), arange((3, 2, 3, 4), scale=0.01)),
    "conv_1d": (lambda x, w: lax.conv_general_dilated(x, w, (2,), [(3, 1)]), arange((2, 3, 11)), arange((4, 3, 4))),
    "conv_1d_long": (lambda x, w: lax.conv_general_dilated(x, w, (1,), "SAME"), arange((1, 1, 90), scale=0.01), arange((1, 1, 40), scale=0.01)),
    "conv_3d": (lambda x, w: lax.conv_general_dilated(x, w, (1, 2, 1), "SAME"), arange((1, 2, 4, 5, 3), scale=0.1), arange((3, 2, 2, 3, 2), scale=0.01)),
    "conv_0d": (lambda x, w: lax.conv_general_dilated(x, w, (), "VALID"), arange((2, 3)), arange((4, 3))),
    "conv_bf16": (conv(), X2.astype(ml_dtypes.bfloat16), W2.astype(ml_dtypes.bfloat16)),
    "conv_int8": (lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME", preferred_element_type=jnp.int32),
                  ints((1, 2, 5, 5), np.int8), ints((3, 2, 3, 3), np.int8)),
    "conv_complex": (conv(), (X2 + 1j * X2[::-1]).astype(np.complex64), (W2 - 2j * W2).astype(np.complex64)),
    "conv_grad": (conv_grad(), X2, W2),
    "conv_grad_strided": (conv_grad(window_strides=(2, 2), rhs_dilation=(1, 2)), X2, W2),
    "conv_grad_groups": (conv_grad(feature_group_count=3), X2, arange((6, 1, 3, 2), scale=0.01)),
    "cnn": (cnn, CNN, IMAGES),
    "cnn_grad": (jax.grad(lambda p, x: (cnn(p, x) ** 2).sum()), CNN, IMAGES),
    "avg_pool_grad": (jax.grad(lambda x: (lax.reduce_window(x, 0.0, lax.add, (2, 2), (2, 1), "SAME") ** 2).sum()), F),
    "max_pool_grad": (jax.grad(lambda x: (lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 2), "SAME") ** 2).sum()), F),
    "select_and_scatter_add": (lambda x, s: lax.reduce_window(x, jnp.inf, lax.min, (3, 1), (2, 1), "VALID") * s, F, F[:1]),
}

# ---------------------------------------------------------------- linear algebra and transforms

SPD = (np.eye(4) * 5 + (lambda a: a @ a.T)(arange((4, 4), scale=0.05))).astype(np.float32)
TRI = np.tril(arange((4, 4), scale=0.05) + 2 * np.eye(4, dtype=np.float32)).astype(np.float32)
Z = (arange((3, 8), shift=0.3) + 1j * arange((3, 8), shift=2.0)).astype(np.complex64)

PROGRAMS |= {
    "cholesky": (lambda a: lax.linalg.cholesky(a, symmetrize_input=False), SPD),
    "cholesky_batched": (lambda a: jnp.linalg.cholesky(jnp.stack([a, 2 * a])), SPD),
    "cholesky_complex": (lambda a: lax.linalg.cholesky(a, symmetrize_input=True), (SPD + 1j * (np.triu(SPD, 1) - np.triu(SPD, 1).T) / 9).astype(np.complex64)),
    "cholesky_grad": (jax.grad(lambda a: jnp.linalg.cholesky(a).sum()), SPD),
    "cholesky_indefinite": (lambda a: lax.linalg.cholesky(-a, symmetrize_input=False), SPD),
    **{f"triangular_solve_{n}": ((lambda kw: lambda a, b: lax.linalg.triangular_solve(a, b, **kw))(kw), TRI, arange((4, 4)))
       for n, kw in {"left_lower": dict(left_side=True, lower=True), "left_transposed": dict(left_side=True, lower=True, transpose_a=True),
                     "right_upper": dict(left_side=False, lower=False), "right_lower_unit": dict(left_side=False, lower=True, unit_diagonal=True),
                     "right_transposed": dict(left_side=False, lower=True, transpose_a=True)}.items()},
    "triangular_solve_adjoint": (lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=True, conjugate_a=True, transpose_a=True),
                                 (TRI * (1 + 0.5j)).astype(np.complex64), Z[:, :4].repeat(2, 0)[:4]),
    "triangular_solve_grad": (jax.grad(lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=True).sum(), argnums=(0, 1)), TRI, arange((4, 2))),
    "fft": (jnp.fft.fft, Z),
    "ifft": (jnp.fft.ifft, Z),
    "fft_axis0": (lambda z: jnp.fft.fft(z, axis=0), Z),
    "rfft": (jnp.fft.rfft, arange((3, 8))),
    "rfft_odd": (jnp.fft.rfft, arange((2, 7))),
    "irfft": (lambda z: jnp.fft.irfft(z[:, :5]), Z),
    "irfft_odd": (lambda z: jnp.fft.irfft(z[:, :4], n=7), Z),
    "fft2": (jnp.fft.fft2, Z),
    "fftn_3": (lambda z: jnp.fft.fftn(z.reshape(2, 3, 4)), Z),
    "rfftn": (lambda x: jnp.fft.rfftn(x.reshape(2, 3, 4)), F.repeat(2)),
    "irfftn": (lambda z: jnp.fft.irfft2(z[:, :5]), Z),
    "fft_lengths": (lambda x: [jnp.fft.fft(x[:n]) for n in (1, 2, 3, 5, 7, 11, 13, 17, 30, 34, 64, 97)], arange((97,), scale=0.01)),
    "fft_f64": (lambda x: jnp.fft.fft(x), arange((3, 12), np.float64)),
    "fft_grad": (jax.grad(lambda x: (jnp.abs(jnp.fft.rfft(x)) ** 2).sum()), arange((8,))),
    "fftconvolve": (lambda a, b: jnp.convolve(a, b), V, V[:3]),
}

# ---------------------------------------------------------------- special functions

POS = np.abs(F) + 0.1
UNIT = (np.sin(F) * 0.98).astype(np.float32)
PROGRAMS |= {
    "lgamma": (lax.lgamma, F),
    "digamma": (lax.digamma, F),
    "polygamma": (lambda x: jsp.polygamma(2, x), POS),
    "zeta": (lambda x: jsp.zeta(x + 1.5, 2.0 + x), POS),
    "bessel": (lambda x: (lax.bessel_i0e(x), lax.bessel_i1e(x)), F),
    "igamma": (lambda a, x: (lax.igamma(a, x), lax.igammac(a, x)), POS, POS[::-1]),
    "betainc": (lambda a, b, x: jsp.betainc(a, b, jnp.abs(x)), POS, POS[::-1], UNIT),
    "erf_grad": (jax.grad(lambda x: lax.erf(x).sum() + lax.erf_inv(x * 0.1).sum()), UNIT),
    "logit_entr": (lambda x: (jsp.logit(jnp.abs(x)), jsp.entr(jnp.abs(x)), jsp.xlogy(x, jnp.abs(x)), jsp.xlog1py(x, jnp.abs(x))), UNIT),
    "ndtri": (lambda x: (jsp.ndtr(x), jsp.log_ndtr(x), jsp.ndtri(jnp.abs(x))), UNIT),
    "gammaln_grad": (jax.grad(lambda x: jsp.gammaln(x).sum()), POS),
    "isinf": (lambda x: (jnp.isinf(x), jnp.isposinf(x), jnp.isneginf(x), jnp.isnan(x), jnp.nan_to_num(x)), np.array([1, np.inf, -np.inf, np.nan], np.float32)),
    "nextafter": (lambda a, b: jnp.nextafter(a, b), F, F[::-1]),
    "atan2_hypot": (lambda a, b: (jnp.arctan2(a, b), jnp.hypot(a, b), jnp.logaddexp(a, b)), F, F[::-1]),
    "powers": (lambda a, b: (jnp.power(a, b), a ** 2, a ** -1.5, jnp.float_power(a, 0.5), lax.integer_pow(a, -3)), POS, F),
    "complex_functions": (lambda z: (jnp.exp(z), jnp.log(z), jnp.sqrt(z), jnp.sin(z), jnp.tanh(z), jnp.arcsin(z), jnp.cosh(z), z ** 2, 1 / z, lax.rsqrt(z),
                                     jnp.expm1(z), jnp.log1p(z), jnp.angle(z), jnp.sign(z)), Z / 4),
    "complex_trig": (lambda z: (jnp.tan(z), jnp.arctan(z), jnp.arccos(z), jnp.arctanh(z), jnp.arcsinh(z), jnp.arccosh(z), jnp.cos(z), jnp.sinh(z)), Z / 4),
}

# ---------------------------------------------------------------- numpy's breadth

G = arange((4, 3, 2))
PROGRAMS |= {
    "sorting": (lambda a: (jnp.sort(a, 0), jnp.argsort(-a, 1), jnp.partition(a, 2), jnp.unique(a, size=5), jnp.searchsorted(jnp.sort(a.ravel()), a[0])), F),
    "statistics": (lambda a: (jnp.var(a), jnp.percentile(a, 30.0), jnp.quantile(a, 0.7, axis=1), jnp.cov(a), jnp.corrcoef(a), jnp.average(a, 0, weights=a[:, 0] ** 2),
                              jnp.ptp(a), jnp.nanmean(a), jnp.cumsum(a), jnp.diff(a), jnp.histogram(a, 4)[0], jnp.bincount(jnp.arange(4) % 3, length=3)), F),
    "joining": (lambda a, b: (jnp.hstack([a, b]), jnp.vstack([a, b]), jnp.dstack([a, b]), jnp.column_stack([a, b]), jnp.append(a, b), jnp.repeat(a, 3, 1),
                              jnp.split(a, 2, 1), jnp.array_split(a, 3, 1), jnp.block([[a, b], [b, a]])), F, F[::-1]),
    "moving": (lambda a: (jnp.moveaxis(a, 0, 2), jnp.swapaxes(a, 0, 1), jnp.rot90(a), jnp.flip(a, 1), jnp.expand_dims(a, (0, 3)), jnp.tril(a), jnp.triu(a, 1),
                          jnp.diagonal(a), jnp.trace(a), jnp.diag(a[0, :, 0])), G),
    "padding": (lambda a: [jnp.pad(a, ((1, 2), (2, 1)), mode=m) for m in ("constant", "edge", "reflect", "symmetric", "wrap", "mean", "maximum", "linear_ramp")], F),
    "indexing": (lambda a, i: (a[i], a[i, :, 0], a[:, i % 3], a[..., 1], a[1:-1, ::-1], a[i][:, i % 3], a[jnp.array([[0, 1], [2, 3]])], a.at[i, 1].get(mode="fill", fill_value=7)), G, np.array([3, 0, 9], np.int32)),
    "updates": (lambda a, i: (a.at[i].add(1.0), a.at[i, 0].multiply(a[i, 0]), a.at[:, 1].min(0.0), a.at[0, 1, 0].set(9.0), a.at[i].divide(2.0), a.at[i].power(2.0),
                              a.at[i].set(5.0, mode="drop"), a.at[i].apply(jnp.sin)), G, np.array([3, 0, 9], np.int32)),
    "selecting": (lambda a, b: (jnp.where(a > b, a, b), jnp.select([a > 1, b > 1], [a, b], 0.0), jnp.choose(jnp.array([0, 1, 1]), jnp.stack([a[:, 0], b[:, 0]]), mode="clip"),
                                jnp.piecewise(a, [a < 0, a >= 0], [lambda x: -x, lambda x: x * 2]), jnp.clip(a, -1, b), jnp.nonzero(a > 0, size=6), jnp.argwhere(a > 1, size=3)), F, F[::-1]),
    "einsums": (lambda a, b: (jnp.einsum("abc,dbc->ad", a, b), jnp.einsum("abc->cba", a), jnp.einsum("abc,acd->abd", a, b.transpose(0, 2, 1)), jnp.einsum("aab->b", a[:3]),
                              jnp.tensordot(a, b, 3), jnp.inner(a, b), jnp.kron(a[0], b[0]), jnp.vdot(a, b), jnp.cross(a[:, :, 0], b[:, :, 1])), G, G[::-1]),
    "matmul_shapes": (lambda a: (a @ a.transpose(0, 2, 1), a[0] @ a[0].T @ a[0, :, 0], jnp.matmul(a, a[:1].transpose(0, 2, 1)), jnp.dot(a, a[0].T)), G),
    "polynomials": (lambda a: (jnp.polyval(a, 0.5), jnp.interp(0.5, jnp.sort(a), a), jnp.convolve(a, a[:2], "same"), jnp.trapezoid(a), jnp.gradient(a), jnp.vander(a, 3)), V),
    "integer_ops": (lambda a, b: (jnp.gcd(a, b), jnp.lcm(a, b), jnp.divmod(a, b), jnp.floor_divide(a, b), jnp.fmod(a, b), jnp.bitwise_count(a), jnp.left_shift(a, 1), jnp.invert(a),
                                  jnp.sign(a), jnp.abs(a)), I, ints((3, 4), low=1)),
    "bits": (lambda a: (jnp.packbits(a), jnp.unpackbits(jnp.packbits(a)), jnp.signbit(F), jnp.frexp(F), jnp.ldexp(F, 3)), I > 0),
    "logic": (lambda a, b: (jnp.logical_and(a, b), jnp.logical_xor(a, b), jnp.isclose(a, b), jnp.allclose(a, b), jnp.array_equal(a, a), jnp.isin(a, b), jnp.count_nonzero(a)), F, F[::-1]),
    "rounding_all": (lambda a: (jnp.trunc(a), jnp.rint(a), jnp.round(a, 1), jnp.modf(a), jnp.mod(a, 1.5), jnp.remainder(a, -2.0), jnp.floor_divide(a, 0.7)), F),
    "meshgrids": (lambda a: (jnp.meshgrid(a, a[:2]), jnp.indices((2, 3)), jnp.linspace(a[0], a[1], 5), jnp.logspace(0, 1, 4), jnp.geomspace(1.0, 8.0, 4), jnp.identity(3)), V),
    "take_along": (lambda a, i: (jnp.take_along_axis(a, i % 4, 1), jnp.put_along_axis(a, i % 4, 0.0, 1, inplace=False), jnp.take(a, i, mode="wrap"), jnp.take(a, i, axis=0, mode="clip")), F, I),
    "segment_sum": (lambda a, i: (jax.ops.segment_sum(a, i, 4), jax.ops.segment_max(a, i, 4), jax.ops.segment_prod(a, i, 4)), F, np.array([0, 2, 0], np.int32)),
    "nn": (lambda a: (jax.nn.relu6(a), jax.nn.elu(a), jax.nn.selu(a), jax.nn.leaky_relu(a), jax.nn.softplus(a), jax.nn.soft_sign(a), jax.nn.hard_swish(a), jax.nn.gelu(a, approximate=False),
                      jax.nn.glu(a), jax.nn.log_softmax(a), jax.nn.standardize(a), jax.nn.celu(a), jax.nn.mish(a), jax.nn.log_sigmoid(a), jax.nn.squareplus(a), jax.nn.sparse_plus(a)), F),
    "attention_nn": (lambda q: jax.nn.dot_product_attention(q, q, q, is_causal=True), arange((1, 4, 2, 8), scale=0.01)),
    "mulhi": (lambda a, b: lax.mul_hi(a, b) if hasattr(lax, "mul_hi") else a * b, ints((5,), np.int32, -2**31, 2**31), ints((5,), np.int32, -2**31, 2**31)),
}

# ---------------------------------------------------------------- dtypes

FLOATS = ["float16", "bfloat16", "float32", "float64"]
NARROW = ["float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e3m4", "float8_e4m3", "float8_e8m0fnu"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def float_program(a):
    return (a + 1, a * a, jnp.exp(a), jnp.tanh(a), jnp.sum(a), jnp.max(a, 0), a @ a.T, jnp.sort(a, 1), jax.nn.softmax(a), jnp.where(a > 0, a, 0), a.astype(jnp.int32), jnp.cumsum(a, 1))


def int_program(a):
    return (a + a[::-1], a * 3, a // 2, a % 5, a.sum(), a.max(0), jnp.sort(a, 1), a @ a.T, a.astype(jnp.float32), a & 6, a << 1, jnp.argmax(a, 1), jnp.cumsum(a, 1))


def narrow_program(a):
    return (a.astype(jnp.float32), a.astype(jnp.bfloat16), a[::-1], a.reshape(-1), jnp.concatenate([a, a]), a.astype(jnp.float32).astype(a.dtype))


PROGRAMS |= {f"dtype_{d}": (float_program, (F / 4).astype(getattr(ml_dtypes, d, None) or d)) for d in FLOATS}
PROGRAMS |= {f"dtype_{d}": (int_program, ints((3, 4), d, 0, 10) if d[0] == "u" else ints((3, 4), d)) for d in INTEGERS}
PROGRAMS |= {f"dtype_{d}": (narrow_program, (np.abs(F) + 1).astype(getattr(ml_dtypes, d))) for d in NARROW}
PROGRAMS |= {
    "dtype_int4": (lambda a: (a.astype(jnp.int4).astype(jnp.int8), (a.astype(jnp.int4) + jnp.int4(1)).astype(jnp.int32), a.astype(jnp.uint4).astype(jnp.int32)), ints((3, 4), np.int8, -8, 8)),
    "dtype_bool": (lambda a: (~a, a.sum(), a.any(0), a.all(1), a.astype(jnp.float32), jnp.where(a, 1.0, 2.0), jnp.cumsum(a, 0), jnp.argmax(a, 1)), I > 0),
    "dtype_complex128": (lambda z: (z * z, jnp.abs(z), jnp.exp(z / 9), z @ z.T, z.sum(0), jnp.conj(z), z.real, z.imag), Z.astype(np.complex128)),
    "f8_dot": (lambda a: lax.dot_general(a, a, (((1,), (1,)), ((), ())), preferred_element_type=jnp.float32), (F / 4).astype(ml_dtypes.float8_e4m3fn)),
}

# ---------------------------------------------------------------- transformations and models


def rnn(params, xs):
    wx, wh, b = params

    def step(h, x):
        h = jnp.tanh(x @ wx + h @ wh + b)
        return h, h
    return lax.scan(step, jnp.zeros((xs.shape[1], wh.shape[0])), xs)[1]


RNN = [arange((3, 4), scale=0.02), arange((4, 4), scale=0.02), arange((4,))]


def block(p, x):
    h = layer_norm(x, p["g1"], p["b1"])
    q, k, v = jnp.split(h @ p["qkv"], 3, -1)
    heads = lambda t: t.reshape(t.shape[0], t.shape[1], 2, -1)
    a = attention(heads(q), heads(k), heads(v)).reshape(x.shape)
    x = x + a @ p["o"]
    h = layer_norm(x, p["g2"], p["b2"])
    return x + jax.nn.gelu(h @ p["up"]) @ p["down"]


BLOCK = {"g1": np.ones(8, np.float32), "b1": np.zeros(8, np.float32), "g2": np.ones(8, np.float32), "b2": np.zeros(8, np.float32),
         "qkv": arange((8, 24), scale=0.002), "o": arange((8, 8), scale=0.005), "up": arange((8, 16), scale=0.003), "down": arange((16, 8), scale=0.003)}
EMBED = arange((11, 8), scale=0.01)
TOKENS = np.array([[1, 4, 2, 9], [0, 3, 10, 5]], np.int32)


def transformer_loss(p, embed, tokens):
    x = block(p, embed[tokens])
    logits = x @ embed.T
    logp = jax.nn.log_softmax(logits[:, :-1])
    return -jnp.take_along_axis(logp, tokens[:, 1:, None], -1).mean()


def odd_even(n):
    return lax.while_loop(lambda s: s[0] > 1, lambda s: (jnp.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1), (n, 0))


PROGRAMS |= {
    "rnn": (rnn, RNN, arange((5, 2, 3))),
    "rnn_grad": (jax.grad(lambda p, x: (rnn(p, x) ** 2).sum()), RNN, arange((5, 2, 3))),
    "transformer": (transformer_loss, BLOCK, EMBED, TOKENS),
    "transformer_grad": (jax.value_and_grad(transformer_loss, argnums=(0, 1)), BLOCK, EMBED, TOKENS),
    "transformer_remat_grad": (jax.grad(jax.checkpoint(transformer_loss), argnums=1), BLOCK, EMBED, TOKENS),
    "per_example_grad": (jax.vmap(jax.grad(lambda w, x: jnp.tanh(w @ x).sum()), in_axes=(None, 0)), arange((2, 4)), F),
    "jacobians": (lambda x: (jax.jacfwd(lambda v: jnp.sin(v) * v[0])(x), jax.jacrev(lambda v: jnp.outer(v, v))(x)), V),
    "hvp": (lambda x, v: jax.jvp(jax.grad(lambda y: (jnp.cos(y) * y ** 3).sum()), (x,), (v,))[1], V, V[::-1]),
    "collatz": (odd_even, np.int32(27)),
    "associative_scan": (lambda x: lax.associative_scan(jnp.multiply, x, axis=0), F),
    "map": (lambda x: lax.map(lambda r: jnp.sort(r).sum(), x), F),
    "vmap_cond": (jax.vmap(lambda p, x: lax.cond(p, jnp.sin, jnp.cos, x)), np.array([True, False, True]), F),
    "vmap_while": (jax.vmap(odd_even), np.array([1, 7, 27], np.int32)),
    "nested_scan": (lambda x: lax.scan(lambda c, r: (lax.scan(lambda d, e: (d + e, d), c, r)[0], c), 0.0, x), F),
    "reverse_scan": (lambda x: lax.scan(lambda c, r: (c * 0.5 + r, c), jnp.zeros(4), x, reverse=True), F),
    "scan_length": (lambda x: lax.scan(lambda c, _: (c * 1.5, c.sum()), x, None, length=4), V),
    "cond_pair": (lambda x: lax.cond(x.sum() > 0, lambda v: {"a": v, "b": 1}, lambda v: {"a": -v, "b": 2}, x), F),
    "psum_vmap": (jax.vmap(lambda x: x / lax.psum(x, "i") + lax.pmax(x, "i"), axis_name="i"), F),
    "custom_vjp": (jax.grad(lambda x: jax.nn.softmax(x)[0] * jax.scipy.special.logsumexp(x)), V),
    "linearize": (lambda x, t: jax.linearize(lambda v: jnp.exp(jnp.sin(v)), x)[1](t), F, F[::-1]),
    "random_gamma": (lambda k: jax.random.gamma(k, jnp.float32(2.5), (4,)), KEY),
    "random_more": (lambda k: (jax.random.exponential(k, (3,)), jax.random.laplace(k, (3,)), jax.random.gumbel(k, (3,)), jax.random.truncated_normal(k, -1.0, 1.0, (4,)),
                               jax.random.cauchy(k, (3,)), jax.random.logistic(k, (3,)), jax.random.choice(k, 10, (4,), replace=False), jax.random.dirichlet(k, jnp.ones(3)),
                               jax.random.poisson(k, 3.0, (4,)), jax.random.rademacher(k, (5,))), KEY),
    "fold_in": (lambda k: jax.random.key_data(jax.random.fold_in(jax.random.wrap_key_data(k), 7)), KEY),
    "philox": (lambda k: lax.rng_bit_generator(k, (6,), dtype=np.uint32, algorithm=lax.RandomAlgorithm.RNG_PHILOX), np.arange(4, dtype=np.uint32)),
    "rng_64": (lambda k: lax.rng_bit_generator(k, (3, 2), dtype=np.uint64, algorithm=lax.RandomAlgorithm.RNG_THREE_FRY), np.arange(4, dtype=np.uint32)),
    "batch_norm": (lambda x, s, o: lax.batch_norm_training(x, s, o, 1e-5, 1) if hasattr(lax, "batch_norm_training") else x, X2, V[:3], V[:3]),
    "ragged_dot": (lambda a, b, g: lax.ragged_dot(a, b, g), arange((6, 4)), arange((3, 4, 5)), np.array([2, 1, 3], np.int32)),
    "top_k_grad": (jax.grad(lambda x: (lax.top_k(x, 2)[0] ** 2).sum()), F),
    "sort_grad": (jax.grad(lambda x: (jnp.sort(x, 1) * F).sum()), F),
    "gather_grad": (jax.grad(lambda x, i: (x[i] ** 2).sum()), F, np.array([0, 0, 2], np.int32)),
    "logsumexp_grad": (jax.grad(lambda x: jax.nn.logsumexp(x)), F),
    "cumsum_grad": (jax.grad(lambda x: (jnp.cumsum(x, 0) ** 2).sum() + jnp.cumprod(x, 1).sum()), F),
    "optimization_barrier": (lambda a: lax.optimization_barrier((a, a + 1)), F),
    "reduce_any_fn": (lambda a: lax.reduce(a, np.float32(1), lambda x, y: x * y + 1, (1,)), np.ones((2, 3), np.float32)),
    "reduce_pair": (lambda a, i: lax.reduce((a, i), (np.float32(-np.inf), np.int32(0)), lambda x, y: (jnp.maximum(x[0], y[0]), jnp.where(x[0] > y[0], x[1], y[1])), (1,)), F, I),
    "composite": (lambda x: lax.composite(lambda v: jnp.sin(v) + 1, "my.op")(x), F),
    "named_call": (lambda x: jax.named_call(jnp.sin, name="wave")(x), F),
    "f64": (lambda a: (a @ a.T, jnp.exp(a), jnp.sum(a), jnp.linalg.norm(a)), F.astype(np.float64)),
}


PROGRAMS |= jax_linalg_programs.PROGRAMS


def wide(name):
    """Whether a program needs JAX's 64-bit types."""
    return name in ("f64", "fft_f64") or name in jax_linalg_programs.WIDE or name.endswith(("64", "128"))


def program(name):
    entry = PROGRAMS[name]
    fn, args = (entry[0], entry[1:]) if isinstance(entry, tuple) else (entry, ())
    jitted = jax.jit(fn, donate_argnums=(0,) if name == "donated" else ())
    return jitted, args


# Relative to the larger of value and 1, in units of the dtype's last place. Reductions and elementary functions differ in
# order and rounding from XLA's, and the programs are up to a few hundred operations deep.
TOLERANCE = {"float64": 1e-12, "complex128": 1e-12, "float32": 3e-5, "complex64": 3e-5, "float16": 4e-3, "bfloat16": 3e-2}


def assert_close(ours, theirs, what):
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape, what
    tolerance = TOLERANCE.get(ours.dtype.name, 0)
    if tolerance == 0:
        np.testing.assert_array_equal(ours.astype(np.float64) if ours.dtype.kind == "V" else ours,
                                      theirs.astype(np.float64) if theirs.dtype.kind == "V" else theirs, err_msg=what)
    else:
        wide = np.complex128 if ours.dtype.kind == "c" else np.float64
        np.testing.assert_allclose(ours.astype(wide), theirs.astype(wide), rtol=tolerance, atol=tolerance, err_msg=what)


def kept_arguments(lowered, args):
    """The leaves that the program takes: JAX drops those it does not use."""
    leaves = [np.asarray(jnp.asarray(x)) for x in jax.tree.leaves(args)]
    return [leaves[i] for i in sorted(lowered._lowering.compile_args["kept_var_idx"])]
