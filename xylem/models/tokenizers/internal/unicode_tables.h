#pragma once

#include <cstddef>

// Facts of unicode_tables.cc, in ascending order.

namespace xylem::models::internal {

struct CharRange {
  char32_t begin, end;  // both included
};
// Characters that are seen as another one.
struct StandIn {
  char32_t begin, end, as;
};

extern const CharRange kNumeric[], kPunctuation[], kMark[], kNonspacing[], kControl[], kWord[],
    kInert[];
extern const std::size_t kNumericSize, kPunctuationSize, kMarkSize, kNonspacingSize, kControlSize,
    kWordSize, kInertSize;
extern const StandIn kStandIns[], kLower[];
extern const std::size_t kStandInsSize, kLowerSize;

}  // namespace xylem::models::internal
