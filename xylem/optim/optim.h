#pragma once

// Everything of optim.

#include "xylem/optim/losses.h"
#include "xylem/optim/schedule.h"
#include "xylem/optim/transform.h"
