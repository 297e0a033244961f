"""Shardy beside the real stack: its ops and attributes in text and in mixed artifacts, as jaxlib and JAX write them, come
back from Xylem as the program that jaxlib reads."""

import os
import pathlib
import subprocess
import sys

import pytest
from jax._src.interpreters import mlir as jax_mlir
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

# Every op of the dialect in jaxlib 0.10.2 that its verifier lets stand in a program.
OPS = """
module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  sdy.mesh @order = <["a"=8], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
  sdy.mesh @one = <[], device_ids=[3]>
  sdy.mesh @none = <[]> {stablehlo.mesh = {axes = []}}
  func.func public @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y", ?}p1]>}, %arg1: tensor<8x8xbf16>) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}]>}) {
    %0 = sdy.sharding_constraint %arg0 <@mesh, [{"x"}, {?}], replicated={"y":(1)2}> : tensor<8x8xf32>
    %1 = sdy.reshard %0 <@mesh, [{}, {}], unreduced={"y"}> : tensor<8x8xf32>
    sdy.sharding_group %1 group_id=3 : tensor<8x8xf32>
    %2 = sdy.propagation_barrier %1 allowed_direction=FORWARD : tensor<8x8xf32>
    %3:2 = stablehlo.optimization_barrier %2, %2 : tensor<8x8xf32>, tensor<8x8xf32>
    %4 = sdy.data_flow_edge %3#0 sharding=<@mesh, [{"x"}, {}]> : tensor<8x8xf32>
    %5 = sdy.data_flow_edge %3#1 : tensor<8x8xf32>
    %6 = sdy.all_slice [{"x"}, {"y"}] %5 out_sharding=<@mesh, [{"x"}, {"y"}]> : tensor<8x8xf32>
    %7 = sdy.all_gather [{}, {"y"}] %6 out_sharding=<@mesh, [{"x"}, {}]> : tensor<8x8xf32>
    %8 = sdy.all_to_all [{"x"}: 0->1] %7 out_sharding=<@mesh, [{}, {"x"}]> : tensor<8x8xf32>
    %9 = sdy.collective_permute %8 out_sharding=<@mesh, [{}, {"x"}]> : tensor<8x8xf32>
    %10 = sdy.sharding_constraint %9 <@mesh, [{"x"}, {}], unreduced={"y"}> : tensor<8x8xf32>
    %11 = sdy.all_reduce {"y"} %10 out_sharding=<@mesh, [{"x"}, {}]> : tensor<8x8xf32>
    %12 = sdy.reduce_scatter [{}, {"y"}] %10 out_sharding=<@mesh, [{"x"}, {"y"}]> : tensor<8x8xf32>
    %13 = sdy.sharding_constraint %12 <@mesh, [{}, {"x"}]> : tensor<8x8xf32>
    %14 = sdy.replicated_to_unreduced {"y"} %13 out_sharding=<@mesh, [{}, {"x"}], unreduced={"y"}> : tensor<8x8xf32>
    %15 = sdy.sharded_to_unreduced [{}, {"x"}] %13 out_sharding=<@mesh, [{}, {}], unreduced={"x"}> : tensor<8x8xf32>
    %16 = sdy.constant dense<1.000000e+00> : tensor<8x8xf32>
    %17 = sdy.named_computation<"f">(%11, %16) in_shardings=[<@mesh, [{"x"}, {}]>, <@mesh, [{}, {}]>] out_shardings=[<@mesh, [{}, {}]>] (%arg2: tensor<8x8xf32>, %arg3: tensor<8x8xf32>) {
      %23 = stablehlo.add %arg2, %arg3 : tensor<8x8xf32>
      sdy.return %23 : tensor<8x8xf32>
    } : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %18 = sdy.named_computation<"g">(%17) (%arg2: tensor<8x8xf32>) {
      sdy.return %arg2 : tensor<8x8xf32>
    } : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %19 = sdy.manual_computation(%18, %arg1) in_shardings=[<@mesh, [{"x"}, {}]>, <@mesh, [{}, {"y"}]>] out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x", "y"} (%arg2: tensor<4x8xf32>, %arg3: tensor<8x2xbf16>) {
      %23 = stablehlo.multiply %arg2, %arg2 : tensor<4x8xf32>
      sdy.return %23 : tensor<4x8xf32>
    } : (tensor<8x8xf32>, tensor<8x8xbf16>) -> tensor<8x8xf32>
    %20 = stablehlo.add %19, %16 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<8x8xf32>
    %21 = stablehlo.dot_general %20, %20, contracting_dims = [1] x [0] {sdy.sharding_rule = #sdy.op_sharding_rule<([i, k], [k, j])->([i, j]) {i=8, j=8, k=8} reduction={k}>} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    return %21 : tensor<8x8xf32>
  }
}
"""

# shard_map, constraints, loops and gradients on eight devices, lowered in a process of their own.
JAX = """
import sys
import jax, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((2, 4), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
def constrained(a, b):
    c = jax.lax.with_sharding_constraint(a @ b, NamedSharding(mesh, P("x", "y")))
    return jax.lax.fori_loop(0, 3, lambda i, v: jax.lax.with_sharding_constraint(v * 2, NamedSharding(mesh, P(None, "y"))), c)
def mapped(a, b):
    f = jax.shard_map(lambda u, v: jax.lax.psum(u @ v, "y"), mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", None))
    return f(a, b).sum()
def loss(a, b):
    return jnp.sin(constrained(a, b)).sum() + mapped(a, b)
x = jax.ShapeDtypeStruct((8, 16), jnp.float32, sharding=NamedSharding(mesh, P("x", None)))
y = jax.ShapeDtypeStruct((16, 8), jnp.float32, sharding=NamedSharding(mesh, P(None, "y")))
for name, f in {"constrained": constrained, "mapped": mapped, "gradient": jax.grad(loss)}.items():
    open(f"{sys.argv[1]}/{name}.mlir", "w").write(jax.jit(f).lower(x, y).as_text())
"""


def parsed(text):
    with jax_mlir.make_ir_context():
        module = ir.Module.parse(text)
        assert module.operation.verify()
        return canonical(module)


def canonical(module):
    """A module's text without what has no meaning: the order of meshes, and `public` spelled out."""
    lines = str(module).replace("func.func public ", "func.func ").replace('sym_visibility = "public"', "").splitlines()
    meshes = sorted(line for line in lines if line.strip().startswith("sdy.mesh"))
    return meshes + [line for line in lines if not line.strip().startswith("sdy.mesh")]


def artifact(text):
    with jax_mlir.make_ir_context():
        return stablehlo.serialize_portable_artifact(ir.Module.parse(text), "1.17.0", True)


def read_back(data):
    with jax_mlir.make_ir_context() as context:
        module = stablehlo.deserialize_portable_artifact(context, data)
        assert module.operation.verify()
        return canonical(module)


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shardy")
    env = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    done = subprocess.run([sys.executable, "-c", JAX, str(folder)], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    out = {path.stem: path.read_text() for path in sorted(pathlib.Path(folder).glob("*.mlir"))}
    assert len(out) == 3 and all("sdy." in text for text in out.values())
    return {"ops": OPS, **out}


@pytest.mark.parametrize("name", ["ops", "constrained", "mapped", "gradient"])
def test_texts_and_artifacts_come_back_as_the_program_that_jaxlib_reads(name, programs, xylem, tmp_path):
    text = programs[name]
    theirs = parsed(text)
    source = tmp_path / "in.mlir"
    source.write_text(text)

    def convert(*arguments):
        done = subprocess.run([xylem, "convert", "--strip-debug", *map(str, arguments)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    for options in ([], ["--generic"]):
        convert(*options, source, tmp_path / "out.mlir")
        assert parsed((tmp_path / "out.mlir").read_text()) == theirs
    (tmp_path / "theirs.mlirbc").write_bytes(artifact(text))
    convert(source, tmp_path / "ours.mlirbc")
    # Not the text's own form: artifacts leave out what says what absence says.
    assert read_back((tmp_path / "ours.mlirbc").read_bytes()) == read_back((tmp_path / "theirs.mlirbc").read_bytes())
    convert(tmp_path / "theirs.mlirbc", tmp_path / "back.mlir")
    assert parsed((tmp_path / "back.mlir").read_text()) == read_back((tmp_path / "theirs.mlirbc").read_bytes())


def test_one_device_programs_run_through_their_constraints(xylem, tmp_path):
    text = """
sdy.mesh @mesh = <["x"=1]>
func.func @main() -> tensor<2xf32> {
  %c = sdy.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %0 = sdy.sharding_constraint %c <@mesh, [{"x"}]> : tensor<2xf32>
  %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%a: tensor<2xf32>) {
    %b = stablehlo.add %a, %a : tensor<2xf32>
    sdy.return %b : tensor<2xf32>
  } : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
"""
    path = tmp_path / "one.mlir"
    path.write_text(text)
    for backend in ("cpu", "interpret"):
        done = subprocess.run([xylem, "run", "--backend", backend, path], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == "dense<[2.000000e+00, 4.000000e+00]> : tensor<2xf32>"
