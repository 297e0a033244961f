#include "xylem/ir/ops/lapack.h"

#include <fmt/format.h>

#include <string>

#include "xylem/base/error.h"
#include "xylem/ir/ops/all.h"
#include "xylem/ir/ops/custom.h"
#include "xylem/ir/ops/linalg.h"

namespace xylem::ir::ops {
namespace {

// "trsm" of "lapack_strsm_ffi"; empty for other targets.
std::string_view routine_of(std::string_view target) {
  if (!target.starts_with("lapack_") || !target.ends_with("_ffi") || target.size() < 13) return {};
  target = target.substr(7, target.size() - 11);
  return std::string_view("sdcz").find(target[0]) == std::string_view::npos ? "" : target.substr(1);
}

std::string_view routine_of(const Op& op) {
  if (op.def != &kCustomCall) return {};
  const Attr* target = op.attrs.find("call_target_name");
  const std::string* name = target ? target->get<std::string>() : nullptr;
  return name ? routine_of(*name) : std::string_view();
}

// A character that LAPACK takes, of the dictionary that JAX writes.
char option(const Op& op, std::string_view name) {
  const Attr* config = op.attrs.find("mhlo.backend_config");
  if (!config) config = op.attrs.find("backend_config");
  const Attrs* dict = config ? config->dict() : nullptr;
  const Attr* value = dict ? dict->find(name) : nullptr;
  if (value)
    if (const auto* scalar = value->get<ScalarAttr>()) return static_cast<char>(scalar->integer);
  throw UserError(ErrorParts{op.attrs.str("call_target_name"),
                             fmt::format("mhlo.backend_config holds '{}', a character", name),
                             "it does not", "Export the program again with JAX"},
                  op.loc.source);
}

std::vector<ValueId> expand_trsm(Builder& b, const Op& op, std::span<const ValueId> in) {
  const char trans = option(op, "trans_x");
  return {b.one(kTriangularSolve, {in[0], in[1]},
                {{"left_side", option(op, "side") == 'L'},
                 {"lower", option(op, "uplo") == 'L'},
                 {"unit_diagonal", option(op, "diag") == 'U'},
                 {"transpose_a", EnumAttr(trans == 'N'   ? "NO_TRANSPOSE"
                                          : trans == 'T' ? "TRANSPOSE"
                                                         : "ADJOINT")}})};
}

std::vector<ValueId> expand_potrf(Builder& b, const Op& op, std::span<const ValueId> in) {
  const ValueId factor = b.one(kCholesky, {in[0]}, {{"lower", option(op, "uplo") == 'L'}});
  // The first diagonal element is NaN where the factorisation failed.
  const Type t = b.type(factor);
  Dims start(t.dims().size(), 0), limit = t.dims(), batch = t.dims();
  const std::size_t rank = start.size();
  batch.resize(rank - 2);
  if (t.dim(t.rank() - 1) == 0) return {factor, b.splat(DType::kI32, batch, 0)};
  limit[rank - 1] = limit[rank - 2] = 1;
  const ValueId corner = b.one(
      kReshape,
      {b.one(kSlice, {factor},
             {{"start_indices", start}, {"limit_indices", limit}, {"strides", Dims(rank, 1)}})},
      {{"shape", batch}});
  const ValueId failed =
      b.one(kCompare, {corner, corner}, {{"comparison_direction", EnumAttr("NE")}});
  return {factor, b.one(kConvert, {failed}, {{"result_dtype", DType::kI32}})};
}

}  // namespace

bool is_lapack_call(const Op& op) {
  const std::string_view routine = routine_of(op);
  return (routine == "trsm" && op.operands.size() == 2 && op.results.size() == 1) ||
         (routine == "potrf" && op.operands.size() == 1 && op.results.size() == 2);
}

std::vector<ValueId> expand_lapack_call(Builder& b, const Op& op,
                                        std::span<const ValueId> operands) {
  return routine_of(op) == "trsm" ? expand_trsm(b, op, operands) : expand_potrf(b, op, operands);
}

std::vector<HostArray> evaluate_lapack_call(const EvalCall& call) {
  Builder b("lapack");
  std::vector<ValueId> params;
  for (const HostArray& a : call.operands)
    params.push_back(b.param(Type::tensor(a.dtype(), a.dims())));
  const GraphPtr graph = b.finish(expand_lapack_call(b, call.op, params));
  return call.regions.run(*graph, call.operands);
}

bool is_lapack_target(std::string_view target) {
  const std::string_view routine = routine_of(target);
  return routine == "trsm" || routine == "potrf";
}

}  // namespace xylem::ir::ops
