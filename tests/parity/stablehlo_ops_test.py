"""Ops that StableHLO leaves to kernels, in the interpreter, against JAX on random operands: programs that JAX
emits are run with their operands and JAX's results as constants and checks."""

import pathlib
import tempfile

import built
import jax
import numpy as np
import pytest
from jax import lax

jax.config.update("jax_enable_x64", True)

ELEMENT = {"float32": "f32", "float64": "f64", "complex64": "complex<f32>"}


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
