#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "xylem/base/error.h"
#include "xylem/core/numpy.h"
#include "xylem/core/numpy/ops.h"
#include "xylem/ir/ops/all.h"

namespace xylem {

using ir::Attr;
using ir::Attrs;
namespace ops = ir::ops;

namespace {

Array dot_general(const Array& x, const Array& y, const Dims& xb, const Dims& yb, const Dims& xc,
                  const Dims& yc, SourceLoc where) {
  WeakDType t = promote_types(internal::weak_dtype(x), internal::weak_dtype(y),
                              internal::CallSite::outermost(where));
  Array operands[2] = {internal::with_dtype(x, t, where), internal::with_dtype(y, t, where)};
  return internal::apply_one(ops::kDotGeneral, operands,
                             Attrs{{"lhs_batching_dimensions", Attr(xb)},
                                   {"rhs_batching_dimensions", Attr(yb)},
                                   {"lhs_contracting_dimensions", Attr(xc)},
                                   {"rhs_contracting_dimensions", Attr(yc)}},
                             where, t.weak);
}

[[noreturn]] void mismatch(const char* what, const Array& x, const Array& y, SourceLoc where) {
  throw UserError(ErrorParts{what, "the contracted axes must have one size",
                             fmt::format("given {} and {}", x.type_string(), y.type_string()),
                             "Transpose or reshape one operand"},
                  internal::CallSite::outermost(where));
}

Dims range(int n) {
  Dims r;
  for (int i = 0; i < n; ++i) r.push_back(i);
  return r;
}

}  // namespace

Array matmul(const ArrayArg& x, const ArrayArg& y) {
  const Array &a = x.array, &b = y.array;
  if (a.ndim() == 0 || b.ndim() == 0)
    throw UserError(ErrorParts{"matmul", "operands must have an axis",
                               fmt::format("given {} and {}", a.type_string(), b.type_string()),
                               "Use multiply for scalars"},
                    internal::CallSite::outermost(x.where));
  int ac = a.ndim() - 1, bc = b.ndim() == 1 ? 0 : b.ndim() - 2;
  if (a.shape()[ac] != b.shape()[bc]) mismatch("matmul", a, b, x.where);
  if (a.ndim() <= 2 || b.ndim() <= 2) {
    // One side has no batch: its free axis stays where it is.
    if (b.ndim() <= 2) return dot_general(a, b, {}, {}, {ac}, {bc}, x.where);
    Array r = dot_general(a, b, {}, {}, {ac}, {bc}, x.where);
    if (a.ndim() == 1) return r;
    return moveaxis(ArrayArg(r, x.where), 0, r.ndim() - 2);
  }
  Dims abatch, bbatch;
  for (int i = 0; i < a.ndim() - 2; ++i) abatch.push_back(a.shape()[i]);
  for (int i = 0; i < b.ndim() - 2; ++i) bbatch.push_back(b.shape()[i]);
  Dims both[2] = {abatch, bbatch};
  Dims batch = internal::broadcast_shapes(both, "matmul", x.where);
  Dims as = batch, bs = batch;
  for (int i = 2; i > 0; --i) {
    as.push_back(a.shape()[a.ndim() - i]);
    bs.push_back(b.shape()[b.ndim() - i]);
  }
  int n = batch.ssize();
  return dot_general(internal::broadcast(a, as, x.where), internal::broadcast(b, bs, x.where),
                     range(n), range(n), {n + 1}, {n}, x.where);
}

Array dot(const ArrayArg& x, const ArrayArg& y) {
  const Array &a = x.array, &b = y.array;
  if (a.ndim() == 0 || b.ndim() == 0) return multiply(x, y);
  int ac = a.ndim() - 1, bc = b.ndim() == 1 ? 0 : b.ndim() - 2;
  if (a.shape()[ac] != b.shape()[bc]) mismatch("dot", a, b, x.where);
  return dot_general(a, b, {}, {}, {ac}, {bc}, x.where);
}

Array vdot(const ArrayArg& x, const ArrayArg& y) {
  return dot(ArrayArg(ravel(ArrayArg(conj(x), x.where)), x.where), ravel(y));
}

Array inner(const ArrayArg& x, const ArrayArg& y) {
  const Array &a = x.array, &b = y.array;
  if (a.ndim() == 0 || b.ndim() == 0) return multiply(x, y);
  if (a.dim(-1) != b.dim(-1)) mismatch("inner", a, b, x.where);
  return dot_general(a, b, {}, {}, {a.ndim() - 1}, {b.ndim() - 1}, x.where);
}

Array outer(const ArrayArg& x, const ArrayArg& y) {
  return dot_general(ravel(x), ravel(y), {}, {}, {}, {}, x.where);
}

Array tensordot(const ArrayArg& x, const ArrayArg& y, int axes) {
  const Array &a = x.array, &b = y.array;
  Dims ac, bc;
  for (int i = 0; i < axes; ++i) {
    ac.push_back(a.ndim() - axes + i);
    bc.push_back(i);
    if (a.ndim() < axes || b.ndim() < axes || a.shape()[ac.back()] != b.shape()[i])
      mismatch("tensordot", a, b, x.where);
  }
  return dot_general(a, b, {}, {}, ac, bc, x.where);
}

Array tensordot(const ArrayArg& x, const ArrayArg& y, const std::vector<int>& x_axes,
                const std::vector<int>& y_axes) {
  const Array &a = x.array, &b = y.array;
  Dims ac, bc;
  if (x_axes.size() != y_axes.size()) mismatch("tensordot", a, b, x.where);
  for (std::size_t i = 0; i < x_axes.size(); ++i) {
    ac.push_back(AxisArg(x_axes[i]).resolve(a.ndim(), "tensordot", x.where)[0]);
    bc.push_back(AxisArg(y_axes[i]).resolve(b.ndim(), "tensordot", x.where)[0]);
    if (a.shape()[ac[i]] != b.shape()[bc[i]]) mismatch("tensordot", a, b, x.where);
  }
  return dot_general(a, b, {}, {}, ac, bc, x.where);
}

Array vecdot(const ArrayArg& x, const ArrayArg& y, int axis) {
  internal::CallSite site(x.where);
  Array a = moveaxis(x, axis, -1), b = moveaxis(y, axis, -1);
  if (a.dim(-1) != b.dim(-1)) mismatch("vecdot", a, b, x.where);
  Array r = matmul(expand_dims(conj(a), -2), expand_dims(b, -1));
  return squeeze(squeeze(r, -1), -1);
}

Array matvec(const ArrayArg& x, const ArrayArg& y) {
  internal::CallSite site(x.where);
  return squeeze(matmul(x, expand_dims(y, -1)), -1);
}
Array vecmat(const ArrayArg& x, const ArrayArg& y) {
  internal::CallSite site(x.where);
  return squeeze(matmul(expand_dims(conj(x), -2), y), -2);
}

Array kron(const ArrayArg& x, const ArrayArg& y) {
  internal::CallSite site(x.where);
  int n = std::max(x.array.ndim(), y.array.ndim());
  auto spread = [&](const Array& a, bool first) {
    Dims shape;
    for (int d = 0; d < n; ++d) {
      int at = d - (n - a.ndim());
      std::int64_t size = at < 0 ? 1 : a.shape()[at];
      shape.push_back(first ? size : 1);
      shape.push_back(first ? 1 : size);
    }
    return a.reshape(shape);
  };
  Array r = multiply(spread(x.array, true), spread(y.array, false));
  Dims shape;
  for (int d = 0; d < n; ++d) shape.push_back(r.shape()[2 * d] * r.shape()[2 * d + 1]);
  return r.reshape(shape);
}

Array cross(const ArrayArg& x, const ArrayArg& y, int axis) {
  internal::CallSite site(x.where);
  Array a = moveaxis(x, axis, -1), b = moveaxis(y, axis, -1);
  std::int64_t m = a.dim(-1), n = b.dim(-1);
  if (m < 2 || m > 3 || n < 2 || n > 3) mismatch("cross", x.array, y.array, x.where);
  auto part = [](const Array& v, int i) { return v(idx::ellipsis, i); };
  auto det = [&](int i, int j) { return part(a, i) * part(b, j) - part(a, j) * part(b, i); };
  if (m == 2 && n == 2) return det(0, 1);
  // A vector of two components lies in the plane.
  auto widen = [](const Array& v) {
    if (v.dim(-1) == 3) return v;
    std::vector<std::pair<std::int64_t, std::int64_t>> w(v.shape().size());
    w.back().second = 1;
    return pad(v, w);
  };
  a = widen(a);
  b = widen(b);
  Array r = stack({det(1, 2), det(2, 0), det(0, 1)}, -1);
  return moveaxis(r, -1, axis);
}

namespace {

struct Term {
  std::string labels;
  Array array;
};

class Einsum {
 public:
  Einsum(std::string_view text, std::span<const Array> operands, SourceLoc where)
      : text_(text), where_(internal::CallSite::outermost(where)) {
    parse(operands);
  }

  Array run() {
    for (Term& t : terms_) diagonalize(t);
    // Labels that neither the output nor another operand has are summed at once.
    for (std::size_t i = 0; i < terms_.size(); ++i) sum_private(i);
    while (terms_.size() > 1) {
      auto [i, j] = cheapest_pair();
      Term t = contract(terms_[i], terms_[j], i, j);
      terms_.erase(terms_.begin() + static_cast<std::ptrdiff_t>(std::max(i, j)));
      terms_.erase(terms_.begin() + static_cast<std::ptrdiff_t>(std::min(i, j)));
      terms_.push_back(std::move(t));
    }
    sum_private(0);
    Dims permutation;
    for (char c : output_)
      permutation.push_back(static_cast<std::int64_t>(terms_[0].labels.find(c)));
    return terms_[0].array.transpose(permutation, where_);
  }

 private:
  [[noreturn]] void fail(std::string_view expected, const std::string& given) const {
    throw UserError(ErrorParts{fmt::format("einsum \"{}\"", text_), expected, given,
                               "Correct the subscripts or the operands"},
                    where_);
  }

  void parse(std::span<const Array> operands) {
    std::string s;
    for (char c : text_)
      if (c != ' ') s += c;
    std::size_t arrow = s.find("->");
    std::string inputs = s.substr(0, arrow);
    std::vector<std::string> parts(1);
    for (char c : inputs) {
      if (c == ',')
        parts.emplace_back();
      else
        parts.back() += c;
    }
    if (parts.size() != operands.size())
      fail(fmt::format("{} operands", parts.size()), fmt::format("{} were given", operands.size()));
    // Ellipsis axes get upper control characters, counted from the right.
    std::size_t widest = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      std::size_t dots = parts[i].find("...");
      if (dots == std::string::npos) continue;
      std::size_t named = parts[i].size() - 3, rank = operands[i].shape().size();
      if (named > rank) fail("a label for each axis at most", operands[i].type_string());
      std::size_t extra = rank - named;
      widest = std::max(widest, extra);
      std::string fill;
      for (std::size_t k = extra; k-- > 0;) fill += static_cast<char>(1 + k);
      parts[i].replace(dots, 3, fill);
    }
    std::string ellipsis;
    for (std::size_t k = widest; k-- > 0;) ellipsis += static_cast<char>(1 + k);
    std::map<char, int> uses;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].size() != operands[i].shape().size())
        fail(fmt::format("operand {} to have {} axes", i, parts[i].size()),
             fmt::format("it is {}", operands[i].type_string()));
      for (std::size_t k = 0; k < parts[i].size(); ++k) {
        char c = parts[i][k];
        ++uses[c];
        std::int64_t d = operands[i].shape()[k];
        auto [it, is_new] = sizes_.emplace(c, d);
        if (it->second == 1) it->second = d;
        if (d != it->second && d != 1)
          fail(fmt::format("one size for label '{}'", c), fmt::format("{} and {}", it->second, d));
      }
      terms_.push_back({parts[i], operands[i]});
    }
    if (arrow == std::string::npos) {
      output_ = ellipsis;
      for (const auto& [c, n] : uses)
        if (n == 1 && c > 16) output_ += c;
    } else {
      output_ = s.substr(arrow + 2);
      std::size_t dots = output_.find("...");
      if (dots != std::string::npos) output_.replace(dots, 3, ellipsis);
    }
    for (char c : output_)
      if (!uses.count(c) || std::count(output_.begin(), output_.end(), c) > 1)
        fail("output labels that occur in the inputs, each once", fmt::format("'{}'", c));
    // Size 1 against a longer axis: the axis is dropped here and comes back by broadcasting.
    for (Term& t : terms_)
      for (std::size_t k = 0; k < t.labels.size(); ++k)
        if (t.array.shape()[k] != sizes_[t.labels[k]]) {
          Dims shape = t.array.shape();
          shape[k] = sizes_[t.labels[k]];
          t.array = internal::broadcast(t.array, shape, where_);
        }
  }

  // Repeated labels in one operand: its diagonal.
  void diagonalize(Term& t) {
    for (std::size_t i = 0; i < t.labels.size(); ++i) {
      std::size_t j = t.labels.find(t.labels[i], i + 1);
      if (j == std::string::npos) continue;
      Dims shape = t.array.shape();
      Array a = internal::iota(DType::kI32, shape, static_cast<int>(i), where_);
      Array b = internal::iota(DType::kI32, shape, static_cast<int>(j), where_);
      Array kept =
          where(ArrayArg(equal(ArrayArg(a, where_), b), where_), t.array, zeros_like(t.array));
      t.array = sum(ArrayArg(kept, where_), static_cast<int>(j));
      t.labels.erase(j, 1);
      --i;
    }
  }

  bool needed(char c, std::size_t except_a, std::size_t except_b) const {
    if (output_.find(c) != std::string::npos) return true;
    for (std::size_t k = 0; k < terms_.size(); ++k)
      if (k != except_a && k != except_b && terms_[k].labels.find(c) != std::string::npos)
        return true;
    return false;
  }

  void sum_private(std::size_t i) {
    Term& t = terms_[i];
    std::vector<int> axes;
    std::string rest;
    for (std::size_t k = 0; k < t.labels.size(); ++k) {
      if (needed(t.labels[k], i, i))
        rest += t.labels[k];
      else
        axes.push_back(static_cast<int>(k));
    }
    if (axes.empty()) return;
    t.array = sum(ArrayArg(t.array, where_), AxisArg(axes));
    t.labels = rest;
  }

  // Labels of a contraction of the given operands (a bit each): those that the output or another
  // operand needs.
  std::string labels_of(std::size_t set) const {
    std::string all;
    for (std::size_t i = 0; i < terms_.size(); ++i)
      if (set >> i & 1)
        for (char c : terms_[i].labels) {
          if (all.find(c) != std::string::npos) continue;
          bool kept = output_.find(c) != std::string::npos;
          for (std::size_t k = 0; !kept && k < terms_.size(); ++k)
            kept = !(set >> k & 1) && terms_[k].labels.find(c) != std::string::npos;
          if (kept) all += c;
        }
    return all;
  }
  double cost_of(const std::string& x, const std::string& y) const {
    double flops = 1;
    std::string all = x;
    for (char c : y)
      if (all.find(c) == std::string::npos) all += c;
    for (char c : all) flops *= static_cast<double>(sizes_.at(c));
    return flops;
  }

  // The order with the fewest multiplications, by dynamic programming over sets of operands; from
  // `kExhaustive` operands on, the cheapest pair each time.
  static constexpr std::size_t kExhaustive = 9;
  std::pair<std::size_t, std::size_t> cheapest_pair() const {
    std::size_t n = terms_.size();
    if (n == 2) return {0, 1};
    if (n >= kExhaustive) {
      std::pair<std::size_t, std::size_t> best{0, 1};
      double least = -1;
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = i + 1; j < n; ++j) {
          double flops = cost_of(terms_[i].labels, terms_[j].labels);
          if (least < 0 || flops < least) {
            least = flops;
            best = {i, j};
          }
        }
      return best;
    }
    std::vector<double> least(std::size_t{1} << n, -1);
    std::vector<std::size_t> part(least.size(), 0);  // the half with the lowest operand
    std::vector<std::string> labels(least.size());
    for (std::size_t set = 1; set < least.size(); ++set) {
      labels[set] = labels_of(set);
      if ((set & (set - 1)) == 0) {
        least[set] = 0;
        continue;
      }
      for (std::size_t a = (set - 1) & set; a; a = (a - 1) & set) {
        std::size_t b = set ^ a;
        if (a < b) continue;  // each split once
        double flops = least[a] + least[b] + cost_of(labels[a], labels[b]);
        if (least[set] < 0 || flops < least[set]) {
          least[set] = flops;
          part[set] = a;
        }
      }
    }
    // Any pair at the bottom of the tree can be contracted now; the rest is planned again.
    std::size_t set = least.size() - 1;
    for (;;) {
      std::size_t a = part[set], b = set ^ a;
      auto single = [](std::size_t s) { return (s & (s - 1)) == 0; };
      if (single(a) && single(b)) {
        auto index = [](std::size_t s) { return static_cast<std::size_t>(__builtin_ctzll(s)); };
        return {index(a), index(b)};
      }
      set = single(a) ? b : a;
    }
  }

  Term contract(const Term& a, const Term& b, std::size_t i, std::size_t j) const {
    Dims ab, bb, ac, bc;
    std::string batch, afree, bfree;
    for (std::size_t k = 0; k < a.labels.size(); ++k) {
      std::size_t other = b.labels.find(a.labels[k]);
      if (other == std::string::npos) {
        afree += a.labels[k];
      } else if (needed(a.labels[k], i, j)) {
        ab.push_back(static_cast<std::int64_t>(k));
        bb.push_back(static_cast<std::int64_t>(other));
        batch += a.labels[k];
      } else {
        ac.push_back(static_cast<std::int64_t>(k));
        bc.push_back(static_cast<std::int64_t>(other));
      }
    }
    for (char c : b.labels)
      if (a.labels.find(c) == std::string::npos) bfree += c;
    return {batch + afree + bfree, dot_general(a.array, b.array, ab, bb, ac, bc, where_)};
  }

  std::string_view text_;
  SourceLoc where_;
  std::vector<Term> terms_;
  std::string output_;
  std::map<char, std::int64_t> sizes_;
};

}  // namespace

Array einsum(std::string_view subscripts, std::initializer_list<Array> operands, SourceLoc where) {
  return Einsum(subscripts, std::span<const Array>(operands.begin(), operands.size()), where).run();
}

}  // namespace xylem
