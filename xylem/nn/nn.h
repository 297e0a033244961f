#pragma once

// Everything of nn.

#include "xylem/nn/attention.h"
#include "xylem/nn/functional.h"
#include "xylem/nn/initializers.h"
#include "xylem/nn/linear.h"
#include "xylem/nn/normalization.h"
#include "xylem/nn/rngs.h"
