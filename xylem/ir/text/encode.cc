#include <bit>
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

#include "xylem/base/error.h"
#include "xylem/ir/op_def.h"
#include "xylem/ir/text.h"
#include "xylem/ir/text/encoding.h"

namespace xylem::ir {
namespace text {
namespace {

static_assert(std::variant_size_v<Attr::Value> == kNumAttrTags);

void put(std::string& out, std::uint64_t v) {
  while (v >= 128) {
    out += static_cast<char>(v | 128);
    v >>= 7;
  }
  out += static_cast<char>(v);
}

void put_signed(std::string& out, std::int64_t v) {
  auto u = static_cast<std::uint64_t>(v);
  put(out, (u << 1) ^ (v < 0 ? ~std::uint64_t{0} : 0));
}

void put_fixed(std::string& out, std::uint64_t v) {
  char bytes[8];
  std::memcpy(bytes, &v, 8);
  out.append(bytes, 8);
}

void put_text(std::string& out, std::string_view s) {
  put(out, s.size());
  out += s;
}

void put_dims(std::string& out, const Dims& d) {
  put(out, d.size());
  for (std::int64_t v : d) put_signed(out, v);
}

void put_type(std::string& out, const Type& t) {
  out += static_cast<char>(t.kind());
  out += static_cast<char>(t.dtype());
  put_dims(out, t.dims());
  const TypeExtra* x = t.extra();
  out += static_cast<char>(x != nullptr);
  if (!x) return;
  put_dims(out, x->bounds);
  put_text(out, x->encoding);
  put_text(out, x->name);
  out += static_cast<char>(x->space);
  put(out, x->elements.size());
  for (const Type& e : x->elements) put_type(out, e);
  out += static_cast<char>(x->quant != nullptr);
  if (!x->quant) return;
  const QuantParams& q = *x->quant;
  out += static_cast<char>(q.storage);
  put_signed(out, q.storage_min);
  put_signed(out, q.storage_max);
  put_signed(out, q.axis);
  put(out, q.scales.size());
  for (double s : q.scales) put_fixed(out, std::bit_cast<std::uint64_t>(s));
  put(out, q.zero_points.size());
  for (std::int64_t z : q.zero_points) put_signed(out, z);
}

// Entries in the order of first use.
class Table {
 public:
  std::uint64_t index(std::string entry) {
    auto [it, added] = index_.emplace(std::move(entry), index_.size());
    if (added) order_.push_back(&it->first);
    return it->second;
  }
  const std::vector<const std::string*>& entries() const { return order_; }

 private:
  std::unordered_map<std::string, std::uint64_t> index_;
  std::vector<const std::string*> order_;
};

class Encoder {
 public:
  std::string encode(const Graph& root) {
    std::uint64_t last = graph(root);
    XYLEM_CHECK(last + 1 == graphs_.entries().size(), "the root is encoded last");
    std::string out(kEncodingMagic, sizeof kEncodingMagic);
    out += static_cast<char>(kEncodingVersion);
    put(out, strings_.entries().size());
    for (const std::string* s : strings_.entries()) put_text(out, *s);
    for (const Table* table : {&types_, &graphs_}) {
      put(out, table->entries().size());
      for (const std::string* s : table->entries()) out += *s;
    }
    return out;
  }

 private:
  std::uint64_t name(std::string_view s) { return strings_.index(std::string(s)); }
  std::uint64_t type(const Type& t) {
    std::string bytes;
    put_type(bytes, t);
    return types_.index(std::move(bytes));
  }

  std::uint64_t graph(const Graph& g) {
    // Regions shared by many ops are encoded once.
    if (auto it = seen_.find(&g); it != seen_.end()) return it->second;
    std::string out;
    std::vector<std::uint64_t> number(g.values.size(), 0);
    std::uint64_t next = 0;
    put(out, g.params.size());
    for (ValueId v : g.params) {
      number[static_cast<std::size_t>(v)] = next++;
      put(out, type(g.type(v)));
    }
    put(out, g.ops.size());
    for (const Op& op : g.ops) {
      XYLEM_CHECK(op.def != nullptr, "every op has a definition");
      put(out, name(op.def->name));
      put(out, op.operands.size());
      for (ValueId v : op.operands) put(out, number[static_cast<std::size_t>(v)]);
      put(out, op.results.size());
      for (ValueId v : op.results) {
        number[static_cast<std::size_t>(v)] = next++;
        put(out, type(g.type(v)));
      }
      attrs(out, op.attrs);
      put(out, op.regions.size());
      for (const GraphPtr& r : op.regions) put(out, graph(*r));
    }
    put(out, g.results.size());
    for (ValueId v : g.results) put(out, number[static_cast<std::size_t>(v)]);
    std::uint64_t index = graphs_.index(std::move(out));
    seen_.emplace(&g, index);
    return index;
  }

  void attrs(std::string& out, const Attrs& attrs) {
    put(out, attrs.size());
    for (const auto& [key, value] : attrs.entries()) {
      put(out, name(key));
      attr(out, value);
    }
  }

  void attr(std::string& out, const Attr& a) {
    out += static_cast<char>(a.value().index());
    std::visit([&](const auto& v) { value(out, v); }, a.value());
  }

  void value(std::string&, Attr::Unit) {}
  void value(std::string& out, bool v) { out += static_cast<char>(v); }
  void value(std::string& out, std::int64_t v) { put_signed(out, v); }
  void value(std::string& out, double v) { put_fixed(out, std::bit_cast<std::uint64_t>(v)); }
  void value(std::string& out, const std::string& v) { put_text(out, v); }
  void value(std::string& out, const Dims& v) { put_dims(out, v); }
  void value(std::string& out, DType v) { out += static_cast<char>(v); }
  void value(std::string& out, const Type& v) { put(out, type(v)); }
  void value(std::string& out, const EnumAttr& v) { put(out, name(v.value)); }
  void value(std::string& out, const ScalarAttr& v) {
    out += static_cast<char>(v.dtype);
    put_signed(out, v.integer);
    put_fixed(out, std::bit_cast<std::uint64_t>(v.real));
  }
  void value(std::string& out, const SymbolAttr& v) { put_text(out, v.name); }
  void value(std::string& out, const OpaqueAttr& v) { put_text(out, v.text); }
  void value(std::string& out, const std::shared_ptr<const AttrList>& v) {
    put(out, v->size());
    for (const Attr& a : *v) attr(out, a);
  }
  void value(std::string& out, const std::shared_ptr<const Attrs>& v) { attrs(out, *v); }
  void value(std::string& out, const HostArray& v) {
    if (!v.defined()) {
      out += static_cast<char>(ArrayForm::kUndefined);
      return;
    }
    HostArray a = v.to_contiguous();
    auto element = static_cast<std::size_t>(dtype_bytes(a.dtype()));
    bool splat = a.size() > 1 && element > 0 &&
                 std::memcmp(a.data(), a.data() + element, a.nbytes() - element) == 0;
    out += static_cast<char>(splat ? ArrayForm::kSplat : ArrayForm::kFull);
    out += static_cast<char>(a.dtype());
    put_dims(out, a.dims());
    if (a.nbytes() > 0)
      out.append(reinterpret_cast<const char*>(a.data()), splat ? element : a.nbytes());
  }

  Table strings_, types_, graphs_;
  std::unordered_map<const Graph*, std::uint64_t> seen_;
};

}  // namespace
}  // namespace text

std::string encode(const Graph& graph) { return text::Encoder().encode(graph); }

}  // namespace xylem::ir
