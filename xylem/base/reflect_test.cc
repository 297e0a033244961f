#include "xylem/base/reflect.h"

#include <gtest/gtest.h>

#include <any>
#include <array>
#include <complex>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace xylem {
namespace {

// Converts from everything an array type converts from, to provoke ambiguous initialisation.
struct Greedy {
  std::shared_ptr<int> p;
  Greedy() = default;
  Greedy(float) {}
  Greedy(double) {}
  Greedy(bool) {}
  template <class T>
  requires std::is_integral_v<T> Greedy(T) {}
  template <class T>
  Greedy(std::span<const T>) {}
  template <class T>
  Greedy(std::initializer_list<T>) {}
};

struct NoDefault {
  int value;
  static constexpr int xylem_num_fields = 1;
  explicit NoDefault(int v) : value(v) {}
};

struct Empty {};
struct One {
  Greedy kernel;
};
struct Linear {
  Greedy kernel;
  std::optional<Greedy> bias;
  int features = 3;
};
struct Containers {
  std::vector<Linear> layers;
  std::map<std::string, Greedy> table;
  std::variant<Greedy, One> choice;
  std::function<int(int)> f;
  std::any any;
  std::tuple<Greedy, int> tuple;
  std::pair<Greedy, One> pair;
  std::array<Greedy, 3> array;
  std::string name;
};
struct Mixed {
  Containers inner;
  float (*activation)(float);
  std::complex<float> c;
  NoDefault stated;
  std::unique_ptr<int> owner;
  const int constant;
};
struct Tag {};
struct Derived : Tag {
  Greedy a;
  int b;
};
template <class T>
struct Recursive {
  T value;
  std::vector<Recursive> children;
};
struct Many {
  int f00, f01, f02, f03, f04, f05, f06, f07, f08, f09, f10, f11, f12, f13, f14, f15;
  int f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26, f27, f28, f29, f30, f31;
};
struct FirstIsAny {
  std::any a;
};
struct FirstIsOptional {
  std::optional<std::optional<int>> a;
};

TEST(ReflectTest, CountsFieldsOfEveryKindOfType) {
  static_assert(reflect::num_fields<Empty>() == 0);
  static_assert(reflect::num_fields<One>() == 1);
  static_assert(reflect::num_fields<Linear>() == 3);
  static_assert(reflect::num_fields<const Linear>() == 3);
  static_assert(reflect::num_fields<Containers>() == 9);
  static_assert(reflect::num_fields<Mixed>() == 6);
  static_assert(reflect::num_fields<NoDefault>() == 1);
  static_assert(reflect::num_fields<Derived>() == 2);
  static_assert(reflect::num_fields<Recursive<Greedy>>() == 2);
  static_assert(reflect::num_fields<Many>() == 32);
  static_assert(reflect::num_fields<FirstIsAny>() == 1);
  static_assert(reflect::num_fields<FirstIsOptional>() == 1);
}

template <class T>
std::vector<std::string> names() {
  return {reflect::field_names<T>(), reflect::field_names<T>() + reflect::num_fields<T>()};
}

TEST(ReflectTest, NamesFieldsAsDeclared) {
  struct Local {
    Greedy first_field;
    int x2;
  };
  EXPECT_EQ(names<Linear>(), (std::vector<std::string>{"kernel", "bias", "features"}));
  EXPECT_EQ(names<Local>(), (std::vector<std::string>{"first_field", "x2"}));
  EXPECT_EQ(names<Derived>(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(names<NoDefault>(), (std::vector<std::string>{"value"}));
  EXPECT_EQ(names<Recursive<Greedy>>(), (std::vector<std::string>{"value", "children"}));
  EXPECT_EQ(names<Containers>(), (std::vector<std::string>{"layers", "table", "choice", "f", "any",
                                                           "tuple", "pair", "array", "name"}));
  EXPECT_EQ(names<Mixed>().back(), "constant");
  EXPECT_EQ(names<Many>()[31], "f31");
  EXPECT_TRUE(names<Empty>().empty());
}

TEST(ReflectTest, GivesReferencesToTheFieldsInOrder) {
  Linear l;
  std::string seen;
  reflect::for_each_field(l, [&](std::string_view name, auto& field) {
    seen += name;
    seen += ';';
    if constexpr (std::is_same_v<decltype(field), int&>) field = 7;
  });
  EXPECT_EQ(seen, "kernel;bias;features;");
  EXPECT_EQ(l.features, 7);
  const Derived d{{}, {}, 5};
  const int sum = reflect::apply_fields(d, [](const auto&, const int& b) { return b + 1; });
  EXPECT_EQ(sum, 6);
}

TEST(ReflectTest, TypeNamesEndInTheTypeAsWritten) {
  const std::string name(reflect::type_name<Linear>());
  EXPECT_EQ(name.substr(name.rfind("::") + 2), "Linear");
  EXPECT_EQ(reflect::type_name<int>(), "int");
}

// What is refused, seen through the parts that the static_asserts ask.
struct CArray {
  int a[3];
  int b;
};
struct ArrayOfClass {
  Linear x;
  Greedy a[2];
};
struct Full {
  int q;
};
struct FullBase : Full {
  Greedy a;
};
struct Reference {
  Greedy& a;
};
struct TooMany {
  Many a;
  int b[33];
};

template <class T>
constexpr bool refused_array() {
  constexpr int n = reflect::internal::count_fields_from<T, 0, 0, false>();
  return reflect::internal::has_array<T, 0, n>(std::make_index_sequence<n>());
}

TEST(ReflectTest, RecognisesWhatCannotBeReflected) {
  static_assert(refused_array<CArray>());
  static_assert(refused_array<ArrayOfClass>());
  static_assert(!refused_array<Containers>());
  static_assert(!refused_array<Recursive<Greedy>>());
  static_assert(reflect::internal::num_bases<FullBase>() == 1);
  static_assert(reflect::internal::num_bases<Derived>() == 1);
  static_assert(reflect::internal::num_bases<Containers>() == 0);
  static_assert(reflect::internal::count_fields_from<Reference, 0, 0, false>() == -1);
  static_assert(reflect::internal::count_fields_from<TooMany, 0, 0, false>() > reflect::kMaxFields);
  static_assert(!reflect::Reflectable<Greedy>);
  static_assert(!reflect::Reflectable<int>);
}

}  // namespace
}  // namespace xylem
