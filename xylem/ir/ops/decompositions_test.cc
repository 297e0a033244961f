#include "xylem/ir/ops/decompositions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <map>
#include <random>
#include <set>
#include <string>

#include "xylem/ir/interpreter.h"
#include "xylem/ir/legalize.h"
#include "xylem/ir/testing/op_call.h"

// What the factorisations are defined by: products that give the matrix back, in every dtype, of
// tall, wide, square, single, empty and batched matrices; and each broken constraint.

namespace xylem::ir::ops {
namespace {

using testing::eval_op;
using testing::violation_of;
using C = std::complex<double>;

// Matrices of a batch as complex numbers.
struct Matrices {
  std::int64_t batch = 1, m = 0, n = 0;
  std::vector<C> v;

  C& at(std::int64_t b, std::int64_t i, std::int64_t j) {
    return v[static_cast<std::size_t>((b * m + i) * n + j)];
  }
  C at(std::int64_t b, std::int64_t i, std::int64_t j) const {
    return v[static_cast<std::size_t>((b * m + i) * n + j)];
  }
};

Matrices matrices(const HostArray& a) {
  Matrices r;
  r.m = a.dims()[a.rank() - 2];
  r.n = a.dims()[a.rank() - 1];
  for (int d = 0; d + 2 < a.rank(); ++d) r.batch *= a.dims()[d];
  r.v = a.astype(DType::kC128).to_vector<C>();
  return r;
}
// Vectors as diagonal matrices.
Matrices diagonal(const HostArray& a) {
  Matrices r;
  r.m = r.n = a.dims().back();
  for (int d = 0; d + 1 < a.rank(); ++d) r.batch *= a.dims()[d];
  std::vector<C> d = a.astype(DType::kC128).to_vector<C>();
  r.v.resize(static_cast<std::size_t>(r.batch * r.n * r.n));
  for (std::int64_t b = 0; b < r.batch; ++b)
    for (std::int64_t i = 0; i < r.n; ++i) r.at(b, i, i) = d[static_cast<std::size_t>(b * r.n + i)];
  return r;
}
Matrices adjoint(const Matrices& a) {
  Matrices r{a.batch, a.n, a.m, std::vector<C>(a.v.size())};
  for (std::int64_t b = 0; b < a.batch; ++b)
    for (std::int64_t i = 0; i < a.m; ++i)
      for (std::int64_t j = 0; j < a.n; ++j) r.at(b, j, i) = std::conj(a.at(b, i, j));
  return r;
}
Matrices operator*(const Matrices& x, const Matrices& y) {
  Matrices r{x.batch, x.m, y.n, std::vector<C>(static_cast<std::size_t>(x.batch * x.m * y.n))};
  for (std::int64_t b = 0; b < x.batch; ++b)
    for (std::int64_t i = 0; i < x.m; ++i)
      for (std::int64_t j = 0; j < y.n; ++j)
        for (std::int64_t k = 0; k < x.n; ++k) r.at(b, i, j) += x.at(b, i, k) * y.at(b, k, j);
  return r;
}
// Columns (or rows) in another order.
Matrices reordered(const Matrices& a, const HostArray& order, bool columns) {
  Matrices r = a;
  const auto* p = order.as<std::int32_t>();
  for (std::int64_t b = 0; b < a.batch; ++b)
    for (std::int64_t i = 0; i < a.m; ++i)
      for (std::int64_t j = 0; j < a.n; ++j)
        r.at(b, i, j) = columns ? a.at(b, i, p[b * a.n + j]) : a.at(b, p[b * a.m + i], j);
  return r;
}
double distance(const Matrices& x, const Matrices& y) {
  EXPECT_EQ(x.v.size(), y.v.size());
  double d = 0;
  for (std::size_t i = 0; i < std::min(x.v.size(), y.v.size()); ++i) {
    const double e = std::abs(x.v[i] - y.v[i]);
    d = e <= d ? d : e;  // NaN wins
  }
  return d;
}
// x^H x - 1
double defect(const Matrices& x) {
  Matrices product = adjoint(x) * x;
  for (std::int64_t b = 0; b < product.batch; ++b)
    for (std::int64_t i = 0; i < product.n; ++i) product.at(b, i, i) -= 1.0;
  double d = 0;
  for (C c : product.v) d = std::max(d, std::abs(c));
  return d;
}
// The largest element outside of a triangle.
double outside(const Matrices& x, std::int64_t below) {
  double d = 0;
  for (std::int64_t b = 0; b < x.batch; ++b)
    for (std::int64_t i = 0; i < x.m; ++i)
      for (std::int64_t j = 0; j < std::min(x.n, i - below); ++j)
        d = std::max(d, std::abs(x.at(b, i, j)));
  return d;
}

HostArray random_array(DType t, const Dims& dims, unsigned seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<double> normal;
  std::vector<C> v(static_cast<std::size_t>(num_elements(dims)));
  for (C& c : v) c = {normal(rng), is_complex(t) ? normal(rng) : 0.0};
  HostArray wide = HostArray::from(v, dims);
  return is_complex(t) ? wide.astype(t) : wide.astype(DType::kC128).astype(t);
}

class FactorisationTest : public ::testing::TestWithParam<DType> {
 protected:
  double bound() const { return dtype_bits(real_dtype(GetParam())) == 64 ? 1e-12 : 1e-4; }
  HostArray draw(const Dims& dims) { return random_array(GetParam(), dims, ++seed_); }
  unsigned seed_ = 0;
};

const std::vector<Dims>& shapes() {
  static const std::vector<Dims> all = {{3, 3},       {5, 3},    {3, 5},  {1, 1}, {1, 4},
                                        {4, 1},       {0, 3},    {3, 0},  {0, 0}, {2, 4, 4},
                                        {2, 3, 2, 5}, {0, 2, 2}, {40, 37}};
  return all;
}
std::vector<Dims> squares() {
  std::vector<Dims> out;
  for (const Dims& d : shapes())
    if (d[d.size() - 1] == d[d.size() - 2]) out.push_back(d);
  return out;
}

TEST_P(FactorisationTest, LuTimesEachOtherIsTheMatrixWithItsRowsExchanged) {
  for (const Dims& dims : shapes()) {
    HostArray a = draw(dims);
    auto r = eval_op(kLu, {a});
    Matrices lu = matrices(r[0]);
    const std::int64_t k = std::min(lu.m, lu.n);
    Matrices l{lu.batch, lu.m, k, std::vector<C>(static_cast<std::size_t>(lu.batch * lu.m * k))};
    Matrices u{lu.batch, k, lu.n, std::vector<C>(static_cast<std::size_t>(lu.batch * k * lu.n))};
    for (std::int64_t b = 0; b < lu.batch; ++b)
      for (std::int64_t i = 0; i < lu.m; ++i)
        for (std::int64_t j = 0; j < lu.n; ++j) {
          if (i > j) l.at(b, i, j) = lu.at(b, i, j);
          if (i <= j) u.at(b, i, j) = lu.at(b, i, j);
          if (i < k) l.at(b, i, i) = 1;
        }
    if (lu.n == 0) l.v.assign(l.v.size(), 0);
    EXPECT_LT(distance(l * u, reordered(matrices(a), r[2], false)), bound()) << a.type_string();
    HostArray again =
        testing::eval_one(kLuPivotsToPermutation, {r[1]}, {{"permutation_size", Attr(lu.m)}});
    EXPECT_TRUE(again.bit_equal(r[2])) << a.type_string();
  }
}

TEST_P(FactorisationTest, QrHasOrthonormalColumnsAndAnUpperTriangle) {
  for (const Dims& dims : shapes())
    for (bool full : {false, true})
      for (bool pivoting : {false, true}) {
        HostArray a = draw(dims);
        auto r = eval_op(kQr, {a}, {{"full_matrices", full}, {"pivoting", pivoting}});
        Matrices q = matrices(r[0]), t = matrices(r[1]), x = matrices(a);
        if (pivoting && x.m > 0 && x.n > 0) x = reordered(x, r[2], true);
        EXPECT_LT(distance(q * t, x), bound()) << a.type_string();
        EXPECT_LT(defect(q), bound()) << a.type_string();
        EXPECT_EQ(outside(t, 0), 0);
        EXPECT_EQ(q.n, full ? x.m : std::min(x.m, x.n));
      }
}

TEST_P(FactorisationTest, OrmqrMultipliesByTheWholeProductOfReflections) {
  for (Dims dims : {Dims{5, 3}, Dims{2, 4, 4}, Dims{3, 5}}) {
    HostArray a = draw(dims);
    auto f = eval_op(kGeqrf, {a});
    Matrices q = matrices(eval_op(kQr, {a}, {{"full_matrices", true}})[0]);
    for (bool left : {true, false})
      for (bool transpose : {true, false}) {
        Dims shape = dims;
        shape[shape.size() - 2] = left ? q.m : 2;
        shape[shape.size() - 1] = left ? 2 : q.m;
        HostArray c = draw(shape);
        Matrices qt = transpose ? adjoint(q) : q, x = matrices(c);
        HostArray r =
            testing::eval_one(kOrmqr, {f[0], f[1], c}, {{"left", left}, {"transpose", transpose}});
        EXPECT_LT(distance(matrices(r), left ? qt * x : x * qt), bound());
      }
  }
}

TEST_P(FactorisationTest, SvdGivesTheMatrixBackWithFallingSingularValues) {
  for (const Dims& dims : shapes())
    for (bool full : {false, true})
      for (const char* algorithm : {"DEFAULT", "QR"}) {
        HostArray a = draw(dims);
        Attrs attrs{{"full_matrices", full}, {"compute_uv", true}};
        attrs.set("algorithm", EnumAttr(algorithm));
        auto r = eval_op(kSvd, {a}, attrs);
        Matrices s = diagonal(r[0]), u = matrices(r[1]), vh = matrices(r[2]);
        const std::int64_t k = s.n;
        Matrices us = u;
        us.n = k;
        us.v.assign(static_cast<std::size_t>(u.batch * u.m * k), 0);
        for (std::int64_t b = 0; b < u.batch; ++b)
          for (std::int64_t i = 0; i < u.m; ++i)
            for (std::int64_t j = 0; j < k; ++j) us.at(b, i, j) = u.at(b, i, j) * s.at(b, j, j);
        Matrices top{vh.batch, k, vh.n, {}};
        for (std::int64_t b = 0; b < vh.batch; ++b)
          for (std::int64_t i = 0; i < k; ++i)
            for (std::int64_t j = 0; j < vh.n; ++j) top.v.push_back(vh.at(b, i, j));
        EXPECT_LT(distance(us * top, matrices(a)), bound()) << a.type_string();
        EXPECT_LT(defect(u), bound()) << a.type_string();
        EXPECT_LT(defect(adjoint(vh)), bound()) << a.type_string();
        for (std::int64_t b = 0; b < s.batch; ++b)
          for (std::int64_t i = 1; i < k; ++i)
            EXPECT_LE(s.at(b, i, i).real(), s.at(b, i - 1, i - 1).real());
        attrs.set("compute_uv", false);
        HostArray alone = eval_op(kSvd, {a}, attrs)[0];
        EXPECT_LT(distance(diagonal(alone), s), bound());
      }
}

TEST_P(FactorisationTest, EighDiagonalisesTheTriangleThatItReads) {
  for (const Dims& dims : squares())
    for (bool lower : {true, false}) {
      HostArray a = draw(dims);
      Matrices h = matrices(a);
      for (std::int64_t b = 0; b < h.batch; ++b)
        for (std::int64_t i = 0; i < h.n; ++i) {
          h.at(b, i, i) = h.at(b, i, i).real();
          for (std::int64_t j = 0; j < i; ++j)
            (lower ? h.at(b, j, i) : h.at(b, i, j)) =
                std::conj(lower ? h.at(b, i, j) : h.at(b, j, i));
        }
      auto r = eval_op(kEigh, {a}, {{"lower", lower}});
      Matrices v = matrices(r[0]);
      EXPECT_LT(distance(h * v, v * diagonal(r[1])), 10 * bound()) << a.type_string();
      EXPECT_LT(defect(v), bound());
      EXPECT_EQ(r[1].dtype(), real_dtype(GetParam()));
    }
}

TEST_P(FactorisationTest, EigGivesVectorsOfBothSides) {
  for (const Dims& dims : squares()) {
    HostArray a = draw(dims);
    auto r = eval_op(kEig, {a},
                     {{"compute_left_eigenvectors", true}, {"compute_right_eigenvectors", true}});
    Matrices x = matrices(a), w = diagonal(r[0]), vl = matrices(r[1]), vr = matrices(r[2]);
    EXPECT_LT(distance(x * vr, vr * w), 10 * bound()) << a.type_string();
    EXPECT_LT(distance(adjoint(vl) * x, w * adjoint(vl)), 10 * bound()) << a.type_string();
    for (std::int64_t b = 0; b < vr.batch; ++b)
      for (std::int64_t j = 0; j < vr.n; ++j) {
        double sum = 0;
        C top = 0;
        for (std::int64_t i = 0; i < vr.m; ++i) {
          sum += std::norm(vr.at(b, i, j));
          if (std::abs(vr.at(b, i, j)) > std::abs(top)) top = vr.at(b, i, j);
        }
        EXPECT_NEAR(sum, 1, bound());
        EXPECT_NEAR(top.imag(), 0, bound());
      }
    EXPECT_EQ(eval_op(kEig, {a}).size(), 1u);
  }
}

TEST_P(FactorisationTest, SchurHessenbergAndTridiagonalFormsAreSimilarToTheMatrix) {
  for (const Dims& dims : squares()) {
    HostArray a = draw(dims);
    auto s = eval_op(kSchur, {a}, {{"compute_schur_vectors", true}});
    Matrices t = matrices(s[0]), z = matrices(s[1]), x = matrices(a);
    EXPECT_LT(distance(z * t * adjoint(z), x), 10 * bound()) << a.type_string();
    EXPECT_LT(defect(z), bound());
    EXPECT_LE(outside(t, is_complex(GetParam()) ? 0 : 1), bound());
    if (x.n == 0) continue;
    auto h = eval_op(kHessenberg, {a});
    EXPECT_EQ(h[1].dims().back(), x.n - 1);
    // The trace is kept.
    C before = 0, after = 0;
    Matrices form = matrices(h[0]);
    for (std::int64_t i = 0; x.batch > 0 && i < x.n; ++i) {
      before += x.at(0, i, i);
      after += form.at(0, i, i);
    }
    EXPECT_LT(std::abs(before - after), 20 * bound());
    auto d = eval_op(kTridiagonal, {a}, {{"lower", true}});
    EXPECT_EQ(d[1].dtype(), real_dtype(GetParam()));
    EXPECT_EQ(d[2].dims().back(), x.n - 1);
  }
}

TEST_P(FactorisationTest, TridiagonalSolveSolves) {
  for (std::int64_t n : {1, 2, 3, 8}) {
    HostArray dl = draw({2, n}), d = draw({2, n}), du = draw({2, n}), b = draw({2, n, 3});
    Matrices x = matrices(testing::eval_one(kTridiagonalSolve, {dl, d, du, b}));
    Matrices a = diagonal(d), lower = diagonal(dl), upper = diagonal(du);
    for (std::int64_t k = 0; k < 2; ++k)
      for (std::int64_t i = 0; i + 1 < n; ++i) {
        a.at(k, i + 1, i) = lower.at(k, i + 1, i + 1);
        a.at(k, i, i + 1) = upper.at(k, i, i);
      }
    EXPECT_LT(distance(a * x, matrices(b)), 100 * bound()) << n;
  }
}

TEST_P(FactorisationTest, WhatIsNotFiniteGivesNaN) {
  HostArray a = random_array(GetParam(), {3, 3}, 5);
  std::vector<C> v = a.astype(DType::kC128).to_vector<C>();
  v[5] = NAN;
  HostArray bad = HostArray::from(v, {3, 3}).astype(GetParam());
  for (auto [op, attrs] :
       std::vector<std::pair<const OpDef*, Attrs>>{{&kEigh, {{"lower", true}}},
                                                   {&kSvd, {{"compute_uv", true}}},
                                                   {&kEig, {}},
                                                   {&kSchur, {}}})
    for (const HostArray& r : eval_op(*op, {bad}, attrs))
      for (std::int64_t i = 0; i < r.size(); ++i) EXPECT_TRUE(std::isnan(r.at(i))) << op->name;
  EXPECT_TRUE(std::isnan(eval_op(kLu, {bad})[0].at(8)));
  EXPECT_TRUE(std::isnan(eval_op(kQr, {bad})[1].at(8)));
}

INSTANTIATE_TEST_SUITE_P(DTypes, FactorisationTest,
                         ::testing::Values(DType::kF32, DType::kF64, DType::kC64, DType::kC128),
                         [](const auto& test) { return std::string(dtype_name(test.param)); });

TEST(PermutationTest, APivotsLoopOfStableHloGivesThePermutation) {
  HostArray pivots = testing::array<std::int32_t>({1, 2, 2, 2, 1, 3}, {2, 3});
  Builder b("main");
  ValueId p = b.param(Type::tensor(DType::kI32, {2, 3}));
  GraphPtr g = b.finish({b.one(kLuPivotsToPermutation, {p}, {{"permutation_size", 4}})});
  HostArray whole = evaluate(*g, std::vector{pivots})[0];
  HostArray loop = evaluate(*legalize(g), std::vector{pivots})[0];
  EXPECT_EQ(whole.to_vector<std::int32_t>(), (std::vector<std::int32_t>{1, 2, 0, 3, 2, 1, 3, 0}));
  EXPECT_TRUE(loop.bit_equal(whole));
}

struct Case {
  const OpDef* op;
  std::string label, message;
  std::vector<Type> operands;
  Attrs attrs = {};
};

std::vector<Case> broken() {
  auto f = [](Dims d) { return Type::tensor(DType::kF32, std::move(d)); };
  auto i = [](Dims d) { return Type::tensor(DType::kI32, std::move(d)); };
  auto h = [](Dims d) { return Type::tensor(DType::kF16, std::move(d)); };
  std::vector<Case> out;
  for (const OpDef* op :
       {&kLu, &kGeqrf, &kQr, &kEigh, &kSvd, &kEig, &kSchur, &kHessenberg, &kTridiagonal}) {
    out.push_back({op, "i1", "it is i32[2,2]", {i({2, 2})}});
    out.push_back({op, "c1", "f32, f64, c64 or c128; operand 0 is f16[2,2]", {h({2, 2})}});
    out.push_back({op, "c2", "at least 2 dimensions, of static size; it is f32[2]", {f({2})}});
  }
  for (const OpDef* op : {&kEigh, &kEig, &kSchur, &kHessenberg, &kTridiagonal})
    out.push_back({op, "c3", "square; the operand is f32[2,3]", {f({2, 3})}});
  for (const OpDef* op : {&kHessenberg, &kTridiagonal})
    out.push_back({op, "c4", "must not be empty", {f({0, 0})}});
  Attrs n2{{"permutation_size", 2}};
  out.push_back({&kLuPivotsToPermutation, "i1", "it is f32[2]", {f({2})}, n2});
  out.push_back({&kLuPivotsToPermutation, "c1", "they are i32[]", {i({})}, n2});
  out.push_back({&kLuPivotsToPermutation, "c2", "at least 3; it is 2", {i({3})}, n2});
  out.push_back({&kGeqp3, "i1", "it is i32[2,2]", {i({2, 2}), i({2})}});
  out.push_back({&kGeqp3, "c1", "f16", {h({2, 2}), i({2})}});
  out.push_back({&kGeqp3, "c2", "it is f32[2]", {f({2}), i({2})}});
  out.push_back({&kGeqp3, "c3", "must be i32[3]; it is i32[2]", {f({2, 3}), i({2})}});
  for (const OpDef* op : {&kHouseholderProduct, &kOrmqr}) {
    auto with = [&](std::vector<Type> types) {
      if (op == &kOrmqr) types.push_back(f({3, 3}));
      return types;
    };
    const Attrs left{{"left", true}};
    out.push_back({op, "i1", "it is i32[3,3]", with({i({3, 3}), f({2})}), left});
    out.push_back({op, "i2", "it is i32[2]", with({f({3, 3}), i({2})}), left});
    out.push_back({op, "c1", "f16", with({h({3, 3}), f({2})}), left});
    out.push_back({op, "c2", "it is f32[3]", with({f({3}), f({2})}), left});
    out.push_back({op, "c3", "must be f32[2,2]", with({f({2, 3, 3}), f({2})}), left});
    out.push_back({op, "c4", "the taus are f32[4]", with({f({3, 3}), f({4})}), left});
  }
  out.push_back({&kHouseholderProduct, "c5", "it is f32[2,3]", {f({2, 3}), f({2})}});
  out.push_back({&kOrmqr, "i3", "it is i32[3,3]", {f({3, 3}), f({2}), i({3, 3})}});
  out.push_back({&kOrmqr,
                 "c5",
                 "as many columns as a has rows; a is f32[3,3], c is f32[3,2]",
                 {f({3, 3}), f({2}), f({3, 2})}});
  out.push_back({&kTridiagonalSolve, "c1", "f16", {f({2}), h({2}), f({2}), f({2, 1})}});
  out.push_back({&kTridiagonalSolve, "c2", "it is f32[2]", {f({2}), f({2}), f({2}), f({2})}});
  out.push_back({&kTridiagonalSolve,
                 "c3",
                 "operand 1 must be f32[2]; it is f32[3]",
                 {f({2}), f({3}), f({2}), f({2, 1})}});
  for (int k = 0; k < 4; ++k) {
    std::vector<Type> types{f({2}), f({2}), f({2}), f({2, 1})};
    types[static_cast<std::size_t>(k)] = i({2, 1});
    out.push_back({&kTridiagonalSolve, "i" + std::to_string(k + 1), "it is i32[2,1]", types});
  }
  return out;
}

TEST(FactorisationConstraintsTest, EveryStatedLabelIsBrokenOnce) {
  std::map<const OpDef*, std::set<std::string>> met;
  for (const Case& k : broken()) {
    const std::string name(k.op->name.substr(6)), label = name + "_" + k.label;
    testing::Violation v = violation_of(*k.op, k.operands, k.attrs);
    EXPECT_EQ(v.label, label) << v.message;
    EXPECT_NE(v.message.find(k.message), std::string::npos) << v.message;
    met[k.op].insert(label);
  }
  for (const auto& [op, labels] : met) {
    std::string all;
    for (const std::string& l : labels) {
      EXPECT_NE((" " + std::string(op->labels) + " ").find(" " + l + " "), std::string::npos) << l;
      all += l + " ";
    }
    EXPECT_EQ(all.size(), op->labels.size() + 1) << op->name << ": " << all;
  }
}

}  // namespace
}  // namespace xylem::ir::ops
