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

std::unique_ptr<Object> compile(const std::vector<ir::Kernel>& kernels, bool best, bool debug,
                                const std::string& dump) {
  llvm::LLVMContext context;
  llvm::Module code("xylem", context);
  prepare_module(code);
  llvm::DIBuilder di(code);
  DebugLines lines;
  if (debug) {
    const std::size_t slash = dump.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : dump.substr(0, slash);
    const std::string file = slash == std::string::npos ? dump : dump.substr(slash + 1);
    code.addModuleFlag(llvm::Module::Warning, "Debug Info Version", llvm::DEBUG_METADATA_VERSION);
    code.addModuleFlag(llvm::Module::Warning, "Dwarf Version", 4);
    lines.file = di.createFile(file + ".kernel", folder);
    lines.builder = &di;
    di.createCompileUnit(llvm::dwarf::DW_LANG_C, lines.file, "xylem", true, "", 0, "",
                         llvm::DICompileUnit::LineTablesOnly);
  }
  std::string text;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    if (debug || !dump.empty()) {
      const std::string kernel = kernels[i].to_string();
      const std::size_t body = kernel.find("\nbody\n") + 6;
      lines.first = 1 + static_cast<unsigned>(
                            std::count(text.begin(), text.end(), '\n') +
                            std::count(kernel.begin(),
                                       kernel.begin() + static_cast<std::ptrdiff_t>(body), '\n'));
      text += kernel;
    }
    emit_kernel(code, kernels[i], fmt::format("k{}", i), kernels[i].name, host_target(), lines);
  }
  if (debug) di.finalize();
  if (!dump.empty()) {
    write_file(dump + ".kernel", text.data(), text.size());
    const std::string ll = module_text(code);
    write_file(dump + ".ll", ll.data(), ll.size());
  }
  verify_module(code);
  std::unique_ptr<Object> object = generate_code(code, best);
  if (!dump.empty()) write_file(dump + ".o", object->bytes().data(), object->bytes().size());
  return object;
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
    const bool debug = options && options->debug_lines;
    std::vector<xylem::ir::Kernel> decoded;
    for (size_t i = 0; i < count; ++i) {
      decoded.push_back(xylem::ir::decode_kernel(std::string_view(kernels[i], kernel_sizes[i])));
      if (names && names[i]) decoded.back().name = names[i];
    }
    auto out = std::make_unique<xylem_jit_module>();
    out->count = count;
    out->object = jit::compile(decoded, best, debug, dump);
    out->code = jit::load_code(*out->object, count, debug);
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

int32_t xylem_jit_has_op(const char* name) {
  const xylem::ir::OpDef* def = name ? xylem::ir::find_op(name) : nullptr;
  return def && jit::can_emit(*def) ? 1 : 0;
}

int32_t xylem_jit_vector_bytes(void) { return jit::host_target().vector_bytes; }

}  // extern "C"
