#include "xylem/checkpoint/coordination.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <exception>
#include <thread>

#include "xylem/base/error.h"
#include "xylem/base/file.h"

namespace xylem::checkpoint {
namespace {

class SingleProcess final : public Coordinator {
 public:
  int process() const override { return 0; }
  int num_processes() const override { return 1; }
  std::vector<std::string> all_gather(std::string_view, std::string_view value) override {
    return {std::string(value)};
  }
};

class FileCoordinator final : public Coordinator {
 public:
  explicit FileCoordinator(FileCoordinatorOptions options) : options_(std::move(options)) {
    if (options_.num_processes < 1 || options_.process < 0 ||
        options_.process >= options_.num_processes)
      throw_user_error({"coordinate processes", "a process from 0 to num_processes - 1",
                        fmt::format("process {} of {}", options_.process, options_.num_processes),
                        "Number the processes from 0"});
    make_directories(options_.directory);
    // Under its own name only once it is locked, so that nobody takes it for one that has ended.
    const std::string path = alive(options_.process), temporary = path + ".tmp";
    lock_ = ::open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (lock_ < 0) fail_start(temporary, errno);
    if (::flock(lock_, LOCK_EX | LOCK_NB) < 0) fail_start(temporary, errno);
    if (::link(temporary.c_str(), path.c_str()) < 0) fail_start(path, errno);
    ::unlink(temporary.c_str());
  }
  ~FileCoordinator() override {
    if (lock_ >= 0) ::close(lock_);
  }

  int process() const override { return options_.process; }
  int num_processes() const override { return options_.num_processes; }

  std::vector<std::string> all_gather(std::string_view name, std::string_view value) override {
    const std::uint64_t call = calls_++;
    const std::string own = file(call, options_.process), temporary = own + ".tmp";
    write_file(temporary, fmt::format("{}\n{}", name, value));
    rename_path(temporary, own);
    std::vector<std::string> out;
    for (int p = 0; p < options_.num_processes; ++p) {
      const std::string text = wait_for(call, p, name);
      const std::size_t end = text.find('\n');
      if (std::string_view(text).substr(0, end) != name)
        throw EnvironmentError(ErrorParts{fmt::format("wait for process {}", p),
                                          fmt::format("it to come to \"{}\", too", name),
                                          fmt::format("it is at \"{}\"", text.substr(0, end)),
                                          "Let every process save the same steps"});
      out.push_back(text.substr(end + 1));
    }
    // Who is here has read what was before the last call.
    if (call >= 2) remove_tree(file(call - 2, options_.process));
    return out;
  }

 private:
  std::string alive(int p) const {
    return join_path(options_.directory, fmt::format("alive.{}", p));
  }
  std::string file(std::uint64_t call, int p) const {
    return join_path(options_.directory, fmt::format("{}.{}", call, p));
  }

  [[noreturn]] void fail_start(const std::string& path, int error) {
    if (lock_ >= 0) ::close(lock_);
    lock_ = -1;
    if (error == EEXIST)
      throw_user_error({fmt::format("coordinate in {}", options_.directory),
                        fmt::format("a new directory, and one process {}", options_.process),
                        "one has been there before",
                        "Give the processes of a run a directory of their own"});
    throw_file_error("lock", path, error);
  }

  // Whether the process was there and has ended.
  bool has_ended(int p) const {
    const int f = ::open(alive(p).c_str(), O_RDWR | O_CLOEXEC);
    if (f < 0) return false;
    const bool free = ::flock(f, LOCK_SH | LOCK_NB) == 0;
    ::close(f);
    return free;
  }

  std::string wait_for(std::uint64_t call, int p, std::string_view name) const {
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    const std::string path = file(call, p);
    auto pause = std::chrono::microseconds(50);
    while (true) {
      if (path_exists(path)) return read_file(path);
      std::string given;
      if (p != options_.process && has_ended(p) && !path_exists(path))
        given = "it has ended";
      else if (std::chrono::duration<double>(Clock::now() - start).count() >
               options_.timeout_seconds)
        given = fmt::format("it did not come within {} s", options_.timeout_seconds);
      if (!given.empty())
        throw EnvironmentError(ErrorParts{fmt::format("wait for process {} at \"{}\"", p, name),
                                          "every process to take part", given,
                                          "Start the processes again: the last committed step is "
                                          "whole"});
      std::this_thread::sleep_for(pause);
      pause = std::min(pause * 2, std::chrono::microseconds(5000));
    }
  }

  FileCoordinatorOptions options_;
  int lock_ = -1;
  std::uint64_t calls_ = 0;
};

}  // namespace

std::shared_ptr<Coordinator> single_process() { return std::make_shared<SingleProcess>(); }

std::shared_ptr<Coordinator> file_coordinator(FileCoordinatorOptions options) {
  return std::make_shared<FileCoordinator>(std::move(options));
}

void do_together(Coordinator& c, std::string_view name, const std::function<void()>& f) {
  std::exception_ptr error;
  std::string text;
  try {
    f();
  } catch (const std::exception& e) {
    error = std::current_exception();
    text = std::string("!") + e.what();
  }
  std::vector<std::string> all;
  try {
    all = c.all_gather(name, text);
  } catch (const Error&) {
    // What this process knows is more than that another is missing.
    if (error) std::rethrow_exception(error);
    throw;
  }
  if (error) std::rethrow_exception(error);
  for (std::size_t p = 0; p < all.size(); ++p)
    if (!all[p].empty())
      throw EnvironmentError(ErrorParts{fmt::format("save with {} processes", all.size()),
                                        "every process to succeed",
                                        fmt::format("process {}: {}", p, all[p].substr(1)),
                                        "Mend what is wrong there; earlier steps are whole"});
}

}  // namespace xylem::checkpoint
