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

// Note [Compiled functions]
// What torch.compile returns for a function of Python's is a copy of it whose type differs in what a call
// does: that goes to its _CompiledCall. Where the program was found best as it is written, the copy becomes a
// function like others, which the interpreter calls without leaving its loop: it takes not a nanosecond more
// than what was compiled. Nothing but the type and the address of what calls it change. Other callables get a
// front.

const Name compiled_name{"_compiled"};

PyObject* call_by(PyObject* compiled, PyObject* const* given, size_t nargsf, PyObject* names) {
  const Ways ways = ways_of(compiled);
  if (!ways.fast && ways.direct) return PyObject_Vectorcall(ways.direct.get(), given, nargsf, names);
  const Py_ssize_t n = PyVectorcall_NARGS(nargsf), keywords = names ? PyTuple_GET_SIZE(names) : 0;
  const PyRef args(PyTuple_New(n)), kwargs(PyDict_New());
  if (!args || !kwargs) return nullptr;
  for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(args.get(), i, Py_NewRef(given[i]));
  for (Py_ssize_t i = 0; i < keywords; ++i)
    if (PyDict_SetItem(kwargs.get(), PyTuple_GET_ITEM(names, i), given[n + i]) < 0) return nullptr;
  return call_graph(compiled, ways, args.get(), kwargs.get());
}

// --- functions of Python's

PyFunctionObject& function_of(PyObject* o) { return *reinterpret_cast<PyFunctionObject*>(o); }

PyObject* call_copy(PyObject* self, PyObject* const* given, size_t nargsf, PyObject* names) {
  const Found found = find_item(function_of(self).func_dict, compiled_name);
  const PyRef compiled = PyRef::borrow(found.get());
  if (!compiled || !PyObject_TypeCheck(compiled.get(), &CompiledCallType)) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "a compiled function lost its _compiled");
    return nullptr;
  }
  return call_by(compiled.get(), given, nargsf, names);
}

// Names that every type has for itself: the function's.
PyObject* get_doc(PyObject* self, void*) {
  PyObject* doc = function_of(self).func_doc;
  return Py_NewRef(doc ? doc : Py_None);
}
int set_doc(PyObject* self, PyObject* value, void*) {
  Py_XSETREF(function_of(self).func_doc, Py_NewRef(value ? value : Py_None));
  return 0;
}
PyObject* get_class(PyObject*, void*) { return Py_NewRef(reinterpret_cast<PyObject*>(&PyFunction_Type)); }
PyGetSetDef copy_properties[] = {
    {"__class__", get_class, nullptr, nullptr, nullptr}, {"__doc__", get_doc, set_doc, nullptr, nullptr}, {}};

// As functions are: by name, copied as they are.
PyObject* reduce(PyObject* self, PyObject*) { return PyObject_GetAttrString(self, "__qualname__"); }
PyMethodDef copy_methods[] = {{"__reduce__", reduce, METH_NOARGS, nullptr}, {}};

PyTypeObject CompiledCopyType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "function",
    .tp_basicsize = sizeof(PyFunctionObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_methods = copy_methods,
    .tp_getset = copy_properties,
    .tp_base = &PyFunction_Type,
};

vectorcallfunc call_of_functions = nullptr;  // what the interpreter gave them

// --- other callables

struct CompiledFront {
  FunctionFront front;
  PyObject* compiled;
};
PyObject*& compiled_of(PyObject* o) { return reinterpret_cast<CompiledFront*>(o)->compiled; }

PyObject* call_front(PyObject* self, PyObject* const* given, size_t nargsf, PyObject* names) {
  return call_by(PyRef::borrow(compiled_of(self)).get(), given, nargsf, names);
}
PyObject* pass_on(PyObject* self, PyObject* const* given, size_t nargsf, PyObject* names) {
  return PyObject_Vectorcall(front_of(self).function, given, nargsf, names);
}

int front_traverse_all(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(compiled_of(self));
  return front_traverse(self, visit, arg);
}
int front_clear_all(PyObject* self) {
  Py_CLEAR(compiled_of(self));
  return front_clear(self);
}

PyGetSetDef front_properties[] = {front_doc, {}};

PyTypeObject CompiledFrontType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "function",
    .tp_basicsize = sizeof(CompiledFront),
    .tp_flags = kFrontFlags,
    .tp_traverse = front_traverse_all,
    .tp_clear = front_clear_all,
    .tp_getset = front_properties,
    .tp_base = &FunctionFrontType,
};

// --- both

// _compiled_function(function, compiled): the function itself, a copy that nobody else has, or a front.
PyObject* make_function(PyObject*, PyObject* const* args, Py_ssize_t n) {
  if (n != 2 || !PyObject_TypeCheck(args[1], &CompiledCallType)) {
    PyErr_SetString(PyExc_TypeError, "_compiled_function takes a function and a _CompiledCall");
    return nullptr;
  }
  PyObject* f = args[0];
  if (PyFunction_Check(f)) {
    if (PyObject_SetAttr(f, compiled_name, args[1]) < 0) return nullptr;
    call_of_functions = function_of(f).vectorcall;
    function_of(f).vectorcall = call_copy;
    Py_SET_TYPE(f, &CompiledCopyType);
    return Py_NewRef(f);
  }
  f = new_front(&CompiledFrontType, call_front, f);
  if (!f) return nullptr;
  compiled_of(f) = Py_NewRef(args[1]);
  PyObject_GC_Track(f);
  return f;
}

}  // namespace

// Whether a callable that _compiled_function made passes calls on to what it was made of.
bool runs_as_written(PyObject* compiled) {
  return Py_IS_TYPE(compiled, &CompiledFrontType) && front_of(compiled).vectorcall == pass_on;
}

namespace {

// _run_as_written(function, whether): calls of what _compiled_function made go to the function, or to its
// _CompiledCall again.
PyObject* run_as_written(PyObject*, PyObject* const* args, Py_ssize_t n) {
  if (n != 2) return PyErr_Format(PyExc_TypeError, "_run_as_written takes a function and a bool");
  PyObject* f = args[0];
  const bool written = args[1] == Py_True;
  if (Py_IS_TYPE(f, &CompiledFrontType)) {
    front_of(f).vectorcall = written ? pass_on : call_front;
    Py_RETURN_NONE;
  }
#ifndef Py_GIL_DISABLED  // where others may be calling it
  if (written && Py_IS_TYPE(f, &CompiledCopyType)) {
    function_of(f).vectorcall = call_of_functions;
    Py_SET_TYPE(f, &PyFunction_Type);
  } else if (!written && PyFunction_Check(f) && PyObject_HasAttr(f, compiled_name)) {
    function_of(f).vectorcall = call_copy;
    Py_SET_TYPE(f, &CompiledCopyType);
  }
#endif
  Py_RETURN_NONE;
}

}  // namespace

void init_compiled_call(PyObject* module) {
  add_type(module, "_CompiledCall", &CompiledCallType);
  check(PyType_Ready(&CompiledCopyType));
  check(PyType_Ready(&CompiledFrontType));
  static PyMethodDef functions[] = {
      {"_compiled_function", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(make_function)),
       METH_FASTCALL, "A function that runs through graphs."},
      {"_run_as_written", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(run_as_written)),
       METH_FASTCALL, "Calls of a compiled function go to the function itself."},
      {}};
  add_functions(module, functions);
}

}  // namespace rushlight::python
