#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace xylem::checkpoint {

// What processes that save together need of each other. Every process makes the same calls in the
// same order. For one thread at a time.
class Coordinator {
 public:
  virtual ~Coordinator() = default;
  virtual int process() const = 0;
  virtual int num_processes() const = 0;
  // Waits for all processes and returns their values, by process. EnvironmentError if one has ended
  // or does not come in time, or is at a call of another name.
  virtual std::vector<std::string> all_gather(std::string_view name, std::string_view value) = 0;
};

// One process alone.
std::shared_ptr<Coordinator> single_process();

struct FileCoordinatorOptions {
  // Seen by all, and made anew for each run of the processes.
  std::string directory;
  int process = 0, num_processes = 1;
  double timeout_seconds = 1200;
};
// Over files in a directory on one machine. A process that ends, however it ends, lets go of a
// lock, which the others see at once.
std::shared_ptr<Coordinator> file_coordinator(FileCoordinatorOptions options);

// Runs f on every process and waits for all. If it throws on one, all throw: that one its own
// error, the others an EnvironmentError with its message.
void do_together(Coordinator& c, std::string_view name, const std::function<void()>& f);

}  // namespace xylem::checkpoint
