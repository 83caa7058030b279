// For the operators of the small runtime: derivatives are compiled away.
#pragma once
#include "small_runtime/no_derivatives.h"
// clang-format keeps the groups apart: the order matters.
#include "cmake/precompiled/core.h"
