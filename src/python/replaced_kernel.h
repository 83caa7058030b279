// Kernels of built-in operators that a program replaces.
#pragma once
#include "python/torch_dispatch.h"

namespace rushlight::python {

// Whether there are any: then every call takes the slow path, as under a mode.
bool kernels_are_replaced();
// Runs the Python function that replaces the kernel of a call; false where none does.
bool run_replaced_kernel(Frame& frame);

}  // namespace rushlight::python
