// The bases of torch.no_grad, enable_grad, set_grad_enabled and inference_mode: entering and leaving without
// a Python frame.
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
    // The first line is what `inspect.signature` reads.
    .tp_doc = on ? "_EnableGrad(orig_func=None)\n--\n\nThe fast half of torch.enable_grad."
                 : "_NoGrad()\n--\n\nThe fast half of torch.no_grad.",
    .tp_methods = methods<on>,
    .tp_getset = properties,
    .tp_new = scope_new,
};

// --- scopes that are told whether

struct ModeScope {
  PyObject_HEAD bool mode, prev;
  bool prev_grad;  // inference mode alone: grad mode as it was on entering
};
ModeScope* mode_scope(PyObject* o) { return reinterpret_cast<ModeScope*>(o); }

PyObject* get_mode(PyObject* self, void*) { return PyBool_FromLong(mode_scope(self)->mode); }
PyObject* get_mode_before(PyObject* self, void*) { return PyBool_FromLong(mode_scope(self)->prev); }
PyGetSetDef mode_properties[] = {
    {"mode", get_mode, nullptr, nullptr, nullptr}, {"prev", get_mode_before, nullptr, nullptr, nullptr}, {}};

// The argument `mode`, borrowed; null with an error set.
PyObject* mode_argument(PyObject* args, PyObject* kwargs, const char* format, PyObject* otherwise) {
  static const char* names[] = {"mode", nullptr};
  if (!kwargs && PyTuple_GET_SIZE(args) == 1) return PyTuple_GET_ITEM(args, 0);
  PyObject* mode = otherwise;
  return PyArg_ParseTupleAndKeywords(args, kwargs, format, const_cast<char**>(names), &mode) ? mode : nullptr;
}

// set_grad_enabled(mode): at once, and as a scope.
PyObject* set_grad_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyObject* mode = mode_argument(args, kwargs, "O:set_grad_enabled", nullptr);
  if (!mode) return nullptr;
  if (!PyBool_Check(mode))
    return PyErr_Format(PyExc_TypeError,
                        "set_grad_enabled(): argument 'enabled' (position 1) must be bool, not %.100s",
                        Py_TYPE(mode)->tp_name);
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  mode_scope(self)->mode = mode == Py_True;
  mode_scope(self)->prev = GradMode::enabled();
  GradMode::set(mode == Py_True);
  return self;
}
PyObject* set_grad_enter(PyObject* self, PyObject*) {
  GradMode::set(mode_scope(self)->mode);
  Py_RETURN_NONE;
}
PyObject* set_grad_leave(PyObject* self, PyObject* const*, Py_ssize_t) {
  GradMode::set(mode_scope(self)->prev);
  Py_RETURN_NONE;
}

// inference_mode(mode=True), or as a decorator without parentheses.
PyObject* inference_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyObject* mode = mode_argument(args, kwargs, "|O:inference_mode", Py_True);
  if (!mode) return nullptr;
  PyRef self(type->tp_alloc(type, 0));
  if (!self) return nullptr;
  mode_scope(self.get())->mode = mode != Py_False;
  return PyBool_Check(mode) ? self.release() : PyObject_CallOneArg(self.get(), mode);
}
PyObject* inference_enter(PyObject* self, PyObject*) {
  ModeScope* scope = mode_scope(self);
  scope->prev = dispatch_state.inference;
  scope->prev_grad = GradMode::enabled();
  set_inference_mode(scope->mode);
  if (scope->mode != scope->prev) GradMode::set(!scope->mode);
  Py_RETURN_NONE;
}
PyObject* inference_leave(PyObject* self, PyObject* const*, Py_ssize_t) {
  set_inference_mode(mode_scope(self)->prev);
  GradMode::set(mode_scope(self)->prev_grad);
  Py_RETURN_NONE;
}

PyCFunction fast(PyObject* (*f)(PyObject*, PyObject* const*, Py_ssize_t)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(f));
}
PyMethodDef set_grad_methods[] = {{"__enter__", set_grad_enter, METH_NOARGS, nullptr},
                                  {"__exit__", fast(set_grad_leave), METH_FASTCALL, nullptr},
                                  {}};
PyMethodDef inference_methods[] = {{"__enter__", inference_enter, METH_NOARGS, nullptr},
                                   {"__exit__", fast(inference_leave), METH_FASTCALL, nullptr},
                                   {}};

PyTypeObject mode_scope_type(const char* name, const char* doc, newfunc make, PyMethodDef* methods) {
  PyTypeObject type = {.ob_base = {PyObject_HEAD_INIT(nullptr) 0}};
  type.tp_name = name;
  type.tp_doc = doc;
  type.tp_basicsize = sizeof(ModeScope);
  type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
  type.tp_methods = methods;
  type.tp_getset = mode_properties;
  type.tp_new = make;
  return type;
}
PyTypeObject SetGradType =
    mode_scope_type("rushlight._C._SetGrad", "_SetGrad(mode)\n--\n\nThe fast half of torch.set_grad_enabled.",
                    set_grad_new, set_grad_methods);
PyTypeObject InferenceType = mode_scope_type(
    "rushlight._C._InferenceMode", "_InferenceMode(mode=True)\n--\n\nThe fast half of torch.inference_mode.",
    inference_new, inference_methods);

}  // namespace

void init_grad_scopes(PyObject* module) {
  add_type(module, "_NoGrad", &ScopeType<false>);
  add_type(module, "_EnableGrad", &ScopeType<true>);
  add_type(module, "_SetGrad", &SetGradType);
  add_type(module, "_InferenceMode", &InferenceType);
}

}  // namespace rushlight::python
