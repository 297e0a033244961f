#pragma once

// Everything of core: arrays, transformations, control flow, numpy functions, random numbers.

#include "xylem/base/error.h"
#include "xylem/core/array.h"
#include "xylem/core/control_flow.h"
#include "xylem/core/dlpack.h"
#include "xylem/core/indexing.h"
#include "xylem/core/lax.h"
#include "xylem/core/numerics.h"
#include "xylem/core/numpy.h"
#include "xylem/core/random.h"
#include "xylem/core/special.h"
#include "xylem/core/transforms.h"
