#pragma once

#include <cstddef>
#include <string>

namespace xylem::internal {

// Remembers the call of this thread that took arguments last, for the error of a later use.
void note_donation(const std::string& call, std::size_t leaf);
// "; a moved argument is donated: the last call that took one was 'step' (argument leaf 3)", or
// nothing.
std::string last_donation();

}  // namespace xylem::internal
