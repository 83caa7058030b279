// The Python interface of a TensorImpl: wrapping, unwrapping, identity.
#pragma once
#include <optional>

#include "core/tensor.h"
#include "python/free_threading.h"

namespace rushlight::python {

struct PyTensor {
  PyObject_HEAD TensorImpl* impl;  // see Note [Python identity]
  PyObject* dict;                  // instance attributes, made on demand
  PyObject* weakrefs;
#ifdef Py_GIL_DISABLED
  bool borrows;  // the impl owns the wrapper: whoever uses it takes ownership first
#endif
};

extern PyTypeObject TensorMeta;       // the type of tensor types
extern PyTypeObject TensorBaseType;   // torch._C.TensorBase, holds the C members
extern PyTypeObject* tensor_type;     // torch.Tensor, a Python class on top of it
extern PyTypeObject* parameter_type;  // torch.nn.Parameter once it is loaded

inline bool is_tensor(PyObject* o) {
  return Py_TYPE(o) == tensor_type || Py_TYPE(Py_TYPE(o)) == &TensorMeta ||
         PyType_IsSubtype(Py_TYPE(o), &TensorBaseType);
}
void take_impl(PyTensor* wrapper);  // see Note [Python identity]
inline TensorImpl* impl_of(PyObject* tensor) {
  auto* wrapper = reinterpret_cast<PyTensor*>(tensor);
#ifdef Py_GIL_DISABLED
  if (std::atomic_ref(wrapper->borrows).load(std::memory_order_acquire)) [[unlikely]]
    take_impl(wrapper);
#endif
  return wrapper->impl;
}
// Borrows: valid while the object lives.
inline const Tensor& tensor_of(PyObject* tensor) {
#ifdef Py_GIL_DISABLED
  impl_of(tensor);
#endif
  return reinterpret_cast<const Tensor&>(reinterpret_cast<PyTensor*>(tensor)->impl);
}

// The wrapper of a tensor, a new reference; None when undefined.
PyObject* wrap(Tensor t);
// A wrapper of another Python type for a tensor that has none yet (as_subclass, Parameter).
PyObject* wrap_as(PyTypeObject* type, Tensor t);
PyObject* wrap_tuple(std::vector<Tensor>&& list);

// A tensor argument that the caller knows must be one; TypeError naming `what` otherwise.
const Tensor& expect_tensor(PyObject* o, const char* what);

// From now on the cycle collector looks at this wrapper: it gained a dict, Python hooks or a Python grad_fn.
void track(PyObject* tensor);
// ENGINE's share of tp_traverse: Python objects that only this tensor's autograd state keeps alive.
extern int (*traverse_autograd)(TensorImpl* impl, visitproc visit, void* arg);
extern void (*clear_autograd)(TensorImpl* impl);

// Adds C methods and properties to TensorBase; the null-terminated tables live on.
void add_tensor_members(PyMethodDef* methods, PyGetSetDef* properties);
void add_tensor_member(const char* name, PyObject* descriptor);

extern PyNumberMethods tensor_number;      // tensor_number.cpp
extern PySequenceMethods tensor_sequence;  // indexing.cpp
extern PyMappingMethods tensor_mapping;    // indexing.cpp
extern PyBufferProcs tensor_buffer;        // numpy.cpp
PyObject* tensor_richcompare(PyObject* a, PyObject* b, int op);
PyObject* tensor_iter(PyObject* self);
PyObject* tensor_new(PyTypeObject* type, PyObject* args,
                     PyObject* kwargs);  // legacy_constructor.cpp
// The one argument of methods that take a memory_format or nothing.
std::optional<MemoryFormat> format_argument(const char* method, PyObject* const* args, Py_ssize_t n,
                                            PyObject* kwnames);  // tensor_conversions.cpp
void init_tensor_members();                                      // tensor_members.cpp

}  // namespace rushlight::python
