#pragma once

#include <cstdint>

#include "xylem/core/array.h"

// Arrays from and to other libraries without copying, by DLPack's C structures (version 0, which
// NumPy, PyTorch, JAX and others exchange as "dltensor" capsules). The structures are DLPack's own,
// member by member; a pointer to one of ours may be cast to a pointer to dlpack.h's.
namespace xylem::dlpack {

struct DLDevice {
  std::int32_t device_type;  // 1: host memory
  std::int32_t device_id;
};

struct DLDataType {
  std::uint8_t code;  // 0 int, 1 uint, 2 float, 4 bfloat, 5 complex, 6 bool, 7 … 14 kinds of f8
  std::uint8_t bits;
  std::uint16_t lanes;
};

struct DLTensor {
  void* data;
  DLDevice device;
  std::int32_t ndim;
  DLDataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements; null: row-major
  std::uint64_t byte_offset;
};

struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);
};

// The array's contents, shared where the device's memory is the host's; waits for them. The
// receiver owns the tensor and calls its deleter once, from any thread. Others must not write to
// it: arrays never change. UserError for dtypes that DLPack has no name or no byte layout for (f4,
// f6, i2, i4) and for traced arrays.
DLManagedTensor* to_dlpack(const Array& x, SourceLoc where = SourceLoc::current());

// An array of the tensor's contents, shared where its memory is row-major and aligned well enough,
// else copied. Takes the tensor over: its deleter is called when no array needs the memory, at once
// if that was copied. Nobody may write to the memory as long as an array shares it. A tensor that
// is refused (UserError: not in host memory, vector lanes, an unknown dtype) stays the caller's.
Array from_dlpack(DLManagedTensor* tensor, SourceLoc where = SourceLoc::current());

}  // namespace xylem::dlpack
