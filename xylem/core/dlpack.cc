#include "xylem/core/dlpack.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <vector>

#include "xylem/base/error.h"

namespace xylem::dlpack {
namespace {

constexpr std::int32_t kHost = 1, kPinnedHost = 3;

struct Name {
  DType dtype;
  std::uint8_t code, bits;
};
constexpr Name kNames[] = {
    {DType::kBool, 6, 8},        {DType::kI8, 0, 8},          {DType::kI16, 0, 16},
    {DType::kI32, 0, 32},        {DType::kI64, 0, 64},        {DType::kU8, 1, 8},
    {DType::kU16, 1, 16},        {DType::kU32, 1, 32},        {DType::kU64, 1, 64},
    {DType::kF16, 2, 16},        {DType::kF32, 2, 32},        {DType::kF64, 2, 64},
    {DType::kBF16, 4, 16},       {DType::kC64, 5, 64},        {DType::kC128, 5, 128},
    {DType::kF8E3M4, 7, 8},      {DType::kF8E4M3, 8, 8},      {DType::kF8E4M3B11FNUZ, 9, 8},
    {DType::kF8E4M3FN, 10, 8},   {DType::kF8E4M3FNUZ, 11, 8}, {DType::kF8E5M2, 12, 8},
    {DType::kF8E5M2FNUZ, 13, 8}, {DType::kF8E8M0FNU, 14, 8},
};

// What an exported tensor points to.
struct Exported {
  DLManagedTensor tensor{};
  HostArray contents;
  std::vector<std::int64_t> shape, strides;
};

void release(DLManagedTensor* t) {
  if (t->deleter) t->deleter(t);
}

}  // namespace

DLManagedTensor* to_dlpack(const Array& x, SourceLoc where) {
  const Name* name = nullptr;
  for (const Name& n : kNames)
    if (n.dtype == x.dtype()) name = &n;
  if (!name)
    throw_user_error({"to_dlpack", "a dtype with a byte layout in DLPack is needed",
                      x.type_string(), "Convert it with astype"},
                     where);
  auto e = std::make_unique<Exported>();
  e->contents = x.to_host(where).to_contiguous();
  const Dims& dims = e->contents.dims();
  e->shape.assign(dims.begin(), dims.end());
  e->strides.resize(e->shape.size());
  std::int64_t step = 1;
  for (std::size_t i = e->shape.size(); i-- > 0;) {
    e->strides[i] = step;
    step *= e->shape[i];
  }
  DLTensor& t = e->tensor.dl_tensor;
  t.data = e->contents.data();
  t.device = {kHost, 0};
  t.ndim = static_cast<std::int32_t>(e->shape.size());
  t.dtype = {name->code, name->bits, 1};
  t.shape = e->shape.data();
  t.strides = e->strides.data();
  t.byte_offset = 0;
  e->tensor.manager_ctx = e.get();
  e->tensor.deleter = [](DLManagedTensor* self) {
    delete static_cast<Exported*>(self->manager_ctx);
  };
  return &e.release()->tensor;
}

Array from_dlpack(DLManagedTensor* tensor, SourceLoc where) {
  if (!tensor)
    throw_user_error({"from_dlpack", "a tensor is needed", "a null pointer was given",
                      "Pass a DLManagedTensor that nobody has taken yet"},
                     where);
  const DLTensor& t = tensor->dl_tensor;
  if (t.device.device_type != kHost && t.device.device_type != kPinnedHost)
    throw_user_error(
        {"from_dlpack: device", "the tensor must be in host memory (device type 1)",
         fmt::format("device type {}", t.device.device_type), "Move it to the host first"},
        where);
  std::optional<DType> dtype;
  for (const Name& n : kNames)
    if (n.code == t.dtype.code && n.bits == t.dtype.bits) dtype = n.dtype;
  if (!dtype || t.dtype.lanes != 1)
    throw_user_error(
        {"from_dlpack: dtype", "a known element type of one lane is needed",
         fmt::format("code {}, {} bits, {} lanes", t.dtype.code, t.dtype.bits, t.dtype.lanes),
         "Convert the tensor before it is exported"},
        where);
  Dims dims, strides;
  auto width = static_cast<std::int64_t>(dtype_bytes(*dtype));
  bool valid = t.ndim >= 0 && (t.ndim == 0 || t.shape);
  for (int i = 0; valid && i < t.ndim; ++i) {
    valid = t.shape[i] >= 0;
    dims.push_back(t.shape[i]);
    if (t.strides) strides.push_back(t.strides[i] * width);
  }
  if (!valid || (!t.data && num_elements(dims) > 0))
    throw_user_error({"from_dlpack", "a shape and data are needed",
                      "a negative size or a null pointer", "Report this to the exporting library"},
                     where);
  // Allocated before the tensor is taken over, so that a failure leaves it with the caller.
  auto owner = std::make_shared<std::unique_ptr<DLManagedTensor, void (*)(DLManagedTensor*)>>(
      nullptr, &release);
  if (num_elements(dims) == 0) {
    owner->reset(tensor);
    return Array(HostArray(*dtype, dims));
  }
  auto* data = static_cast<std::byte*>(t.data) + t.byte_offset;
  std::shared_ptr<std::byte> bytes(owner, data);
  HostArray contents(*dtype, dims, std::move(bytes), strides);
  if (!contents.contiguous() || reinterpret_cast<std::uintptr_t>(data) % 64 != 0)
    contents = contents.clone();
  owner->reset(tensor);
  return Array(contents);
}

}  // namespace xylem::dlpack
