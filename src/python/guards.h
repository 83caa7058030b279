// What compiled code takes for granted, for those who run it.
#pragma once
#include <vector>

#include "python/python.h"

namespace rushlight::python {

extern PyTypeObject GuardSetType;

// Whether a call passes the checks; appends the tensors that the graph takes of it, borrowed.
bool match_guards(PyObject* guard_set, PyObject* args, PyObject* kwargs, std::vector<PyObject*>& inputs);

}  // namespace rushlight::python
