#include <gtest/gtest.h>

#include <random>

#include "xylem/base/error.h"
#include "xylem/ir/interpreter.h"
#include "xylem/ir/ops/all.h"
#include "xylem/ir/testing/op_call.h"

// Random calls of every op: whatever the operands, attributes and regions are, a rule gives types
// or throws an Error, and what it lets through can be evaluated.

namespace xylem::ir {
namespace {

class RandomCalls {
 public:
  explicit RandomCalls(unsigned seed) : rng_(seed) {
    for (DType t : {DType::kF32, DType::kI32, DType::kBool}) {
      Type s = Type::tensor(t), v = Type::tensor(t, {2});
      regions_.push_back(testing::passing_body({s}, {0}));
      regions_.push_back(testing::passing_body({v}, {0}));
      regions_.push_back(testing::passing_body({s, s}, {1}));
      regions_.push_back(testing::passing_body({s, s}, {0, 1}));
      regions_.push_back(testing::passing_body({s, s, s, s}, {0, 3}));
      regions_.push_back(testing::binary_body(ops::kAdd, t));
      regions_.push_back(testing::binary_body(ops::kMaximum, t));
      regions_.push_back(
          testing::binary_body(ops::kCompare, t, {{"comparison_direction", EnumAttr("LT")}}));
    }
    regions_.push_back(testing::passing_body({}, {}));
  }

  std::int64_t number(std::int64_t lo, std::int64_t hi) {
    return std::uniform_int_distribution<std::int64_t>(lo, hi)(rng_);
  }
  bool chance(int percent) { return number(0, 99) < percent; }

  DType dtype() {
    static const DType kCommon[] = {DType::kF32, DType::kI32, DType::kBool};
    return chance(70) ? kCommon[number(0, 2)] : static_cast<DType>(number(0, kNumDTypes - 1));
  }
  std::int64_t integer() {
    static const std::int64_t kExtreme[] = {INT64_MIN, INT64_MAX, INT64_MIN + 1,
                                            std::int64_t{1} << 61, -(std::int64_t{1} << 40)};
    return chance(3) ? kExtreme[number(0, 4)] : number(chance(10) ? -2 : 0, 3);
  }
  Dims list(std::int64_t length) {
    Dims d;
    for (std::int64_t i = 0; i < length; ++i) d.push_back(integer());
    return d;
  }
  Dims shape() {
    Dims d;
    for (std::int64_t i = number(0, 3); i > 0; --i) d.push_back(number(0, 3));
    return d;
  }
  Type type() { return chance(3) ? Type::token() : Type::tensor(dtype(), shape()); }
  GraphPtr region() {
    return regions_[static_cast<std::size_t>(number(0, std::ssize(regions_) - 1))];
  }

  std::vector<Type> operands(const OpDef& op) {
    std::int64_t most = op.max_operands < 0 ? op.min_operands + 3 : op.max_operands;
    std::vector<Type> out;
    Type common = type();
    for (std::int64_t n = number(op.min_operands, most); n > 0; --n) {
      // Mostly related operands, else hardly any call is good.
      Type t = chance(80) ? common : type();
      if (chance(15) && t.is_tensor()) t = t.with_dims({});
      out.push_back(t);
    }
    return out;
  }

  Attr attr(const AttrDef& def, int rank) {
    switch (def.kind) {
      case AttrKind::kBool: return chance(50);
      case AttrKind::kInt: return integer();
      case AttrKind::kString: return "text";
      case AttrKind::kDType: return dtype();
      case AttrKind::kDims: return list(chance(70) ? rank : number(0, 4));
      case AttrKind::kArray: return HostArray::zeros(DType::kI64, {rank, 2});
      case AttrKind::kList: return AttrList(static_cast<std::size_t>(number(0, 2)));
      case AttrKind::kEnum: {
        std::vector<std::string> members(1);
        for (char c : def.members) c == ' ' ? members.emplace_back() : members.back() += c, void();
        return EnumAttr(members[static_cast<std::size_t>(number(0, std::ssize(members) - 1))]);
      }
      default: return Attr();
    }
  }

 private:
  std::mt19937_64 rng_;
  std::vector<GraphPtr> regions_;
};

HostArray some_array(RandomCalls& random, const Type& t) {
  HostArray numbers(DType::kF64, t.dims());
  for (std::int64_t i = 0; i < numbers.size(); ++i)
    numbers.as<double>()[i] = static_cast<double>(random.number(-3, 3));
  return numbers.astype(t.dtype());
}

TEST(OpFuzzTest, RandomCallsGiveTypesOrErrorsAndCanBeEvaluated) {
  RandomCalls random(1);
  int good = 0, bad = 0;
  for (int round = 0; round < 200; ++round) {
    for (const OpDef* op : op_table()) {
      if (op->is(kKernelOnly)) continue;
      std::vector<Type> operands = random.operands(*op);
      int rank = operands.empty() ? 1 : operands[0].rank();
      Attrs attrs;
      for (const AttrDef& a : op->attrs)
        if (a.required || random.chance(40)) attrs.set(a.name, random.attr(a, rank));
      std::vector<GraphPtr> regions;
      std::int64_t count = op->num_regions < 0 ? random.number(0, 2) : op->num_regions;
      for (std::int64_t i = 0; i < count; ++i) regions.push_back(random.region());
      std::vector<Type> results;
      try {
        OpCall call{*op, operands, attrs, regions, {}};
        results = infer_types(call);
        DimMap map = dimension_map(call, results);
        EXPECT_EQ(map.operands.size(), operands.size()) << op->name;
        EXPECT_EQ(map.results.size(), results.size()) << op->name;
      } catch (const InternalError& e) {
        ADD_FAILURE() << op->name << ": " << e.what();
        continue;
      } catch (const Error&) {
        ++bad;
        continue;
      } catch (const std::exception& e) {
        ADD_FAILURE() << op->name << ": " << e.what();
        continue;
      }
      // A loop need not end, and results may be meant to be huge.
      // Foreign ops have no meaning.
      bool small = op != &ops::kWhile && op != &ops::kForeign && op != &ops::kPrint &&
                   op->name != "xylem.custom_linear" && !op->find_attr("axis_name") && !op->find_attr("function");
      for (const Type& t : results) {
        small = small && t.is_tensor();
        for (std::int64_t n : t.dims()) small = small && n >= 0 && n < 30;
      }
      for (const Type& t : operands) small = small && t.is_tensor();
      if (!small) continue;
      ++good;
      std::vector<HostArray> args;
      Builder b("call");
      std::vector<ValueId> params;
      for (const Type& t : operands) {
        params.push_back(b.param(t));
        args.push_back(some_array(random, t));
      }
      ValueIds ids = b.op(*op, params, attrs, regions);
      GraphPtr g = b.finish({ids.begin(), ids.end()});
      std::vector<HostArray> out;
      try {
        out = evaluate(*g, args);
      } catch (const UserError& e) {
        // Checks fail, collectives miss their grid, sizes that are values do not fit.
        EXPECT_TRUE(op->is(kEffect) || op->find_attr("result_types")) << op->name << e.what();
        continue;
      } catch (const std::exception& e) {
        ADD_FAILURE() << op->name << ": " << e.what();
        continue;
      }
      ASSERT_EQ(out.size(), results.size());
      for (std::size_t i = 0; i < out.size(); ++i) {
        EXPECT_EQ(out[i].dtype(), results[i].dtype()) << op->name;
        EXPECT_EQ(out[i].dims(), results[i].dims()) << op->name;
      }
    }
  }
  EXPECT_GT(good, 2000);  // the generator is of use
  EXPECT_GT(bad, 2000);
}

}  // namespace
}  // namespace xylem::ir
