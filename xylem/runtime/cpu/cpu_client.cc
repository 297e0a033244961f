// The host's CPU as a device: compiled programs, pooled memory, one ordered queue per device.

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <utility>

#include "xylem/base/bounded_cache.h"
#include "xylem/base/env.h"
#include "xylem/base/error.h"
#include "xylem/base/pool_allocator.h"
#include "xylem/compiler/compile.h"
#include "xylem/ir/text.h"
#include "xylem/ir/verify.h"
#include "xylem/runtime/checks.h"
#include "xylem/runtime/client.h"
#include "xylem/runtime/cpu/memory.h"
#include "xylem/runtime/cpu/queue.h"
#include "xylem/runtime/event.h"

namespace xylem::runtime {
namespace {

using compiler::Program;
using cpu::Storage;
using cpu::StoragePtr;

// Programs that are estimated to take less run on the caller's thread: handing them over would
// cost as much.
constexpr double kInlineNs = 30000;

// Programs that the client keeps for the next request; those in use live on without it.
constexpr std::size_t kMaxPrograms = 4096;

class CpuDevice final : public Device {
 public:
  CpuDevice(Client& client, int id) : client_(client), id_(id) {}
  int id() const override { return id_; }
  std::string_view kind() const override { return "cpu"; }
  Client& client() const override { return client_; }
  std::span<const MemorySpace> memory_spaces() const override { return spaces_; }
  cpu::Queue& queue() { return queue_; }

 private:
  Client& client_;
  int id_;
  std::array<MemorySpace, 1> spaces_{MemorySpace{"device", 0}};
  cpu::Queue queue_;
};

class CpuBuffer final : public Buffer {
 public:
  CpuBuffer(DType dtype, Dims dims, StoragePtr storage, Event ready, CpuDevice& device)
      : dtype_(dtype),
        dims_(std::move(dims)),
        device_(device),
        ready_(std::move(ready)),
        storage_(std::move(storage)),
        data_(storage_ ? storage_->data : nullptr) {}

  DType dtype() const override { return dtype_; }
  const Dims& dims() const override { return dims_; }
  Device& device() const override { return device_; }
  CpuDevice& cpu_device() const { return device_; }
  Event ready() const override { return ready_; }
  const Event& event() const { return ready_; }

  HostArray to_host() const override {
    const StoragePtr s = storage();
    if (!s)
      throw_user_error({"read a buffer", "a buffer that still has its memory",
                        "a buffer that was donated or released", "Keep a copy of the array."});
    ready_.wait();
    if (s->array.defined() && s->array.dtype() == dtype_ && s->array.dims() == dims_)
      return s->array;
    return HostArray(dtype_, dims_, std::shared_ptr<std::byte>(s, s->data));
  }
  bool released() const override { return data() == nullptr; }
  void release() override { take(); }

  StoragePtr storage() const {
    std::lock_guard lock(mutex_);
    return storage_;
  }
  // Where the contents are, null once the memory was taken. For readers that know that nobody
  // takes it meanwhile: donation needs the last handle of the buffer, and they hold one.
  std::byte* data() const { return data_.load(std::memory_order_acquire); }
  StoragePtr take() {
    std::lock_guard lock(mutex_);
    data_.store(nullptr, std::memory_order_release);
    return std::exchange(storage_, nullptr);
  }
  // Undoes a take.
  void put_back(StoragePtr storage) {
    std::lock_guard lock(mutex_);
    storage_ = std::move(storage);
    data_.store(storage_ ? storage_->data : nullptr, std::memory_order_release);
  }
  // Takes the memory if nobody else holds it.
  StoragePtr take_if_only() {
    std::lock_guard lock(mutex_);
    if (!storage_ || !cpu::only_handle(storage_)) return nullptr;
    data_.store(nullptr, std::memory_order_release);
    return std::exchange(storage_, nullptr);
  }

 private:
  DType dtype_;
  Dims dims_;
  CpuDevice& device_;
  Event ready_;
  mutable std::mutex mutex_;
  StoragePtr storage_;
  std::atomic<std::byte*> data_;  // of `storage_`
};

std::shared_ptr<CpuBuffer> make_buffer(DType dtype, const Dims& dims, StoragePtr storage,
                                       Event ready, CpuDevice& device) {
  return std::allocate_shared<CpuBuffer>(PoolAllocator<CpuBuffer>(), dtype, dims,
                                         std::move(storage), std::move(ready), device);
}

// A program with the arenas that its runs have left behind.
struct Loaded {
  std::shared_ptr<const Program> program;
  std::mutex mutex;
  std::vector<StoragePtr> arenas;

  StoragePtr take_arena() {
    const auto bytes = static_cast<std::size_t>(program->arena_bytes());
    if (bytes == 0) return nullptr;
    {
      std::lock_guard lock(mutex);
      if (!arenas.empty() && !cpu::guard_enabled()) {
        StoragePtr a = std::move(arenas.back());
        arenas.pop_back();
        return a;
      }
    }
    return cpu::allocate(bytes);
  }
  void give_arena(StoragePtr a) {
    if (!a || cpu::guard_enabled()) return;
    std::lock_guard lock(mutex);
    arenas.push_back(std::move(a));
  }
};

// One execution: everything that it needs until it has ended.
struct Run {
  std::shared_ptr<Loaded> loaded;
  std::vector<StoragePtr> inputs, outputs;
  std::vector<Event> wait;  // of inputs that were not ready

  void operator()() {
    void* p[64];
    void* r[64];
    std::vector<void*> more_p, more_r;
    void** ps = p;
    void** rs = r;
    if (inputs.size() > 64) {
      more_p.resize(inputs.size());
      ps = more_p.data();
    }
    if (outputs.size() > 64) {
      more_r.resize(outputs.size());
      rs = more_r.data();
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) ps[i] = inputs[i]->data;
    for (std::size_t i = 0; i < outputs.size(); ++i) rs[i] = outputs[i]->data;
    StoragePtr arena = loaded->take_arena();
    loaded->program->run({ps, inputs.size()}, {rs, outputs.size()}, arena ? arena->data : nullptr);
    loaded->give_arena(std::move(arena));
  }
};

class CpuExecutable final : public Executable {
 public:
  CpuExecutable(std::shared_ptr<Loaded> loaded, std::string name, std::vector<int> donated,
                CpuDevice& device)
      : loaded_(std::move(loaded)),
        name_(std::move(name)),
        donated_(std::move(donated)),
        device_(device) {
    for (const ir::Type& t : result_types())
      result_bytes_.push_back(t.is_tensor() ? static_cast<std::size_t>(t.nbytes()) : 0);
  }

  std::string_view name() const override { return name_; }
  std::span<const ir::Type> param_types() const override { return program().param_types(); }
  std::span<const ir::Type> result_types() const override { return program().result_types(); }

  std::vector<BufferPtr> execute(std::span<const BufferPtr> args,
                                 const ExecuteOptions& options) override {
    check_arguments(name_, param_types(), args, options, device_.client());
    CpuDevice& device = args.empty() ? device_ : cast(*args[0]).cpu_device();
    Run run;
    run.loaded = loaded_;
    run.inputs.resize(args.size());
    for (std::size_t i = 0; i < args.size(); ++i) {
      run.inputs[i] = cast(*args[i]).storage();
      if (!run.inputs[i])
        throw_user_error({fmt::format("execute {}: argument {}", name_, i), "a live buffer",
                          "a buffer that was released meanwhile", "Keep the array alive."});
      const Event& e = cast(*args[i]).event();
      if (!e.ready()) run.wait.push_back(e);
      // An argument that failed makes the results fail; waiting throws its error.
      else if (failed(e))
        run.wait.push_back(e);
    }
    const std::vector<bool> given = donate(args, options, &run);
    std::vector<StoragePtr> taken(args.size());
    for (std::size_t i = 0; i < args.size(); ++i)
      if (given[i]) taken[i] = run.inputs[i];
    try {
      const auto results = result_types();
      run.outputs.resize(results.size());
      for (std::size_t i = 0; i < results.size(); ++i) {
        const int a = program().placements()[i].aliased_param;
        if (a >= 0 && given[static_cast<std::size_t>(a)])
          run.outputs[i] = run.inputs[static_cast<std::size_t>(a)];
        else
          run.outputs[i] = cpu::allocate(result_bytes_[i]);
      }
      return start(std::move(run), device, given);
    } catch (...) {
      // Nothing was enqueued: the arguments stay as they were.
      for (std::size_t i = 0; i < args.size(); ++i)
        if (taken[i]) cast(*args[i]).put_back(std::move(taken[i]));
      throw;
    }
  }

  std::vector<BufferPtr> execute_borrowed(std::span<const BufferPtr* const> args) override {
    constexpr std::size_t kInline = 64;
    void* few[kInline];
    std::vector<void*> many;
    void** p = few;
    const auto results = result_types();
    if (args.size() + results.size() > kInline) {
      many.resize(args.size() + results.size());
      p = many.data();
    }
    bool now = program().estimate_ns() < kInlineNs;
    for (std::size_t i = 0; now && i < args.size(); ++i) {
      const CpuBuffer& b = cast(**args[i]);
      p[i] = b.data();
      now = p[i] != nullptr && b.event().succeeded();
    }
    if (!now) return Executable::execute_borrowed(args);
    void** r = p + args.size();
    std::vector<BufferPtr> out;
    out.reserve(results.size());
    CpuDevice& device = args.empty() ? device_ : cast(**args[0]).cpu_device();
    for (std::size_t i = 0; i < results.size(); ++i) {
      const bool tensor = results[i].is_tensor();
      StoragePtr s = cpu::allocate(result_bytes_[i]);
      r[i] = s->data;
      out.push_back(make_buffer(tensor ? results[i].dtype() : DType::kBool,
                                tensor ? results[i].dims() : Dims{}, std::move(s), Event(),
                                device));
    }
    try {
      StoragePtr arena = loaded_->take_arena();
      program().run({p, args.size()}, {r, results.size()}, arena ? arena->data : nullptr);
      loaded_->give_arena(std::move(arena));
    } catch (...) {
      const Event failed = failed_event(std::current_exception());
      for (std::size_t i = 0; i < out.size(); ++i) {
        const CpuBuffer& b = cast(*out[i]);
        out[i] = make_buffer(b.dtype(), b.dims(), b.storage(), failed, device);
      }
    }
    return out;
  }

  CostAnalysis cost() const override {
    return {program().analysis().flops, program().analysis().bytes};
  }
  MemoryAnalysis memory() const override {
    MemoryAnalysis m;
    for (const ir::Type& t : param_types())
      if (t.is_tensor()) m.arguments += t.nbytes();
    for (std::size_t i = 0; i < result_types().size(); ++i) {
      const ir::Type& t = result_types()[i];
      if (!t.is_tensor()) continue;
      m.results += t.nbytes();
      if (program().placements()[i].aliased_param >= 0) m.aliased += t.nbytes();
    }
    m.temporaries = program().analysis().temporaries;
    m.code = program().analysis().code;
    return m;
  }
  std::string text() const override { return program().text(); }

 private:
  const Program& program() const { return *loaded_->program; }
  static CpuBuffer& cast(Buffer& b) { return static_cast<CpuBuffer&>(b); }

  static bool failed(const Event& e) {
    try {
      e.wait();
      return false;
    } catch (...) {
      return true;
    }
  }

  // Takes the memory of donated arguments where this is the last handle. Others keep theirs.
  std::vector<bool> donate(std::span<const BufferPtr> args, const ExecuteOptions& options,
                           Run* run) {
    std::vector<bool> given(args.size(), false);
    for (int d : options.donated) {
      const auto i = static_cast<std::size_t>(d);
      const bool compiled = std::find(donated_.begin(), donated_.end(), d) != donated_.end();
      bool ok = compiled && args[i].use_count() == 1 && &cast(*args[i]).cpu_device() == &device_;
      if (ok) {
        run->inputs[i].reset();
        run->inputs[i] = cast(*args[i]).take_if_only();
        ok = run->inputs[i] != nullptr;
        if (!ok) run->inputs[i] = cast(*args[i]).storage();
      }
      given[i] = ok;
      if (!ok && log_enabled("donation"))
        log_line("donation", fmt::format("{}: argument {} {} is kept: {}", name_, d,
                                         shape_string(args[i]->dtype(), args[i]->dims()),
                                         compiled ? "it is still referenced elsewhere"
                                                  : "the program was not compiled to take it"));
    }
    return given;
  }

  std::vector<BufferPtr> start(Run run, CpuDevice& device, const std::vector<bool>& given) {
    bool small = run.wait.empty() && program().estimate_ns() < kInlineNs;
    // A donated buffer that queued executions still use is written after them, in the queue.
    for (std::size_t i = 0; small && i < given.size(); ++i)
      if (given[i] && run.inputs[i]->pins.load(std::memory_order_acquire) > 0) small = false;
    // A callback that runs programs of its own cannot wait for the queue that runs it.
    if (!small && cpu::Queue::on_worker()) {
      for (const Event& e : run.wait) {
        try {
          e.wait();
        } catch (...) {
          // Delivered by the results, below.
        }
      }
      small = std::none_of(run.wait.begin(), run.wait.end(), failed);
    }
    Event done;
    const std::vector<StoragePtr> outputs = run.outputs;
    if (small) {
      try {
        run();
      } catch (...) {
        done = failed_event(std::current_exception());
      }
    } else {
      done = Event::make();
      const auto queued = std::make_shared<Run>(std::move(run));
      const auto pin = [&](int by) {
        for (const auto* list : {&queued->inputs, &queued->outputs})
          for (const StoragePtr& s : *list) s->pins.fetch_add(by, std::memory_order_acq_rel);
      };
      std::function<void()> work = [task = queued, done]() mutable {
        std::exception_ptr error;
        try {
          for (const Event& e : task->wait) e.wait();
          (*task)();
        } catch (...) {
          error = std::current_exception();
        }
        for (auto* list : {&task->inputs, &task->outputs})
          for (StoragePtr& s : *list) {
            Storage* raw = s.get();
            raw->pins.fetch_sub(1, std::memory_order_acq_rel);
            s.reset();
          }
        task.reset();
        done.complete(error);
      };
      pin(1);
      try {
        device.queue().push(std::move(work));
      } catch (...) {
        pin(-1);
        throw;
      }
    }
    std::vector<BufferPtr> results;
    results.reserve(outputs.size());
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const ir::Type& t = result_types()[i];
      results.push_back(make_buffer(t.is_tensor() ? t.dtype() : DType::kBool,
                                    t.is_tensor() ? t.dims() : Dims{}, outputs[i], done, device));
    }
    return results;
  }

  std::shared_ptr<Loaded> loaded_;
  std::string name_;
  std::vector<int> donated_;
  CpuDevice& device_;
  std::vector<std::size_t> result_bytes_;
};

class CpuClient final : public Client {
 public:
  explicit CpuClient(int num_devices) {
    for (int i = 0; i < num_devices; ++i) {
      devices_.push_back(std::make_unique<CpuDevice>(*this, i));
      pointers_.push_back(devices_.back().get());
    }
  }
  std::string_view platform() const override { return "cpu"; }
  std::span<Device* const> devices() const override { return pointers_; }

  ExecutablePtr compile(ir::GraphPtr graph, const CompileOptions& options) override {
    ir::verify_or_throw(*graph);
    const std::string name = options.name.empty() ? graph->name : options.name;
    std::string key = ir::encode(*graph);
    key += options.quick ? "|quick" : "|";
    for (int d : options.donated) key += fmt::format(",{}", d);
    std::shared_ptr<Loaded> loaded;
    if (auto found = cache_.find(key)) {
      loaded = std::move(*found);
    } else {
      loaded = std::make_shared<Loaded>();
      loaded->program = compiler::compile(
          graph, {.name = name, .quick = options.quick, .donated = options.donated});
      loaded = cache_.insert(std::move(key), std::move(loaded));
    }
    return std::make_shared<CpuExecutable>(std::move(loaded), name, options.donated, *devices_[0]);
  }

  BufferPtr from_host(const HostArray& array, Device* device) override {
    CpuDevice* where = devices_[0].get();
    if (device) {
      XYLEM_CHECK(&device->client() == this, "a device of another client");
      where = static_cast<CpuDevice*>(device);
    }
    const bool aligned = reinterpret_cast<std::uintptr_t>(array.data()) % 64 == 0;
    if (array.contiguous() && aligned && !cpu::guard_enabled())
      return make_buffer(array.dtype(), array.dims(), cpu::share(array), Event(), *where);
    const HostArray dense = array.to_contiguous();
    StoragePtr storage = cpu::allocate(dense.nbytes());
    std::memcpy(storage->data, dense.data(), dense.nbytes());
    return make_buffer(array.dtype(), array.dims(), std::move(storage), Event(), *where);
  }

 private:
  std::vector<std::unique_ptr<CpuDevice>> devices_;
  std::vector<Device*> pointers_;
  BoundedCache<std::string, std::shared_ptr<Loaded>> cache_{kMaxPrograms};
};

}  // namespace

std::unique_ptr<Client> make_cpu_client(int num_devices) {
  if (num_devices < 1)
    throw_user_error({"make_cpu_client", "at least one device", fmt::format("{}", num_devices),
                      "Ask for one or more devices."});
  return std::make_unique<CpuClient>(num_devices);
}

}  // namespace xylem::runtime
