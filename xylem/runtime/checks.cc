#include "xylem/runtime/checks.h"

#include <fmt/format.h>

#include "xylem/base/error.h"

namespace xylem::runtime {

void check_arguments(std::string_view program, std::span<const ir::Type> types,
                     std::span<const BufferPtr> args, const ExecuteOptions& options,
                     const Client& client) {
  const std::string_view name = program.empty() ? "program" : program;
  if (args.size() != types.size())
    throw_user_error({fmt::format("execute {}", name), fmt::format("{} arguments", types.size()),
                      fmt::format("{} arguments", args.size()), "Pass one buffer per parameter."});
  for (std::size_t i = 0; i < args.size(); ++i) {
    const auto where = [&] { return fmt::format("execute {}: argument {}", name, i); };
    if (!args[i])
      throw_user_error({where(), types[i].to_string(), "a null buffer", "Pass a buffer."});
    const Buffer& b = *args[i];
    if (b.released())
      throw_user_error({where(), "a buffer that still has its memory",
                        "a buffer that was donated or released",
                        "Do not use an argument again after it was donated, or pass a copy."});
    if (&b.device().client() != &client)
      throw_user_error(
          {where(),
           fmt::format("a buffer of the client that compiled the program ({})", client.platform()),
           fmt::format("a buffer of another client ({})", b.device().client().platform()),
           "Copy the array to this client's device first."});
    if (b.dtype() != types[i].dtype() || b.dims() != types[i].dims())
      throw_user_error({where(), types[i].to_string(), shape_string(b.dtype(), b.dims()),
                        "Convert or reshape the argument, or compile for its shape."});
  }
  for (int d : options.donated)
    if (d < 0 || static_cast<std::size_t>(d) >= args.size())
      throw_user_error({fmt::format("execute {}: donated", name),
                        fmt::format("indices below {}", args.size()), fmt::format("{}", d),
                        "Donate parameters by their index."});
}

}  // namespace xylem::runtime
