#include "xylem/ir/testing/text_samples.h"

#include <fmt/format.h>

#include "xylem/base/error.h"
#include "xylem/ir/builder.h"
#include "xylem/ir/text.h"
#include "xylem/ir/verify.h"

namespace xylem::ir::testing {
namespace {

constexpr std::string_view kSamples = R"(
graph @compare(%0: f32[3], %1: f32[3]) -> (i1[3], i1[3], f32[3]) {
  %2 = stablehlo.compare(%0, %1) {comparison_direction = #LT} : i1[3]
  %3 = stablehlo.compare(%0, %1) {compare_type = #TOTALORDER, comparison_direction = #GE} : i1[3]
  %4 = stablehlo.select(%2, %0, %1) : f32[3]
  return %2, %3, %4
}
graph @scalar_bounds(%0: i1[], %1: f32[], %2: f32[3]) -> (f32[3], f32[3]) {
  %3 = stablehlo.clamp(%1, %2, %1) : f32[3]
  %4 = stablehlo.select(%0, %2, %3) : f32[3]
  return %3, %4
}
graph @conversions(%0: f32[2], %1: bf16[4]) -> (i32[2], i32[2], f32[2], u8[4,2], f32[2]) {
  %2 = stablehlo.convert(%0) {result_dtype = dtype i32} : i32[2]
  %3 = stablehlo.bitcast_convert(%0) {result_dtype = dtype i32} : i32[2]
  %4 = stablehlo.reduce_precision(%0) {exponent_bits = 5, mantissa_bits = 10} : f32[2]
  %5 = stablehlo.bitcast_convert(%1) {result_dtype = dtype u8} : u8[4,2]
  %6 = stablehlo.convert(%0) {result_dtype = dtype f32} : f32[2]
  return %2, %3, %4, %5, %6
}
graph @constants() -> (f32[2,2], f32[], f32[3], i1[2], i64[], u64[], c64[2], bf16[2], f64[2], f32[0,3], i4[3]) {
  %0 = stablehlo.constant() {value = dense f32[2,2] [1, 0.1, -0, 1e-45]} : f32[2,2]
  %1 = stablehlo.constant() {value = dense f32[] 0x7FC00123} : f32[]
  %2 = stablehlo.constant() {value = dense f32[3] [inf, -inf, 0xFFFFFFFF]} : f32[3]
  %3 = stablehlo.constant() {value = dense i1[2] [true, false]} : i1[2]
  %4 = stablehlo.constant() {value = dense i64[] -9223372036854775808} : i64[]
  %5 = stablehlo.constant() {value = dense u64[] 18446744073709551615} : u64[]
  %6 = stablehlo.constant() {value = dense c64[2] [(1.5, -0), (inf, 0x7FC00000)]} : c64[2]
  %7 = stablehlo.constant() {value = dense bf16[2] [0.1, -inf]} : bf16[2]
  %8 = stablehlo.constant() {value = dense f64[2] [0.1, 1e-310]} : f64[2]
  %9 = stablehlo.constant() {value = dense f32[0,3] []} : f32[0,3]
  %10 = stablehlo.constant() {value = dense i4[3] [-8, 7, -1]} : i4[3]
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10
}
graph @movement(%0: f32[2,3], %1: f32[], %2: i32[], %3: f32[1,2]) -> (f32[3,2], f32[2,3], f32[4,3], f32[1,2], f32[1,2], f32[2,3], f32[4,7], i32[2,3], f32[2,2,3], f32[6]) {
  %4 = stablehlo.transpose(%0) {permutation = [1, 0]} : f32[3,2]
  %5 = stablehlo.reverse(%0) {dimensions = [0, 1]} : f32[2,3]
  %6 = stablehlo.concatenate(%0, %0) {dimension = 0} : f32[4,3]
  %7 = stablehlo.slice(%0) {limit_indices = [1, 3], start_indices = [0, 0], strides = [1, 2]} : f32[1,2]
  %8 = stablehlo.dynamic_slice(%0, %2, %2) {slice_sizes = [1, 2]} : f32[1,2]
  %9 = stablehlo.dynamic_update_slice(%0, %3, %2, %2) : f32[2,3]
  %10 = stablehlo.pad(%0, %1) {edge_padding_high = [1, 2], edge_padding_low = [1, 0], interior_padding = [0, 1]} : f32[4,7]
  %11 = stablehlo.iota() {iota_dimension = 1, result_dtype = dtype i32, shape = [2, 3]} : i32[2,3]
  %12 = stablehlo.broadcast_in_dim(%0) {broadcast_dimensions = [1, 2], shape = [2, 2, 3]} : f32[2,2,3]
  %13 = stablehlo.reshape(%0) {shape = [6]} : f32[6]
  return %4, %5, %6, %7, %8, %9, %10, %11, %12, %13
}
graph @scalars(%0: f32[]) -> (f32[], f32[1,1], f32[]) {
  %1 = stablehlo.slice(%0) {limit_indices = [], start_indices = [], strides = []} : f32[]
  %2 = stablehlo.broadcast_in_dim(%0) {broadcast_dimensions = [], shape = [1, 1]} : f32[1,1]
  %3 = stablehlo.transpose(%0) {permutation = []} : f32[]
  return %1, %2, %3
}
graph @gather(%0: f32[9,4], %1: i32[3,1], %2: f32[3,4]) -> (f32[3,4], f32[9,4]) {
  %3 = stablehlo.gather(%0, %1) {collapsed_slice_dims = [0], index_vector_dim = 1, indices_are_sorted = false, offset_dims = [1], operand_batching_dims = [], slice_sizes = [1, 4], start_index_map = [0], start_indices_batching_dims = []} : f32[3,4]
  %4 = stablehlo.scatter(%0, %1, %2) {index_vector_dim = 1, indices_are_sorted = true, input_batching_dims = [], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], scatter_indices_batching_dims = [], unique_indices = false, update_window_dims = [1]} [
    graph(%0: f32[], %1: f32[]) -> (f32[]) {
      %2 = stablehlo.add(%0, %1) : f32[]
      return %2
    }
  ] : f32[9,4]
  return %3, %4
}
graph @dot_general(%0: f32[2,3,4], %1: f32[2,4,5], %2: i8[3], %3: i8[4]) -> (f32[2,3,5], i32[3,4]) {
  %4 = stablehlo.dot_general(%0, %1) {lhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], precision_config = list[#DEFAULT, #HIGHEST], rhs_batching_dimensions = [0], rhs_contracting_dimensions = [1]} : f32[2,3,5]
  %5 = stablehlo.dot_general(%2, %3) {lhs_batching_dimensions = [], lhs_contracting_dimensions = [], result_dtype = dtype i32, rhs_batching_dimensions = [], rhs_contracting_dimensions = []} : i32[3,4]
  return %4, %5
}
graph @reduce(%0: f32[2,3], %1: i32[2,3], %2: f32[], %3: i32[]) -> (f32[2], f32[2], i32[2], f32[], f32[3]) {
  %4 = stablehlo.reduce(%0, %2) {dimensions = [1]} [
    graph(%0: f32[], %1: f32[]) -> (f32[]) {
      %2 = stablehlo.maximum(%0, %1) : f32[]
      return %2
    }
  ] : f32[2]
  %5, %6 = stablehlo.reduce(%0, %1, %2, %3) {dimensions = [1]} [
    graph(%0: f32[], %1: i32[], %2: f32[], %3: i32[]) -> (f32[], i32[]) {
      %4 = stablehlo.compare(%0, %2) {comparison_direction = #GT} : i1[]
      %5 = stablehlo.select(%4, %0, %2) : f32[]
      %6 = stablehlo.select(%4, %1, %3) : i32[]
      return %5, %6
    }
  ] : f32[2], i32[2]
  %7 = stablehlo.reduce(%0, %2, %2) {dimensions = [0, 1], num_captures = 1} [
    graph(%0: f32[], %1: f32[], %2: f32[]) -> (f32[]) {
      %3 = stablehlo.multiply(%1, %2) : f32[]
      %4 = stablehlo.add(%0, %3) : f32[]
      return %4
    }
  ] : f32[]
  %8 = stablehlo.reduce(%0, %2) {dimensions = [0]} [
    graph(%0: f32[], %1: f32[]) -> (f32[]) {
      %2 = stablehlo.add(%1, %0) : f32[]
      return %2
    }
  ] : f32[3]
  return %4, %5, %6, %7, %8
}
graph @reduce_window(%0: f32[4,4], %1: f32[]) -> (f32[2,3]) {
  %2 = stablehlo.reduce_window(%0, %1) {padding = dense i64[2,2] [0, 0, 1, 0], window_dimensions = [2, 2], window_strides = [2, 2]} [
    graph(%0: f32[], %1: f32[]) -> (f32[]) {
      %2 = stablehlo.add(%0, %1) : f32[]
      return %2
    }
  ] : f32[2,2]
  %3 = stablehlo.pad(%2, %1) {edge_padding_high = [0, 1], edge_padding_low = [0, 0], interior_padding = [0, 0]} : f32[2,3]
  return %3
}
graph @while(%0: i32[], %1: f32[4], %2: f32[4]) -> (i32[], f32[4]) {
  %3, %4 = stablehlo.while(%0, %1, %2) {num_captures = 1} [
    graph(%0: i32[], %1: f32[4], %2: f32[4]) -> (i1[]) {
      %3 = stablehlo.constant() {value = dense i32[] 10} : i32[]
      %4 = stablehlo.compare(%0, %3) {compare_type = #SIGNED, comparison_direction = #LT} : i1[]
      return %4
    },
    graph(%0: i32[], %1: f32[4], %2: f32[4]) -> (i32[], f32[4]) {
      %3 = stablehlo.constant() {value = dense i32[] 1} : i32[]
      %4 = stablehlo.add(%0, %3) : i32[]
      %5 = stablehlo.add(%1, %2) : f32[4]
      return %4, %5
    }
  ] : i32[], f32[4]
  return %3, %4
}
graph @nested_captures(%0: i1[], %1: i32[], %2: f32[], %3: f32[]) -> (f32[], f32[]) {
  %4 = stablehlo.if(%0, %1, %2, %3) {num_captures = 3} [
    graph(%0: i32[], %1: f32[], %2: f32[]) -> (f32[]) {
      %3 = stablehlo.case(%0, %1, %2) {num_captures = 2} [
        graph(%0: f32[], %1: f32[]) -> (f32[]) {
          return %0
        },
        graph(%0: f32[], %1: f32[]) -> (f32[]) {
          %2 = stablehlo.add(%0, %1) : f32[]
          return %2
        }
      ] : f32[]
      return %3
    },
    graph(%0: i32[], %1: f32[], %2: f32[]) -> (f32[]) {
      return %1
    }
  ] : f32[]
  %5 = stablehlo.case(%1) [
    graph() -> (f32[]) {
      %0 = stablehlo.constant() {value = dense f32[] 1} : f32[]
      return %0
    }
  ] : f32[]
  return %4, %5
}
graph @sort(%0: f32[2,5], %1: i32[2,5]) -> (f32[2,5], i32[2,5], f32[2,2], i32[2,2]) {
  %2, %3 = stablehlo.sort(%0, %1) {dimension = 1, is_stable = true} [
    graph(%0: f32[], %1: f32[], %2: i32[], %3: i32[]) -> (i1[]) {
      %4 = stablehlo.compare(%0, %1) {comparison_direction = #LT} : i1[]
      return %4
    }
  ] : f32[2,5], i32[2,5]
  %4, %5 = chlo.top_k(%0) {k = 2} : f32[2,2], i32[2,2]
  return %2, %3, %4, %5
}
graph @tokens(%0: token, %1: f32[]) -> (token, token, f32[], token) {
  %2 = stablehlo.after_all(%0, %0) : token
  %3 = stablehlo.after_all() : token
  %4, %5 = stablehlo.optimization_barrier(%1, %0) : f32[], token
  stablehlo.optimization_barrier()
  return %2, %3, %4, %5
}
graph @random(%0: u64[2]) -> (u64[2], u32[8]) {
  %1, %2 = stablehlo.rng_bit_generator(%0) {result_dtype = dtype u32, rng_algorithm = #THREE_FRY, shape = [8]} : u64[2], u32[8]
  return %1, %2
}
graph @attributes(%0: f32[] {jax.buffer_donor = true, tf.aliasing_output = 0 : i32}, %1: f32[] sharding("{replicated}")) -> (f32[] {jax.result_info = "a\"b\\c\0A"}) attributes {visibility} {
  %2 = stablehlo.add(%0, %1) {mhlo.b = false, mhlo.d = 0.5, mhlo.dict = {a = 1, b = unit}, mhlo.f = -2.5 : f32, mhlo.i = -3, mhlo.inf = inf, mhlo.list = list[1, "two", list[]], mhlo.nan = 0x7FF8000000000001, mhlo.one = 1.0, mhlo.s = @"a b", mhlo.sharding = "{manual}", mhlo.u, sdy.x = opaque "#sdy.sharding<@mesh, [{\22x\22}]>"} : f32[]
  return %2
}
graph @native_attributes(%0: f32[2]) -> (f32[2]) {
  %1 = stablehlo.add(%0, %0) {a = [1, -2, ?], b = dense i8[2] [1, -1], c = dtype bf16, d = type f32[2,?], e = #MEMBER, f = 7 : ui8, g = dense f32[300] "0x%HEX%", h = dense f32[4] 2.5, "odd name" = unit, i = dense float0[3] 0} : f32[2]
  return %1
}
graph @foreign(%0: f32[2], %1: foreign<"!test.thing<3>">) -> (foreign<"index">) {
  %2, %3 = xylem.foreign(%0, %1) {attributes = {a.b = 1}, op = "test.op", properties = {c = opaque "#test.d<1>"}, result_types = list[type f32[2], type foreign<"index">]} : f32[2], foreign<"index">
  return %3
}
graph @callbacks(%0: f32[2], %1: i1[]) -> (f32[3]) {
  xylem.check(%1, %0) {code = 3}
  %2 = xylem.pure_callback(%0) {function = dense i64[] 1, name = "f", result_types = list[type f32[3]], vmap_method = "sequential"} : f32[3]
  xylem.io_callback(%2) {debug = true, function = dense i64[] 2, ordered = true, result_types = list[]}
  return %2
}
graph @types(%0: f32[?,3]<bounds=[8, ?]>, %1: token, %2: (f32[2], (i32[], token)), %3: ref<f32[8], scratch>, %4: ref<bf16[]>, %5: key<fry>[2], %6: float0[2], %7: f32[2]<!quant.uniform<i8<-127:127>:f32:0, {0.5:3, 0.1}>>, %8: f32[4]<#foo.enc<{a = 1}>>, %9: f8E4M3B11FNUZ[1]) -> () {
  return
}
graph @scan(%0: f32[], %1: f32[], %2: f32[3]) -> (f32[], f32[3]) {
  %3, %4 = xylem.scan(%0, %1, %2) {length = 3, num_carry = 1, num_consts = 1, reverse = true} [
    graph(%0: f32[], %1: f32[], %2: f32[]) -> (f32[], f32[]) {
      %3 = stablehlo.multiply(%0, %2) : f32[]
      %4 = stablehlo.add(%1, %3) : f32[]
      return %4, %3
    }
  ] : f32[], f32[3]
  return %3, %4
}
graph @calls(%0: f32[2]) -> (f32[2], f32[2], f32[2], f32[2], f32[2]) {
  %1 = xylem.call(%0) {name = "double"} [
    graph @double(%0: f32[2]) -> (f32[2]) {
      %1 = stablehlo.add(%0, %0) : f32[2]
      return %1
    }
  ] : f32[2]
  %2 = xylem.remat(%1) {policy = "dots"} [
    graph(%0: f32[2]) -> (f32[2]) {
      %1 = stablehlo.exponential(%0) : f32[2]
      return %1
    }
  ] : f32[2]
  %3 = xylem.custom_jvp(%2) {name = "relu"} [
    graph(%0: f32[2]) -> (f32[2]) {
      return %0
    },
    graph(%0: f32[2], %1: f32[2]) -> (f32[2], f32[2]) {
      return %0, %1
    }
  ] : f32[2]
  %4 = xylem.custom_vjp(%3) [
    graph(%0: f32[2]) -> (f32[2]) {
      return %0
    },
    graph(%0: f32[2]) -> (f32[2], f32[2]) {
      return %0, %0
    },
    graph(%0: f32[2], %1: f32[2]) -> (f32[2]) {
      return %1
    }
  ] : f32[2]
  %5 = xylem.checkpoint_name(%4) {name = "x"} : f32[2]
  %6 = xylem.stop_gradient(%5) : f32[2]
  %7 = xylem.custom_linear(%0, %6) {num_residuals = 1} [
    graph(%0: f32[2], %1: f32[2]) -> (f32[2]) {
      %2 = stablehlo.multiply(%0, %1) : f32[2]
      return %2
    }
  ] : f32[2]
  return %1, %2, %3, %6, %7
}
graph @mapped(%0: f32[2], %1: f32[2,4]) -> (f32[2], f32[2], f32[2], f32[2,2], f32[4], f32[2,4], f32[2], i32[], f32[2], f32[2]) {
  %2 = xylem.psum(%0) {axis_name = "i", axis_size = 2} : f32[2]
  %3 = xylem.pmax(%0) {axis_name = "i", axis_size = 2} : f32[2]
  %4 = xylem.pmin(%0) {axis_name = "i", axis_size = 2} : f32[2]
  %5 = xylem.all_gather(%0) {axis_name = "i", axis_size = 2, dimension = 1, tiled = false} : f32[2,2]
  %6 = xylem.psum_scatter(%1) {axis_name = "i", axis_size = 2, dimension = 0, tiled = false} : f32[4]
  %7 = xylem.all_to_all(%1) {axis_name = "i", axis_size = 2, concat_dimension = 0, split_dimension = 0, tiled = false} : f32[2,4]
  %8 = xylem.ppermute(%0) {axis_name = "i", axis_size = 2, pairs = [0, 1, 1, 0]} : f32[2]
  %9 = xylem.axis_index() {axis_name = "i", axis_size = 2} : i32[]
  %10 = xylem.custom_vmap(%0) {rule = 3} [
    graph(%0: f32[2]) -> (f32[2]) {
      return %0
    }
  ] : f32[2]
  %11 = xylem.linear_solve(%2, %0) {num_consts = 1} [
    graph(%0: f32[2], %1: f32[2]) -> (f32[2]) {
      %2 = stablehlo.divide(%1, %0) : f32[2]
      return %2
    },
    graph(%0: f32[2], %1: f32[2]) -> (f32[2]) {
      %2 = stablehlo.multiply(%0, %1) : f32[2]
      return %2
    }
  ] : f32[2]
  return %2, %3, %4, %5, %6, %7, %8, %9, %10, %11
}
graph @stablehlo_calls(%0: f32[2], %1: i1[]) -> (f32[2], f32[2], f32[2]) {
  %2 = xylem.call(%0) {name = "double"} [
    graph @double(%0: f32[2]) -> (f32[2]) {
      %1 = stablehlo.add(%0, %0) : f32[2]
      return %1
    }
  ] : f32[2]
  %3 = xylem.call(%2) {name = "double"} [
    graph @double(%0: f32[2]) -> (f32[2]) {
      %1 = stablehlo.add(%0, %0) : f32[2]
      return %1
    }
  ] : f32[2]
  %4 = stablehlo.if(%1, %3) {num_captures = 1} [
    graph(%0: f32[2]) -> (f32[2]) {
      %1 = xylem.call(%0) {name = "triple"} [
        graph @triple(%0: f32[2]) -> (f32[2]) {
          %1 = xylem.call(%0) {name = "double"} [
            graph @double(%0: f32[2]) -> (f32[2]) {
              %1 = stablehlo.add(%0, %0) : f32[2]
              return %1
            }
          ] : f32[2]
          %2 = stablehlo.add(%1, %0) : f32[2]
          return %2
        }
      ] : f32[2]
      return %1
    },
    graph(%0: f32[2]) -> (f32[2]) {
      return %0
    }
  ] : f32[2]
  return %2, %3, %4
}
graph @cumulative(%0: f32[2,3]) -> (f32[2,3], f32[2,3], f32[2,3], f32[2,3], i32[2], i64[3]) {
  %1 = xylem.cumsum(%0) {dimension = 1, reverse = true} : f32[2,3]
  %2 = xylem.cumprod(%0) {dimension = 0} : f32[2,3]
  %3 = xylem.cummax(%0) {dimension = 0} : f32[2,3]
  %4 = xylem.cummin(%0) {dimension = 0} : f32[2,3]
  %5 = xylem.argmax(%0) {dimension = 1, index_dtype = dtype i32} : i32[2]
  %6 = xylem.argmin(%0) {dimension = 0, index_dtype = dtype i64} : i64[3]
  return %1, %2, %3, %4, %5, %6
}
graph @factorisations(%0: f32[3,2], %1: c64[2,2], %2: i32[2], %3: f32[2], %4: f32[3]) -> (f32[3,2], i32[2], f32[3,2], c64[2,2], f32[2], c64[2], c64[2,2], f32[2], f32[3,2]) {
  %5, %6, %7 = xylem.lu(%0) : f32[3,2], i32[2], i32[3]
  %8 = xylem.lu_pivots_to_permutation(%6) {permutation_size = 3} : i32[3]
  %9, %10 = xylem.geqrf(%0) : f32[3,2], f32[2]
  %11, %12, %13 = xylem.geqp3(%0, %2) : f32[3,2], i32[2], f32[2]
  %14 = xylem.householder_product(%9, %10) : f32[3,2]
  %15 = xylem.ormqr(%9, %10, %0) {left = true, transpose = true} : f32[3,2]
  %16, %17, %18 = xylem.qr(%0) {full_matrices = true, pivoting = true} : f32[3,3], f32[3,2], i32[2]
  %19, %20 = xylem.eigh(%1) {lower = true} : c64[2,2], f32[2]
  %21, %22, %23 = xylem.svd(%0) {algorithm = #QR, compute_uv = true} : f32[2], f32[3,2], f32[2,2]
  %24, %25 = xylem.eig(%1) {compute_left_eigenvectors = true} : c64[2], c64[2,2]
  %26 = xylem.schur(%1) : c64[2,2]
  %27, %28 = xylem.hessenberg(%1) : c64[2,2], c64[1]
  %29, %30, %31, %32 = xylem.tridiagonal(%1) {lower = false} : c64[2,2], f32[2], f32[1], c64[1]
  %33 = xylem.tridiagonal_solve(%4, %4, %4, %0) : f32[3,2]
  return %15, %12, %14, %26, %20, %24, %25, %30, %33
}
graph @kernel(%0: i64[], %1: ref<f32[64]>, %2: ref<f32[8], scratch>, %3: i1[8], %4: i32[8]) -> () {
  %5 = kernel.load(%1, %0, %3) {dims = [0], masked, shape = [8]} : f32[8]
  %6 = kernel.fma(%5, %5, %5) : f32[8]
  %7 = kernel.ldexp(%6, %4) : f32[8]
  kernel.store(%2, %7, %0) {dims = [0]}
  %8 = stablehlo.constant() {value = dense i64[] 0} : i64[]
  %9 = stablehlo.constant() {value = dense i64[] 8} : i64[]
  %10 = kernel.for(%8, %9, %7, %1) {num_carries = 1, step = 1} [
    graph(%0: i64[], %1: f32[8], %2: ref<f32[64]>) -> (f32[8]) {
      %3 = kernel.load(%2, %0) {dims = [0], shape = [8]} : f32[8]
      %4 = stablehlo.add(%1, %3) : f32[8]
      return %4
    }
  ] : f32[8]
  %11 = stablehlo.constant() {value = dense i64[8] [0, 1, 2, 3, 4, 5, 6, 7]} : i64[8]
  %12 = kernel.gather(%1, %11) : f32[8]
  kernel.scatter(%1, %12, %11)
  kernel.prefetch(%1, %0)
  return
}
graph @located(%0: f32[]) -> (f32[]) {
  %1 = stablehlo.add(%0, %0) : f32[] loc("model.cc":12:7 in "forward" at "decoder.layers[3]")
  %2 = stablehlo.add(%1, %0) : f32[] loc("model.cc":13)
  %3 = stablehlo.add(%2, %0) : f32[] loc(at "head")
  return %3
}
)";

// A graph of one elementwise op, in the first of some dtypes that its rule takes.
GraphPtr elementwise_sample(const OpDef& def) {
  for (DType dtype : {DType::kF32, DType::kI32, DType::kBool, DType::kC64}) {
    Builder b(fmt::format("elementwise_{}", def.name.substr(def.name.find('.') + 1)));
    std::vector<ValueId> args;
    for (int i = 0; i < def.min_operands; ++i) args.push_back(b.param(Type::tensor(dtype, {2, 3})));
    try {
      ValueIds r = b.op(def, args);
      return b.finish({r.begin(), r.end()});
    } catch (const UserError&) {
    }
  }
  return nullptr;
}

// The ops whose attributes StableHLO text says best.
constexpr std::string_view kStablehloSamples = R"(
func.func @convolutions(%x: tensor<1x4x4x2xf32>, %k: tensor<2x2x2x3xf32>, %p: tensor<2x2xi32>) -> (tensor<1x3x3x3xf32>, tensor<1x3x2x3xf32>, tensor<1x?x?x3xf32>) {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x4x4x2xf32>, tensor<2x2x2x3xf32>) -> tensor<1x3x3x3xf32>
  %1 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 2], pad = [[0, 0], [1, -1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [true, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision HIGH>, #stablehlo<precision DEFAULT>]} : (tensor<1x4x4x2xf32>, tensor<2x2x2x3xf32>) -> tensor<1x3x2x3xf32>
  %2 = "stablehlo.dynamic_conv"(%x, %k, %p) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64}> : (tensor<1x4x4x2xf32>, tensor<2x2x2x3xf32>, tensor<2x2xi32>) -> tensor<1x?x?x3xf32>
  return %0, %1, %2 : tensor<1x3x3x3xf32>, tensor<1x3x2x3xf32>, tensor<1x?x?x3xf32>
}
func.func @linear_algebra(%a: tensor<3x3xf32>, %z: tensor<4x4xcomplex<f32>>) -> (tensor<3x3xf32>, tensor<3x3xf32>, tensor<3x2xcomplex<f32>>, tensor<4x4xcomplex<f32>>) {
  %0 = stablehlo.cholesky %a, lower = true : tensor<3x3xf32>
  %1 = "stablehlo.triangular_solve"(%0, %a) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %2 = stablehlo.fft %a, type = RFFT, length = [3] : (tensor<3x3xf32>) -> tensor<3x2xcomplex<f32>>
  %3 = stablehlo.fft %z, type = IFFT, length = [4, 4] : (tensor<4x4xcomplex<f32>>) -> tensor<4x4xcomplex<f32>>
  return %0, %1, %2, %3 : tensor<3x3xf32>, tensor<3x3xf32>, tensor<3x2xcomplex<f32>>, tensor<4x4xcomplex<f32>>
}
func.func @batch_norm(%x: tensor<2x3xf32>, %f: tensor<3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) {
  %0:3 = "stablehlo.batch_norm_training"(%x, %f, %f) <{epsilon = 1.000000e-03 : f32, feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
  %1 = "stablehlo.batch_norm_inference"(%x, %f, %f, %f, %f) <{epsilon = 1.000000e-03 : f32, feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %2:3 = "stablehlo.batch_norm_grad"(%x, %f, %f, %f, %x) <{epsilon = 1.000000e-03 : f32, feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
  return %0#0, %1, %2#0 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
}
func.func @shardy(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}]>}) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %0 = sdy.sharding_constraint %x <@mesh, [{"x", ?}p1, {?}], replicated={"y"}, unreduced={"z"}> : tensor<8x4xf32>
  %1 = sdy.reshard %0 <@mesh, [{}, {}]> {tag = "t"} : tensor<8x4xf32>
  sdy.sharding_group %1 group_id=3 : tensor<8x4xf32>
  %2 = sdy.propagation_barrier %1 allowed_direction=BACKWARD : tensor<8x4xf32>
  %3 = sdy.data_flow_edge %2 sharding=<@mesh, [{"x"}, {}]> : tensor<8x4xf32>
  %4 = sdy.data_flow_edge %3 : tensor<8x4xf32>
  %5 = sdy.func_data_flow_edge %4 : tensor<8x4xf32>
  %6 = sdy.all_slice [{"x"}, {"y":(1)2}] %5 out_sharding=<@mesh, [{"x"}, {"y":(1)2}]> : tensor<8x4xf32>
  %7 = sdy.all_gather [{}, {"y":(1)2}] %6 out_sharding=<@mesh, [{"x"}, {}]> : tensor<8x4xf32>
  %8 = sdy.all_to_all [{"x"}: 0->1] %7 out_sharding=<@mesh, [{}, {"x"}]> : tensor<8x4xf32>
  %9 = sdy.collective_permute %8 out_sharding=<@mesh, [{}, {"y"}]> : tensor<8x4xf32>
  %10 = sdy.all_reduce {"z"} %9 out_sharding=<@mesh, [{}, {"y"}]> : tensor<8x4xf32>
  %11 = sdy.reduce_scatter [{"z"}, {}] %10 out_sharding=<@mesh, [{"z"}, {"y"}]> : tensor<8x4xf32>
  %12 = sdy.replicated_to_unreduced {"x"} %11 out_sharding=<@mesh, [{"z"}, {"y"}], unreduced={"x"}> : tensor<8x4xf32>
  %13 = sdy.sharded_to_unreduced [{"z"}, {}] %12 out_sharding=<@mesh, [{}, {"y"}]> : tensor<8x4xf32>
  %14 = sdy.constant dense<2.5> : tensor<8x4xf32>
  %15 = sdy.named_computation<"f \22q">(%13, %14) in_shardings=[<@mesh, [{}, {}]>, <@mesh, [{}, {}]>] out_shardings=[<@mesh, [{}, {}]>] (%a: tensor<8x4xf32>, %b: tensor<8x4xf32>) {
    %v = stablehlo.add %a, %b : tensor<8x4xf32>
    sdy.return %v : tensor<8x4xf32>
  } : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %16 = sdy.named_computation<"g">() () {
    sdy.return %15 : tensor<8x4xf32>
  } : () -> tensor<8x4xf32>
  %17 = sdy.manual_computation(%16) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x", "y"} (%a: tensor<4x4xf32>) {
    %v = stablehlo.multiply %a, %a : tensor<4x4xf32>
    sdy.return %v : tensor<4x4xf32>
  } {tag} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %18 = stablehlo.add %17, %x {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<8x4xf32>
  return %15, %18 : tensor<8x4xf32>, tensor<8x4xf32>
}
func.func @regions(%x: tensor<4xf32>, %s: tensor<2xf32>, %c: tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = "stablehlo.select_and_scatter"(%x, %s, %c) <{padding = dense<0> : tensor<1x2xi64>, window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<4xf32>, tensor<2xf32>, tensor<f32>) -> tensor<4xf32>
  %2 = "stablehlo.map"(%x, %x) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.multiply %a, %c : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0, %2 : tensor<4xf32>, tensor<4xf32>
}
func.func @calls(%x: tensor<2x3xf32>, %t: !stablehlo.token) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %0 = stablehlo.custom_call @"a target"(%x) {api_version = 4 : i32, backend_config = {k = 3 : i64}, called_computations = [@helper], has_side_effect = true, operand_layouts = [dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[1, 0]> : tensor<2xindex>]} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = stablehlo.composite "my.op" %x {composite_attributes = {k = 3 : i64}, decomposition = @helper, version = 1 : i32} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = stablehlo.tuple %0, %1, %t : tuple<tensor<2x3xf32>, tensor<2x3xf32>, !stablehlo.token>
  %3 = stablehlo.get_tuple_element %2[1] : (tuple<tensor<2x3xf32>, tensor<2x3xf32>, !stablehlo.token>) -> tensor<2x3xf32>
  return %0, %3 : tensor<2x3xf32>, tensor<2x3xf32>
}
func.func private @helper(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.negate %x : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
func.func @checks(%x: tensor<2x3xf32>) {
  check.expect_eq %x, %x : tensor<2x3xf32>
  check.expect_eq_const %x, dense<1.000000e+00> : tensor<2x3xf32>
  check.expect_almost_eq %x, %x, tolerance = 1.000000e-01 : tensor<2x3xf32>
  check.expect_almost_eq_const %x, dense<1.000000e+00> : tensor<2x3xf32>
  check.expect_close %x, %x, max_ulp_difference = 18446744073709551615, min_ulp_difference = 1 : tensor<2x3xf32>, tensor<2x3xf32>
  %0 = interpreter.probe %x, probe_id = "p" : tensor<2x3xf32>
  check.expect_serialized_eq %0, probe_id = "p", iter = 1 : tensor<2x3xf32>
  %1:2 = "interpreter.run_parallel"(%x, %0) <{infeed = [@value], programs = [[@helper], [@helper]]}> : (tensor<2x3xf32>, tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
  return
}
func.func @printing(%arg0: tensor<2x3xf32>) {
  interpreter.print %arg0 : tensor<2x3xf32>
  return
}
func.func private @value() -> tensor<i32> {
  %0 = stablehlo.constant dense<1> : tensor<i32>
  return %0 : tensor<i32>
}
func.func @dynamic(%x: tensor<2x3xf32>, %c: tensor<f32>, %n: tensor<2xi32>, %i: tensor<4x1xi32>, %k: tensor<i32>) -> tensor<?x?xf32> {
  %0 = stablehlo.dynamic_reshape %x, %n : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<?x?xf32>
  %1 = stablehlo.dynamic_broadcast_in_dim %x, %n, dims = [0, 1] {known_expanding_dimensions = array<i64: 0>} : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<2x?xf32>
  %2 = stablehlo.dynamic_iota %n, dim = 0 : (tensor<2xi32>) -> tensor<?x?xi64>
  %3 = stablehlo.dynamic_pad %x, %c, %n, %n, %n : (tensor<2x3xf32>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>
  %4 = "stablehlo.dynamic_gather"(%x, %i, %n) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false}> : (tensor<2x3xf32>, tensor<4x1xi32>, tensor<2xi32>) -> tensor<4x?xf32>
  %5 = stablehlo.real_dynamic_slice %x, %n, %n, %n : (tensor<2x3xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>
  %6 = stablehlo.get_dimension_size %0, dim = 1 : (tensor<?x?xf32>) -> tensor<i32>
  %7 = stablehlo.set_dimension_size %x, %k, dim = 0 : (tensor<2x3xf32>, tensor<i32>) -> tensor<?x3xf32, #stablehlo.bounds<2, ?>>
  %8 = stablehlo.rng %c, %c, %n, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<2xi32>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
func.func @collectives(%x: tensor<2x4xf32>, %r: tensor<1xi32>) -> tensor<2x4xf32> {
  %0 = "stablehlo.all_gather"(%x) <{all_gather_dim = 1 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> : (tensor<2x4xf32>) -> tensor<2x8xf32>
  %1 = "stablehlo.all_reduce"(%x) <{replica_groups = #stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "x", size = 2>]>, axes = [#stablehlo.axis_ref<name = "x">]>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %2 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %3 = "stablehlo.reduce_scatter"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, scatter_dimension = 1 : i64}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %2 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<2x4xf32>) -> tensor<2x2xf32>
  %4 = "stablehlo.all_to_all"(%x) <{concat_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, split_count = 2 : i64, split_dimension = 1 : i64}> : (tensor<2x4xf32>) -> tensor<4x2xf32>
  %5 = "stablehlo.collective_permute"(%x) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %6 = "stablehlo.collective_broadcast"(%x, %r) <{has_dynamic_root = true, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<2x4xf32>, tensor<1xi32>) -> tensor<2x4xf32>
  %7 = "stablehlo.collective_reduce"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %2 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %8 = stablehlo.replica_id : tensor<ui32>
  %9 = stablehlo.partition_id : tensor<ui32>
  %10 = "stablehlo.async_start"(%x) ({
  ^bb0(%a: tensor<2x4xf32>):
    %2 = "stablehlo.collective_permute"(%a) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<2x4xf32>) -> tensor<2x4xf32>
    stablehlo.return %2 : tensor<2x4xf32>
  }) : (tensor<2x4xf32>) -> !stablehlo.future<tensor<2x4xf32>>
  %11 = "stablehlo.async_done"(%10) : (!stablehlo.future<tensor<2x4xf32>>) -> tensor<2x4xf32>
  return %11 : tensor<2x4xf32>
}
func.func @host(%t: !stablehlo.token) -> !stablehlo.token {
  %0:2 = "stablehlo.infeed"(%t) <{infeed_config = "c", layout = [[0]]}> : (!stablehlo.token) -> (tensor<3xf32>, !stablehlo.token)
  %1 = "stablehlo.outfeed"(%0#0, %0#1) <{outfeed_config = "d"}> : (tensor<3xf32>, !stablehlo.token) -> !stablehlo.token
  %2 = "stablehlo.send"(%0#0, %1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>, is_host_transfer = true}> : (tensor<3xf32>, !stablehlo.token) -> !stablehlo.token
  %3:2 = "stablehlo.recv"(%2) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 3>, is_host_transfer = true}> : (!stablehlo.token) -> (tensor<3xf32>, !stablehlo.token)
  return %3#1 : !stablehlo.token
}
func.func @quantised(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.uniform_quantize %x : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8<-127:127>:f32, 5.000000e-01:10>>
  %1 = stablehlo.add %0, %0 : (tensor<2x3x!quant.uniform<i8<-127:127>:f32, 5.000000e-01:10>>, tensor<2x3x!quant.uniform<i8<-127:127>:f32, 5.000000e-01:10>>) -> tensor<2x3x!quant.uniform<i8:f32, 2.000000e+00>>
  %2 = stablehlo.constant() <{value = dense<1> : tensor<2x3xi8>}> : () -> tensor<2x3x!quant.uniform<i8:f32, 2.000000e+00>>
  %3 = stablehlo.uniform_dequantize %1 : (tensor<2x3x!quant.uniform<i8:f32, 2.000000e+00>>) -> tensor<2x3xf32>
  return %3 : tensor<2x3xf32>
}
func.func @chlo(%x: tensor<4x3xf32>, %w: tensor<2x3x5xf32>, %g: tensor<2xi32>, %i: tensor<2xi32>, %v: tensor<3xf32>) -> tensor<4x5xf32> {
  %0 = "chlo.ragged_dot"(%x, %w, %g) <{precision_config = [#chlo<precision DEFAULT>, #chlo<precision DEFAULT>], ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}> : (tensor<4x3xf32>, tensor<2x3x5xf32>, tensor<2xi32>) -> tensor<4x5xf32>
  %1:2 = chlo.scan(%x) inits(%v) dimension=0 attributes {is_reverse = true} {
  ^bb0(%a: tensor<3xf32>, %c: tensor<3xf32>):
    %2 = stablehlo.add %a, %c : tensor<3xf32>
    stablehlo.return %2, %2 : tensor<3xf32>, tensor<3xf32>
  } : (tensor<4x3xf32>, tensor<3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>)
  %3 = "chlo.constant_like"(%x) <{value = 1.000000e+00 : f32}> : (tensor<4x3xf32>) -> tensor<4x3xf32>
  %4 = chlo.constant dense<1> : tensor<i32>
  %5 = stablehlo.einsum %x, %w, config = "ij,bjk->bik" : (tensor<4x3xf32>, tensor<2x3x5xf32>) -> tensor<2x4x5xf32>
  %6 = stablehlo.unary_einsum %x, config = "ij->j" : (tensor<4x3xf32>) -> tensor<3xf32>
  %7 = "stablehlo.torch_index_select"(%x, %i) <{batch_dims = 0 : i64, dim = 0 : i64}> : (tensor<4x3xf32>, tensor<2xi32>) -> tensor<2x3xf32>
  return %0 : tensor<4x5xf32>
}
)";

// Each broadcasting op on two shapes.
std::string broadcast_samples() {
  std::string text;
  for (const OpDef* def : op_table()) {
    if (!def->name.starts_with("chlo.broadcast_")) continue;
    std::string_view n = def->name.substr(15);
    bool bits = n.starts_with("shift") || n == "and" || n == "or" || n == "xor";
    std::string t = bits ? "tensor<2x3xi32>" : "tensor<2x3xf32>",
                u = bits ? "tensor<3xi32>" : "tensor<3xf32>";
    std::string r = n == "complex"   ? "tensor<2x3xcomplex<f32>>"
                    : n == "compare" ? "tensor<2x3xi1>"
                                     : t;
    bool three = n == "select" || n == "clamp";
    std::string first = n == "select" ? "tensor<3xi1>" : u;
    std::string attrs =
        n == "compare" ? " {comparison_direction = #chlo<comparison_direction LT>}" : "";
    text += three ? fmt::format(
                        "func.func @broadcast_{0}(%p: {1}, %a: {2}, %b: {3}) -> {4} {{\n"
                        "  %0 = {5} %p, %a, %b : ({1}, {2}, {3}) -> {4}\n  return %0 : {4}\n}}\n",
                        n, first, t, u, r, def->name)
                  : fmt::format(
                        "func.func @broadcast_{0}(%a: {1}, %b: {2}) -> {3} {{\n"
                        "  %0 = {4} %a, %b{5} : ({1}, {2}) -> {3}\n  return %0 : {3}\n}}\n",
                        n, t, u, r, def->name, attrs);
  }
  return text;
}

std::vector<GraphPtr> make_samples() {
  std::string text(kSamples);
  // Three hundred values 0x3F800001, long enough to be printed as bytes.
  std::string hex;
  for (int i = 0; i < 300; ++i) hex += i % 2 ? "0100803F" : "CDCCCC3D";
  std::size_t at = text.find("%HEX%");
  text.replace(at, 5, hex);
  std::vector<GraphPtr> out;
  for (const Module::Function& f : parse_module(text, "samples").functions) out.push_back(f.graph);
  for (const std::string& more : {std::string(kStablehloSamples), broadcast_samples()})
    for (const Module::Function& f : parse_stablehlo(more, "samples").functions)
      if (!f.is_private) out.push_back(f.graph);
  for (const OpDef* def : op_table()) {
    if (!def->is(kPointwise) || def->num_regions != 0 || def->min_operands < 1 ||
        def->min_operands != def->max_operands)
      continue;
    bool plain = true;
    for (const AttrDef& a : def->attrs) plain = plain && !a.required;
    if (!plain) continue;
    if (GraphPtr g = elementwise_sample(*def)) out.push_back(std::move(g));
  }
  return out;
}

bool in_stablehlo(const Graph& g) {
  for (ValueId v : g.params)
    if (g.type(v).is_key() || g.type(v).dtype() == DType::kFloat0 || g.type(v).is_ref())
      return false;
  for (const Op& op : g.ops) {
    bool call = op.def->name == "xylem.call";
    if (op.def->is(kKernelOnly) || (op.def->is(kXylem) && !call)) return false;
    for (const GraphPtr& r : op.regions)
      if (!in_stablehlo(*r)) return false;
  }
  return true;
}

}  // namespace

const std::vector<GraphPtr>& sample_graphs() {
  static const auto* kGraphs = new std::vector<GraphPtr>(make_samples());
  return *kGraphs;
}

std::vector<GraphPtr> stablehlo_samples() {
  std::vector<GraphPtr> out;
  for (const GraphPtr& g : sample_graphs())
    // Attribute kinds that only the native text has.
    if (in_stablehlo(*g) && g->name != "native_attributes") out.push_back(g);
  return out;
}

void collect_ops(const Graph& graph, std::vector<std::string>& out) {
  for (const Op& op : graph.ops) {
    out.emplace_back(op.def->name);
    for (const GraphPtr& r : op.regions) collect_ops(*r, out);
  }
}

}  // namespace xylem::ir::testing
