#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace xylem::cli {

// Adds the verbs of `xylem data` that work on record files: cat, info, head, convert, verify,
// index, bench. A chosen verb puts what it does into `command`, which must outlive the parsing.
void add_data_commands(CLI::App& data, std::function<int()>& command);

}  // namespace xylem::cli
