#pragma once

#include <functional>
#include <span>
#include <vector>

#include "xylem/base/host_array.h"
#include "xylem/ir/attr.h"
#include "xylem/ir/type.h"

// Functions of the host that programs call. A program names one by a number; the attribute that
// holds the number keeps the function alive, so that it lives as long as the last graph and the
// last compiled program that name it. Thread safe.
namespace xylem::ir {

// Arguments are dense and belong to the callee. May throw.
using HostFunction = std::function<std::vector<HostArray>(std::span<const HostArray>)>;

// An attribute (an i64 scalar) that names f.
Attr keep_host_function(HostFunction f);

// Calls the function that `handle` names. UserError if it is gone (a program read from bytes), or
// if what it returns has not the types `results`.
std::vector<HostArray> call_host_function(const HostArray& handle, std::span<const HostArray> args,
                                          std::span<const Type> results);

}  // namespace xylem::ir
