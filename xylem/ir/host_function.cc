#include "xylem/ir/host_function.h"

#include <fmt/format.h>

#include <memory>
#include <mutex>
#include <unordered_map>

#include "xylem/base/error.h"

namespace xylem::ir {
namespace {

struct Registry {
  std::mutex mutex;
  std::unordered_map<std::int64_t, std::shared_ptr<HostFunction>> functions;
  std::int64_t next = 1;
};

Registry& registry() {
  static auto* r = new Registry;
  return *r;
}

// The bytes of a handle; its end is the end of the function.
struct Handle {
  std::int64_t number;
  explicit Handle(std::int64_t n) : number(n) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    std::shared_ptr<HostFunction> last;  // ends after the lock
    Registry& r = registry();
    std::lock_guard lock(r.mutex);
    if (auto it = r.functions.find(number); it != r.functions.end()) {
      last = std::move(it->second);
      r.functions.erase(it);
    }
  }
};

}  // namespace

Attr keep_host_function(HostFunction f) {
  Registry& r = registry();
  std::int64_t number;
  {
    std::lock_guard lock(r.mutex);
    number = r.next++;
    r.functions.emplace(number, std::make_shared<HostFunction>(std::move(f)));
  }
  auto handle = std::make_shared<Handle>(number);
  auto* bytes = reinterpret_cast<std::byte*>(&handle->number);
  return Attr(HostArray(DType::kI64, {}, std::shared_ptr<std::byte>(std::move(handle), bytes)));
}

std::vector<HostArray> call_host_function(const HostArray& handle, std::span<const HostArray> args,
                                          std::span<const Type> results) {
  std::shared_ptr<HostFunction> f;
  {
    Registry& r = registry();
    std::lock_guard lock(r.mutex);
    auto it = r.functions.find(handle.span<std::int64_t>()[0]);
    if (it != r.functions.end()) f = it->second;
  }
  if (!f)
    throw_user_error({"callback", "a function of this process",
                      "the program names one that is gone",
                      "Run the program in the process that traced it"});
  std::vector<HostArray> out = (*f)(args);
  bool fits = out.size() == results.size();
  for (std::size_t i = 0; fits && i < out.size(); ++i) {
    fits = out[i].dtype() == results[i].dtype() && out[i].dims() == results[i].dims();
    if (!fits)
      throw_user_error({fmt::format("callback: result {}", i),
                        fmt::format("expected {}, as declared", results[i].to_string()),
                        fmt::format("the function returned {}",
                                    Type::tensor(out[i].dtype(), out[i].dims()).to_string()),
                        "Declare the shape and dtype that the function returns"});
    out[i] = out[i].to_contiguous();
  }
  if (!fits)
    throw_user_error({"callback", fmt::format("{} results, as declared", results.size()),
                      fmt::format("the function returned {}", out.size()),
                      "Declare the structure that the function returns"});
  return out;
}

}  // namespace xylem::ir
