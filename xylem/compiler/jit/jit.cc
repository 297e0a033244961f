// The C interface of jit.h.

#include "xylem/compiler/jit/jit.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "xylem/base/error.h"
#include "xylem/compiler/jit/emitter.h"
#include "xylem/compiler/jit/session.h"
#include "xylem/compiler/jit/target.h"
#include "xylem/ir/kernel.h"

struct xylem_jit_module {
  std::unique_ptr<xylem::jit::Object> object;
  std::unique_ptr<xylem::jit::Code> code;
  std::size_t count = 0;
};

namespace xylem::jit {
namespace {

void set_error(char* error, std::size_t size, std::string_view text) {
  if (!error || size == 0) return;
  const std::size_t n = std::min(size - 1, text.size());
  std::memcpy(error, text.data(), n);
  error[n] = '\0';
}

// Runs fn and turns whatever it throws into a message; 0 on success.
template <class F>
std::int32_t guarded(char* error, std::size_t size, F fn) {
  try {
    fn();
    return 0;
  } catch (const std::exception& e) {
    set_error(error, size, e.what());
  } catch (...) {
    set_error(error, size, "code generator: unknown exception");
  }
  return 1;
}

// XYLEM_JIT_DUMP=PREFIX writes every module: PREFIX0.ll, PREFIX0.o, PREFIX1.ll, …
std::string dump_prefix(const xylem_jit_options* options) {
  if (options && options->dump_prefix) return options->dump_prefix;
  static std::atomic<int> next{0};
  const char* all = std::getenv("XYLEM_JIT_DUMP");
  return all && *all ? all + std::to_string(next.fetch_add(1)) : "";
}

void write_file(const std::string& path, const void* data, std::size_t size) {
  std::ofstream out(path, std::ios::binary);
  out.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
}

// perf finds the names of generated code in a file of this name, when XYLEM_PERF_MAP is set.
void write_perf_map(const xylem_jit_module& m, const char* const* names) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  std::FILE* f = std::fopen(fmt::format("/tmp/perf-{}.map", getpid()).c_str(), "a");
  if (!f) return;
  std::vector<std::uintptr_t> at;
  for (std::size_t i = 0; i < m.count; ++i)
    at.push_back(reinterpret_cast<std::uintptr_t>(m.code->entry(i)));
  for (std::size_t i = 0; i < m.count; ++i) {
    // Up to the next kernel; the last one's size is not known exactly.
    std::uintptr_t end = at[i] + 4096;
    for (std::uintptr_t other : at)
      if (other > at[i]) end = std::min(end, other);
    std::fprintf(f, "%lx %lx %s\n", static_cast<unsigned long>(at[i]),
                 static_cast<unsigned long>(end - at[i]), names && names[i] ? names[i] : "kernel");
  }
  std::fclose(f);
}

}  // namespace
}  // namespace xylem::jit

namespace jit = xylem::jit;

extern "C" {

int32_t xylem_jit_compile(const char* const* kernels, const size_t* kernel_sizes,
                          const char* const* names, size_t count, const xylem_jit_options* options,
                          xylem_jit_module** module, char* error, size_t error_size) {
  *module = nullptr;
  return jit::guarded(error, error_size, [&] {
    const bool best = options && options->tier == XYLEM_JIT_TIER_BEST;
    const std::string dump = jit::dump_prefix(options);
    auto out = std::make_unique<xylem_jit_module>();
    out->count = count;
    {
      llvm::LLVMContext context;
      llvm::Module code("xylem", context);
      jit::prepare_module(code);
      for (size_t i = 0; i < count; ++i) {
        const xylem::ir::Kernel kernel =
            xylem::ir::decode_kernel(std::string_view(kernels[i], kernel_sizes[i]));
        jit::emit_kernel(code, kernel, fmt::format("k{}", i), jit::host_target());
      }
      if (!dump.empty()) {
        const std::string text = jit::module_text(code);
        jit::write_file(dump + ".ll", text.data(), text.size());
      }
      jit::verify_module(code);
      out->object = jit::generate_code(code, best);
    }
    if (!dump.empty()) {
      const auto bytes = out->object->bytes();
      jit::write_file(dump + ".o", bytes.data(), bytes.size());
    }
    out->code = jit::load_code(*out->object, count, options && options->debug_lines);
    if (std::getenv("XYLEM_PERF_MAP")) jit::write_perf_map(*out, names);
    *module = out.release();
  });
}

xylem_kernel_fn xylem_jit_entry(const xylem_jit_module* module, size_t i) {
  return reinterpret_cast<xylem_kernel_fn>(module->code->entry(i));
}

int32_t xylem_jit_object(const xylem_jit_module* module, const void** data, size_t* size) {
  const auto bytes = module->object->bytes();
  *data = bytes.data();
  *size = bytes.size();
  return 0;
}

int32_t xylem_jit_load(const void* data, size_t size, size_t count, xylem_jit_module** module,
                       char* error, size_t error_size) {
  *module = nullptr;
  return jit::guarded(error, error_size, [&] {
    auto out = std::make_unique<xylem_jit_module>();
    out->count = count;
    out->object = jit::object_from_bytes({static_cast<const std::byte*>(data), size});
    out->code = jit::load_code(*out->object, count, false);
    *module = out.release();
  });
}

void xylem_jit_release(xylem_jit_module* module) { delete module; }

const char* xylem_jit_target(void) {
  static const auto* text = new std::string(jit::target_description());
  return text->c_str();
}

int32_t xylem_jit_vector_bytes(void) { return jit::host_target().vector_bytes; }

}  // extern "C"
