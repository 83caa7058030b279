// Functions written in Python that __torch_function__ of their arguments, or of a mode, may take over: asked
// here, without a Python frame.
#include "python/function_front.h"

namespace rushlight::python {

bool any_override(PyObject* const* args, Py_ssize_t n);  // overrides.cpp

namespace {

struct Overridable {
  FunctionFront front;
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
  return PyObject_Vectorcall(front_of(self).function, args, nargsf, names);
}

// Its module is the function's: renaming one renames both.
PyObject* get_module(PyObject* self, void*) {
  return PyObject_GetAttrString(front_of(self).function, "__module__");
}
int set_module(PyObject* self, PyObject* value, void*) {
  return PyObject_SetAttrString(front_of(self).function, "__module__", value);
}
PyGetSetDef properties[] = {front_doc, {"__module__", get_module, set_module, nullptr, nullptr}, {}};

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(self_of(self)->method);
  return front_traverse(self, visit, arg);
}
int clear(PyObject* self) {
  Py_CLEAR(self_of(self)->method);
  return front_clear(self);
}

PyTypeObject OverridableType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "function",
    .tp_basicsize = sizeof(Overridable),
    .tp_flags = kFrontFlags,
    .tp_traverse = traverse,
    .tp_clear = clear,
    .tp_getset = properties,
    .tp_base = &FunctionFrontType,
};

// _overridable(function, lists, method=None)
PyObject* make(PyObject*, PyObject* const* args, Py_ssize_t n) {
  if (n < 2 || n > 3 || !PyFunction_Check(args[0])) {
    PyErr_SetString(PyExc_TypeError,
                    "_overridable takes a function, whether to look into lists, and a method");
    return nullptr;
  }
  PyObject* f = new_front(&OverridableType, call, args[0]);
  if (!f) return nullptr;
  self_of(f)->method = n == 3 ? Py_NewRef(args[2]) : nullptr;
  self_of(f)->lists = args[1] == Py_True;
  PyObject_GC_Track(f);
  return f;
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
