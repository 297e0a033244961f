#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <vector>

namespace xylem::compiler {

// The discrete Fourier transform of complex lines of one length:
//
//   out[k] = sum_j in[j] exp(∓ 2πi j k / n)
//
// without scaling. Lengths whose prime factors are at most 13 take a Stockham transform of mixed
// radix, others Bluestein's convolution. Twiddles are rounded from long double. Immutable, so one
// plan serves any number of threads. T: float or double.
template <class T>
class Fft {
 public:
  using Complex = std::complex<T>;

  // n >= 1.
  explicit Fft(std::int64_t n);
  ~Fft();

  std::int64_t length() const { return n_; }
  // Elements of scratch memory that a transform needs.
  std::int64_t scratch() const;
  // In place on n elements; `inverse` takes the sign + in the exponent.
  void transform(Complex* line, Complex* scratch, bool inverse) const;

 private:
  struct Bluestein;
  void stockham(Complex* line, Complex* scratch) const;

  std::int64_t n_;
  std::vector<int> factors_;
  std::vector<Complex> twiddles_;  // per stage: for p < m, k = 1 … r-1: exp(-2πi p k / (r m))
  std::vector<Complex> roots_;     // per stage: exp(-2πi j / r), j < r
  std::unique_ptr<Bluestein> bluestein_;
};

extern template class Fft<float>;
extern template class Fft<double>;

enum class FftKind : std::uint8_t { kFft, kIfft, kRfft, kIrfft };

// StableHLO's fft on row-major arrays [batch, d0, … dk-1], 1 to 3 transformed dimensions of sizes
// `length` (those of the real side): FFT and IFFT map complex to complex, RFFT real to the first
// d/2 + 1 of the last dimension, IRFFT back. Inverses are divided by the number of elements.
// Lines are spread over the process's pool.
template <class T>
void fft(FftKind kind, const void* in, void* out, std::int64_t batch,
         const std::vector<std::int64_t>& length);

extern template void fft<float>(FftKind, const void*, void*, std::int64_t,
                                const std::vector<std::int64_t>&);
extern template void fft<double>(FftKind, const void*, void*, std::int64_t,
                                 const std::vector<std::int64_t>&);

}  // namespace xylem::compiler
