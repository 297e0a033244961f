#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "xylem/base/dims.h"
#include "xylem/base/host_array.h"
#include "xylem/ir/type.h"

namespace xylem::ir {

class Attr;
class Graph;

// A list of attributes by name, sorted by name. Names are interned, so copies are cheap.
class Attrs {
 public:
  Attrs() = default;
  Attrs(std::initializer_list<std::pair<std::string_view, Attr>> entries);

  bool has(std::string_view name) const;
  const Attr* find(std::string_view name) const;
  // Throws InternalError if the attribute is absent: for inherent attributes after verification.
  const Attr& at(std::string_view name) const;
  void set(std::string_view name, Attr value);
  void erase(std::string_view name);
  std::size_t size() const;
  bool empty() const;
  // (name, value), in order of the names.
  const std::vector<std::pair<std::string_view, Attr>>& entries() const;

  // Typed shorthands of `at`.
  std::int64_t i64(std::string_view name) const;
  double f64(std::string_view name) const;
  bool flag(std::string_view name) const;  // false when absent
  const Dims& dims(std::string_view name) const;
  const std::string& str(std::string_view name) const;
  const HostArray& array(std::string_view name) const;
  std::int64_t i64_or(std::string_view name, std::int64_t otherwise) const;
  Dims dims_or(std::string_view name, Dims otherwise) const;
  std::string str_or(std::string_view name, std::string_view otherwise) const;

  friend bool operator==(const Attrs& a, const Attrs& b);

 private:
  std::vector<std::pair<std::string_view, Attr>> entries_;
};

using AttrList = std::vector<Attr>;

// An unevaluated piece of foreign syntax, kept and printed as it stood ("#sdy.sharding<…>").
struct OpaqueAttr {
  std::string text;
  friend bool operator==(const OpaqueAttr&, const OpaqueAttr&) = default;
};
// A member of an enumeration: StableHLO's spelling ("LT", "HIGHEST").
struct EnumAttr {
  std::string_view value;  // interned
  EnumAttr(std::string_view v);
  friend bool operator==(const EnumAttr&, const EnumAttr&) = default;
};
// An integer or float with its own dtype ("1 : i32").
struct ScalarAttr {
  DType dtype;
  std::int64_t integer = 0;
  double real = 0;
  friend bool operator==(const ScalarAttr& a, const ScalarAttr& b);
};
struct SymbolAttr {
  std::string name;
  friend bool operator==(const SymbolAttr&, const SymbolAttr&) = default;
};

// A compile-time value on an op, argument, result, graph or module. Immutable; cheap to copy
// except for strings and lists.
class Attr {
 public:
  using Unit = std::monostate;
  using Value = std::variant<Unit, bool, std::int64_t, double, std::string, Dims, HostArray, DType,
                             Type, EnumAttr, ScalarAttr, SymbolAttr, OpaqueAttr,
                             std::shared_ptr<const AttrList>, std::shared_ptr<const Attrs>>;

  Attr() = default;  // unit
  Attr(bool v) : v_(v) {}
  Attr(int v) : v_(static_cast<std::int64_t>(v)) {}
  Attr(std::int64_t v) : v_(v) {}
  Attr(double v) : v_(v) {}
  Attr(std::string v) : v_(std::move(v)) {}
  Attr(std::string_view v) : v_(std::string(v)) {}
  Attr(const char* v) : v_(std::string(v)) {}
  Attr(Dims v) : v_(std::move(v)) {}
  Attr(HostArray v) : v_(std::move(v)) {}
  Attr(DType v) : v_(v) {}
  Attr(Type v) : v_(std::move(v)) {}
  Attr(EnumAttr v) : v_(v) {}
  Attr(ScalarAttr v) : v_(v) {}
  Attr(SymbolAttr v) : v_(std::move(v)) {}
  Attr(OpaqueAttr v) : v_(std::move(v)) {}
  Attr(AttrList v) : v_(std::make_shared<const AttrList>(std::move(v))) {}
  Attr(Attrs v) : v_(std::make_shared<const Attrs>(std::move(v))) {}

  const Value& value() const { return v_; }
  template <class T>
  const T* get() const {
    return std::get_if<T>(&v_);
  }
  bool is_unit() const { return std::holds_alternative<Unit>(v_); }
  const AttrList* list() const;
  const Attrs* dict() const;

  // Structural; arrays and floats bit for bit.
  friend bool operator==(const Attr& a, const Attr& b);
  // Native text; `parse_attr` of the native reader gives the same value back.
  std::string to_string() const;
  std::size_t hash() const;

 private:
  Value v_;
};

inline bool Attrs::has(std::string_view name) const { return find(name) != nullptr; }
inline std::size_t Attrs::size() const { return entries_.size(); }
inline bool Attrs::empty() const { return entries_.empty(); }
inline const std::vector<std::pair<std::string_view, Attr>>& Attrs::entries() const {
  return entries_;
}

// A string that lives as long as the process, one copy for equal contents. Thread safe.
std::string_view intern(std::string_view s);

}  // namespace xylem::ir
