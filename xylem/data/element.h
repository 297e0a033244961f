#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "xylem/base/error.h"
#include "xylem/base/host_array.h"
#include "xylem/base/reflect.h"
#include "xylem/base/tree.h"

// Elements of pipelines: trees whose leaves are numbers, vectors and spans of numbers, HostArrays
// and texts; branches are plain structs (by reflection), tuples, pairs, vectors, arrays, maps with
// text keys, and dynamic Tree<HostArray>s.

namespace xylem::data {

template <class T>
concept Number = std::is_arithmetic_v<T> || xylem::internal::HasDType<T>;

namespace internal {

template <class T>
struct RangeOfNumbers : std::false_type {};
template <Number T>
requires(!std::is_same_v<T, bool>) struct RangeOfNumbers<std::vector<T>> : std::true_type {
};
template <Number T>
struct RangeOfNumbers<std::span<const T>> : std::true_type {};
template <Number T, std::size_t N>
struct RangeOfNumbers<std::array<T, N>> : std::true_type {};

template <class T>
struct ArrayForm;

struct NoArrays {};

template <class T>
constexpr auto struct_array_form();

}  // namespace internal

// The array form of T: what stacking elements of type T along a new first axis gives.
//
//   number                          HostArray [n]
//   vector, span, array of numbers  HostArray [n, length]
//   HostArray                       HostArray [n, ...]
//   text                            std::vector<std::string>
//   tuple, pair, vector, map        the same of the array forms
//   struct                          itself if its fields are their own array forms; otherwise none:
//                                   name a struct of HostArrays with fields of the same names
//   Tree<HostArray>                 Tree<HostArray>
template <class T>
using Arrays = typename internal::ArrayForm<T>::type;

template <class T>
concept HasArrays = !std::is_same_v<Arrays<T>, internal::NoArrays>;

namespace internal {

template <class T>
struct ArrayForm {
  static constexpr auto pick() {
    if constexpr (Number<T> || std::is_same_v<T, HostArray> || RangeOfNumbers<T>::value)
      return std::type_identity<HostArray>{};
    else if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, std::string_view>)
      return std::type_identity<std::vector<std::string>>{};
    else if constexpr (std::is_same_v<T, Tree<HostArray>>)
      return std::type_identity<Tree<HostArray>>{};
    else if constexpr (reflect::Reflectable<T>)
      return struct_array_form<T>();
    else
      return std::type_identity<NoArrays>{};
  }
  using type = typename decltype(pick())::type;
};

template <class... T>
struct ArrayForm<std::tuple<T...>> {
  using type = std::conditional_t<(HasArrays<T> && ...), std::tuple<Arrays<T>...>, NoArrays>;
};
template <class A, class B>
struct ArrayForm<std::pair<A, B>> {
  using type =
      std::conditional_t<HasArrays<A> && HasArrays<B>, std::pair<Arrays<A>, Arrays<B>>, NoArrays>;
};
template <class T>
requires(!RangeOfNumbers<std::vector<T>>::value) struct ArrayForm<std::vector<T>> {
  using type = std::conditional_t<HasArrays<T>, std::vector<Arrays<T>>, NoArrays>;
};
template <class T>
struct ArrayForm<std::map<std::string, T>> {
  using type = std::conditional_t<HasArrays<T>, std::map<std::string, Arrays<T>>, NoArrays>;
};

template <class T>
constexpr auto struct_array_form() {
  constexpr bool own = decltype(reflect::apply_fields(std::declval<T&>(), [](auto&... f) {
    return std::bool_constant<(std::is_same_v<Arrays<std::remove_cvref_t<decltype(f)>>,
                                              std::remove_cvref_t<decltype(f)>> &&
                               ...)>{};
  }))::value;
  return std::type_identity<std::conditional_t<own, T, NoArrays>>{};
}

template <class T>
struct IsTuple : std::false_type {};
template <class... T>
struct IsTuple<std::tuple<T...>> : std::true_type {};
template <class A, class B>
struct IsTuple<std::pair<A, B>> : std::true_type {};
template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::bool_constant<!RangeOfNumbers<std::vector<T>>::value> {};
template <class T>
struct IsMap : std::false_type {};
template <class T>
struct IsMap<std::map<std::string, T>> : std::true_type {};

template <class T>
constexpr bool kIsText = std::is_same_v<T, std::string> || std::is_same_v<T, std::string_view>;

HostArray stack_arrays(std::span<const HostArray* const> elements);
[[noreturn]] void throw_unequal_lengths(std::size_t element, std::size_t expected,
                                        std::size_t given);
[[noreturn]] void throw_unequal_structure(std::string_view what, std::size_t element);
std::string array_spec(const HostArray& a);
// `["a"][0].b` of structures as "a.0.b".
std::string dotted_path(std::string_view path);

template <class F>
constexpr std::size_t field_index_of(std::string_view name) {
  for (int i = 0; i < reflect::num_fields<F>(); ++i)
    if (reflect::field_name<F>(i) == name) return static_cast<std::size_t>(i);
  return ~std::size_t{0};
}

}  // namespace internal

// The elements stacked along a new first axis; `elements` is not empty. UserError that names the
// element which differs in dtype, shape or structure.
template <class T>
requires HasArrays<T> Arrays<T> stack(std::span<const T* const> elements);

// The same into a struct of another type: the fields of Out are looked up by name in T.
template <class Out, class T>
Out stack_as(std::span<const T* const> elements);

// "i64", "f32[2,3]", "{tokens: i32[7], name: text(5)}".
template <class T>
std::string element_spec(const T& e);
// Bytes of the leaves.
template <class T>
std::size_t element_bytes(const T& e);
// The values, shortened, for people.
template <class T>
std::string element_preview(const T& e);

// Every leaf but texts as an array, with its path ("tokens", "inputs.image"; "" for a bare leaf):
// f(std::string path, HostArray leaf).
template <class T, class F>
void visit_arrays(const T& e, const std::string& path, F&& f);
// The array form of `like` with the arrays that f() gives, in the order of visit_arrays.
template <class T, class F>
requires HasArrays<T> Arrays<T> assemble_arrays(const T& like, F&& f);

// ---- arrays by rows, for every HostArray in a tree of arrays

// The leaves padded at the end of the first axis to n rows of `value`.
HostArray pad_rows(const HostArray& a, std::int64_t n, double value);
// Rows [begin, end), sharing the bytes.
HostArray slice_rows(const HostArray& a, std::int64_t begin, std::int64_t end);
// The pieces one after the other along the first axis.
HostArray concatenate_rows(std::span<const HostArray> pieces);

// ---- implementation

namespace internal {

template <class T, class Get>
auto project(std::span<const T* const> elements, Get&& get) {
  using F = std::remove_cvref_t<decltype(get(*elements[0]))>;
  std::vector<const F*> out;
  out.reserve(elements.size());
  for (const T* e : elements) out.push_back(&get(*e));
  return out;
}

template <class F>
auto stack_all(const std::vector<const F*>& column) {
  return stack<F>(std::span<const F* const>(column));
}

}  // namespace internal

template <class T>
requires HasArrays<T> Arrays<T> stack(std::span<const T* const> elements) {
  const std::size_t n = elements.size();
  if constexpr (Number<T>) {
    HostArray a(dtype_of<T>(), {static_cast<std::int64_t>(n)});
    T* to = a.as<T>();
    for (std::size_t i = 0; i < n; ++i) to[i] = *elements[i];
    return a;
  } else if constexpr (internal::RangeOfNumbers<T>::value) {
    using E = std::remove_cvref_t<decltype(*elements[0]->begin())>;
    const std::size_t length = elements[0]->size();
    HostArray a(dtype_of<E>(), {static_cast<std::int64_t>(n), static_cast<std::int64_t>(length)});
    E* to = a.as<E>();
    for (std::size_t i = 0; i < n; ++i, to += length) {
      if (elements[i]->size() != length)
        internal::throw_unequal_lengths(i, length, elements[i]->size());
      std::copy(elements[i]->begin(), elements[i]->end(), to);
    }
    return a;
  } else if constexpr (std::is_same_v<T, HostArray>) {
    return internal::stack_arrays(elements);
  } else if constexpr (internal::kIsText<T>) {
    std::vector<std::string> out;
    for (const T* e : elements) out.emplace_back(*e);
    return out;
  } else if constexpr (std::is_same_v<T, Tree<HostArray>>) {
    const std::size_t leaves = static_cast<std::size_t>(elements[0]->num_leaves());
    std::vector<HostArray> out;
    for (std::size_t i = 1; i < n; ++i)
      if (!elements[i]->structure().matches(elements[0]->structure()))
        internal::throw_unequal_structure(elements[i]->to_string(), i);
    for (std::size_t k = 0; k < leaves; ++k)
      out.push_back(internal::stack_all(internal::project(
          elements, [k](const T& t) -> const HostArray& { return t.leaves()[k]; })));
    return T(elements[0]->structure(), std::move(out));
  } else if constexpr (internal::IsTuple<T>::value) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return Arrays<T>(internal::stack_all(internal::project(
          elements, [](const T& t) -> const auto& { return std::get<I>(t); }))...);
    }
    (std::make_index_sequence<std::tuple_size_v<T>>());
  } else if constexpr (internal::IsVector<T>::value) {
    Arrays<T> out;
    for (std::size_t i = 1; i < n; ++i)
      if (elements[i]->size() != elements[0]->size())
        internal::throw_unequal_lengths(i, elements[0]->size(), elements[i]->size());
    for (std::size_t k = 0; k < elements[0]->size(); ++k)
      out.push_back(internal::stack_all(internal::project(
          elements, [k](const T& t) -> const auto& { return t[k]; })));
    return out;
  } else if constexpr (internal::IsMap<T>::value) {
    Arrays<T> out;
    for (std::size_t i = 1; i < n; ++i) {
      bool same = elements[i]->size() == elements[0]->size();
      for (auto a = elements[0]->begin(), b = elements[i]->begin(); same && a != elements[0]->end();
           ++a, ++b)
        same = a->first == b->first;
      if (!same) internal::throw_unequal_structure("a map with other keys", i);
    }
    for (const auto& [key, value] : *elements[0])
      out.emplace(key,
                  internal::stack_all(internal::project(
                      elements, [&key = key](const T& t) -> const auto& { return t.at(key); })));
    return out;
  } else {
    return stack_as<T, T>(elements);
  }
}

template <class Out, class T>
Out stack_as(std::span<const T* const> elements) {
  static_assert(reflect::Reflectable<Out> && reflect::Reflectable<T>,
                "batch<Out>: Out and the element type must be structs");
  const auto column = [&]<std::size_t I>(std::integral_constant<std::size_t, I>) {
    constexpr std::size_t j =
        internal::field_index_of<T>(reflect::field_name<Out>(static_cast<int>(I)));
    static_assert(j != ~std::size_t{0},
                  "batch<Out>: every field of Out must be a field of the element, by name");
    return internal::stack_all(internal::project(
        elements, [](const T& t) -> const auto& {
          return reflect::apply_fields(
              t, [](const auto&... f) -> const auto& { return std::get<j>(std::tie(f...)); });
        }));
  };
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return Out{column(std::integral_constant<std::size_t, I>())...};
  }
  (std::make_index_sequence<static_cast<std::size_t>(reflect::num_fields<Out>())>());
}

template <class T, class F>
void visit_arrays(const T& e, const std::string& path, F&& f) {
  const auto join = [&](std::string_view name) {
    return path.empty() ? std::string(name) : name.empty() ? path : path + "." + std::string(name);
  };
  if constexpr (Number<T>) {
    f(path, HostArray::scalar(e));
  } else if constexpr (internal::RangeOfNumbers<T>::value) {
    using E = std::remove_cvref_t<decltype(*e.begin())>;
    f(path, HostArray::from(std::span<const E>(e.data(), e.size()),
                            {static_cast<std::int64_t>(e.size())}));
  } else if constexpr (std::is_same_v<T, HostArray>) {
    f(path, e);
  } else if constexpr (internal::kIsText<T>) {
  } else if constexpr (std::is_same_v<T, Tree<HostArray>>) {
    tree::visit<HostArray>(
        e, [&](const std::string& p, const HostArray& a) { f(join(internal::dotted_path(p)), a); });
  } else if constexpr (internal::IsTuple<T>::value) {
    std::size_t i = 0;
    std::apply([&](const auto&... x) { (visit_arrays(x, join(std::to_string(i++)), f), ...); }, e);
  } else if constexpr (internal::IsVector<T>::value) {
    for (std::size_t i = 0; i < e.size(); ++i) visit_arrays(e[i], join(std::to_string(i)), f);
  } else if constexpr (internal::IsMap<T>::value) {
    for (const auto& [key, value] : e) visit_arrays(value, join(key), f);
  } else if constexpr (reflect::Reflectable<T>) {
    reflect::for_each_field(
        e, [&](std::string_view name, const auto& x) { visit_arrays(x, join(name), f); });
  }
}

template <class T, class F>
requires HasArrays<T> Arrays<T> assemble_arrays(const T& like, F&& f) {
  if constexpr (Number<T> || internal::RangeOfNumbers<T>::value || std::is_same_v<T, HostArray>) {
    return f();
  } else if constexpr (internal::kIsText<T>) {
    return {};
  } else if constexpr (std::is_same_v<T, Tree<HostArray>>) {
    std::vector<HostArray> leaves;
    for (int i = 0; i < like.num_leaves(); ++i) leaves.push_back(f());
    return T(like.structure(), std::move(leaves));
  } else if constexpr (internal::IsTuple<T>::value) {
    // Braces: the order of evaluation is that of the fields.
    return std::apply([&](const auto&... x) { return Arrays<T>{assemble_arrays(x, f)...}; }, like);
  } else if constexpr (internal::IsVector<T>::value) {
    Arrays<T> out;
    for (const auto& x : like) out.push_back(assemble_arrays(x, f));
    return out;
  } else if constexpr (internal::IsMap<T>::value) {
    Arrays<T> out;
    for (const auto& [key, value] : like) out.emplace(key, assemble_arrays(value, f));
    return out;
  } else {
    return reflect::apply_fields(like,
                                 [&](const auto&... x) { return T{assemble_arrays(x, f)...}; });
  }
}

template <class T>
std::string element_spec(const T& e) {
  if constexpr (Number<T>) {
    return dtype_name(dtype_of<T>());
  } else if constexpr (internal::RangeOfNumbers<T>::value) {
    using E = std::remove_cvref_t<decltype(*e.begin())>;
    return shape_string(dtype_of<E>(), {static_cast<std::int64_t>(e.size())});
  } else if constexpr (std::is_same_v<T, HostArray>) {
    return internal::array_spec(e);
  } else if constexpr (internal::kIsText<T>) {
    return "text(" + std::to_string(e.size()) + ")";
  } else if constexpr (internal::IsTuple<T>::value) {
    std::string s = "(";
    std::apply(
        [&](const auto&... x) { ((s += (s.size() > 1 ? ", " : "") + element_spec(x)), ...); }, e);
    return s + ")";
  } else if constexpr (internal::IsVector<T>::value) {
    return "[" + std::to_string(e.size()) + " x " +
           (e.empty() ? std::string("?") : element_spec(e[0])) + "]";
  } else if constexpr (internal::IsMap<T>::value || std::is_same_v<T, Tree<HostArray>>) {
    std::string s = "{";
    visit_arrays(e, "", [&](const std::string& path, const HostArray& a) {
      s += (s.size() > 1 ? ", " : "") + (path.empty() ? "" : path + ": ") + internal::array_spec(a);
    });
    return s + "}";
  } else if constexpr (reflect::Reflectable<T>) {
    std::string s = "{";
    reflect::for_each_field(e, [&](std::string_view name, const auto& x) {
      s += (s.size() > 1 ? ", " : "") + std::string(name) + ": " + element_spec(x);
    });
    return s + "}";
  } else {
    return std::string(reflect::type_name<T>());
  }
}

template <class T>
std::size_t element_bytes(const T& e) {
  if constexpr (Number<T>) {
    return sizeof(T);
  } else if constexpr (internal::RangeOfNumbers<T>::value) {
    return e.size() * sizeof(*e.begin());
  } else if constexpr (std::is_same_v<T, HostArray>) {
    return e.defined() ? e.nbytes() : 0;
  } else if constexpr (internal::kIsText<T>) {
    return e.size();
  } else if constexpr (std::is_same_v<T, Tree<HostArray>>) {
    std::size_t n = 0;
    for (const HostArray& a : e.leaves()) n += element_bytes(a);
    return n;
  } else if constexpr (internal::IsTuple<T>::value) {
    return std::apply([](const auto&... x) { return (std::size_t{0} + ... + element_bytes(x)); },
                      e);
  } else if constexpr (internal::IsVector<T>::value) {
    std::size_t n = 0;
    for (const auto& x : e) n += element_bytes(x);
    return n;
  } else if constexpr (internal::IsMap<T>::value) {
    std::size_t n = 0;
    for (const auto& [key, x] : e) n += element_bytes(x);
    return n;
  } else if constexpr (reflect::Reflectable<T>) {
    std::size_t n = 0;
    reflect::for_each_field(e, [&](std::string_view, const auto& x) { n += element_bytes(x); });
    return n;
  } else {
    return sizeof(T);
  }
}

namespace internal {
std::string preview_array(const HostArray& a);
std::string preview_text(std::string_view s);
}  // namespace internal

template <class T>
std::string element_preview(const T& e) {
  if constexpr (std::is_same_v<T, HostArray>) {
    return internal::preview_array(e);
  } else if constexpr (Number<T>) {
    return internal::preview_array(HostArray::scalar(e));
  } else if constexpr (internal::kIsText<T>) {
    return internal::preview_text(e);
  } else if constexpr (internal::RangeOfNumbers<T>::value || internal::IsTuple<T>::value ||
                       internal::IsVector<T>::value || internal::IsMap<T>::value ||
                       std::is_same_v<T, Tree<HostArray>> || reflect::Reflectable<T>) {
    std::string s;
    visit_arrays(e, "", [&](const std::string& path, const HostArray& a) {
      s += (s.empty() ? "" : ", ") + (path.empty() ? "" : path + "=") + internal::preview_array(a);
    });
    return s;
  } else {
    return std::string(reflect::type_name<T>());
  }
}

}  // namespace xylem::data
