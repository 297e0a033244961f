"""Portable artifacts and plain bytecode beside jaxlib: what it writes is read here, and what is written here it reads, as one program."""

import io
import subprocess

import jax
import jax.export
import jax_programs
import numpy as np
import pytest
from jax._src.interpreters import mlir as jax_mlir
from jaxlib import _jax
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

READ = ["0.9.0", "0.10.0", "0.13.0", "0.14.0", "0.19.0", "1.0.0", "1.5.0", "1.8.0", "1.10.0", "1.14.0", "1.17.0"]
WRITTEN = ["0.9.0", "0.11.0", "0.12.0", "0.14.0", "0.17.0", "1.0.0", "1.6.0", "1.9.0", "1.13.7", "1.17.0"]

# jaxlib cannot bring up reducers of old scatters that hold ops with an accuracy, of its own artifacts either.
UNREADABLE = {"updates": "1.1.0"}


class Tool:
    """The tool as a server: one command a line, its output up to OK or ERROR."""

    def __init__(self, path):
        self.process = subprocess.Popen([path, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        lines = []
        for line in self.process.stdout:
            if line == "OK\n":
                return "".join(lines)
            if line.startswith("ERROR "):
                raise RuntimeError(line[6:].strip())
            lines.append(line)
        raise AssertionError(f"the tool ended on {words}")


@pytest.fixture(scope="module")
def bytecode(tool):
    server = Tool(tool("bytecode"))
    yield server
    server.process.stdin.close()
    server.process.wait()


def key(version):
    return tuple(int(part) for part in version.split("."))


def lowered(name):
    with jax.enable_x64(jax_programs.wide(name)):
        jitted, args = jax_programs.program(name)
        return jitted.lower(*args).compiler_ir("stablehlo")


def plain_bytes(module):
    out = io.BytesIO()
    module.operation.write_bytecode(out)
    return out.getvalue()


def read_by_jaxlib(artifact, locations=False):
    with jax_mlir.make_ir_context() as context:
        return stablehlo.deserialize_portable_artifact(context, artifact).operation.get_asm(enable_debug_info=locations)


@pytest.mark.parametrize("name", jax_programs.PROGRAMS)
def test_what_jaxlib_writes_reads_as_its_text(name, bytecode, tmp_path):
    module = lowered(name)
    plain = plain_bytes(module)
    text = tmp_path / "p.mlir"
    text.write_text(module.operation.get_asm())
    (tmp_path / "p.bc").write_bytes(plain)
    assert bytecode("text", tmp_path / "p.bc") == bytecode("text", text)
    artifacts = 0
    for version in READ:
        try:
            artifact = _jax.mlir.serialize_portable_artifact(plain, version, True)
        except Exception:       # the version lacks something
            continue
        (tmp_path / "a.bc").write_bytes(artifact)
        (tmp_path / "a.mlir").write_text(read_by_jaxlib(artifact))
        assert bytecode("text", tmp_path / "a.bc") == bytecode("text", tmp_path / "a.mlir"), version
        artifacts += 1
    assert artifacts > 0


@pytest.mark.parametrize("name", jax_programs.PROGRAMS)
def test_jaxlib_reads_what_is_written_as_what_it_writes(name, bytecode, tmp_path):
    # From jaxlib's artifact, so that both start with the ops that an artifact has.
    source = _jax.mlir.serialize_portable_artifact(plain_bytes(lowered(name)), "1.17.0", True)
    (tmp_path / "source.bc").write_bytes(source)
    minimum = bytecode("minimum", tmp_path / "source.bc").split()[0]
    for version in WRITTEN:
        if key(version)[:2] < key(minimum)[:2]:
            with pytest.raises(RuntimeError, match="the target is"):
                bytecode("write", tmp_path / "source.bc", version, tmp_path / "out.bc")
            continue
        if key(version) < key(UNREADABLE.get(name, "0.0.0")):
            continue
        bytecode("write", tmp_path / "source.bc", version, tmp_path / "out.bc")
        ours = (tmp_path / "out.bc").read_bytes()
        with jax_mlir.make_ir_context() as context:
            theirs = stablehlo.serialize_portable_artifact(stablehlo.deserialize_portable_artifact(context, source), version, True)
        # Older targets have places instead of ranges of columns; jaxlib's bindings leave the ranges.
        locations = key(version) >= (1, 9, 0)
        assert read_by_jaxlib(ours, locations) == read_by_jaxlib(theirs, locations), version


@pytest.mark.parametrize("name", ["mlp_grad", "scan_grad", "sort", "nested_control", "constants"])
def test_the_module_of_a_jax_export_is_read(name, bytecode, tmp_path):
    jitted, args = jax_programs.program(name)
    args = jax.tree.map(lambda x: jax.ShapeDtypeStruct(np.shape(x), jax.numpy.asarray(x).dtype), args)
    exported = jax.export.export(jitted)(*args)
    (tmp_path / "e.bin").write_bytes(exported.serialize())
    (tmp_path / "e.mlir").write_text(exported.mlir_module())
    assert bytecode("text", tmp_path / "e.bin") == bytecode("text", tmp_path / "e.mlir")


# One op of each kind that needs a version, and what jaxlib says of it.
NEEDS = {
    "tan": ("1.4.0", "%0 = stablehlo.tan %a : tensor<2xf32>"),
    "accuracy": ("1.9.0", "%0 = stablehlo.exponential %a {result_accuracy = #stablehlo.result_accuracy<mode = "
                          "#stablehlo.result_accuracy_mode<HIGHEST>>} : tensor<2xf32>"),
    "accuracy_log": ("1.10.0", "%0 = stablehlo.log %a {result_accuracy = #stablehlo.result_accuracy<atol = 1.0e-3, rtol = 0.5, ulps = 3, "
                               "mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : tensor<2xf32>"),
    "algorithm": ("1.6.0", "%1 = stablehlo.dot_general %a, %a, contracting_dims = [] x [], algorithm = <lhs_precision_type = tf32, "
                           "rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, "
                           "num_primitive_operations = 1, allow_imprecise_accumulation = false> : (tensor<2xf32>, tensor<2xf32>) -> "
                           "tensor<2x2xf32>\n  %0 = stablehlo.negate %a : tensor<2xf32>"),
    "f8E3M4": ("1.7.0", "%1 = stablehlo.convert %a : (tensor<2xf32>) -> tensor<2xf8E3M4>\n"
                        "  %0 = stablehlo.convert %1 : (tensor<2xf8E3M4>) -> tensor<2xf32>"),
    "f4E2M1FN": ("1.8.0", "%1 = stablehlo.convert %a : (tensor<2xf32>) -> tensor<2xf4E2M1FN>\n"
                          "  %0 = stablehlo.convert %1 : (tensor<2xf4E2M1FN>) -> tensor<2xf32>"),
    "i2": ("1.2.0", "%c = stablehlo.constant dense<[1, -2]> : tensor<2xi2>\n  %0 = stablehlo.negate %a : tensor<2xf32>"),
    "f8E5M2FNUZ": ("0.10.0", "%1 = stablehlo.convert %a : (tensor<2xf32>) -> tensor<2xf8E5M2FNUZ>\n"
                             "  %0 = stablehlo.convert %1 : (tensor<2xf8E5M2FNUZ>) -> tensor<2xf32>"),
}


@pytest.mark.parametrize("name", NEEDS)
def test_what_a_version_lacks_is_refused_where_jaxlib_refuses(name, bytecode, tmp_path):
    needed, line = NEEDS[name]
    text = f"func.func public @main(%a: tensor<2xf32>) -> tensor<2xf32> {{\n  {line}\n  return %0 : tensor<2xf32>\n}}\n"
    (tmp_path / "p.mlir").write_text(text)
    assert bytecode("minimum", tmp_path / "p.mlir").split()[0] == needed
    for version in [f"0.{m}.0" for m in range(9, 21)] + [f"1.{m}.0" for m in range(18)]:
        with jax_mlir.make_ir_context():
            module = ir.Module.parse(text)
            try:
                theirs = stablehlo.serialize_portable_artifact(module, version)
            except Exception:
                theirs = None
        assert (theirs is not None) == (key(version) >= key(needed)), version
        if theirs is None:
            with pytest.raises(RuntimeError, match=f"exists from {needed}; the target is {version}"):
                bytecode("write", tmp_path / "p.mlir", version, tmp_path / "p.bc")
        else:
            bytecode("write", tmp_path / "p.mlir", version, tmp_path / "p.bc")
            assert read_by_jaxlib((tmp_path / "p.bc").read_bytes()) == read_by_jaxlib(theirs)
