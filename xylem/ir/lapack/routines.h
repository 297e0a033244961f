#pragma once

#include <cstdint>

#include "xylem/base/dtype.h"

namespace xylem::ir::lapack {

enum class Routine : std::uint8_t {
  kGetrf,
  kGeqrf,
  kGeqp3,
  kOrgqr,
  kOrmqr,
  kGesdd,
  kGesvd,
  kSyevd,
  kGeev,
  kGees,
  kGehrd,
  kSytrd,
  kGtsv,
};

// One kind of matrix: sizes and options of all matrices of a batch.
//   m, n        of the first operand
//   k           number of reflectors (orgqr, ormqr)
//   p, q        of the third operand (ormqr)
//   u, vt       columns of U and rows of V^H that are written (gesdd, gesvd), 0 without vectors
//   mode        'N', 'V', 'A', 'S'; left, right: of geev
struct Problem {
  Routine routine = Routine::kGetrf;
  DType dtype = DType::kF32;
  std::int64_t m = 0, n = 0, k = 0, p = 0, q = 0, u = 0, vt = 0;
  std::int64_t low = 1, high = 0;  // gehrd
  char mode = 'N', left = 'N', right = 'N', uplo = 'L';
  bool side_left = true, transpose = false;
};

// Solves the matrix number `i` of the batch. `buffers`: the first elements of operands and results.
void solve(const Problem& problem, void* const* buffers, std::int64_t i);

}  // namespace xylem::ir::lapack
