// Facts that a class with __torch_dispatch__ answers in place of its tensors, as it asked for when they were
// made (`_make_wrapper_subclass(dispatch_sizes_strides_policy=, dispatch_device=, dispatch_layout=)`).
#pragma once
#include "core/answered.h"
#include "python/python.h"

namespace rushlight::python {

// The answer; null where the class leaves it to the tensor, or no class is to be asked now.
PyRef answer_of_class(const Tensor& t, uint32_t which, const char* fact, PyObject* argument = nullptr);

// The flags that these arguments of `_make_wrapper_subclass` stand for; `policy` may be null.
uint32_t answered_flags(PyObject* policy, bool device, bool layout);

}  // namespace rushlight::python
