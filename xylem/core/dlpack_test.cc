#include "xylem/core/dlpack.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "xylem/core/core.h"

namespace xylem::dlpack {
namespace {

constexpr DType kDTypes[] = {DType::kBool,          DType::kI8,       DType::kI16,
                             DType::kI32,           DType::kI64,      DType::kU8,
                             DType::kU16,           DType::kU32,      DType::kU64,
                             DType::kF16,           DType::kBF16,     DType::kF32,
                             DType::kF64,           DType::kC64,      DType::kC128,
                             DType::kF8E3M4,        DType::kF8E4M3,   DType::kF8E4M3FN,
                             DType::kF8E4M3FNUZ,    DType::kF8E5M2,   DType::kF8E5M2FNUZ,
                             DType::kF8E4M3B11FNUZ, DType::kF8E8M0FNU};

TEST(Dlpack, EveryDtypeComesBack) {
  for (DType t : kDTypes) {
    HostArray h = HostArray::from(std::vector<double>{0, 1, 1, 0, 1, 2}, {2, 3}).astype(t);
    DLManagedTensor* d = to_dlpack(Array(h));
    EXPECT_EQ(d->dl_tensor.ndim, 2);
    EXPECT_EQ(d->dl_tensor.shape[1], 3);
    EXPECT_EQ(d->dl_tensor.strides[0], 3);
    EXPECT_EQ(d->dl_tensor.dtype.bits, dtype_bits(t) < 8 ? 8 : dtype_bits(t));
    EXPECT_EQ(d->dl_tensor.device.device_type, 1);
    Array back = from_dlpack(d);
    EXPECT_TRUE(back.to_host().bit_equal(h)) << dtype_name(t);
  }
}

// A tensor of a foreign library whose deleter counts.
struct Foreign {
  explicit Foreign(std::size_t bytes)
      : data(std::aligned_alloc(64, (bytes + 63) / 64 * 64)), tensor(new DLManagedTensor{}) {
    tensor->dl_tensor.data = data;
    tensor->dl_tensor.device = {1, 0};
    tensor->dl_tensor.dtype = {2, 32, 1};
    tensor->dl_tensor.shape = shape;
    tensor->dl_tensor.ndim = 2;
    tensor->manager_ctx = this;
    tensor->deleter = [](DLManagedTensor* self) {
      auto* f = static_cast<Foreign*>(self->manager_ctx);
      ++f->deleted;
      std::free(f->data);
      delete self;
    };
  }
  float* values() { return static_cast<float*>(data); }
  void* data;
  DLManagedTensor* tensor;
  std::int64_t shape[2] = {2, 3}, strides[2] = {3, 1};
  int deleted = 0;
};

TEST(Dlpack, TheDeleterIsCalledOnceWhenNothingNeedsTheMemory) {
  Foreign f(24);
  for (int i = 0; i < 6; ++i) f.values()[i] = static_cast<float>(i);
  {
    Array a = from_dlpack(f.tensor);
    Array copy = a;
    EXPECT_EQ(a.to_vector<float>(), (std::vector<float>{0, 1, 2, 3, 4, 5}));
    a = Array();
    EXPECT_EQ(copy.to_vector<float>()[5], 5);
  }
  EXPECT_EQ(f.deleted, 1);
}

TEST(Dlpack, StridesAndOffsetsAreFollowed) {
  Foreign f(64);
  for (int i = 0; i < 16; ++i) f.values()[i] = static_cast<float>(i);
  f.strides[0] = 1;
  f.strides[1] = 4;
  f.tensor->dl_tensor.strides = f.strides;
  f.tensor->dl_tensor.byte_offset = 8;
  Array a = from_dlpack(f.tensor);
  EXPECT_EQ(a.to_vector<float>(), (std::vector<float>{2, 6, 10, 3, 7, 11}));
  EXPECT_EQ(f.deleted, 1);  // copied
}

TEST(Dlpack, EmptyAndScalarTensors) {
  Foreign f(4);
  f.shape[0] = 0;
  Array a = from_dlpack(f.tensor);
  EXPECT_EQ(a.shape(), (Dims{0, 3}));
  EXPECT_EQ(f.deleted, 1);
  Foreign s(4);
  s.values()[0] = 7;
  s.tensor->dl_tensor.ndim = 0;
  s.tensor->dl_tensor.shape = nullptr;
  EXPECT_EQ(from_dlpack(s.tensor).item<float>(), 7);
}

TEST(Dlpack, RefusedTensorsStayTheCallers) {
  Foreign f(24);
  EXPECT_THROW(from_dlpack(nullptr), UserError);
  f.tensor->dl_tensor.device.device_type = 2;
  EXPECT_THROW(from_dlpack(f.tensor), UserError);
  f.tensor->dl_tensor.device.device_type = 1;
  f.tensor->dl_tensor.dtype = {2, 32, 4};
  EXPECT_THROW(from_dlpack(f.tensor), UserError);
  f.tensor->dl_tensor.dtype = {99, 32, 1};
  EXPECT_THROW(from_dlpack(f.tensor), UserError);
  f.tensor->dl_tensor.dtype = {2, 32, 1};
  f.shape[0] = -1;
  EXPECT_THROW(from_dlpack(f.tensor), UserError);
  EXPECT_EQ(f.deleted, 0);
  f.tensor->deleter(f.tensor);
  EXPECT_THROW(to_dlpack(zeros({2}, DType::kI4)), UserError);
  EXPECT_THROW(jit([](const Array& x) {
                 to_dlpack(x);
                 return x;
               })(zeros({2})),
               ConcretizationError);
}

TEST(Dlpack, SpansKeepTheirElementType) {
  std::vector<std::int16_t> v = {1, 2, 3, 4};
  Array a(std::span<const std::int16_t>(v), {2, 2});
  EXPECT_EQ(a.dtype(), DType::kI16);
  v[0] = 9;  // copied
  HostArray h = a.to_host();
  std::span<const std::int16_t> out = h.span<std::int16_t>();
  EXPECT_EQ(std::vector<std::int16_t>(out.begin(), out.end()),
            (std::vector<std::int16_t>{1, 2, 3, 4}));
}

}  // namespace
}  // namespace xylem::dlpack
