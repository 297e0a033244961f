#pragma once

#include <span>
#include <string_view>

#include "xylem/runtime/client.h"

namespace xylem::runtime {

// The checks that every client makes before it enqueues anything: number, dtypes and shapes of the
// arguments, none released, none of another client, donated indices in range. Throws UserError.
void check_arguments(std::string_view program, std::span<const ir::Type> types,
                     std::span<const BufferPtr> args, const ExecuteOptions& options,
                     const Client& client);

}  // namespace xylem::runtime
