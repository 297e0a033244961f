#include "xylem/core/internal/donation.h"

#include <fmt/format.h>

namespace xylem::internal {
namespace {

thread_local std::string last_call;
thread_local std::size_t last_leaf = 0;

}  // namespace

void note_donation(const std::string& call, std::size_t leaf) {
  last_call = call;
  last_leaf = leaf;
}

std::string last_donation() {
  if (last_call.empty()) return "";
  return fmt::format(
      "; a moved argument is donated: the last call that took one was '{}' (argument leaf {})",
      last_call, last_leaf);
}

}  // namespace xylem::internal
