#include "xylem/base/tree.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "xylem/base/error.h"
#include "xylem/base/float_types.h"

namespace xylem {
namespace {

// A leaf as core's arrays are: a handle that may be undefined and converts from numbers.
struct Leaf {
  std::shared_ptr<double> p;
  Leaf() = default;
  Leaf(double v) : p(std::make_shared<double>(v)) {}
  bool defined() const { return p != nullptr; }
  double value() const { return p ? *p : -1; }
};

enum class Mode { kTrain, kEval };
float relu(float x) { return x > 0 ? x : 0; }
float tanh_like(float x) { return x; }

struct Linear {
  Leaf kernel;
  std::optional<Leaf> bias;
  int features = 0;
};
struct Attention {
  Linear query, key;
  float scale = 1;
};
struct Layer {
  Attention attention;
  std::string name;
};
struct Model {
  std::vector<Layer> layers;
  std::map<std::string, Leaf> table;
  std::map<int, Leaf> by_number;
  std::tuple<Leaf, int> pair;
  std::array<Leaf, 2> both;
  std::variant<Leaf, Linear> choice;
  float (*activation)(float) = relu;
  Mode mode = Mode::kTrain;
  Static<std::vector<int>> sizes;
  Dims dims;
};
struct WithConstructor {
  static constexpr int xylem_num_fields = 2;
  Leaf a, b;
  explicit WithConstructor(double v) : a(v), b(v + 1) {}
};

Linear linear(double v, bool bias) {
  return {.kernel = v, .bias = bias ? std::optional<Leaf>(v + 0.5) : std::nullopt, .features = 3};
}

Model model() {
  Model m;
  m.layers = {{{linear(1, true), linear(2, false), 0.5f}, "first"},
              {{linear(3, true), linear(4, true), 0.5f}, "second"}};
  m.table = {{"b", 11.}, {"a \"q\"", 10.}};
  m.by_number = {{7, 20.}, {-1, 19.}};
  m.pair = {30., 5};
  m.both = {40., 41.};
  m.choice = linear(50, false);
  m.sizes.value = {1, 2};
  m.dims = {2, 3};
  return m;
}

std::vector<double> values(const std::vector<Leaf>& l) {
  std::vector<double> v;
  for (const Leaf& x : l) v.push_back(x.value());
  return v;
}

TEST(TreeTest, LeavesComeInOrderOfDeclarationIndexAndKey) {
  EXPECT_EQ(values(tree::leaves<Leaf>(model())),
            (std::vector<double>{1, 1.5, 2, 3, 3.5, 4, 4.5, 10, 11, 19, 20, 30, 40, 41, 50}));
}

TEST(TreeTest, PathsFollowFieldsIndicesAndKeys) {
  const auto paths = tree::paths<Leaf>(model());
  EXPECT_EQ(paths, (std::vector<std::string>{
                       "layers[0].attention.query.kernel", "layers[0].attention.query.bias",
                       "layers[0].attention.key.kernel", "layers[1].attention.query.kernel",
                       "layers[1].attention.query.bias", "layers[1].attention.key.kernel",
                       "layers[1].attention.key.bias", "table[\"a \\\"q\\\"\"]", "table[\"b\"]",
                       "by_number[-1]", "by_number[7]", "pair[0]", "both[0]", "both[1]",
                       "choice.kernel"}));
  std::vector<std::string> visited;
  const Model m = model();
  tree::visit<Leaf>(m, [&](const std::string& path, const Leaf&) { visited.push_back(path); });
  EXPECT_EQ(visited, paths);
}

TEST(TreeTest, UnflattenReplacesTheLeavesOfACopyOfTheSkeleton) {
  const Model m = model();
  auto flat = tree::flatten<Leaf>(m);
  for (Leaf& l : flat.leaves) l = Leaf(l.value() * 2);
  const Model n = tree::unflatten<Leaf>(m, std::span<const Leaf>(flat.leaves));
  EXPECT_EQ(n.layers[1].attention.key.bias->value(), 9);
  EXPECT_EQ(std::get<1>(n.pair), 5);
  EXPECT_EQ(m.layers[1].attention.key.bias->value(), 4.5);
  EXPECT_TRUE(tree::structure<Leaf>(n) == flat.structure);
  const WithConstructor w = tree::unflatten<Leaf>(WithConstructor(1), std::vector<Leaf>{7., 8.});
  EXPECT_EQ(w.b.value(), 8);
  EXPECT_THROW(tree::unflatten<Leaf>(m, std::vector<Leaf>{1.}), UserError);
}

TEST(TreeTest, StructurePrintsLikeAPyTreeDef) {
  std::string text = tree::structure<Leaf>(model()).to_string();
  // The address of the function differs from run to run.
  const auto at = text.find("activation=") + 11;
  text.replace(at, text.find(',', at) - at, "F");
  EXPECT_EQ(text,
            "Model(layers=[Layer(attention=Attention(query=Linear(kernel=*, bias=*, features=3), "
            "key=Linear(kernel=*, bias=None, features=3), scale=0.5), name=\"first\"), "
            "Layer(attention=Attention(query=Linear(kernel=*, bias=*, features=3), "
            "key=Linear(kernel=*, bias=*, features=3), scale=0.5), name=\"second\")], "
            "table={\"a \\\"q\\\"\": *, \"b\": *}, by_number={-1: *, 7: *}, pair=(*, 5), "
            "both=[*, *], choice=variant1(Linear(kernel=*, bias=None, features=3)), activation=F, "
            "mode=0, sizes=Static(value=[1, 2]), dims=[2,3])");
}

TEST(TreeTest, EveryStaticPartIsPartOfTheStructure) {
  const Model m = model();
  const Structure s = tree::structure<Leaf>(m);
  const auto differs = [&](auto change, std::string_view where) {
    Model n = model();
    change(n);
    const Structure t = tree::structure<Leaf>(n);
    EXPECT_FALSE(s == t) << where;
    const std::string d = s.describe_difference(t);
    EXPECT_EQ(d.substr(0, where.size()), where) << d;
  };
  EXPECT_TRUE(s == tree::structure<Leaf>(model()));
  EXPECT_EQ(s.hash(), tree::structure<Leaf>(model()).hash());
  EXPECT_EQ(s.describe_difference(tree::structure<Leaf>(model())), "");
  differs([](Model& n) { n.layers[1].attention.key.features = 4; },
          "layers[1].attention.key.features: 3 against 4");
  differs([](Model& n) { n.layers[0].attention.scale = -0.5f; },
          "layers[0].attention.scale: 0.5 against -0.5");
  differs([](Model& n) { n.layers[0].name = "x"; }, "layers[0].name: \"first\" against \"x\"");
  differs([](Model& n) { n.layers.pop_back(); }, "layers: a list of 2 against a list of 1");
  differs([](Model& n) { n.layers[0].attention.key.bias = 1.; },
          "layers[0].attention.key.bias: no value against a value");
  differs([](Model& n) { n.table["c"] = 1.; }, "table: a map with keys");
  differs([](Model& n) { n.activation = tanh_like; }, "activation: 0x");
  differs([](Model& n) { n.mode = Mode::kEval; }, "mode: 0 against 1");
  differs([](Model& n) { n.sizes.value[1] = 3; }, "sizes.value[1]: 2 against 3");
  differs([](Model& n) { n.dims[0] = 9; }, "dims: [2,3] against [9,3]");
  differs([](Model& n) { n.choice = Leaf(1); }, "choice: alternative 1 against alternative 0");
  differs([](Model& n) { n.pair = {Leaf(), 5}; }, "pair[0]: a leaf against an empty leaf");
}

TEST(TreeTest, StaticFloatsAreComparedByBits) {
  struct F {
    double x;
  };
  EXPECT_FALSE(tree::structure<Leaf>(F{0.0}) == tree::structure<Leaf>(F{-0.0}));
  EXPECT_TRUE(tree::structure<Leaf>(F{__builtin_nan("")}) ==
              tree::structure<Leaf>(F{__builtin_nan("")}));
}

TEST(TreeTest, EqualStructureMeansEqualType) {
  struct A {
    std::vector<Leaf> x;
  };
  struct B {
    std::vector<Linear> x;
  };
  struct C {
    std::vector<Leaf> x;
  };
  EXPECT_FALSE(tree::structure<Leaf>(A{}) == tree::structure<Leaf>(B{}));
  EXPECT_FALSE(tree::structure<Leaf>(A{}) == tree::structure<Leaf>(C{}));
  EXPECT_TRUE(tree::structure<Leaf>(A{}).matches(tree::structure<Leaf>(C{})));
}

TEST(TreeTest, UndefinedLeavesStayPositionsAndAreMarked) {
  const Linear l{.kernel = Leaf(), .bias = Leaf(2)};
  const auto flat = tree::flatten<Leaf>(l);
  ASSERT_EQ(flat.leaves.size(), 2u);
  EXPECT_TRUE(flat.structure.leaf_empty(0));
  EXPECT_FALSE(flat.structure.leaf_empty(1));
  EXPECT_EQ(flat.structure.to_string(), "Linear(kernel=-, bias=*, features=0)");
  const Structure full = tree::structure<Leaf>(linear(1, true));
  EXPECT_TRUE(full.matches(flat.structure));
  EXPECT_THROW(full.leaf_empty(2), UserError);
}

TEST(TreeTest, MapKeepsTheTypeAndTakesSeveralTrees) {
  const Model m = model();
  const Model sum = tree::map<Leaf>(
      [](const Leaf& a, const Leaf& b) { return Leaf(a.value() + b.value()); }, m, m);
  EXPECT_EQ(sum.table.at("b").value(), 22);
  EXPECT_EQ(m.table.at("b").value(), 11);
  const Linear named = tree::map_with_path<Leaf>(
      [](const std::string& path, const Leaf& l) { return path == "bias" ? Leaf(0) : l; },
      linear(1, true));
  EXPECT_EQ(named.bias->value(), 0);
  EXPECT_EQ(named.kernel.value(), 1);
  try {
    tree::map<Leaf>([](const Leaf& a, const Leaf&) { return a; }, linear(1, true),
                    linear(1, false));
    FAIL();
  } catch (const UserError& e) {
    EXPECT_NE(e.message().find("bias: a value against no value"), std::string::npos) << e.what();
  }
}

TEST(TreeTest, MapToMakesATreeOfAnotherLeafType) {
  const Tree<std::string> names = tree::map_with_path_to<Leaf>(
      [](const std::string& path, const Leaf&) { return "<" + path + ">"; }, linear(1, true));
  EXPECT_EQ(names.child("bias").leaf(), "<bias>");
  const Tree<bool> mask =
      tree::map_to<Leaf>([](const Leaf& l) { return l.value() > 1; }, linear(1, true));
  EXPECT_FALSE(mask.child("kernel").leaf());
  EXPECT_TRUE(mask.child("bias").leaf());
  EXPECT_EQ(tree::leaves<bool>(mask), (std::vector<bool>{false, true}));
  const auto negated = tree::map_to<bool>([](bool b) { return !b; }, mask);
  EXPECT_TRUE(negated.child("kernel").leaf());
  const Tree<double> none =
      tree::map_to<Leaf>([](const Leaf& l) { return l.value(); }, std::vector<Leaf>{});
  EXPECT_EQ(none.num_leaves(), 0);
}

TEST(TreeTest, TypedAndDynamicTreesConvert) {
  const Linear l = linear(1, true);
  const Tree<Leaf> t = tree::to_tree<Leaf>(l);
  EXPECT_TRUE(t.structure() == tree::structure<Leaf>(l));
  const Linear back = tree::from_tree<Leaf>(linear(5, true), t);
  EXPECT_EQ(back.bias->value(), 1.5);
  EXPECT_THROW(tree::from_tree<Leaf>(linear(5, false), t), UserError);
  // A Tree is a branch of a tree, and walks as what it was made of.
  const auto nested = std::make_tuple(t, 3);
  EXPECT_EQ(tree::paths<Leaf>(nested), (std::vector<std::string>{"[0].kernel", "[0].bias"}));
  EXPECT_EQ(tree::structure<Leaf>(nested).to_string(), "(Linear(kernel=*, bias=*, features=3), 3)");
}

TEST(TreeTest, DynamicTreesAreMadeOfListsTuplesAndMaps) {
  using T = Tree<int>;
  const T t = T::map({{"b", T::list({1, 2})}, {"a", T::tuple({T(3)})}});
  EXPECT_EQ(t.to_string(), "{\"a\": (*,), \"b\": [*, *]}");
  EXPECT_EQ(t.leaves(), (std::vector<int>{3, 1, 2}));
  EXPECT_EQ(t.child("b").child(1).leaf(), 2);
  EXPECT_EQ(t.num_children(), 2);
  EXPECT_THROW(t.child("c"), UserError);
  EXPECT_THROW(t.child(2), UserError);
  EXPECT_THROW(t.leaf(), UserError);
  EXPECT_THROW(T::map({{"a", 1}, {"a", 2}}), UserError);
  EXPECT_THROW(T(t.structure(), {1}), UserError);
  EXPECT_EQ(t.structure().paths(),
            (std::vector<std::string>{"[\"a\"][0]", "[\"b\"][0]", "[\"b\"][1]"}));
}

TEST(TreeTest, PrefixLeavesCoverSubtrees) {
  using T = Tree<int>;
  const Structure full = tree::structure<Leaf>(std::make_tuple(linear(1, true), model(), Leaf(1)));
  const auto n = static_cast<std::size_t>(full.num_leaves());
  EXPECT_EQ(tree::broadcast_prefix(T(5), full), std::vector<int>(n, 5));
  const auto out =
      tree::broadcast_prefix(T::tuple({T::map({{"bias", 1}, {"kernel", 2}}), 3, 4}), full);
  ASSERT_EQ(out.size(), n);
  EXPECT_EQ(out[0], 2);
  EXPECT_EQ(out[1], 1);
  EXPECT_EQ(out[2], 3);
  EXPECT_EQ(out[n - 2], 3);
  EXPECT_EQ(out[n - 1], 4);
  // A typed tree of the same type is a prefix as well.
  const Tree<int> same = tree::map_to<Leaf>([](const Leaf&) { return 1; }, linear(1, true));
  EXPECT_EQ(tree::broadcast_prefix(same, tree::structure<Leaf>(linear(2, true))),
            (std::vector<int>{1, 1}));
}

TEST(TreeTest, StaticPartsNeedNoPrefix) {
  using T = Tree<int>;
  const Structure full = tree::structure<Leaf>(std::make_tuple(Leaf(1), 3, Leaf(2)));
  EXPECT_EQ(tree::broadcast_prefix(T::tuple({1, 2}), full), (std::vector<int>{1, 2}));
  EXPECT_EQ(tree::broadcast_prefix(T::tuple({1, 9, 2}), full), (std::vector<int>{1, 2}));
}

TEST(TreeTest, PrefixErrorsNameThePath) {
  using T = Tree<int>;
  const Structure full = tree::structure<Leaf>(std::make_tuple(linear(1, true), Leaf(1)));
  const auto message = [&](const T& prefix) -> std::string {
    try {
      tree::broadcast_prefix(prefix, full, "vmap: in_axes");
    } catch (const UserError& e) {
      return e.message();
    }
    return "none";
  };
  EXPECT_NE(message(T::tuple({1, 2, 3})).find("at the root the prefix has a tuple of 3"),
            std::string::npos);
  EXPECT_NE(message(T::tuple({1, T::list({2})}))
                .find("at [1] the prefix has a list of 1, the full structure has a leaf"),
            std::string::npos);
  EXPECT_NE(message(T::tuple({T::map({{"kernel", 1}}), 2})).find("\"bias\" is missing"),
            std::string::npos);
  EXPECT_NE(message(T::tuple({T::map({{"kernel", 1}, {"bias", 1}, {"x", 1}}), 2}))
                .find("it has no \"x\""),
            std::string::npos);
}

TEST(TreeTest, ComposeAndTransposeActAsInJax) {
  const Structure outer = Tree<int>::map({{"a", 0}, {"b", Tree<int>::list({0, 0})}}).structure();
  const Structure inner = Tree<int>::tuple({0, 0}).structure();
  const Structure both = outer.compose(inner);
  EXPECT_EQ(both.to_string(), "{\"a\": (*, *), \"b\": [(*, *), (*, *)]}");
  EXPECT_EQ(both.num_leaves(), 6);
  EXPECT_TRUE(both.child(1) ==
              Tree<int>::list({Tree<int>::tuple({0, 0}), Tree<int>::tuple({0, 0})}).structure());
  EXPECT_EQ(tree::transpose(outer, inner, std::vector<int>{1, 2, 3, 4, 5, 6}),
            (std::vector<int>{1, 3, 5, 2, 4, 6}));
  // With statics and maps inside.
  const Structure m = tree::structure<Leaf>(model());
  EXPECT_TRUE(m.compose(Structure::of_leaf()) == m);
  EXPECT_EQ(m.compose(inner).num_leaves(), 2 * m.num_leaves());
}

TEST(TreeTest, WalkingATreeObjectGivesItsStructureBack) {
  const Model m = model();
  const Tree<Leaf> t = tree::to_tree<Leaf>(m);
  EXPECT_TRUE(tree::structure<Leaf>(t) == tree::structure<Leaf>(m));
  EXPECT_EQ(values(tree::leaves<Leaf>(t)), values(tree::leaves<Leaf>(m)));
}

TEST(TreeTest, ALeafAloneAndEmptyTypesAreTrees) {
  struct Nothing {};
  EXPECT_EQ(tree::structure<Leaf>(Leaf(1)).to_string(), "*");
  EXPECT_EQ(tree::paths<Leaf>(Leaf(1)), std::vector<std::string>{""});
  EXPECT_EQ(tree::structure<Leaf>(Nothing{}).to_string(), "Nothing");
  EXPECT_EQ(tree::structure<Leaf>(std::vector<bool>{true, false}).num_leaves(), 0);
  EXPECT_EQ(tree::structure<Leaf>(bf16(1.0f)).num_leaves(), 0);
  const auto lambda = [](float x) { return x; };
  EXPECT_EQ(tree::structure<Leaf>(std::make_tuple(lambda, Leaf(2))).num_leaves(), 1);
}

}  // namespace
}  // namespace xylem
