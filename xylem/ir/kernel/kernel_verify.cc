#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "xylem/base/error.h"
#include "xylem/ir/kernel.h"
#include "xylem/ir/ops/contraction.h"
#include "xylem/ir/ops/control.h"
#include "xylem/ir/ops/convert.h"
#include "xylem/ir/ops/elementwise_unary.h"
#include "xylem/ir/ops/movement.h"
#include "xylem/ir/ops/reduction.h"
#include "xylem/ir/verify.h"

namespace xylem::ir {
namespace {

// Which parameter each ref of a graph is; -1 for what is no ref.
using RefParams = std::vector<int>;

class KernelVerifier {
 public:
  explicit KernelVerifier(const Kernel& kernel) : kernel_(kernel) {}

  void run() {
    grid();
    for (std::size_t i = 0; i < kernel_.params.size(); ++i) param(i);
    if (kernel_.num_scalars < 0) fail("scalars", "a count", "a negative one", "Count them.");
    if (!kernel_.body) fail("body", "a graph", "none", "Build the body.");
    signature();
    verify_or_throw(*kernel_.body);
    RefParams refs(kernel_.body->params.size(), -1);
    for (std::size_t i = 0; i < kernel_.params.size(); ++i)
      refs[kernel_.grid.size() + i] = static_cast<int>(i);
    body(*kernel_.body, refs, 0);
  }

 private:
  [[noreturn]] void fail(const std::string& where, const std::string& expected,
                         const std::string& given, const std::string& advice,
                         const Location& loc = {}) const {
    throw UserError(
        ErrorParts{fmt::format("kernel {}: {}", kernel_.name.empty() ? "?" : kernel_.name, where),
                   expected, given, advice},
        loc.source);
  }

  void grid() const {
    for (std::size_t i = 0; i < kernel_.grid.size(); ++i) {
      const Kernel::Axis& a = kernel_.grid[i];
      const bool is_static = a.size >= 0 && a.scalar == -1;
      const bool is_dynamic = a.size == -1 && a.scalar >= 0 && a.scalar < kernel_.num_scalars;
      if (!is_static && !is_dynamic)
        fail(fmt::format("grid axis {}", i),
             "a size of at least 0, or -1 and the number of a launch scalar",
             fmt::format("size {}, scalar {} of {}", a.size, a.scalar, kernel_.num_scalars),
             "Give the axis one of both.");
    }
  }

  void param(std::size_t i) const {
    const Kernel::Param& p = kernel_.params[i];
    const std::string where = fmt::format("parameter {}", i);
    for (std::int64_t d : p.dims)
      if (d < 0)
        fail(where, "static dimensions", shape_string(p.dtype, p.dims),
             "Refine the shape before the kernel is built.");
    if (p.dtype == DType::kFloat0)
      fail(where, "an element type with bytes", "float0", "Leave float0 arrays out.");
    if (p.space != MemorySpace::kDevice && p.space != MemorySpace::kScratch)
      fail(where, "device or scratch memory", "another memory space", "Use kDevice or kScratch.");
    const Kernel::BlockMap& m = p.map;
    const std::size_t rank = p.dims.size();
    if (m.block.empty() ? !m.coef.empty() || !m.offset.empty()
                        : m.block.size() != rank || m.offset.size() != rank ||
                              m.coef.size() != rank * kernel_.grid.size())
      fail(where,
           fmt::format("a block map with {0} sizes, {0} offsets and {0} x {1} coefficients", rank,
                       kernel_.grid.size()),
           fmt::format("{}, {} and {}", m.block.size(), m.offset.size(), m.coef.size()),
           "Give one row of coefficients per dimension, one column per grid axis.");
    for (std::int64_t d : m.block)
      if (d < 1)
        fail(where, "positive block sizes", to_string(m.block), "Use blocks of 1 or more.");
    if (p.space == MemorySpace::kScratch) {
      if (!m.block.empty() || p.alias >= 0 || p.access != Kernel::Access::kReadWrite)
        fail(where, "scratch that is whole, read and written, and aliases nothing",
             "another declaration", "Declare scratch by its type alone.");
    }
    if (p.alias < 0) return;
    const bool known =
        p.alias < static_cast<int>(kernel_.params.size()) && p.alias != static_cast<int>(i);
    const Kernel::Param* other =
        known ? &kernel_.params[static_cast<std::size_t>(p.alias)] : nullptr;
    if (!other || other->space == MemorySpace::kScratch ||
        dtype_bytes(other->dtype) != dtype_bytes(p.dtype) ||
        num_elements(other->dims) != num_elements(p.dims))
      fail(where, "an alias of another parameter with as many elements of the same width",
           fmt::format("alias {}", p.alias), "Share memory only element for element.");
  }

  void signature() const {
    const Graph& g = *kernel_.body;
    std::vector<Type> expected(kernel_.grid.size(), Type::tensor(DType::kI64));
    for (const Kernel::Param& p : kernel_.params)
      expected.push_back(Type::ref(p.dtype, p.map.block.empty() ? p.dims : p.map.block, p.space));
    expected.resize(expected.size() + static_cast<std::size_t>(kernel_.num_scalars),
                    Type::tensor(DType::kI64));
    if (g.params.size() != expected.size())
      fail("body",
           fmt::format("{} parameters: grid indices, refs, launch scalars", expected.size()),
           fmt::format("{}", g.params.size()), "Give the body one parameter each.");
    for (std::size_t i = 0; i < expected.size(); ++i)
      if (g.type(g.params[i]) != expected[i])
        fail(fmt::format("body parameter {}", i), expected[i].to_string(),
             g.type(g.params[i]).to_string(), "Give the body the type of the parameter.");
    if (!g.results.empty())
      fail("body", "no results", fmt::format("{}", g.results.size()),
           "Store results through refs.");
  }

  static bool allowed(const OpDef& def) {
    return def.is(kPointwise) || def.is(kStructural) || def.is(kConstant) || def.is(kKernelOnly) ||
           &def == &ops::kIota || &def == &ops::kBitcastConvert ||
           &def == &ops::kOptimizationBarrier || &def == &ops::kReduce ||
           &def == &ops::kDotGeneral || &def == &ops::kIf || &def == &ops::kCase ||
           &def == &ops::kWhile;
  }

  void body(const Graph& g, const RefParams& param_refs, int depth) const {
    if (depth > 64) fail("body", "regions nested at most 64 deep", "deeper ones", "Flatten them.");
    RefParams refs(g.values.size(), -1);
    for (std::size_t i = 0; i < g.params.size(); ++i)
      refs[static_cast<std::size_t>(g.params[i])] = param_refs[i];
    for (ValueId r : g.results)
      if (!g.type(r).is_tensor())
        fail("region", "results that are tiles", g.type(r).to_string(), "Use captures for refs.");
    for (const Op& op : g.ops) {
      const std::string where(op.def->name);
      if (!allowed(*op.def))
        fail(where, "an op that works on tiles, control flow, or a kernel op", where,
             "Legalise the op before it is put into a kernel.", op.loc);
      for (ValueId v : op.results)
        if (!g.type(v).is_tensor() || !g.type(v).is_static() || g.type(v).extra())
          fail(where, "results that are static, plain tiles", g.type(v).to_string(),
               "Refine the shape before the kernel is built.", op.loc);
      const bool kernel_only = op.def->is(kKernelOnly) && !op.def->is(kPointwise);
      for (std::size_t i = 0; i < op.operands.size(); ++i) {
        const bool is_ref = g.type(op.operands[i]).is_ref();
        const bool may_be = (kernel_only && i == 0) || op.def->is(kControlFlow);
        if (is_ref && !may_be)
          fail(where, "tiles as operands", "a ref", "Load from the ref first.", op.loc);
      }
      if (kernel_only && !op.def->is(kControlFlow)) access(g, op, refs);
      regions(g, op, refs, depth);
    }
  }

  void access(const Graph& g, const Op& op, const RefParams& refs) const {
    const int number = refs[static_cast<std::size_t>(op.operands[0])];
    if (number < 0)
      fail(std::string(op.def->name), "a ref that is a parameter of the kernel",
           g.type(op.operands[0]).to_string(), "Pass the ref as a capture.", op.loc);
    const Kernel::Param& p = kernel_.params[static_cast<std::size_t>(number)];
    const bool writes = op.def == &ops::kKernelStore || op.def == &ops::kKernelScatter;
    const bool reads = op.def == &ops::kKernelLoad || op.def == &ops::kKernelGather;
    if (writes && p.access == Kernel::Access::kRead)
      fail(std::string(op.def->name), "a parameter that may be written",
           fmt::format("parameter {}, which is read only", number), "Declare it kWrite.", op.loc);
    if (reads && p.access == Kernel::Access::kWrite)
      fail(std::string(op.def->name), "a parameter that may be read",
           fmt::format("parameter {}, which is write only", number), "Declare it kReadWrite.",
           op.loc);
    const bool flat = op.def == &ops::kKernelGather || op.def == &ops::kKernelScatter;
    if (flat && !p.map.block.empty() && p.map.block != p.dims)
      fail(std::string(op.def->name), "a ref of a whole buffer",
           fmt::format("parameter {}, which is seen in blocks", number),
           "Leave the block map out and add the block's offset.", op.loc);
  }

  // Every region sees the op's operands (behind its own arguments): the refs among them.
  void regions(const Graph& g, const Op& op, const RefParams& refs, int depth) const {
    if (op.regions.empty()) return;
    std::size_t first = 0;  // first operand that the regions get
    std::size_t extra = 0;  // region parameters in front that are no operands
    if (op.def == &ops::kIf || op.def == &ops::kCase) first = 1;
    if (op.def == &ops::kKernelFor) first = 2, extra = 1;
    for (const GraphPtr& region : op.regions) {
      RefParams inner(region->params.size(), -1);
      if (op.def->is(kControlFlow))
        for (std::size_t i = first; i < op.operands.size(); ++i)
          if (i - first + extra < inner.size())
            inner[i - first + extra] = refs[static_cast<std::size_t>(op.operands[i])];
      for (std::size_t i = 0; i < inner.size(); ++i)
        if (region->type(region->params[i]).is_ref() && inner[i] < 0)
          fail(std::string(op.def->name), "regions that take refs as captures only",
               region->type(region->params[i]).to_string(), "Capture the kernel's parameter.",
               op.loc);
      body(*region, inner, depth + 1);
    }
    (void)g;
  }

  const Kernel& kernel_;
};

}  // namespace

void verify_kernel(const Kernel& kernel) { KernelVerifier(kernel).run(); }

}  // namespace xylem::ir
