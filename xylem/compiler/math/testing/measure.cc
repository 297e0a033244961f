#include "xylem/compiler/math/testing/measure.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <thread>

#include "xylem/base/error.h"
#include "xylem/compiler/jit/jit.h"
#include "xylem/compiler/math/expand.h"
#include "xylem/compiler/math/testing/mpfr_reference.h"
#include "xylem/ir/kernel/kernel_builder.h"
#include "xylem/ir/ops/all.h"

namespace xylem::compiler::testing {

namespace ops = ir::ops;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr std::int64_t kTile = 32;
constexpr std::int64_t kBlock = 1 << 14;

ir::Kernel make_kernel(const ir::OpDef& def, DType dtype, std::int64_t n) {
  ir::KernelBuilder k{std::string(def.name)};
  k.parallel(1);
  std::vector<ir::KernelValue> in;
  for (int i = 0; i < num_operands(def); ++i) in.push_back(k.read(dtype, {n}));
  ir::KernelValue out = k.write(dtype, {n});
  k.for_(k.index(0), k.index(n), kTile, {}, [&](ir::KernelValue i, auto) {
    std::vector<ir::KernelValue> v;
    for (ir::KernelValue ref : in) v.push_back(k.load(ref, {i}, {0}, {kTile}));
    k.store(out, k.one(def, v), {i}, {0});
    return std::vector<ir::KernelValue>{};
  });
  ir::Kernel kernel = k.finish();
  kernel.body = expand_math(*kernel.body);
  ir::verify_kernel(kernel);
  return kernel;
}

int count_ops(const ir::Graph& graph) {
  int n = 0;
  for (const ir::Op& op : graph.ops) {
    n += !op.def->is(ir::kConstant) && !op.def->is(ir::kEffect) && op.def != &ops::kBroadcastInDim;
    for (const ir::GraphPtr& region : op.regions) n += count_ops(*region);
  }
  return n;
}

// Values at which functions change their behaviour.
constexpr double kSpecial[] = {0,
                               0x1p-1074,
                               0x1p-1022,
                               0x1p-149,
                               0x1p-126,
                               1e-5,
                               0.125,
                               0.25,
                               0.5,
                               0.55,
                               0.75,
                               1,
                               1.5,
                               1.5707963267948966,
                               2,
                               2.5,
                               3,
                               3.9375,
                               4,
                               5,
                               6.5,
                               9.0109,
                               10,
                               16,
                               20,
                               27.3,
                               40,
                               87.33,
                               88.72284,
                               89,
                               91,
                               103.972,
                               104,
                               709.78271289338397,
                               710.47586007394395,
                               745.13321910194111,
                               746,
                               1e5,
                               1e8,
                               8388608,
                               16777216,
                               0x1p28,
                               0x1p52,
                               0x1p53,
                               0x1p100,
                               0x1.fffffep127,
                               0x1.fffffffffffffp1023,
                               0x1.6ac5b262ca1ffp849 /* close to a multiple of pi/2 */,
                               kInf};

double random_value(std::mt19937_64& rng, DType dtype) {
  const std::uint64_t bits = rng();
  switch (rng() % 4) {
    case 0: {  // any bits of the type
      HostArray a(dtype, {1});
      std::memcpy(a.data(), &bits, static_cast<std::size_t>(dtype_bytes(dtype)));
      return a.at(0);
    }
    case 1:  // around 1, on both sides of most thresholds
      return std::ldexp(static_cast<double>(bits >> 11), -53 + static_cast<int>(bits % 12) - 4) *
             (rng() % 2 ? 1 : -1);
    case 2:  // small to large
      return std::ldexp(1 + static_cast<double>(bits >> 12) * 0x1p-52,
                        static_cast<int>(bits % 60) - 40) *
             (rng() % 2 ? 1 : -1);
    default: {
      double v = kSpecial[bits % std::size(kSpecial)] * (rng() % 2 ? 1 : -1);
      const int step = static_cast<int>(rng() % 5) - 2;
      for (int i = 0; i < std::abs(step); ++i) v = std::nextafter(v, step < 0 ? -kInf : kInf);
      return v;
    }
  }
}

using Double = double (*)(double);

// The C library's double functions.
const std::vector<std::pair<const ir::OpDef*, Double>>& double_functions() {
  static const auto* table = new std::vector<std::pair<const ir::OpDef*, Double>>{
      {&ops::kExponential, std::exp},
      {&ops::kExponentialMinusOne, std::expm1},
      {&ops::kLog, std::log},
      {&ops::kLogPlusOne, std::log1p},
      {&ops::kLogistic,
       [](double x) { return x > 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }},
      {&ops::kTanh, std::tanh},
      {&ops::kSine, std::sin},
      {&ops::kCosine, std::cos},
      {&ops::kTan, std::tan},
      {&ops::kCbrt, std::cbrt},
      {&ops::kRsqrt, [](double x) { return 1 / std::sqrt(x); }},
      {&ops::kErf, std::erf},
      {&ops::kErfc, std::erfc},
      {&ops::kAsin, std::asin},
      {&ops::kAcos, std::acos},
      {&ops::kAtan, std::atan},
      {&ops::kSinh, std::sinh},
      {&ops::kCosh, std::cosh},
      {&ops::kAsinh, std::asinh},
      {&ops::kAcosh, std::acosh},
      {&ops::kAtanh, std::atanh},
  };
  return *table;
}

double f32_error(float got, double want) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) == std::isnan(got) ? 0 : kInf;
  if (want == 0) return got == 0 && std::signbit(got) == std::signbit(want) ? 0 : kInf;
  if (std::signbit(got) != std::signbit(want)) return kInf;
  const double top = 0x1p128;
  const double g = std::min(std::abs(static_cast<double>(got)), top),
               w = std::min(std::abs(want), top);
  const int exponent = std::clamp(std::ilogb(w), -126, 127);
  return std::abs(g - w) * std::ldexp(1.0, 23 - exponent);
}

}  // namespace

struct CompiledOp::State {
  ir::Kernel kernel;
  xylem_jit_module* module = nullptr;
  ~State() {
    if (module) xylem_jit_release(module);
  }
};

CompiledOp::CompiledOp(const ir::OpDef& def, DType dtype, std::int64_t n) : state_(new State) {
  state_->kernel = make_kernel(def, dtype, n);
  const std::string bytes = ir::encode_kernel(state_->kernel);
  const char* data = bytes.data();
  const std::size_t size = bytes.size();
  const char* name = state_->kernel.name.c_str();
  xylem_jit_options options{XYLEM_JIT_TIER_BEST, 0, nullptr};
  char error[4096] = "";
  if (xylem_jit_compile(&data, &size, &name, 1, &options, &state_->module, error, sizeof error))
    throw UserError(error);
}

CompiledOp::~CompiledOp() = default;

const ir::Kernel& CompiledOp::kernel() const { return state_->kernel; }

int CompiledOp::num_ops() const { return count_ops(*state_->kernel.body); }

void CompiledOp::run(std::span<HostArray> arrays) const {
  std::vector<void*> pointers;
  for (HostArray& a : arrays) pointers.push_back(a.data());
  XYLEM_CHECK(xylem_jit_entry(state_->module, 0)(pointers.data(), nullptr, 0, 1) == 0,
              state_->kernel.name);
}

int num_operands(const ir::OpDef& def) { return def.min_operands; }

void Error::merge(const Error& other) {
  const std::int64_t sum = points + other.points;
  if (other.max_ulp > max_ulp) *this = other;
  points = sum;
}

std::string Error::to_string() const {
  return fmt::format("{:.3f} ulp at {:a} ({:.9g}), {:a}: {:a}; {} points", max_ulp, x, x, y, got,
                     points);
}

Error measure_random(const ir::OpDef& def, DType dtype, std::int64_t count, std::uint64_t seed) {
  count = (count + kTile - 1) / kTile * kTile;
  std::mt19937_64 rng(seed);
  const int n = num_operands(def);
  std::vector<HostArray> arrays;
  for (int k = 0; k < n; ++k) {
    std::vector<double> x(static_cast<std::size_t>(count));
    for (double& v : x) v = random_value(rng, dtype);
    arrays.push_back(HostArray::from(x, {count}).astype(dtype));
  }
  arrays.emplace_back(dtype, Dims{count});
  CompiledOp(def, dtype, count).run(arrays);
  MpfrReference reference(def);
  Error error;
  for (std::int64_t i = 0; i < count; ++i) {
    const double x = arrays[0].at(i), y = n > 1 ? arrays[1].at(i) : 0, got = arrays.back().at(i);
    error.merge({reference.ulp_error(dtype, got, x, y), x, y, got, 1});
  }
  return error;
}

Error measure_all_16_bit(const ir::OpDef& def, DType dtype) {
  std::vector<std::uint16_t> bits(1 << 16);
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint16_t>(i);
  std::vector<HostArray> arrays = {
      HostArray::from_bytes(dtype, {1 << 16}, std::as_bytes(std::span(bits))),
      HostArray(dtype, {1 << 16})};
  CompiledOp(def, dtype, 1 << 16).run(arrays);
  MpfrReference reference(def);
  Error error;
  for (std::int64_t i = 0; i < 1 << 16; ++i) {
    const double x = arrays[0].at(i), got = arrays[1].at(i);
    error.merge({reference.ulp_error(dtype, got, x), x, 0, got, 1});
  }
  return error;
}

Error measure_f32_scan(const ir::OpDef& def, std::uint64_t first, std::uint64_t stride) {
  const CompiledOp op(def, DType::kF32, kBlock);
  Double function = nullptr;
  for (const auto& [entry, f] : double_functions())
    if (entry == &def) function = f;
  XYLEM_CHECK(function, def.name);
  const auto total =
      static_cast<std::int64_t>(((std::uint64_t{1} << 32) - first + stride - 1) / stride);
  const std::int64_t blocks = (total + kBlock - 1) / kBlock;
  constexpr int kThreads = 2;
  std::vector<Error> errors(kThreads);
  auto work = [&](int thread) {
    std::vector<HostArray> arrays = {HostArray(DType::kF32, {kBlock}),
                                     HostArray(DType::kF32, {kBlock})};
    float *x = arrays[0].as<float>(), *y = arrays[1].as<float>();
    Error& error = errors[static_cast<std::size_t>(thread)];
    for (std::int64_t b = thread; b < blocks; b += kThreads) {
      const std::int64_t n = std::min(kBlock, total - b * kBlock);
      for (std::int64_t i = 0; i < kBlock; ++i) {
        const auto bits =
            static_cast<std::uint32_t>(first + static_cast<std::uint64_t>(b * kBlock + i) * stride);
        std::memcpy(x + i, &bits, 4);
      }
      op.run(arrays);
      for (std::int64_t i = 0; i < n; ++i) {
        const double ulp = f32_error(y[i], function(x[i]));
        if (ulp > error.max_ulp) error = {ulp, x[i], 0, y[i], error.points};
      }
      error.points += n;
    }
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  errors[0].merge(errors[1]);
  return errors[0];
}

std::vector<const ir::OpDef*> ops_with_f32_scan() {
  std::vector<const ir::OpDef*> out;
  for (const auto& [def, f] : double_functions()) out.push_back(def);
  return out;
}

}  // namespace xylem::compiler::testing
