#pragma once

#include <concepts>
#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

// Reflection of aggregates: how many fields a struct has, their names, and references to them.
//
//   struct Linear { Array kernel; std::optional<Array> bias; int features; };
//   reflect::for_each_field(linear, [](std::string_view name, auto& field) { ... });
//
// A reflectable type is an aggregate (no constructors, no private fields), or a class with public
// fields only that states their number: `static constexpr int xylem_num_fields = N;`. Bases must
// be empty. C arrays and references are refused; so are more than 32 fields. Each refusal is a
// static_assert that says what to write instead.

namespace xylem::reflect {

inline constexpr int kMaxFields = 32;

namespace internal {

// Initialises a field of any type but T itself (which would make every aggregate look as if it had
// one field). const, so that greedy constructors (`optional(U&&)`) win over the conversion instead
// of tying with it. Never called; it has a body because a constexpr constructor may name it.
template <class T>
struct AnyField {
  template <class U>
  requires(!std::is_same_v<std::remove_cv_t<U>, T> && !std::is_base_of_v<U, T>) operator U()
      const noexcept {
    __builtin_unreachable();
  }
};

// Initialises a base class only. Not copyable, so that a first field of type std::any refuses it.
template <class T>
struct AnyBase {
  constexpr AnyBase() = default;
  AnyBase(const AnyBase&) = delete;
  template <class U>
  requires(std::is_base_of_v<U, T> && !std::is_same_v<std::remove_cv_t<U>, T>) operator U()
      const noexcept {
    __builtin_unreachable();
  }
};

template <class T>
struct AnyFullBase {
  template <class U>
  requires(std::is_base_of_v<U, T> && !std::is_same_v<std::remove_cv_t<U>, T> &&
           !std::is_empty_v<U>)
  operator U() const noexcept {
    __builtin_unreachable();
  }
};

template <class T, std::size_t>
using AnyFieldAt = AnyField<T>;
template <class T, std::size_t>
using AnyBaseAt = AnyBase<T>;

template <class T, std::size_t... B, std::size_t... F>
constexpr bool accepts(std::index_sequence<B...>, std::index_sequence<F...>) {
  return requires { T{AnyBaseAt<T, B>{}..., AnyFieldAt<T, F>{}...}; };
}

template <class T, int B>
constexpr bool accepts_bases() {
  return accepts<T>(std::make_index_sequence<B>(), std::index_sequence<>());
}

// The clause after `A` fields is braced with two values, `R` fields follow.
template <class T, std::size_t... B, std::size_t... A, std::size_t... R>
constexpr bool accepts_pair(std::index_sequence<B...>, std::index_sequence<A...>,
                            std::index_sequence<R...>) {
  return requires {
    T{AnyBaseAt<T, B>{}...,
      AnyFieldAt<T, A>{}...,
      {AnyField<T>{}, AnyField<T>{}},
      AnyFieldAt<T, R>{}...};
  };
}

// T{any * k} is valid for k from some k0 (the fields behind it are default constructible) up to the
// number of fields, so the first invalid k after a valid one ends the search. -1: none is valid.
template <class T, int B, int N, bool Seen>
constexpr int count_fields_from() {
  constexpr bool valid = accepts<T>(std::make_index_sequence<B>(), std::make_index_sequence<N>());
  if constexpr (!valid && Seen)
    return N - 1;
  else if constexpr (N > kMaxFields)
    return valid ? N : -1;
  else
    return count_fields_from<T, B, N + 1, valid>();
}

template <class T>
constexpr int num_bases() {
  if constexpr (!accepts<T>(std::index_sequence<0>(), std::index_sequence<>()) &&
                !accepts<T>(std::index_sequence<0>(), std::index_sequence<0>()))
    return 0;
  else if constexpr (!accepts_bases<T, 2>())
    return 1;
  else
    return 2;
}

// An array of two or more elements takes one braced clause but as many plain clauses as elements:
// with all the other plain clauses behind it there is one clause too many.
template <class T, int B, int N, std::size_t... I>
constexpr bool has_array(std::index_sequence<I...>) {
  return ((accepts_pair<T>(std::make_index_sequence<B>(), std::make_index_sequence<I>(),
                           std::index_sequence<>()) &&
           !accepts_pair<T>(std::make_index_sequence<B>(), std::make_index_sequence<I>(),
                            std::make_index_sequence<N - 1 - static_cast<int>(I)>())) ||
          ...);
}

template <class T>
concept StatesItsFields = requires {
  { T::xylem_num_fields } -> std::convertible_to<int>;
};

template <class T>
constexpr int count_fields() {
  static_assert(std::is_class_v<T> && !std::is_union_v<T>, "only a struct has fields to reflect");
  if constexpr (StatesItsFields<T>) {
    static_assert(T::xylem_num_fields <= kMaxFields,
                  "too many fields: group some of them in nested structs (at most 32)");
    return T::xylem_num_fields;
  } else {
    constexpr bool aggregate = std::is_aggregate_v<T>;
    static_assert(aggregate,
                  "not an aggregate: a type with constructors or private fields must have public "
                  "fields only and state their number: static constexpr int xylem_num_fields = N;");
    if constexpr (aggregate) {
      constexpr int bases = num_bases<T>();
      constexpr bool full_base = bases > 0 && requires { T{AnyFullBase<T>{}}; };
      static_assert(bases <= 1 && !full_base,
                    "a base class with fields (or several bases): make the base a field instead");
      if constexpr (bases <= 1 && !full_base) {
        constexpr int n = count_fields_from<T, bases, 0, false>();
        static_assert(n >= 0,
                      "a field cannot be initialised by value: replace references by values or "
                      "pointers' targets");
        static_assert(n <= kMaxFields,
                      "too many fields: group some of them in nested structs (at most 32; each "
                      "element of a C array counts)");
        if constexpr (n > 0 && n <= kMaxFields) {
          constexpr bool array = has_array<T, bases, n>(std::make_index_sequence<n>());
          static_assert(!array, "a C array as a field: use std::array or std::vector instead");
          return array ? 0 : n;
        }
        return 0;
      }
    }
    return 0;
  }
}

template <class T>
inline constexpr int kNumFields = count_fields<std::remove_cv_t<T>>();

}  // namespace internal

// Number of fields of T; a compile error that says what to change if T cannot be reflected.
template <class T>
constexpr int num_fields() {
  return internal::kNumFields<T>;
}

// Whether T is a class that reflection may be asked about: an aggregate class or one that states
// its fields. Does not look at the fields.
template <class T>
concept Reflectable = std::is_class_v<T> &&(std::is_aggregate_v<T> || internal::StatesItsFields<T>);

namespace internal {

// One overload for each number of fields; `f(field...)`.
template <int N>
struct Bind;

template <>
struct Bind<0> {
  template <class T, class F>
  static constexpr decltype(auto) apply(T&, F&& f) {
    return f();
  }
};

#define XYLEM_FIELDS(N, ...)                             \
  template <>                                            \
  struct Bind<N> {                                       \
    template <class T, class F>                          \
    static constexpr decltype(auto) apply(T& t, F&& f) { \
      auto& [__VA_ARGS__] = t;                           \
      return f(__VA_ARGS__);                             \
    }                                                    \
  };

// clang-format off
XYLEM_FIELDS(1, f0)
XYLEM_FIELDS(2, f0, f1)
XYLEM_FIELDS(3, f0, f1, f2)
XYLEM_FIELDS(4, f0, f1, f2, f3)
XYLEM_FIELDS(5, f0, f1, f2, f3, f4)
XYLEM_FIELDS(6, f0, f1, f2, f3, f4, f5)
XYLEM_FIELDS(7, f0, f1, f2, f3, f4, f5, f6)
XYLEM_FIELDS(8, f0, f1, f2, f3, f4, f5, f6, f7)
XYLEM_FIELDS(9, f0, f1, f2, f3, f4, f5, f6, f7, f8)
XYLEM_FIELDS(10, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9)
XYLEM_FIELDS(11, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10)
XYLEM_FIELDS(12, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11)
XYLEM_FIELDS(13, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12)
XYLEM_FIELDS(14, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13)
XYLEM_FIELDS(15, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14)
XYLEM_FIELDS(16, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15)
XYLEM_FIELDS(17, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16)
XYLEM_FIELDS(18, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17)
XYLEM_FIELDS(19, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18)
XYLEM_FIELDS(20, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19)
XYLEM_FIELDS(21, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20)
XYLEM_FIELDS(22, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21)
XYLEM_FIELDS(23, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22)
XYLEM_FIELDS(24, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23)
XYLEM_FIELDS(25, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24)
XYLEM_FIELDS(26, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25)
XYLEM_FIELDS(27, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26)
XYLEM_FIELDS(28, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26, f27)
XYLEM_FIELDS(29, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26, f27, f28)
XYLEM_FIELDS(30, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26, f27, f28, f29)
XYLEM_FIELDS(31, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26, f27, f28, f29, f30)
XYLEM_FIELDS(32, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26, f27, f28, f29, f30, f31)
// clang-format on
#undef XYLEM_FIELDS

#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-var-template"
#pragma clang diagnostic ignored "-Wundefined-internal"
#endif

// An object of any type that is named but never defined: the address of its field, printed by the
// compiler, holds the field's name.
template <class T>
struct Holder {
  T value;
};
template <class T>
struct Named {
  static Holder<T> object;
};

template <int I, class First, class... Rest>
constexpr auto nth_address(First& first, Rest&... rest) {
  static_assert(!std::is_array_v<First>,
                "a C array as a field: use std::array or std::vector instead");
  if constexpr (I == 0)
    return &first;
  else
    return nth_address<I - 1>(rest...);
}

template <class T, int I>
constexpr auto field_address() {
  return Bind<kNumFields<T>>::apply(Named<T>::object.value,
                                    [](auto&... field) { return nth_address<I>(field...); });
}

template <auto Address>
constexpr std::string_view address_text() {
  return __PRETTY_FUNCTION__;
}

// The text ends in "...S::field)}]" (g++) or "...value.field]" (clang).
constexpr std::string_view last_identifier(std::string_view s) {
  constexpr auto in_name = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  // g++ appends "; std::string_view = ..." to the template arguments.
  const std::size_t mark = s.find("; std::string_view");
  std::size_t end = mark == std::string_view::npos ? s.size() : mark;
  while (end > 0 && !in_name(s[end - 1])) --end;
  std::size_t begin = end;
  while (begin > 0 && in_name(s[begin - 1])) --begin;
  return s.substr(begin, end - begin);
}

template <class T, std::size_t... I>
constexpr auto make_field_names(std::index_sequence<I...>) {
  struct Names {
    std::string_view at[sizeof...(I) + 1];
  };
  return Names{{last_identifier(address_text<field_address<T, static_cast<int>(I)>()>())..., {}}};
}

template <class T>
inline constexpr auto kFieldNames =
    make_field_names<T>(std::make_index_sequence<static_cast<std::size_t>(kNumFields<T>)>());

#if defined(__clang__)
#pragma clang diagnostic pop
#endif

template <class T>
constexpr std::string_view type_text() {
  return __PRETTY_FUNCTION__;
}

constexpr std::string_view trim_type_text(std::string_view s) {
  const std::size_t begin = s.find("T = ") + 4;
  std::size_t end = s.find("; std::string_view", begin);
  if (end == std::string_view::npos) end = s.rfind(']');
  return s.substr(begin, end - begin);
}

}  // namespace internal

// Name of field i, 0 <= i < num_fields<T>(). Static storage.
template <class T>
constexpr std::string_view field_name(int i) {
  return internal::kFieldNames<std::remove_cv_t<T>>.at[i];
}

// The names of all fields, `num_fields<T>()` of them. Static storage.
template <class T>
constexpr const std::string_view* field_names() {
  return internal::kFieldNames<std::remove_cv_t<T>>.at;
}

// The compiler's spelling of a type: "xylem::nn::Linear". For messages and identity within one
// build; compilers differ. Static storage.
template <class T>
constexpr std::string_view type_name() {
  return internal::trim_type_text(internal::type_text<T>());
}

// Calls f(field0, field1, ...) with references to the fields of t and returns its result.
template <class T, class F>
constexpr decltype(auto) apply_fields(T& t, F&& f) {
  return internal::Bind<num_fields<T>()>::apply(t, static_cast<F&&>(f));
}

// Calls f(name, field) for each field in order of declaration.
template <class T, class F>
constexpr void for_each_field(T& t, F&& f) {
  apply_fields(t, [&f](auto&... field) {
    int i = 0;
    (f(field_name<T>(i++), field), ...);
    (void)i;
  });
}

}  // namespace xylem::reflect
