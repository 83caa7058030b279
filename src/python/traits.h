// Operators' traits as Python objects.
#pragma once
#include "dispatch/op.h"
#include "python/python.h"

namespace rushlight::python {

PyObject* wrap_traits(const Op& op);  // a new reference
void init_traits(PyObject* module);

}  // namespace rushlight::python
