#include "xylem/ir/ops/linalg.h"

#include <fmt/format.h>

#include <cmath>

#include "xylem/ir/ops/decompositions.h"
#include "xylem/ir/ops/families.h"
#include "xylem/ir/ops/internal/eval_util.h"
#include "xylem/ir/ops/internal/shape_util.h"

namespace xylem::ir::ops {
namespace {

using Kind = DimMap::FactorKind;

long double conj_of(long double x) { return x; }
std::complex<long double> conj_of(std::complex<long double> x) { return std::conj(x); }
long double real_of(long double x) { return x; }
long double real_of(std::complex<long double> x) { return x.real(); }

// Calls fn(long double()) or fn(complex<long double>()).
template <class Fn>
void with_wide_type(DType dtype, const Fn& fn) {
  if (is_complex(dtype)) {
    fn(std::complex<long double>());
  } else {
    fn(static_cast<long double>(0));
  }
}

// Leading dimensions are parallel, the last two whole.
DimMap matrix_dims(const OpCall& call, std::span<const Type> results) {
  DimMap m;
  const Dims& dims = results[0].dims();
  Dims batch;
  for (std::size_t d = 0; d + 2 < dims.size(); ++d) batch.push_back(dims[d]);
  Dims shared = add_factors(m, batch, Kind::kParallel);
  auto add = [&](const Type& t) {
    Dims d = shared;
    for (int i = t.rank() - 2; i < t.rank(); ++i)
      for (std::int64_t f : add_factors(m, {t.dim(i)}, Kind::kOpaque)) d.push_back(f);
    return d;
  };
  for (const Type& t : call.operands) m.operands.push_back(add(t));
  m.results.push_back(add(results[0]));
  return m;
}

// cholesky ---------------------------------------------------------------------------------------

std::vector<Type> cholesky_shape_rule(const OpCall& call) {
  const Type& a = tensor_operand(call, 0, kElInexact);
  if (a.rank() < 2)
    fail(call, "c2", "the operand must have at least 2 dimensions", "it is " + a.to_string(),
         "Pass matrices");
  if (!size_fits(a.dim(a.rank() - 2), a.dim(a.rank() - 1)))
    fail(call, "c3", "the last two dimensions must have one size", "it is " + a.to_string(),
         "Pass square matrices");
  return {a};
}

template <class A>
void cholesky_matrix(A* a, std::size_t n, bool lower) {
  // The lower triangle; of an upper one its conjugate transpose.
  auto at = [&](std::size_t i, std::size_t j) -> A& { return a[lower ? i * n + j : j * n + i]; };
  auto read = [&](std::size_t i, std::size_t j) { return lower ? at(i, j) : conj_of(at(i, j)); };
  auto write = [&](std::size_t i, std::size_t j, A v) { at(i, j) = lower ? v : conj_of(v); };
  bool definite = true;
  for (std::size_t j = 0; j < n; ++j) {
    long double d = real_of(read(j, j));
    for (std::size_t k = 0; k < j; ++k) d -= real_of(read(j, k) * conj_of(read(j, k)));
    definite = definite && d > 0;
    long double root = std::sqrt(d);
    write(j, j, A(root));
    for (std::size_t i = j + 1; i < n; ++i) {
      A s = read(i, j);
      for (std::size_t k = 0; k < j; ++k) s -= read(i, k) * conj_of(read(j, k));
      write(i, j, s / root);
    }
  }
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      if (!definite)
        a[i * n + j] = A(NAN);
      else if (lower ? j > i : j < i)
        a[i * n + j] = A();
    }
}

std::vector<HostArray> cholesky_eval(const EvalCall& call) {
  DefaultFpEnvironment fp;
  const HostArray& a = call.operands[0];
  HostArray out(a.dtype(), a.dims());
  auto n = static_cast<std::size_t>(a.dims().back());
  bool lower = call.op.attrs.flag("lower");
  with_wide_type(a.dtype(), [&](auto zero) {
    auto values = load_all<decltype(zero)>(a);
    for (std::size_t i = 0; n > 0 && i < values.size(); i += n * n)
      cholesky_matrix(values.data() + i, n, lower);
    store(out, 0, out.size(), values.data());
  });
  return {std::move(out)};
}

// triangular_solve -------------------------------------------------------------------------------

std::vector<Type> triangular_solve_shape_rule(const OpCall& call) {
  const Type& a = tensor_operand(call, 0, kElInexact);
  const Type& b = tensor_operand(call, 1, kElInexact);
  if (a.dtype() != b.dtype())
    fail(call, "c1", "a and b must have one dtype", differ("a", a, "b", b), "Convert one of them");
  if (a.rank() < 2 || a.rank() != b.rank())
    fail(call, "c2", "a and b must have one rank of at least 2",
         fmt::format("a is {}, b is {}", a.to_string(), b.to_string()), "Reshape one of them");
  int r = a.rank();
  bool fits = size_fits(a.dim(r - 2), a.dim(r - 1)) &&
              size_fits(a.dim(r - 1), b.dim(call.attrs.flag("left_side") ? r - 2 : r - 1));
  for (int i = 0; i < r - 2; ++i) fits = fits && size_fits(a.dim(i), b.dim(i));
  if (!fits)
    fail(call, "c3",
         "a must hold square matrices of b's size on that side, in the same leading dimensions",
         fmt::format("a is {}, b is {}, left_side = {}", a.to_string(), b.to_string(),
                     call.attrs.flag("left_side")),
         "Broadcast or transpose one of them");
  if (call.attrs.str_or("transpose_a", "") == "TRANSPOSE_INVALID")
    fail(call, "i6", "transpose_a must be NO_TRANSPOSE, TRANSPOSE or ADJOINT",
         "it is TRANSPOSE_INVALID", "Choose one of them");
  return {b};
}

template <class A>
struct Triangle {
  const A* a;
  std::size_t n;
  bool lower, unit, transpose, adjoint;

  A at(std::size_t i, std::size_t j) const {
    if (i == j && unit) return A(1);
    A v = transpose ? a[j * n + i] : a[i * n + j];
    return adjoint ? conj_of(v) : v;
  }
  bool is_lower() const { return lower != transpose; }
};

// x[0], x[step], … of length n becomes the solution of t x = b.
template <class A>
void solve_line(const Triangle<A>& t, A* x, std::size_t step) {
  for (std::size_t k = 0; k < t.n; ++k) {
    std::size_t i = t.is_lower() ? k : t.n - 1 - k;
    A s = x[i * step];
    for (std::size_t m = 0; m < k; ++m) {
      std::size_t j = t.is_lower() ? m : t.n - 1 - m;
      s -= t.at(i, j) * x[j * step];
    }
    x[i * step] = t.unit ? s : s / t.at(i, i);
  }
}

std::vector<HostArray> triangular_solve_eval(const EvalCall& call) {
  DefaultFpEnvironment fp;
  const HostArray& a = call.operands[0];
  const HostArray& b = call.operands[1];
  const Attrs& attrs = call.op.attrs;
  HostArray out(b.dtype(), b.dims());
  auto size = [](std::int64_t v) { return static_cast<std::size_t>(v); };
  auto n = size(a.dims().back());
  auto rows = size(b.dims()[b.rank() - 2]), columns = size(b.dims().back());
  bool left = attrs.flag("left_side");
  std::string transpose = attrs.str_or("transpose_a", "NO_TRANSPOSE");
  with_wide_type(b.dtype(), [&](auto zero) {
    using A = decltype(zero);
    std::vector<A> av = load_all<A>(a), x = load_all<A>(b);
    std::size_t count = rows * columns == 0 ? 0 : x.size() / (rows * columns);
    for (std::size_t i = 0; i < count; ++i) {
      Triangle<A> t{av.data() + i * n * n,       n,
                    attrs.flag("lower"),         attrs.flag("unit_diagonal"),
                    transpose != "NO_TRANSPOSE", transpose == "ADJOINT"};
      A* m = x.data() + i * rows * columns;
      if (left) {
        for (std::size_t c = 0; c < columns; ++c) solve_line(t, m + c, columns);
      } else {
        t.transpose = !t.transpose;  // x op(a) = b is op(a)ᵀ xᵀ = bᵀ
        for (std::size_t r = 0; r < rows; ++r) solve_line(t, m + r * columns, 1);
      }
    }
    store(out, 0, out.size(), x.data());
  });
  return {std::move(out)};
}

// fft --------------------------------------------------------------------------------------------

using Complex = std::complex<long double>;

// x[0], x[step], … of length n by decimation in time over the least prime factor; `sign` -1 is
// the forward transform.
std::vector<Complex> transform(const Complex* x, std::size_t n, std::size_t step, int sign) {
  std::size_t p = 2;
  while (p < n && n % p != 0) ++p;
  std::vector<Complex> out(n);
  if (n <= 1) {
    if (n == 1) out[0] = x[0];
    return out;
  }
  auto root = [&](std::size_t k, std::size_t of) {
    long double angle = sign * 2 * std::acos(-1.0L) * static_cast<long double>(k % of) /
                        static_cast<long double>(of);
    return Complex(std::cos(angle), std::sin(angle));
  };
  std::size_t m = n / p;
  std::vector<std::vector<Complex>> parts;
  for (std::size_t r = 0; r < p; ++r)
    parts.push_back(m == 1 ? std::vector<Complex>{x[r * step]}
                           : transform(x + r * step, m, step * p, sign));
  for (std::size_t k = 0; k < n; ++k)
    for (std::size_t r = 0; r < p; ++r) out[k] += root(r * k, n) * parts[r][k % m];
  return out;
}

struct FftCall {
  std::string type;
  Dims length;
  explicit FftCall(const Attrs& a)
      : type(a.str_or("fft_type", "FFT")), length(a.dims("fft_length")) {}
  bool to_real() const { return type == "IRFFT"; }
  bool from_real() const { return type == "RFFT"; }
  bool inverse() const { return type == "IFFT" || type == "IRFFT"; }
};

std::vector<Type> fft_shape_rule(const OpCall& call) {
  const Type& x = tensor_operand(call, 0, kElInexact);
  FftCall f(call.attrs);
  int n = f.length.ssize();
  if (n < 1 || n > 3)
    fail(call, "c3", "fft_length must have 1 to 3 entries",
         fmt::format("fft_length = {}", list(f.length)),
         "Transform other dimensions in another op");
  if (n > x.rank())
    fail(call, "c1", fmt::format("fft_length must have at most {} entries", x.rank()),
         fmt::format("fft_length = {} for {}", list(f.length), x.to_string()),
         "Name as many lengths as dimensions");
  DType part = real_dtype(x.dtype());
  if (f.from_real() == is_complex(x.dtype()) || (part != DType::kF32 && part != DType::kF64))
    fail(call, "c2", f.from_real() ? "RFFT takes f32 or f64" : f.type + " takes complex numbers",
         "the operand is " + x.to_string(), "Convert it, or use another fft_type");
  Dims shape = x.dims();
  for (int i = 0; i < n; ++i) {
    if (f.length[i] < 0)
      fail(call, "c4", "fft_length must not be negative",
           fmt::format("fft_length = {}", list(f.length)), "Give lengths");
    int d = x.rank() - n + i;
    bool last = i == n - 1;
    if (f.from_real() || (f.to_real() && !last)) {
      if (!size_fits(x.dim(d), f.length[i]))
        fail(call, "c4", "fft_length must be the sizes of the last dimensions of the real side",
             fmt::format("fft_length = {} for {}", list(f.length), x.to_string()),
             "Slice or pad the operand");
    } else if (f.to_real()) {
      std::int64_t half = f.length[i] == 0 ? 0 : f.length[i] / 2 + 1;
      if (!size_fits(x.dim(d), half))
        fail(call, "c5",
             fmt::format("the last dimension must have fft_length / 2 + 1 = {} elements", half),
             "the operand is " + x.to_string(), "Slice or pad the operand");
    }
    if (!last) continue;
    if (f.from_real() && shape[d] != kDynamic) shape[d] = shape[d] == 0 ? 0 : shape[d] / 2 + 1;
    if (f.to_real()) shape[d] = f.length[i];
  }
  return {Type::tensor(f.to_real() ? part : complex_dtype(part), shape)};
}

// Transforms every line of length dims[axis] in place.
void transform_lines(std::vector<Complex>& x, const Dims& dims, std::int64_t axis, int sign) {
  auto n = static_cast<std::size_t>(dims[axis]);
  auto stride = static_cast<std::size_t>(row_major_strides(dims)[axis]);
  for_each_line(dims, axis, [&](std::int64_t start) {
    Complex* line = x.data() + start;
    std::vector<Complex> y = transform(line, n, stride, sign);
    for (std::size_t k = 0; k < n; ++k) line[k * stride] = y[k];
  });
}

// Elements along the last axis from `n` to `to` by `pick(index along the axis)` of each line.
template <class Pick>
std::vector<Complex> resize_lines(const std::vector<Complex>& x, std::size_t n, std::size_t to,
                                  const Pick& pick) {
  std::vector<Complex> out;
  for (std::size_t line = 0; n > 0 && line < x.size(); line += n)
    for (std::size_t k = 0; k < to; ++k) out.push_back(pick(x.data() + line, k));
  return out;
}

std::vector<HostArray> fft_eval(const EvalCall& call) {
  DefaultFpEnvironment fp;
  const HostArray& a = call.operands[0];
  FftCall f(call.op.attrs);
  int n = f.length.ssize();
  Dims shape = a.dims();
  Dims result = shape;
  if (f.to_real()) result[result.ssize() - 1] = f.length.back();
  if (f.from_real()) result[result.ssize() - 1] = shape.back() == 0 ? 0 : shape.back() / 2 + 1;
  HostArray out(call.result_types[0].dtype(), result);
  std::vector<Complex> x(static_cast<std::size_t>(a.size()));
  if (f.from_real()) {
    std::vector<long double> real = load_all<long double>(a);
    std::copy(real.begin(), real.end(), x.begin());
  } else {
    x = load_all<Complex>(a);
  }
  if (out.size() == 0) return {std::move(out)};
  auto axis = [&](int i) { return std::int64_t{shape.ssize() - n + i}; };
  if (!f.inverse()) {
    for (int i = n - 1; i >= 0; --i) {
      transform_lines(x, shape, axis(i), -1);
      if (!f.from_real() || i != n - 1) continue;
      auto whole = static_cast<std::size_t>(shape.back()), half = whole / 2 + 1;
      x = resize_lines(x, whole, half, [](const Complex* line, std::size_t k) { return line[k]; });
      shape[shape.ssize() - 1] = static_cast<std::int64_t>(half);
    }
  } else {
    for (int i = 0; i < n; ++i) {
      if (f.to_real() && i == n - 1) {
        auto half = static_cast<std::size_t>(shape.back());
        auto whole = static_cast<std::size_t>(f.length.back());
        x = resize_lines(x, half, whole, [&](const Complex* line, std::size_t k) {
          // Real signals have real coefficients at 0 and, of an even length, in the middle.
          if (k == 0 || 2 * k == whole) return Complex(line[k].real());
          return 2 * k < whole ? line[k] : std::conj(line[whole - k]);
        });
        shape[shape.ssize() - 1] = f.length.back();
      }
      transform_lines(x, shape, axis(i), 1);
    }
    long double points = 1;
    for (int i = 0; i < n; ++i) points *= static_cast<long double>(shape[axis(i)]);
    for (Complex& v : x) v /= points;
  }
  if (f.to_real()) {
    std::vector<long double> real;
    for (const Complex& v : x) real.push_back(v.real());
    store(out, 0, out.size(), real.data());
  } else {
    store(out, 0, out.size(), x.data());
  }
  return {std::move(out)};
}

DimMap fft_dims(const OpCall& call, std::span<const Type> results) {
  DimMap m;
  const Type &x = call.operands[0], &y = results[0];
  int whole = call.attrs.dims("fft_length").ssize();
  Dims from, to;
  for (int d = 0; d < x.rank(); ++d) {
    bool parallel = d < x.rank() - whole;
    from.push_back(add_factors(m, {x.dim(d)}, parallel ? Kind::kParallel : Kind::kOpaque)[0]);
    to.push_back(parallel ? from.back() : add_factors(m, {y.dim(d)}, Kind::kOpaque)[0]);
  }
  m.operands.push_back(from);
  m.results.push_back(to);
  return m;
}

}  // namespace

const OpDef kCholesky = {.name = "stablehlo.cholesky",
                         .min_operands = 1,
                         .max_operands = 1,
                         .attrs = {{"lower", AttrKind::kBool, false}},
                         .shape = cholesky_shape_rule,
                         .eval = cholesky_eval,
                         .dims = matrix_dims,
                         .labels = "cholesky_i1 cholesky_c2 cholesky_c3",
                         .quant = QuantSupport::kPerTensor,
                         .result_labels = "c1"};
const OpDef kTriangularSolve = {
    .name = "stablehlo.triangular_solve",
    .min_operands = 2,
    .max_operands = 2,
    .attrs = {{"left_side", AttrKind::kBool},
              {"lower", AttrKind::kBool},
              {"unit_diagonal", AttrKind::kBool},
              {"transpose_a", AttrKind::kEnum, true,
               "TRANSPOSE_INVALID NO_TRANSPOSE TRANSPOSE ADJOINT"}},
    .shape = triangular_solve_shape_rule,
    .eval = triangular_solve_eval,
    .dims = matrix_dims,
    .labels =
        "triangular_solve_i1 triangular_solve_i2 triangular_solve_c1 triangular_solve_c2 "
        "triangular_solve_c3 triangular_solve_i6",
    .quant = QuantSupport::kPerTensor,
    .result_labels = "c4"};
const OpDef kFft = {.name = "stablehlo.fft",
                    .traits = kLinear,
                    .min_operands = 1,
                    .max_operands = 1,
                    .attrs = {{"fft_type", AttrKind::kEnum, true, "FFT IFFT RFFT IRFFT"},
                              {"fft_length", AttrKind::kDims}},
                    .shape = fft_shape_rule,
                    .eval = fft_eval,
                    .dims = fft_dims,
                    .labels = "fft_i1 fft_c1 fft_c2 fft_c3 fft_c4 fft_c5",
                    .result_labels = "c2 c5"};

Family linalg_family() {
  static const OpDef* const kOps[] = {&kCholesky,
                                      &kTriangularSolve,
                                      &kFft,
                                      &kLu,
                                      &kLuPivotsToPermutation,
                                      &kGeqrf,
                                      &kGeqp3,
                                      &kHouseholderProduct,
                                      &kOrmqr,
                                      &kQr,
                                      &kEigh,
                                      &kSvd,
                                      &kEig,
                                      &kSchur,
                                      &kHessenberg,
                                      &kTridiagonal,
                                      &kTridiagonalSolve};
  return kOps;
}

}  // namespace xylem::ir::ops
