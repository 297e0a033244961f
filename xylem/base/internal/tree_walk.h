#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "xylem/base/dims.h"
#include "xylem/base/reflect.h"
#include "xylem/base/structure.h"

// The one template that knows what a tree is made of; see tree.h. Containers are recognised by
// their members, so that <map>, <optional>, <variant> need not be included here.

namespace xylem {

// Whether T is a leaf of trees over L. May be specialised.
template <class L, class T>
struct IsLeaf : std::is_same<L, T> {};

template <class L, class T>
concept TreeLeaf = IsLeaf<L, T>::value;

// Whether a leaf holds nothing: `defined()` says no. An overload found by argument-dependent lookup
// takes precedence.
template <class L>
bool is_empty_leaf(const L& l) {
  if constexpr (requires { static_cast<bool>(l.defined()); })
    return !l.defined();
  else
    return false;
}

// Makes a value static structure although it could hold leaves: Static<std::vector<float>>. T is
// anything that a tree without leaves can be made of.
template <class T>
struct Static {
  T value;
};

template <class L>
class Tree;

namespace internal {

template <class T>
inline constexpr bool kNoTree = false;

// A leaf type that no tree has.
struct NoLeaf {};

template <class T>
struct IsStatic : std::false_type {};
template <class T>
struct IsStatic<Static<T>> : std::true_type {};
template <class T>
struct IsDynamicTree : std::false_type {};
template <class L>
struct IsDynamicTree<Tree<L>> : std::true_type {};

template <class T>
concept FunctionPointer = std::is_pointer_v<T> && std::is_function_v<std::remove_pointer_t<T>>;
// A float or integer of fewer bits than a byte (float_types.h).
template <class T>
concept NarrowScalar = requires(const T& t) {
  T::kDType;
  t.bits;
};
template <class T>
concept StaticBytes = std::is_arithmetic_v<T> || std::is_enum_v<T> || FunctionPointer<T> ||
    std::is_member_pointer_v<T> || NarrowScalar<T>;
template <class T>
concept Text = std::is_same_v<T, std::string> || std::is_same_v<T, std::string_view>;
template <class T>
concept BoolVector = std::is_same_v<T, std::vector<bool>>;

template <class T>
concept VectorLike = requires(T& t) {
  typename T::value_type;
  typename T::allocator_type;
  t.data();
  t.size();
}
&&!Text<T>;
template <class T>
concept MapLike = requires(T& t) {
  typename T::key_type;
  typename T::mapped_type;
  typename T::key_compare;
  t.begin();
};
template <class T>
concept OptionalLike = requires(T& t) {
  typename T::value_type;
  t.has_value();
  *t;
}
&&!requires(T & t) { t.error(); };
template <class T>
concept VariantLike = requires(T& t) {
  t.index();
  t.valueless_by_exception();
};
template <class T>
concept ArrayLike = requires(T& t) {
  typename T::value_type;
  std::tuple_size<T>::value;
  t.data();
};
template <class T>
concept TupleLike = requires {
  std::tuple_size<T>::value;
}
&&!ArrayLike<T>;
template <class T>
concept Hashed = requires {
  typename T::hasher;
};
template <class T>
concept SmartPointer = requires(T& t) {
  typename T::element_type;
  t.get();
  *t;
};

template <class T>
constexpr StaticFormat static_format() {
  if constexpr (std::is_same_v<T, bool>)
    return StaticFormat::kBool;
  else if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>)
    return StaticFormat::kFloat;
  else if constexpr (std::is_integral_v<T>)
    return std::is_signed_v<T> ? StaticFormat::kSigned : StaticFormat::kUnsigned;
  else if constexpr (std::is_enum_v<T>)
    return static_format<std::underlying_type_t<T>>();
  else if constexpr (Text<T>)
    return StaticFormat::kString;
  else if constexpr (std::is_same_v<T, Dims>)
    return StaticFormat::kIntList;
  else if constexpr (FunctionPointer<T>)
    return StaticFormat::kPointer;
  else
    return StaticFormat::kOpaque;
}

constexpr std::uint64_t hash_text(std::string_view s) {
  std::uint64_t h = 0xcbf29ce484222325u;
  for (char c : s) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return h;
}

template <class T, bool Fields>
inline constexpr TypeInfo kTypeInfo{reflect::type_name<T>(),
                                    [] {
                                      if constexpr (Fields)
                                        return reflect::field_names<T>();
                                      else
                                        return static_cast<const std::string_view*>(nullptr);
                                    }(),
                                    static_format<T>(), hash_text(reflect::type_name<T>())};

template <class L, class T>
void walk(T& t, TreeVisitor& v);

template <class L, class T>
void walk_child(T& t, TreeVisitor& v) {
  walk<L>(const_cast<std::remove_const_t<T>&>(t), v);
}

template <class L, class T, std::size_t... I>
void walk_tuple(T& t, TreeVisitor& v, std::index_sequence<I...>) {
  using std::get;
  (walk_child<L>(get<I>(t), v), ...);
}

template <class L, class T>
void walk_map(T& t, TreeVisitor& v) {
  using Key = typename T::key_type;
  static_assert(std::is_same_v<Key, std::string> || std::is_integral_v<Key>,
                "the keys of a map in a tree must be std::string or integers");
  v.begin(NodeKind::kMap, kTypeInfo<T, false>, t.size(), 0);
  for (auto& [k, x] : t) {
    if constexpr (std::is_same_v<Key, std::string>)
      v.key(std::string_view(k));
    else
      v.key(static_cast<std::int64_t>(k));
    walk_child<L>(x, v);
  }
  v.end();
}

template <class L, class T>
void walk_class(T& t, TreeVisitor& v) {
  if constexpr (std::is_empty_v<T>) {
    v.static_value(kTypeInfo<T, false>, nullptr, 0);
  } else if constexpr (Hashed<T>) {
    static_assert(kNoTree<T>, "an unordered container has no fixed order: use std::map");
  } else if constexpr (SmartPointer<T>) {
    static_assert(
        kNoTree<T>,
        "a smart pointer cannot be part of a tree, whose copies must be independent: hold "
        "the object by value, or in std::optional or std::vector");
  } else if constexpr (!reflect::Reflectable<T>) {
    static_assert(
        kNoTree<T>,
        "this type cannot be part of a tree: it must be a leaf, an aggregate, a type with "
        "public fields that states `static constexpr int xylem_num_fields = N;`, a "
        "standard container, or static (a number, enum, string or function pointer; "
        "std::function cannot be compared, use a function pointer)");
  } else {
    constexpr int n = reflect::num_fields<T>();
    v.begin(NodeKind::kAggregate, kTypeInfo<T, true>, n, 0);
    reflect::apply_fields(t, [&v](auto&... field) { (walk_child<L>(field, v), ...); });
    v.end();
  }
}

template <class L, class T>
void walk(T& t, TreeVisitor& v) {
  static_assert(!std::is_const_v<T>);
  if constexpr (TreeLeaf<L, T>) {
    v.leaf(&t, is_empty_leaf(t));
  } else if constexpr (IsDynamicTree<T>::value) {
    static_assert(std::is_same_v<typename T::LeafType, L>,
                  "a Tree<M> inside a tree over L must have M = L");
    t.walk(v);
  } else if constexpr (IsStatic<T>::value) {
    v.begin(NodeKind::kAggregate, kTypeInfo<T, true>, 1, 0);
    walk_child<NoLeaf>(t.value, v);
    v.end();
  } else if constexpr (StaticBytes<T>) {
    static_assert(!std::is_same_v<T, long double>, "long double has padding: use double");
    v.static_value(kTypeInfo<T, false>, &t, sizeof(T));
  } else if constexpr (Text<T>) {
    v.static_value(kTypeInfo<T, false>, t.data(), t.size());
  } else if constexpr (std::is_same_v<T, Dims>) {
    v.static_value(kTypeInfo<T, false>, t.data(), t.size() * sizeof(std::int64_t));
  } else if constexpr (BoolVector<T>) {
    const std::string bytes(t.begin(), t.end());
    v.static_value(kTypeInfo<T, false>, bytes.data(), bytes.size());
  } else if constexpr (MapLike<T>) {
    walk_map<L>(t, v);
  } else if constexpr (VectorLike<T> || ArrayLike<T>) {
    v.begin(NodeKind::kList, kTypeInfo<T, false>, t.size(), 0);
    for (auto& x : t) walk_child<L>(x, v);
    v.end();
  } else if constexpr (TupleLike<T>) {
    constexpr std::size_t n = std::tuple_size<T>::value;
    v.begin(NodeKind::kTuple, kTypeInfo<T, false>, n, 0);
    walk_tuple<L>(t, v, std::make_index_sequence<n>());
    v.end();
  } else if constexpr (VariantLike<T>) {
    v.begin(NodeKind::kVariant, kTypeInfo<T, false>, 1, t.index());
    visit([&v](auto& x) { walk_child<L>(x, v); }, t);
    v.end();
  } else if constexpr (OptionalLike<T>) {
    v.begin(NodeKind::kOptional, kTypeInfo<T, false>, t.has_value() ? 1 : 0, 0);
    if (t.has_value()) walk_child<L>(*t, v);
    v.end();
  } else if constexpr (std::is_pointer_v<T>) {
    static_assert(kNoTree<T>, "a pointer cannot be part of a tree: hold the object by value");
  } else if constexpr (std::is_class_v<T>) {
    walk_class<L>(t, v);
  } else {
    static_assert(kNoTree<T>, "this type cannot be part of a tree");
  }
}

}  // namespace internal
}  // namespace xylem
