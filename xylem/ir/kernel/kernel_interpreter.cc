// run_kernel: evaluates a kernel's body once per grid point with the ops' reference evaluations.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <utility>

#include "xylem/base/error.h"
#include "xylem/ir/kernel.h"
#include "xylem/ir/kernel/internal/ref_table.h"

namespace xylem::ir {
namespace internal {

const RefView& RefTable::view(const HostArray& ref) const {
  return views_[static_cast<std::size_t>(*ref.as<std::int64_t>())];
}

void RefTable::fail(const Op& op, const RefView& ref, const std::string& given) const {
  throw UserError(
      ErrorParts{fmt::format("{}: parameter {}", op.def->name, ref.param),
                 fmt::format("indices inside of {} (block of {} at {})", to_string(ref.buffer),
                             to_string(ref.dims), to_string(ref.start)),
                 given, "Mask the lanes that lie outside, or shrink the loop"},
      op.loc.source);
}

std::byte* RefTable::element(const Op& op, const RefView& ref, const Dims& index) const {
  std::int64_t flat = 0;
  for (std::size_t d = 0; d < index.size(); ++d) {
    const std::int64_t i = ref.start[d] + index[d];
    // Coordinates outside of the block would silently reach into a neighbour's.
    if (index[d] < 0 || index[d] >= ref.dims[d] || i < 0 || i >= ref.buffer[d]) {
      if (check_bounds_) fail(op, ref, "element " + to_string(index));
      return nullptr;
    }
    flat += i * ref.strides[d];
  }
  return ref.base + flat * ref.element_bytes;
}

void RefTable::walk(const Op& op, const RefView& ref, const Dims& at, const Dims& dims,
                    const Dims& shape, const HostArray* mask, const ElementFn& fn) const {
  const std::int64_t n = num_elements(shape);
  const std::uint8_t* live = mask ? reinterpret_cast<const std::uint8_t*>(mask->data()) : nullptr;
  for (std::int64_t lane = 0; lane < n; ++lane) {
    if (live && !live[lane]) continue;
    Dims index = at;
    std::int64_t rest = lane;
    for (std::size_t k = shape.size(); k-- > 0;) {
      index[dims[k]] += rest % shape[k];
      rest /= shape[k];
    }
    if (std::byte* p = element(op, ref, index)) fn(p, lane);
  }
}

void RefTable::walk_offsets(const Op& op, const RefView& ref, const HostArray& offsets,
                            const HostArray* mask, const ElementFn& fn) const {
  const std::uint8_t* live = mask ? reinterpret_cast<const std::uint8_t*>(mask->data()) : nullptr;
  const bool wide = offsets.dtype() == DType::kI64;
  for (std::int64_t lane = 0; lane < offsets.size(); ++lane) {
    if (live && !live[lane]) continue;
    const std::int64_t flat =
        wide ? offsets.as<std::int64_t>()[lane] : offsets.as<std::int32_t>()[lane];
    if (flat < 0 || flat >= num_elements(ref.dims)) {
      if (check_bounds_) fail(op, ref, fmt::format("offset {}", flat));
      continue;
    }
    Dims index(ref.dims.size(), 0);
    std::int64_t rest = flat;
    for (std::size_t d = ref.dims.size(); d-- > 0;) {
      index[d] = rest % ref.dims[d];
      rest /= ref.dims[d];
    }
    if (std::byte* p = element(op, ref, index)) fn(p, lane);
  }
}

namespace {

class KernelRunner : public RegionRunner, public RefTable {
 public:
  KernelRunner(const Kernel& kernel, std::span<HostArray> buffers,
               std::span<const std::int64_t> scalars, const KernelRunOptions& options)
      : kernel_(kernel), scalars_(scalars) {
    check_bounds_ = options.check_bounds;
    std::size_t next = 0;
    for (std::size_t i = 0; i < kernel.params.size(); ++i) {
      const Kernel::Param& p = kernel.params[i];
      const bool scratch = p.space == MemorySpace::kScratch;
      storage_.push_back(scratch ? HostArray(p.dtype, p.dims) : buffers[next++]);
      RefView v;
      v.param = static_cast<int>(i);
      v.base = storage_.back().data();
      v.element_bytes = dtype_bytes(p.dtype);
      v.dims = p.map.block.empty() ? p.dims : p.map.block;
      v.start = Dims(p.dims.size(), 0);
      v.buffer = p.dims;
      v.strides = row_major_strides(p.dims);
      views_.push_back(std::move(v));
    }
    for (const Kernel::Axis& a : kernel.grid)
      sizes_.push_back(a.size >= 0 ? a.size : scalars[static_cast<std::size_t>(a.scalar)]);
  }

  void run_points(std::uint64_t seed) {
    Dims parallel, ordered;
    for (std::size_t a = 0; a < sizes_.size(); ++a)
      (kernel_.grid[a].kind == Kernel::AxisKind::kParallel ? parallel : ordered)
          .push_back(static_cast<std::int64_t>(a));
    const std::int64_t points = count(parallel);
    std::vector<std::int64_t> order(static_cast<std::size_t>(points));
    std::iota(order.begin(), order.end(), 0);
    if (seed != 0) {
      std::mt19937_64 random(seed);
      std::shuffle(order.begin(), order.end(), random);
    }
    const std::int64_t inner = count(ordered);
    Dims at(sizes_.size(), 0);
    for (std::int64_t point : order) {
      spoil_scratch();
      locate(point, parallel, at);
      for (std::int64_t i = 0; i < inner; ++i) {
        locate(i, ordered, at);
        run_point(at);
      }
    }
  }

  std::vector<HostArray> run(const Graph& g, std::span<const HostArray> args) override {
    std::vector<HostArray> env(g.values.size());
    for (std::size_t i = 0; i < args.size(); ++i)
      env[static_cast<std::size_t>(g.params[i])] = args[i];
    std::vector<HostArray> operands;
    std::vector<Type> types;
    for (const Op& op : g.ops) {
      operands.clear();
      for (ValueId v : op.operands) operands.push_back(env[static_cast<std::size_t>(v)]);
      types.clear();
      for (ValueId v : op.results) types.push_back(g.type(v));
      if (!op.def->eval)
        throw UserError(ErrorParts{op.def->name, "an op with a reference evaluation", "it has none",
                                   "Legalise the op before it is put into a kernel"},
                        op.loc.source);
      std::vector<HostArray> results = op.def->eval({op, operands, types, *this});
      for (std::size_t k = 0; k < results.size(); ++k)
        env[static_cast<std::size_t>(op.results[k])] = results[k].to_contiguous();
    }
    std::vector<HostArray> out;
    for (ValueId v : g.results) out.push_back(env[static_cast<std::size_t>(v)]);
    return out;
  }

 private:
  std::int64_t count(const Dims& axes) const {
    std::int64_t n = 1;
    for (std::int64_t a : axes) n *= std::max<std::int64_t>(sizes_[a], 0);
    return n;
  }

  void locate(std::int64_t number, const Dims& axes, Dims& at) const {
    for (std::size_t k = axes.size(); k-- > 0;) {
      at[axes[k]] = number % sizes_[axes[k]];
      number /= sizes_[axes[k]];
    }
  }

  // Whatever a former point has left in scratch must not matter.
  void spoil_scratch() {
    for (std::size_t i = 0; i < storage_.size(); ++i)
      if (kernel_.params[i].space == MemorySpace::kScratch)
        std::memset(storage_[i].data(), 0xff, storage_[i].nbytes());
  }

  void run_point(const Dims& at) {
    std::vector<HostArray> args;
    for (std::int64_t i : at) args.push_back(HostArray::scalar(i));
    for (std::size_t i = 0; i < views_.size(); ++i) {
      const Kernel::BlockMap& map = kernel_.params[i].map;
      if (!map.block.empty()) {
        for (std::size_t d = 0; d < map.block.size(); ++d) {
          std::int64_t start = map.offset[d];
          for (std::size_t a = 0; a < at.size(); ++a) start += map.coef[d * at.size() + a] * at[a];
          views_[i].start[d] = start;
        }
      }
      args.push_back(HostArray::scalar(static_cast<std::int64_t>(i)));
    }
    for (std::int64_t s : scalars_) args.push_back(HostArray::scalar(s));
    run(*kernel_.body, args);
  }

  const Kernel& kernel_;
  std::span<const std::int64_t> scalars_;
  std::vector<HostArray> storage_;
  Dims sizes_;
};

}  // namespace

RefTable& ref_table_of(RegionRunner& regions, std::string_view op_name) {
  auto* table = dynamic_cast<RefTable*>(&regions);
  if (!table)
    throw_user_error({op_name, "a kernel's body around it", "an ordinary graph",
                      "Run the kernel with run_kernel."});
  return *table;
}

}  // namespace internal

namespace {

void check_buffers(const Kernel& kernel, std::span<const HostArray> buffers,
                   std::span<const std::int64_t> scalars) {
  std::size_t wanted = 0;
  for (const Kernel::Param& p : kernel.params) {
    if (p.space == MemorySpace::kScratch) continue;
    if (wanted < buffers.size()) {
      const HostArray& b = buffers[wanted];
      if (b.dtype() != p.dtype || b.dims() != p.dims || !b.contiguous())
        throw_user_error({fmt::format("run_kernel {}: buffer {}", kernel.name, wanted),
                          "a contiguous " + shape_string(p.dtype, p.dims), b.type_string(),
                          "Pass an array of the parameter's type."});
    }
    ++wanted;
  }
  if (buffers.size() != wanted)
    throw_user_error({fmt::format("run_kernel {}", kernel.name),
                      fmt::format("{} buffers, one per parameter that is not scratch", wanted),
                      fmt::format("{}", buffers.size()), "Pass every buffer."});
  if (static_cast<int>(scalars.size()) != kernel.num_scalars)
    throw_user_error({fmt::format("run_kernel {}", kernel.name),
                      fmt::format("{} launch scalars", kernel.num_scalars),
                      fmt::format("{}", scalars.size()), "Pass every launch scalar."});
}

}  // namespace

std::int64_t Kernel::parallel_points(std::span<const std::int64_t> scalars) const {
  std::int64_t n = 1;
  for (const Axis& a : grid)
    if (a.kind == AxisKind::kParallel)
      n *= std::max<std::int64_t>(
          a.size >= 0 ? a.size : scalars[static_cast<std::size_t>(a.scalar)], 0);
  return n;
}

void run_kernel(const Kernel& kernel, std::span<HostArray> buffers,
                std::span<const std::int64_t> scalars, const KernelRunOptions& options) {
  check_buffers(kernel, buffers, scalars);
  internal::KernelRunner(kernel, buffers, scalars, options).run_points(options.shuffle_seed);
}

}  // namespace xylem::ir
