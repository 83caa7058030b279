// The name under which extensions for PyTorch include it: the front end, TORCH_LIBRARY, and pybind11 where it
// is there.
#pragma once
#include "rushlight/extension.h"
#include "torch/names.h"

#define TORCH_LIBRARY RUSHLIGHT_LIBRARY
#define TORCH_LIBRARY_FRAGMENT RUSHLIGHT_LIBRARY
#define TORCH_LIBRARY_IMPL RUSHLIGHT_LIBRARY_IMPL
#define TORCH_FN(function) (function)

namespace at {
using AutoDispatchBelowAutograd = rushlight::BelowAutograd;
using AutoDispatchBelowADInplaceOrView = rushlight::BelowAutograd;
}  // namespace at
namespace c10 {
using rushlight::Dispatcher;
}  // namespace c10
namespace torch {
using Library = rushlight::OperatorLibrary;
}  // namespace torch

#if defined(TORCH_EXTENSION_NAME) && __has_include(<pybind11/pybind11.h>) && __has_include(<Python.h>)
#include "torch/python.h"
#endif
