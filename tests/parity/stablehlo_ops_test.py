"""Ops that StableHLO leaves to kernels, in the interpreter, against JAX on random operands: programs that JAX
emits are run with their operands and JAX's results as constants and checks."""

import pathlib
import tempfile

import built
import jax
import numpy as np
import pytest
from jax import lax
from jax._src import xla_bridge
from jax._src.interpreters import mlir as jax_mlir
from jaxlib import xla_client
from jaxlib.mlir import ir

jax.config.update("jax_enable_x64", True)

ELEMENT = {"float32": "f32", "float64": "f64", "complex64": "complex<f32>", "uint8": "ui8", "uint16": "ui16",
           "uint32": "ui32", "uint64": "ui64"}


def constant(a):
    a = np.asarray(a, order="C")
    kind = "tensor<" + "".join(f"{d}x" for d in a.shape) + ELEMENT[str(a.dtype)] + ">"
    return f'stablehlo.constant dense<"0x{a.tobytes().hex().upper()}"> : {kind}', kind


def program(fn, args, tolerance):
    """A module whose main calls JAX's program on `args` and checks its results."""
    lowered = jax.jit(fn).lower(*args)
    results = jax.tree.leaves(jax.jit(fn)(*args))
    text = lowered.as_text().replace("func.func public @main", "func.func private @fn")
    body = text.split(" {\n", 1)[1].rsplit("}", 1)[0]
    lines, kinds = [], []
    for i, a in enumerate(args):
        value, kind = constant(np.asarray(a))
        lines.append(f"%x{i} = {value}")
        kinds.append(kind)
    wanted = [constant(np.asarray(r)) for r in results]
    uses = ", ".join(f"%x{i}" for i in range(len(args)))
    lines.append(f"%r:{len(wanted)} = call @fn({uses}) : ({', '.join(kinds)}) -> ({', '.join(k for _, k in wanted)})")
    for i, (value, kind) in enumerate(wanted):
        lines.append(f"%e{i} = {value}")
        lines.append(f"check.expect_almost_eq %r#{i}, %e{i}, tolerance = {tolerance} : {kind}")
    inside = "\n    ".join(lines)
    return f"module {{\n{body}\n  func.func public @main() {{\n    {inside}\n    return\n  }}\n}}\n"


def check(programs):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "programs.mlir"
        path.write_text("// -----\n".join(programs))
        status, output, errors = built.run(built.XYLEM, "run", "--split", "--backend", "interpret", path, check=False)
    lines = output.decode().splitlines()
    assert status == 0, output.decode() + errors.decode()
    assert sum(line.startswith("ok ") for line in lines) == len(programs), output.decode()


def normal(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("spatial", range(4))
def test_convolutions(spatial):
    rng = np.random.default_rng(spatial)
    programs = []
    for k in range(24):
        groups = 1 + k % 2
        batch_groups = [1, 1, 2][k % 3] if groups == 1 else 1
        size = [int(v) for v in rng.integers(3, 7, spatial)]
        kernel = [int(v) for v in rng.integers(1, 4, spatial)]
        x, w = normal(rng, 2 * batch_groups, 4, *size), normal(rng, 4, 4 // groups, *kernel)
        stride, lhs, rhs = (tuple(int(v) for v in rng.integers(1, 3, spatial)) for _ in range(3))
        padding = [(int(a), int(b)) for a, b in rng.integers(-1, 3, (spatial, 2))]

        def fn(x, w):
            return lax.conv_general_dilated(x, w, stride, padding, lhs, rhs, feature_group_count=groups,
                                            batch_group_count=batch_groups)

        programs.append(program(fn, (x, w), 2e-4))
    check(programs)


def test_fft():
    rng = np.random.default_rng(1)
    programs = []
    for shape in [(8,), (7,), (4, 6), (3, 5, 4), (2, 9)]:
        z = (normal(rng, *shape) + 1j * normal(rng, *shape)).astype(np.complex64)
        x = normal(rng, *shape)
        for n in range(1, len(shape) + 1):
            length = shape[-n:]
            for kind, a in [("FFT", z), ("IFFT", z), ("RFFT", x), ("IRFFT", z[..., :length[-1] // 2 + 1])]:
                programs.append(program(lambda a, k=kind: lax.fft(a, k, length), (a,), 1e-4))
    check(programs)


def test_special_functions():
    rng = np.random.default_rng(2)
    x = np.concatenate([rng.uniform(0.1, 30, 200), rng.uniform(-5, 5, 200)])
    programs = []
    for op in (lax.lgamma, lax.digamma, lax.bessel_i1e):
        programs.append(program(op, (x.astype(np.float32),), 1e-3))
        programs.append(program(op, (x,), 1e-7))
    programs.append(program(lax.zeta, (rng.uniform(1.5, 8, 300), rng.uniform(0.3, 20, 300)), 1e-6))
    order = np.repeat(np.arange(4), 50).astype(np.float64)
    programs.append(program(lax.polygamma, (order, rng.uniform(0.5, 20, 200)), 1e-6))
    check(programs)


def test_gradient_of_max_pooling():
    x = normal(np.random.default_rng(3), 4, 6, 6, 2)

    def pooled(x):
        windows = lax.reduce_window(x, -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), [(0, 0), (0, 0), (1, 1), (0, 0)])
        return windows.sum()

    check([program(jax.grad(pooled), (x,), 1e-4)])


def xla(text, args):
    """Results of a StableHLO program that jaxlib compiles."""
    backend = xla_bridge.get_backend("cpu")
    with jax_mlir.make_ir_context():
        module = ir.Module.parse(text)
        code = jax_mlir.module_to_bytecode(module)
    loaded = backend.compile_and_load(code, backend.devices()[:1], xla_client.CompileOptions())
    results = loaded.execute_sharded([jax.device_put(a) for a in args]).disassemble_into_single_device_arrays()
    return [np.asarray(r[0]) for r in results]


def op_program(op, args, kinds, tolerance):
    """A module that runs `op` on %x0, … and checks its results %r, of these types, against XLA's."""
    ins = [constant(a) for a in args]
    many = len(kinds) > 1
    values = [f"%r#{i}" if many else "%r" for i in range(len(kinds))]
    head = f"%r:{len(kinds)}" if many else "%r"
    signature = ", ".join(f"%x{i}: {kind}" for i, (_, kind) in enumerate(ins))
    results = xla(f"func.func public @main({signature}) -> ({', '.join(kinds)}) {{\n  {head} = {op}\n"
                  f"  return {', '.join(values)} : {', '.join(kinds)}\n}}\n", args)
    lines = [f"%x{i} = {value}" for i, (value, _) in enumerate(ins)] + [f"{head} = {op}"]
    for i, (name, result) in enumerate(zip(values, results)):
        value, kind = constant(result)
        lines.append(f"%e{i} = {value}")
        lines.append(f"check.expect_almost_eq {name}, %e{i}, tolerance = {tolerance} : {kind}" if tolerance else
                     f"check.expect_eq {name}, %e{i} : {kind}")
    inside = "\n  ".join(lines)
    return f"func.func @main() {{\n  {inside}\n  return\n}}\n"


def test_factorisations_and_triangular_systems():
    rng = np.random.default_rng(4)
    programs = []
    for n in (1, 3, 5):
        a = normal(rng, 2, n, n)
        definite = a @ np.swapaxes(a, -1, -2) + n * np.eye(n, dtype=np.float32)
        kind = f"tensor<2x{n}x{n}xf32>"
        for lower in ("true", "false"):
            for matrix in (definite, -definite):
                programs.append(op_program(f"stablehlo.cholesky %x0, lower = {lower} : {kind}", [matrix], [kind], 1e-4))
            for left in ("true", "false"):
                for transpose in ("NO_TRANSPOSE", "TRANSPOSE"):
                    for unit in ("true", "false"):
                        op = (f'"stablehlo.triangular_solve"(%x0, %x1) <{{left_side = {left}, lower = {lower}, '
                              f"transpose_a = #stablehlo<transpose {transpose}>, unit_diagonal = {unit}}}> : "
                              f"({kind}, {kind}) -> {kind}")
                        programs.append(op_program(op, [definite / n, normal(rng, 2, n, n)], [kind], 2e-3))
    check(programs)


def test_random_bits_are_equal():
    rng = np.random.default_rng(5)
    programs = []
    for algorithm, words in (("THREE_FRY", 2), ("PHILOX", 2), ("PHILOX", 3), ("DEFAULT", 2)):
        for element in ("ui8", "ui16", "ui32", "ui64"):
            for shape in ("5", "3x4", "7x3", "0x2"):
                kinds = [f"tensor<{words}xui64>", f"tensor<{shape}x{element}>"]
                op = (f"stablehlo.rng_bit_generator %x0, algorithm = {algorithm} : ({kinds[0]}) -> "
                      f"({kinds[0]}, {kinds[1]})")
                programs.append(op_program(op, [rng.integers(0, 2**63, words).astype(np.uint64)], kinds, 0))
    check(programs)


def test_batch_norm():
    rng = np.random.default_rng(6)
    x, f = normal(rng, 4, 3), rng.uniform(0.5, 2, 3).astype(np.float32)
    kinds = ["tensor<4x3xf32>", "tensor<3xf32>", "tensor<3xf32>"]
    attrs = "<{epsilon = 0.01 : f32, feature_index = 1 : i64}>"
    training = (f'"stablehlo.batch_norm_training"(%x0, %x1, %x1) {attrs} : ({", ".join(kinds)}) -> '
                f'({", ".join(kinds)})')
    grad = (f'"stablehlo.batch_norm_grad"(%x0, %x1, %x1, %x1, %x0) {attrs} : '
            f'({", ".join(kinds + [kinds[1], kinds[0]])}) -> ({", ".join(kinds)})')
    check([op_program(training, [x, f], kinds, 1e-4), op_program(grad, [x, f], kinds, 1e-3)])
