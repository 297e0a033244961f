#include "xylem/data/internal/run_program.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "xylem/base/file.h"

namespace xylem::data::internal {
namespace {

class Pipe {
 public:
  explicit Pipe(const std::string& program) {
    if (::pipe2(ends_.data(), O_CLOEXEC) < 0) throw_file_error("make a pipe for", program, errno);
  }
  ~Pipe() {
    close(0);
    close(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  int read_end() const { return ends_[0]; }
  int write_end() const { return ends_[1]; }
  void close(std::size_t end) {
    if (ends_[end] >= 0) ::close(ends_[end]);
    ends_[end] = -1;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

// Appends what is there; false at the end of the stream.
bool drain(int fd, std::string& out) {
  char buffer[65536];
  const ssize_t n = ::read(fd, buffer, sizeof buffer);
  if (n < 0) return errno == EINTR || errno == EAGAIN;
  out.append(buffer, static_cast<std::size_t>(n));
  return n > 0;
}

}  // namespace

ProgramOutput run_program(const std::vector<std::string>& arguments) {
  Pipe out(arguments.at(0)), err(arguments[0]), failure(arguments[0]);
  std::vector<char*> argv;
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);

  const pid_t child = ::fork();
  if (child < 0) throw_file_error("start", arguments[0], errno);
  if (child == 0) {
    // Only async-signal-safe calls from here: other threads may hold any lock.
    const int null = ::open("/dev/null", O_RDONLY);
    ::dup2(null, 0);
    ::dup2(out.write_end(), 1);
    ::dup2(err.write_end(), 2);
    ::execvp(argv[0], argv.data());
    const int error = errno;
    // The close-on-exec pipe tells the parent why there was no program; success closes it unread.
    [[maybe_unused]] const ssize_t n = ::write(failure.write_end(), &error, sizeof error);
    ::_exit(127);
  }
  out.close(1);
  err.close(1);
  failure.close(1);

  ProgramOutput result;
  std::array<pollfd, 2> fds{{{out.read_end(), POLLIN, 0}, {err.read_end(), POLLIN, 0}}};
  std::string* into[2] = {&result.output, &result.errors};
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) break;
    for (std::size_t i = 0; i < 2; ++i)
      if (fds[i].fd >= 0 && fds[i].revents != 0 && !drain(fds[i].fd, *into[i])) fds[i].fd = -1;
  }
  int error = 0, status = 0;
  const bool failed = ::read(failure.read_end(), &error, sizeof error) == sizeof error;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (failed && error == ENOENT) {
    result.found = false;
    return result;
  }
  if (failed) throw_file_error("start", arguments[0], error);
  result.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace xylem::data::internal
