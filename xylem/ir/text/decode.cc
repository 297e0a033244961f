#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "xylem/base/error.h"
#include "xylem/ir/op_def.h"
#include "xylem/ir/text.h"
#include "xylem/ir/text/cursor.h"
#include "xylem/ir/text/encoding.h"

namespace xylem::ir {
namespace text {
namespace {

class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : bytes_(bytes) {}

  GraphPtr decode() {
    if (take(sizeof kEncodingMagic) != std::string_view(kEncodingMagic, sizeof kEncodingMagic))
      fail("the bytes start with \"XYIR\"", "they start otherwise");
    std::uint8_t version = byte();
    if (version != kEncodingVersion)
      fail(fmt::format("the version is {}", kEncodingVersion), fmt::format("it is {}", version));
    for (std::size_t n = count(); n > 0; --n) strings_.push_back(take(count()));
    for (std::size_t n = count(); n > 0; --n) types_.push_back(type(0));
    std::size_t n = count();
    if (n == 0) fail("there is at least one graph", "there is none");
    for (; n > 0; --n) graphs_.push_back(graph());
    if (pos_ != bytes_.size())
      fail("nothing follows the graphs", fmt::format("{} bytes do", bytes_.size() - pos_));
    return graphs_.back().graph;
  }

 private:
  struct Entry {
    GraphPtr graph;
    int depth;
  };

  [[noreturn]] void fail(std::string_view expected, std::string_view given) const {
    throw_user_error({fmt::format("decode: byte {}", pos_), expected, given,
                      "The bytes are damaged or of another version; encode the graph again"});
  }

  std::string_view take(std::size_t n) {
    if (n > bytes_.size() - pos_)
      fail(fmt::format("{} more bytes", n), fmt::format("{} are left", bytes_.size() - pos_));
    std::string_view s = bytes_.substr(pos_, n);
    pos_ += n;
    return s;
  }

  std::uint8_t byte() { return static_cast<std::uint8_t>(take(1)[0]); }

  std::uint64_t number() {
    std::uint64_t v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      std::uint8_t b = byte();
      if (shift == 63 && b > 1) break;
      v |= static_cast<std::uint64_t>(b & 127) << shift;
      if (b < 128) return v;
    }
    fail("a number of at most 64 bits", "a longer one");
  }

  std::int64_t signed_number() {
    std::uint64_t u = number();
    return static_cast<std::int64_t>((u >> 1) ^ (0 - (u & 1)));
  }

  // A number of entries that take at least one byte each.
  std::size_t count() {
    std::uint64_t n = number();
    if (n > bytes_.size() - pos_)
      fail("a count that the rest can hold",
           fmt::format("{} with {} bytes left", n, bytes_.size() - pos_));
    return static_cast<std::size_t>(n);
  }

  std::uint64_t fixed() {
    std::uint64_t v;
    std::memcpy(&v, take(8).data(), 8);
    return v;
  }

  template <class E>
  E member(int limit, const char* what) {
    std::uint8_t b = byte();
    if (b >= limit) fail(fmt::format("{} below {}", what, limit), fmt::format("{}", b));
    return static_cast<E>(b);
  }
  DType dtype() { return member<DType>(kNumDTypes, "an element type"); }
  bool flag() { return member<std::uint8_t>(2, "a flag") != 0; }

  template <class T>
  const T& entry(const std::vector<T>& table, const char* what) {
    std::uint64_t i = number();
    if (i >= table.size())
      fail(fmt::format("{} below {}", what, table.size()), fmt::format("{}", i));
    return table[static_cast<std::size_t>(i)];
  }

  Dims dims() {
    Dims d;
    for (std::size_t n = count(); n > 0; --n) d.push_back(signed_number());
    return d;
  }

  Dims shape() {
    Dims d = dims();
    for (std::int64_t v : d)
      if (v < 0 && v != kDynamic) fail("dimensions that are not negative", fmt::format("{}", v));
    return d;
  }

  void check_depth(int depth) const {
    if (depth >= kMaxDepth) fail(fmt::format("at most {} levels of nesting", kMaxDepth), "more");
  }

  Type type(int depth) {
    check_depth(depth);
    auto kind = member<TypeKind>(7, "a kind of type");
    DType d = dtype();
    Dims dims = shape();
    TypeExtra x;
    if (flag()) {
      x.bounds = this->dims();
      x.encoding = take(count());
      x.name = take(count());
      x.space = member<MemorySpace>(4, "a memory space");
      for (std::size_t n = count(); n > 0; --n) x.elements.push_back(type(depth + 1));
      if (flag()) x.quant = std::make_shared<const QuantParams>(quant());
    }
    if (!x.bounds.empty() && x.bounds.size() != dims.size())
      fail("one bound per dimension", fmt::format("{}", x.bounds.size()));
    Type t;
    switch (kind) {
      case TypeKind::kTensor: t = Type::tensor(d, std::move(dims)); break;
      case TypeKind::kToken: return Type::token();
      case TypeKind::kTuple: return Type::tuple(std::move(x.elements));
      case TypeKind::kFuture: return Type::future(std::move(x.elements));
      case TypeKind::kRef: return Type::ref(d, std::move(dims), x.space);
      case TypeKind::kKey: return Type::key(x.name, std::move(dims));
      case TypeKind::kForeign: return Type::foreign(x.name);
    }
    return Type::with_extra(std::move(t), std::move(x));
  }

  QuantParams quant() {
    QuantParams q;
    q.storage = dtype();
    q.storage_min = signed_number();
    q.storage_max = signed_number();
    q.axis = static_cast<int>(signed_number());
    for (std::size_t n = count(); n > 0; --n) q.scales.push_back(std::bit_cast<double>(fixed()));
    for (std::size_t n = count(); n > 0; --n) q.zero_points.push_back(signed_number());
    if (q.zero_points.size() != q.scales.size())
      fail("one zero point per scale", fmt::format("{}", q.zero_points.size()));
    return q;
  }

  HostArray array() {
    auto form = member<ArrayForm>(3, "a form of arrays");
    if (form == ArrayForm::kUndefined) return {};
    DType d = dtype();
    Dims dims = shape();
    std::int64_t elements = 0, total = 0;
    try {
      elements = num_elements(dims);
    } catch (const UserError&) {
      fail("an array whose size fits 63 bits", to_string(dims));
    }
    if (__builtin_mul_overflow(elements, std::int64_t{dtype_bytes(d)}, &total))
      fail("an array whose size fits 63 bits", to_string(dims));
    auto size = static_cast<std::size_t>(total);
    auto element = static_cast<std::size_t>(dtype_bytes(d));
    if (form == ArrayForm::kFull) {
      std::string_view raw = take(size);
      return HostArray::from_bytes(d, std::move(dims), std::as_bytes(std::span(raw)));
    }
    if (total > kMaxSplatBytes - splat_bytes_ || element == 0)
      fail(fmt::format("repeated values of at most {} bytes", kMaxSplatBytes),
           fmt::format("{} more", total));
    splat_bytes_ += total;
    std::string_view one = take(element);
    HostArray a(d, std::move(dims));
    for (std::size_t i = 0; i < size; i += element) std::memcpy(a.data() + i, one.data(), element);
    return a;
  }

  Attr attr(int depth) {
    check_depth(depth);
    switch (member<AttrTag>(kNumAttrTags, "a kind of attribute")) {
      case AttrTag::kUnit: return {};
      case AttrTag::kBool: return flag();
      case AttrTag::kInt: return signed_number();
      case AttrTag::kFloat: return std::bit_cast<double>(fixed());
      case AttrTag::kString: return std::string(take(count()));
      case AttrTag::kDims: return dims();
      case AttrTag::kArray: return array();
      case AttrTag::kDType: return dtype();
      case AttrTag::kType: return entry(types_, "a type");
      case AttrTag::kEnum: return EnumAttr(entry(strings_, "a string"));
      case AttrTag::kScalar: {
        ScalarAttr s{dtype(), 0, 0};
        s.integer = signed_number();
        s.real = std::bit_cast<double>(fixed());
        return s;
      }
      case AttrTag::kSymbol: return SymbolAttr{std::string(take(count()))};
      case AttrTag::kOpaque: return OpaqueAttr{std::string(take(count()))};
      case AttrTag::kList: {
        AttrList list;
        for (std::size_t n = count(); n > 0; --n) list.push_back(attr(depth + 1));
        return list;
      }
      case AttrTag::kDict: return attrs(depth + 1);
    }
    return {};
  }

  Attrs attrs(int depth) {
    Attrs out;
    for (std::size_t n = count(); n > 0; --n) {
      std::string_view name = entry(strings_, "a string");
      if (!out.empty() && name <= out.entries().back().first)
        fail("attribute names in order", fmt::format("'{}'", name));
      out.set(name, attr(depth));
    }
    return out;
  }

  Entry graph() {
    auto g = std::make_shared<Graph>();
    int depth = 0;
    auto define = [&](std::int32_t def, std::size_t index) {
      auto id = static_cast<ValueId>(g->values.size());
      g->values.push_back(
          {entry(types_, "a type"), def, static_cast<std::int32_t>(index), nullptr});
      return id;
    };
    auto use = [&] {
      std::uint64_t v = number();
      if (v >= g->values.size())
        fail(fmt::format("a value below {}", g->values.size()), fmt::format("{}", v));
      return static_cast<ValueId>(v);
    };
    for (std::size_t i = 0, n = count(); i < n; ++i) g->params.push_back(define(-1, i));
    for (std::size_t i = 0, n = count(); i < n; ++i) {
      Op op;
      std::string_view name = entry(strings_, "a string");
      op.def = find_op(name);
      if (!op.def) fail("an op of the op table", fmt::format("'{}'", name));
      for (std::size_t k = count(); k > 0; --k) op.operands.push_back(use());
      for (std::size_t k = 0, m = count(); k < m; ++k)
        op.results.push_back(define(static_cast<std::int32_t>(i), k));
      op.attrs = attrs(0);
      for (std::size_t k = count(); k > 0; --k) {
        const Entry& region = entry(graphs_, "a graph");
        op.regions.push_back(region.graph);
        depth = std::max(depth, region.depth + 1);
      }
      g->ops.push_back(std::move(op));
    }
    check_depth(depth);
    for (std::size_t k = count(); k > 0; --k) g->results.push_back(use());
    return {std::move(g), depth};
  }

  std::string_view bytes_;
  std::size_t pos_ = 0;
  std::int64_t splat_bytes_ = 0;
  std::vector<std::string_view> strings_;
  std::vector<Type> types_;
  std::vector<Entry> graphs_;
};

}  // namespace
}  // namespace text

GraphPtr decode(std::string_view bytes) { return text::Decoder(bytes).decode(); }

}  // namespace xylem::ir
