// at::parallel_for(begin, end, grain, [&](int64_t from, int64_t to) { ... }).
#pragma once
#include "core/parallel.h"
#include "torch/names.h"
