#include "xylem/ir/ops/lapack.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>

#include "xylem/base/error.h"
#include "xylem/ir/ops/all.h"
#include "xylem/ir/ops/custom.h"
#include "xylem/ir/ops/decompositions.h"
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

// Targets of JAX's programs for TPUs, which are single ops.
struct TpuTarget {
  std::string_view name;
  std::size_t operands, results;
  const OpDef* op;
};
constexpr TpuTarget kTpuTargets[] = {
    {"LuDecomposition", 1, 3, &kLu},
    {"Qr", 1, 2, &kGeqrf},
    {"ProductOfElementaryHouseholderReflectors", 2, 1, &kHouseholderProduct},
    {"Eigh", 1, 2, &kEigh},
};

const TpuTarget* tpu_target(const Op& op) {
  if (op.def != &kCustomCall) return nullptr;
  const std::string target = op.attrs.str_or("call_target_name", "");
  for (const TpuTarget& t : kTpuTargets)
    if (t.name == target && op.operands.size() == t.operands && op.results.size() == t.results)
      return &t;
  return nullptr;
}

std::vector<ValueId> expand_tpu(Builder& b, const Op& op, std::span<const ValueId> in,
                                const TpuTarget& target) {
  Attrs attrs;
  // "lower,sort,max_iter,tol": the order of the eigenvalues is free where they are not sorted.
  if (target.op == &kEigh)
    attrs.set("lower", Attr(!op.attrs.str_or("backend_config", "1").starts_with("0")));
  return b.op(*target.op, in, std::move(attrs)).to_vector();
}

std::vector<ValueId> expand(Builder& b, const Op& op, std::span<const ValueId> in) {
  if (const TpuTarget* target = tpu_target(op)) return expand_tpu(b, op, in, *target);
  return routine_of(op) == "trsm" ? expand_trsm(b, op, in) : expand_potrf(b, op, in);
}

}  // namespace

bool is_lapack_call(const Op& op) {
  if (tpu_target(op)) return true;
  const std::string_view routine = routine_of(op);
  return (routine == "trsm" && op.operands.size() == 2 && op.results.size() == 1) ||
         (routine == "potrf" && op.operands.size() == 1 && op.results.size() == 2);
}

std::vector<ValueId> expand_lapack_call(Builder& b, const Op& op,
                                        std::span<const ValueId> operands) {
  std::vector<ValueId> out = expand(b, op, operands);
  const AttrList* written = op.attrs.at("result_types").list();
  for (std::size_t i = 0; written && i < written->size() && i < out.size(); ++i) {
    const Type* t = (*written)[i].get<Type>();
    if (t && !types_compatible(*t, b.type(out[i])))
      throw UserError(
          ErrorParts{fmt::format("custom_call @{}: result {}", op.attrs.str("call_target_name"), i),
                     b.type(out[i]).to_string(), t->to_string(),
                     "Export the program again with JAX"},
          op.loc.source);
  }
  return out;
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
  return routine == "trsm" || routine == "potrf" ||
         std::any_of(std::begin(kTpuTargets), std::end(kTpuTargets),
                     [&](const TpuTarget& t) { return t.name == target; });
}

}  // namespace xylem::ir::ops
