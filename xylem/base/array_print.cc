#include "xylem/base/internal/array_print.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "xylem/base/dtype_cast.h"
#include "xylem/base/float_types.h"

// Follows NumPy 2.4's arrayprint.py with default options: 8 digits at most and the shortest ones
// that identify the value in its own type, 75 columns, summary above 1,000 elements.

namespace xylem::internal {
namespace {

constexpr int kPrecision = 8;
constexpr int kEdgeItems = 3;
constexpr std::int64_t kThreshold = 1000;
constexpr std::size_t kLineWidth = 75;

// The shortest decimal that reads back as the same value of type t, in the form "-d.ddde+xx".
std::string shortest_scientific(double v, DType t) {
  char buffer[64];
  char* end = buffer;
  if (t == DType::kF64) {
    end = std::to_chars(buffer, buffer + 64, v, std::chars_format::scientific).ptr;
  } else if (t == DType::kF32) {
    end = std::to_chars(buffer, buffer + 64, static_cast<float>(v), std::chars_format::scientific)
              .ptr;
  } else {
    // f16: five digits always suffice. At a power of two the interval that reads back is wider
    // above, so a tie between two decimals may have to go up.
    const double up = std::nextafter(v, v < 0 ? -1e9 : 1e9);
    const auto reads_back = [&](double shown, int precision) {
      end = std::to_chars(buffer, buffer + 64, shown, std::chars_format::scientific, precision).ptr;
      double back = 0;
      std::from_chars(buffer, end, back);
      return f16(back).bits == f16(v).bits;
    };
    for (int p = 0; p < 5; ++p)
      if (reads_back(v, p) || (v != 0 && reads_back(up, p))) break;
  }
  return {buffer, end};
}

std::string exact(double v, std::chars_format format, int precision) {
  char buffer[400];
  return {buffer, std::to_chars(buffer, buffer + 400, v, format, precision).ptr};
}

// Removes the zeros after the point; the point stays and is added where it is missing.
void trim_fraction(std::string& s) {
  if (s.find('.') == std::string::npos)
    s += '.';
  else
    s.erase(s.find_last_not_of('0') + 1);
}

// "ddd.ddd" with at most `precision` digits behind the point; -1: as many as needed.
std::string positional(double v, DType t, int precision) {
  const std::string s = shortest_scientific(v, t);
  const std::size_t e = s.find('e');
  const int exponent = std::stoi(s.substr(e + 1));
  std::string digits;
  for (char c : s.substr(0, e))
    if (c >= '0' && c <= '9') digits += c;
  const int fraction = static_cast<int>(digits.size()) - 1 - exponent;
  std::string out;
  if (precision >= 0 && fraction > precision) {
    out = exact(std::fabs(v), std::chars_format::fixed, precision);
  } else {
    // The digits of the shortest form, zeros around them.
    if (exponent < 0)
      digits.insert(0, static_cast<std::size_t>(-exponent), '0');
    else if (fraction < 0)
      digits.append(static_cast<std::size_t>(-fraction), '0');
    digits.insert(static_cast<std::size_t>(std::max(exponent, 0)) + 1, 1, '.');
    out = digits;
  }
  trim_fraction(out);
  return std::signbit(v) ? "-" + out : out;
}

// Mantissa "d.ddd" without trailing zeros, of at most `precision` digits behind the point.
std::string scientific(double v, DType t, int precision) {
  std::string s = shortest_scientific(v, t);
  std::size_t e = s.find('e');
  const std::size_t point = s.find('.');
  const int fraction = point == std::string::npos ? 0 : static_cast<int>(e - point) - 1;
  if (precision >= 0 && fraction > precision) {
    s = exact(v, std::chars_format::scientific, precision);
    e = s.find('e');
  }
  std::string mantissa = s.substr(0, e);
  trim_fraction(mantissa);
  return mantissa + s.substr(e);
}

// NumPy's bounds for positional notation: of arrays, and of scalars.
double array_cutoff(DType t) { return t == DType::kF64 ? 1e8 : t == DType::kF32 ? 1e6 : 1e3; }
double scalar_cutoff(DType t) { return t == DType::kF64 ? 1e16 : t == DType::kF32 ? 1e6 : 1e3; }

class FloatFormat {
 public:
  // `plus`: positive numbers have a sign, as imaginary parts have.
  FloatFormat(const std::vector<double>& data, DType t, bool plus) : type_(t), plus_(plus) {
    double max = 0;
    double min = std::numeric_limits<double>::infinity();
    std::vector<double> finite;
    bool negative_infinity = plus;
    for (double v : data) {
      if (!std::isfinite(v)) {
        negative_infinity = negative_infinity || (std::isinf(v) && v < 0);
        continue;
      }
      finite.push_back(v);
      if (v == 0) continue;
      max = std::max(max, std::fabs(v));
      min = std::min(min, std::fabs(v));
    }
    scientific_ = max > 0 && (max >= array_cutoff(t) || min < 0.0001 || ratio(max, min) > 1000);
    if (scientific_) precision_ = 0;
    for (double v : finite) {
      const std::string s =
          with_sign(v, scientific_ ? scientific(v, t, kPrecision) : positional(v, t, kPrecision));
      const std::size_t point = s.find('.');
      left_ = std::max(left_, point);
      if (scientific_) {
        const std::size_t e = s.find('e');
        precision_ = std::max(precision_, static_cast<int>(e - point) - 1);
        exponent_digits_ = std::max(exponent_digits_, s.size() - e - 2);
      } else {
        right_ = std::max(right_, s.size() - point - 1);
      }
    }
    if (scientific_) right_ = exponent_digits_ + 2 + static_cast<std::size_t>(precision_);
    if (finite.size() != data.size()) {
      const std::size_t widest = std::max<std::size_t>(3, 3 + (negative_infinity ? 1 : 0));
      const std::size_t offset = right_ + 1;
      if (widest > offset) left_ = std::max(left_, widest - offset);
    }
  }

  std::string operator()(double v) const {
    if (!std::isfinite(v)) {
      std::string s = std::isnan(v) ? "nan" : "inf";
      if (std::isinf(v) && v < 0)
        s = "-" + s;
      else if (plus_)
        s = "+" + s;
      const std::size_t width = left_ + right_ + 1;
      return s.size() < width ? std::string(width - s.size(), ' ') + s : s;
    }
    std::string s;
    if (scientific_) {
      // Digits beyond the shortest form are the value's own, not zeros.
      s = shortest_scientific(v, type_);
      const std::size_t point = s.find('.');
      const int fraction =
          point == std::string::npos ? 0 : static_cast<int>(s.find('e') - point) - 1;
      if (fraction != precision_) s = exact(v, std::chars_format::scientific, precision_);
      const std::size_t e = s.find('e');
      std::string exponent = s.substr(e + 2);
      exponent.insert(0, exponent_digits_ - std::min(exponent_digits_, exponent.size()), '0');
      s = (precision_ == 0 ? s.substr(0, e) + "." : s.substr(0, e)) + s.substr(e, 2) + exponent;
    } else {
      s = positional(v, type_, kPrecision);
      const std::size_t fraction = s.size() - s.find('.') - 1;
      s.append(right_ - fraction, ' ');
    }
    s = with_sign(v, std::move(s));
    const std::size_t point = s.find('.');
    return std::string(left_ - std::min(left_, point), ' ') + s;
  }

 private:
  // NumPy divides in the array's own type, where the quotient may round or overflow.
  double ratio(double max, double min) const {
    if (type_ == DType::kF64) return max / min;
    if (type_ == DType::kF32) return static_cast<float>(max) / static_cast<float>(min);
    return static_cast<double>(f16(static_cast<float>(max) / static_cast<float>(min)));
  }
  std::string with_sign(double v, std::string s) const {
    return plus_ && !std::signbit(v) ? "+" + s : s;
  }

  DType type_;
  bool plus_;
  bool scientific_ = false;
  int precision_ = kPrecision;
  std::size_t left_ = 0;
  std::size_t right_ = 0;
  std::size_t exponent_digits_ = 0;
};

// Digits of a scalar: without padding, "1.0" and "1e+16"; `bare` drops ".0" (parts of complex).
std::string print_scalar_float(double v, DType t, bool bare) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  const double a = std::fabs(v);
  if (a == 0 || (a >= 1e-4 && a < scalar_cutoff(t))) {
    std::string s = positional(v, t, -1);
    if (s.back() == '.') bare ? s.pop_back() : s.push_back('0');
    return s;
  }
  std::string s = scientific(v, t, -1);
  const std::size_t e = s.find('e');
  return s[e - 1] == '.' ? s.erase(e - 1, 1) : s;
}

// Elements of a contiguous array as text.
class Formatter {
 public:
  Formatter(const HostArray& a, const std::vector<std::int64_t>& sample) : a_(a) {
    const DType t = a.dtype();
    if (t == DType::kF16 || t == DType::kF32 || t == DType::kF64) {
      floats_.emplace_back(parts(sample, 0), t, false);
    } else if (is_complex(t)) {
      floats_.emplace_back(parts(sample, 0), real_dtype(t), false);
      floats_.emplace_back(parts(sample, 1), real_dtype(t), true);
    } else if (is_integer(t) && dtype_bits(t) >= 8) {
      for (std::int64_t i : sample) width_ = std::max(width_, integer(i).size());
    }
  }

  std::string operator()(std::int64_t i) const {
    const DType t = a_.dtype();
    if (is_bool(t)) return part(i, 0) != 0 ? " True" : "False";
    if (floats_.size() == 1) return floats_[0](part(i, 0));
    if (floats_.size() == 2) {
      std::string imaginary = floats_[1](part(i, 1));
      imaginary.insert(imaginary.find_last_not_of(' ') + 1, 1, 'j');
      return floats_[0](part(i, 0)) + imaginary;
    }
    if (is_integer(t)) {
      const std::string s = integer(i);
      return std::string(width_ - std::min(width_, s.size()), ' ') + s;
    }
    return narrow(i);
  }

  std::string scalar() const {
    const DType t = a_.dtype();
    if (is_bool(t)) return part(0, 0) != 0 ? "True" : "False";
    if (is_integer(t)) return integer(0);
    if (t == DType::kF16 || t == DType::kF32 || t == DType::kF64)
      return print_scalar_float(part(0, 0), t, false);
    if (!is_complex(t)) return narrow(0);
    const double re = part(0, 0);
    const double im = part(0, 1);
    std::string s = print_scalar_float(im, real_dtype(t), true) + "j";
    if (re == 0 && !std::signbit(re)) return s;
    if (s[0] != '-') s = "+" + s;
    return "(" + print_scalar_float(re, real_dtype(t), true) + s + ")";
  }

 private:
  const std::byte* at(std::int64_t i) const { return a_.data() + i * dtype_bytes(a_.dtype()); }
  double part(std::int64_t i, int imaginary) const {
    const DType real = real_dtype(a_.dtype());
    return element_to_double(real, at(i) + imaginary * dtype_bytes(real));
  }
  std::vector<double> parts(const std::vector<std::int64_t>& sample, int imaginary) const {
    std::vector<double> v;
    for (std::int64_t i : sample) v.push_back(part(i, imaginary));
    return v;
  }
  std::string integer(std::int64_t i) const {
    if (is_unsigned_int(a_.dtype())) {
      std::uint64_t v = 0;
      convert_elements(a_.dtype(), at(i), DType::kU64, &v, 1);
      return fmt::format("{}", v);
    }
    std::int64_t v = 0;
    convert_elements(a_.dtype(), at(i), DType::kI64, &v, 1);
    return fmt::format("{}", v);
  }
  // The types of ml_dtypes print as C++ streams do.
  std::string narrow(std::int64_t i) const {
    if (a_.dtype() == DType::kFloat0) return "(False,)";
    const double v = part(i, 0);
    return std::isnan(v) ? "nan" : fmt::format("{:g}", v);
  }

  const HostArray& a_;
  std::vector<FloatFormat> floats_;
  std::size_t width_ = 0;
};

class Printer {
 public:
  Printer(const HostArray& a, bool summarise, const Formatter& format)
      : a_(a), summarise_(summarise), format_(format), strides_(row_major_strides(a.dims())) {}

  std::string print(std::size_t axis, std::int64_t at, const std::string& indent,
                    std::size_t width) const {
    const std::size_t left = a_.dims().size() - axis;
    if (left == 0) return format_(at);
    const std::int64_t n = a_.dims()[axis];
    const bool summary = summarise_ && 2 * kEdgeItems < n;
    const std::string next_indent = indent + ' ';
    std::string out;
    std::string line = indent;
    for (std::int64_t i = 0; i < n; ++i) {
      const bool last = i + 1 == n;
      const bool gap = summary && i == kEdgeItems;
      if (gap) i = n - kEdgeItems - 1;
      if (left == 1) {
        const std::string word = gap ? "..." : print(axis + 1, at + i, next_indent, width - 1);
        // Full lines break, unless nothing stands on the line yet.
        if (line.size() + word.size() > width - 1 && line.size() > indent.size()) {
          out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
          line = indent;
        }
        line += word;
        if (!last) line += ' ';
      } else {
        out += indent;
        out += gap ? "..." : print(axis + 1, at + i * strides_[axis], next_indent, width - 1);
        if (!last) out.append(left - 1, '\n');
      }
    }
    if (left == 1) out += line;
    return "[" + out.substr(std::min(indent.size(), out.size())) + "]";
  }

 private:
  const HostArray& a_;
  bool summarise_;
  const Formatter& format_;
  Dims strides_;
};

// Flat indices of the elements that are shown.
void collect(const Dims& dims, const Dims& strides, std::size_t axis, std::int64_t at,
             bool summarise, std::vector<std::int64_t>& out) {
  if (axis == dims.size()) {
    out.push_back(at);
    return;
  }
  for (std::int64_t i = 0; i < dims[axis]; ++i) {
    if (summarise && 2 * kEdgeItems < dims[axis] && i == kEdgeItems) i = dims[axis] - kEdgeItems;
    collect(dims, strides, axis + 1, at + i * strides[axis], summarise, out);
  }
}

}  // namespace

std::string print_array(const HostArray& a) {
  if (a.rank() == 0) return Formatter(a, {}).scalar();
  if (a.size() == 0) return "[]";
  const bool summarise = a.size() > kThreshold;
  std::vector<std::int64_t> shown;
  collect(a.dims(), row_major_strides(a.dims()), 0, 0, summarise, shown);
  const Formatter format(a, shown);
  return Printer(a, summarise, format).print(0, 0, " ", kLineWidth);
}

}  // namespace xylem::internal
