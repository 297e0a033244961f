#pragma once

// The C interface of libxylem_jit.so: the only way to LLVM. No C++ type and no exception crosses
// it. Every function may be called from any thread.

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// A kernel's entry point. Runs parallel grid points begin … end-1 (row-major over the parallel
// axes; ordered axes run inside each point). `buffers`: one base pointer per non-scratch parameter
// in order, then the scratch pointers of this worker in order, all 64-byte aligned; `scalars`: the
// launch scalars. Returns 0, or a positive error code.
typedef int32_t (*xylem_kernel_fn)(void* const* buffers, const int64_t* scalars, int64_t begin,
                                   int64_t end);

// A set of kernels compiled together, loaded as executable memory; freed by xylem_jit_release.
typedef struct xylem_jit_module xylem_jit_module;

enum {
  XYLEM_JIT_TIER_QUICK = 0,  // CodeGenOptLevel::None
  XYLEM_JIT_TIER_BEST = 1,   // CodeGenOptLevel::Default
};

typedef struct {
  int32_t tier;
  int32_t debug_lines;      // 1: registered with gdb; lines are those of the dumped PREFIX.kernel
  const char* dump_prefix;  // null, or a path prefix: writes PREFIX.kernel, PREFIX.ll and PREFIX.o
} xylem_jit_options;

// Compiles kernels given in canonical bytes (ir::encode_kernel) into one module.
// names[i] is the symbol shown by debuggers and profilers; may repeat.
// On success returns 0 and *module. On failure returns non-zero and writes a message (truncated,
// zero-terminated) to error.
int32_t xylem_jit_compile(const char* const* kernels, const size_t* kernel_sizes,
                          const char* const* names, size_t count, const xylem_jit_options* options,
                          xylem_jit_module** module, char* error, size_t error_size);

// Entry point of kernel i of a module.
xylem_kernel_fn xylem_jit_entry(const xylem_jit_module* module, size_t i);

// The relocatable object of a module, for caches on disk: valid until the module is released.
int32_t xylem_jit_object(const xylem_jit_module* module, const void** data, size_t* size);

// Loads an object made by xylem_jit_object in this or another process of the same
// xylem_jit_target(). `count` is its number of kernels.
int32_t xylem_jit_load(const void* data, size_t size, size_t count, xylem_jit_module** module,
                       char* error, size_t error_size);

void xylem_jit_release(xylem_jit_module* module);

// Names LLVM's version, the processor and the features in use: part of every cache key.
const char* xylem_jit_target(void);

// 1 if the code generator has a rule for the op of this name ("stablehlo.add"), else 0.
int32_t xylem_jit_has_op(const char* name);

// Bytes of the native vector register (64 with AVX-512, 32 with AVX2, 16 otherwise).
int32_t xylem_jit_vector_bytes(void);

#ifdef __cplusplus
}
#endif
