#include "xylem/compiler/program/kernel_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <future>
#include <mutex>
#include <unordered_map>

#include "xylem/base/error.h"

namespace xylem::compiler {
namespace {

// Scratch memory of the calling thread; grows, never shrinks.
class Scratch {
 public:
  ~Scratch() { std::free(memory_); }
  std::byte* get(std::size_t bytes) {
    if (bytes > size_) {
      std::free(memory_);
      size_ = (bytes + 4095) / 4096 * 4096;
      memory_ = static_cast<std::byte*>(std::aligned_alloc(64, size_));
      if (!memory_) {
        size_ = 0;
        throw EnvironmentError(ErrorParts{"run a kernel", fmt::format("{} bytes of scratch", bytes),
                                          "the system has no memory left", "Free memory."});
      }
    }
    return memory_;
  }

 private:
  std::byte* memory_ = nullptr;
  std::size_t size_ = 0;
};

std::int64_t round64(std::int64_t n) { return (n + 63) / 64 * 64; }

bool interpret_kernels() {
  static const bool yes = [] {
    const char* v = std::getenv("XYLEM_KERNELS");
    return v && std::string_view(v) == "interpret";
  }();
  return yes;
}

void run_interpreted(const CompiledKernel& k, void* const* buffers) {
  std::vector<HostArray> arrays;
  std::size_t b = 0;
  for (const ir::Kernel::Param& p : k.interpreted->params) {
    if (p.space == ir::MemorySpace::kScratch) continue;
    arrays.emplace_back(
        p.dtype, p.dims,
        std::shared_ptr<std::byte>(static_cast<std::byte*>(buffers[b++]), [](std::byte*) {}));
  }
  ir::run_kernel(*k.interpreted, arrays);
}

// Kernels that some program holds, by canonical bytes. What nobody holds any more is forgotten when
// the map has doubled, so it never has more than twice the living entries (and a few).
struct Cache {
  std::mutex mutex;
  std::unordered_map<std::string, std::weak_ptr<const CompiledKernel>> kernels;
  std::size_t sweep_at = 64;

  void sweep() {
    if (kernels.size() < sweep_at) return;
    std::erase_if(kernels, [](const auto& entry) { return entry.second.expired(); });
    sweep_at = std::max<std::size_t>(64, 2 * kernels.size());
  }
};

Cache& cache() {
  static Cache* c = new Cache;  // code must outlive every static that may hold a program
  return *c;
}

std::shared_ptr<CompiledKernel> describe(const KernelRequest& r) {
  auto k = std::make_shared<CompiledKernel>();
  k->name = r.name;
  auto kernel = std::make_shared<const ir::Kernel>(ir::decode_kernel(r.bytes));
  for (const ir::Kernel::Param& p : kernel->params) {
    if (p.space == ir::MemorySpace::kScratch)
      k->scratch.push_back(round64(num_elements(p.dims) * dtype_bytes(p.dtype)));
    else
      ++k->num_buffers;
  }
  if (interpret_kernels()) k->interpreted = std::move(kernel);
  return k;
}

// Compiles some kernels into one module.
void compile_module(std::span<const KernelRequest* const> requests,
                    std::span<const std::shared_ptr<CompiledKernel>> out, bool quick,
                    std::string* error) {
  std::vector<const char*> bytes, names;
  std::vector<std::size_t> sizes;
  for (const KernelRequest* r : requests) {
    bytes.push_back(r->bytes.data());
    sizes.push_back(r->bytes.size());
    names.push_back(r->name.c_str());
  }
  xylem_jit_options options{quick ? XYLEM_JIT_TIER_QUICK : XYLEM_JIT_TIER_BEST, 0,
                            std::getenv("XYLEM_DUMP_KERNELS")};
  xylem_jit_module* module = nullptr;
  char message[2048] = {};
  if (xylem_jit_compile(bytes.data(), sizes.data(), names.data(), bytes.size(), &options, &module,
                        message, sizeof message) != 0) {
    *error = message;
    return;
  }
  const std::shared_ptr<xylem_jit_module> shared(module, xylem_jit_release);
  const void* data = nullptr;
  std::size_t size = 0;
  if (xylem_jit_object(module, &data, &size) != 0) size = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i]->module = shared;
    out[i]->entry = xylem_jit_entry(module, i);
    out[i]->code_bytes = static_cast<std::int64_t>(size / out.size());
  }
}

}  // namespace

void CompiledKernel::run(void* const* buffers, std::int64_t begin, std::int64_t end) const {
  if (interpreted) {
    if (begin == 0) run_interpreted(*this, buffers);
    return;
  }
  std::int32_t status = 0;
  if (scratch.empty()) {
    status = entry(buffers, nullptr, begin, end);
  } else {
    thread_local Scratch memory;
    std::int64_t total = 0;
    for (std::int64_t s : scratch) total += s;
    std::byte* at = memory.get(static_cast<std::size_t>(total));
    void* all[128];
    XYLEM_CHECK(num_buffers + scratch.size() <= 128, name);
    std::copy_n(buffers, num_buffers, all);
    for (std::size_t i = 0; i < scratch.size(); ++i) {
      all[num_buffers + i] = at;
      at += scratch[i];
    }
    status = entry(all, nullptr, begin, end);
  }
  if (status != 0)
    throw InternalError(ErrorParts{"run a kernel", "status 0",
                                   fmt::format("{} from {}", status, name),
                                   "Report this program."});
}

std::vector<std::shared_ptr<const CompiledKernel>> get_kernels(
    std::span<const KernelRequest> requests, bool quick) {
  std::vector<std::shared_ptr<const CompiledKernel>> out(requests.size());
  std::vector<const KernelRequest*> missing;
  std::vector<std::shared_ptr<CompiledKernel>> made;
  const auto key = [&](const KernelRequest& r) { return (quick ? "q" : "b") + r.bytes; };
  {
    std::lock_guard lock(cache().mutex);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      auto it = cache().kernels.find(key(requests[i]));
      if (it != cache().kernels.end()) out[i] = it->second.lock();
    }
  }
  std::unordered_map<std::string_view, std::shared_ptr<CompiledKernel>> wanted;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (out[i]) continue;
    auto [it, added] = wanted.try_emplace(requests[i].bytes);
    if (added) {
      it->second = describe(requests[i]);
      missing.push_back(&requests[i]);
      made.push_back(it->second);
    }
    out[i] = it->second;
  }
  if (missing.empty()) return out;
  if (!interpret_kernels()) {
    // Two modules of about equal size, one per thread.
    std::vector<const KernelRequest*> half[2];
    std::vector<std::shared_ptr<CompiledKernel>> target[2];
    std::size_t load[2] = {0, 0};
    for (std::size_t i = 0; i < missing.size(); ++i) {
      const int h = load[1] < load[0] ? 1 : 0;
      half[h].push_back(missing[i]);
      target[h].push_back(made[i]);
      load[h] += missing[i]->bytes.size();
    }
    std::string error[2];
    if (half[1].empty()) {
      compile_module(half[0], target[0], quick, &error[0]);
    } else {
      // Here after the first half where the system gives no thread; what it throws, get() throws.
      std::future<void> other =
          std::async(std::launch::async | std::launch::deferred,
                     [&] { compile_module(half[1], target[1], quick, &error[1]); });
      compile_module(half[0], target[0], quick, &error[0]);
      other.get();
    }
    for (const std::string& e : error)
      if (!e.empty())
        throw UserError(ErrorParts{"compile a kernel", "ops that the code generator knows", e,
                                   "Rewrite the op named here, or run the program with "
                                   "XYLEM_PLATFORM=interpreter."});
  }
  std::lock_guard lock(cache().mutex);
  for (std::size_t i = 0; i < missing.size(); ++i) {
    std::weak_ptr<const CompiledKernel>& known = cache().kernels[key(*missing[i])];
    if (known.expired()) known = made[i];
  }
  cache().sweep();
  return out;
}

}  // namespace xylem::compiler
