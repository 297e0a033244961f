#pragma once

#include <cstdint>
#include <vector>

#include "xylem/base/dims.h"
#include "xylem/base/dtype.h"
#include "xylem/ir/kernel.h"

namespace xylem::compiler {

// A batch of products: c[batch…, m, n] = sum over k of a[batch…, m, k] · b[batch…, k, n]. Rows and
// sums may be indices of several dimensions (row-major): a convolution's places and its window.
struct GemmShape {
  DType dtype = DType::kF32;
  Dims batch;
  Dims rows = {1}, sums = {1};
  std::int64_t n = 1;
  std::int64_t m() const { return num_elements(rows); }
  std::int64_t k() const { return num_elements(sums); }
};

// Where the elements of an operand lie: element numbers step by these per dimension of the batch,
// of its rows and of its columns. a has GemmShape's rows and sums, b its sums and one column
// dimension. Steps may overlap.
struct MatrixLayout {
  Dims batch, row, column;
  std::int64_t size = 0;  // elements of the whole buffer
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
