#include "xylem/ir/lapack/call.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "xylem/base/error.h"
#include "xylem/ir/interpreter.h"
#include "xylem/ir/lapack/library.h"
#include "xylem/ir/text.h"

namespace xylem::ir::lapack {
namespace {

// The results of one custom call on `args`, written as JAX writes it.
std::vector<HostArray> call(const std::string& target, const std::string& config,
                            const std::string& types, const std::string& results, int count,
                            const std::vector<HostArray>& args, const std::string& extra = "") {
  std::string parameters, names, outs;
  std::size_t n = args.size();
  for (std::size_t i = 0; i < n; ++i) {
    std::string t = Type::tensor(args[i].dtype(), args[i].dims()).to_mlir();
    parameters += fmt::format("{}%a{}: {}", i ? ", " : "", i, t);
    names += fmt::format("{}%a{}", i ? ", " : "", i);
  }
  for (int i = 0; i < count; ++i) outs += fmt::format("{}%r#{}", i ? ", " : "", i);
  if (count == 1) outs = "%r";
  const std::string text = fmt::format(
      "func.func @main({}) -> ({}) {{\n  %r{} = stablehlo.custom_call @{}({}) {{backend_config = "
      "\"\", mhlo.backend_config = {{{}}}{}}} : ({}) -> {}\n  return {} : {}\n}}\n",
      parameters, results, count == 1 ? "" : fmt::format(":{}", count), target, names, config,
      extra, types, count == 1 ? results : "(" + results + ")", outs, results);
  Module m = parse_stablehlo(text);
  return evaluate(*m.find("main")->graph, args);
}

std::string message_of(const std::string& target, const std::string& config,
                       const std::string& types, const std::string& results, int count,
                       const std::vector<HostArray>& args, const std::string& extra = "") {
  try {
    call(target, config, types, results, count, args, extra);
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

HostArray f64(std::vector<double> v, Dims dims) { return HostArray::from(v, std::move(dims)); }

TEST(LapackCallTest, FactorsEveryMatrixOfABatch) {
  HostArray a = f64({4, 3, 6, 3, 0, 2, 5, 1}, {2, 2, 2});
  auto r = call("lapack_dgetrf_ffi", "", "tensor<2x2x2xf64>",
                "tensor<2x2x2xf64>, tensor<2x2xi32>, tensor<2xi32>", 3, {a});
  EXPECT_EQ(r[0].to_vector<double>(),
            (std::vector<double>{6, 3, 4.0 / 6, 3 - 3 * (4.0 / 6), 5, 1, 0, 2}));
  EXPECT_EQ(r[1].to_vector<std::int32_t>(), (std::vector<std::int32_t>{2, 2, 2, 2}));
  EXPECT_EQ(r[2].to_vector<std::int32_t>(), (std::vector<std::int32_t>{0, 0}));
}

TEST(LapackCallTest, ASingularMatrixIsReportedNotRefused) {
  auto r = call("lapack_dgetrf_ffi", "", "tensor<2x2xf64>",
                "tensor<2x2xf64>, tensor<2xi32>, tensor<i32>", 3, {f64({1, 2, 2, 4}, {2, 2})});
  EXPECT_EQ(*r[2].as<std::int32_t>(), 2);
}

TEST(LapackCallTest, AMatrixThatIsNotFiniteGivesNaN) {
  const std::string v = "tensor<2x2xf64>", s = "tensor<2xf64>", i = "tensor<i32>";
  for (double bad : {NAN, INFINITY, -INFINITY}) {
    HostArray a = f64({1, bad, 3, 4}, {2, 2});
    for (auto [target, config, results, count] :
         {std::tuple("lapack_dsyevd_ffi", "mode = 86 : ui8, uplo = 76 : ui8",
                     v + ", " + s + ", " + i, 3),
          std::tuple("lapack_dgesdd_ffi", "mode = 65 : ui8",
                     v + ", " + s + ", " + v + ", " + v + ", " + i, 5),
          std::tuple("lapack_dgesvd_ffi", "mode = 65 : ui8",
                     v + ", " + s + ", " + v + ", " + v + ", " + i, 5),
          std::tuple("lapack_dgees_ffi", "mode = 86 : ui8, sort = 78 : ui8",
                     v + ", " + v + ", " + s + ", " + s + ", " + i + ", " + i, 6)}) {
      auto r = call(target, config, v, results, count, {a});
      EXPECT_TRUE(std::isnan(r[1].at(0))) << target;
      EXPECT_EQ(r.back().at(0), -4) << target;
    }
  }
}

TEST(LapackCallTest, EmptyMatricesAndBatchesWork) {
  for (Dims dims : {Dims{0, 0}, Dims{3, 0, 0}, Dims{0, 2, 2}}) {
    const std::string t = Type::tensor(DType::kF64, dims).to_mlir();
    Dims w = dims, batch = dims;
    w.resize(w.size() - 1);
    batch.resize(batch.size() - 2);
    auto r = call("lapack_dsyevd_ffi", "mode = 86 : ui8, uplo = 76 : ui8", t,
                  t + ", " + Type::tensor(DType::kF64, w).to_mlir() + ", " +
                      Type::tensor(DType::kI32, batch).to_mlir(),
                  3, {HostArray::zeros(DType::kF64, dims)});
    EXPECT_EQ(r[1].dims(), w);
  }
}

TEST(LapackCallTest, WithoutVectorsTheirResultsAreZero) {
  auto r = call("lapack_dgesdd_ffi", "mode = 78 : ui8", "tensor<2x3xf64>",
                "tensor<2x3xf64>, tensor<2xf64>, tensor<2x2xf64>, tensor<3x3xf64>, tensor<i32>", 5,
                {f64({3, 0, 0, 0, 4, 0}, {2, 3})});
  EXPECT_EQ(r[1].to_vector<double>(), (std::vector<double>{4, 3}));
  EXPECT_EQ(r[2].to_vector<double>(), std::vector<double>(4, 0));
}

TEST(LapackCallTest, MistakesAreNamed) {
  HostArray a = f64({1, 2, 3, 4}, {2, 2});
  const std::string v = "tensor<2x2xf64>", lu = v + ", tensor<2xi32>, tensor<i32>";
  EXPECT_NE(message_of("lapack_dgetrf_ffi", "", v, v + ", tensor<3xi32>, tensor<i32>", 3, {a})
                .find("results (f64[2,2], i32[2], i32[])"),
            std::string::npos);
  EXPECT_NE(message_of("lapack_sgetrf_ffi", "", v, lu, 3, {a}).find("operands (f32[2,2])"),
            std::string::npos);
  EXPECT_NE(message_of("lapack_dsyevd_ffi", "mode = 86 : ui8", v,
                       v + ", tensor<2xf64>, tensor<i32>", 3, {a})
                .find("holds 'uplo', an integer"),
            std::string::npos);
  EXPECT_NE(message_of("lapack_dsyevd_ffi", "mode = 88 : ui8, uplo = 76 : ui8", v,
                       v + ", tensor<2xf64>, tensor<i32>", 3, {a})
                .find("one of the letters NV; it is 88"),
            std::string::npos);
  EXPECT_NE(message_of("lapack_dgehrd_ffi", "low = 0 : i32, high = 9 : i32", v,
                       v + ", tensor<1xf64>, tensor<i32>", 3, {a})
                .find("1 <= low <= high <= 2"),
            std::string::npos);
  EXPECT_NE(
      message_of("lapack_dgees_ffi", "mode = 86 : ui8, sort = 83 : ui8", v,
                 v + ", " + v + ", tensor<2xf64>, tensor<2xf64>, tensor<i32>, tensor<i32>", 6, {a})
          .find("one of the letters N"),
      std::string::npos);
  EXPECT_NE(message_of("lapack_dorgqr_ffi", "", "tensor<2x2xf64>, tensor<3xf64>", v, 1,
                       {a, f64({1, 2, 3}, {3})})
                .find("3 reflectors"),
            std::string::npos);
  EXPECT_NE(message_of("lapack_dgetrf_ffi", "", v, lu, 3, {a},
                       ", operand_layouts = [dense<[1, 0]> : tensor<2xindex>], result_layouts = "
                       "[dense<[1, 0]> : tensor<2xindex>, dense<0> : tensor<1xindex>, dense<> : "
                       "tensor<0xindex>]")
                .find("the layout of Fortran"),
            std::string::npos);
}

TEST(LapackCallTest, OperandsMayHoldTheShapesOfResults) {
  const std::string open = "tensor<?x2x2xf64>, tensor<?x2xi32>, tensor<?xi32>";
  const std::string given = "tensor<1x2x2xf64>, tensor<3xi64>, tensor<2xi64>, tensor<1xi64>";
  const std::string indices = ", indices_of_shape_operands = dense<[1, 2, 3]> : tensor<3xi64>";
  auto shape = [](std::vector<std::int64_t> v) {
    const auto n = static_cast<std::int64_t>(v.size());
    return HostArray::from(v, {n});
  };
  HostArray a = f64({4, 3, 6, 3}, {1, 2, 2});
  auto r = call("lapack_dgetrf_ffi", "", given, open, 3,
                {a, shape({1, 2, 2}), shape({1, 2}), shape({1})}, indices);
  EXPECT_EQ(r[0].dims(), (Dims{1, 2, 2}));
  EXPECT_EQ(r[1].to_vector<std::int32_t>(), (std::vector<std::int32_t>{2, 2}));
  EXPECT_NE(message_of("lapack_dgetrf_ffi", "",
                       "tensor<1x2x2xf64>, tensor<3xi64>, tensor<2xi64>, tensor<2xi64>", open, 3,
                       {a, shape({1, 2, 2}), shape({1, 2}), shape({1, 1})}, indices)
                .find("one size for each dimension of its result; i64[2] for tensor<?xi32>"),
            std::string::npos);
  EXPECT_NE(message_of("lapack_dgetrf_ffi", "", given, open, 3,
                       {a, shape({1, 2, 3}), shape({1, 2}), shape({1})}, indices)
                .find("agrees with the type of result 0"),
            std::string::npos);
}

TEST(LapackCallTest, CallsOfProgramsForTpusAreFactorisations) {
  HostArray a = f64({4, 3, 6, 3}, {2, 2});
  const std::string v = "tensor<2x2xf64>", w = "tensor<2xf64>", p = "tensor<2xi32>";
  auto lu = call("LuDecomposition", "", v, v + ", " + p + ", " + p, 3, {a});
  EXPECT_EQ(lu[1].to_vector<std::int32_t>(), (std::vector<std::int32_t>{1, 1}));
  auto eigh = call("Eigh", "", v, v + ", " + w, 2, {f64({2, 0, 0, 1}, {2, 2})});
  EXPECT_EQ(eigh[1].to_vector<double>(), (std::vector<double>{1, 2}));
  EXPECT_NE(message_of("Qr", "", v, v + ", tensor<3xf64>", 2, {a}).find("@Qr: result 1"),
            std::string::npos);
}

TEST(LapackLibraryTest, ARoutineThatDoesNotExistIsNamed) {
  try {
    routine("dnothing_");
    FAIL() << "no error";
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("has the routine dnothing_"), std::string::npos);
  }
}

}  // namespace
}  // namespace xylem::ir::lapack
