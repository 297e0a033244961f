#include "xylem/ir/lapack/call.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "xylem/base/error.h"
#include "xylem/base/thread_pool.h"
#include "xylem/ir/lapack/routines.h"
#include "xylem/ir/op_def.h"
#include "xylem/ir/ops/custom.h"

namespace xylem::ir::lapack {
namespace {

struct Target {
  Routine routine;
  DType dtype;
};

// The names of a routine for real and for complex numbers.
constexpr struct {
  std::string_view real, complex;
  Routine routine;
} kNames[] = {
    {"getrf", "getrf", Routine::kGetrf}, {"geqrf", "geqrf", Routine::kGeqrf},
    {"geqp3", "geqp3", Routine::kGeqp3}, {"orgqr", "ungqr", Routine::kOrgqr},
    {"ormqr", "unmqr", Routine::kOrmqr}, {"gesdd", "gesdd", Routine::kGesdd},
    {"gesvd", "gesvd", Routine::kGesvd}, {"syevd", "heevd", Routine::kSyevd},
    {"geev", "geev", Routine::kGeev},    {"gees", "gees", Routine::kGees},
    {"gehrd", "gehrd", Routine::kGehrd}, {"sytrd", "hetrd", Routine::kSytrd},
    {"gtsv", "gtsv", Routine::kGtsv},
};

std::optional<Target> parse(std::string_view target) {
  constexpr std::string_view kHead = "lapack_", kTail = "_ffi";
  if (!target.starts_with(kHead) || !target.ends_with(kTail) ||
      target.size() < kHead.size() + kTail.size() + 2)
    return std::nullopt;
  target = target.substr(kHead.size(), target.size() - kHead.size() - kTail.size());
  const std::size_t letter = std::string_view("sdcz").find(target[0]);
  if (letter == std::string_view::npos) return std::nullopt;
  constexpr DType kDTypes[] = {DType::kF32, DType::kF64, DType::kC64, DType::kC128};
  for (const auto& n : kNames)
    if (target.substr(1) == (letter < 2 ? n.real : n.complex))
      return Target{n.routine, kDTypes[letter]};
  return std::nullopt;
}

// Operands and results as the routine has them, without the batch dimensions.
struct Slot {
  DType dtype;
  Dims dims;
};

class Reader {
 public:
  Reader(const Op& op, std::span<const Type> operands, std::span<const Type> results)
      : op_(op), operands_(operands), results_(results) {
    const Attr* config = op.attrs.find("mhlo.backend_config");
    if (!config || !config->dict()) config = op.attrs.find("backend_config");
    config_ = config ? config->dict() : nullptr;
  }

  [[noreturn]] void fail(std::string_view expected, const std::string& given,
                         std::string_view advice) const {
    throw UserError(
        ErrorParts{fmt::format("custom_call @{}", op_.attrs.str_or("call_target_name", "")),
                   expected, given, advice},
        op_.loc.source);
  }

  // A character among `allowed`.
  char option(std::string_view name, std::string_view allowed) const {
    const std::int64_t c = number(name);
    if (c > 0 && c < 128 && allowed.find(static_cast<char>(c)) != std::string_view::npos)
      return static_cast<char>(c);
    fail(fmt::format("'{}' is the code of one of the letters {}", name, allowed),
         fmt::format("it is {}", c), "Write the call as JAX does");
  }
  std::int64_t number(std::string_view name) const {
    if (const Attr* a = attr(name)) {
      if (const ScalarAttr* s = a->get<ScalarAttr>()) return s->integer;
      if (const std::int64_t* i = a->get<std::int64_t>()) return *i;
    }
    fail(fmt::format("mhlo.backend_config holds '{}', an integer", name), "it does not",
         "Export the program again with JAX");
  }
  bool flag(std::string_view name) const {
    if (const Attr* a = attr(name))
      if (const bool* b = a->get<bool>()) return *b;
    fail(fmt::format("mhlo.backend_config holds '{}', a bool", name), "it does not",
         "Export the program again with JAX");
  }

  // The last two sizes of operand i.
  std::pair<std::int64_t, std::int64_t> matrix(std::size_t i) const {
    if (i >= operands_.size() || !operands_[i].is_tensor() || operands_[i].rank() < 2)
      fail(fmt::format("operand {} holds matrices", i), types(), "Write the call as JAX does");
    const Type& t = operands_[i];
    return {t.dim(t.rank() - 2), t.dim(t.rank() - 1)};
  }
  // The last size of operand or result i.
  std::int64_t last(bool result, std::size_t i, int from_end = 1) const {
    std::span<const Type> list = result ? results_ : operands_;
    if (i >= list.size() || !list[i].is_tensor() || list[i].rank() < from_end)
      fail(fmt::format("{} {} has at least {} dimensions", result ? "result" : "operand", i,
                       from_end),
           types(), "Write the call as JAX does");
    return list[i].dim(list[i].rank() - from_end);
  }

  // Checks everything against the signature; gives the number of matrices.
  std::int64_t check(const std::vector<Slot>& operands, const std::vector<Slot>& results) const {
    std::optional<Dims> batch;
    auto fits = [&](std::span<const Type> types, const std::vector<Slot>& slots) {
      if (types.size() != slots.size()) return false;
      for (std::size_t i = 0; i < types.size(); ++i) {
        const Type& t = types[i];
        const int inner = slots[i].dims.ssize();
        if (!t.is_tensor() || !t.is_static() || t.dtype() != slots[i].dtype || t.rank() < inner)
          return false;
        Dims outer;
        for (int d = 0; d < t.rank(); ++d) {
          if (d < t.rank() - inner)
            outer.push_back(t.dim(d));
          else if (t.dim(d) != slots[i].dims[d - (t.rank() - inner)])
            return false;
        }
        if (batch && !(*batch == outer)) return false;
        batch = outer;
      }
      return true;
    };
    if (!fits(operands_, operands) || !fits(results_, results))
      fail(fmt::format("operands {} and results {}, behind batch dimensions in common",
                       text(operands), text(results)),
           types(), "Write the call as JAX does");
    return num_elements(*batch);
  }

  // Matrices stand column by column in the routine's memory, which JAX says by their layouts.
  void check_layouts() const {
    check_layouts("operand_layouts", operands_);
    check_layouts("result_layouts", results_);
  }

 private:
  const Attr* attr(std::string_view name) const { return config_ ? config_->find(name) : nullptr; }

  static std::string text(const std::vector<Slot>& slots) {
    std::string out;
    for (const Slot& s : slots) out += (out.empty() ? "" : ", ") + shape_string(s.dtype, s.dims);
    return "(" + out + ")";
  }
  std::string types() const {
    auto list = [](std::span<const Type> types) {
      std::string out;
      for (const Type& t : types) out += (out.empty() ? "" : ", ") + t.to_string();
      return "(" + out + ")";
    };
    return fmt::format("{} to {}", list(operands_), list(results_));
  }

  void check_layouts(std::string_view name, std::span<const Type> types) const {
    const Attr* attribute = op_.attrs.find(name);
    const AttrList* layouts = attribute ? attribute->list() : nullptr;
    if (!layouts || layouts->size() != types.size()) return;
    int most = 0;
    for (const Type& t : operands_) most = std::max(most, t.rank());
    for (std::size_t i = 0; i < types.size(); ++i) {
      Dims order;
      if (const HostArray* a = (*layouts)[i].get<HostArray>()) {
        HostArray wide = a->astype(DType::kI64);
        order = Dims(wide.span<std::int64_t>());
      } else if (const Dims* d = (*layouts)[i].get<Dims>()) {
        order = *d;
      }
      Dims expected;
      for (int d = types[i].rank() - 1; d >= 0; --d) expected.push_back(d);
      if (types[i].rank() == most && most >= 2) std::swap(expected[0], expected[1]);
      if (!(order == expected))
        fail("matrices have the layout of Fortran, and what is smaller that of C",
             fmt::format("{} {} has another", name, i), "Write the call as JAX does");
    }
  }

  const Op& op_;
  std::span<const Type> operands_, results_;
  const Attrs* config_ = nullptr;
};

// Reads options and sizes; gives the number of matrices.
std::int64_t read(const Reader& r, Problem& p) {
  const DType t = p.dtype, real = real_dtype(t), i32 = DType::kI32;
  const DType complex = complex_dtype(real);
  auto square = [&] {
    std::tie(p.m, p.n) = r.matrix(0);
    return Slot{t, {p.n, p.n}};
  };
  const Slot info{i32, {}};
  switch (p.routine) {
    case Routine::kGetrf: {
      std::tie(p.m, p.n) = r.matrix(0);
      const Slot a{t, {p.m, p.n}};
      return r.check({a}, {a, {i32, {std::min(p.m, p.n)}}, info});
    }
    case Routine::kGeqrf: {
      std::tie(p.m, p.n) = r.matrix(0);
      const Slot a{t, {p.m, p.n}};
      return r.check({a}, {a, {t, {std::min(p.m, p.n)}}});
    }
    case Routine::kGeqp3: {
      std::tie(p.m, p.n) = r.matrix(0);
      const Slot a{t, {p.m, p.n}}, pivots{i32, {p.n}};
      return r.check({a, pivots}, {a, pivots, {t, {std::min(p.m, p.n)}}});
    }
    case Routine::kOrgqr: {
      std::tie(p.m, p.n) = r.matrix(0);
      p.k = r.last(false, 1);
      if (p.m < p.n || p.k > p.n)
        r.fail("at least as many rows as columns, and at most as many reflectors as columns",
               fmt::format("{} rows, {} columns, {} reflectors", p.m, p.n, p.k),
               "Cut or pad the matrix");
      const Slot a{t, {p.m, p.n}};
      return r.check({a, {t, {p.k}}}, {a});
    }
    case Routine::kOrmqr: {
      std::tie(p.m, p.n) = r.matrix(0);
      std::tie(p.p, p.q) = r.matrix(2);
      p.k = r.last(false, 1);
      p.side_left = r.flag("left");
      p.transpose = r.flag("transpose");
      if (p.k > p.n || p.k > p.m || p.m != (p.side_left ? p.p : p.q))
        r.fail("reflectors as long as the multiplied side, at most as many as columns and rows",
               fmt::format("{} reflectors in a {} x {} matrix on the {} of a {} x {} matrix", p.k,
                           p.m, p.n, p.side_left ? "left" : "right", p.p, p.q),
               "Cut or pad the matrix");
      const Slot c{t, {p.p, p.q}};
      return r.check({{t, {p.m, p.n}}, {t, {p.k}}, c}, {c});
    }
    case Routine::kGesdd:
    case Routine::kGesvd: {
      std::tie(p.m, p.n) = r.matrix(0);
      const std::int64_t k = std::min(p.m, p.n);
      p.mode = r.option("mode", "ASN");
      p.u = p.mode == 'A' ? p.m : p.mode == 'S' ? k : 0;
      p.vt = p.mode == 'A' ? p.n : p.mode == 'S' ? k : 0;
      p.q = p.mode == 'N' ? r.last(true, 2) : p.u;
      p.p = p.mode == 'N' ? r.last(true, 3, 2) : p.vt;
      const Slot a{t, {p.m, p.n}};
      return r.check({a}, {a, {real, {k}}, {t, {p.m, p.q}}, {t, {p.p, p.n}}, info});
    }
    case Routine::kSyevd: {
      const Slot a = square();
      p.mode = r.option("mode", "NV");
      p.uplo = r.option("uplo", "LU");
      return r.check({a}, {a, {real, {p.n}}, info});
    }
    case Routine::kGeev: {
      const Slot a = square(), w{t, {p.n}}, v{complex, {p.n, p.n}};
      p.left = r.option("compute_left", "NV");
      p.right = r.option("compute_right", "NV");
      return is_complex(t) ? r.check({a}, {w, v, v, info}) : r.check({a}, {w, w, v, v, info});
    }
    case Routine::kGees: {
      const Slot a = square(), w{t, {p.n}};
      p.mode = r.option("mode", "NV");
      r.option("sort", "N");
      return is_complex(t) ? r.check({a}, {a, a, w, info, info})
                           : r.check({a}, {a, a, w, w, info, info});
    }
    case Routine::kGehrd: {
      const Slot a = square();
      p.low = r.number("low");
      p.high = r.number("high");
      if (p.low < 1 || p.high > p.n || (p.n > 0 && p.low > p.high))
        r.fail(fmt::format("1 <= low <= high <= {}", p.n),
               fmt::format("low = {}, high = {}", p.low, p.high), "Reduce the whole matrix");
      return r.check({a}, {a, {t, {std::max<std::int64_t>(0, p.n - 1)}}, info});
    }
    case Routine::kSytrd: {
      const Slot a = square();
      const std::int64_t below = std::max<std::int64_t>(0, p.n - 1);
      p.uplo = r.option("uplo", "LU");
      return r.check({a}, {a, {real, {p.n}}, {real, {below}}, {t, {below}}, info});
    }
    case Routine::kGtsv: {
      std::tie(p.n, p.q) = r.matrix(3);
      const Slot d{t, {p.n}}, b{t, {p.n, p.q}};
      return r.check({d, d, d, b}, {d, d, d, b, info});
    }
  }
  return 0;
}

class BatchCall final : public Call {
 public:
  BatchCall(const Problem& problem, std::int64_t batch) : problem_(problem), batch_(batch) {
    const double m = static_cast<double>(std::max(problem.m, problem.p)),
                 n = static_cast<double>(std::max(problem.n, problem.q));
    each_ = 500 + factor() * m * n * std::max(1.0, std::min(m, n));
    if (problem.routine == Routine::kGtsv) each_ = 500 + 10 * n * static_cast<double>(problem.n);
  }

  void run(void* const* buffers) const override {
    const auto grain = std::max<std::int64_t>(1, static_cast<std::int64_t>(50000 / each_));
    ThreadPool::global().parallel_for(batch_, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) solve(problem_, buffers, i);
    });
  }
  double work() const override { return each_ * static_cast<double>(batch_); }

 private:
  // ns per m n min(m, n), roughly.
  double factor() const {
    switch (problem_.routine) {
      case Routine::kGesdd:
      case Routine::kGesvd:
      case Routine::kGeev:
      case Routine::kGees: return 10;
      case Routine::kSyevd: return 4;
      default: return 1;
    }
  }

  Problem problem_;
  std::int64_t batch_;
  double each_ = 0;
};

}  // namespace

bool is_target(std::string_view target) { return parse(target).has_value(); }

bool is_call(const Op& op) {
  return op.def == &ops::kCustomCall && is_target(op.attrs.str_or("call_target_name", ""));
}

std::shared_ptr<const Call> make_call(const Op& op, std::span<const Type> operands,
                                      std::span<const Type> results) {
  const std::optional<Target> target = parse(op.attrs.str_or("call_target_name", ""));
  XYLEM_CHECK(target.has_value(), "not a call of LAPACK");
  Problem p;
  p.routine = target->routine;
  p.dtype = target->dtype;
  Reader reader(op, operands, results);
  const std::int64_t batch = read(reader, p);
  reader.check_layouts();
  return std::make_shared<BatchCall>(p, batch);
}

}  // namespace xylem::ir::lapack
