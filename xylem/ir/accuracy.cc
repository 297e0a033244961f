#include "xylem/ir/accuracy.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <string>

#include "xylem/base/error.h"
#include "xylem/ir/op_def.h"

namespace xylem::ir {
namespace {

// The number behind "name = " in the attribute's text; 0 if it is not there.
double field(const std::string& text, std::string_view name) {
  std::size_t at = text.find(fmt::format("{} = ", name));
  return at == std::string::npos ? 0 : std::strtod(text.c_str() + at + name.size() + 3, nullptr);
}

}  // namespace

void check_accuracy(const Op& op, DType result) {
  const Attr* a = op.attrs.find("result_accuracy");
  if (!a || !op.def->is(kTranscendental)) return;
  const OpaqueAttr* opaque = a->get<OpaqueAttr>();
  const std::string text = opaque ? opaque->text : a->to_string();
  if (text.find("TOLERANCE") == std::string::npos) return;
  const DType part = is_complex(result) ? real_dtype(result) : result;
  const double ulps = field(text, "ulps"), relative = field(text, "rtol");
  // A relative error of 2^-m is at least one unit in the last of m places.
  const double allowed = ulps + relative * std::ldexp(1.0, dtype_info(part).mantissa_bits);
  if (allowed >= op.def->max_ulp) return;
  throw_user_error(
      {op.def->name, fmt::format("results are within {} ulp", op.def->max_ulp),
       fmt::format("the program asks for {:.3g} ulp ({} ulps, rtol {})", allowed, ulps, relative),
       "Widen the tolerance, or use mode HIGHEST"},
      op.loc.source);
}

void check_accuracy(const Graph& graph) {
  for (const Op& op : graph.ops) {
    if (!op.results.empty()) check_accuracy(op, graph.type(op.results[0]).dtype());
    for (const GraphPtr& region : op.regions)
      if (region) check_accuracy(*region);
  }
}

}  // namespace xylem::ir
