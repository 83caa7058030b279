// What a function transform's tensor stands for.
#pragma once
#include "python/types.h"

namespace rushlight::python {

// The object of a Python class within transforms that have no examples, such as a fake tensor: it knows how
// its numbers are read. Null: it is none.
PyRef seen_through(PyObject* self);

}  // namespace rushlight::python
