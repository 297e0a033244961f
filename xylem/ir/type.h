#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "xylem/base/dims.h"
#include "xylem/base/dtype.h"

namespace xylem::ir {

// A dimension whose size is not known before run time; bounded if `TypeExtra::bounds` says so.
inline constexpr std::int64_t kDynamic = INT64_MIN;

enum class TypeKind : std::uint8_t {
  kTensor,
  kToken,  // orders effects
  kTuple,
  kRef,      // mutable memory of `dtype` and `dims`, in a memory space
  kKey,      // PRNG key array; `extra->name` is the implementation ("fry")
  kFuture,   // results of async_start until async_done
  kForeign,  // a type of another dialect, which we only carry; `extra->name` is its text
};

enum class MemorySpace : std::uint8_t {
  kAny,
  kDevice,   // ordinary buffers
  kScratch,  // private to one grid point or worker of a kernel, contents undefined at entry
  kScalar,   // prefetched scalars that block maps may read
};

struct QuantParams {
  DType storage = DType::kI8;
  std::int64_t storage_min = 0, storage_max = 0;
  int axis = -1;  // -1: per tensor
  std::vector<double> scales;
  std::vector<std::int64_t> zero_points;
  friend bool operator==(const QuantParams&, const QuantParams&) = default;
};

class Type;

// The rarely used parts of a type.
struct TypeExtra {
  Dims bounds;                               // per dimension, kDynamic = none; empty = no bounds
  std::string encoding;                      // foreign tensor encoding, as text
  std::string name;                          // PRNG implementation of a key; text of a foreign type
  std::vector<Type> elements;                // of a tuple or future
  std::shared_ptr<const QuantParams> quant;  // `dtype` is then the expressed type
  MemorySpace space = MemorySpace::kAny;
  friend bool operator==(const TypeExtra& a, const TypeExtra& b);
};

// The type of a value: a closed sum. Cheap to copy; value semantics; no weak types (those belong
// to the front end).
class Type {
 public:
  Type() = default;  // tensor f32[]
  static Type tensor(DType dtype, Dims dims = {});
  static Type token();
  static Type tuple(std::vector<Type> elements);
  static Type future(std::vector<Type> elements);
  static Type ref(DType dtype, Dims dims, MemorySpace space = MemorySpace::kAny);
  static Type key(std::string_view impl, Dims dims = {});
  static Type foreign(std::string_view text);  // "!test.thing<3>"
  static Type with_extra(Type t, TypeExtra extra);

  TypeKind kind() const { return kind_; }
  bool is_tensor() const { return kind_ == TypeKind::kTensor; }
  bool is_token() const { return kind_ == TypeKind::kToken; }
  bool is_tuple() const { return kind_ == TypeKind::kTuple; }
  bool is_future() const { return kind_ == TypeKind::kFuture; }
  bool is_ref() const { return kind_ == TypeKind::kRef; }
  bool is_key() const { return kind_ == TypeKind::kKey; }
  bool is_foreign() const { return kind_ == TypeKind::kForeign; }
  DType dtype() const { return dtype_; }
  const Dims& dims() const { return dims_; }
  int rank() const { return dims_.ssize(); }
  std::int64_t dim(int i) const { return dims_[i]; }
  bool is_static() const;  // no dynamic dimension
  bool is_scalar() const { return is_tensor() && dims_.empty(); }
  std::int64_t size() const { return num_elements(dims_); }
  std::int64_t nbytes() const { return size() * dtype_bytes(dtype_); }
  const TypeExtra* extra() const { return extra_.get(); }
  const std::vector<Type>& elements() const { return extra_->elements; }  // tuple, future
  const QuantParams* quant() const { return extra_ ? extra_->quant.get() : nullptr; }

  Type with_dims(Dims dims) const;
  Type with_dtype(DType dtype) const;
  // Native text: "f32[2,3]", "token", "(f32[], i32[2])", "future(f32[])", "ref<f32[8]>",
  // "key<fry>[2]".
  std::string to_string() const;
  // StableHLO text: "tensor<2x3xf32>".
  std::string to_mlir() const;
  std::size_t hash() const;
  friend bool operator==(const Type& a, const Type& b) {
    return a.kind_ == b.kind_ && a.dtype_ == b.dtype_ && a.dims_ == b.dims_ &&
           (a.extra_ == b.extra_ || (a.extra_ && b.extra_ && *a.extra_ == *b.extra_));
  }

 private:
  TypeKind kind_ = TypeKind::kTensor;
  DType dtype_ = DType::kF32;
  Dims dims_;
  std::shared_ptr<const TypeExtra> extra_;
};

}  // namespace xylem::ir
