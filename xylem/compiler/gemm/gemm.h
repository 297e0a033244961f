#pragma once

#include <cstdint>
#include <vector>

#include "xylem/base/dims.h"
#include "xylem/base/dtype.h"
#include "xylem/ir/kernel.h"

namespace xylem::compiler {

// Where the elements of a matrix in a batch lie: element numbers step by these per batch
// dimension, row and column.
struct MatrixLayout {
  Dims batch;  // per batch dimension
  std::int64_t row = 0, column = 0;
  std::int64_t size = 0;  // elements of the whole buffer
};

struct GemmShape {
  DType dtype = DType::kF32;
  Dims batch;
  std::int64_t m = 1, n = 1, k = 1;
};

// The register tile of a product: rows x columns of accumulators.
struct GemmTile {
  int rows = 8, columns = 32;
};
GemmTile choose_tile(const GemmShape& shape);

// Whether b is read where it lies; otherwise it is packed into panels first.
bool reads_in_place(const GemmShape& shape, const MatrixLayout& b, const GemmTile& tile);

// b as panels [batch…, panels, k, columns], zeros behind column n. Parameters: b, panels.
struct PackKernel {
  ir::Kernel kernel;
  std::int64_t points = 1, elements = 0;
};
PackKernel make_pack_kernel(const GemmShape& shape, const MatrixLayout& b, const GemmTile& tile);

// c[batch…, m, n] (dense) = a x b. Parameters: a, b (or its panels), c. Sums run over k in order,
// by fma where the dtype is a float; every element of c is made by one grid point.
struct GemmKernel {
  ir::Kernel kernel;
  std::int64_t points = 1;
};
GemmKernel make_gemm_kernel(const GemmShape& shape, const MatrixLayout& a, const MatrixLayout& b,
                            bool packed, const GemmTile& tile);

}  // namespace xylem::compiler
