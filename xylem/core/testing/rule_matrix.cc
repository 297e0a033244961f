#include "xylem/core/testing/rule_matrix.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "xylem/base/error.h"
#include "xylem/core/testing/rule_checks.h"
#include "xylem/core/transform/transform.h"
#include "xylem/ir/expr.h"
#include "xylem/ir/interpreter.h"
#include "xylem/ir/ops/all.h"
#include "xylem/ir/verify.h"
#include "xylem/runtime/client.h"

namespace xylem::transform::testing {
namespace {

using ir::Attr;
using ir::Attrs;
using ir::Builder;
using ir::Expr;
using ir::GraphPtr;
using ir::Type;
using ir::ValueId;
namespace ops = ir::ops;

// The same program over another dtype.
DType replaced(DType d, DType t) {
  if (d == DType::kC128 && t == DType::kF32) return DType::kC64;
  return d == DType::kF64 ? t : d;
}

Attr replaced(const Attr& a, DType t) {
  if (const DType* d = a.get<DType>()) return Attr(replaced(*d, t));
  if (const Type* type = a.get<Type>())
    return Attr(Type::tensor(replaced(type->dtype(), t), type->dims()));
  if (const HostArray* h = a.get<HostArray>())
    return h->dtype() == DType::kF64 ? Attr(h->astype(t)) : a;
  if (const ir::AttrList* list = a.list()) {
    ir::AttrList r;
    for (const Attr& e : *list) r.push_back(replaced(e, t));
    return Attr(r);
  }
  return a;
}

GraphPtr over(const ir::Graph& g, DType t) {
  Builder b(g.name);
  std::vector<ValueId> map(g.values.size(), ir::kNoValue);
  for (ValueId v : g.params) {
    const Type& type = g.type(v);
    map[static_cast<std::size_t>(v)] =
        b.param(Type::tensor(replaced(type.dtype(), t), type.dims()));
  }
  for (const ir::Op& op : g.ops) {
    std::vector<ValueId> operands;
    for (ValueId v : op.operands) operands.push_back(map[static_cast<std::size_t>(v)]);
    Attrs attrs;
    for (const auto& [name, value] : op.attrs.entries()) attrs.set(name, replaced(value, t));
    std::vector<GraphPtr> regions;
    for (const GraphPtr& r : op.regions) regions.push_back(over(*r, t));
    ir::ValueIds r = b.op(*op.def, operands, std::move(attrs), std::move(regions));
    for (std::size_t i = 0; i < r.size(); ++i) map[static_cast<std::size_t>(op.results[i])] = r[i];
  }
  std::vector<ValueId> results;
  for (ValueId v : g.results) results.push_back(map[static_cast<std::size_t>(v)]);
  return b.finish(std::move(results));
}

// The same program in another place.

// Two steps of a loop that has the parameters as constants; what the steps give is stacked.
GraphPtr in_scan(const ir::Graph& g) {
  Builder body;
  std::vector<ValueId> inner;
  for (ValueId v : g.params) inner.push_back(body.param(g.type(v)));
  GraphPtr step = body.finish(body.inline_graph(g, inner));
  Builder b;
  std::vector<ValueId> args;
  for (ValueId v : g.params) args.push_back(b.param(g.type(v)));
  ir::ValueIds r = b.op(ops::kScan, args,
                        Attrs{{"length", Attr(2)},
                              {"num_consts", Attr(static_cast<std::int64_t>(args.size()))},
                              {"num_carry", Attr(0)},
                              {"reverse", Attr(false)}},
                        {step});
  return b.finish({r.begin(), r.end()});
}

// A branch that is taken by a comparison at run time; the other one gives zeros.
GraphPtr in_branch(const ir::Graph& g) {
  Builder yes, no;
  std::vector<ValueId> inner;
  for (ValueId v : g.params) {
    inner.push_back(yes.param(g.type(v)));
    no.param(g.type(v));
  }
  GraphPtr take = yes.finish(yes.inline_graph(g, inner));
  std::vector<ValueId> zeros;
  for (ValueId v : g.results) zeros.push_back(ir::zeros(no, g.type(v)).v);
  GraphPtr skip = no.finish(zeros);
  Builder b;
  std::vector<ValueId> args;
  for (ValueId v : g.params) args.push_back(b.param(g.type(v)));
  // NaN apart, a number equals itself: the compiler cannot know.
  Expr x{&b, args[0]};
  Dims axes;
  for (int d = 0; d < x.rank(); ++d) axes.push_back(d);
  Expr same = ir::compare(ir::reduce_sum(x, axes), 1e30, "LT");
  std::vector<ValueId> operands = {same.v};
  operands.insert(operands.end(), args.begin(), args.end());
  ir::ValueIds r =
      b.op(ops::kIf, operands,
           Attrs{{"num_captures", Attr(static_cast<std::int64_t>(args.size()))}}, {take, skip});
  return b.finish({r.begin(), r.end()});
}

Mask mask_of(std::uint32_t bits, std::size_t n) {
  Mask m(n, false);
  for (std::size_t i = 0; i < n; ++i) m[i] = (bits >> i) & 1;
  return m;
}

std::vector<int> dims_of(const ir::Graph& g, const Mask& mapped, int axis) {
  std::vector<int> r;
  for (std::size_t i = 0; i < g.params.size(); ++i)
    r.push_back(i < mapped.size() && !mapped[i] ? kNotMapped
                                                : std::min(axis, g.type(g.params[i]).rank()));
  return r;
}

constexpr std::int64_t kSize = 2;

GraphPtr changed(const ir::Graph& g, const Cell& c) {
  Mask active = mask_of(c.active, g.params.size());
  auto out = [](const ir::Graph& of) { return std::vector<int>(of.results.size(), 0); };
  switch (c.change) {
    case Change::kValue: {
      Builder b;
      std::vector<ValueId> args;
      for (ValueId v : g.params) args.push_back(b.param(g.type(v)));
      return b.finish(b.inline_graph(g, args));
    }
    case Change::kJvp: return jvp(g, active);
    case Change::kVjp: return vjp(g, active);
    case Change::kVmap: return batch_to(g, dims_of(g, active, c.axis), kSize, out(g));
    case Change::kJvpOfVjp: {
      GraphPtr v = vjp(g, active);
      return jvp(*v, Mask(v->params.size(), true));
    }
    case Change::kVmapOfVjp: {
      GraphPtr v = vjp(g, active);
      return batch_to(*v, dims_of(*v, {}, 0), kSize, out(*v));
    }
    case Change::kVjpOfVmap: {
      GraphPtr m = batch_to(g, dims_of(g, {}, 0), kSize, out(g));
      return vjp(*m, active);
    }
  }
  throw InternalError("unknown change");
}

GraphPtr program_of(const Cell& c, const Row& row, DType dtype) {
  GraphPtr g = dtype == DType::kF64 ? row.graph : over(*row.graph, dtype);
  if (c.place == Place::kScan) g = in_scan(*g);
  if (c.place == Place::kBranch) g = in_branch(*g);
  return changed(*g, c);
}

runtime::Client& compiled() {
  static auto* client = runtime::make_cpu_client().release();
  return *client;
}

Arrays run_compiled(const GraphPtr& g, const Arrays& args) {
  runtime::ExecutablePtr e = compiled().compile(g, {.quick = true, .name = "cell", .donated = {}});
  std::vector<runtime::BufferPtr> in;
  for (const HostArray& a : args) in.push_back(compiled().from_host(a));
  Arrays r;
  for (const runtime::BufferPtr& b : e->execute(in)) r.push_back(b->to_host());
  return r;
}

// Differences count in units of the largest element, as those of sums do.
void expect_close(const Arrays& got, const Arrays& want, double tolerance,
                  const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (std::size_t i = 0; i < want.size(); ++i) {
    ASSERT_EQ(got[i].dims(), want[i].dims()) << what;
    double scale = 1;
    for (std::int64_t k = 0; k < want[i].size(); ++k)
      if (std::isfinite(want[i].at(k))) scale = std::max(scale, std::abs(want[i].at(k)));
    for (std::int64_t k = 0; k < want[i].size(); ++k) {
      double a = got[i].at(k), b = want[i].at(k);
      bool fine =
          a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= tolerance * scale;
      ASSERT_TRUE(fine) << what << ": result " << i << " element " << k << " is " << a << ", not "
                        << b;
    }
  }
}

// Roundings that a program of one op and its derivatives may add up.
double few_ulps(DType t) { return 64 * std::ldexp(1.0, -dtype_info(t).mantissa_bits); }

const char* name_of(Change c) {
  switch (c) {
    case Change::kValue: return "value";
    case Change::kJvp: return "jvp";
    case Change::kVjp: return "vjp";
    case Change::kVmap: return "vmap";
    case Change::kJvpOfVjp: return "jvp of vjp";
    case Change::kVmapOfVjp: return "vmap of vjp";
    case Change::kVjpOfVmap: return "vjp of vmap";
  }
  return "";
}

// Steps between equal or neighbouring numbers may go either way when these are rounded, and some
// ops have no type below f32.
bool only_f64(const Row& row) {
  static constexpr std::string_view kNames[] = {"cholesky",    "triangular_solve",
                                                "polygamma",   "scan",
                                                "fft",         "chlo.",
                                                "complex",     "convert",
                                                "batch",       "convert to complex",
                                                "torch_index", "einsum"};
  for (std::string_view n : kNames)
    if (row.name.starts_with(n)) return true;
  return false;
}

}  // namespace

std::string describe(const Cell& c, const Row& row) {
  const char* place = c.place == Place::kScan     ? " in scan"
                      : c.place == Place::kBranch ? " in a branch"
                                                  : "";
  return fmt::format("{}{}: {} by {:b}{} in {}", row.name, place, name_of(c.change), c.active,
                     c.change == Change::kVmap ? fmt::format(" over axis {}", c.axis) : "",
                     dtype_name(c.dtype));
}

std::vector<Cell> rule_matrix(const std::vector<Row>& rows) {
  std::vector<Cell> cells;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const Row& row = rows[r];
    std::size_t n = row.graph->params.size();
    std::uint32_t all = (1u << n) - 1;
    int max_rank = 0;
    for (ValueId v : row.graph->params) max_rank = std::max(max_rank, row.graph->type(v).rank());
    std::vector<DType> dtypes = {DType::kF64, DType::kF32};
    if (!only_f64(row)) dtypes.insert(dtypes.end(), {DType::kBF16, DType::kF16});
    for (DType t : dtypes)
      for (Place place : {Place::kPlain, Place::kScan, Place::kBranch}) {
        // Loops that end by a condition cannot be reversed; rows of control flow nest already.
        auto add = [&](Change change, std::uint32_t active, int axis = 0) {
          cells.push_back({r, change, place, active, axis, t});
        };
        add(Change::kValue, all);
        for (std::uint32_t active = 1; active <= all; ++active) {
          add(Change::kJvp, active);
          if (row.reverse) add(Change::kVjp, active);
          for (int axis = 0; axis <= max_rank; ++axis) add(Change::kVmap, active, axis);
        }
        if (!row.reverse) continue;
        for (Change change : {Change::kJvpOfVjp, Change::kVmapOfVjp, Change::kVjpOfVmap})
          add(change, all);
      }
  }
  return cells;
}

void check_cell(const Cell& c, const Row& row, std::uint64_t seed) {
  std::string what = describe(c, row);
  SCOPED_TRACE(what);
  GraphPtr g = program_of(c, row, c.dtype);
  ir::verify_or_throw(*g);
  std::mt19937_64 rng(seed);
  Arrays wide, narrow;
  for (ValueId v : g->params) {
    const Type& t = g->type(v);
    HostArray x = random_array(Type::tensor(DType::kF64, t.dims()), row.lo, row.hi, rng);
    narrow.push_back(x.astype(t.dtype()));
    wide.push_back(narrow.back().astype(DType::kF64));
  }
  Arrays want = ir::evaluate(*g, narrow);
  expect_close(run_compiled(g, narrow), want, few_ulps(c.dtype), what + ", compiled");
  if (c.dtype != DType::kF32) return;
  // Second derivatives cancel: their error is that of larger terms.
  Arrays exact = ir::evaluate(*program_of(c, row, DType::kF64), wide);
  expect_close(want, exact, 2e-3, what + ", beside f64");
}

}  // namespace xylem::transform::testing
