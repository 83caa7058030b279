// The name under which extensions for PyTorch include it: the front end, TORCH_LIBRARY, and pybind11 where it
// is there.
#pragma once
#include "rushlight/extension.h"
#include "torch/names.h"

#define TORCH_LIBRARY RUSHLIGHT_LIBRARY

#if defined(TORCH_EXTENSION_NAME) && __has_include(<pybind11/pybind11.h>) && __has_include(<Python.h>)
#include "torch/python.h"
#endif
