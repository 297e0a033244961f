// Canonical bytes of kernels: the key of caches and what the code generator is given.
//
//   "XK1", grid, parameters, number of scalars, body (as ir::encode gives it) to the end;
//   numbers as zigzag LEB128.

#include <string>

#include "xylem/base/error.h"
#include "xylem/ir/kernel.h"
#include "xylem/ir/text.h"

namespace xylem::ir {
namespace {

constexpr std::string_view kMagic = "XK1";

void put(std::string& out, std::int64_t v) {
  std::uint64_t u = (static_cast<std::uint64_t>(v) << 1) ^ static_cast<std::uint64_t>(v >> 63);
  while (u >= 0x80) {
    out += static_cast<char>(u | 0x80);
    u >>= 7;
  }
  out += static_cast<char>(u);
}

void put(std::string& out, const Dims& d) {
  put(out, d.ssize());
  for (std::int64_t v : d) put(out, v);
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  [[noreturn]] static void fail() {
    throw_user_error({"decode_kernel", "the bytes that encode_kernel gives", "damaged bytes",
                      "Encode the kernel anew."});
  }

  std::int64_t number() {
    std::uint64_t u = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (bytes_.empty()) fail();
      const auto b = static_cast<std::uint8_t>(bytes_[0]);
      bytes_.remove_prefix(1);
      u |= static_cast<std::uint64_t>(b & 0x7f) << shift;
      if (b < 0x80) return static_cast<std::int64_t>(u >> 1) ^ -static_cast<std::int64_t>(u & 1);
    }
    fail();
  }

  int small(std::int64_t low, std::int64_t high) {
    const std::int64_t v = number();
    if (v < low || v > high) fail();
    return static_cast<int>(v);
  }

  // A count of things of at least a byte each.
  std::size_t count() {
    const std::int64_t n = number();
    if (n < 0 || static_cast<std::uint64_t>(n) > bytes_.size()) fail();
    return static_cast<std::size_t>(n);
  }

  Dims dims() {
    Dims d;
    for (std::size_t n = count(); n > 0; --n) d.push_back(number());
    return d;
  }

  std::string_view rest() const { return bytes_; }

 private:
  std::string_view bytes_;
};

}  // namespace

std::string encode_kernel(const Kernel& kernel) {
  std::string out(kMagic);
  put(out, static_cast<std::int64_t>(kernel.grid.size()));
  for (const Kernel::Axis& a : kernel.grid) {
    put(out, static_cast<std::int64_t>(a.kind));
    put(out, a.size);
    put(out, a.scalar);
  }
  put(out, static_cast<std::int64_t>(kernel.params.size()));
  for (const Kernel::Param& p : kernel.params) {
    put(out, static_cast<std::int64_t>(p.dtype));
    put(out, p.dims);
    put(out, static_cast<std::int64_t>(p.access));
    put(out, static_cast<std::int64_t>(p.space));
    put(out, p.map.block);
    put(out, p.map.coef);
    put(out, p.map.offset);
    put(out, p.alias);
  }
  put(out, kernel.num_scalars);
  return out + encode(*kernel.body);
}

Kernel decode_kernel(std::string_view bytes) {
  if (!bytes.starts_with(kMagic)) Reader::fail();
  Reader r(bytes.substr(kMagic.size()));
  Kernel k;
  k.grid.resize(r.count());
  for (Kernel::Axis& a : k.grid) {
    a.kind = static_cast<Kernel::AxisKind>(r.small(0, 1));
    a.size = r.number();
    a.scalar = r.small(-1, INT32_MAX);
  }
  k.params.resize(r.count());
  for (Kernel::Param& p : k.params) {
    p.dtype = static_cast<DType>(r.small(0, kNumDTypes - 1));
    p.dims = r.dims();
    p.access = static_cast<Kernel::Access>(r.small(0, 2));
    p.space = static_cast<MemorySpace>(r.small(0, 3));
    p.map.block = r.dims();
    p.map.coef = r.dims();
    p.map.offset = r.dims();
    p.alias = r.small(-1, INT32_MAX);
  }
  k.num_scalars = r.small(0, INT32_MAX);
  k.body = decode(r.rest());
  verify_kernel(k);
  return k;
}

}  // namespace xylem::ir
