// Every op × transformation: forward mode against finite differences in f64, reverse mode against
// forward mode by the dot-product identity, both of them again on the derivative, and batching of
// value and gradient against a loop. The rows are programs of one op each.

#include "xylem/core/transform/rules.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "xylem/base/error.h"
#include "xylem/core/lax/indexing.h"
#include "xylem/core/transform/passes.h"
#include "xylem/ir/expr.h"
#include "xylem/ir/interpreter.h"
#include "xylem/ir/ops/all.h"
#include "xylem/ir/verify.h"

namespace xylem::transform {
namespace {

using ir::Attr;
using ir::Attrs;
using ir::Builder;
using ir::Expr;
using ir::GraphPtr;
using ir::Type;
using ir::ValueId;
namespace ops = ir::ops;

constexpr DType kF64 = DType::kF64;

struct Row {
  std::string name;
  GraphPtr graph;
  double lo = -2, hi = 2;
  bool reverse = true;  // has a reverse mode
  std::vector<const ir::OpDef*> covers = {};
};

Row unary_row(const ir::OpDef& def, double lo, double hi) {
  Builder b;
  Expr x{&b, b.param(Type::tensor(kF64, {2, 3}))};
  return {std::string(def.name), b.finish({ir::unary(def, x).v}), lo, hi};
}

Row binary_row(const ir::OpDef& def, double lo, double hi) {
  Builder b;
  Expr x{&b, b.param(Type::tensor(kF64, {2, 3}))}, y{&b, b.param(Type::tensor(kF64, {2, 3}))};
  return {std::string(def.name), b.finish({ir::binary(def, x, y).v}), lo, hi};
}

// A program over f64 parameters of the given shapes.
Row program(std::string name, std::vector<Dims> shapes,
            const std::function<std::vector<Expr>(Builder&, std::vector<Expr>)>& body,
            double lo = -2, double hi = 2, bool reverse = true) {
  Builder b;
  std::vector<Expr> args;
  for (const Dims& s : shapes) args.push_back({&b, b.param(Type::tensor(kF64, s))});
  std::vector<ValueId> results;
  for (Expr e : body(b, args)) results.push_back(e.v);
  return {std::move(name), b.finish(std::move(results)), lo, hi, reverse};
}

Expr index(Builder& b, std::vector<std::int64_t> v, Dims dims) {
  return {&b, b.constant(HostArray::from(v, std::move(dims)))};
}

GraphPtr region(std::vector<Type> params,
                const std::function<std::vector<Expr>(Builder&, std::vector<Expr>)>& body) {
  Builder b;
  std::vector<Expr> args;
  for (const Type& t : params) args.push_back({&b, b.param(t)});
  std::vector<ValueId> results;
  for (Expr e : body(b, args)) results.push_back(e.v);
  return b.finish(std::move(results));
}

const Type kScalar = Type::tensor(kF64);
const Type kVector = Type::tensor(kF64, {3});

Row scan_row(bool reverse_order) {
  return program(reverse_order ? "scan reversed" : "scan", {{3}, {3}, {4, 3}},
                 [&](Builder& b, std::vector<Expr> a) {
                   GraphPtr body = region({kVector, kVector, kVector}, [](Builder&, auto p) {
                     Expr carry = ir::unary(ops::kSine, p[1] * p[0]) + p[2];
                     return std::vector<Expr>{carry, carry * p[2]};
                   });
                   ir::ValueIds r = b.op(ops::kScan, {a[0].v, a[1].v, a[2].v},
                                         Attrs{{"length", Attr(4)},
                                               {"num_consts", Attr(1)},
                                               {"num_carry", Attr(1)},
                                               {"reverse", Attr(reverse_order)}},
                                         {body});
                   return std::vector<Expr>{{&b, r[0]}, {&b, r[1]}};
                 });
}

Row branch_row(bool take) {
  return program(take ? "if true" : "if false", {{3}, {3}}, [&](Builder& b, std::vector<Expr> a) {
    GraphPtr yes = region({kVector, kVector}, [](Builder&, auto p) {
      return std::vector<Expr>{ir::unary(ops::kSine, p[0]) * p[1]};
    });
    GraphPtr no = region({kVector, kVector},
                         [](Builder&, auto p) { return std::vector<Expr>{p[0] * p[0] * 3.0}; });
    Expr p{&b, b.splat(DType::kBool, {}, take)};
    return std::vector<Expr>{
        {&b, b.one(ops::kIf, {p.v, a[0].v, a[1].v}, Attrs{{"num_captures", Attr(2)}}, {yes, no})}};
  });
}

Row while_row() {
  return program(
      "while", {{3}, {3}},
      [](Builder& b, std::vector<Expr> a) {
        Type i = Type::tensor(DType::kI32);
        GraphPtr cond = region({i, kVector, kVector}, [](Builder&, auto p) {
          return std::vector<Expr>{ir::compare(p[0], 3, "LT")};
        });
        GraphPtr body = region({i, kVector, kVector}, [](Builder&, auto p) {
          return std::vector<Expr>{p[0] + 1, ir::unary(ops::kSine, p[1] * p[2])};
        });
        ValueId zero = b.splat(DType::kI32, {}, 0);
        ir::ValueIds r = b.op(ops::kWhile, {zero, a[0].v, a[1].v}, Attrs{{"num_captures", Attr(1)}},
                              {cond, body});
        return std::vector<Expr>{{&b, r[1]}};
      },
      -2, 2, false);
}

Row remat_row(const char* policy) {
  return program(std::string("remat ") + policy, {{3}, {3}}, [&](Builder& b, std::vector<Expr> a) {
    GraphPtr body = region({kVector, kVector}, [](Builder& rb, auto p) {
      Expr named{&rb, rb.one(ops::kCheckpointName, {(p[0] * p[1]).v}, Attrs{{"name", Attr("a")}})};
      return std::vector<Expr>{ir::unary(ops::kSine, ir::unary(ops::kSine, named))};
    });
    return std::vector<Expr>{
        {&b, b.one(ops::kRemat, {a[0].v, a[1].v},
                   Attrs{{"policy", Attr(policy)}, {"prevent_cse", Attr(true)}}, {body})}};
  });
}

Attr padding(std::vector<std::int64_t> v) {
  auto n = static_cast<std::int64_t>(v.size() / 2);
  return Attr(HostArray::from(v, {n, 2}));
}

// A convolution of the layout [N, C, …], [O, I, …] unless `extra` says otherwise.
Row conv_row(std::string name, Dims lhs, Dims rhs, const Attrs& extra) {
  auto n = static_cast<std::int64_t>(lhs.size()) - 2;
  Dims spatial;
  for (std::int64_t d = 0; d < n; ++d) spatial.push_back(d + 2);
  Attrs a{{"input_batch_dimension", Attr(0)},
          {"input_feature_dimension", Attr(1)},
          {"input_spatial_dimensions", Attr(spatial)},
          {"kernel_output_feature_dimension", Attr(0)},
          {"kernel_input_feature_dimension", Attr(1)},
          {"kernel_spatial_dimensions", Attr(spatial)},
          {"output_batch_dimension", Attr(0)},
          {"output_feature_dimension", Attr(1)},
          {"output_spatial_dimensions", Attr(spatial)},
          {"feature_group_count", Attr(1)},
          {"batch_group_count", Attr(1)}};
  for (const auto& [key, value] : extra.entries()) a.set(key, value);
  return program("convolution " + name, {lhs, rhs}, [&](Builder& b, std::vector<Expr> v) {
    return std::vector<Expr>{{&b, b.one(ops::kConvolution, {v[0].v, v[1].v}, a)}};
  });
}

void add_conv_rows(std::vector<Row>& r) {
  r.push_back(conv_row("plain", {2, 3, 5}, {4, 3, 2}, {}));
  r.push_back(conv_row("of no window", {2, 3}, {4, 3}, {}));
  r.push_back(conv_row("strided and padded", {1, 2, 6, 5}, {3, 2, 3, 2},
                       {{"window_strides", Attr(Dims{2, 3})}, {"padding", padding({1, 2, 0, 3})}}));
  r.push_back(conv_row("cut", {1, 2, 7}, {2, 2, 3}, {{"padding", padding({-2, -1})}}));
  r.push_back(conv_row("cut and padded past the kernel", {1, 1, 4}, {1, 1, 2},
                       {{"padding", padding({4, -2})}, {"window_strides", Attr(Dims{2})}}));
  r.push_back(conv_row("dilated", {1, 2, 4}, {2, 2, 3},
                       {{"lhs_dilation", Attr(Dims{3})},
                        {"rhs_dilation", Attr(Dims{2})},
                        {"window_strides", Attr(Dims{2})},
                        {"padding", padding({1, 2})}}));
  r.push_back(
      conv_row("reversed", {1, 2, 4, 4}, {2, 2, 3, 2},
               {{"window_reversal", Attr(Dims{1, 0})}, {"padding", padding({0, 1, 1, 0})}}));
  r.push_back(conv_row("in feature groups", {2, 6, 4}, {4, 3, 2},
                       {{"feature_group_count", Attr(2)}, {"rhs_dilation", Attr(Dims{2})}}));
  r.push_back(conv_row("depthwise", {1, 3, 4}, {6, 1, 2}, {{"feature_group_count", Attr(3)}}));
  r.push_back(conv_row("in batch groups", {6, 2, 4}, {4, 2, 2},
                       {{"batch_group_count", Attr(2)}, {"window_strides", Attr(Dims{2})}}));
  r.push_back(conv_row("of another layout", {5, 4, 2, 3}, {2, 3, 3, 4},
                       {{"input_batch_dimension", Attr(2)},
                        {"input_feature_dimension", Attr(3)},
                        {"input_spatial_dimensions", Attr(Dims{1, 0})},
                        {"kernel_output_feature_dimension", Attr(3)},
                        {"kernel_input_feature_dimension", Attr(1)},
                        {"kernel_spatial_dimensions", Attr(Dims{0, 2})},
                        {"output_batch_dimension", Attr(1)},
                        {"output_feature_dimension", Attr(3)},
                        {"output_spatial_dimensions", Attr(Dims{2, 0})},
                        {"window_reversal", Attr(Dims{0, 1})},
                        {"padding", padding({1, 0, 1, 2})}}));
  r.push_back(conv_row("without windows", {1, 2, 2}, {2, 2, 3}, {}));
}

Row window_row(std::string name, const ir::OpDef& def, Dims shape, const Attrs& attrs,
               bool moving_init) {
  std::vector<Dims> shapes = {std::move(shape)};
  if (moving_init) shapes.push_back({});
  return program("reduce_window " + name, shapes, [&](Builder& b, std::vector<Expr> v) {
    Expr init = moving_init ? v[1] : ir::reduction_identity(b, def, kF64);
    return std::vector<Expr>{
        {&b, b.one(ops::kReduceWindow, {v[0].v, init.v}, attrs, {ir::binary_region(def, kF64)})}};
  });
}

void add_window_rows(std::vector<Row>& r) {
  Attrs pool{{"window_dimensions", Attr(Dims{1, 3})},
             {"window_strides", Attr(Dims{1, 2})},
             {"padding", padding({0, 0, 1, 2})}};
  Attrs odd{{"window_dimensions", Attr(Dims{2, 3})},
            {"window_strides", Attr(Dims{2, 1})},
            {"base_dilations", Attr(Dims{1, 2})},
            {"window_dilations", Attr(Dims{2, 3})},
            {"padding", padding({2, 1, -1, 4})}};
  for (const ir::OpDef* d : {&ops::kAdd, &ops::kMultiply, &ops::kMaximum, &ops::kMinimum}) {
    std::string name(d->name);
    r.push_back(window_row(name, *d, {2, 6}, pool, false));
    r.push_back(window_row(name + " dilated", *d, {5, 4}, odd, false));
    r.push_back(window_row(name + " from a value", *d, {2, 4}, pool, true));
  }
  // log(e^a + e^b), of a body that is no single op.
  GraphPtr lse = region({kScalar, kScalar}, [](Builder&, auto p) {
    return std::vector<Expr>{ir::unary(
        ops::kLog, ir::unary(ops::kExponential, p[0]) + ir::unary(ops::kExponential, p[1]))};
  });
  r.push_back(
      program("reduce_window by logaddexp", {{2, 5}, {}}, [&](Builder& b, std::vector<Expr> v) {
        return std::vector<Expr>{{&b, b.one(ops::kReduceWindow, {v[0].v, v[1].v}, pool, {lse})}};
      }));
  r.push_back(program("reduce by logaddexp", {{2, 5, 3}, {}}, [&](Builder& b, std::vector<Expr> v) {
    return std::vector<Expr>{{&b, b.one(ops::kReduce, {v[0].v, v[1].v},
                                        Attrs{{"dimensions", Attr(Dims{2, 1})}}, {lse})}};
  }));
  for (const ir::OpDef* d : {&ops::kMultiply, &ops::kMaximum})
    r.push_back(program("reduce from a value", {{2, 5}, {}}, [&](Builder& b, std::vector<Expr> v) {
      return std::vector<Expr>{
          {&b, b.one(ops::kReduce, {v[0].v, v[1].v}, Attrs{{"dimensions", Attr(Dims{1})}},
                     {ir::binary_region(*d, kF64)})}};
    }));
  // (a, p) and (b, q) -> (a + b c, p q) with c captured: two operands, mapped captures.
  GraphPtr affine = region({kScalar, kScalar, kScalar, kScalar, kScalar}, [](Builder&, auto p) {
    return std::vector<Expr>{p[0] + p[1] * p[2], p[1] * p[3] + 0.0 * p[4]};
  });
  r.push_back(
      program("reduce of two operands", {{3, 4}, {3, 4}, {}}, [&](Builder& b, std::vector<Expr> v) {
        ValueId zero = b.splat(kF64, {}, 0), one = b.splat(kF64, {}, 1);
        ir::ValueIds y =
            b.op(ops::kReduce, {v[0].v, v[1].v, zero, one, v[2].v},
                 Attrs{{"dimensions", Attr(Dims{1})}, {"num_captures", Attr(1)}}, {affine});
        return std::vector<Expr>{{&b, y[0]}, {&b, y[1]}};
      }));
  r.push_back(
      program("select_and_scatter", {{2, 7}, {2, 3}, {}}, [&](Builder& b, std::vector<Expr> v) {
        GraphPtr ge = region({kScalar, kScalar}, [](Builder&, auto p) {
          return std::vector<Expr>{ir::compare(p[0], p[1], "GE")};
        });
        return std::vector<Expr>{{&b, b.one(ops::kSelectAndScatter, {v[0].v, v[1].v, v[2].v},
                                            Attrs{{"window_dimensions", Attr(Dims{1, 3})},
                                                  {"window_strides", Attr(Dims{1, 2})}},
                                            {ge, ir::binary_region(ops::kAdd, kF64)})}};
      }));
}

std::vector<Row> rows() {
  std::vector<Row> r;
  add_conv_rows(r);
  add_window_rows(r);
  for (const ir::OpDef* d :
       {&ops::kNegate, &ops::kExponential, &ops::kExponentialMinusOne, &ops::kLogistic, &ops::kTanh,
        &ops::kSine, &ops::kCosine, &ops::kSquare, &ops::kErf, &ops::kErfc, &ops::kAtan,
        &ops::kSinh, &ops::kCosh, &ops::kAsinh})
    r.push_back(unary_row(*d, -2, 2));
  for (const ir::OpDef* d : {&ops::kLog, &ops::kSqrt, &ops::kRsqrt, &ops::kCbrt, &ops::kAbs})
    r.push_back(unary_row(*d, 0.3, 2));
  for (const ir::OpDef* d :
       {&ops::kLogPlusOne, &ops::kErfInv, &ops::kAsin, &ops::kAcos, &ops::kAtanh, &ops::kTan})
    r.push_back(unary_row(*d, -0.8, 0.8));
  r.push_back(unary_row(ops::kAcosh, 1.2, 3));
  for (const ir::OpDef* d :
       {&ops::kAdd, &ops::kSubtract, &ops::kMultiply, &ops::kMaximum, &ops::kMinimum, &ops::kAtan2})
    r.push_back(binary_row(*d, -2, 2));
  for (const ir::OpDef* d : {&ops::kDivide, &ops::kPower}) r.push_back(binary_row(*d, 0.4, 2));
  r.push_back(binary_row(ops::kRemainder, 1.1, 1.9));
  r.push_back(program("select", {{2, 3}, {2, 3}}, [](Builder&, std::vector<Expr> a) {
    return std::vector<Expr>{ir::select(ir::compare(a[0], 0, "GT"), a[0] * a[1], a[1])};
  }));
  r.push_back(program("clamp", {{}, {2, 3}, {}}, [](Builder& b, std::vector<Expr> a) {
    return std::vector<Expr>{
        {&b, b.one(ops::kClamp, {(a[0] * 0.1 - 0.5).v, a[1].v, (a[2] * 0.1 + 0.5).v})}};
  }));
  r.push_back(program("convert", {{3}}, [](Builder&, std::vector<Expr> a) {
    return std::vector<Expr>{a[0] * ir::convert(ir::convert(a[0], kF64), kF64)};
  }));
  r.push_back(program("complex", {{3}, {3}}, [](Builder&, std::vector<Expr> a) {
    Expr z = ir::binary(ops::kComplex, a[0], a[1]);
    Expr w = z * z;
    return std::vector<Expr>{ir::unary(ops::kReal, w), ir::unary(ops::kImag, w),
                             ir::unary(ops::kAbs, z)};
  }));
  r.push_back(program("broadcast_in_dim", {{3, 1}}, [](Builder&, std::vector<Expr> a) {
    return std::vector<Expr>{ir::broadcast_in_dim(a[0], {2, 4, 3}, {2, 1})};
  }));
  r.push_back(program("reshape", {{2, 3}}, [](Builder&, std::vector<Expr> a) {
    return std::vector<Expr>{ir::reshape(a[0], {3, 2})};
  }));
  r.push_back(program("transpose", {{2, 3, 4}}, [](Builder&, std::vector<Expr> a) {
    return std::vector<Expr>{ir::transpose(a[0], {2, 0, 1})};
  }));
  r.push_back(program("reverse", {{2, 3}}, [](Builder& b, std::vector<Expr> a) {
    return std::vector<Expr>{
        {&b, b.one(ops::kReverse, {a[0].v}, Attrs{{"dimensions", Attr(Dims{1})}})}};
  }));
  r.push_back(program("concatenate", {{2, 3}, {2, 1}}, [](Builder&, std::vector<Expr> a) {
    return std::vector<Expr>{ir::concatenate(a, 1)};
  }));
  r.push_back(program("slice", {{5, 3}}, [](Builder&, std::vector<Expr> a) {
    return std::vector<Expr>{ir::slice(a[0], {1, 0}, {5, 2}, {2, 1})};
  }));
  r.push_back(program("pad", {{3, 2}, {}}, [](Builder&, std::vector<Expr> a) {
    return std::vector<Expr>{ir::pad(a[0], a[1], {1, -1}, {0, 2}, {1, 0})};
  }));
  r.push_back(program("dot_general", {{2, 3, 4}, {4, 2, 5}}, [](Builder&, std::vector<Expr> a) {
    return std::vector<Expr>{ir::dot_general(a[0], a[1], {0}, {1}, {2}, {0})};
  }));
  r.push_back(program(
      "dot_general of two contractions", {{3, 4, 2}, {4, 3}}, [](Builder&, std::vector<Expr> a) {
        return std::vector<Expr>{ir::dot_general(a[0], a[1], {}, {}, {0, 1}, {1, 0})};
      }));
  for (const ir::OpDef* d : {&ops::kAdd, &ops::kMultiply, &ops::kMaximum, &ops::kMinimum})
    r.push_back(
        program("reduce " + std::string(d->name), {{2, 3, 4}}, [&](Builder&, std::vector<Expr> a) {
          return std::vector<Expr>{ir::reduce(*d, a[0], {0, 2})};
        }));
  for (const ir::OpDef* d : {&ops::kCumsum, &ops::kCumprod, &ops::kCummax, &ops::kCummin})
    for (bool rev : {false, true})
      r.push_back(program(std::string(d->name), {{2, 5}}, [&](Builder& b, std::vector<Expr> a) {
        return std::vector<Expr>{
            {&b, b.one(*d, {a[0].v}, Attrs{{"dimension", Attr(1)}, {"reverse", Attr(rev)}})}};
      }));
  r.push_back(program("dynamic_slice", {{4, 5}}, [](Builder& b, std::vector<Expr> a) {
    ValueId i = index(b, {2}, {}).v, j = index(b, {9}, {}).v;
    return std::vector<Expr>{
        {&b, b.one(ops::kDynamicSlice, {a[0].v, i, j}, Attrs{{"slice_sizes", Attr(Dims{2, 3})}})}};
  }));
  r.push_back(
      program("dynamic_update_slice", {{4, 5}, {2, 3}}, [](Builder& b, std::vector<Expr> a) {
        ValueId i = index(b, {1}, {}).v, j = index(b, {7}, {}).v;
        return std::vector<Expr>{{&b, b.one(ops::kDynamicUpdateSlice, {a[0].v, a[1].v, i, j})}};
      }));
  r.push_back(program("gather", {{4, 5}}, [](Builder& b, std::vector<Expr> a) {
    lax::GatherDims g;
    g.offset_dims = {1};
    g.collapsed_slice_dims = {0};
    g.start_index_map = {0};
    g.index_vector_dim = 1;
    return std::vector<Expr>{lax::gather(a[0], index(b, {1, 1, 3}, {3}), g, {1, 5})};
  }));
  for (bool add : {true, false})
    r.push_back(program(add ? "scatter add" : "scatter set", {{4, 5}, {3, 5}},
                        [&](Builder& b, std::vector<Expr> a) {
                          lax::ScatterDims s;
                          s.update_window_dims = {1};
                          s.inserted_window_dims = {0};
                          s.scatter_dims_to_operand_dims = {0};
                          s.index_vector_dim = 1;
                          return std::vector<Expr>{lax::scatter(a[0], index(b, {1, 1, 9}, {3}),
                                                                a[1], s, add ? &ops::kAdd : nullptr,
                                                                false)};
                        }));
  r.push_back(program("sort", {{2, 5}, {2, 5}}, [](Builder& b, std::vector<Expr> a) {
    GraphPtr less = region({kScalar, kScalar, kScalar, kScalar}, [](Builder&, auto p) {
      return std::vector<Expr>{ir::compare(p[0], p[1], "LT")};
    });
    ir::ValueIds s = b.op(ops::kSort, {a[0].v, a[1].v},
                          Attrs{{"dimension", Attr(1)}, {"is_stable", Attr(true)}}, {less});
    return std::vector<Expr>{{&b, s[0]}, {&b, s[1]}};
  }));
  r.push_back(program("sort by a captured key", {{2, 5}, {}}, [](Builder& b, std::vector<Expr> a) {
    GraphPtr nearer = region({kScalar, kScalar, kScalar}, [](Builder&, auto p) {
      return std::vector<Expr>{
          ir::compare(ir::unary(ops::kAbs, p[0] - p[2]), ir::unary(ops::kAbs, p[1] - p[2]), "LT")};
    });
    return std::vector<Expr>{
        {&b,
         b.one(ops::kSort, {a[0].v, a[1].v},
               Attrs{{"dimension", Attr(1)}, {"is_stable", Attr(true)}, {"num_captures", Attr(1)}},
               {nearer})}};
  }));
  r.push_back(program("top_k", {{2, 5}}, [](Builder& b, std::vector<Expr> a) {
    return std::vector<Expr>{{&b, b.op(ops::kTopK, {a[0].v}, Attrs{{"k", Attr(2)}})[0]}};
  }));
  r.push_back(scan_row(false));
  r.push_back(scan_row(true));
  r.push_back(branch_row(true));
  r.push_back(branch_row(false));
  r.push_back(while_row());
  for (const char* policy : {"nothing_saveable", "everything_saveable", "save_only_these_names:a"})
    r.push_back(remat_row(policy));
  r.push_back(program("call", {{3}}, [](Builder& b, std::vector<Expr> a) {
    GraphPtr body = region(
        {kVector}, [](Builder&, auto p) { return std::vector<Expr>{ir::unary(ops::kSine, p[0])}; });
    return std::vector<Expr>{{&b, b.one(ops::kCall, {a[0].v}, Attrs{{"name", Attr("f")}}, {body})}};
  }));
  r.push_back(program("optimization_barrier", {{3}}, [](Builder& b, std::vector<Expr> a) {
    return std::vector<Expr>{{&b, b.one(ops::kOptimizationBarrier, {a[0].v})}};
  }));
  return r;
}

using Arrays = std::vector<HostArray>;

HostArray random_array(const Type& t, double lo, double hi, std::mt19937_64& rng) {
  std::uniform_real_distribution<double> u(lo, hi);
  std::vector<double> v;
  for (std::int64_t i = 0; i < t.size(); ++i) v.push_back(u(rng));
  return HostArray::from(v, t.dims());
}

Arrays random_args(const ir::Graph& g, double lo, double hi, std::mt19937_64& rng) {
  Arrays a;
  for (ValueId v : g.params) a.push_back(random_array(g.type(v), lo, hi, rng));
  return a;
}

double dot(const Arrays& a, const Arrays& b) {
  double s = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::int64_t k = 0; k < a[i].size(); ++k) s += a[i].at(k) * b[i].at(k);
  return s;
}

Arrays moved(const Arrays& a, const Arrays& t, double h) {
  Arrays r;
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::vector<double> v;
    for (std::int64_t k = 0; k < a[i].size(); ++k) v.push_back(a[i].at(k) + h * t[i].at(k));
    r.push_back(HostArray::from(v, a[i].dims()));
  }
  return r;
}

void expect_near(const Arrays& a, const Arrays& b, double tolerance, const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].dims(), b[i].dims()) << what;
    for (std::int64_t k = 0; k < a[i].size(); ++k)
      ASSERT_NEAR(a[i].at(k), b[i].at(k), tolerance * (1 + std::abs(b[i].at(k))))
          << what << " result " << i << " element " << k;
  }
}

Arrays tail(const Arrays& a, std::size_t n) {
  return {a.begin() + static_cast<std::ptrdiff_t>(n), a.end()};
}
Arrays joined(Arrays a, const Arrays& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// jvp(g)(x, t) against (g(x + h t) - g(x - h t)) / 2h.
void check_forward(const ir::Graph& g, const Mask& active, const Arrays& x, std::mt19937_64& rng,
                   const std::string& what) {
  GraphPtr j = jvp(g, active);
  ir::verify_or_throw(*j);
  Arrays t, all;
  for (std::size_t i = 0; i < x.size(); ++i) {
    HostArray d = active[i] ? random_array(g.type(g.params[i]), -1, 1, rng)
                            : HostArray::zeros(x[i].dtype(), x[i].dims());
    all.push_back(d);
    if (active[i]) t.push_back(d);
  }
  Arrays r = ir::evaluate(*j, joined(x, t));
  constexpr double kStep = 1e-5;
  Arrays up = ir::evaluate(g, moved(x, all, kStep)), down = ir::evaluate(g, moved(x, all, -kStep));
  Arrays numeric;
  for (std::size_t i = 0; i < up.size(); ++i) {
    std::vector<double> v;
    for (std::int64_t k = 0; k < up[i].size(); ++k)
      v.push_back((up[i].at(k) - down[i].at(k)) / (2 * kStep));
    numeric.push_back(HostArray::from(v, up[i].dims()));
  }
  expect_near(tail(r, g.results.size()), numeric, 2e-6, what);
}

// <ct, J t> = <J^T ct, t>.
void check_reverse(const ir::Graph& g, const Mask& active, const Arrays& x, std::mt19937_64& rng,
                   const std::string& what) {
  GraphPtr j = jvp(g, active), v = vjp(g, active);
  ir::verify_or_throw(*v);
  Arrays t, ct;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (active[i]) t.push_back(random_array(g.type(g.params[i]), -1, 1, rng));
  for (ValueId r : g.results) ct.push_back(random_array(g.type(r), -1, 1, rng));
  Arrays forward = ir::evaluate(*j, joined(x, t)), backward = ir::evaluate(*v, joined(x, ct));
  std::size_t n = g.results.size();
  double a = dot(ct, tail(forward, n)), b = dot(tail(backward, n), t);
  EXPECT_NEAR(a, b, 1e-10 * (1 + std::abs(a))) << what;
  expect_near({backward.begin(), backward.begin() + static_cast<std::ptrdiff_t>(n)},
              ir::evaluate(g, x), 1e-12, what + " primal");
}

// The batched program against a loop over the batch, with the batch dimension of parameter i at
// dims[i].
void check_batch(const ir::Graph& g, const Arrays& base, std::span<const int> dims, double lo,
                 double hi, std::mt19937_64& rng, const std::string& what) {
  constexpr std::int64_t kSize = 3;
  std::vector<Arrays> each(kSize, base);
  Arrays stacked;
  for (std::size_t i = 0; i < base.size(); ++i) {
    if (dims[i] == kNotMapped) {
      stacked.push_back(base[i]);
      continue;
    }
    for (Arrays& e : each) e[i] = random_array(g.type(g.params[i]), lo, hi, rng);
    // Stack in front, then move to the place.
    Builder b;
    std::vector<Expr> parts;
    Arrays in;
    for (const Arrays& e : each) {
      Expr p{&b, b.param(g.type(g.params[i]))};
      parts.push_back(ir::broadcast_new_dim(p, 0, 1));
      in.push_back(e[i]);
    }
    Expr s = ir::move_dim(ir::concatenate(parts, 0), 0, dims[i]);
    stacked.push_back(ir::evaluate(*b.finish({s.v}), in)[0]);
  }
  std::vector<int> out(g.results.size(), 0);
  GraphPtr batched = batch_to(g, dims, kSize, out);
  ir::verify_or_throw(*batched);
  Arrays r = ir::evaluate(*batched, stacked);
  for (std::int64_t k = 0; k < kSize; ++k) {
    Arrays want = ir::evaluate(g, each[static_cast<std::size_t>(k)]), got;
    for (std::size_t i = 0; i < r.size(); ++i) {
      std::int64_t n = want[i].size();
      std::vector<double> v;
      for (std::int64_t e = 0; e < n; ++e) v.push_back(r[i].at(k * n + e));
      got.push_back(HostArray::from(v, want[i].dims()));
    }
    expect_near(got, want, 1e-12, what + " example " + std::to_string(k));
  }
}

class Rules : public ::testing::TestWithParam<Row> {
 protected:
  std::mt19937_64 rng{20240817};

  // Every non-empty subset of the parameters.
  std::vector<Mask> masks(std::size_t n) const {
    std::vector<Mask> r;
    for (unsigned m = 1; m < (1u << n); ++m) {
      Mask k;
      for (std::size_t i = 0; i < n; ++i) k.push_back((m >> i) & 1);
      r.push_back(k);
    }
    return r;
  }
};

TEST_P(Rules, ForwardModeEqualsFiniteDifferences) {
  const Row& row = GetParam();
  Arrays x = random_args(*row.graph, row.lo, row.hi, rng);
  for (const Mask& m : masks(x.size())) check_forward(*row.graph, m, x, rng, row.name);
}

TEST_P(Rules, ReverseModeIsTheTransposeOfForwardMode) {
  const Row& row = GetParam();
  Arrays x = random_args(*row.graph, row.lo, row.hi, rng);
  for (const Mask& m : masks(x.size())) {
    if (row.reverse)
      check_reverse(*row.graph, m, x, rng, row.name);
    else
      EXPECT_THROW(vjp(*row.graph, m), UserError);
  }
}

TEST_P(Rules, DerivativesCanBeDifferentiatedAgain) {
  const Row& row = GetParam();
  Mask all(row.graph->params.size(), true);
  GraphPtr j = jvp(*row.graph, all);
  Arrays x = random_args(*j, row.lo, row.hi, rng);
  check_forward(*j, Mask(x.size(), true), x, rng, row.name + " jvp of jvp");
  if (!row.reverse) return;
  GraphPtr v = vjp(*row.graph, all);
  x = random_args(*v, row.lo, row.hi, rng);
  check_forward(*v, Mask(x.size(), true), x, rng, row.name + " jvp of vjp");
  check_reverse(*v, Mask(x.size(), true), x, rng, row.name + " vjp of vjp");
}

TEST_P(Rules, BatchingEqualsALoop) {
  const Row& row = GetParam();
  const ir::Graph& g = *row.graph;
  Arrays x = random_args(g, row.lo, row.hi, rng);
  for (const Mask& m : masks(x.size()))
    for (bool last : {false, true}) {
      std::vector<int> dims;
      for (std::size_t i = 0; i < m.size(); ++i)
        dims.push_back(!m[i] ? kNotMapped : last ? g.type(g.params[i]).rank() : 0);
      check_batch(g, x, dims, row.lo, row.hi, rng, row.name);
    }
}

TEST_P(Rules, BatchedGradientsEqualALoop) {
  const Row& row = GetParam();
  if (!row.reverse) return;
  GraphPtr v = vjp(*row.graph, Mask(row.graph->params.size(), true));
  Arrays x = random_args(*v, row.lo, row.hi, rng);
  check_batch(*v, x, std::vector<int>(x.size(), 0), row.lo, row.hi, rng, row.name + " vjp");
  std::vector<int> first(x.size(), kNotMapped);
  first[0] = 0;
  check_batch(*v, x, first, row.lo, row.hi, rng, row.name + " vjp, one mapped");
}

TEST_P(Rules, GradientOfABatchEqualsTheSum) {
  const Row& row = GetParam();
  if (!row.reverse) return;
  const ir::Graph& g = *row.graph;
  std::vector<int> in(g.params.size(), 0), out(g.results.size(), 0);
  GraphPtr b = batch_to(g, in, 2, out);
  Arrays x = random_args(*b, row.lo, row.hi, rng);
  check_reverse(*b, Mask(x.size(), true), x, rng, row.name + " vjp of vmap");
}

INSTANTIATE_TEST_SUITE_P(Ops, Rules, ::testing::ValuesIn(rows()),
                         [](const ::testing::TestParamInfo<Row>& row) {
                           std::string name;
                           for (char c : row.param.name) name += std::isalnum(c) ? c : '_';
                           return name + "_" + std::to_string(row.index);
                         });

TEST(RuleTable, EveryOpHasRulesOrRefuses) {
  for (const ir::OpDef* def : ir::op_table()) {
    if (def->is(ir::kKernelOnly)) continue;
    const OpRules& r = rules_of(*def);
    if (def->max_operands != 0) {
      EXPECT_TRUE(r.jvp || r.no_derivative || r.refuse_jvp) << def->name << " has no derivative";
      EXPECT_TRUE(r.batch || r.refuse_batch) << def->name << " has no batching rule";
    }
    EXPECT_TRUE(!def->is(ir::kLinear) || r.transpose || r.refuse_transpose)
        << def->name << " has no transpose";
  }
}

}  // namespace
}  // namespace xylem::transform
