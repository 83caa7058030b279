#include "python/function_front.h"

#include "python/free_threading.h"

namespace rushlight::python {
namespace {

// What is not its own it has from the function: code, defaults, annotations, ...
PyObject* get_attribute(PyObject* self, PyObject* name) {
  PyObject* own = PyObject_GenericGetAttr(self, name);
  if (own || !PyErr_ExceptionMatches(PyExc_AttributeError)) return own;
  PyErr_Clear();
  return PyObject_GetAttr(front_of(self).function, name);
}

// Names that every type has, and a function for itself: own ones where they were set, or else the function's.
Found own_value(PyObject* self, const char* name) {
  const PyRef dict(check(PyObject_GenericGetDict(self, nullptr))), key(check(PyUnicode_FromString(name)));
  Found own = find_item(dict.get(), key.get());
  if (!own && PyErr_Occurred()) throw PythonError{};
  return own;
}
template <const char* name>
PyObject* get_own(PyObject* self, void*) {
  return guard([&] {
    if (Found own = own_value(self, name)) return Py_NewRef(own.get());
    return PyObject_GetAttrString(front_of(self).function, name);
  });
}
template <const char* name>
int set_own(PyObject* self, PyObject* value, void*) {
  const PyRef dict(PyObject_GenericGetDict(self, nullptr));
  if (!dict) return -1;
  return PyDict_SetItemString(dict.get(), name, value ? value : Py_None);
}

constexpr char doc_name[] = "__doc__", module_name[] = "__module__", wrapped_name[] = "__wrapped__";

}  // namespace

constinit const PyGetSetDef front_doc{doc_name, get_own<doc_name>, set_own<doc_name>, nullptr, nullptr};

namespace {

// Whoever wraps the front in functools.wraps says what else it stands for.
PyObject* get_wrapped(PyObject* self, void*) {
  return guard([&] {
    Found own = own_value(self, wrapped_name);
    return Py_NewRef(own ? own.get() : front_of(self).function);
  });
}
PyObject* get_class(PyObject*, void*) { return Py_NewRef(reinterpret_cast<PyObject*>(&PyFunction_Type)); }

PyObject* represent(PyObject* self) { return PyObject_Repr(front_of(self).function); }
PyObject* bind(PyObject* self, PyObject* object, PyObject*) {
  return !object || object == Py_None ? Py_NewRef(self) : PyMethod_New(self, object);
}
// As functions are: by name, copied as they are.
PyObject* reduce(PyObject* self, PyObject*) { return PyObject_GetAttrString(self, "__qualname__"); }

PyGetSetDef properties[] = {
    {wrapped_name, get_wrapped, set_own<wrapped_name>, "The function itself.", nullptr},
    {"__class__", get_class, nullptr, nullptr, nullptr},
    front_doc,
    {module_name, get_own<module_name>, set_own<module_name>, nullptr, nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {}};
PyMethodDef methods[] = {{"__reduce__", reduce, METH_NOARGS, nullptr}, {}};

void dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  if (front_of(self).weak_references) PyObject_ClearWeakRefs(self);
  Py_TYPE(self)->tp_clear(self);
  PyObject_GC_Del(self);
}

}  // namespace

int front_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(front_of(self).function);
  Py_VISIT(front_of(self).dict);
  return 0;
}
int front_clear(PyObject* self) {
  Py_CLEAR(front_of(self).function);
  Py_CLEAR(front_of(self).dict);
  return 0;
}

PyTypeObject FunctionFrontType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "function",
    .tp_basicsize = sizeof(FunctionFront),
    .tp_dealloc = dealloc,
    .tp_vectorcall_offset = offsetof(FunctionFront, vectorcall),
    .tp_repr = represent,
    .tp_call = PyVectorcall_Call,
    .tp_getattro = get_attribute,
    .tp_setattro = PyObject_GenericSetAttr,
    .tp_flags = kFrontFlags | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_BASETYPE,
    .tp_traverse = front_traverse,
    .tp_clear = front_clear,
    .tp_weaklistoffset = offsetof(FunctionFront, weak_references),
    .tp_methods = methods,
    .tp_getset = properties,
    .tp_descr_get = bind,
    .tp_dictoffset = offsetof(FunctionFront, dict),
};

PyObject* new_front(PyTypeObject* type, vectorcallfunc call, PyObject* function) {
  PyObject* self = PyObject_GC_New(PyObject, type);
  if (!self) return nullptr;
  FunctionFront& front = front_of(self);
  front.vectorcall = call;
  front.function = Py_NewRef(function);
  front.dict = front.weak_references = nullptr;
  return self;
}

}  // namespace rushlight::python
