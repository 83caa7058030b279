// _CompiledCall: what stands for a function that torch.compile was given. A call goes to the graph that was
// found to pay, or to the function itself where that was found best; all else is decided in Python.
#include <cstddef>

#include "python/free_threading.h"
#include "python/python.h"

namespace rushlight::python {
namespace {

struct CompiledCall {
  PyObject_HEAD PyObject* fast;  // (args, kwargs) -> result or NotImplemented; null or None: there is none
  PyObject* direct;              // what is called as it is; null or None: nothing yet
};
CompiledCall& self_of(PyObject* o) { return *reinterpret_cast<CompiledCall*>(o); }

bool is_set(PyObject* o) { return o && o != Py_None; }

// What Python makes of the error that is set.
PyObject* failed(PyObject* o, PyObject* args, PyObject* kwargs) {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  if (trace) PyException_SetTraceback(value, trace);
  const PyRef held_type(type), error(value), held_trace(trace);
  if (!PyErr_GivenExceptionMatches(type, PyExc_Exception)) {
    PyErr_SetObject(type, value);
    return nullptr;
  }
  return PyObject_CallMethod(o, "_graph_failed", "OOO", value, args, kwargs);
}

PyObject* call(PyObject* o, PyObject* args, PyObject* given) {
  PyRef fast, direct;
  {
    const CriticalSection lock(o);
    if (is_set(self_of(o).fast)) fast = PyRef::borrow(self_of(o).fast);
    if (is_set(self_of(o).direct)) direct = PyRef::borrow(self_of(o).direct);
  }
  if (!fast && direct) return PyObject_Call(direct.get(), args, given);
  const PyRef kwargs = given ? PyRef::borrow(given) : PyRef(PyDict_New());
  if (!kwargs) return nullptr;
  if (fast) {
    PyObject* both[] = {args, kwargs.get()};
    PyObject* result = PyObject_Vectorcall(fast.get(), both, 2, nullptr);
    if (!result) return failed(o, args, kwargs.get());
    if (result != Py_NotImplemented) return result;
    Py_DECREF(result);
    if (direct) return PyObject_Call(direct.get(), args, given);
  }
  return PyObject_CallMethod(o, "_slow_call", "OO", args, kwargs.get());
}

PyMemberDef members[] = {
    {"fast", T_OBJECT, offsetof(CompiledCall, fast), 0, "The last graph that was found to pay, or None."},
    {"direct", T_OBJECT, offsetof(CompiledCall, direct), 0, "What calls without a graph go to, or None."},
    {}};

int traverse(PyObject* o, visitproc visit, void* arg) {
  Py_VISIT(self_of(o).fast);
  Py_VISIT(self_of(o).direct);
  return 0;
}
int clear(PyObject* o) {
  Py_CLEAR(self_of(o).fast);
  Py_CLEAR(self_of(o).direct);
  return 0;
}
void dealloc(PyObject* o) {
  PyObject_GC_UnTrack(o);
  clear(o);
  Py_TYPE(o)->tp_free(o);
}

PyTypeObject CompiledCallType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "rushlight._C._CompiledCall",
    .tp_basicsize = sizeof(CompiledCall),
    .tp_dealloc = dealloc,
    .tp_call = call,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
    .tp_doc = "A function that runs through graphs; a subclass decides about them in _slow_call.",
    .tp_traverse = traverse,
    .tp_clear = clear,
    .tp_members = members,
    .tp_new = PyType_GenericNew,
};

}  // namespace

void init_compiled_call(PyObject* module) { add_type(module, "_CompiledCall", &CompiledCallType); }

}  // namespace rushlight::python
