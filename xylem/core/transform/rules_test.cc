// Every op × transformation: forward mode against finite differences in f64, reverse mode against
// forward mode by the dot-product identity, both of them again on the derivative, and batching of
// value and gradient against a loop, over every axis. The rows are programs of one op each.

#include "xylem/core/transform/rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <random>
#include <string_view>

#include "xylem/base/error.h"
#include "xylem/core/testing/rule_checks.h"
#include "xylem/core/testing/rule_rows.h"
#include "xylem/core/transform/passes.h"
#include "xylem/ir/ops/all.h"

namespace xylem::transform {
namespace {

using ir::GraphPtr;
using testing::Arrays;
using testing::check_batch;
using testing::check_forward;
using testing::check_reverse;
using testing::random_args;
using testing::Row;
namespace ops = ir::ops;

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
  int max_rank = 0;
  for (ir::ValueId v : g.params) max_rank = std::max(max_rank, g.type(v).rank());
  for (const Mask& m : masks(x.size()))
    for (int at = 0; at <= max_rank; ++at) {
      std::vector<int> dims;
      for (std::size_t i = 0; i < m.size(); ++i)
        dims.push_back(!m[i] ? kNotMapped : std::min(at, g.type(g.params[i]).rank()));
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

INSTANTIATE_TEST_SUITE_P(Ops, Rules, ::testing::ValuesIn(testing::rule_rows()),
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

// Ops with a derivative that no row has, and where else their rules are held against JAX.
const char* tested_elsewhere(const ir::OpDef& def) {
  if (def.name.starts_with("sdy.")) return "the identity on one device";
  if (def.name.starts_with("chlo.broadcast_"))
    return "of integers, predicates, complex results; by their expansion";
  static const std::pair<std::string_view, const char*> kOthers[] = {
      {"stablehlo.reduce_precision", "steps, which no difference quotient sees"},
      {"xylem.custom_jvp", "transforms_test"},
      {"xylem.custom_vjp", "transforms_test"},
      {"xylem.custom_vmap", "programs_test"},
      {"xylem.linear_solve", "programs_test"},
      {"xylem.psum", "programs_test"},
      {"xylem.all_gather", "programs_test"},
      {"xylem.psum_scatter", "programs_test"},
      {"xylem.all_to_all", "programs_test"},
      {"xylem.ppermute", "programs_test"},
      {"xylem.lu", "numpy/decompositions"},
      {"xylem.qr", "numpy/decompositions"},
      {"xylem.eigh", "numpy/decompositions"},
      {"xylem.svd", "numpy/decompositions"},
      {"xylem.eig", "numpy/decompositions"},
      {"xylem.tridiagonal_solve", "numpy/decompositions"},
      {"xylem.pure_callback", "callback tests"},
      {"xylem.io_callback", "callback tests"},
  };
  for (const auto& [op, where] : kOthers)
    if (op == def.name) return where;
  // Ops of imported programs whose expansion, made of ops with rows, is differentiated.
  return def.expand && !def.is(ir::kPointwise) ? "its expansion" : nullptr;
}

TEST(RuleTable, EveryDifferentiableOpHasARow) {
  std::vector<const ir::OpDef*> have = testing::covered_ops(testing::rule_rows());
  for (const ir::OpDef* def : ir::op_table()) {
    if (def->is(ir::kKernelOnly) || !rules_of(*def).jvp) continue;
    bool row = std::find(have.begin(), have.end(), def) != have.end();
    EXPECT_TRUE(row || tested_elsewhere(*def)) << def->name << " has no row";
  }
}

}  // namespace
}  // namespace xylem::transform
