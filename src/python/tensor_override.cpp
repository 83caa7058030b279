// Members of Tensor that are written in C: each asks __torch_function__ first, as operators do.
#include <cstddef>

#include "python/op_function.h"

namespace rushlight::python {

PyObject* call_override(PyObject* callable, const CallArgs& call) {
  PyObject* result = dispatch_torch_function(callable, call);
  if (!result && PyErr_Occurred()) throw PythonError();
  return result;
}

PyObject* override_slot(const char* name, PyObject* self, PyObject* second, PyObject* third) {
  if (!may_be_overridden(tensor_of(self))) [[likely]]
    return nullptr;
  PyRef callable(check(PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type), name)));
  PyObject* args[] = {self, second, third};
  return call_override(callable.get(), CallArgs{args, third ? 3 : second ? 2 : 1, nullptr});
}

namespace {

// --- properties

// Lives as long as the process; the descriptor's closure.
struct Property {
  PyGetSetDef outer, inner;
  PyObject* descriptor = nullptr;
};

PyObject* override_property(const Property& p, const char* access, PyObject* self, PyObject* value) {
  PyRef callable(check(PyObject_GetAttrString(p.descriptor, access)));
  PyObject* args[] = {self, value};
  return call_override(callable.get(), CallArgs{args, value ? 2 : 1, nullptr});
}

PyObject* get_property(PyObject* self, void* closure) {
  const auto& p = *static_cast<Property*>(closure);
  if (may_be_overridden(tensor_of(self))) [[unlikely]] {
    PyObject* result = guard([&] { return override_property(p, "__get__", self, nullptr); });
    if (result || PyErr_Occurred()) return result;
  }
  return p.inner.get(self, p.inner.closure);
}

int set_property(PyObject* self, PyObject* value, void* closure) {
  const auto& p = *static_cast<Property*>(closure);
  if (may_be_overridden(tensor_of(self))) [[unlikely]] {
    PyRef result(guard([&] { return override_property(p, value ? "__set__" : "__delete__", self, value); }));
    if (result) return 0;
    if (PyErr_Occurred()) return -1;
  }
  return p.inner.set(self, value, p.inner.closure);
}

// --- methods

struct TensorMethod {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* inner;  // the plain method descriptor
  PyMethodDef* method;
};

TensorMethod* as_method(PyObject* self) { return reinterpret_cast<TensorMethod*>(self); }

// Whether the call is one of a plain tensor's method, so that the C function may be called at once.
bool is_plain_call(PyObject* const* args, Py_ssize_t n) {
  return n > 0 && is_tensor(args[0]) && !may_be_overridden(tensor_of(args[0]));
}

PyObject* call_method(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* names) {
  const Py_ssize_t n = PyVectorcall_NARGS(nargsf);
  if (n > 0 && is_tensor(args[0]) && may_be_overridden(tensor_of(args[0]))) [[unlikely]] {
    PyObject* result = guard([&] { return call_override(self, CallArgs{args, n, names}); });
    if (result || PyErr_Occurred()) return result;
  }
  return PyObject_Vectorcall(as_method(self)->inner, args, nargsf, names);
}

PyObject* call_without_arguments(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* names) {
  const Py_ssize_t n = PyVectorcall_NARGS(nargsf);
  if (n == 1 && !names && is_plain_call(args, n)) [[likely]]
    return as_method(self)->method->ml_meth(args[0], nullptr);
  return call_method(self, args, nargsf, names);
}

PyObject* call_with_keywords(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* names) {
  const Py_ssize_t n = PyVectorcall_NARGS(nargsf);
  if (!is_plain_call(args, n)) [[unlikely]]
    return call_method(self, args, nargsf, names);
  auto* f = reinterpret_cast<_PyCFunctionFastWithKeywords>(
      reinterpret_cast<void*>(as_method(self)->method->ml_meth));
  return f(args[0], args + 1, n - 1, names);
}

vectorcallfunc caller_of(const PyMethodDef& method) {
  if (method.ml_flags == METH_NOARGS) return call_without_arguments;
  return method.ml_flags == (METH_FASTCALL | METH_KEYWORDS) ? call_with_keywords : call_method;
}

PyObject* method_attribute(PyObject* self, PyObject* name) {
  PyObject* own = PyObject_GenericGetAttr(self, name);
  if (own || !PyErr_ExceptionMatches(PyExc_AttributeError)) return own;
  PyErr_Clear();
  return PyObject_GetAttr(reinterpret_cast<TensorMethod*>(self)->inner, name);
}
PyObject* method_doc(PyObject* self, void*) {
  return PyObject_GetAttrString(reinterpret_cast<TensorMethod*>(self)->inner, "__doc__");
}
PyObject* method_repr(PyObject* self) { return PyObject_Repr(reinterpret_cast<TensorMethod*>(self)->inner); }
PyObject* method_reduce(PyObject* self, PyObject*) {
  return PyObject_CallMethod(reinterpret_cast<TensorMethod*>(self)->inner, "__reduce__", nullptr);
}
PyObject* method_bind(PyObject* self, PyObject* object, PyObject*) {
  return !object || object == Py_None ? Py_NewRef(self) : PyMethod_New(self, object);
}
PyGetSetDef method_properties[] = {{"__doc__", method_doc, nullptr, nullptr, nullptr}, {}};
PyMethodDef method_methods[] = {{"__reduce__", method_reduce, METH_NOARGS, nullptr}, {}};

PyTypeObject TensorMethodType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "method_descriptor",
    .tp_basicsize = sizeof(TensorMethod),
    .tp_vectorcall_offset = offsetof(TensorMethod, vectorcall),
    .tp_repr = method_repr,
    .tp_call = PyVectorcall_Call,
    .tp_getattro = method_attribute,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_methods = method_methods,
    .tp_getset = method_properties,
    .tp_descr_get = method_bind,
};

PyObject* overridable_method(PyMethodDef* method) {
  check(PyType_Ready(&TensorMethodType));
  auto* m = PyObject_New(TensorMethod, &TensorMethodType);
  if (!m) throw PythonError();
  m->vectorcall = caller_of(*method);
  m->inner = check(PyDescr_NewMethod(&TensorBaseType, method));
  m->method = method;
  return reinterpret_cast<PyObject*>(m);
}

PyObject* overridable_property(PyGetSetDef* inner) {
  auto* p = new Property{*inner, *inner};
  p->outer.get = get_property;
  p->outer.set = inner->set ? set_property : nullptr;
  p->outer.closure = p;
  p->descriptor = check(PyDescr_NewGetSet(&TensorBaseType, &p->outer));
  return Py_NewRef(p->descriptor);
}

}  // namespace

void add_tensor_members(PyMethodDef* methods, PyGetSetDef* properties) {
  for (; methods && methods->ml_name; ++methods) {
    PyRef d;
    if (methods->ml_flags & METH_STATIC) {
      PyRef f(check(PyCFunction_New(methods, nullptr)));
      d = PyRef(check(PyStaticMethod_New(f.get())));
    } else if (methods->ml_flags & METH_CLASS) {
      d = PyRef(check(PyDescr_NewClassMethod(&TensorBaseType, methods)));
    } else {
      d = PyRef(overridable_method(methods));
    }
    add_tensor_member(methods->ml_name, d.get());
  }
  for (; properties && properties->name; ++properties)
    add_tensor_member(properties->name, PyRef(overridable_property(properties)).get());
  PyType_Modified(&TensorBaseType);
}

}  // namespace rushlight::python
