#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace xylem::cli {

// Adds `xylem checkpoint` with its verbs; the one that is called sets `command`.
void add_checkpoint_command(CLI::App& app, std::function<int()>& command);

}  // namespace xylem::cli
