// The C half of nn.Module: calling and attribute look-up without a Python frame where no hook asks for one.
#include <algorithm>
#include <cstddef>
#include <vector>

#include "python/tensor_type.h"

namespace rushlight::python {

struct PyModule_ {
  PyObject_HEAD PyObject* dict;
  PyObject* weakrefs;
  vectorcallfunc vectorcall;
  PyObject* stands_for;  // Note [Modules that stand for others]; or null
};
extern PyTypeObject ModuleBaseType;
bool runs_as_written(PyObject* compiled);  // compiled_call.cpp
static PyObject* module_alloc(PyTypeObject* type, Py_ssize_t n);
PyObject* module_setattr(PyObject* self, PyObject* const* args, Py_ssize_t n);  // module_attributes.cpp

static PyObject* global_hooks = nullptr;  // a tuple of the dictionaries of hooks that all modules share
static PyObject* note_error = nullptr;    // note_error(module, exception) adds the module's path to an error

static SharedObject read_hook;  // read_hook(module, name, value) says what reading a name gives

static PyObject* dict_of(PyObject* self) { return reinterpret_cast<PyModule_*>(self)->dict; }

PyObject* module_dict(PyObject* module) {
  return PyObject_TypeCheck(module, &ModuleBaseType) ? dict_of(module) : nullptr;
}

// Names in a module's __dict__.
static const Name forward_name{"forward"}, parameters_name{"_parameters"}, buffers_name{"_buffers"},
    modules_name{"_modules"}, compiled_name{"_compiled_call_impl"}, getattr_name{"__getattr__"},
    getattribute_name{"__getattribute__"}, call_impl_name{"_call_impl"};
static const Name hook_names[] = {Name{"_forward_hooks"}, Name{"_forward_pre_hooks"}, Name{"_backward_hooks"},
                                  Name{"_backward_pre_hooks"}};
static const Name special_hook_names[] = {Name{"_forward_hooks_with_kwargs"},
                                          Name{"_forward_hooks_always_called"}};

// --- attributes

// A dictionary that is read as one; subclasses may load what they hold when it is asked for.
static bool is_plain_table(PyObject* table) {
  return PyDict_Check(table) &&
         Py_TYPE(table)->tp_as_mapping->mp_subscript == PyDict_Type.tp_as_mapping->mp_subscript;
}

// Parameters, buffers and submodules live in tables beside the other attributes. Empty without an error.
static PyRef find_registered(PyObject* dict, PyObject* name) {
  if (!dict) return PyRef(nullptr);
  for (const Name* table_name : {&parameters_name, &modules_name, &buffers_name}) {
    Found table = find_item(dict, *table_name);
    if (!table) continue;
    if (is_plain_table(table.get())) [[likely]] {
      if (PyDict_GET_SIZE(table.get()) == 0) continue;
      if (Found found = find_item(table.get(), name)) return PyRef(found.new_ref());
    } else if (PyMapping_Check(table.get())) {
      const PyRef keep(table.new_ref());
      const int holds = PySequence_Contains(keep.get(), name);
      if (holds != 0) return PyRef(holds > 0 ? PyObject_GetItem(keep.get(), name) : nullptr);
    }
  }
  return PyRef(nullptr);
}

// What a program reads: the registered object itself, unless a tracer wants to give another.
static PyObject* read_registered(PyObject* self, PyObject* name, PyRef value) {
  if (!read_hook) [[likely]]
    return value.release();
  PyRef hook = read_hook.get();
  return hook ? PyObject_CallFunctionObjArgs(hook.get(), self, name, value.get(), nullptr) : value.release();
}

// With the name and the object Python makes `Did you mean: ...?` of it.
static void set_no_attribute(PyObject* self, PyObject* name) {
  PyRef text(PyUnicode_FromFormat("'%.100s' object has no attribute '%U'", Py_TYPE(self)->tp_name, name));
  PyRef args(text ? PyTuple_Pack(1, text.get()) : nullptr);
  PyRef keywords(args ? Py_BuildValue("{sOsO}", "name", name, "obj", self) : nullptr);
  PyRef error(keywords ? PyObject_Call(PyExc_AttributeError, args.get(), keywords.get()) : nullptr);
  if (error) PyErr_SetObject(PyExc_AttributeError, error.get());
}

static bool is_data_descriptor(PyObject* o) { return Py_TYPE(o)->tp_descr_set != nullptr; }

PyObject* module_getattro(PyObject* self, PyObject* name) {
  Found in_type = type_attribute(Py_TYPE(self), name);
  if (in_type && is_data_descriptor(in_type.get())) return PyObject_GenericGetAttr(self, name);
  PyObject* dict = dict_of(self);
  if (dict)
    if (Found own = find_item(dict, name)) return own.new_ref();
  if (in_type) {
    const descrgetfunc bind = Py_TYPE(in_type.get())->tp_descr_get;
    if (!bind) return in_type.new_ref();
    PyRef keep(in_type.new_ref());
    return bind(keep.get(), self, reinterpret_cast<PyObject*>(Py_TYPE(self)));
  }
  if (PyRef found = find_registered(dict, name)) return read_registered(self, name, std::move(found));
  if (!PyErr_Occurred()) set_no_attribute(self, name);
  return nullptr;
}

// What subclasses call as super().__getattr__(name).
static PyObject* m_getattr(PyObject* self, PyObject* name) {
  if (PyRef found = find_registered(dict_of(self), name))
    return read_registered(self, name, std::move(found));
  if (!PyErr_Occurred()) set_no_attribute(self, name);
  return nullptr;
}

// The look-up of a class with a __getattr__ of its own, which is asked before the tables are looked at.
static PyObject* overridden_getattro(PyObject* self, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(self, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  PyErr_Clear();  // before the look-up, which takes an error that is set for its own
  Found method = type_attribute(Py_TYPE(self), getattr_name);
  const descrgetfunc bind = Py_TYPE(method.get())->tp_descr_get;
  PyRef bound(bind ? bind(method.get(), self, reinterpret_cast<PyObject*>(Py_TYPE(self))) : method.new_ref());
  return bound ? PyObject_CallOneArg(bound.get(), name) : nullptr;
}

// A class without a __getattr__ of its own keeps the C look-up.
static PyObject* m_init_subclass(PyObject* cls, PyObject* args, PyObject* kwargs) {
  auto* type = reinterpret_cast<PyTypeObject*>(cls);
  const Found own = find_item(ModuleBaseType.tp_dict, getattr_name);
  const Found own_getattribute = find_item(ModuleBaseType.tp_dict, getattribute_name);
  if (type_attribute(type, getattribute_name).get() == own_getattribute.get())
    type->tp_getattro =
        type_attribute(type, getattr_name).get() == own.get() ? module_getattro : overridden_getattro;
  type->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
  type->tp_alloc = module_alloc;  // a class statement sets Python's own
  PyRef next(PyObject_CallFunctionObjArgs(reinterpret_cast<PyObject*>(&PySuper_Type), &ModuleBaseType, cls,
                                          nullptr));
  PyRef method(next ? PyObject_GetAttrString(next.get(), "__init_subclass__") : nullptr);
  return method ? PyObject_Call(method.get(), args, kwargs) : nullptr;
}

// --- calling

static bool is_empty(PyObject* dict) { return PyDict_Check(dict) && PyDict_GET_SIZE(dict) == 0; }

// Who wants to see a call pass: nobody, one forward hook of the plain kind, or anything else.
enum class Observers { None, OneHook, Others };

// Nothing that the dictionary holds dies while its lock is held.
static Observers observers_of(PyObject* dict) {
  const CriticalSection section(dict);
  Py_ssize_t forward_hooks = 0;
  for (const Name& name : hook_names) {
    PyObject* hooks = PyDict_GetItemWithError(dict, name);
    if (!hooks || !PyDict_Check(hooks)) return Observers::Others;
    if (&name == &hook_names[0])
      forward_hooks = PyDict_GET_SIZE(hooks);
    else if (PyDict_GET_SIZE(hooks) != 0)
      return Observers::Others;
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(global_hooks); ++i)
    if (!is_empty(PyTuple_GET_ITEM(global_hooks, i))) return Observers::Others;
  PyObject* compiled = PyDict_GetItemWithError(dict, compiled_name);
  if (compiled && compiled != Py_None && !runs_as_written(compiled)) return Observers::Others;
  if (forward_hooks == 0) return Observers::None;
  for (const Name& name : special_hook_names)
    if (PyObject* hooks = PyDict_GetItemWithError(dict, name); !hooks || !is_empty(hooks))
      return Observers::Others;
  return forward_hooks == 1 ? Observers::OneHook : Observers::Others;
}

static PyObject* call_forward(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* names_given) {
  if (const Found own = find_item(dict_of(self), forward_name))
    return PyObject_Vectorcall(own.get(), args, nargsf & ~PY_VECTORCALL_ARGUMENTS_OFFSET, names_given);
  const Found in_type = type_attribute(Py_TYPE(self), forward_name);
  PyObject* forward = in_type.get();
  if (!forward || !PyFunction_Check(forward)) {
    PyRef bound(PyObject_GetAttr(self, forward_name));
    return bound
               ? PyObject_Vectorcall(bound.get(), args, nargsf & ~PY_VECTORCALL_ARGUMENTS_OFFSET, names_given)
               : nullptr;
  }
  const auto n = static_cast<size_t>(PyVectorcall_NARGS(nargsf));
  if (nargsf & PY_VECTORCALL_ARGUMENTS_OFFSET) {  // the caller lends the place before the arguments
    PyObject** with_self = const_cast<PyObject**>(args) - 1;
    PyObject* lent = std::exchange(with_self[0], self);
    PyObject* result = PyObject_Vectorcall(forward, with_self, n + 1, names_given);
    with_self[0] = lent;
    return result;
  }
  return guard([&] {
    const size_t total = n + (names_given ? static_cast<size_t>(PyTuple_GET_SIZE(names_given)) : 0);
    std::vector<PyObject*> stack(total + 1);
    stack[0] = self;
    std::copy_n(args, total, stack.begin() + 1);
    return PyObject_Vectorcall(forward, stack.data(), n + 1, names_given);
  });
}

static PyObject* call_with_hook(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* names_given) {
  PyRef result(call_forward(self, args, nargsf, names_given));
  if (!result) return nullptr;
  const Found hooks = find_item(dict_of(self), hook_names[0]);
  PyRef hook;
  if (hooks && PyDict_Check(hooks.get())) {
    const CriticalSection section(hooks.get());
    PyObject *key, *found;
    Py_ssize_t at = 0;
    if (PyDict_Next(hooks.get(), &at, &key, &found)) hook = PyRef::borrow(found);
  }
  if (!hook) return result.release();
  const Py_ssize_t n = PyVectorcall_NARGS(nargsf);
  PyRef given(PyTuple_New(n));
  if (!given) return nullptr;
  for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(given.get(), i, Py_NewRef(args[i]));
  PyObject* const stack[] = {self, given.get(), result.get()};
  PyRef replaced(PyObject_Vectorcall(hook.get(), stack, 3, nullptr));
  return !replaced || replaced.get() != Py_None ? replaced.release() : result.release();
}

static PyObject* call_observed(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* names_given) {
  PyRef compiled(PyObject_GetAttr(self, compiled_name));
  if (!compiled) PyErr_Clear();
  const auto n = static_cast<size_t>(PyVectorcall_NARGS(nargsf));
  if (compiled && compiled.get() != Py_None && !runs_as_written(compiled.get()))
    return PyObject_Vectorcall(compiled.get(), args, n, names_given);
  PyRef implementation(PyObject_GetAttr(self, call_impl_name));
  return implementation ? PyObject_Vectorcall(implementation.get(), args, n, names_given) : nullptr;
}

static void add_note(PyObject* self) {
  if (!note_error || !PyErr_ExceptionMatches(PyExc_Exception)) return;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback) PyException_SetTraceback(value, traceback);
  PyRef done(PyObject_CallFunctionObjArgs(note_error, self, value, nullptr));
  if (!done) PyErr_Clear();  // the note matters less than the error
  PyErr_Restore(type, value, traceback);
}

static PyObject* run_module(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* names_given) {
  PyObject* dict = dict_of(self);
  const Observers observers = dict && global_hooks ? observers_of(dict) : Observers::Others;
  const auto call = observers == Observers::None      ? call_forward
                    : observers == Observers::OneHook ? call_with_hook
                                                      : call_observed;
  PyObject* result = call(self, args, nargsf, names_given);
  if (!result) [[unlikely]]
    add_note(self);
  return result;
}

static PyObject* module_vectorcall(PyObject* self, PyObject* const* args, size_t nargsf,
                                   PyObject* names_given);

static PyObject* module_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  const Py_ssize_t n = PyTuple_GET_SIZE(args), k = kwargs ? PyDict_GET_SIZE(kwargs) : 0;
  std::vector<PyObject*> stack;
  try {
    stack.resize(static_cast<size_t>(1 + n + k));  // the first place is to lend
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  }
  for (Py_ssize_t i = 0; i < n; ++i) stack[static_cast<size_t>(1 + i)] = PyTuple_GET_ITEM(args, i);
  PyRef names_given(k ? PyTuple_New(k) : nullptr);
  if (k && !names_given) return nullptr;
  PyObject *key, *value;
  for (Py_ssize_t at = 0, i = 0; k && PyDict_Next(kwargs, &at, &key, &value); ++i) {
    PyTuple_SET_ITEM(names_given.get(), i, Py_NewRef(key));
    stack[static_cast<size_t>(1 + n + i)] = value;
  }
  // From Python 3.12 on, classes whose __call__ was ever assigned, as tracers do for a while, have no
  // vectorcall.
  const vectorcallfunc own = reinterpret_cast<PyModule_*>(self)->vectorcall;
  const bool is_special = own != module_vectorcall && Py_TYPE(self)->tp_call == module_call;
  return (is_special ? own : run_module)(
      self, stack.data() + 1, static_cast<size_t>(n) | PY_VECTORCALL_ARGUMENTS_OFFSET, names_given.get());
}

// A class may have got another __call__ since, which the flag of its type does not show.
static PyObject* module_vectorcall(PyObject* self, PyObject* const* args, size_t nargsf,
                                   PyObject* names_given) {
  if (Py_TYPE(self)->tp_call == module_call) [[likely]]
    return run_module(self, args, nargsf, names_given);
  const Py_ssize_t n = PyVectorcall_NARGS(nargsf), k = names_given ? PyTuple_GET_SIZE(names_given) : 0;
  PyRef tuple(PyTuple_New(n)), kwargs(k ? PyDict_New() : nullptr);
  if (!tuple || (k && !kwargs)) return nullptr;
  for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(tuple.get(), i, Py_NewRef(args[i]));
  for (Py_ssize_t i = 0; i < k; ++i)
    if (PyDict_SetItem(kwargs.get(), PyTuple_GET_ITEM(names_given, i), args[n + i]) < 0) return nullptr;
  return Py_TYPE(self)->tp_call(self, tuple.get(), kwargs.get());
}

// Note [Modules that stand for others]
// A module around one that was found best as it is written is called as often as that one. All that could ask
// for more than passing calls on is hooks, whose dictionaries lie beside the other module in a tuple.
static PyObject* pass_on(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* names_given) {
  PyObject* other = reinterpret_cast<PyModule_*>(self)->stands_for;
  Py_ssize_t hooks = 0;
  for (Py_ssize_t i = 1; i < PyTuple_GET_SIZE(other); ++i)
    hooks |= PyDict_GET_SIZE(PyTuple_GET_ITEM(other, i));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(global_hooks); ++i)
    hooks |= PyDict_GET_SIZE(PyTuple_GET_ITEM(global_hooks, i));
  if (hooks || Py_TYPE(self)->tp_call != module_call)
    return module_vectorcall(self, args, nargsf, names_given);
  PyObject* result = PyObject_Vectorcall(PyTuple_GET_ITEM(other, 0), args, nargsf, names_given);
  if (!result) [[unlikely]]
    add_note(self);
  return result;
}

// _stand_for(module, other or None): calls of the module go to the other one, or to its own forward again.
static PyObject* stand_for(PyObject*, PyObject* args) {
  PyObject *module, *other;
  if (!PyArg_ParseTuple(args, "O!O", &ModuleBaseType, &module, &other)) return nullptr;
#ifndef Py_GIL_DISABLED  // where others may be calling it
  PyRef all;
  if (other != Py_None) {
    PyObject* parts[] = {other, nullptr, nullptr, nullptr, nullptr};
    for (int i = 0; i < 4; ++i) {
      parts[i + 1] = find_item(dict_of(module), hook_names[i]).get();
      if (!parts[i + 1] || !PyDict_Check(parts[i + 1])) Py_RETURN_NONE;
    }
    all = PyRef(PyTuple_Pack(5, parts[0], parts[1], parts[2], parts[3], parts[4]));
    if (!all) return nullptr;
  }
  auto* self = reinterpret_cast<PyModule_*>(module);
  self->vectorcall = all ? pass_on : module_vectorcall;
  Py_XSETREF(self->stands_for, all.release());
#endif
  Py_RETURN_NONE;
}

// Note [Modules that are parts]
// Where torch.compile cannot capture a program, the modules that it calls run through graphs of their own.
// Only calls within the program do, on its thread: _with_parts says when. A module that is part of programs
// keeps a dict of its graphs by program. Nothing of this is seen from Python, and other modules take no more
// time.
static thread_local PyObject* parts_run = nullptr;  // of the program that runs; its caller holds it

static bool has_own_graphs(PyObject* self) {
  const Found compiled = find_item(dict_of(self), compiled_name);
  return compiled && compiled.get() != Py_None;
}

static PyObject* call_part(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* names_given) {
  PyRef compiled;
  if (parts_run && Py_TYPE(self)->tp_call == module_call && !has_own_graphs(self))
    compiled =
        PyRef(Py_XNewRef(PyDict_GetItemWithError(reinterpret_cast<PyModule_*>(self)->stands_for, parts_run)));
  if (!compiled) return module_vectorcall(self, args, nargsf, names_given);
  PyObject* result =
      PyObject_Vectorcall(compiled.get(), args, static_cast<size_t>(PyVectorcall_NARGS(nargsf)), names_given);
  if (!result) [[unlikely]]
    add_note(self);
  return result;
}

// _make_part(module, parts, compiled or None) -> whether it is one now: calls in programs with these parts go
// to `compiled`, or to the module again.
static PyObject* make_part(PyObject*, PyObject* args) {
  PyObject *module, *parts, *compiled;
  if (!PyArg_ParseTuple(args, "O!OO", &ModuleBaseType, &module, &parts, &compiled)) return nullptr;
#ifdef Py_GIL_DISABLED  // where others may be calling it
  Py_RETURN_FALSE;
#else
  auto* self = reinterpret_cast<PyModule_*>(module);
  const bool is_part = self->vectorcall == call_part, joins = compiled != Py_None;
  if (!is_part && (!joins || self->vectorcall != module_vectorcall)) Py_RETURN_FALSE;
  PyRef graphs(is_part ? PyDict_Copy(self->stands_for) : PyDict_New());  // others may be reading the former
  if (!graphs) return nullptr;
  if (joins ? PyDict_SetItem(graphs.get(), parts, compiled) < 0
            : PyDict_Contains(graphs.get(), parts) == 1 && PyDict_DelItem(graphs.get(), parts) < 0)
    return nullptr;
  const bool any = PyDict_GET_SIZE(graphs.get()) > 0;
  self->vectorcall = any ? call_part : module_vectorcall;
  Py_XSETREF(self->stands_for, any ? graphs.release() : nullptr);
  return PyBool_FromLong(joins);
#endif
}

// _with_parts(parts or None, function, *args, **kwargs): a call in which these parts run through their
// graphs.
static PyObject* with_parts(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names_given) {
  if (n < 2) return PyErr_Format(PyExc_TypeError, "_with_parts takes parts and a function");
  const PyRef held = PyRef::borrow(args[0]);
  PyObject* before = std::exchange(parts_run, args[0] == Py_None ? nullptr : args[0]);
  PyObject* result = PyObject_Vectorcall(args[1], args + 2, static_cast<size_t>(n - 2), names_given);
  parts_run = before;
  return result;
}

// object's __new__ makes modules, as it makes any Python object: deserializers call it by that name.
static PyObject* module_alloc(PyTypeObject* type, Py_ssize_t n) {
  PyObject* self = PyType_GenericAlloc(type, n);
  if (self) reinterpret_cast<PyModule_*>(self)->vectorcall = module_vectorcall;
  return self;
}

// --- the type

static int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(dict_of(self));
  Py_VISIT(reinterpret_cast<PyModule_*>(self)->stands_for);
  return 0;
}
static int clear(PyObject* self) {
  Py_CLEAR(reinterpret_cast<PyModule_*>(self)->dict);
  reinterpret_cast<PyModule_*>(self)->vectorcall = module_vectorcall;
  Py_CLEAR(reinterpret_cast<PyModule_*>(self)->stands_for);
  return 0;
}
static void dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  if (reinterpret_cast<PyModule_*>(self)->weakrefs) PyObject_ClearWeakRefs(self);
  clear(self);
  Py_TYPE(self)->tp_free(self);
}

static PyMethodDef methods[] = {
    {"__getattr__", m_getattr, METH_O, "Finds parameters, buffers and submodules."},
    {"__setattr__", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(module_setattr)), METH_FASTCALL,
     "Registers parameters, buffers and submodules."},
    {"__init_subclass__", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(m_init_subclass)),
     METH_CLASS | METH_VARARGS | METH_KEYWORDS, nullptr},
    {}};
static PyGetSetDef properties[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr}, {}};

PyTypeObject ModuleBaseType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "rushlight._C._ModuleBase",
    .tp_basicsize = sizeof(PyModule_),
    .tp_dealloc = dealloc,
    .tp_vectorcall_offset = offsetof(PyModule_, vectorcall),
    .tp_call = module_call,
    .tp_getattro = module_getattro,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = "The fast half of nn.Module.",
    .tp_traverse = traverse,
    .tp_clear = clear,
    .tp_weaklistoffset = offsetof(PyModule_, weakrefs),
    .tp_methods = methods,
    .tp_getset = properties,
    .tp_dictoffset = offsetof(PyModule_, dict),
    .tp_alloc = module_alloc,
};

// _set_module_hooks(global hook dictionaries, note_error)
static PyObject* set_module_hooks(PyObject*, PyObject* args) {
  PyObject *hooks, *note;
  if (!PyArg_ParseTuple(args, "O!O", &PyTuple_Type, &hooks, &note)) return nullptr;
  Py_XSETREF(global_hooks, Py_NewRef(hooks));
  Py_XSETREF(note_error, note == Py_None ? nullptr : Py_NewRef(note));
  Py_RETURN_NONE;
}
// _set_module_read_hook(hook or None) -> the one before
static PyObject* set_read_hook(PyObject*, PyObject* hook) {
  PyRef before = read_hook.exchange(hook == Py_None ? nullptr : Py_NewRef(hook));
  return before ? before.release() : Py_NewRef(Py_None);
}
static PyMethodDef functions[] = {
    {"_set_module_hooks", set_module_hooks, METH_VARARGS, nullptr},
    {"_set_module_read_hook", set_read_hook, METH_O, nullptr},
    {"_stand_for", stand_for, METH_VARARGS, nullptr},
    {"_make_part", make_part, METH_VARARGS, nullptr},
    {"_with_parts", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(with_parts)),
     METH_FASTCALL | METH_KEYWORDS, nullptr},
    {}};

void init_module_base(PyObject* module) {
  ModuleBaseType.tp_new = PyBaseObject_Type.tp_new;  // not inherited by a type that is no heap type
  add_type(module, "_ModuleBase", &ModuleBaseType);
  // A name of its own would hide the __new__ of a base class beside nn.Module, which takes the arguments.
  if (PyDict_DelItemString(ModuleBaseType.tp_dict, "__new__") < 0) PyErr_Clear();
  PyType_Modified(&ModuleBaseType);
  add_functions(module, functions);
}

}  // namespace rushlight::python
