#include "xylem/ir/type.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "xylem/ir/text/cursor.h"
#include "xylem/ir/text/element_text.h"

namespace xylem::ir {
namespace {

std::string dims_text(const Dims& dims) {
  std::string s = "[";
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (i) s += ',';
    s += dims[i] == kDynamic ? std::string("?") : fmt::format("{}", dims[i]);
  }
  return s + ']';
}

void mix(std::size_t& h, std::size_t v) { h = (h ^ v) * 0x9E3779B97F4A7C15ull + (h >> 29); }

std::string mlir_element(DType dtype, const TypeExtra* extra) {
  if (extra && extra->quant) {
    const QuantParams& q = *extra->quant;
    std::string s = fmt::format("!quant.uniform<{}", is_unsigned_int(q.storage)
                                                         ? fmt::format("u{}", dtype_bits(q.storage))
                                                         : std::string(dtype_name(q.storage)));
    if (q.storage_min != 0 || q.storage_max != 0)
      s += fmt::format("<{}:{}>", q.storage_min, q.storage_max);
    s += fmt::format(":{}", dtype_name(dtype));
    if (q.axis >= 0) s += fmt::format(":{}", q.axis);
    s += ", ";
    if (q.axis >= 0) s += '{';
    for (std::size_t i = 0; i < q.scales.size(); ++i) {
      if (i) s += ", ";
      text::append_float_literal(s, q.scales[i], DType::kF64);
      if (q.zero_points[i]) s += fmt::format(":{}", q.zero_points[i]);
    }
    if (q.axis >= 0) s += '}';
    return s + '>';
  }
  switch (dtype) {
    case DType::kC64: return "complex<f32>";
    case DType::kC128: return "complex<f64>";
    default: return dtype_name(dtype);
  }
}

}  // namespace

bool operator==(const TypeExtra& a, const TypeExtra& b) {
  bool same_quant = a.quant == b.quant || (a.quant && b.quant && *a.quant == *b.quant);
  return same_quant && a.bounds == b.bounds && a.encoding == b.encoding && a.name == b.name &&
         a.elements == b.elements && a.space == b.space;
}

Type Type::tensor(DType dtype, Dims dims) {
  Type t;
  t.dtype_ = dtype;
  t.dims_ = std::move(dims);
  return t;
}

Type Type::token() {
  Type t;
  t.kind_ = TypeKind::kToken;
  return t;
}

Type Type::tuple(std::vector<Type> elements) {
  Type t;
  t.kind_ = TypeKind::kTuple;
  auto extra = std::make_shared<TypeExtra>();
  extra->elements = std::move(elements);
  t.extra_ = std::move(extra);
  return t;
}

Type Type::future(std::vector<Type> elements) {
  Type t = tuple(std::move(elements));
  t.kind_ = TypeKind::kFuture;
  return t;
}

Type Type::ref(DType dtype, Dims dims, MemorySpace space) {
  Type t = tensor(dtype, std::move(dims));
  t.kind_ = TypeKind::kRef;
  if (space != MemorySpace::kAny) {
    auto extra = std::make_shared<TypeExtra>();
    extra->space = space;
    t.extra_ = std::move(extra);
  }
  return t;
}

Type Type::key(std::string_view impl, Dims dims) {
  Type t = tensor(DType::kU32, std::move(dims));
  t.kind_ = TypeKind::kKey;
  auto extra = std::make_shared<TypeExtra>();
  extra->name = impl;
  t.extra_ = std::move(extra);
  return t;
}

Type Type::foreign(std::string_view text) {
  Type t;
  t.kind_ = TypeKind::kForeign;
  auto extra = std::make_shared<TypeExtra>();
  extra->name = text;
  t.extra_ = std::move(extra);
  return t;
}

Type Type::with_extra(Type t, TypeExtra extra) {
  if (extra == TypeExtra{}) {
    t.extra_ = nullptr;
  } else {
    t.extra_ = std::make_shared<const TypeExtra>(std::move(extra));
  }
  return t;
}

bool Type::is_static() const { return !dims_.contains(kDynamic); }

Type Type::with_dims(Dims dims) const {
  Type t = *this;
  t.dims_ = std::move(dims);
  return t;
}

Type Type::with_dtype(DType dtype) const {
  Type t = *this;
  t.dtype_ = dtype;
  return t;
}

std::string Type::to_string() const {
  switch (kind_) {
    case TypeKind::kToken: return "token";
    case TypeKind::kTuple:
    case TypeKind::kFuture: {
      std::string s = is_future() ? "future(" : "(";
      for (std::size_t i = 0; i < extra_->elements.size(); ++i) {
        if (i) s += ", ";
        s += extra_->elements[i].to_string();
      }
      return s + ')';
    }
    case TypeKind::kKey: return fmt::format("key<{}>{}", extra_->name, dims_text(dims_));
    case TypeKind::kRef: {
      static constexpr const char* kSpaces[] = {"", ", device", ", scratch", ", scalar"};
      int space = extra_ ? static_cast<int>(extra_->space) : 0;
      return fmt::format("ref<{}{}{}>", dtype_name(dtype_), dims_text(dims_), kSpaces[space]);
    }
    case TypeKind::kForeign: {
      std::string s = "foreign<";
      text::append_quoted(s, extra_->name);
      return s + '>';
    }
    case TypeKind::kTensor: break;
  }
  std::string s = fmt::format("{}{}", dtype_name(dtype_), dims_text(dims_));
  if (extra_) {
    if (!extra_->bounds.empty()) s += fmt::format("<bounds={}>", dims_text(extra_->bounds));
    if (extra_->quant) s += fmt::format("<{}>", mlir_element(dtype_, extra_.get()));
    if (!extra_->encoding.empty()) s += fmt::format("<{}>", extra_->encoding);
  }
  return s;
}

std::string Type::to_mlir() const {
  if (is_token()) return "!stablehlo.token";
  if (is_foreign()) return extra_->name;
  if (is_tuple() || is_future()) {
    std::string s = is_tuple() ? "tuple<" : "!stablehlo.future<";
    for (std::size_t i = 0; i < extra_->elements.size(); ++i) {
      if (i) s += ", ";
      s += extra_->elements[i].to_mlir();
    }
    return s + '>';
  }
  std::string s = is_ref() ? "memref<" : "tensor<";
  for (std::int64_t d : dims_) s += d == kDynamic ? std::string("?x") : fmt::format("{}x", d);
  if (is_key()) s += "2x";  // the words of the key
  s += mlir_element(dtype_, extra_.get());
  if (extra_ && !extra_->bounds.empty()) {
    s += ", #stablehlo.bounds<";
    for (std::size_t i = 0; i < extra_->bounds.size(); ++i) {
      if (i) s += ", ";
      s += extra_->bounds[i] == kDynamic ? std::string("?") : fmt::format("{}", extra_->bounds[i]);
    }
    s += '>';
  } else if (extra_ && !extra_->encoding.empty()) {
    s += fmt::format(", {}", extra_->encoding);
  }
  return s + '>';
}

std::size_t Type::hash() const {
  std::size_t h = static_cast<std::size_t>(kind_) * 131 + static_cast<std::size_t>(dtype_);
  for (std::int64_t d : dims_) mix(h, static_cast<std::size_t>(d));
  if (extra_) {
    for (const Type& t : extra_->elements) mix(h, t.hash());
    mix(h, std::hash<std::string_view>()(extra_->name));
    for (std::int64_t d : extra_->bounds) mix(h, static_cast<std::size_t>(d));
    mix(h, static_cast<std::size_t>(extra_->space));
  }
  return h;
}

}  // namespace xylem::ir
