// What derivatives and composites write: operators on tensors, and the elementwise functions behind them.
#pragma once
#include "ops/arithmetic.h"
#include "ops/comparison.h"
#include "ops/complex.h"
#include "ops/pointwise.h"
