#pragma once

#include "xylem/ir/op_def.h"

// Calls of functions of the host (host_function.h): {function, name, result_types, vmap_method}.
// They have no decomposition: such a program cannot leave its process.

namespace xylem::ir::ops {

// xylem.pure_callback(args): a function of its arguments alone, called any number of times.
extern const OpDef kPureCallback;
// xylem.io_callback(args) {ordered, debug}: called once wherever the program comes by. `debug`:
// sees primal values only, when differentiated.
extern const OpDef kIoCallback;
// xylem.check(pred, args) {code}: fails where pred, an i1 array, is false anywhere. checkify
// makes it a value; a program that still has one does not run. `code` is the number of the check in
// the front's list.
extern const OpDef kCheck;

}  // namespace xylem::ir::ops
