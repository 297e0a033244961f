#include "xylem/ir/lapack/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "xylem/base/error.h"

namespace xylem::ir::lapack {
namespace {

struct Library {
  void* handle = nullptr;
  std::string name, fault;
};

// Sums of several threads of OpenBLAS round in an order that depends on their number; results here
// must not. Batches are spread over threads above it. Whoever uses OpenBLAS in this process
// already, or sets OPENBLAS_NUM_THREADS, has chosen.
void keep_to_one_thread(void* handle) {
  const char* chosen = std::getenv("OPENBLAS_NUM_THREADS");
  if (chosen && *chosen) return;
  if (void* set = dlsym(handle, "openblas_set_num_threads"))
    reinterpret_cast<void (*)(int)>(set)(1);
}

const Library& library() {
  // Never closed: its threads, if it has any, live as long as the process.
  static const Library* loaded = [] {
    auto* l = new Library;
    const char* chosen = std::getenv("XYLEM_LAPACK");
    l->name = chosen && *chosen ? chosen : "liblapack.so.3";
    void* others = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_NOLOAD);
    l->handle = dlopen(l->name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (l->handle && !others) keep_to_one_thread(l->handle);
    if (others) dlclose(others);
    if (!l->handle) {
      const char* why = dlerror();
      l->fault = why ? why : "unknown";
    }
    return l;
  }();
  return *loaded;
}

}  // namespace

void* find_routine(const char* name) noexcept {
  const Library& l = library();
  return l.handle ? dlsym(l.handle, name) : nullptr;
}

void* routine(const char* name) {
  const Library& l = library();
  if (!l.handle)
    throw UserError(ErrorParts{"linear algebra: LAPACK", fmt::format("{} can be loaded", l.name),
                               l.fault,
                               "Install libopenblas0-pthread or liblapack3, or name the file of "
                               "a LAPACK in XYLEM_LAPACK"});
  if (void* address = dlsym(l.handle, name)) return address;
  throw UserError(ErrorParts{"linear algebra: LAPACK",
                             fmt::format("{} has the routine {}", l.name, name), "it does not",
                             "Install a complete LAPACK 3.4 or newer"});
}

}  // namespace xylem::ir::lapack
