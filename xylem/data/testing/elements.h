#pragma once

#include <string>
#include <utility>
#include <vector>

#include "xylem/base/error.h"

namespace xylem::data::testing {

// The message of the Error that `f` throws, or "none".
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.message();
  }
  return "none";
}

// Every element of a data set.
template <class D>
auto all(const D& ds) {
  std::vector<typename D::Element> out;
  for (auto& e : ds.iterator()) out.push_back(std::move(e));
  return out;
}

}  // namespace xylem::data::testing
