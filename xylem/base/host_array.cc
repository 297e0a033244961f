#include "xylem/base/host_array.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <limits>
#include <mutex>
#include <new>
#include <vector>

#include "xylem/base/dtype_cast.h"
#include "xylem/base/error.h"
#include "xylem/base/internal/array_print.h"

namespace xylem {
namespace {

constexpr std::size_t kAlignment = 64;

std::size_t byte_size(DType dtype, const Dims& dims) {
  const std::int64_t n = num_elements(dims);
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(n, std::int64_t{dtype_bytes(dtype)}, &bytes))
    throw_user_error({"HostArray", "the size in bytes must fit 63 bits",
                      fmt::format("the array is {}", shape_string(dtype, dims)),
                      "Use smaller dimensions"});
  return static_cast<std::size_t>(bytes);
}

// Blocks of the size of batches are kept for the next of the same size: the system would give fresh
// pages instead, and filling those costs three times what the copy itself does.
class KeptBlocks {
 public:
  static constexpr std::size_t kLeast = std::size_t{64} << 10, kMost = std::size_t{4} << 20;
  static constexpr std::size_t kKept = std::size_t{32} << 20;

  void* take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = blocks_.size(); i-- > 0;)
      if (blocks_[i].bytes == bytes) {
        void* p = blocks_[i].p;
        blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(i));
        kept_ -= bytes;
        return p;
      }
    return nullptr;
  }
  void keep(void* p, std::size_t bytes) noexcept {
    const std::lock_guard lock(mutex_);
    // The oldest make room: sizes that nobody asks for any more go.
    while (!blocks_.empty() && (kept_ + bytes > kKept || blocks_.size() == kNumber)) {
      release(blocks_.front().p);
      kept_ -= blocks_.front().bytes;
      blocks_.erase(blocks_.begin());
    }
    blocks_.push_back({p, bytes});
    kept_ += bytes;
  }
  static void release(void* p) noexcept { ::operator delete (p, std::align_val_t{kAlignment}); }

 private:
  struct Block {
    void* p;
    std::size_t bytes;
  };
  static constexpr std::size_t kNumber = 64;
  std::mutex mutex_;
  std::vector<Block> blocks_ = [] {
    std::vector<Block> v;
    v.reserve(kNumber);  // so that keeping never allocates
    return v;
  }();
  std::size_t kept_ = 0;
};

// Sanitizers must see every block go.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kKeepsBlocks = false;
#elif defined(__has_feature)
constexpr bool kKeepsBlocks = !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer);
#else
constexpr bool kKeepsBlocks = true;
#endif

// Never destroyed: arrays of static storage may outlive everything.
KeptBlocks& kept_blocks() {
  static auto* blocks = new KeptBlocks;
  return *blocks;
}

bool is_kept_size(std::size_t bytes) {
  return kKeepsBlocks && bytes >= KeptBlocks::kLeast && bytes <= KeptBlocks::kMost;
}

struct FreeBytes {
  std::size_t bytes = 0;
  void operator()(std::byte* p) const {
    is_kept_size(bytes) ? kept_blocks().keep(p, bytes) : KeptBlocks::release(p);
  }
};

std::shared_ptr<std::byte> allocate(DType dtype, const Dims& dims) {
  const std::size_t bytes = byte_size(dtype, dims);
  void* p = is_kept_size(bytes) ? kept_blocks().take(bytes) : nullptr;
  if (p == nullptr)
    p = ::operator new (std::max(bytes, kAlignment), std::align_val_t{kAlignment}, std::nothrow);
  if (p == nullptr)
    throw EnvironmentError(
        ErrorParts{"HostArray", fmt::format("needs {} bytes of memory", bytes),
                   fmt::format("the system refused them for {}", shape_string(dtype, dims)),
                   "Use a smaller array or a machine with more memory"});
  return {static_cast<std::byte*>(p), FreeBytes{bytes}};
}

Dims row_major_byte_strides(DType dtype, const Dims& dims) {
  Dims s = row_major_strides(dims);
  for (auto& v : s)
    v = static_cast<std::int64_t>(static_cast<std::uint64_t>(v) *
                                  static_cast<std::uint64_t>(dtype_bytes(dtype)));
  return s;
}

// Axes of length one may have any stride.
bool is_row_major(DType dtype, const Dims& dims, const Dims& strides) {
  const Dims want = row_major_byte_strides(dtype, dims);
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (dims[i] > 1 && strides[i] != want[i]) return false;
  return true;
}

// Copies a strided block, innermost axis last; `dst` is contiguous.
std::byte* copy_strided(const std::byte* src, const Dims& dims, const Dims& strides,
                        std::size_t axis, std::size_t element, std::byte* dst) {
  if (axis == dims.size()) {
    std::memcpy(dst, src, element);
    return dst + element;
  }
  if (axis + 1 == dims.size() && strides[axis] == static_cast<std::int64_t>(element)) {
    const std::size_t bytes = element * static_cast<std::size_t>(dims[axis]);
    std::memcpy(dst, src, bytes);
    return dst + bytes;
  }
  for (std::int64_t i = 0; i < dims[axis]; ++i)
    dst = copy_strided(src + i * strides[axis], dims, strides, axis + 1, element, dst);
  return dst;
}

}  // namespace

std::string shape_string(DType dtype, const Dims& dims) {
  return fmt::format("{}[{}]", dtype_name(dtype), fmt::join(dims, ","));
}

HostArray::HostArray(DType dtype, Dims dims) : dtype_(dtype), dims_(std::move(dims)) {
  bytes_ = allocate(dtype_, dims_);
  size_ = num_elements(dims_);
  strides_ = row_major_byte_strides(dtype_, dims_);
}

HostArray::HostArray(DType dtype, Dims dims, std::shared_ptr<std::byte> bytes, Dims strides)
    : dtype_(dtype), dims_(std::move(dims)), strides_(std::move(strides)) {
  byte_size(dtype_, dims_);  // for its checks
  size_ = num_elements(dims_);
  if (strides_.empty()) strides_ = row_major_byte_strides(dtype_, dims_);
  if (strides_.size() != dims_.size())
    throw_user_error({"HostArray", "one stride for each dimension",
                      fmt::format("{} strides for {}", strides_.size(), type_string()),
                      "Give as many strides as dimensions, or none for row-major order"});
  contiguous_ = size_ == 0 || is_row_major(dtype_, dims_, strides_);
  // Memory of an empty array may be null; the handle is defined all the same.
  bytes_ = bytes != nullptr || size_ > 0 ? std::move(bytes) : allocate(dtype_, dims_);
}

bool HostArray::owns_memory() const { return std::get_deleter<FreeBytes>(bytes_) != nullptr; }

HostArray HostArray::zeros(DType dtype, Dims dims) {
  HostArray a(dtype, std::move(dims));
  std::memset(a.data(), 0, a.nbytes());
  return a;
}

HostArray HostArray::from_bytes(DType dtype, Dims dims, std::span<const std::byte> bytes) {
  if (bytes.size() != byte_size(dtype, dims))
    throw_user_error(
        {"HostArray::from_bytes",
         fmt::format("{} takes {} bytes", shape_string(dtype, dims), byte_size(dtype, dims)),
         fmt::format("{} bytes are given", bytes.size()),
         "Give dimensions whose product is the number of elements"});
  HostArray a(dtype, std::move(dims));
  if (!bytes.empty()) std::memcpy(a.data(), bytes.data(), bytes.size());
  return a;
}

std::size_t HostArray::nbytes() const {
  return static_cast<std::size_t>(size_) * static_cast<std::size_t>(dtype_bytes(dtype_));
}

HostArray HostArray::clone() const {
  if (!defined()) return {};
  HostArray a(dtype_, dims_);
  if (size_ == 0) return a;
  if (contiguous_)
    std::memcpy(a.data(), data(), nbytes());
  else
    copy_strided(data(), dims_, strides_, 0, static_cast<std::size_t>(dtype_bytes(dtype_)),
                 a.data());
  return a;
}

HostArray HostArray::to_contiguous() const { return contiguous_ ? *this : clone(); }

HostArray HostArray::reshape(Dims dims) const {
  if (num_elements(dims) != size_)
    throw_user_error({"HostArray::reshape", "the number of elements must stay the same",
                      fmt::format("{} has {} elements, {} has {}", type_string(), size_,
                                  xylem::to_string(dims), num_elements(dims)),
                      "Give dimensions with the same product"});
  HostArray a = to_contiguous();
  a.strides_ = row_major_byte_strides(dtype_, dims);
  a.dims_ = std::move(dims);
  return a;
}

HostArray HostArray::astype(DType dtype) const {
  if (!defined() || dtype == dtype_) return *this;
  const HostArray source = to_contiguous();
  HostArray a(dtype, dims_);
  convert_elements(dtype_, source.data(), dtype, a.data(), size_);
  return a;
}

bool HostArray::bit_equal(const HostArray& other) const {
  if (defined() != other.defined()) return false;
  if (!defined()) return true;
  if (dtype_ != other.dtype_ || !(dims_ == other.dims_)) return false;
  const HostArray a = to_contiguous();
  const HostArray b = other.to_contiguous();
  return size_ == 0 || std::memcmp(a.data(), b.data(), a.nbytes()) == 0;
}

double HostArray::at(std::int64_t flat) const {
  if (flat < 0 || flat >= size_)
    throw_user_error({"HostArray::at", fmt::format("index must lie in [0, {})", size_),
                      fmt::format("index is {} of {}", flat, type_string()),
                      "Give a flat row-major index"});
  const std::byte* p = data();
  for (std::size_t i = dims_.size(); i-- > 0;) {
    p += flat % dims_[i] * strides_[i];
    flat /= dims_[i];
  }
  return element_to_double(dtype_, p);
}

std::string HostArray::to_string() const {
  if (!defined()) return "<undefined>";
  return internal::print_array(to_contiguous());
}

namespace internal {

void throw_wrong_element_type(DType wanted, DType have) {
  throw_user_error({"HostArray::as",
                    fmt::format("the element type must be the array's, {}", dtype_name(have)),
                    fmt::format("{} is asked for", dtype_name(wanted)),
                    "Ask for the array's own type, or convert with astype first"});
}

void throw_not_contiguous(const HostArray& a) {
  throw_user_error(
      {"HostArray::as", "the array must be contiguous",
       fmt::format("{} has byte strides {}", a.type_string(), xylem::to_string(a.byte_strides())),
       "Call to_contiguous() first"});
}

}  // namespace internal
}  // namespace xylem
