// _CompiledCall: what stands for a function that torch.compile was given. A call goes to the graph that was
// found to pay, or to the function itself where that was found best; all else is decided in Python.
#include <cstddef>

#include "python/free_threading.h"
#include "python/function_front.h"

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

struct Ways {
  PyRef fast, direct;
};
Ways ways_of(PyObject* o) {
  Ways ways;
  const CriticalSection lock(o);
  if (is_set(self_of(o).fast)) ways.fast = PyRef::borrow(self_of(o).fast);
  if (is_set(self_of(o).direct)) ways.direct = PyRef::borrow(self_of(o).direct);
  return ways;
}

// By a graph that is for the call, or by Python's decision.
PyObject* call_graph(PyObject* o, const Ways& ways, PyObject* args, PyObject* kwargs) {
  if (ways.fast) {
    PyObject* both[] = {args, kwargs};
    PyObject* result = PyObject_Vectorcall(ways.fast.get(), both, 2, nullptr);
    if (!result) return failed(o, args, kwargs);
    if (result != Py_NotImplemented) return result;
    Py_DECREF(result);
    if (ways.direct) return PyObject_Call(ways.direct.get(), args, kwargs);
  }
  return PyObject_CallMethod(o, "_slow_call", "OO", args, kwargs);
}

PyObject* call(PyObject* o, PyObject* args, PyObject* given) {
  const Ways ways = ways_of(o);
  if (!ways.fast && ways.direct) return PyObject_Call(ways.direct.get(), args, given);
  const PyRef kwargs = given ? PyRef::borrow(given) : PyRef(PyDict_New());
  return kwargs ? call_graph(o, ways, args, kwargs.get()) : nullptr;
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

// What torch.compile returns for a function: the function to whoever looks at it, a _CompiledCall to who
// calls.
struct CompiledFunction {
  FunctionFront front;
  PyObject* compiled;
};
PyObject*& compiled_of(PyObject* o) { return reinterpret_cast<CompiledFunction*>(o)->compiled; }

PyObject* function_call(PyObject* self, PyObject* const* given, size_t nargsf, PyObject* names) {
  const PyRef compiled = PyRef::borrow(compiled_of(self));
  const Ways ways = ways_of(compiled.get());
  if (!ways.fast && ways.direct) return PyObject_Vectorcall(ways.direct.get(), given, nargsf, names);
  const Py_ssize_t n = PyVectorcall_NARGS(nargsf), keywords = names ? PyTuple_GET_SIZE(names) : 0;
  const PyRef args(PyTuple_New(n)), kwargs(PyDict_New());
  if (!args || !kwargs) return nullptr;
  for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(args.get(), i, Py_NewRef(given[i]));
  for (Py_ssize_t i = 0; i < keywords; ++i)
    if (PyDict_SetItem(kwargs.get(), PyTuple_GET_ITEM(names, i), given[n + i]) < 0) return nullptr;
  return call_graph(compiled.get(), ways, args.get(), kwargs.get());
}

int function_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(compiled_of(self));
  return front_traverse(self, visit, arg);
}
int function_clear(PyObject* self) {
  Py_CLEAR(compiled_of(self));
  return front_clear(self);
}

PyGetSetDef function_properties[] = {front_doc, {}};

PyTypeObject CompiledFunctionType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "function",
    .tp_basicsize = sizeof(CompiledFunction),
    .tp_flags = kFrontFlags,
    .tp_traverse = function_traverse,
    .tp_clear = function_clear,
    .tp_getset = function_properties,
    .tp_base = &FunctionFrontType,
};

// _compiled_function(function, compiled)
PyObject* make_function(PyObject*, PyObject* const* args, Py_ssize_t n) {
  if (n != 2 || !PyObject_TypeCheck(args[1], &CompiledCallType)) {
    PyErr_SetString(PyExc_TypeError, "_compiled_function takes a function and a _CompiledCall");
    return nullptr;
  }
  PyObject* f = new_front(&CompiledFunctionType, function_call, args[0]);
  if (!f) return nullptr;
  compiled_of(f) = Py_NewRef(args[1]);
  PyObject_GC_Track(f);
  return f;
}

}  // namespace

void init_compiled_call(PyObject* module) {
  add_type(module, "_CompiledCall", &CompiledCallType);
  check(PyType_Ready(&CompiledFunctionType));
  static PyMethodDef functions[] = {
      {"_compiled_function", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(make_function)),
       METH_FASTCALL, "A function that runs through graphs."},
      {}};
  add_functions(module, functions);
}

}  // namespace rushlight::python
