#include <fmt/format.h>

#include <bit>

#include "xylem/ir/bytecode/artifact_writer.h"
#include "xylem/ir/bytecode/byte_cursor.h"
#include "xylem/ir/bytecode/mixed.h"
#include "xylem/ir/bytecode/type_codes.h"
#include "xylem/ir/quant.h"

// Types.

namespace xylem::ir::bytecode {
namespace {

std::string code(std::uint64_t v) {
  std::string s;
  append_varint(s, v);
  return s;
}

}  // namespace

std::size_t ArtifactWriter::element_type(DType dtype, const TypeExtra* extra) {
  if (extra && extra->quant) {
    const QuantParams& q = *extra->quant;
    bool is_signed = is_signed_int(q.storage);
    // VHLO's storage types are named as signed ones; the sign is a flag.
    DType storage = q.storage;
    switch (dtype_bits(q.storage)) {
      case 2: storage = DType::kI2; break;
      case 4: storage = DType::kI4; break;
      case 8: storage = DType::kI8; break;
      case 16: storage = DType::kI16; break;
      case 32: storage = DType::kI32; break;
      default: break;
    }
    std::string s = code(q.axis < 0 ? kVhloQuantized : kVhloQuantizedPerAxis);
    append_varint(s, is_signed ? 1 : 0);
    append_varint(s, element_type(storage, nullptr));
    append_varint(s, element_type(dtype, nullptr));
    auto [least, greatest] = storage_range(q);
    auto scale = [&](double v) { append_signed_varint(s, std::bit_cast<std::int64_t>(v)); };
    if (q.axis < 0) {
      scale(q.scales.empty() ? 1.0 : q.scales[0]);
      append_signed_varint(s, q.zero_points.empty() ? 0 : q.zero_points[0]);
      append_signed_varint(s, least);
      append_signed_varint(s, greatest);
    } else {
      require({0, 18, 0}, "types quantised per axis", {});
      append_varint(s, static_cast<std::uint64_t>(q.axis));
      append_signed_varint(s, least);
      append_signed_varint(s, greatest);
      append_varint(s, q.scales.size());
      for (double v : q.scales) scale(v);
      append_varint(s, q.zero_points.size());
      for (std::int64_t v : q.zero_points) append_signed_varint(s, v);
    }
    return pools_.type("vhlo", std::move(s));
  }
  if (is_complex(dtype)) {
    std::string s = code(kVhloComplex);
    append_varint(s, element_type(real_dtype(dtype), nullptr));
    return pools_.type("vhlo", std::move(s));
  }
  const ElementCode* e = element_of_dtype(dtype);
  if (!e) {
    refuse({}, "type", "element types are those of StableHLO",
           fmt::format("found {}", dtype_name(dtype)), "Legalise the program first");
    return 0;
  }
  if (e->since > kMinimumVersion) require(e->since, dtype_name(dtype), {});
  return pools_.type("vhlo", code(e->code));
}

std::size_t ArtifactWriter::type(const Type& t) {
  if (is_builtin_typed(t)) return builtin_tensor_type(t);
  if (t.is_token()) return pools_.type("vhlo", code(kVhloToken));
  if (t.is_tuple() || t.is_future()) {
    if (t.is_future()) require({1, 15, 0}, "!stablehlo.future", {});
    std::string s = code(t.is_tuple() ? kVhloTuple : kVhloFuture);
    append_varint(s, t.elements().size());
    for (const Type& e : t.elements()) append_varint(s, type(e));
    return pools_.type("vhlo", std::move(s));
  }
  if (!t.is_tensor() && !t.is_ref()) {
    refuse({}, "type", "types are those of StableHLO", fmt::format("found {}", t.to_string()),
           "Legalise the program first");
    return 0;
  }
  const TypeExtra* extra = t.extra();
  std::string s;
  if (t.is_ref()) {
    require({1, 13, 0}, "buffer types", {});
    s = code(kVhloBuffer);
  } else if (extra && !extra->bounds.empty()) {
    constexpr std::uint64_t kTypeExtensions = 18;
    std::string e = code(kTypeExtensions);
    append_varint(e, extra->bounds.size());
    for (std::int64_t b : extra->bounds) append_signed_varint(e, b);
    s = code(kVhloEncodedTensor);
    append_varint(s, vhlo(std::move(e)));
  } else if (extra && !extra->encoding.empty()) {
    s = code(kVhloEncodedTensor);
    append_varint(s, foreign_attr(extra->encoding));
  } else {
    s = code(kVhloTensor);
  }
  append_varint(s, t.dims().size());
  for (std::int64_t d : t.dims()) append_signed_varint(s, d);
  append_varint(s, element_type(t.dtype(), extra));
  return pools_.type("vhlo", std::move(s));
}

std::size_t ArtifactWriter::function_type(std::span<const Type> inputs,
                                          std::span<const Type> results) {
  std::string s = code(kVhloFunction);
  for (std::span<const Type> list : {inputs, results}) {
    append_varint(s, list.size());
    for (const Type& t : list) append_varint(s, type(t));
  }
  return pools_.type("vhlo", std::move(s));
}

std::size_t ArtifactWriter::named_type(std::string_view text) {
  if (text == "index") return pools_.type("vhlo", code(kVhloIndex));
  if (text == "none") return pools_.type("vhlo", code(kVhloNone));
  if (text == "tf32") {
    require({1, 6, 0}, "tf32", {});
    return pools_.type("vhlo", code(kVhloTf32));
  }
  std::optional<DType> d = parse_dtype(text);
  return d ? element_type(*d, nullptr) : SIZE_MAX;
}

// MLIR's own type of a value that Shardy's ops take or give.
std::size_t ArtifactWriter::builtin_tensor_type(const Type& t) {
  if (t.is_token()) return pools_.type("stablehlo", code(0));
  if (!t.is_tensor() || t.quant()) {
    refuse({}, "type", "Shardy's ops take tensors", fmt::format("found {}", t.to_mlir()),
           "Move the op to another value");
    return 0;
  }
  const TypeExtra& extra = *t.extra();
  std::string encoding = extra.encoding;
  for (std::int64_t b : extra.bounds)
    encoding += fmt::format("{}{}", encoding.empty() ? "#stablehlo.bounds<" : ", ",
                            b == kDynamic ? std::string("?") : fmt::format("{}", b));
  if (!extra.bounds.empty()) encoding += '>';
  std::string s = code(encoding.empty() ? 13 : 14);
  if (!encoding.empty())
    append_varint(s, pools_.attr_text(encoding[0] == '#' ? std::string_view(encoding).substr(
                                                               1, encoding.find_first_of(".<") - 1)
                                                         : "builtin",
                                      encoding));
  append_varint(s, t.dims().size());
  for (std::int64_t d : t.dims()) append_signed_varint(s, d);
  append_varint(s, builtin_type(t.dtype()));
  return pools_.type("builtin", std::move(s));
}

std::size_t ArtifactWriter::builtin_type(DType dtype) {
  std::string s;
  switch (dtype) {
    case DType::kBF16: s = code(3); break;
    case DType::kF16: s = code(4); break;
    case DType::kF32: s = code(5); break;
    case DType::kF64: s = code(6); break;
    case DType::kF8E5M2: s = code(22); break;
    case DType::kF8E4M3: s = code(23); break;
    case DType::kF8E4M3FN: s = code(24); break;
    case DType::kF8E5M2FNUZ: s = code(25); break;
    case DType::kF8E4M3FNUZ: s = code(26); break;
    case DType::kF8E4M3B11FNUZ: s = code(27); break;
    case DType::kF8E3M4: s = code(28); break;
    case DType::kF4E2M1FN: s = code(29); break;
    case DType::kF6E2M3FN: s = code(30); break;
    case DType::kF6E3M2FN: s = code(31); break;
    case DType::kF8E8M0FNU: s = code(32); break;
    case DType::kC64:
    case DType::kC128:
      s = code(9);
      append_varint(s, builtin_type(real_dtype(dtype)));
      break;
    default:
      s = code(0);
      append_varint(s, static_cast<std::uint64_t>(dtype_bits(dtype)) << 2 |
                           (is_unsigned_int(dtype) ? 2u : 0u));
  }
  return pools_.type("builtin", std::move(s));
}

}  // namespace xylem::ir::bytecode
