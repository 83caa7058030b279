// What stands before a function and passes for it: a callable whose name, code, defaults and signature are
// the function's, and whose call is C.
#pragma once
#include <cstddef>

#include "python/op_function.h"

namespace rushlight::python {

// The head of such an object; what a type adds follows.
struct FunctionFront {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject *function, *dict, *weak_references;
};
inline FunctionFront& front_of(PyObject* o) { return *reinterpret_cast<FunctionFront*>(o); }

// The base of their types. A type with objects of its own visits, clears and frees them beside these.
extern PyTypeObject FunctionFrontType;
// How they are called and bound is inherited with the flags that say so.
inline constexpr unsigned long kFrontFlags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC;
// Every type lists its docstring's property itself: types without one get a docstring of their own.
extern const PyGetSetDef front_doc;
int front_traverse(PyObject* self, visitproc visit, void* arg);
int front_clear(PyObject* self);

// An object of the type, which the caller fills in and tracks.
PyObject* new_front(PyTypeObject* type, vectorcallfunc call, PyObject* function);

}  // namespace rushlight::python
