"""StableHLO text against the real stack: what Xylem writes, jaxlib's parser and verifier accept; what JAX writes,
Xylem reads, and its interpreter computes JAX's values."""

import subprocess

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax
from jaxlib.mlir import ir

import jax._src.interpreters.mlir as jax_mlir
from jax._src import xla_bridge
from jax._src.lib import xla_client


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


def program(name):
    entry = PROGRAMS[name]
    fn, args = (entry[0], entry[1:]) if isinstance(entry, tuple) else (entry, ())
    jitted = jax.jit(fn, donate_argnums=(0,) if name == "donated" else ())
    return jitted, args


def run_tool(tool, *arguments):
    done = subprocess.run([tool, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def evaluate(tool, path, folder, inputs):
    """What the interpreter computes for @main of a text."""
    files = []
    for i, x in enumerate(inputs):
        files.append(folder / f"in{i}.bin")
        files[-1].write_bytes(np.ascontiguousarray(x).tobytes())
    out = []
    for k, line in enumerate(run_tool(tool, "run", path, folder, *files).splitlines()):
        name, *dims = line.split()
        dtype = np.dtype(getattr(ml_dtypes, name)) if hasattr(ml_dtypes, name) else np.dtype(name)
        out.append(np.frombuffer((folder / f"{k}.bin").read_bytes(), dtype).reshape([int(d) for d in dims]))
    return out


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


def accepts(text):
    with jax_mlir.make_ir_context():
        return ir.Module.parse(text).operation.verify()


@pytest.fixture(scope="module")
def ir_tool(tool):
    return tool("ir")


@pytest.mark.parametrize("name", PROGRAMS)
def test_jax_programs_are_read_and_evaluate_to_jax_values(name, ir_tool, tmp_path):
    jitted, args = program(name)
    lowered = jitted.lower(*args)
    text = lowered.as_text()
    path = tmp_path / f"{name}.mlir"
    path.write_text(text)
    theirs = [np.asarray(x) for x in jax.tree.leaves(jitted(*jax.tree.map(jnp.array, args)))]
    inputs = kept_arguments(lowered, args)
    ours = evaluate(ir_tool, path, tmp_path, inputs)
    assert len(ours) == len(theirs)
    for k, (a, b) in enumerate(zip(ours, theirs)):
        assert_close(a, b, f"{name}: result {k}")

    # With locations and aliases the program is the same.
    debug = tmp_path / f"{name}.debug.mlir"
    debug.write_text(lowered.as_text(debug_info=True))
    assert run_tool(ir_tool, "native", debug) == run_tool(ir_tool, "native", path)
    # In the generic form too.
    generic = tmp_path / f"{name}.generic.mlir"
    generic.write_text(lowered.compiler_ir("stablehlo").operation.get_asm(print_generic_op_form=True))
    assert run_tool(ir_tool, "stablehlo", generic) == run_tool(ir_tool, "stablehlo", path)

    # What we write of it, jaxlib accepts, and it is the same program to us and to jaxlib.
    written = run_tool(ir_tool, "stablehlo", path)
    assert accepts(written), written
    again = tmp_path / f"{name}.again.mlir"
    again.write_text(written)
    assert run_tool(ir_tool, "native", again) == run_tool(ir_tool, "native", path)


def test_texts_of_every_op_are_accepted_and_come_back_the_same(ir_tool, tmp_path):
    run_tool(ir_tool, "samples", tmp_path)
    paths = sorted(tmp_path.glob("*.mlir"))
    assert len(paths) > 60
    refused = []
    for path in paths:
        text = path.read_text()
        try:
            with jax_mlir.make_ir_context():
                module = ir.Module.parse(text)
                assert module.operation.verify()
                theirs = module.operation.get_asm()
        except Exception as e:
            refused.append(f"{path.name}: {e}\n{text}")
            continue
        back = tmp_path / f"{path.stem}.back.mlir"
        back.write_text(theirs)
        assert run_tool(ir_tool, "native", back) == run_tool(ir_tool, "native", path), text
    assert not refused, "\n".join(refused)


@pytest.mark.parametrize("name", ["mlp_grad", "scan_grad", "sort", "nested_control", "constants"])
def test_xla_computes_the_same_from_our_text(name, ir_tool, tmp_path):
    jitted, args = program(name)
    lowered = jitted.lower(*args)
    path = tmp_path / "p.mlir"
    path.write_text(lowered.as_text())
    written = run_tool(ir_tool, "stablehlo", path)
    client = xla_bridge.get_backend("cpu")
    with jax_mlir.make_ir_context():
        module = ir.Module.parse(written)
        executable = client.compile_and_load(module, xla_client.DeviceList(tuple(client.local_devices()[:1])), xla_client.CompileOptions())
    buffers = [jax.device_put(x) for x in kept_arguments(lowered, args)]
    results = executable.execute_sharded(buffers).disassemble_into_single_device_arrays()
    for ours, theirs in zip(results, jax.tree.leaves(jitted(*args))):
        np.testing.assert_array_equal(np.asarray(ours[0]), np.asarray(theirs))
