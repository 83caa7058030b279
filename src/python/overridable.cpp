// Functions written in Python that __torch_function__ of their arguments, or of a mode, may take over: asked
// here, without a Python frame.
#include <cstddef>

#include "python/op_function.h"

namespace rushlight::python {

bool any_override(PyObject* const* args, Py_ssize_t n);  // overrides.cpp

namespace {

struct Overridable {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject *function, *dict;
  PyObject* method;  // of tensors, which the function does nothing but call; or null
  bool lists;        // looks into lists, too
};
Overridable* self_of(PyObject* o) { return reinterpret_cast<Overridable*>(o); }

bool is_overridden(const Overridable& f, PyObject* const* args, Py_ssize_t n) {
  if (any_override(args, n)) return true;
  for (Py_ssize_t i = 0; f.lists && i < n; ++i)
    if ((PyTuple_Check(args[i]) || PyList_Check(args[i])) &&
        any_override(PySequence_Fast_ITEMS(args[i]), PySequence_Fast_GET_SIZE(args[i])))
      return true;
  return false;
}

PyObject* call(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* names) {
  const Py_ssize_t n = PyVectorcall_NARGS(nargsf), keywords = names ? PyTuple_GET_SIZE(names) : 0;
  if (PyObject* method = self_of(self)->method;
      method && n == 1 && !keywords && is_tensor(args[0]) && !may_be_overridden(tensor_of(args[0])))
    return PyObject_VectorcallMethod(method, args, 1, nullptr);
  if (is_overridden(*self_of(self), args, n + keywords)) [[unlikely]] {
    PyObject* result = guard([&] { return dispatch_torch_function(self, CallArgs{args, n, names}); });
    if (result || PyErr_Occurred()) return result;
  }
  return PyObject_Vectorcall(self_of(self)->function, args, nargsf, names);
}

// What is not its own it has from the function: code, defaults, annotations, ...
PyObject* get_attribute(PyObject* self, PyObject* name) {
  PyObject* own = PyObject_GenericGetAttr(self, name);
  if (own || !PyErr_ExceptionMatches(PyExc_AttributeError)) return own;
  PyErr_Clear();
  return PyObject_GetAttr(self_of(self)->function, name);
}

PyObject* represent(PyObject* self) { return PyObject_Repr(self_of(self)->function); }
PyObject* bind(PyObject* self, PyObject* object, PyObject*) {
  return !object || object == Py_None ? Py_NewRef(self) : PyMethod_New(self, object);
}
PyObject* get_class(PyObject*, void*) { return Py_NewRef(reinterpret_cast<PyObject*>(&PyFunction_Type)); }
PyObject* get_doc(PyObject* self, void*) {
  return PyObject_GetAttrString(self_of(self)->function, "__doc__");
}
PyObject* get_module(PyObject* self, void*) {
  return PyObject_GetAttrString(self_of(self)->function, "__module__");
}
int set_module(PyObject* self, PyObject* value, void*) {
  return PyObject_SetAttrString(self_of(self)->function, "__module__", value);
}
PyObject* reduce(PyObject* self, PyObject*) {
  return PyObject_GetAttrString(self_of(self)->function, "__qualname__");
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(self_of(self)->function);
  Py_VISIT(self_of(self)->dict);
  return 0;
}
int clear(PyObject* self) {
  Py_CLEAR(self_of(self)->function);
  Py_CLEAR(self_of(self)->dict);
  Py_CLEAR(self_of(self)->method);
  return 0;
}
void dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  clear(self);
  PyObject_GC_Del(self);
}

PyObject* get_wrapped(PyObject* self, void*) { return Py_NewRef(self_of(self)->function); }
PyGetSetDef properties[] = {{"__wrapped__", get_wrapped, nullptr, "The function itself.", nullptr},
                            {"__class__", get_class, nullptr, nullptr, nullptr},
                            {"__doc__", get_doc, nullptr, nullptr, nullptr},
                            {"__module__", get_module, set_module, nullptr, nullptr},
                            {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
                            {}};
PyMethodDef methods[] = {{"__reduce__", reduce, METH_NOARGS, nullptr}, {}};

PyTypeObject OverridableType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "function",
    .tp_basicsize = sizeof(Overridable),
    .tp_dealloc = dealloc,
    .tp_vectorcall_offset = offsetof(Overridable, vectorcall),
    .tp_repr = represent,
    .tp_call = PyVectorcall_Call,
    .tp_getattro = get_attribute,
    .tp_flags =
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_traverse = traverse,
    .tp_clear = clear,
    .tp_methods = methods,
    .tp_getset = properties,
    .tp_descr_get = bind,
    .tp_dictoffset = offsetof(Overridable, dict),
};

// _overridable(function, lists, method=None)
PyObject* make(PyObject*, PyObject* const* args, Py_ssize_t n) {
  if (n < 2 || n > 3 || !PyFunction_Check(args[0])) {
    PyErr_SetString(PyExc_TypeError,
                    "_overridable takes a function, whether to look into lists, and a method");
    return nullptr;
  }
  auto* f = PyObject_GC_New(Overridable, &OverridableType);
  if (!f) return nullptr;
  f->vectorcall = call;
  f->function = Py_NewRef(args[0]);
  f->dict = nullptr;
  f->method = n == 3 ? Py_NewRef(args[2]) : nullptr;
  f->lists = args[1] == Py_True;
  PyObject_GC_Track(f);
  return reinterpret_cast<PyObject*>(f);
}

}  // namespace

void init_overridable(PyObject* module) {
  check(PyType_Ready(&OverridableType));
  static PyMethodDef functions[] = {
      {"_overridable", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(make)), METH_FASTCALL,
       "A function that __torch_function__ may take over."},
      {}};
  add_functions(module, functions);
}

}  // namespace rushlight::python
