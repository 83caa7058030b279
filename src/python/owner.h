// Python objects that own one object of C++.
#pragma once
#include <memory>

#include "python/python.h"

namespace rushlight::python {

template <class T>
struct PyOwner {
  PyObject_HEAD T* object;
};

template <class T>
T& object_of(PyObject* self) {
  return *reinterpret_cast<PyOwner<T>*>(self)->object;
}

// tp_dealloc of such a type.
template <class T>
void dealloc_owner(PyObject* self) {
  delete reinterpret_cast<PyOwner<T>*>(self)->object;
  Py_TYPE(self)->tp_free(self);
}

template <class T>
PyObject* own(PyTypeObject* type, std::unique_ptr<T> object) {
  PyObject* self = check(type->tp_alloc(type, 0));
  reinterpret_cast<PyOwner<T>*>(self)->object = object.release();
  return self;
}

}  // namespace rushlight::python
