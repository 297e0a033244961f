#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>

#include "xylem/base/error.h"
#include "xylem/ir/bytecode/type_codes.h"
#include "xylem/ir/bytecode/value_reader.h"
#include "xylem/ir/quant.h"
#include "xylem/ir/text/mlir_reader.h"
#include "xylem/ir/text/stablehlo_attrs.h"

// Types.

namespace xylem::ir::bytecode {
namespace {

constexpr const char* kDamaged = "The file is damaged: write it again";
constexpr std::uint64_t kMaxTypeNodes = 1 << 20;

FileType element(DType dtype) {
  FileType t;
  t.kind = FileType::Kind::kElement;
  t.type = Type::tensor(dtype);
  return t;
}

FileType value(Type type) {
  FileType t;
  t.kind = FileType::Kind::kValue;
  t.type = std::move(type);
  return t;
}

FileType other(std::string text) {
  FileType t;
  t.text = std::move(text);
  return t;
}

std::optional<DType> integer_dtype(std::uint64_t width, bool is_unsigned) {
  switch (width) {
    case 1: return is_unsigned ? std::nullopt : std::optional(DType::kBool);
    case 2: return is_unsigned ? DType::kU2 : DType::kI2;
    case 4: return is_unsigned ? DType::kU4 : DType::kI4;
    case 8: return is_unsigned ? DType::kU8 : DType::kI8;
    case 16: return is_unsigned ? DType::kU16 : DType::kI16;
    case 32: return is_unsigned ? DType::kU32 : DType::kI32;
    case 64: return is_unsigned ? DType::kU64 : DType::kI64;
    default: return std::nullopt;
  }
}

}  // namespace

const FileType& ValueReader::file_type(std::size_t index) {
  State& state = type_states_[index];
  if (state == State::kRead) return types_[index];
  const Part& part = frame_.types[index].part;
  if (state == State::kBusy)
    source_.fail(part.begin, "type", "types do not contain themselves",
                 fmt::format("type {} does", index), kDamaged);
  Nesting nesting(*this, part.begin);
  state = State::kBusy;
  types_[index] = read_type(index);
  state = State::kRead;
  return types_[index];
}

const Type& ValueReader::type(std::size_t index, std::size_t at) {
  const FileType& t = file_type(index);
  if (t.kind == FileType::Kind::kOther && !t.text.empty())
    source_.fail(at, "type", "types are tensor, tuple, memref, token and future",
                 fmt::format("found {}", t.text), "Use one of them");
  if (t.kind != FileType::Kind::kValue)
    source_.fail(at, "type", "the type of a value", "an element, function or none type", kDamaged);
  return t.type;
}

FileType ValueReader::read_type(std::size_t index) {
  const Entry& e = frame_.types[index];
  ByteCursor c(source_, e.part.begin, e.part.end);
  if (!e.custom) {
    std::string text(c.c_string("type text"));
    return type_from_text(text, e.part.begin);
  }
  FileType t;
  switch (e.dialect) {
    case Dialect::kBuiltin: t = read_builtin_type(c); break;
    case Dialect::kVhlo: t = read_vhlo_type(c); break;
    case Dialect::kStablehlo: {
      std::uint64_t code = c.varint("type");
      if (code > 1)
        source_.fail(e.part.begin, "type", "a code of StableHLO's types",
                     fmt::format("code {}", code), kDamaged);
      t = code == 0 ? value(Type::token()) : read_tuple(c, true);
      break;
    }
    default:
      source_.fail(e.part.begin, "type", "types are those of builtin, stablehlo and vhlo",
                   fmt::format("one of '{}'", frame_.dialects[e.dialect_index]),
                   "Legalise the program to StableHLO");
  }
  if (!c.done()) c.fail("type", "its bytes end with it", "bytes are left", kDamaged);
  std::uint64_t weight = 1;
  auto add = [&](std::size_t part) {
    file_type(part);  // what contains itself is found
    weight += type_weights_[part];
  };
  if (t.kind == FileType::Kind::kValue && (t.type.is_tuple() || t.type.is_future())) {
    // The parts are the varints behind code and count; they have been read.
    ByteCursor again(source_, e.part.begin, e.part.end);
    again.varint("type");
    std::size_t n = again.count("tuple");
    for (std::size_t i = 0; i < n; ++i) add(type_ref(again));
  }
  for (const auto* list : {&t.inputs, &t.results})
    for (std::uint32_t part : *list) add(part);
  if (weight > kMaxTypeNodes)
    source_.fail(e.part.begin, "type", fmt::format("it has at most {} parts", kMaxTypeNodes),
                 "shared parts multiply beyond that", "Write a smaller type");
  type_weights_[index] = weight;
  return t;
}

// Assembly text of a type whose dialect has no encoding for it.
FileType ValueReader::type_from_text(const std::string& text, std::size_t at) {
  ParseOptions options;
  bool whole = text.starts_with("tensor<") || text.starts_with("memref<") ||
               text.starts_with("tuple<") || text.starts_with("!stablehlo.");
  std::string wrapped = whole ? text : fmt::format("tensor<{}>", text);
  try {
    text::MlirReader reader(wrapped, source_.name, options);
    Type t = reader.read_type();
    if (reader.cursor().at_end()) {
      if (whole) return value(std::move(t));
      FileType e = element(t.dtype());
      e.type = std::move(t);
      return e;
    }
  } catch (const UserError& e) {
    if (whole)
      source_.fail(at, "type", "a type's text", fmt::format("{} ({})", text, e.message()),
                   kDamaged);
  }
  return other(text);
}

FileType ValueReader::read_complex(ByteCursor& c) {
  std::size_t at = c.pos();
  const FileType& part = file_type(type_ref(c));
  DType d = part.type.dtype();
  if (part.kind != FileType::Kind::kElement || part.type.extra() ||
      (d != DType::kF32 && d != DType::kF64))
    source_.fail(at, "complex type", "the parts are f32 or f64", "another type",
                 "Use complex<f32> or complex<f64>");
  return element(complex_dtype(d));
}

FileType ValueReader::read_function_type(ByteCursor& c) {
  FileType t;
  t.kind = FileType::Kind::kFunction;
  for (auto* list : {&t.inputs, &t.results}) {
    std::size_t n = c.count("function type");
    for (std::size_t i = 0; i < n; ++i) list->push_back(static_cast<std::uint32_t>(type_ref(c)));
  }
  return t;
}

FileType ValueReader::read_tuple(ByteCursor& c, bool future) {
  std::vector<Type> elements;
  std::size_t n = c.count("tuple");
  for (std::size_t i = 0; i < n; ++i) {
    std::size_t at = c.pos();
    elements.push_back(type(type_ref(c), at));
  }
  return value(future ? Type::future(std::move(elements)) : Type::tuple(std::move(elements)));
}

void ValueReader::read_encoding(std::size_t index, const Type& t, TypeExtra& extra,
                                std::size_t at) {
  const Entry& e = frame_.attrs[index];
  ByteCursor c(source_, e.part.begin, e.part.end);
  bool vhlo = e.custom && e.dialect == Dialect::kVhlo;
  bool stablehlo = e.custom && e.dialect == Dialect::kStablehlo;
  constexpr std::uint64_t kVhloExtensions = 18, kStablehloExtensions = 13;
  if ((vhlo || stablehlo) &&
      c.varint("encoding") == (vhlo ? kVhloExtensions : kStablehloExtensions)) {
    extra.bounds = read_dims(c);
    if (extra.bounds.size() != t.dims().size())
      source_.fail(at, "bounds", fmt::format("there is one entry per dimension ({})", t.rank()),
                   fmt::format("found {}", extra.bounds.size()), kDamaged);
    return;
  }
  text::append_mlir_attr(extra.encoding, attr(index, Mode::kForeign));
}

FileType ValueReader::read_shaped(ByteCursor& c, bool memref, bool encoded) {
  std::size_t at = c.pos();
  std::size_t encoding = encoded ? attr_ref(c) : 0;
  Dims dims;
  std::size_t rank = c.count("dimensions");
  std::int64_t elements = 1;
  for (std::size_t i = 0; i < rank; ++i) {
    std::size_t dim_at = c.pos();
    std::int64_t d = c.signed_varint("dimension");
    if (d < 0 && d != kDynamic)
      source_.fail(dim_at, "type", "dimensions are not negative", fmt::format("{}", d), kDamaged);
    // Sizes of whole tensors must fit also in bytes.
    if (d > 0 && (__builtin_mul_overflow(elements, d, &elements) || elements > INT64_MAX / 16))
      source_.fail(dim_at, "type", "the size of a tensor fits 63 bits", "this one is larger",
                   "Use smaller dimensions");
    dims.push_back(d);
  }
  std::size_t element_at = c.pos();
  const FileType& e = file_type(type_ref(c));
  if (!e.is_element() || e.is_signed)
    source_.fail(element_at, "type", "expected an element type of StableHLO",
                 e.text.empty() ? "another type" : fmt::format("found '{}'", e.text),
                 "Use i1, i8, ui8, f32, bf16, complex<f32>, …");
  FileType t;
  t.kind = FileType::Kind::kValue;
  if (e.kind == FileType::Kind::kIndex) t.text = "index";
  if (memref) {
    t.type = Type::ref(e.type.dtype(), dims);
    return t;
  }
  t.type = Type::tensor(e.type.dtype(), dims);
  TypeExtra extra = e.type.extra() ? *e.type.extra() : TypeExtra();
  if (encoded) read_encoding(encoding, t.type, extra, at);
  t.type = Type::with_extra(std::move(t.type), std::move(extra));
  return t;
}

// flags, storage, expressed, then scale, zero point, smallest and largest value; per axis: axis,
// smallest and largest value, scales, zero points.
FileType ValueReader::read_quantized(ByteCursor& c, bool per_axis) {
  std::size_t at = c.pos();
  std::uint64_t flags = c.varint("quantized type");
  const FileType storage = file_type(type_ref(c));
  const FileType expressed = file_type(type_ref(c));
  bool good = storage.kind == FileType::Kind::kElement && is_integer(storage.type.dtype()) &&
              expressed.kind == FileType::Kind::kElement && is_float(expressed.type.dtype()) &&
              !storage.type.extra() && !expressed.type.extra();
  if (!good)
    source_.fail(at, "quantized type", "integers that stand for floats", "other types", kDamaged);
  QuantParams q;
  // The sign is the flags', whatever VHLO's storage type is called.
  q.storage = *integer_dtype(static_cast<std::uint64_t>(dtype_bits(storage.type.dtype())),
                             (flags & 1) == 0);
  if (per_axis) {
    std::uint64_t axis = c.varint("quantized axis");
    if (axis > INT32_MAX)
      source_.fail(at, "quantized type", "an axis of its tensor", fmt::format("{}", axis),
                   kDamaged);
    q.axis = static_cast<int>(axis);
    q.storage_min = c.signed_varint("storage minimum");
    q.storage_max = c.signed_varint("storage maximum");
    std::size_t n = c.count("scales");
    for (std::size_t i = 0; i < n; ++i) q.scales.push_back(read_double(c));
    std::size_t m = c.count("zero points");
    for (std::size_t i = 0; i < m; ++i) q.zero_points.push_back(c.signed_varint("zero point"));
    if (n != m)
      source_.fail(at, "quantized type", "as many scales as zero points",
                   fmt::format("{} and {}", n, m), kDamaged);
  } else {
    q.scales.push_back(read_double(c));
    q.zero_points.push_back(c.signed_varint("zero point"));
    q.storage_min = c.signed_varint("storage minimum");
    q.storage_max = c.signed_varint("storage maximum");
  }
  // The whole range is not written out.
  auto [least, greatest] = storage_range({.storage = q.storage});
  if (q.storage_min == least && q.storage_max == greatest) q.storage_min = q.storage_max = 0;
  FileType t = element(expressed.type.dtype());
  TypeExtra extra;
  extra.quant = std::make_shared<const QuantParams>(std::move(q));
  t.type = Type::with_extra(std::move(t.type), std::move(extra));
  return t;
}

FileType ValueReader::read_builtin_type(ByteCursor& c) {
  std::size_t at = c.pos();
  std::uint64_t code = c.varint("type");
  switch (code) {
    case 0: {
      std::uint64_t v = c.varint("integer type");
      std::uint64_t width = v >> 2, sign = v & 3;
      std::optional<DType> d = integer_dtype(width, sign == 2);
      if (!d || sign == 3 || (sign == 1 && width == 1))
        return other(fmt::format("{}i{}", sign == 1 ? "s" : sign == 2 ? "u" : "", width));
      FileType t = element(*d);
      t.is_signed = sign == 1;
      return t;
    }
    case 1: {
      FileType t = element(DType::kI64);
      t.kind = FileType::Kind::kIndex;
      return t;
    }
    case 2: return read_function_type(c);
    case 3: return element(DType::kBF16);
    case 4: return element(DType::kF16);
    case 5: return element(DType::kF32);
    case 6: return element(DType::kF64);
    case 7: return other("f80");
    case 8: return other("f128");
    case 9: return read_complex(c);
    case 10: {
      FileType t = read_shaped(c, true, false);
      attr_ref(c);  // its layout
      return t;
    }
    case 12: {
      FileType t;
      t.kind = FileType::Kind::kNone;
      return t;
    }
    case 13: return read_shaped(c, false, false);
    case 14: return read_shaped(c, false, true);
    case 15: return read_tuple(c, false);
    case 18:
      source_.fail(at, "type", "tensors have a rank", "found an unranked tensor",
                   "Give its dimensions");
    case 21: return other("tf32");
    case 22: return element(DType::kF8E5M2);
    case 23: return element(DType::kF8E4M3);
    case 24: return element(DType::kF8E4M3FN);
    case 25: return element(DType::kF8E5M2FNUZ);
    case 26: return element(DType::kF8E4M3FNUZ);
    case 27: return element(DType::kF8E4M3B11FNUZ);
    case 28: return element(DType::kF8E3M4);
    case 29: return element(DType::kF4E2M1FN);
    case 30: return element(DType::kF6E2M3FN);
    case 31: return element(DType::kF6E3M2FN);
    case 32: return element(DType::kF8E8M0FNU);
    default: break;
  }
  source_.fail(at, "type", "a builtin type that StableHLO programs use",
               fmt::format("code {}", code), "Legalise the program to StableHLO");
}

FileType ValueReader::read_vhlo_type(ByteCursor& c) {
  std::size_t at = c.pos();
  std::uint64_t code = c.varint("type");
  if (const ElementCode* e = element_of_code(code)) return element(e->dtype);
  switch (code) {
    case kVhloComplex: return read_complex(c);
    case kVhloFunction: return read_function_type(c);
    case kVhloIndex: {
      FileType t = element(DType::kI64);
      t.kind = FileType::Kind::kIndex;
      return t;
    }
    case kVhloTensor: return read_shaped(c, false, false);
    case kVhloEncodedTensor: return read_shaped(c, false, true);
    case kVhloToken: return value(Type::token());
    case kVhloTuple: return read_tuple(c, false);
    case kVhloQuantized: return read_quantized(c, false);
    case kVhloQuantizedPerAxis: return read_quantized(c, true);
    case kVhloUnrankedTensor:
      source_.fail(at, "type", "tensors have a rank", "found an unranked tensor",
                   "Give its dimensions");
    case kVhloNone: {
      FileType t;
      t.kind = FileType::Kind::kNone;
      return t;
    }
    case kVhloTf32: return other("tf32");
    case kVhloBuffer: return read_shaped(c, true, false);
    case kVhloFuture: return read_tuple(c, true);
    default: break;
  }
  source_.fail(at, "type", "a code of VHLO's types", fmt::format("code {}", code),
               "The file is newer than StableHLO 1.20, or damaged");
}

}  // namespace xylem::ir::bytecode
