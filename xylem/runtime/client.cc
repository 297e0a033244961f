#include "xylem/runtime/client.h"

#include <cstdlib>

#include "xylem/base/error.h"

namespace xylem::runtime {

std::size_t Buffer::nbytes() const {
  return static_cast<std::size_t>(num_elements(dims())) *
         static_cast<std::size_t>(dtype_bytes(dtype()));
}

std::vector<BufferPtr> Executable::execute_borrowed(std::span<const BufferPtr* const> args) {
  std::vector<BufferPtr> owned;
  owned.reserve(args.size());
  for (const BufferPtr* b : args) owned.push_back(*b);
  return execute(owned);
}

namespace {

std::unique_ptr<Client> make_default_client() {
  const char* platform = std::getenv("XYLEM_PLATFORM");
  const std::string_view name = platform && *platform ? platform : "cpu";
  if (name == "interpreter") return make_interpreter_client();
  if (name == "cpu") return make_cpu_client();
  throw_user_error({"XYLEM_PLATFORM", "cpu or interpreter", std::string(name),
                    "Set the variable to one of these, or leave it out."});
}

}  // namespace

Client& default_client() {
  // Never destroyed: arrays held in static storage may outlive any order of destruction.
  static Client* client = make_default_client().release();
  return *client;
}

}  // namespace xylem::runtime
