#include "xylem/core/transform/rules.h"

namespace xylem::transform {
namespace {

const RuleTable& filled() {
  static const RuleTable* table = [] {
    auto* t = new RuleTable;
    register_elementwise_rules(*t);
    register_movement_rules(*t);
    register_indexing_rules(*t);
    register_contraction_rules(*t);
    register_convolution_rules(*t);
    register_reduction_rules(*t);
    register_window_rules(*t);
    register_sort_rules(*t);
    register_scan_rules(*t);
    register_branch_rules(*t);
    register_call_rules(*t);
    register_named_axis_rules(*t);
    register_custom_rules(*t);
    register_linalg_rules(*t);
    return t;
  }();
  return *table;
}

}  // namespace

RuleTable::RuleTable() : rules_(ir::op_table().size()) {}

const OpRules& rules_of(const ir::OpDef& def) { return const_cast<RuleTable&>(filled())[def]; }

}  // namespace xylem::transform
