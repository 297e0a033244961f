"""Writes the artifacts of this folder with the real serializers (jaxlib of the parity environment), and their programs as text.

control.mlir holds the program; control.FORMAT.bc is it at StableHLO 0.9.0, 0.10.0, 0.12.0, 0.14.0 and 1.17.0 (MLIR bytecode 0, 1,
3, 4 and 6), as plain MLIR bytecode, and as jax.export serialized it. mixed.bc has Shardy beside VHLO.
"""

import io
import pathlib

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax._src.interpreters import mlir as jax_mlir
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

HERE = pathlib.Path(__file__).parent
jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")      # no paths of this machine


def control(x, n):
    def body(c):
        i, y = c
        return i + 1, lax.cond(i % 2 == 0, lambda v: v + x[0], lambda v: jnp.sort(v), y)
    _, y = lax.while_loop(lambda c: c[0] < n, body, (0, x))
    return y.at[n].add(1.0), jax.jit(lambda v: v.sum(0))(y[None] * np.arange(3, dtype=np.float32)[:, None])


MIXED = """
module @mixed attributes {mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func public @main(%arg0: tensor<2x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y":(1)2, ?}], replicated={"y":(2)2}>}) -> (tensor<2x4xf32> {jax.result_info = "r"}) {
    %0 = stablehlo.negate %arg0 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=2, j=4}, custom>} : tensor<2x4xf32>
    %1 = stablehlo.add %0, %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}p1, {?}]>]>} : tensor<2x4xf32>
    return %1 : tensor<2x4xf32>
  }
}
"""


def main():
    args = (np.ones(4, np.float32), np.int32(2))
    lowered = jax.jit(control).lower(*args)
    with jax_mlir.make_ir_context():
        module = ir.Module.parse(lowered.as_text(debug_info=True))
        text = module.operation.get_asm(enable_debug_info=True)
        (HERE / "control.mlir").write_text(text + "\n")
        for version in ("0.9.0", "0.10.0", "0.12.0", "0.14.0", "1.17.0"):
            (HERE / f"control.{version}.bc").write_bytes(stablehlo.serialize_portable_artifact(module, version))
        plain = io.BytesIO()
        module.operation.write_bytecode(plain)
        (HERE / "control.plain.bc").write_bytes(plain.getvalue())
        mixed = ir.Module.parse(MIXED)
        (HERE / "mixed.mlir").write_text(mixed.operation.get_asm() + "\n")
        (HERE / "mixed.bc").write_bytes(stablehlo.serialize_portable_artifact(mixed, "1.17.0", True))
        plain = io.BytesIO()
        mixed.operation.write_bytecode(plain)
        (HERE / "mixed.plain.bc").write_bytes(plain.getvalue())
    exported = jax.export.export(jax.jit(control))(*args)
    (HERE / "control.export").write_bytes(exported.serialize())
    (HERE / "control.export.mlir").write_text(exported.mlir_module() + "\n")


if __name__ == "__main__":
    main()
