#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "xylem/base/dims.h"
#include "xylem/base/dtype.h"
#include "xylem/base/host_array.h"
#include "xylem/ir/graph.h"

// The shape of PJRT: client, device, memory space, buffer, executable, event. The CPU device and
// foreign plugins stand behind these classes; nothing above them knows which.
namespace xylem::runtime {

class Client;
class Device;

// Completion of asynchronous work. Copies share one state. Thread safe.
class Event {
 public:
  struct State;
  Event() = default;  // already complete
  explicit Event(std::shared_ptr<State> state) : state_(std::move(state)) {}
  // An incomplete event, completed by `complete`.
  static Event make();

  bool ready() const;
  // Blocks until complete; throws the work's error.
  void wait() const;
  // Complete, and without an error.
  bool succeeded() const;
  // Null error: success. Only once.
  void complete(std::exception_ptr error = nullptr);
  // Calls fn(context) when complete, at once if it already is; on the completing thread.
  void on_ready(void (*fn)(void* context), void* context) const;

 private:
  std::shared_ptr<State> state_;
};

struct MemorySpace {
  std::string kind;  // "device", "pinned_host"
  int id = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual int id() const = 0;
  virtual std::string_view kind() const = 0;  // "cpu"
  virtual Client& client() const = 0;
  virtual std::span<const MemorySpace> memory_spaces() const = 0;
};

// A dense row-major array on a device. Immutable once ready, but for donation: an executable may
// take the memory of a donated buffer. Thread safe.
class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual DType dtype() const = 0;
  virtual const Dims& dims() const = 0;
  virtual Device& device() const = 0;
  // Completes when the contents are there; carries the error of the execution that makes them.
  virtual Event ready() const = 0;
  // Waits; the result shares memory with the buffer where the device's memory is the host's, and
  // keeps it alive. Throws the error of the execution.
  virtual HostArray to_host() const = 0;
  // Whether the memory was given away by donation or `release`.
  virtual bool released() const = 0;
  virtual void release() = 0;

  std::size_t nbytes() const;
};
using BufferPtr = std::shared_ptr<Buffer>;

struct CompileOptions {
  bool quick = false;  // less optimisation, for code that runs once
  std::string name;    // shown in logs and profiles
  // Parameters whose buffers may be taken for results (by index).
  std::vector<int> donated;
};

struct ExecuteOptions {
  // Parameters whose buffer is donated in this call (subset of CompileOptions::donated). The
  // memory is reused only if this is the last reference and nobody still reads it; otherwise a new
  // buffer is made. Donated handles are released when the execution is enqueued.
  std::vector<int> donated;
};

struct CostAnalysis {
  double flops = 0;
  double bytes = 0;
};
struct MemoryAnalysis {
  std::int64_t arguments = 0, results = 0, temporaries = 0, aliased = 0, code = 0;
};

// A compiled program. Thread safe; may run any number of times concurrently.
class Executable {
 public:
  virtual ~Executable() = default;
  virtual std::string_view name() const = 0;
  virtual std::span<const ir::Type> param_types() const = 0;
  virtual std::span<const ir::Type> result_types() const = 0;
  // Enqueues the program; results are ready later. Errors before enqueueing are thrown and leave
  // the arguments intact; errors of the run travel in the results' `ready` events.
  virtual std::vector<BufferPtr> execute(std::span<const BufferPtr> args,
                                         const ExecuteOptions& options = {}) = 0;
  // The same for callers that keep the arguments alive until this returns, have checked their
  // types and donate nothing: no handle is copied where the program runs at once. `args[i]` are
  // buffers of this program's client.
  virtual std::vector<BufferPtr> execute_borrowed(std::span<const BufferPtr* const> args);
  virtual CostAnalysis cost() const = 0;
  virtual MemoryAnalysis memory() const = 0;
  // Human-readable optimised program.
  virtual std::string text() const = 0;
};
using ExecutablePtr = std::shared_ptr<Executable>;

class Client {
 public:
  virtual ~Client() = default;
  virtual std::string_view platform() const = 0;  // "cpu", "interpreter"
  virtual std::span<Device* const> devices() const = 0;
  virtual ExecutablePtr compile(ir::GraphPtr graph, const CompileOptions& options = {}) = 0;
  // Shares the array's bytes where the device can (aligned, contiguous), else copies.
  virtual BufferPtr from_host(const HostArray& array, Device* device = nullptr) = 0;
};

// The process-wide client: the CPU, or the reference interpreter if XYLEM_PLATFORM=interpreter.
Client& default_client();

// Runs every program with the reference interpreter. For tests and as an oracle.
std::unique_ptr<Client> make_interpreter_client();
// Compiles for the host's CPU. `num_devices` logical devices share the machine.
std::unique_ptr<Client> make_cpu_client(int num_devices = 1);

}  // namespace xylem::runtime
