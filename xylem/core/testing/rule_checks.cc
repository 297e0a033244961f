#include "xylem/core/testing/rule_checks.h"

#include <gtest/gtest.h>

#include <cmath>

#include "xylem/ir/builder.h"
#include "xylem/ir/expr.h"
#include "xylem/ir/interpreter.h"
#include "xylem/ir/verify.h"

namespace xylem::transform::testing {

using ir::Builder;
using ir::Expr;
using ir::GraphPtr;
using ir::Type;
using ir::ValueId;

HostArray random_array(const Type& t, double lo, double hi, std::mt19937_64& rng) {
  std::uniform_real_distribution<double> u(lo, hi);
  std::vector<double> v;
  for (std::int64_t i = 0; i < t.size(); ++i) v.push_back(u(rng));
  return HostArray::from(v, t.dims());
}

Arrays random_args(const ir::Graph& g, double lo, double hi, std::mt19937_64& rng) {
  Arrays a;
  for (ValueId v : g.params) a.push_back(random_array(g.type(v), lo, hi, rng));
  return a;
}

double dot(const Arrays& a, const Arrays& b) {
  double s = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::int64_t k = 0; k < a[i].size(); ++k) s += a[i].at(k) * b[i].at(k);
  return s;
}

Arrays moved(const Arrays& a, const Arrays& t, double h) {
  Arrays r;
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::vector<double> v;
    for (std::int64_t k = 0; k < a[i].size(); ++k) v.push_back(a[i].at(k) + h * t[i].at(k));
    r.push_back(HostArray::from(v, a[i].dims()));
  }
  return r;
}

void expect_near(const Arrays& a, const Arrays& b, double tolerance, const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].dims(), b[i].dims()) << what;
    for (std::int64_t k = 0; k < a[i].size(); ++k)
      ASSERT_NEAR(a[i].at(k), b[i].at(k), tolerance * (1 + std::abs(b[i].at(k))))
          << what << " result " << i << " element " << k;
  }
}

Arrays tail(const Arrays& a, std::size_t n) {
  return {a.begin() + static_cast<std::ptrdiff_t>(n), a.end()};
}
Arrays joined(Arrays a, const Arrays& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// jvp(g)(x, t) against (g(x + h t) - g(x - h t)) / 2h.
void check_forward(const ir::Graph& g, const Mask& active, const Arrays& x, std::mt19937_64& rng,
                   const std::string& what) {
  GraphPtr j = jvp(g, active);
  ir::verify_or_throw(*j);
  Arrays t, all;
  for (std::size_t i = 0; i < x.size(); ++i) {
    HostArray d = active[i] ? random_array(g.type(g.params[i]), -1, 1, rng)
                            : HostArray::zeros(x[i].dtype(), x[i].dims());
    all.push_back(d);
    if (active[i]) t.push_back(d);
  }
  Arrays r = ir::evaluate(*j, joined(x, t));
  constexpr double kStep = 1e-5;
  Arrays up = ir::evaluate(g, moved(x, all, kStep)), down = ir::evaluate(g, moved(x, all, -kStep));
  Arrays numeric;
  for (std::size_t i = 0; i < up.size(); ++i) {
    std::vector<double> v;
    for (std::int64_t k = 0; k < up[i].size(); ++k)
      v.push_back((up[i].at(k) - down[i].at(k)) / (2 * kStep));
    numeric.push_back(HostArray::from(v, up[i].dims()));
  }
  expect_near(tail(r, g.results.size()), numeric, 2e-6, what);
}

// <ct, J t> = <J^T ct, t>.
void check_reverse(const ir::Graph& g, const Mask& active, const Arrays& x, std::mt19937_64& rng,
                   const std::string& what) {
  GraphPtr j = jvp(g, active), v = vjp(g, active);
  ir::verify_or_throw(*v);
  Arrays t, ct;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (active[i]) t.push_back(random_array(g.type(g.params[i]), -1, 1, rng));
  for (ValueId r : g.results) ct.push_back(random_array(g.type(r), -1, 1, rng));
  Arrays forward = ir::evaluate(*j, joined(x, t)), backward = ir::evaluate(*v, joined(x, ct));
  std::size_t n = g.results.size();
  double a = dot(ct, tail(forward, n)), b = dot(tail(backward, n), t);
  EXPECT_NEAR(a, b, 1e-10 * (1 + std::abs(a))) << what;
  expect_near({backward.begin(), backward.begin() + static_cast<std::ptrdiff_t>(n)},
              ir::evaluate(g, x), 1e-12, what + " primal");
}

// The batched program against a loop over the batch, with the batch dimension of parameter i at
// dims[i].
void check_batch(const ir::Graph& g, const Arrays& base, std::span<const int> dims, double lo,
                 double hi, std::mt19937_64& rng, const std::string& what) {
  constexpr std::int64_t kSize = 3;
  std::vector<Arrays> each(kSize, base);
  Arrays stacked;
  for (std::size_t i = 0; i < base.size(); ++i) {
    if (dims[i] == kNotMapped) {
      stacked.push_back(base[i]);
      continue;
    }
    for (Arrays& e : each) e[i] = random_array(g.type(g.params[i]), lo, hi, rng);
    // Stack in front, then move to the place.
    Builder b;
    std::vector<Expr> parts;
    Arrays in;
    for (const Arrays& e : each) {
      Expr p{&b, b.param(g.type(g.params[i]))};
      parts.push_back(ir::broadcast_new_dim(p, 0, 1));
      in.push_back(e[i]);
    }
    Expr s = ir::move_dim(ir::concatenate(parts, 0), 0, dims[i]);
    stacked.push_back(ir::evaluate(*b.finish({s.v}), in)[0]);
  }
  std::vector<int> out(g.results.size(), 0);
  GraphPtr batched = batch_to(g, dims, kSize, out);
  ir::verify_or_throw(*batched);
  Arrays r = ir::evaluate(*batched, stacked);
  for (std::int64_t k = 0; k < kSize; ++k) {
    Arrays want = ir::evaluate(g, each[static_cast<std::size_t>(k)]), got;
    for (std::size_t i = 0; i < r.size(); ++i) {
      std::int64_t n = want[i].size();
      std::vector<double> v;
      for (std::int64_t e = 0; e < n; ++e) v.push_back(r[i].at(k * n + e));
      got.push_back(HostArray::from(v, want[i].dims()));
    }
    expect_near(got, want, 1e-12, what + " example " + std::to_string(k));
  }
}

}  // namespace xylem::transform::testing
