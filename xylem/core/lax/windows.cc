#include "xylem/core/windows.h"

#include <fmt/format.h>

#include <memory>

#include "xylem/base/error.h"
#include "xylem/core/internal/flat.h"
#include "xylem/core/numpy.h"
#include "xylem/core/numpy/ops.h"
#include "xylem/ir/ops/all.h"

namespace xylem::internal {

using ir::Attr;
using ir::Attrs;
namespace ops = ir::ops;

namespace {

[[noreturn]] void fail(const char* what, std::string expected, std::string given,
                       const char* advice, SourceLoc where) {
  throw UserError(ErrorParts{what, expected, given, advice}, CallSite::outermost(where));
}

// Operands, initial values and captures of an op whose region is f on scalars.
struct Region {
  std::vector<Array> operands;
  std::vector<bool> weak;
  ir::GraphPtr graph;
  std::int64_t num_captures = 0;
};

Region region_of(const char* what, std::span<const Array> xs, std::span<const Array> init,
                 Computation f, SourceLoc where) {
  if (xs.empty() || xs.size() != init.size())
    fail(what, "an initial value for each of at least one operand",
         fmt::format("{} operands and {} initial values", xs.size(), init.size()),
         "Give as many of both", where);
  std::size_t n = xs.size();
  std::vector<AbstractValue> types;
  Region r;
  for (const Array& x : xs) {
    if (x.shape() != xs[0].shape())
      fail(what, "operands of one shape", xs[0].type_string() + " and " + x.type_string(),
           "Broadcast them first", where);
    types.push_back({ir::Type::tensor(x.dtype()), false});
    r.operands.push_back(x);
    r.weak.push_back(x.weak_type());
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (init[i].ndim() != 0)
      fail(what, "initial values are scalars", init[i].type_string(), "Use a scalar", where);
    r.operands.push_back(init[i].astype(xs[i].dtype(), where));
    types.push_back(types[i]);
  }
  auto flat = [&](std::span<const Array> in) {
    std::vector<Array> y = f(in.first(n), in.subspan(n));
    if (y.size() != n)
      fail(what, fmt::format("a function that returns {} accumulators", n),
           fmt::format("{} results", y.size()), "Return one for each operand", where);
    for (std::size_t i = 0; i < n; ++i) {
      if (y[i].ndim() != 0)
        fail(what, "a function that returns scalars", y[i].type_string(),
             "Combine two scalars into one", where);
      y[i] = y[i].astype(xs[i].dtype(), where);
    }
    return y;
  };
  FlatTrace t = trace_flat(TraceKind::kBody, what, r.operands, types, flat);
  r.graph = t.graph;
  r.num_captures = static_cast<std::int64_t>(t.captures.size());
  r.operands.insert(r.operands.end(), t.captures.begin(), t.captures.end());
  return r;
}

}  // namespace

std::vector<Array> reduce_by(std::span<const Array> xs, std::span<const Array> init, Computation f,
                             const std::vector<int>& axes, SourceLoc where) {
  CallSite site(where);
  Region r = region_of("reduce", xs, init, f, where);
  Dims dims = AxisArg(axes).resolve(xs[0].ndim(), "reduce", where);
  Attrs a{{"dimensions", Attr(dims)}, {"num_captures", Attr(r.num_captures)}};
  std::unique_ptr<bool[]> weak(new bool[r.weak.size()]);
  std::copy(r.weak.begin(), r.weak.end(), weak.get());
  return apply(ops::kReduce, r.operands, std::move(a), {r.graph}, where,
               std::span<const bool>(weak.get(), r.weak.size()));
}

std::vector<Array> reduce_window_by(std::span<const Array> xs, std::span<const Array> init,
                                    Computation f, const Window& w, const lax::Padding& padding,
                                    SourceLoc where) {
  constexpr const char* kWhat = "reduce_window";
  CallSite site(where);
  Region r = region_of(kWhat, xs, init, f, where);
  const Dims& shape = xs[0].shape();
  Dims base = w.base_dilation.empty() ? Dims(shape.size(), 1) : w.base_dilation;
  Dims dilation = w.window_dilation.empty() ? Dims(shape.size(), 1) : w.window_dilation;
  for (const Dims& d : {w.dimensions, w.strides, base, dilation}) {
    bool fine = d.size() == shape.size();
    for (std::int64_t v : d) fine = fine && v > 0;
    if (!fine)
      fail(kWhat, fmt::format("sizes, strides and dilations of {} positive numbers", shape.size()),
           to_string(d), "Use 1 for dimensions without a window", where);
  }
  Dims sizes = shape, window = w.dimensions;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    sizes[d] = sizes[d] == 0 ? 0 : (sizes[d] - 1) * base[d] + 1;
    window[d] = (window[d] - 1) * dilation[d] + 1;
  }
  std::vector<std::int64_t> pads;
  for (auto [low, high] : padding.resolve(sizes, window, w.strides, kWhat, where)) {
    pads.push_back(low);
    pads.push_back(high);
  }
  Attrs a{{"window_dimensions", Attr(w.dimensions)},
          {"window_strides", Attr(w.strides)},
          {"base_dilations", Attr(base)},
          {"window_dilations", Attr(dilation)},
          {"padding", Attr(HostArray::from(pads, {shape.ssize(), 2}))},
          {"num_captures", Attr(r.num_captures)}};
  std::unique_ptr<bool[]> weak(new bool[r.weak.size()]);
  std::copy(r.weak.begin(), r.weak.end(), weak.get());
  return apply(ops::kReduceWindow, r.operands, std::move(a), {r.graph}, where,
               std::span<const bool>(weak.get(), r.weak.size()));
}

}  // namespace xylem::internal
