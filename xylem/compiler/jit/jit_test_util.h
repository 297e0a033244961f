#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "xylem/base/host_array.h"
#include "xylem/compiler/jit/jit.h"
#include "xylem/ir/kernel.h"

// What the tests of generated code share: compiling kernels through the C interface and running
// them on host arrays.

namespace xylem::jit_test {

// A compiled module. Throws std::runtime_error with the message of a failed call.
class Module {
 public:
  Module(const std::vector<ir::Kernel>& kernels, int tier, const char* dump = nullptr) {
    std::vector<std::string> bytes;
    std::vector<const char*> data, names;
    std::vector<std::size_t> sizes;
    for (const ir::Kernel& k : kernels) bytes.push_back(ir::encode_kernel(k));
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      data.push_back(bytes[i].data());
      sizes.push_back(bytes[i].size());
      names.push_back(kernels[i].name.c_str());
    }
    xylem_jit_options options{tier, 0, dump};
    char error[4096] = "";
    if (xylem_jit_compile(data.data(), sizes.data(), names.data(), kernels.size(), &options,
                          &module_, error, sizeof error))
      throw std::runtime_error(error);
  }
  // Loads an object.
  Module(const void* data, std::size_t size, std::size_t count) {
    char error[4096] = "";
    if (xylem_jit_load(data, size, count, &module_, error, sizeof error))
      throw std::runtime_error(error);
  }
  Module(Module&& o) noexcept : module_(std::exchange(o.module_, nullptr)) {}
  ~Module() {
    if (module_) xylem_jit_release(module_);
  }

  xylem_kernel_fn entry(std::size_t i = 0) const { return xylem_jit_entry(module_, i); }
  std::string object() const {
    const void* data = nullptr;
    std::size_t size = 0;
    xylem_jit_object(module_, &data, &size);
    return std::string(static_cast<const char*>(data), size);
  }

  // Runs all parallel points of kernel i in `chunks` calls.
  void run(std::size_t i, const ir::Kernel& kernel, std::vector<HostArray>& buffers,
           const std::vector<std::int64_t>& scalars = {}, std::int64_t chunks = 1) const {
    std::vector<void*> pointers;
    for (HostArray& b : buffers) pointers.push_back(b.data());
    std::vector<HostArray> scratch;
    for (const auto& p : kernel.params)
      if (p.space == ir::MemorySpace::kScratch) {
        scratch.emplace_back(p.dtype, p.dims);
        std::memset(scratch.back().data(), 0xff, scratch.back().nbytes());
        pointers.push_back(scratch.back().data());
      }
    const std::int64_t points = kernel.parallel_points(scalars);
    for (std::int64_t c = 0; c < chunks; ++c)
      if (entry(i)(pointers.data(), scalars.data(), points * c / chunks, points * (c + 1) / chunks))
        throw std::runtime_error("kernel returned an error");
  }

 private:
  xylem_jit_module* module_ = nullptr;
};

}  // namespace xylem::jit_test
