module @mixed attributes {mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func public @main(%arg0: tensor<2x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y":(1)2, ?}], replicated={"y":(2)2}>}) -> (tensor<2x4xf32> {jax.result_info = "r"}) {
    %0 = stablehlo.negate %arg0 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=2, j=4}, custom>} : tensor<2x4xf32>
    %1 = stablehlo.add %0, %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}p1, {?}]>]>} : tensor<2x4xf32>
    return %1 : tensor<2x4xf32>
  }
}

