#include "xylem/ir/attr.h"

#include <algorithm>
#include <bit>
#include <mutex>
#include <unordered_map>

#include "xylem/base/error.h"

namespace xylem::ir {
namespace {

std::size_t mix(std::size_t h, std::size_t v) {
  return (h ^ v) * 0x9E3779B97F4A7C15ull + ((h ^ v) >> 31);
}

auto lower_bound_of(const std::vector<std::pair<std::string_view, Attr>>& entries,
                    std::string_view name) {
  return std::lower_bound(entries.begin(), entries.end(), name,
                          [](const auto& e, std::string_view n) { return e.first < n; });
}

template <class T>
const T& typed(const Attrs& attrs, std::string_view name) {
  const T* v = attrs.at(name).get<T>();
  XYLEM_CHECK(v != nullptr, name);
  return *v;
}

}  // namespace

std::string_view intern(std::string_view s) {
  static std::mutex mutex;
  // Never destroyed: views outlive exit. Looked up before anything is allocated.
  static auto* pool = new std::unordered_map<std::string_view, std::unique_ptr<const std::string>>;
  std::lock_guard<std::mutex> lock(mutex);
  auto it = pool->find(s);
  if (it != pool->end()) return it->first;
  auto owned = std::make_unique<const std::string>(s);
  std::string_view view = *owned;
  pool->emplace(view, std::move(owned));
  return view;
}

EnumAttr::EnumAttr(std::string_view v) : value(intern(v)) {}

bool operator==(const ScalarAttr& a, const ScalarAttr& b) {
  return a.dtype == b.dtype && a.integer == b.integer &&
         std::bit_cast<std::uint64_t>(a.real) == std::bit_cast<std::uint64_t>(b.real);
}

const AttrList* Attr::list() const {
  auto* p = get<std::shared_ptr<const AttrList>>();
  return p ? p->get() : nullptr;
}

const Attrs* Attr::dict() const {
  auto* p = get<std::shared_ptr<const Attrs>>();
  return p ? p->get() : nullptr;
}

bool operator==(const Attr& a, const Attr& b) {
  if (a.v_.index() != b.v_.index()) return false;
  if (auto* x = a.get<double>())
    return std::bit_cast<std::uint64_t>(*x) == std::bit_cast<std::uint64_t>(*b.get<double>());
  if (auto* x = a.list()) return *x == *b.list();
  if (auto* x = a.dict()) return *x == *b.dict();
  return std::visit(
      [&](const auto& x) {
        using T = std::decay_t<decltype(x)>;
        if constexpr (std::is_same_v<T, HostArray>) {
          return x.bit_equal(std::get<T>(b.v_));
        } else {
          return x == std::get<T>(b.v_);
        }
      },
      a.v_);
}

std::size_t Attr::hash() const {
  std::size_t h = v_.index() * 0x51ED270B;
  std::hash<std::string_view> text;
  if (auto* b = get<bool>()) return mix(h, *b);
  if (auto* i = get<std::int64_t>()) return mix(h, static_cast<std::size_t>(*i));
  if (auto* d = get<double>()) return mix(h, std::bit_cast<std::uint64_t>(*d));
  if (auto* s = get<std::string>()) return mix(h, text(*s));
  if (auto* s = get<EnumAttr>()) return mix(h, text(s->value));
  if (auto* s = get<SymbolAttr>()) return mix(h, text(s->name));
  if (auto* s = get<OpaqueAttr>()) return mix(h, text(s->text));
  if (auto* t = get<DType>()) return mix(h, static_cast<std::size_t>(*t));
  if (auto* t = get<Type>()) return mix(h, t->hash());
  if (auto* d = get<Dims>()) {
    for (std::int64_t v : *d) h = mix(h, static_cast<std::size_t>(v));
    return h;
  }
  if (auto* s = get<ScalarAttr>())
    return mix(h, static_cast<std::size_t>(s->integer) ^ std::bit_cast<std::uint64_t>(s->real));
  if (auto* a = get<HostArray>()) {
    h = mix(h, static_cast<std::size_t>(a->dtype()));
    for (std::int64_t v : a->dims()) h = mix(h, static_cast<std::size_t>(v));
    HostArray c = a->to_contiguous();
    return mix(h, text({reinterpret_cast<const char*>(c.data()), c.nbytes()}));
  }
  if (auto* l = list()) {
    for (const Attr& e : *l) h = mix(h, e.hash());
    return h;
  }
  if (auto* d = dict()) {
    for (const auto& [name, value] : d->entries()) h = mix(mix(h, text(name)), value.hash());
  }
  return h;
}

Attrs::Attrs(std::initializer_list<std::pair<std::string_view, Attr>> entries) {
  for (const auto& [name, value] : entries) set(name, value);
}

const Attr* Attrs::find(std::string_view name) const {
  auto it = lower_bound_of(entries_, name);
  return it != entries_.end() && it->first == name ? &it->second : nullptr;
}

const Attr& Attrs::at(std::string_view name) const {
  const Attr* a = find(name);
  XYLEM_CHECK(a != nullptr, name);
  return *a;
}

void Attrs::set(std::string_view name, Attr value) {
  auto it = lower_bound_of(entries_, name);
  auto at = entries_.begin() + (it - entries_.begin());
  if (at != entries_.end() && at->first == name) {
    at->second = std::move(value);
  } else {
    entries_.emplace(at, intern(name), std::move(value));
  }
}

void Attrs::erase(std::string_view name) {
  auto it = lower_bound_of(entries_, name);
  if (it != entries_.end() && it->first == name)
    entries_.erase(entries_.begin() + (it - entries_.begin()));
}

std::int64_t Attrs::i64(std::string_view name) const {
  const Attr& a = at(name);
  if (auto* s = a.get<ScalarAttr>()) return s->integer;
  return typed<std::int64_t>(*this, name);
}

double Attrs::f64(std::string_view name) const {
  const Attr& a = at(name);
  if (auto* s = a.get<ScalarAttr>()) return s->real;
  return typed<double>(*this, name);
}

bool Attrs::flag(std::string_view name) const {
  const Attr* a = find(name);
  if (!a) return false;
  if (a->is_unit()) return true;
  const bool* b = a->get<bool>();
  return b && *b;
}

const Dims& Attrs::dims(std::string_view name) const { return typed<Dims>(*this, name); }
const std::string& Attrs::str(std::string_view name) const {
  return typed<std::string>(*this, name);
}
const HostArray& Attrs::array(std::string_view name) const { return typed<HostArray>(*this, name); }

std::int64_t Attrs::i64_or(std::string_view name, std::int64_t otherwise) const {
  return has(name) ? i64(name) : otherwise;
}

Dims Attrs::dims_or(std::string_view name, Dims otherwise) const {
  return has(name) ? dims(name) : otherwise;
}

std::string Attrs::str_or(std::string_view name, std::string_view otherwise) const {
  const Attr* a = find(name);
  if (!a) return std::string(otherwise);
  if (auto* e = a->get<EnumAttr>()) return std::string(e->value);
  return str(name);
}

bool operator==(const Attrs& a, const Attrs& b) { return a.entries_ == b.entries_; }

}  // namespace xylem::ir
