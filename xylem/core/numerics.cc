#include "xylem/core/numerics.h"

namespace xylem {
namespace {

thread_local Numerics mode_of_thread = Numerics::safe;

}  // namespace

Numerics numerics() { return mode_of_thread; }

NumericsScope::NumericsScope(Numerics mode) : saved_(mode_of_thread) { mode_of_thread = mode; }
NumericsScope::~NumericsScope() { mode_of_thread = saved_; }

}  // namespace xylem
