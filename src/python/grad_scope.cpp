// The bases of torch.no_grad and torch.enable_grad: entering and leaving without a Python frame.
#include <cstddef>

#include "dispatch/op.h"
#include "python/python.h"

namespace rushlight::python {
namespace {

struct GradScope {
  PyObject_HEAD bool prev;  // grad mode as it was on entering
};

// cls(), or cls(function) as a decorator without parentheses.
PyObject* scope_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"orig_func", nullptr};
  PyObject* function = Py_None;
  if ((PyTuple_GET_SIZE(args) || kwargs) &&
      !PyArg_ParseTupleAndKeywords(args, kwargs, "|O", const_cast<char**>(names), &function))
    return nullptr;
  PyRef self(type->tp_alloc(type, 0));
  if (!self || function == Py_None) return self.release();
  return PyObject_CallOneArg(self.get(), function);
}

template <bool on>
PyObject* enter(PyObject* self, PyObject*) {
  reinterpret_cast<GradScope*>(self)->prev = GradMode::enabled();
  GradMode::set(on);
  Py_RETURN_NONE;
}
PyObject* leave(PyObject* self, PyObject* const*, Py_ssize_t) {
  GradMode::set(reinterpret_cast<GradScope*>(self)->prev);
  Py_RETURN_NONE;
}

PyObject* get_prev(PyObject* self, void*) {
  return PyBool_FromLong(reinterpret_cast<GradScope*>(self)->prev);
}
PyGetSetDef properties[] = {{"prev", get_prev, nullptr, "Whether operations were recorded before.", nullptr},
                            {}};

template <bool on>
PyMethodDef methods[] = {
    {"__enter__", enter<on>, METH_NOARGS, nullptr},
    {"__exit__", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(leave)), METH_FASTCALL, nullptr},
    {}};

template <bool on>
PyTypeObject ScopeType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = on ? "rushlight._C._EnableGrad" : "rushlight._C._NoGrad",
    .tp_basicsize = sizeof(GradScope),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_doc = "The fast half of torch.no_grad and torch.enable_grad.",
    .tp_methods = methods<on>,
    .tp_getset = properties,
    .tp_new = scope_new,
};

}  // namespace

void init_grad_scopes(PyObject* module) {
  add_type(module, "_NoGrad", &ScopeType<false>);
  add_type(module, "_EnableGrad", &ScopeType<true>);
}

}  // namespace rushlight::python
