#pragma once

// Every op by name.
#include "xylem/ir/ops/contraction.h"
#include "xylem/ir/ops/control.h"
#include "xylem/ir/ops/convert.h"
#include "xylem/ir/ops/cumulative.h"
#include "xylem/ir/ops/custom_linear.h"
#include "xylem/ir/ops/elementary.h"
#include "xylem/ir/ops/elementwise_binary.h"
#include "xylem/ir/ops/elementwise_unary.h"
#include "xylem/ir/ops/foreign.h"
#include "xylem/ir/ops/gather_scatter.h"
#include "xylem/ir/ops/movement.h"
#include "xylem/ir/ops/random.h"
#include "xylem/ir/ops/reduction.h"
#include "xylem/ir/ops/sort.h"
#include "xylem/ir/ops/transform.h"
