#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "xylem/base/dtype.h"

namespace xylem::ir::text {

// How numbers are spelled. Both styles read back to the same bits.
enum class NumberStyle {
  kNative,  // shortest decimal: "0.1", "1", "inf"; NaN as its bits, "0x7FC00000"
  kMlir,    // always with '.' and exponent, "1.000000e-01"; inf, NaN as bits
};

// A double; "0x…" of 16 digits for NaN (and for infinities in MLIR's style).
void append_double(std::string& out, double v, NumberStyle style);
// A double as a constant of a narrower float type, in MLIR's style ("1.000000e+00" of "… : f32").
// Rounds to `dtype` first.
void append_float_literal(std::string& out, double v, DType dtype);
// One element in memory form: "true", "3", "0.5", "(0.5, -1)".
void append_element(std::string& out, DType dtype, const std::byte* element, NumberStyle style);

// Parts of a number's spelling, for the readers.
enum class NumberError { kNone, kForm, kRange };
// Decimal, or the bit pattern 0x… of 64 bits.
NumberError parse_double(std::string_view number, double& out);
// Stores a number as one element of a bool, integer or float type. Floats: decimal, "inf" and
// "nan" with sign, or a bit pattern of at most the type's width. Integers: decimal or 0x; must fit
// the type (a bit pattern of its width fits signed types also).
NumberError parse_element(std::string_view number, DType dtype, std::byte* out);

// "0x" and two digits a byte.
void append_hex(std::string& out, const std::byte* bytes, std::size_t n);
// Decodes digit pairs; false if any is no digit. `hex` has an even length.
bool decode_hex(std::string_view hex, std::byte* out);

}  // namespace xylem::ir::text
