#pragma once

// Everything of core: arrays, transformations, control flow, numpy functions, random numbers.

#include "xylem/base/error.h"
#include "xylem/core/array.h"
#include "xylem/core/collectives.h"
#include "xylem/core/control_flow.h"
#include "xylem/core/dlpack.h"
#include "xylem/core/fft.h"
#include "xylem/core/implicit.h"
#include "xylem/core/indexing.h"
#include "xylem/core/jacobian.h"
#include "xylem/core/lax.h"
#include "xylem/core/linalg.h"
#include "xylem/core/loops.h"
#include "xylem/core/numerics.h"
#include "xylem/core/numpy.h"
#include "xylem/core/random.h"
#include "xylem/core/special.h"
#include "xylem/core/statistics.h"
#include "xylem/core/transforms.h"
