// What shape rules say about operands that do not fit.

#include <gtest/gtest.h>

#include "xylem/base/error.h"
#include "xylem/ir/builder.h"
#include "xylem/ir/ops/all.h"

namespace xylem::ir {
namespace {

TEST(Messages, ConcatenateNamesTheShapesThatWereGiven) {
  Builder b("f");
  const ValueId x = b.param(Type::tensor(DType::kF32, {2, 3}));
  const ValueId y = b.param(Type::tensor(DType::kF32, {2, 4}));
  try {
    b.one(ops::kConcatenate, {x, y}, Attrs{{"dimension", Attr(0)}});
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(e.message().find("f32[2,3]"), std::string::npos) << e.message();
    EXPECT_NE(e.message().find("f32[2,4]"), std::string::npos) << e.message();
  }
}

}  // namespace
}  // namespace xylem::ir
