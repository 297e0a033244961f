// The client that runs every program with the reference interpreter, on the caller's thread.

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "xylem/base/error.h"
#include "xylem/ir/interpreter.h"
#include "xylem/ir/verify.h"
#include "xylem/runtime/checks.h"
#include "xylem/runtime/client.h"
#include "xylem/runtime/event.h"

namespace xylem::runtime {
namespace {

class InterpreterDevice final : public Device {
 public:
  explicit InterpreterDevice(Client& client) : client_(client) {}
  int id() const override { return 0; }
  std::string_view kind() const override { return "interpreter"; }
  Client& client() const override { return client_; }
  std::span<const MemorySpace> memory_spaces() const override { return spaces_; }

 private:
  Client& client_;
  std::array<MemorySpace, 1> spaces_{MemorySpace{"device", 0}};
};

class InterpreterBuffer final : public Buffer {
 public:
  InterpreterBuffer(HostArray array, Device& device) : array_(std::move(array)), device_(device) {}
  InterpreterBuffer(const ir::Type& type, Event failed, Device& device)
      : array_(type.dtype(), type.dims()), device_(device), ready_(std::move(failed)) {}

  DType dtype() const override { return array_.dtype(); }
  const Dims& dims() const override { return array_.dims(); }
  Device& device() const override { return device_; }
  Event ready() const override { return ready_; }
  HostArray to_host() const override {
    ready_.wait();
    if (released())
      throw_user_error({"read a buffer", "a buffer that still has its memory",
                        "a buffer that was donated or released", "Keep a copy of the array."});
    return array_;
  }
  bool released() const override { return released_.load(std::memory_order_acquire); }
  // The memory itself stays until the last handle goes: somebody may be reading it.
  void release() override { released_.store(true, std::memory_order_release); }

 private:
  HostArray array_;
  Device& device_;
  Event ready_;
  std::atomic<bool> released_{false};
};

class InterpreterExecutable final : public Executable {
 public:
  InterpreterExecutable(ir::GraphPtr graph, std::string name, Device& device)
      : graph_(std::move(graph)),
        name_(std::move(name)),
        device_(device),
        param_types_(graph_->param_types()),
        result_types_(graph_->result_types()) {}

  std::string_view name() const override { return name_; }
  std::span<const ir::Type> param_types() const override { return param_types_; }
  std::span<const ir::Type> result_types() const override { return result_types_; }

  std::vector<BufferPtr> execute(std::span<const BufferPtr> args,
                                 const ExecuteOptions& options) override {
    check_arguments(name_, param_types_, args, options, device_.client());
    std::vector<BufferPtr> results;
    try {
      std::vector<HostArray> inputs;
      for (const BufferPtr& b : args) inputs.push_back(b->to_host());
      for (HostArray& r : ir::evaluate(*graph_, inputs))
        results.push_back(std::make_shared<InterpreterBuffer>(std::move(r), device_));
    } catch (...) {
      const Event failed = failed_event(std::current_exception());
      results.clear();
      for (const ir::Type& t : result_types_)
        results.push_back(std::make_shared<InterpreterBuffer>(t, failed, device_));
    }
    for (int d : options.donated)
      if (const BufferPtr& b = args[static_cast<std::size_t>(d)]; b.use_count() == 1) b->release();
    return results;
  }

  CostAnalysis cost() const override { return {}; }
  MemoryAnalysis memory() const override {
    MemoryAnalysis m;
    for (const ir::Type& t : param_types_) m.arguments += t.nbytes();
    for (const ir::Type& t : result_types_) m.results += t.nbytes();
    return m;
  }
  std::string text() const override { return graph_->to_string(); }

 private:
  ir::GraphPtr graph_;
  std::string name_;
  Device& device_;
  std::vector<ir::Type> param_types_, result_types_;
};

class InterpreterClient final : public Client {
 public:
  InterpreterClient() : device_(*this), devices_{&device_} {}
  std::string_view platform() const override { return "interpreter"; }
  std::span<Device* const> devices() const override { return devices_; }
  ExecutablePtr compile(ir::GraphPtr graph, const CompileOptions& options) override {
    ir::verify_or_throw(*graph);
    std::string name = options.name.empty() ? graph->name : options.name;
    return std::make_shared<InterpreterExecutable>(std::move(graph), std::move(name), device_);
  }
  BufferPtr from_host(const HostArray& array, Device*) override {
    return std::make_shared<InterpreterBuffer>(array.to_contiguous(), device_);
  }

 private:
  InterpreterDevice device_;
  std::array<Device*, 1> devices_;
};

}  // namespace

std::unique_ptr<Client> make_interpreter_client() { return std::make_unique<InterpreterClient>(); }

}  // namespace xylem::runtime
