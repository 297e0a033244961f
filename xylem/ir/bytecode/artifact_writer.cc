#include "xylem/ir/bytecode/artifact_writer.h"

#include <fmt/format.h>

#include "xylem/base/error.h"
#include "xylem/ir/builder.h"
#include "xylem/ir/bytecode/byte_cursor.h"
#include "xylem/ir/ops/transform.h"

namespace xylem::ir {
namespace bytecode {
namespace {

constexpr int kMaxErrors = 100;

// MLIR's bytecode format that belongs to a version of StableHLO.
int format_of(Version v) {
  if (v < Version{0, 10, 0}) return 0;
  if (v < Version{0, 12, 0}) return 1;
  if (v < Version{0, 14, 0}) return 3;
  if (v < Version{0, 15, 0}) return 4;
  return 6;
}

// Features come with minor versions.
Version minor(Version v) { return {v.major, v.minor, 0}; }

}  // namespace

ArtifactWriter::ArtifactWriter(Version target, ArtifactOptions options, bool measure)
    : target_(minor(target)),
      options_(options),
      measure_(measure),
      format_(format_of(target_)),
      pools_(format_) {}

void ArtifactWriter::require(Version v, std::string what, const Location& given) {
  const Location& loc = given.source.known() || !here_ ? given : here_->loc;
  std::string op(here_ ? here_->def->name : std::string_view(place_));
  std::string reason = fmt::format("{} exists from {}", what, v.to_string());
  if (measure_) {
    if (v > need_.version)
      need_ = {v, what == op || op.empty() ? reason : fmt::format("{}: {}", op, reason), loc};
    return;
  }
  if (v <= target_) return;
  refuse(loc, op, what == op ? fmt::format("it exists from {}", v.to_string()) : reason,
         fmt::format("the target is {}", target_.to_string()),
         fmt::format("Write version {} or later", v.to_string()));
}

void ArtifactWriter::refuse(const Location& given, std::string_view operation,
                            std::string_view expected, std::string_view given_text,
                            std::string_view advice) {
  const Location& loc = given.source.known() || !here_ ? given : here_->loc;
  std::string line;
  if (loc.source.known())
    line = fmt::format("{}:{}:{}: error: ", loc.source.file, loc.source.line,
                       std::max(1, loc.source.column));
  line += UserError(ErrorParts{operation, expected, given_text, advice}).message();
  if (!loc.source.known() && !place_.empty() && operation != place_)
    line += fmt::format(" [in {}]", place_);
  if (errors_.find(line) != std::string::npos) return;
  if (!errors_.empty()) errors_ += '\n';
  errors_ += line;
  if (++num_errors_ == kMaxErrors) throw UserError(errors_ + "\nfurther errors are not shown");
}

GraphPtr ArtifactWriter::spell_out(const GraphPtr& g) {
  auto [known, added] = spelled_.try_emplace(g.get(), std::make_pair(g, g));
  if (!added) return known->second.second;
  auto expands = [&](const Op& op) {
    if (!op.def->name.starts_with("chlo.") || !op.def->expand) return false;
    bool kept = is_composite_chlo(op.def->name) && op.regions.empty() &&
                op.def->name != "chlo.ragged_dot" && find_op("stablehlo.composite");
    return measure_ || !kept || target_ < Version{0, 19, 0};
  };
  bool changed = false;
  std::vector<std::vector<GraphPtr>> regions(g->ops.size());
  for (std::size_t i = 0; i < g->ops.size(); ++i) {
    const Op& op = g->ops[i];
    changed = changed || expands(op);
    for (const GraphPtr& r : op.regions) {
      regions[i].push_back(spell_out(r));
      changed = changed || regions[i].back() != r;
    }
  }
  if (!changed) return g;
  Builder b(g->name);
  std::vector<ValueId> map(g->values.size(), kNoValue);
  for (std::size_t i = 0; i < g->params.size(); ++i)
    map[static_cast<std::size_t>(g->params[i])] =
        b.param(g->type(g->params[i]), i < g->param_attrs.size() ? g->param_attrs[i] : Attrs());
  std::vector<ValueId> operands;
  for (std::size_t i = 0; i < g->ops.size(); ++i) {
    const Op& op = g->ops[i];
    operands.clear();
    for (ValueId v : op.operands) operands.push_back(map[static_cast<std::size_t>(v)]);
    b.set_location(op.loc);
    std::vector<ValueId> results = expands(op)
                                       ? op.def->expand(b, op, operands)
                                       : b.op(*op.def, operands, op.attrs, regions[i]).to_vector();
    for (std::size_t k = 0; k < op.results.size(); ++k)
      map[static_cast<std::size_t>(op.results[k])] = results[k];
  }
  std::vector<ValueId> out;
  for (ValueId v : g->results) out.push_back(map[static_cast<std::size_t>(v)]);
  auto done = std::make_shared<Graph>(*b.finish(out));
  done->attrs = g->attrs;
  done->param_attrs = g->param_attrs;
  done->result_attrs = g->result_attrs;
  done->locations = g->locations;
  // A decomposition may bring in ops that are spelled out in turn.
  GraphPtr result = spell_out(done);
  spelled_[g.get()].second = result;
  return result;
}

std::string ArtifactWriter::write(const Module& module, std::string_view producer) {
  // A block of one op without arguments.
  std::string ir;
  append_varint(ir, 2);
  ir += module_bytes(module);
  if (num_errors_) throw UserError(errors_);
  if (measure_) return {};
  return pools_.assemble(producer, ir);
}

}  // namespace bytecode

std::string write_artifact(const Module& module, Version target, ArtifactOptions options) {
  if (target < kMinimumVersion || Version{target.major, target.minor, 0} > kCurrentVersion)
    throw UserError(
        ErrorParts{"write_artifact",
                   fmt::format("a target version from {} to {}", kMinimumVersion.to_string(),
                               kCurrentVersion.to_string()),
                   target.to_string(), "Choose one of them"});
  bytecode::ArtifactWriter writer(target, options, false);
  return writer.write(module, "StableHLO_v" + target.to_string());
}

VersionNeed minimum_version(const Module& module) {
  bytecode::ArtifactWriter writer(kCurrentVersion, {}, true);
  writer.write(module, "");
  return writer.need();
}

}  // namespace xylem::ir
