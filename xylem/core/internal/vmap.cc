#include <fmt/format.h>

#include "xylem/base/error.h"
#include "xylem/core/internal/axis_env.h"
#include "xylem/core/internal/flat.h"
#include "xylem/core/transform/transform.h"

namespace xylem::internal {

std::vector<Array> vmap(std::span<const Array> args, std::span<const int> in_axes,
                        std::int64_t axis_size, const std::string& axis_name, FlatFunction f,
                        FunctionRef<std::vector<int>(std::size_t)> out_axes, SourceLoc where) {
  CallSite site(where);
  std::vector<AbstractValue> types;
  std::vector<int> dims;
  std::size_t first = args.size();
  for (std::size_t i = 0; i < args.size(); ++i) {
    types.push_back(args[i].defined() ? abstract(args[i]) : AbstractValue{});
    int axis = args[i].defined() ? in_axes[i] : kUnmapped;
    if (axis != kUnmapped) {
      int rank = types[i].type.rank();
      if (axis < -rank || axis >= rank)
        throw UserError(ErrorParts{fmt::format("vmap: argument leaf {}", i),
                                   fmt::format("in_axes {} needs an array of that rank", axis),
                                   fmt::format("it is {}", args[i].type_string()),
                                   "Give an axis of the array, or no_axis"},
                        where);
      if (axis < 0) axis += rank;
      Dims d = types[i].type.dims();
      if (axis_size >= 0 && d[axis] != axis_size)
        throw UserError(
            ErrorParts{
                fmt::format("vmap: argument leaf {}", i),
                fmt::format("the mapped axis must have size {}{}", axis_size,
                            first < i ? fmt::format(", as in leaf {}", first) : ""),
                fmt::format("axis {} of {} has size {}", axis, args[i].type_string(), d[axis]),
                "Make the mapped axes equally long, or choose others by in_axes"},
            where);
      axis_size = d[axis];
      if (first == args.size()) first = i;
      d.erase(static_cast<std::size_t>(axis));
      types[i].type = types[i].type.with_dims(d);
    }
    dims.push_back(axis);
  }
  if (axis_size < 0)
    throw UserError(
        ErrorParts{"vmap", "at least one argument must be mapped, or axis_size given",
                   "every in_axes is none", "Map an argument, or pass {.axis_size = n}"},
        where);
  AxisScope axis_scope(axis_name, axis_size);
  FlatTrace t = trace_flat(TraceKind::kMapped, "vmap", args, types, f, RefWrites::kAllow);
  std::vector<int> in;
  for (std::size_t i = 0; i < args.size(); ++i)
    if (t.arg_defined[i]) in.push_back(dims[i] == kUnmapped ? transform::kNotMapped : dims[i]);
  in.resize(t.graph->params.size(), transform::kNotMapped);
  std::vector<int> wanted = out_axes(t.num_results()), out;
  std::size_t next = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!t.result_defined[i]) continue;
    int rank = t.outputs[next++].type.rank() + 1;
    int axis = wanted[i];
    if (axis == kUnmapped) {
      out.push_back(transform::kNotMapped);
      continue;
    }
    if (axis < -rank || axis >= rank)
      throw UserError(ErrorParts{fmt::format("vmap: result leaf {}", i),
                                 fmt::format("out_axes must be in [-{}, {})", rank, rank),
                                 fmt::format("it is {}", axis), "Give an axis of the result"},
                      where);
    out.push_back(axis < 0 ? axis + rank : axis);
  }
  const std::size_t writes = num_writes(t.refs);
  if (writes > 0) {
    std::vector<int> dims_out = transform::batch(*t.graph, in, axis_size, axis_name).out_dims;
    for (std::size_t i = t.outputs.size(); i < dims_out.size(); ++i)
      if (dims_out[i] != transform::kNotMapped)
        throw UserError(
            ErrorParts{"vmap: write to a ref from outside",
                       "a value that does not depend on the mapped axis",
                       "every position would write another value",
                       "Make the ref inside of the mapped function, or return the values"},
            where);
    out.resize(out.size() + writes, transform::kNotMapped);
  }
  ir::GraphPtr g = transform::batch_to(*t.graph, in, axis_size, out, axis_name);
  std::vector<Array> r = apply_graph(*g, t.call_args(args));
  write_back(t.refs, t.outputs.size(), r, where);
  return t.expand(std::move(r));
}

}  // namespace xylem::internal
