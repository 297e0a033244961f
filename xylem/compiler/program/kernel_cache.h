#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "xylem/compiler/jit/jit.h"
#include "xylem/ir/kernel.h"

namespace xylem::compiler {

// A kernel as machine code. Kept by the programs that use it; the process-wide cache only knows it.
struct CompiledKernel {
  std::shared_ptr<xylem_jit_module> module;
  xylem_kernel_fn entry = nullptr;
  std::string name;
  std::vector<std::int64_t> scratch;  // bytes of each scratch parameter
  std::size_t num_buffers = 0;        // parameters that are not scratch
  std::int64_t code_bytes = 0;        // share of its module's object
  // Set instead of `entry` with XYLEM_KERNELS=interpret, which runs kernels by the reference
  // interpreter of the kernel form: for finding out which of the two halves of the compiler errs.
  std::shared_ptr<const ir::Kernel> interpreted;

  // Runs grid points [begin, end). `buffers` are those of the parameters that are not scratch.
  void run(void* const* buffers, std::int64_t begin, std::int64_t end) const;
};

struct KernelRequest {
  std::string name;
  std::string bytes;  // ir::encode_kernel
};

// Compiles the kernels that the process does not have yet, on two threads, and returns all.
// Kernels with equal bytes are one.
std::vector<std::shared_ptr<const CompiledKernel>> get_kernels(
    std::span<const KernelRequest> requests, bool quick);

}  // namespace xylem::compiler
