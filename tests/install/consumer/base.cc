// Uses xylem::base alone, and makes sure that LLVM's headers are not within reach.
#if __has_include(<llvm/IR/Module.h>) || __has_include(<llvm-c/Core.h>)
#error "an installed Xylem must not put LLVM's headers on the include path"
#endif

#include <cstdio>
#include <vector>

#include "xylem/base/dtype.h"
#include "xylem/base/error.h"
#include "xylem/base/host_array.h"

int main() {
  const auto array = xylem::HostArray::from(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3});
  if (array.dtype() != xylem::DType::kF32 || array.size() != 6) return 1;
  std::printf("%s\n", xylem::dtype_name(array.dtype()));
}
