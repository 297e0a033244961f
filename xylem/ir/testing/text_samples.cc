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

std::vector<GraphPtr> make_samples() {
  std::string text(kSamples);
  // Three hundred values 0x3F800001, long enough to be printed as bytes.
  std::string hex;
  for (int i = 0; i < 300; ++i) hex += i % 2 ? "0100803F" : "CDCCCC3D";
  std::size_t at = text.find("%HEX%");
  text.replace(at, 5, hex);
  std::vector<GraphPtr> out;
  for (const Module::Function& f : parse_module(text, "samples").functions) out.push_back(f.graph);
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
