// For the extension module: Python's headers come first.
#pragma once
#include "python/python.h"
// clang-format keeps the groups apart: the order matters.
#include "cmake/precompiled/core.h"
#include "python/op_function.h"
#include "python/parse.h"
#include "python/types.h"
