#include "xylem/compiler/native/fft.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numbers>
#include <unordered_map>

#include "xylem/base/thread_pool.h"

// The loops of a transform are compiled for wide vectors too; without contraction all give the same
// bits. clang has no clones of templates, and sanitizers no ifuncs.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define XYLEM_VECTOR_CLONES \
  __attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3")))
#else
#define XYLEM_VECTOR_CLONES
#endif

namespace xylem::compiler {
namespace {

constexpr int kMaxRadix = 13;

// exp(-2πi a / n), the angle reduced to an octant before it is rounded.
template <class T>
std::complex<T> root(std::int64_t a, std::int64_t n) {
  a %= n;
  // a/n of a turn; eighths: 8a/n.
  const std::int64_t octant = static_cast<std::int64_t>(static_cast<__int128>(8) * a / n);
  // Distance to the nearest axis, in units of 1/(8n) turns.
  const auto part = [n](std::int64_t num) {
    return 2 * std::numbers::pi_v<long double> * static_cast<long double>(num) /
           (8 * static_cast<long double>(n));
  };
  const std::int64_t a8 = 8 * a;
  long double c, s;
  switch (octant) {
    case 0: c = std::cos(part(a8)), s = std::sin(part(a8)); break;
    case 1: c = std::sin(part(2 * n - a8)), s = std::cos(part(2 * n - a8)); break;
    case 2: c = -std::sin(part(a8 - 2 * n)), s = std::cos(part(a8 - 2 * n)); break;
    case 3: c = -std::cos(part(4 * n - a8)), s = std::sin(part(4 * n - a8)); break;
    case 4: c = -std::cos(part(a8 - 4 * n)), s = -std::sin(part(a8 - 4 * n)); break;
    case 5: c = -std::sin(part(6 * n - a8)), s = -std::cos(part(6 * n - a8)); break;
    case 6: c = std::sin(part(a8 - 6 * n)), s = -std::cos(part(a8 - 6 * n)); break;
    default: c = std::cos(part(8 * n - a8)), s = -std::sin(part(8 * n - a8)); break;
  }
  return {static_cast<T>(c), static_cast<T>(-s)};
}

// Without the recovery of infinities that operator* makes.
template <class T>
inline std::complex<T> mul(std::complex<T> a, std::complex<T> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

template <class T>
inline std::complex<T> times_minus_i(std::complex<T> a) {
  return {a.imag(), -a.real()};
}

std::vector<int> factorize(std::int64_t n) {
  std::vector<int> factors;
  while (n % 4 == 0) factors.push_back(4), n /= 4;
  for (int p = 2; p <= kMaxRadix; ++p)
    while (n % p == 0) factors.push_back(p), n /= p;
  if (n > 1) factors.clear();
  return factors;
}

// One stage: y[q + s (r p + k)] = w^(p k) sum_j x[q + s (p + m j)] exp(-2πi j k / r).
template <class T>
XYLEM_VECTOR_CLONES void stage2(std::int64_t m, std::int64_t s, const std::complex<T>* __restrict x,
                                std::complex<T>* __restrict y,
                                const std::complex<T>* __restrict w) {
  for (std::int64_t p = 0; p < m; ++p) {
    const std::complex<T> w1 = w[p];
    const std::complex<T>*a = x + s * p, *b = x + s * (p + m);
    std::complex<T>*u = y + s * 2 * p, *v = u + s;
    for (std::int64_t q = 0; q < s; ++q) {
      u[q] = a[q] + b[q];
      v[q] = mul(a[q] - b[q], w1);
    }
  }
}

template <class T>
XYLEM_VECTOR_CLONES void stage3(std::int64_t m, std::int64_t s, const std::complex<T>* __restrict x,
                                std::complex<T>* __restrict y,
                                const std::complex<T>* __restrict w) {
  constexpr T kSin = static_cast<T>(0.86602540378443864676372317075293618L);
  for (std::int64_t p = 0; p < m; ++p) {
    const std::complex<T> w1 = w[2 * p], w2 = w[2 * p + 1];
    const std::complex<T>*a = x + s * p, *b = x + s * (p + m), *c = x + s * (p + 2 * m);
    std::complex<T>* out = y + s * 3 * p;
    for (std::int64_t q = 0; q < s; ++q) {
      const std::complex<T> sum = b[q] + c[q];
      const std::complex<T> base = a[q] - sum * static_cast<T>(0.5);
      const std::complex<T> turn = times_minus_i((b[q] - c[q]) * kSin);
      out[q] = a[q] + sum;
      out[q + s] = mul(base + turn, w1);
      out[q + 2 * s] = mul(base - turn, w2);
    }
  }
}

template <class T>
XYLEM_VECTOR_CLONES void stage4(std::int64_t m, std::int64_t s, const std::complex<T>* __restrict x,
                                std::complex<T>* __restrict y,
                                const std::complex<T>* __restrict w) {
  if (s == 1) {
    // The first stage, whose inner loop would be one element.
    for (std::int64_t p = 0; p < m; ++p) {
      const std::complex<T> ac = x[p] + x[p + 2 * m], a_c = x[p] - x[p + 2 * m];
      const std::complex<T> bd = x[p + m] + x[p + 3 * m],
                            b_d = times_minus_i(x[p + m] - x[p + 3 * m]);
      y[4 * p] = ac + bd;
      y[4 * p + 1] = mul(a_c + b_d, w[3 * p]);
      y[4 * p + 2] = mul(ac - bd, w[3 * p + 1]);
      y[4 * p + 3] = mul(a_c - b_d, w[3 * p + 2]);
    }
    return;
  }
  for (std::int64_t p = 0; p < m; ++p) {
    const std::complex<T> w1 = w[3 * p], w2 = w[3 * p + 1], w3 = w[3 * p + 2];
    const std::complex<T>*a = x + s * p, *b = x + s * (p + m), *c = x + s * (p + 2 * m),
          *d = x + s * (p + 3 * m);
    std::complex<T>* out = y + s * 4 * p;
    for (std::int64_t q = 0; q < s; ++q) {
      const std::complex<T> ac = a[q] + c[q], a_c = a[q] - c[q];
      const std::complex<T> bd = b[q] + d[q], b_d = times_minus_i(b[q] - d[q]);
      out[q] = ac + bd;
      out[q + s] = mul(a_c + b_d, w1);
      out[q + 2 * s] = mul(ac - bd, w2);
      out[q + 3 * s] = mul(a_c - b_d, w3);
    }
  }
}

template <class T>
void stage_any(int r, std::int64_t m, std::int64_t s, const std::complex<T>* x, std::complex<T>* y,
               const std::complex<T>* w, const std::complex<T>* roots) {
  std::complex<T> in[kMaxRadix];
  for (std::int64_t p = 0; p < m; ++p)
    for (std::int64_t q = 0; q < s; ++q) {
      for (int j = 0; j < r; ++j) in[j] = x[q + s * (p + m * j)];
      for (int k = 0; k < r; ++k) {
        std::complex<T> sum = in[0];
        for (int j = 1; j < r; ++j) sum += mul(in[j], roots[j * k % r]);
        y[q + s * (r * p + k)] = k == 0 ? sum : mul(sum, w[p * (r - 1) + k - 1]);
      }
    }
}

}  // namespace

// A transform of any length as a convolution with a chirp, by transforms of a power of two.
template <class T>
struct Fft<T>::Bluestein {
  std::int64_t size;
  Fft<T> fft;
  std::vector<Complex> chirp;   // exp(-πi j² / n)
  std::vector<Complex> kernel;  // transform of the conjugate chirp, divided by `size`

  static std::int64_t size_for(std::int64_t n) {
    std::int64_t m = 1;
    while (m < 2 * n - 1) m *= 2;
    return m;
  }

  explicit Bluestein(std::int64_t n) : size(size_for(n)), fft(size) {
    chirp.reserve(static_cast<std::size_t>(n));
    for (std::int64_t j = 0; j < n; ++j)
      chirp.push_back(
          root<T>(static_cast<std::int64_t>(static_cast<__int128>(j) * j % (2 * n)), 2 * n));
    kernel.assign(static_cast<std::size_t>(size), Complex());
    for (std::int64_t j = 0; j < n; ++j) {
      const Complex c = std::conj(chirp[static_cast<std::size_t>(j)]);
      kernel[static_cast<std::size_t>(j)] = c;
      if (j > 0) kernel[static_cast<std::size_t>(size - j)] = c;
    }
    std::vector<Complex> scratch(static_cast<std::size_t>(fft.scratch()));
    fft.transform(kernel.data(), scratch.data(), false);
    for (Complex& c : kernel) c /= static_cast<T>(size);
  }

  void run(Complex* line, std::int64_t n, Complex* scratch) const {
    Complex* work = scratch;
    Complex* inner = scratch + size;
    for (std::int64_t j = 0; j < n; ++j) work[j] = mul(line[j], chirp[static_cast<std::size_t>(j)]);
    std::fill(work + n, work + size, Complex());
    fft.transform(work, inner, false);
    for (std::int64_t j = 0; j < size; ++j)
      work[j] = mul(work[j], kernel[static_cast<std::size_t>(j)]);
    fft.transform(work, inner, true);
    for (std::int64_t j = 0; j < n; ++j) line[j] = mul(work[j], chirp[static_cast<std::size_t>(j)]);
  }
};

template <class T>
Fft<T>::Fft(std::int64_t n) : n_(n), factors_(factorize(n)) {
  if (n > 1 && factors_.empty()) {
    bluestein_ = std::make_unique<Bluestein>(n);
    return;
  }
  std::int64_t rest = n;
  for (int r : factors_) {
    const std::int64_t m = rest / r;
    for (std::int64_t p = 0; p < m; ++p)
      for (int k = 1; k < r; ++k) twiddles_.push_back(root<T>(p * k, rest));
    for (int j = 0; j < r; ++j) roots_.push_back(root<T>(j, r));
    rest = m;
  }
}

template <class T>
Fft<T>::~Fft() = default;

template <class T>
std::int64_t Fft<T>::scratch() const {
  return bluestein_ ? bluestein_->size + bluestein_->fft.scratch() : n_;
}

template <class T>
void Fft<T>::stockham(Complex* line, Complex* scratch) const {
  const Complex* w = twiddles_.data();
  const Complex* roots = roots_.data();
  Complex *x = line, *y = scratch;
  std::int64_t rest = n_, s = 1;
  for (int r : factors_) {
    const std::int64_t m = rest / r;
    switch (r) {
      case 2: stage2(m, s, x, y, w); break;
      case 3: stage3(m, s, x, y, w); break;
      case 4: stage4(m, s, x, y, w); break;
      default: stage_any(r, m, s, x, y, w, roots); break;
    }
    w += m * (r - 1);
    roots += r;
    rest = m;
    s *= r;
    std::swap(x, y);
  }
  if (x != line) std::copy(x, x + n_, line);
}

template <class T>
void Fft<T>::transform(Complex* line, Complex* scratch, bool inverse) const {
  if (inverse)
    for (std::int64_t j = 0; j < n_; ++j) line[j] = std::conj(line[j]);
  if (bluestein_)
    bluestein_->run(line, n_, scratch);
  else
    stockham(line, scratch);
  if (inverse)
    for (std::int64_t j = 0; j < n_; ++j) line[j] = std::conj(line[j]);
}

template class Fft<float>;
template class Fft<double>;

namespace {

// Pieces of about 16k elements.
std::int64_t grain_of(std::int64_t n) {
  return std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(n, 1));
}

// Plans cost more than a transform: those of recent lengths are kept, shared by all threads.
template <class Plan>
std::shared_ptr<const Plan> shared_plan(std::int64_t n) {
  constexpr std::int64_t kMaxKept = std::int64_t{1} << 22;  // elements of all lines together
  static std::mutex mutex;
  static auto* plans = new std::unordered_map<std::int64_t, std::shared_ptr<const Plan>>;
  static std::int64_t kept = 0;
  {
    std::lock_guard lock(mutex);
    if (const auto it = plans->find(n); it != plans->end()) return it->second;
  }
  auto plan = std::make_shared<const Plan>(n);
  std::lock_guard lock(mutex);
  if (kept + n > kMaxKept) plans->clear(), kept = 0;
  if (n <= kMaxKept && plans->emplace(n, plan).second) kept += n;
  return plan;
}

// Real lines of an even length n as complex ones of h = n/2: z[j] = x[2j] + i x[2j+1].
template <class T>
class RealFft {
 public:
  using Complex = std::complex<T>;
  explicit RealFft(std::int64_t n) : h_(n / 2), half_(shared_plan<Fft<T>>(h_)) {
    for (std::int64_t k = 0; k <= h_ / 2; ++k) turns_.push_back(root<T>(k, n));
  }
  std::int64_t scratch() const { return h_ + half_->scratch(); }

  // 2 X[k] = (Z[k] + Z*[h-k]) - i w^k (Z[k] - Z*[h-k]), w = exp(-2πi / n); X has h + 1 elements.
  void forward(const T* x, Complex* out, Complex* scratch) const {
    Complex* z = scratch;
    for (std::int64_t j = 0; j < h_; ++j) z[j] = {x[2 * j], x[2 * j + 1]};
    half_->transform(z, scratch + h_, false);
    out[0] = z[0].real() + z[0].imag();
    out[h_] = z[0].real() - z[0].imag();
    constexpr T kHalf = T(0.5);
    for (std::int64_t k = 1; 2 * k <= h_; ++k) {
      const Complex a = z[k], b = std::conj(z[h_ - k]);
      const Complex even = (a + b) * kHalf;
      const Complex odd = mul(turns_[static_cast<std::size_t>(k)], times_minus_i((a - b) * kHalf));
      out[k] = even + odd;
      out[h_ - k] = std::conj(even - odd);
    }
  }

  // n x = the inverse of Z[k] = (X[k] + X*[h-k]) + i w^-k (X[k] - X*[h-k]), times `scale`.
  void inverse(const Complex* x, T* out, T scale, Complex* scratch) const {
    Complex* z = scratch;
    const T first = x[0].real(), last = x[h_].real();
    z[0] = {first + last, first - last};
    for (std::int64_t k = 1; 2 * k <= h_; ++k) {
      const Complex a = x[k], b = std::conj(x[h_ - k]);
      const Complex even = a + b;
      const Complex odd = mul(std::conj(turns_[static_cast<std::size_t>(k)]), a - b);
      const Complex turned = {-odd.imag(), odd.real()};
      z[k] = even + turned;
      z[h_ - k] = std::conj(even - turned);
    }
    half_->transform(z, scratch + h_, true);
    for (std::int64_t j = 0; j < h_; ++j) {
      out[2 * j] = z[j].real() * scale;
      out[2 * j + 1] = z[j].imag() * scale;
    }
  }

 private:
  std::int64_t h_;
  std::shared_ptr<const Fft<T>> half_;
  std::vector<Complex> turns_;  // w^k, k <= h/2
};

// work(line, scratch) for each of `count` lines, over the pool.
template <class T, class Work>
void each_line(std::int64_t count, std::int64_t n, std::int64_t scratch, const Work& work) {
  ThreadPool::global().parallel_for(count, grain_of(n), [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::complex<T>> memory(static_cast<std::size_t>(scratch));
    for (std::int64_t i = begin; i < end; ++i) work(i, memory.data());
  });
}

// A line of a pass over one dimension: `count` elements `stride` apart.
struct Lines {
  std::int64_t outer, inner, in_count, out_count;
};

// Transforms every line of one dimension: load(in, index) -> Complex, store(out, index, Complex).
template <class T, class Load, class Store>
void pass(const Fft<T>& plan, const Lines& l, bool inverse, const Load& load, const Store& store) {
  const std::int64_t n = plan.length();
  each_line<T>(l.outer * l.inner, n, n + plan.scratch(),
               [&](std::int64_t i, std::complex<T>* line) {
                 const std::int64_t o = i / l.inner, q = i % l.inner;
                 load(line, o * l.in_count * l.inner + q);
                 plan.transform(line, line + n, inverse);
                 store(line, o * l.out_count * l.inner + q);
               });
}

template <class T>
void complex_pass(const Fft<T>& plan, const Lines& l, bool inverse, const std::complex<T>* in,
                  std::complex<T>* out, T scale) {
  const std::int64_t n = plan.length(), stride = l.inner;
  pass(
      plan, l, inverse,
      [&](std::complex<T>* line, std::int64_t at) {
        for (std::int64_t j = 0; j < n; ++j) line[j] = in[at + j * stride];
      },
      [&](const std::complex<T>* line, std::int64_t at) {
        if (scale == 1)
          for (std::int64_t j = 0; j < n; ++j) out[at + j * stride] = line[j];
        else
          for (std::int64_t j = 0; j < n; ++j) out[at + j * stride] = line[j] * scale;
      });
}

}  // namespace

template <class T>
void fft(FftKind kind, const void* in, void* out, std::int64_t batch,
         const std::vector<std::int64_t>& length) {
  using Complex = std::complex<T>;
  const std::size_t k = length.size();
  const std::int64_t last = length.back();
  const bool real_in = kind == FftKind::kRfft, real_out = kind == FftKind::kIrfft;
  const bool inverse = kind == FftKind::kIfft || kind == FftKind::kIrfft;
  std::int64_t total = 1, outer_of_last = batch;
  for (std::int64_t n : length) total *= n;
  for (std::size_t i = 0; i + 1 < k; ++i) outer_of_last *= length[i];
  if (batch == 0 || total == 0) return;
  const std::int64_t half = last / 2 + 1;
  const T scale = inverse ? static_cast<T>(1.0L / static_cast<long double>(total)) : T(1);
  const bool halved = (real_in || real_out) && last % 2 == 0;
  const auto row_plan = halved ? nullptr : shared_plan<Fft<T>>(last);
  const auto real_plan = halved ? shared_plan<RealFft<T>>(last) : nullptr;

  // The other dimensions, over rows of `row` complex elements.
  const auto other_passes = [&](const Complex* from, Complex* to, std::int64_t row) {
    std::int64_t inner = row, outer = outer_of_last;
    for (std::size_t i = k - 1; i-- > 0;) {
      const std::int64_t n = length[i];
      outer /= n;
      complex_pass(*shared_plan<Fft<T>>(n), {outer, inner, n, n}, inverse, from, to, T(1));
      from = to;
      inner *= n;
    }
    return from;
  };

  if (real_in) {
    const T* x = static_cast<const T*>(in);
    auto* y = static_cast<Complex*>(out);
    if (halved)
      each_line<T>(outer_of_last, last, real_plan->scratch(),
                   [&](std::int64_t i, Complex* scratch) {
                     real_plan->forward(x + i * last, y + i * half, scratch);
                   });
    else
      pass(
          *row_plan, {outer_of_last, 1, last, half}, false,
          [&](Complex* line, std::int64_t at) {
            for (std::int64_t j = 0; j < last; ++j) line[j] = x[at + j];
          },
          [&](const Complex* line, std::int64_t at) { std::copy(line, line + half, y + at); });
    other_passes(y, y, half);
  } else if (real_out) {
    const auto* x = static_cast<const Complex*>(in);
    auto* y = static_cast<T*>(out);
    std::vector<Complex> work;
    if (k > 1) {
      work.resize(static_cast<std::size_t>(outer_of_last * half));
      x = other_passes(x, work.data(), half);
    }
    // The missing half is the conjugate; what a real result cannot have is left out.
    if (halved)
      each_line<T>(outer_of_last, last, real_plan->scratch(),
                   [&](std::int64_t i, Complex* scratch) {
                     real_plan->inverse(x + i * half, y + i * last, scale, scratch);
                   });
    else
      pass(
          *row_plan, {outer_of_last, 1, half, last}, true,
          [&](Complex* line, std::int64_t at) {
            line[0] = x[at].real();
            for (std::int64_t j = 1; j < half; ++j) line[j] = x[at + j];
            for (std::int64_t j = half; j < last; ++j) line[j] = std::conj(x[at + last - j]);
          },
          [&](const Complex* line, std::int64_t at) {
            for (std::int64_t j = 0; j < last; ++j) y[at + j] = line[j].real() * scale;
          });
  } else {
    const auto* x = static_cast<const Complex*>(in);
    auto* y = static_cast<Complex*>(out);
    complex_pass(*row_plan, {outer_of_last, 1, last, last}, inverse, x, y, scale);
    other_passes(y, y, last);
  }
}

template void fft<float>(FftKind, const void*, void*, std::int64_t,
                         const std::vector<std::int64_t>&);
template void fft<double>(FftKind, const void*, void*, std::int64_t,
                          const std::vector<std::int64_t>&);

}  // namespace xylem::compiler
