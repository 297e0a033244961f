"""StableHLO text against the real stack: what Xylem writes, jaxlib's parser and verifier accept; what JAX writes,
Xylem reads, and its interpreter computes JAX's values."""

import subprocess

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jaxlib.mlir import ir

from jax_programs import PROGRAMS, assert_close, kept_arguments, program

import jax._src.interpreters.mlir as jax_mlir
from jax._src import xla_bridge
from jax._src.lib import xla_client


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


# What jaxlib 0.10.2 cannot take, and how it says so.
LACKING = {
    "broadcast_clamp": "is unknown",
    "checks": "Dialect `check' not found",
    "collectives": "requires a single operand",  # collective_broadcast of several operands came later
    "printing": "Dialect `interpreter' not found",
    "quantised": "unregistered dialect",
    "shardy": "unknown mesh",  # it has no module around it; shardy_test.py has the ops with their meshes
}


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
            if LACKING.get(path.stem, "\0") not in str(e):
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
