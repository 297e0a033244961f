#include "xylem/ir/bytecode/type_codes.h"

namespace xylem::ir::bytecode {
namespace {

constexpr Version kFirst = kMinimumVersion;

constexpr ElementCode kElements[] = {
    {DType::kBool, 0, kFirst},
    {DType::kBF16, 2, kFirst},
    {DType::kF16, 3, kFirst},
    {DType::kF32, 4, kFirst},
    {DType::kF64, 5, kFirst},
    {DType::kF8E4M3FN, 6, kFirst},
    {DType::kF8E5M2, 7, kFirst},
    {DType::kI4, 10, kFirst},
    {DType::kI8, 11, kFirst},
    {DType::kI16, 12, kFirst},
    {DType::kI32, 13, kFirst},
    {DType::kI64, 14, kFirst},
    {DType::kU4, 15, kFirst},
    {DType::kU8, 16, kFirst},
    {DType::kU16, 17, kFirst},
    {DType::kU32, 18, kFirst},
    {DType::kU64, 19, kFirst},
    {DType::kF8E4M3FNUZ, 27, {0, 10, 0}},
    {DType::kF8E5M2FNUZ, 28, {0, 10, 0}},
    {DType::kF8E4M3B11FNUZ, 29, {0, 11, 0}},
    {DType::kI2, 31, {1, 2, 0}},
    {DType::kU2, 32, {1, 2, 0}},
    {DType::kF8E4M3, 35, {1, 7, 0}},
    {DType::kF8E3M4, 36, {1, 7, 0}},
    {DType::kF4E2M1FN, 37, {1, 8, 0}},
    {DType::kF6E2M3FN, 38, {1, 8, 0}},
    {DType::kF6E3M2FN, 39, {1, 8, 0}},
    {DType::kF8E8M0FNU, 40, {1, 8, 0}},
};

}  // namespace

std::span<const ElementCode> element_codes() { return kElements; }

const ElementCode* element_of_code(std::uint64_t code) {
  for (const ElementCode& e : kElements)
    if (e.code == code) return &e;
  return nullptr;
}

const ElementCode* element_of_dtype(DType dtype) {
  for (const ElementCode& e : kElements)
    if (e.dtype == dtype) return &e;
  return nullptr;
}

}  // namespace xylem::ir::bytecode
