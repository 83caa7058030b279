// Calls of Python functions, and of those that Python has in C, as events of a running profile.
#pragma once
#include "python/python.h"

namespace rushlight::python {

// Records the calls of this thread, those that are running included, until the session ends. What runs inside
// of functions with one of the code objects in the tuple `silent` is left out. A thread that has a hook for
// profilers of Python keeps it, and is not recorded.
void record_calls(PyObject* silent);
// The same for all threads that run now, each from its next call on.
void record_calls_of_threads(PyObject* silent);
// Gives all other threads a hook for profilers of Python; before Python 3.12 those that have none.
void hook_other_threads(Py_tracefunc hook, PyObject* argument);
// Stops at once on this thread; other threads stop at their next call.
void end_calls();

}  // namespace rushlight::python
