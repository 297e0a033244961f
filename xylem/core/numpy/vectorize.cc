#include "xylem/core/vectorize.h"

#include <fmt/format.h>

#include <map>

#include "xylem/base/error.h"
#include "xylem/core/numpy.h"
#include "xylem/core/numpy/ops.h"

namespace xylem::internal {
namespace {

// Names of the axes of every argument and result; a number stands for a fixed size.
struct Signature {
  std::vector<std::vector<std::string>> inputs, outputs;
};

[[noreturn]] void malformed(std::string_view text, SourceLoc where) {
  throw UserError(ErrorParts{"vectorize: signature", "a list like \"(n,m),(m)->(n)\"",
                             fmt::format("\"{}\"", text),
                             "Write one pair of brackets for each "
                             "argument and result, with names of axes in it"},
                  CallSite::outermost(where));
}

std::vector<std::vector<std::string>> parse_list(std::string_view list, std::string_view all,
                                                 SourceLoc where) {
  std::vector<std::vector<std::string>> out;
  while (!list.empty()) {
    const std::size_t close = list.find(')');
    if (list[0] != '(' || close == std::string_view::npos) malformed(all, where);
    std::string_view names = list.substr(1, close - 1);
    std::vector<std::string>& axes = out.emplace_back();
    while (!names.empty()) {
      const std::size_t comma = std::min(names.find(','), names.size());
      const std::string_view name = names.substr(0, comma);
      if (name.empty() || name.find_first_of("(->") != std::string_view::npos)
        malformed(all, where);
      axes.emplace_back(name);
      if (comma + 1 == names.size()) malformed(all, where);  // ends in a comma
      names.remove_prefix(std::min(comma + 1, names.size()));
    }
    list.remove_prefix(close + 1);
    if (list.empty()) break;
    if (list[0] != ',' || list.size() == 1) malformed(all, where);
    list.remove_prefix(1);
  }
  return out;
}

Signature parse(std::string_view text, SourceLoc where) {
  std::string s;
  for (char c : text)
    if (c != ' ') s += c;
  const std::size_t arrow = s.find("->");
  if (arrow == std::string::npos || s.find("->", arrow + 2) != std::string::npos)
    malformed(text, where);
  return {parse_list(std::string_view(s).substr(0, arrow), text, where),
          parse_list(std::string_view(s).substr(arrow + 2), text, where)};
}

bool is_number(const std::string& name) {
  return name.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

VectorizePlan plan_vectorize(std::string_view signature, std::span<const Array> args,
                             SourceLoc where) {
  Signature s;
  if (signature.empty())
    s.inputs.resize(args.size());
  else
    s = parse(signature, where);
  if (s.inputs.size() != args.size())
    throw UserError(ErrorParts{"vectorize",
                               fmt::format("{} arguments, as the signature {} says",
                                           s.inputs.size(), signature),
                               fmt::format("{}", args.size()), "Make both agree"},
                    CallSite::outermost(where));
  std::map<std::string, std::int64_t> sizes;
  std::vector<Dims> loops;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::vector<std::string>& core = s.inputs[i];
    const Dims& shape = args[i].shape();
    if (shape.size() < core.size())
      throw UserError(ErrorParts{fmt::format("vectorize: argument {}", i),
                                 fmt::format("at least {} axes, as the signature {} says",
                                             core.size(), signature),
                                 args[i].type_string(), "Add axes, or change the signature"},
                      CallSite::outermost(where));
    Dims loop = shape;
    loop.resize(shape.size() - core.size());
    for (std::size_t k = 0; k < core.size(); ++k) {
      const std::int64_t n = shape[loop.size() + k];
      auto [it, added] = sizes.try_emplace(core[k], is_number(core[k]) ? std::stoll(core[k]) : n);
      if (it->second != n)
        throw UserError(ErrorParts{fmt::format("vectorize: argument {}, axis {}", i, core[k]),
                                   fmt::format("size {}", it->second), args[i].type_string(),
                                   "Axes of one name have one size"},
                        CallSite::outermost(where));
    }
    loops.push_back(loop);
  }
  VectorizePlan plan;
  plan.loop = args.empty() ? Dims{} : broadcast_shapes(loops, "vectorize", where);
  for (std::int64_t n : plan.loop) plan.size *= n;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const Dims& shape = args[i].shape();
    if (loops[i].empty()) {
      plan.args.push_back(args[i]);
      plan.axes.push_back(no_axis);
      continue;
    }
    Dims wide = plan.loop, flat{plan.size};
    for (std::size_t k = loops[i].size(); k < shape.size(); ++k) {
      wide.push_back(shape[k]);
      flat.push_back(shape[k]);
    }
    plan.args.push_back(reshape(broadcast(args[i], wide, where), flat));
    plan.axes.push_back(0);
    plan.mapped = true;
  }
  return plan;
}

Array finish_vectorize(const VectorizePlan& plan, std::string_view signature, const Array& result,
                       std::size_t k, std::size_t count, SourceLoc where) {
  if (!signature.empty()) {
    const Signature s = parse(signature, where);
    const std::size_t loops = plan.mapped ? 1 : 0;
    if (s.outputs.size() != count)
      throw UserError(
          ErrorParts{"vectorize: the function's results",
                     fmt::format("{}, as the signature {} says", s.outputs.size(), signature),
                     fmt::format("{}", count), "Make both agree"},
          CallSite::outermost(where));
    if (result.shape().size() - loops != s.outputs[k].size())
      throw UserError(
          ErrorParts{
              fmt::format("vectorize: result {} of the function", k),
              fmt::format("{} axes, as the signature {} says", s.outputs[k].size(), signature),
              fmt::format("{} axes", result.shape().size() - loops), "Make both agree"},
          CallSite::outermost(where));
  }
  if (!plan.mapped) return result;
  Dims shape = plan.loop;
  for (std::size_t i = 1; i < result.shape().size(); ++i) shape.push_back(result.shape()[i]);
  return reshape(result, shape);
}

}  // namespace xylem::internal
