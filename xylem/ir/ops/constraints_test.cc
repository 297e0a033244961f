#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "xylem/ir/ops/all.h"
#include "xylem/ir/ops/callback.h"
#include "xylem/ir/ops/families.h"
#include "xylem/ir/ops/named_axis.h"
#include "xylem/ir/testing/op_call.h"

// Every constraint that a family of this folder states is broken at least once; the label and a
// telling piece of the message are checked. The last test compares the labels met with the labels
// stated in the op table.

namespace xylem::ir::ops {
namespace {

using testing::binary_body;
using testing::passing_body;
using testing::violation_of;

Type t(DType dtype, Dims dims = {}) { return Type::tensor(dtype, std::move(dims)); }
Type f(Dims dims = {}) { return t(DType::kF32, std::move(dims)); }
Type i(Dims dims = {}) { return t(DType::kI32, std::move(dims)); }
Type b(Dims dims = {}) { return t(DType::kBool, std::move(dims)); }
Type c(Dims dims = {}) { return t(DType::kC64, std::move(dims)); }

struct Case {
  const OpDef* op;
  std::string label;    // without the op's name
  std::string message;  // a piece of it
  std::vector<Type> operands;
  Attrs attrs = {};
  std::vector<GraphPtr> regions = {};
};

std::string full_label(const Case& k) {
  return std::string(k.op->name.substr(k.op->name.find('.') + 1)) + "_" + k.label;
}

std::vector<Case> elementwise_cases() {
  std::vector<Case> out;
  for (const OpDef* op : {&kCeil, &kFloor, &kRoundNearestAfz, &kRoundNearestEven, &kIsFinite,
                          &kReal, &kImag, &kSqrt, &kErf, &kErfc, &kErfInv, &kReducePrecision})
    out.push_back({op,
                   "i1",
                   "operand 0 must be a tensor of float",
                   {i({2})},
                   {{"exponent_bits", 5}, {"mantissa_bits", 5}}});
  for (const OpDef* op : elementary_family()) out.push_back({op, "i1", "it is i32[2]", {i({2})}});
  for (const OpDef* op : {&kNot, &kPopcnt, &kCountLeadingZeros})
    out.push_back({op, "i1", "integer elements; it is f32[]", {f()}});
  for (const OpDef* op : {&kAbs, &kSign, &kNegate, &kSquare})
    out.push_back({op, "i1", "it is i1[]", {b()}});
  for (const OpDef* op : {&kAdd, &kSubtract, &kMultiply, &kDivide, &kRemainder, &kMaximum,
                          &kMinimum, &kPower, &kAtan2, &kNextAfter, &kAnd, &kOr, &kXor, &kShiftLeft,
                          &kShiftRightLogical, &kShiftRightArithmetic, &kComplex}) {
    bool bits = op == &kAnd || op == &kOr || op == &kXor || op == &kShiftLeft ||
                op == &kShiftRightLogical || op == &kShiftRightArithmetic;
    DType good = bits ? DType::kI32 : DType::kF32;
    out.push_back({op, "i1", "it is token", {Type::token(), t(good)}});
    out.push_back({op, "i2", "operand 1", {t(good), Type::token()}});
    out.push_back({op, "c1", "which differ at axis 1", {t(good, {2, 3}), t(good, {2, 4})}});
    out.push_back({op, "c1", "which differ in rank", {t(good, {2, 3}), t(good, {3})}});
  }
  out.push_back({&kAdd,
                 "c1",
                 "operand 0 is f32[2], operand 1 is i32[2], which differ in dtype",
                 {f({2}), i({2})}});
  Type f8 = t(DType::kF8E5M2);
  out.push_back({&kNextAfter, "i1", "they are f8E5M2[]", {f8, f8}});
  out.push_back({&kComplex, "i1", "must be f32 or f64", {t(DType::kF16), t(DType::kF16)}});

  Attrs eq{{"comparison_direction", EnumAttr("EQ")}}, lt{{"comparison_direction", EnumAttr("LT")}};
  Attrs total = lt;
  total.set("compare_type", EnumAttr("TOTALORDER"));
  out.push_back({&kCompare, "i1", "operand 0", {Type::token(), f()}, eq});
  out.push_back({&kCompare, "i2", "operand 1", {f(), Type::token()}, eq});
  out.push_back({&kCompare, "i3", "the direction is LT", {c(), c()}, lt});
  out.push_back({&kCompare, "c1", "differ in dtype", {f(), i()}, eq});
  out.push_back({&kCompare, "c2", "differ at axis 0", {f({2}), f({3})}, eq});
  out.push_back({&kCompare, "c3", "TOTALORDER for i32[]", {i(), i()}, total});
  out.push_back({&kSelect, "i1", "tensor of bool elements; it is i32[]", {i(), f(), f()}});
  out.push_back({&kSelect, "i2", "operand 1", {b(), Type::token(), f()}});
  out.push_back({&kSelect, "i3", "operand 2", {b(), f(), Type::token()}});
  out.push_back({&kSelect, "c1", "the predicate is", {b({3}), f({2}), f({2})}});
  out.push_back(
      {&kSelect, "c2", "operand 1 is f32[2], operand 2 is i32[2]", {b(), f({2}), i({2})}});
  out.push_back({&kClamp, "i1", "operand 0", {Type::token(), f(), f()}});
  out.push_back({&kClamp, "i2", "operand 1", {f(), Type::token(), f()}});
  out.push_back({&kClamp, "i3", "operand 2", {f(), f(), Type::token()}});
  out.push_back({&kClamp, "c1", "min is f32[3]", {f({3}), f({2}), f()}});
  out.push_back({&kClamp, "c2", "max is f32[3]", {f(), f({2}), f({3})}});
  out.push_back({&kClamp, "c3", "(i32[], f32[2], f32[])", {i(), f({2}), f()}});

  auto to = [](DType d) { return Attrs{{"result_dtype", d}}; };
  out.push_back({&kConvert, "i1", "it is token", {Type::token()}, to(DType::kF32)});
  out.push_back({&kConvert, "o1", "it is float0", {f()}, to(DType::kFloat0)});
  out.push_back({&kBitcastConvert, "i1", "must have bits", {f()}, to(DType::kFloat0)});
  out.push_back(
      {&kBitcastConvert, "c1", "f32[3] to f64 (32 to 64 bits)", {f({3})}, to(DType::kF64)});
  out.push_back({&kBitcastConvert, "c1", "f32[] to f64", {f()}, to(DType::kF64)});
  out.push_back({&kBitcastConvert, "c2", "c64[] to i64", {c()}, to(DType::kI64)});
  out.push_back(
      {&kReducePrecision, "c2", "it is 0", {f()}, {{"exponent_bits", 0}, {"mantissa_bits", 5}}});
  out.push_back(
      {&kReducePrecision, "c3", "it is -1", {f()}, {{"exponent_bits", 5}, {"mantissa_bits", -1}}});
  return out;
}

std::vector<Case> movement_cases() {
  std::vector<Case> out;
  out.push_back({&kConstant, "c1", "undefined", {}, {{"value", HostArray()}}});
  auto iota = [](int d, Dims shape, DType dtype = DType::kF32) {
    return Attrs{{"iota_dimension", d}, {"shape", shape}, {"result_dtype", dtype}};
  };
  out.push_back({&kIota, "c1", "[0, 2)", {}, iota(2, {2, 3})});
  out.push_back({&kIota, "c1", "[0, 0)", {}, iota(0, {})});
  out.push_back({&kIota, "o1", "result_dtype is i1", {}, iota(0, {2}, DType::kBool)});
  out.push_back({&kIota, "shape", "has -1", {}, iota(0, {-1})});

  auto cast = [](Dims dims, Dims shape) {
    return Attrs{{"broadcast_dimensions", dims}, {"shape", shape}};
  };
  out.push_back({&kBroadcastInDim, "i1", "token", {Type::token()}, cast({}, {})});
  out.push_back({&kBroadcastInDim,
                 "c2",
                 "one entry for each operand dimension (1)",
                 {f({2})},
                 cast({}, {2})});
  out.push_back({&kBroadcastInDim, "c3", "[0, 1)", {f({2})}, cast({1}, {2})});
  out.push_back({&kBroadcastInDim, "c4", "has 0 twice", {f({2, 2})}, cast({0, 0}, {2, 2})});
  out.push_back({&kBroadcastInDim,
                 "c5",
                 "the operand is f32[2], the result shape [3]",
                 {f({2})},
                 cast({0}, {3})});
  out.push_back({&kBroadcastInDim, "shape", "has -2", {f()}, cast({}, {-2})});
  out.push_back({&kReshape, "i1", "token", {Type::token()}, {{"shape", Dims{}}}});
  out.push_back({&kReshape, "c2", "f32[2,3] to f32[7] with 7", {f({2, 3})}, {{"shape", Dims{7}}}});
  out.push_back({&kReshape, "shape", "has -1", {f({2})}, {{"shape", Dims{-1}}}});
  out.push_back({&kTranspose, "i1", "token", {Type::token()}, {{"permutation", Dims{}}}});
  out.push_back({&kTranspose, "c2", "has 1", {f({2, 3})}, {{"permutation", Dims{1}}}});
  out.push_back({&kTranspose, "c2", "twice", {f({2, 3})}, {{"permutation", Dims{1, 1}}}});
  out.push_back({&kTranspose, "c2", "[0, 2)", {f({2, 3})}, {{"permutation", Dims{0, 2}}}});
  out.push_back({&kReverse, "i1", "token", {Type::token()}, {{"dimensions", Dims{}}}});
  out.push_back({&kReverse, "c2", "twice", {f({2})}, {{"dimensions", Dims{0, 0}}}});
  out.push_back({&kReverse, "c3", "[0, 1)", {f({2})}, {{"dimensions", Dims{1}}}});

  auto along = [](int d) { return Attrs{{"dimension", d}}; };
  out.push_back({&kConcatenate, "i1", "token", {f({2}), Type::token()}, along(0)});
  out.push_back({&kConcatenate, "c1", "differ in dtype", {f({2}), i({2})}, along(0)});
  out.push_back({&kConcatenate,
                 "c2",
                 "agree in every dimension but the concatenated one (axis 0)",
                 {f({2, 3}), f({4, 5})},
                 along(0)});
  out.push_back({&kConcatenate, "c3", "none is given", {}, along(0)});
  out.push_back({&kConcatenate, "c4", "[0, 1)", {f({2})}, along(1)});
  std::int64_t huge = std::int64_t{1} << 62;
  out.push_back({&kConcatenate, "c6", "2^62", {f({huge}), f({huge})}, along(0)});

  auto cut = [](Dims start, Dims limit, Dims strides) {
    return Attrs{{"start_indices", start}, {"limit_indices", limit}, {"strides", strides}};
  };
  out.push_back({&kSlice, "i1", "token", {Type::token()}, cut({}, {}, {})});
  out.push_back({&kSlice, "c2", "limit_indices = [] has 0", {f({4})}, cut({0}, {}, {1})});
  out.push_back(
      {&kSlice, "c3", "start 0, limit 5 in dimension 0 of f32[4]", {f({4})}, cut({0}, {5}, {1})});
  out.push_back({&kSlice, "c3", "start 3, limit 2", {f({4})}, cut({3}, {2}, {1})});
  out.push_back({&kSlice, "c4", "strides = [0]", {f({4})}, cut({0}, {2}, {0})});

  Attrs sizes{{"slice_sizes", Dims{2}}};
  out.push_back({&kDynamicSlice, "i1", "token", {Type::token(), i()}, sizes});
  out.push_back({&kDynamicSlice, "i2", "it is f32[]", {f({4}), f()}, sizes});
  out.push_back({&kDynamicSlice, "c2", "2 are given", {f({4}), i(), i()}, sizes});
  out.push_back({&kDynamicSlice, "c3", "scalars", {f({4}), i({1})}, sizes});
  out.push_back({&kDynamicSlice,
                 "c3",
                 "one dtype",
                 {f({4, 4}), i(), t(DType::kI64)},
                 {{"slice_sizes", Dims{2, 2}}}});
  out.push_back({&kDynamicSlice, "c4", "slice_sizes = [2] of f32[1]", {f({1}), i()}, sizes});
  out.push_back({&kDynamicUpdateSlice, "i1", "token", {Type::token(), f({1}), i()}});
  out.push_back({&kDynamicUpdateSlice, "i2", "token", {f({4}), Type::token(), i()}});
  out.push_back({&kDynamicUpdateSlice, "i3", "it is f32[]", {f({4}), f({1}), f()}});
  out.push_back({&kDynamicUpdateSlice, "c2", "the update is i32[1]", {f({4}), i({1}), i()}});
  out.push_back({&kDynamicUpdateSlice, "c3", "differ in rank", {f({4}), f(), i()}});
  out.push_back({&kDynamicUpdateSlice, "c4", "0 are given", {f({4}), f({1})}});
  out.push_back({&kDynamicUpdateSlice, "c5", "scalars", {f({4}), f({1}), i({1})}});
  out.push_back({&kDynamicUpdateSlice,
                 "c6",
                 "the operand is f32[4], the update f32[5]",
                 {f({4}), f({5}), i()}});

  auto padding = [](Dims low, Dims high, Dims interior) {
    return Attrs{
        {"edge_padding_low", low}, {"edge_padding_high", high}, {"interior_padding", interior}};
  };
  out.push_back({&kPad, "i1", "token", {Type::token(), f()}, padding({}, {}, {})});
  out.push_back({&kPad, "i2", "it is f32[1]", {f({2}), f({1})}, padding({0}, {0}, {0})});
  out.push_back({&kPad, "c1", "the padding value is i32[]", {f({2}), i()}, padding({0}, {0}, {0})});
  out.push_back({&kPad, "c2", "edge_padding_high = []", {f({2}), f()}, padding({0}, {}, {0})});
  out.push_back({&kPad, "c3", "interior_padding = [-1]", {f({2}), f()}, padding({0}, {0}, {-1})});
  out.push_back({&kPad, "c4", "it would be negative", {f({2}), f()}, padding({-2}, {-1}, {0})});
  out.push_back({&kPad, "c4", "at most 2^61", {f({2}), f()}, padding({INT64_MIN}, {0}, {0})});
  return out;
}

std::vector<Case> contraction_cases() {
  auto dot = [](Dims lb, Dims rb, Dims lc, Dims rc) {
    return Attrs{{"lhs_batching_dimensions", lb},
                 {"rhs_batching_dimensions", rb},
                 {"lhs_contracting_dimensions", lc},
                 {"rhs_contracting_dimensions", rc}};
  };
  auto with = [](Attrs a, std::string_view name, Attr v) {
    a.set(name, std::move(v));
    return a;
  };
  std::vector<Case> out;
  auto bad = [&](std::string label, std::string message, std::vector<Type> operands, Attrs attrs) {
    out.push_back({&kDotGeneral, label, message, std::move(operands), std::move(attrs)});
  };
  bad("i1", "token", {Type::token(), f()}, {});
  bad("i2", "token", {f(), Type::token()}, {});
  bad("c1", "equally many batching", {f({2}), f({2})}, dot({0}, {}, {}, {}));
  bad("c2", "equally many contracting", {f({2}), f({2})}, dot({}, {}, {0}, {}));
  bad("c3", "twice", {f({2}), f({2, 2})}, dot({0}, {0}, {0}, {1}));
  bad("c4", "twice", {f({2, 2}), f({2})}, dot({0}, {0}, {1}, {0}));
  bad("c5", "lhs_batching_dimensions must lie in [0, 1)", {f({2}), f({2})}, dot({1}, {0}, {}, {}));
  bad("c6", "lhs_contracting_dimensions", {f({2}), f({2})}, dot({}, {}, {-1}, {0}));
  bad("c7", "rhs_batching_dimensions", {f({2}), f({2})}, dot({0}, {1}, {}, {}));
  bad("c8", "rhs_contracting_dimensions", {f({2}), f({2})}, dot({}, {}, {0}, {1}));
  bad("c9", "lhs f32[2] dimension 0 against rhs f32[3] dimension 0", {f({2}), f({3})},
      dot({0}, {0}, {}, {}));
  bad("c10", "contracting dimensions must have one size", {f({2}), f({3})}, dot({}, {}, {0}, {0}));
  bad("c11", "it has 3", {f({2}), f({2})},
      with(dot({}, {}, {0}, {0}), "precision_config",
           AttrList{EnumAttr("HIGH"), EnumAttr("HIGH"), EnumAttr("HIGH")}));
  bad("c13", "lhs is f32[2], rhs is i32[2]", {f({2}), i({2})}, dot({}, {}, {0}, {0}));
  auto algorithm = [&](std::string_view field) {
    return with(dot({}, {}, {0}, {0}), "algorithm",
                OpaqueAttr{"#stablehlo.dot_algorithm<" + std::string(field) + " = 0>"});
  };
  bad("c21", "it has HIGH", {f({2}), f({2})},
      with(algorithm("x"), "precision_config", AttrList{EnumAttr("HIGH"), EnumAttr("HIGH")}));
  bad("c22", "lhs_component_count", {f({2}), f({2})}, algorithm("lhs_component_count"));
  bad("c23", "rhs_component_count", {f({2}), f({2})}, algorithm("rhs_component_count"));
  bad("c24", "num_primitive_operations", {f({2}), f({2})}, algorithm("num_primitive_operations"));
  bad("o1", "f32[2] and f32[2] to c64", {f({2}), f({2})},
      with(dot({}, {}, {0}, {0}), "result_dtype", DType::kC64));
  return out;
}

std::vector<Case> region_cases() {
  std::vector<Case> out;
  GraphPtr add = binary_body(kAdd, DType::kF32), iadd = binary_body(kAdd, DType::kI32);
  auto over = [](Dims d) { return Attrs{{"dimensions", d}}; };
  out.push_back({&kReduce, "i1", "token", {Type::token(), f()}, over({}), {add}});
  out.push_back({&kReduce, "i2", "token", {f({2}), Type::token()}, over({}), {add}});
  out.push_back({&kReduce, "c1", "input 0 is", {f({2}), f({3}), f(), f()}, over({}), {add}});
  out.push_back({&kReduce, "c2", "its init value i32[]", {f({2}), i()}, over({}), {add}});
  out.push_back({&kReduce, "c3", "3 operands", {f({2}), f({2}), f()}, over({}), {add}});
  out.push_back({&kReduce, "c4", "[0, 1)", {f({2}), f()}, over({1}), {add}});
  out.push_back({&kReduce, "c5", "twice", {f({2}), f()}, over({0, 0}), {add}});
  out.push_back({&kReduce, "c6", "it returns (i32[])", {f({2}), f()}, over({0}), {iadd}});
  out.push_back({&kReduce,
                 "c6",
                 "region 0 must take (f32[], f32[])",
                 {f({2}), f()},
                 over({0}),
                 {passing_body({f()}, {0})}});
  Attrs captures = over({0});
  captures.set("num_captures", 3);
  out.push_back({&kReduce, "captures", "it is 3", {f({2}), f()}, captures, {add}});

  auto window = [](std::string_view name, Attr v) {
    Attrs a{{"window_dimensions", Dims{2}}};
    a.set(name, std::move(v));
    return a;
  };
  std::vector<Type> one{f({4}), f()};
  auto bad = [&](std::string label, std::string message, std::vector<Type> operands, Attrs attrs,
                 GraphPtr body) {
    out.push_back(
        {&kReduceWindow, label, message, std::move(operands), std::move(attrs), {std::move(body)}});
  };
  Attrs plain{{"window_dimensions", Dims{2}}};
  bad("i1", "token", {Type::token(), f()}, plain, add);
  bad("i2", "token", {f({2}), Type::token()}, plain, add);
  bad("c1", "3 operands", {f({2}), f(), f()}, plain, add);
  bad("c2", "input 0 is", {f({2}), f({3}), f(), f()}, plain, add);
  bad("c3", "its init value", {f({2}), i()}, plain, add);
  bad("c4", "window_dimensions", one, window("window_dimensions", Dims{}), add);
  bad("c5", "positive", one, window("window_dimensions", Dims{0}), add);
  bad("c6", "window_strides", one, window("window_strides", Dims{}), add);
  bad("c7", "window_strides = [0]", one, window("window_strides", Dims{0}), add);
  bad("c8", "base_dilations", one, window("base_dilations", Dims{1, 1}), add);
  bad("c9", "base_dilations = [-1]", one, window("base_dilations", Dims{-1}), add);
  bad("c10", "window_dilations", one, window("window_dilations", Dims{}), add);
  bad("c11", "window_dilations = [0]", one, window("window_dilations", Dims{0}), add);
  bad("c12", "it is i64[2]", one, window("padding", HostArray(DType::kI64, {2})), add);
  bad("c13", "it returns (i32[])", one, plain, iadd);
  bad("c15", "2^62", one,
      {{"window_dimensions", Dims{std::int64_t{1} << 60}},
       {"window_dilations", Dims{std::int64_t{1} << 60}}},
      add);
  bad("captures", "it is -1", one, window("num_captures", -1), add);

  GraphPtr pred = [] {
    Builder g("pred");
    ValueId x = g.param(Type::tensor(DType::kF32));
    return g.finish({g.one(kIsFinite, {x})});
  }();
  GraphPtr same = passing_body({f()}, {0});
  out.push_back({&kWhile, "c1", "region 0 must return (i1[])", {f()}, {}, {same, same}});
  out.push_back({&kWhile, "c2", "region 1 must return (f32[])", {f()}, {}, {pred, pred}});
  out.push_back({&kWhile, "captures", "it is 2", {f()}, {{"num_captures", 2}}, {pred, same}});
  GraphPtr none = passing_body({}, {}), whole = passing_body({i()}, {0});
  out.push_back({&kIf, "i1", "it is i1[2]", {b({2})}, {}, {none, none}});
  out.push_back({&kIf, "c1", "region 1 must take ()", {b()}, {}, {none, same}});
  out.push_back(
      {&kIf, "c2", "region 1 must return ()", {b(), f()}, {}, {passing_body({f()}, {}), same}});
  out.push_back(
      {&kIf, "captures", "1 operands follow", {b(), f()}, {{"num_captures", 0}}, {same, same}});
  out.push_back({&kCase, "i1", "it is i64[]", {t(DType::kI64)}, {}, {none}});
  out.push_back({&kCase, "c1", "there is none", {i()}, {}, {}});
  out.push_back({&kCase, "c2", "region 0 must take ()", {i()}, {}, {same}});
  out.push_back(
      {&kCase, "c3", "region 1 must return ()", {i(), f()}, {}, {passing_body({f()}, {}), same}});
  out.push_back({&kCase, "captures", "0 operands follow", {i()}, {{"num_captures", 1}}, {none}});
  out.push_back({&kAfterAll, "i1", "one is f32[]", {f()}});

  GraphPtr less = binary_body(kCompare, DType::kF32, {{"comparison_direction", EnumAttr("LT")}});
  out.push_back({&kSort, "i1", "token", {Type::token()}, {}, {less}});
  out.push_back({&kSort, "c1", "every operand is a capture", {f()}, {{"num_captures", 1}}, {less}});
  out.push_back({&kSort, "c3", "input 1", {f({2}), f({3})}, {}, {less}});
  out.push_back({&kSort, "c4", "[-1, 1)", {f({2})}, {{"dimension", 1}}, {less}});
  out.push_back({&kSort, "c5", "region 0 must return (i1[])", {f({2})}, {}, {add}});
  out.push_back({&kSort, "captures", "it is 2", {f({2})}, {{"num_captures", 2}}, {less}});
  out.push_back({&kTopK, "i1", "it is c64[2]", {c({2})}, {{"k", 1}}});
  out.push_back({&kTopK, "c1", "it is f32[]", {f()}, {{"k", 1}}});
  out.push_back({&kTopK, "c2", "it is 3", {f({2})}, {{"k", 3}}});
  return out;
}

std::vector<Case> transform_cases() {
  std::vector<Case> out;
  GraphPtr same = passing_body({f()}, {0}), whole = passing_body({i()}, {0});
  GraphPtr two = passing_body({f(), f()}, {0, 1});
  auto scan = [](int consts, int carry, int length) {
    return Attrs{{"num_consts", consts}, {"num_carry", carry}, {"length", length}};
  };
  Attrs unrolled = scan(0, 1, 2);
  unrolled.set("unroll", 0);
  out.push_back({&kScan, "c1", "num_carry = 2", {f()}, scan(0, 2, 1), {same}});
  out.push_back({&kScan, "c2", "it is -1", {f()}, scan(0, 1, -1), {same}});
  out.push_back({&kScan, "c3", "operand 0 is f32[3]", {f({3})}, scan(0, 0, 2), {same}});
  out.push_back({&kScan, "c4", "region 0 must take (i32[])", {i({2})}, scan(0, 0, 2), {same}});
  out.push_back({&kScan,
                 "c5",
                 "carries of the types it takes, (f32[])",
                 {f()},
                 scan(0, 1, 2),
                 {passing_body({f()}, {})}});
  out.push_back({&kScan, "c6", "it is 0", {f()}, unrolled, {same}});
  for (const OpDef* op : {&kCall, &kRemat})
    out.push_back({op, "c1", "region 0 must take (f32[])", {f()}, {}, {whole}});
  out.push_back({&kCustomJvp, "c1", "region 0", {f()}, {}, {whole, two}});
  out.push_back({&kCustomJvp, "c2", "it is 2", {f()}, {{"num_consts", 2}}, {same, two}});
  out.push_back({&kCustomJvp, "c3", "region 1 must take (f32[], f32[])", {f()}, {}, {same, same}});
  out.push_back({&kCustomVjp, "c1", "region 0", {f()}, {}, {whole, same, same}});
  out.push_back({&kCustomVjp, "c2", "it is -1", {f()}, {{"num_consts", -1}}, {same, same, same}});
  out.push_back(
      {&kCustomVjp, "c3", "and then residuals", {f()}, {}, {same, passing_body({f()}, {}), same}});
  out.push_back({&kCustomVjp, "c4", "region 2 must take (f32[])", {f()}, {}, {same, same, two}});
  out.push_back({&kCheckpointName, "i1", "token", {Type::token()}, {{"name", "x"}}});
  out.push_back({&kStopGradient, "i1", "token", {Type::token()}});
  const Attr number(HostArray::scalar<std::int64_t>(1)), real(HostArray::scalar(1.0f));
  for (const OpDef* op : {&kPureCallback, &kIoCallback}) {
    auto attrs = [&](Attr function, Attr type) {
      return Attrs{{"function", function}, {"result_types", Attr(AttrList{type})}};
    };
    out.push_back({op, "c1", "it holds 3", {}, attrs(number, Attr(3))});
    out.push_back({op, "c2", "an i64 scalar", {}, attrs(real, Attr(f()))});
    out.push_back({op, "i1", "token", {Type::token()}, attrs(number, Attr(f()))});
  }
  out.push_back({&kCheck, "c1", "it is f32[]", {f()}, {{"code", 1}}});
  out.push_back({&kCheck, "i1", "token", {Type::token()}, {{"code", 1}}});
  for (const OpDef* op : {&kCumsum, &kCumprod, &kCummax, &kCummin}) {
    out.push_back({op, "i1", "it is i1[2]", {b({2})}, {{"dimension", 0}}});
    out.push_back({op, "c1", "[0, 1)", {f({2})}, {{"dimension", 1}}});
  }
  auto arg = [](int d, DType index) { return Attrs{{"dimension", d}, {"index_dtype", index}}; };
  for (const OpDef* op : {&kArgmax, &kArgmin}) {
    out.push_back({op, "i1", "it is c64[2]", {c({2})}, arg(0, DType::kI32)});
    out.push_back({op, "c1", "[0, 1)", {f({2})}, arg(-1, DType::kI32)});
    out.push_back({op, "c2", "dimension 0 of f32[0]", {f({0})}, arg(0, DType::kI32)});
    out.push_back({op, "c3", "it is f32", {f({2})}, arg(0, DType::kF32)});
  }
  auto rng = [](std::string_view algorithm, DType dtype, Dims shape) {
    return Attrs{{"rng_algorithm", EnumAttr(algorithm)}, {"shape", shape}, {"result_dtype", dtype}};
  };
  Type state = t(DType::kU64, {2});
  out.push_back({&kRngBitGenerator,
                 "i2",
                 "it is ui64[2,1]",
                 {t(DType::kU64, {2, 1})},
                 rng("PHILOX", DType::kU32, {2})});
  out.push_back({&kRngBitGenerator,
                 "c2",
                 "2 words",
                 {t(DType::kU64, {3})},
                 rng("THREE_FRY", DType::kU32, {2})});
  out.push_back({&kRngBitGenerator,
                 "o1",
                 "result_dtype is f32",
                 {state},
                 rng("THREE_FRY", DType::kF32, {2})});
  out.push_back(
      {&kRngBitGenerator, "shape", "has -1", {state}, rng("THREE_FRY", DType::kU32, {-1})});
  return out;
}

Attrs with(Attrs a, std::string_view name, Attr value) {
  a.set(name, std::move(value));
  return a;
}

std::vector<Case> gather_cases() {
  // x f32[5,4], indices i32[3,2]; a good call that every case changes in one place.
  Attrs good{{"offset_dims", Dims{1}},
             {"collapsed_slice_dims", Dims{0}},
             {"start_index_map", Dims{0, 1}},
             {"index_vector_dim", 1},
             {"slice_sizes", Dims{1, 2}}};
  // x f32[3,4], indices i32[3,1]
  Attrs batched{{"offset_dims", Dims{1}},
                {"operand_batching_dims", Dims{0}},
                {"start_indices_batching_dims", Dims{0}},
                {"start_index_map", Dims{1}},
                {"index_vector_dim", 1},
                {"slice_sizes", Dims{1, 2}}};
  std::vector<Case> out;
  auto bad = [&](std::string label, std::string message, std::string_view name, Attr v) {
    out.push_back({&kGather, label, message, {f({5, 4}), i({3, 2})}, with(good, name, v)});
  };
  auto bad_batched = [&](std::string label, std::string message, std::string_view name, Attr v) {
    out.push_back({&kGather, label, message, {f({3, 4}), i({3, 1})}, with(batched, name, v)});
  };
  out.push_back({&kGather, "i1", "token", {Type::token(), i({3, 2})}, good});
  out.push_back({&kGather, "i2", "it is f32[3,2]", {f({5, 4}), f({3, 2})}, good});
  bad("c1", "0 offset, 1 collapsed", "offset_dims", Dims{});
  bad("c2", "[0, 2]", "index_vector_dim", 3);
  bad("c3", "start_index_map = [0]", "start_index_map", Dims{0});
  out.push_back({&kGather,
                 "c4",
                 "increasing order",
                 {f({5, 4}), i({3, 2})},
                 {{"offset_dims", Dims{2, 1}},
                  {"start_index_map", Dims{0, 1}},
                  {"index_vector_dim", 1},
                  {"slice_sizes", Dims{1, 2}}}});
  bad("c5", "[0, 2)", "offset_dims", Dims{2});
  out.push_back({&kGather,
                 "c6",
                 "twice",
                 {f({3, 4}), i({3, 1})},
                 with(with(batched, "collapsed_slice_dims", Dims{0}), "offset_dims", Dims{})});
  out.push_back({&kGather,
                 "c7",
                 "collapsed_slice_dims",
                 {f({5, 4}), i({3, 2})},
                 with(with(good, "offset_dims", Dims{}), "collapsed_slice_dims", Dims{1, 0})});
  bad("c8", "[0, 2)", "collapsed_slice_dims", Dims{2});
  bad("c9", "dimension 0 has 2", "slice_sizes", Dims{2, 2});
  out.push_back({&kGather,
                 "c10",
                 "operand_batching_dims",
                 {f({3, 4}), i({3, 4, 0})},
                 {{"operand_batching_dims", Dims{1, 0}},
                  {"start_indices_batching_dims", Dims{1, 0}},
                  {"index_vector_dim", 2},
                  {"slice_sizes", Dims{1, 1}}}});
  bad_batched("c11", "[0, 2)", "operand_batching_dims", Dims{2});
  bad_batched("c12", "batching dimensions must be at most 1", "slice_sizes", Dims{2, 2});
  out.push_back({&kGather,
                 "c13",
                 "twice",
                 {f({3, 4}), i({3, 1})},
                 with(batched, "start_indices_batching_dims", Dims{0, 0})});
  bad_batched("c14", "[0, 2)", "start_indices_batching_dims", Dims{2});
  bad_batched("c15", "start_indices_batching_dims = [1]", "start_indices_batching_dims", Dims{1});
  bad_batched("c16", "(1)", "start_indices_batching_dims", Dims{});
  out.push_back({&kGather,
                 "c17",
                 "operand f32[5,4] dimension 0, indices i32[3,1] dimension 0",
                 {f({5, 4}), i({3, 1})},
                 batched});
  bad_batched("c18", "twice", "start_index_map", Dims{0});
  bad("c19", "[0, 2)", "start_index_map", Dims{0, 2});
  bad("c20", "slice_sizes = [1]", "slice_sizes", Dims{1});
  bad("c21", "slice_sizes = [1,5] of f32[5,4]", "slice_sizes", Dims{1, 5});
  return out;
}

std::vector<Case> scatter_cases() {
  // x f32[5,4], indices i32[3,2], updates f32[3,2]
  Attrs good{{"update_window_dims", Dims{1}},
             {"inserted_window_dims", Dims{0}},
             {"scatter_dims_to_operand_dims", Dims{0, 1}},
             {"index_vector_dim", 1}};
  // x f32[3,4], indices i32[3,1], updates f32[3,2]
  Attrs batched{{"update_window_dims", Dims{1}},
                {"input_batching_dims", Dims{0}},
                {"scatter_indices_batching_dims", Dims{0}},
                {"scatter_dims_to_operand_dims", Dims{1}},
                {"index_vector_dim", 1}};
  GraphPtr add = binary_body(kAdd, DType::kF32);
  std::vector<Case> out;
  std::vector<Type> plain{f({5, 4}), i({3, 2}), f({3, 2})}, pair{f({3, 4}), i({3, 1}), f({3, 2})};
  auto types = [&](std::string label, std::string message, std::vector<Type> operands) {
    out.push_back({&kScatter, label, message, std::move(operands), good, {add}});
  };
  auto bad = [&](std::string label, std::string message, std::string_view name, Attr v) {
    out.push_back({&kScatter, label, message, plain, with(good, name, v), {add}});
  };
  auto bad_batched = [&](std::string label, std::string message, std::string_view name, Attr v) {
    out.push_back({&kScatter, label, message, pair, with(batched, name, v), {add}});
  };
  types("i1", "token", {Type::token(), i({3, 2}), f({3, 2})});
  types("i2", "it is f32[3,2]", {f({5, 4}), f({3, 2}), f({3, 2})});
  types("i3", "token", {f({5, 4}), i({3, 2}), Type::token()});
  types("c1", "input 1", {f({5, 4}), f({4, 5}), i({3, 2}), f({3, 2}), f({3, 2})});
  types("c3", "update 1", {f({5, 4}), f({5, 4}), i({3, 2}), f({3, 2}), f({3, 3})});
  types("c4", "updates f32[4,2]", {f({5, 4}), i({3, 2}), f({4, 2})});
  types("c4", "updates f32[3,5]", {f({5, 4}), i({3, 2}), f({3, 5})});
  types("c5", "4 operands", {f({5, 4}), i({3, 2}), f({3, 2}), f({3, 2})});
  types("c6", "its update i32[3,2]", {f({5, 4}), i({3, 2}), i({3, 2})});
  bad("c2", "0 window, 1 inserted", "update_window_dims", Dims{});
  out.push_back({&kScatter,
                 "c7",
                 "increasing",
                 {f({5, 4}), i({3, 2}), f({3, 2, 1})},
                 with(with(good, "update_window_dims", Dims{2, 1}), "inserted_window_dims", Dims{}),
                 {add}});
  bad("c8", "[0, 2)", "update_window_dims", Dims{2});
  out.push_back({&kScatter,
                 "c9",
                 "twice",
                 pair,
                 with(with(batched, "inserted_window_dims", Dims{0}), "update_window_dims", Dims{}),
                 {add}});
  out.push_back({&kScatter,
                 "c10",
                 "inserted_window_dims",
                 {f({5, 4}), i({3, 2}), f({3})},
                 with(with(good, "update_window_dims", Dims{}), "inserted_window_dims", Dims{1, 0}),
                 {add}});
  bad("c11", "[0, 2)", "inserted_window_dims", Dims{2});
  out.push_back({&kScatter,
                 "c12",
                 "input_batching_dims",
                 {f({3, 4}), i({3, 4, 0}), f({3, 4})},
                 {{"input_batching_dims", Dims{1, 0}},
                  {"scatter_indices_batching_dims", Dims{1, 0}},
                  {"index_vector_dim", 2}},
                 {add}});
  bad_batched("c13", "[0, 2)", "input_batching_dims", Dims{2});
  bad_batched("c14", "twice", "scatter_indices_batching_dims", Dims{0, 0});
  bad_batched("c15", "[0, 2)", "scatter_indices_batching_dims", Dims{2});
  bad_batched("c16", "= [1]", "scatter_indices_batching_dims", Dims{1});
  bad_batched("c17", "(1)", "scatter_indices_batching_dims", Dims{});
  out.push_back({&kScatter,
                 "c18",
                 "input f32[5,4] dimension 0, indices i32[3,1] dimension 0",
                 {f({5, 4}), i({3, 1}), f({3, 2})},
                 batched,
                 {add}});
  bad("c19", "it is [0]", "scatter_dims_to_operand_dims", Dims{0});
  bad_batched("c20", "twice", "scatter_dims_to_operand_dims", Dims{0});
  bad("c21", "[0, 2)", "scatter_dims_to_operand_dims", Dims{0, 2});
  bad("c22", "[0, 2]", "index_vector_dim", -1);
  out.push_back(
      {&kScatter, "c23", "it returns (i32[])", plain, good, {binary_body(kAdd, DType::kI32)}});
  bad("captures", "it is 4", "num_captures", 4);
  return out;
}

std::vector<Case> mapped_cases() {
  std::vector<Case> out;
  Attrs one{{"axis_name", "i"}, {"axis_size", 1}}, none{{"axis_name", "i"}, {"axis_size", 0}};
  auto at = [](int size, bool tiled, int dimension) {
    return Attrs{{"axis_name", "i"},           {"axis_size", size},
                 {"dimension", dimension},     {"split_dimension", dimension},
                 {"concat_dimension", 0},      {"tiled", tiled},
                 {"pairs", Dims{0, dimension}}};
  };
  for (const OpDef* op :
       {&kPsum, &kPmax, &kPmin, &kAllGatherAxis, &kPsumScatter, &kAllToAllAxis, &kPpermute}) {
    out.push_back({op, "i1", "operand 0 must be a tensor", {Type::token()}, at(1, false, 0)});
    out.push_back({op, "c1", "axis_size must be positive", {f({1})}, at(0, false, 0)});
  }
  out.push_back({&kAxisIndex, "c1", "axis_size must be positive", {}, none});
  for (const OpDef* op : {&kAllGatherAxis, &kPsumScatter, &kAllToAllAxis, &kPpermute})
    out.push_back({op, "c2", "in [0, ", {f({1})}, at(1, true, 3)});
  for (const OpDef* op : {&kPsumScatter, &kAllToAllAxis})
    out.push_back({op, "c3", "multiple of the axis size 2", {f({3})}, at(2, true, 0)});
  GraphPtr same = passing_body({f()}, {0}), whole = passing_body({i()}, {0});
  out.push_back({&kCustomVmap, "c1", "region 0 must take", {f()}, {{"rule", 0}}, {whole}});
  Attrs solve{{"num_consts", 0}}, many{{"num_consts", 2}};
  out.push_back({&kLinearSolve, "c1", "region 1 must take", {f()}, solve, {same, whole}});
  out.push_back({&kLinearSolve, "c2", "it is 2", {f()}, many, {same, same}});
  out.push_back({&kLinearSolve, "c3", "2 or 3 regions", {f()}, solve, {same}});
  return out;
}

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (auto make : {elementwise_cases, movement_cases, contraction_cases, region_cases,
                    transform_cases, gather_cases, scatter_cases, mapped_cases})
    for (Case& k : make()) all.push_back(std::move(k));
  return all;
}

TEST(ConstraintsTest, BrokenConstraintsAreNamedAndExplained) {
  for (const Case& k : all_cases()) {
    SCOPED_TRACE(full_label(k));
    testing::Violation v = violation_of(*k.op, k.operands, k.attrs, k.regions);
    EXPECT_EQ(v.label, full_label(k)) << v.message;
    EXPECT_NE(v.message.find(k.message), std::string::npos) << v.message;
    EXPECT_EQ(v.message.rfind(std::string(k.op->name), 0), 0u) << v.message;  // operation first
  }
}

TEST(ConstraintsTest, EveryStatedLabelIsTestedAndNoOther) {
  std::map<const OpDef*, std::set<std::string>> tested;
  for (const Case& k : all_cases()) tested[k.op].insert(full_label(k));
  for (Family family :
       {elementwise_unary_family(), elementary_family(), elementwise_binary_family(),
        convert_family(), movement_family(), gather_scatter_family(), contraction_family(),
        reduction_family(), control_family(), sort_family(), random_family(), transform_family(),
        cumulative_family()}) {
    for (const OpDef* op : family) {
      // These are broken in StableHLO text (labels_test.cc).
      if (op == &kSelectAndScatter || op == &kMap || op == &kRng) continue;
      std::set<std::string> stated;
      std::string word;
      for (char ch : std::string(op->labels) + " ") {
        if (ch != ' ') {
          word += ch;
        } else if (!word.empty()) {
          stated.insert(word);
          word.clear();
        }
      }
      EXPECT_EQ(stated, tested[op]) << op->name;
    }
  }
}

TEST(ConstraintsTest, QuantisedOperandsAreRefusedByOpsThatDoNotTakeThem) {
  TypeExtra extra;
  extra.quant = std::make_shared<const QuantParams>();
  Type q = Type::with_extra(f({2}), extra);
  EXPECT_EQ(violation_of(kConvert, {q}, {{"result_dtype", DType::kI8}}).label, "convert_i1");
  EXPECT_EQ(violation_of(kReal, {q}).label, "real_i1");
  EXPECT_EQ(violation_of(kAdd, {q, f({2})}).label, "add_c2");
}

// Dynamic sizes are checked at run time: they fit any size here.
TEST(ConstraintsTest, DynamicSizesFitAnything) {
  auto infer = [](const OpDef& op, std::vector<Type> operands, Attrs attrs = {}) {
    return infer_types({op, operands, attrs, {}, {}})[0];
  };
  EXPECT_EQ(infer(kAdd, {f({kDynamic, 3}), f({2, kDynamic})}), f({2, 3}));
  EXPECT_EQ(infer(kConcatenate, {f({kDynamic, 3}), f({2, 3})}, {{"dimension", 0}}),
            f({kDynamic, 3}));
  EXPECT_EQ(infer(kReshape, {f({kDynamic})}, {{"shape", Dims{kDynamic, 2}}}), f({kDynamic, 2}));
}

}  // namespace
}  // namespace xylem::ir::ops
