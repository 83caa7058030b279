// __torch_function__: overrides by tensor subclasses and by modes.
#include <algorithm>

#include "python/op_function.h"

namespace rushlight::python {

__attribute__((tls_model("initial-exec"))) constinit thread_local FunctionState function_state;

// Owned, innermost last. Apart from the state, so that looking at that needs no constructor.
static std::vector<PyObject*>& mode_stack() {
  static thread_local std::vector<PyObject*> modes;
  return modes;
}
static void push(PyObject* owned) {
  mode_stack().push_back(owned);
  ++function_state.mode_count;
}
static PyObject* pop() {
  PyObject* mode = mode_stack().back();
  mode_stack().pop_back();
  --function_state.mode_count;
  return mode;
}
PyObject* disabled_torch_function = nullptr;
PyObject* disabled_torch_dispatch = nullptr;

static const Name hook_name{"__torch_function__"};

// `type.__torch_function__`, unless it is absent or switched off.
bool type_has_torch_function(PyTypeObject* type) {
  if (type == tensor_type || type == &TensorBaseType || type == parameter_type) return false;
  PyRef hook(PyObject_GetAttr(reinterpret_cast<PyObject*>(type), hook_name));
  if (!hook) PyErr_Clear();
  return hook && hook.get() != disabled_torch_function;
}

static bool is_basic(PyObject* o) {
  PyTypeObject* t = Py_TYPE(o);
  return t == &PyLong_Type || t == &PyFloat_Type || t == &PyBool_Type || t == &PyUnicode_Type ||
         t == &PyTuple_Type || t == &PyList_Type || t == &PyDict_Type || t == &PySlice_Type || o == Py_None ||
         t == tensor_type;
}

static void add_overloaded(std::vector<PyObject*>& list, PyObject* o) {
  if (is_basic(o) || PyType_Check(o)) return;
  if (!function_state.subclasses_enabled && is_tensor(o)) return;
  if (!type_has_torch_function(Py_TYPE(o))) return;
  size_t at = list.size();
  for (size_t i = 0; i < list.size(); ++i) {
    if (Py_TYPE(list[i]) == Py_TYPE(o)) return;
    if (at == list.size() && PyType_IsSubtype(Py_TYPE(o), Py_TYPE(list[i]))) at = i;
  }
  list.insert(list.begin() + static_cast<std::ptrdiff_t>(at), o);
}

// A tuple or list of a class of its own may be an operand itself, such as a named tuple that stands for a
// tensor.
static void add_overloaded_deep(std::vector<PyObject*>& list, PyObject* o, std::vector<Items>& kept) {
  const bool sequence = PyTuple_Check(o) || PyList_Check(o);
  if (!sequence || (!is_basic(o) && type_has_torch_function(Py_TYPE(o)))) return add_overloaded(list, o);
  for (PyObject* item : kept.emplace_back(o)) add_overloaded(list, item);
}

static PyObject* types_tuple(const std::vector<PyObject*>& list) {
  PyObject* tuple = check(PyTuple_New(static_cast<Py_ssize_t>(list.size())));
  for (size_t i = 0; i < list.size(); ++i)
    PyTuple_SET_ITEM(tuple, i, Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(list[i]))));
  return tuple;
}

// While a mode runs, it is off the stack.
class ModeScope {
 public:
  ModeScope() : mode_(pop()) {}
  ~ModeScope() { push(mode_); }
  PyObject* mode() const { return mode_; }

 private:
  PyObject* mode_;
};

static PyObject* call_hook(PyObject* target, PyObject* callable, PyObject* types, PyObject* args,
                           PyObject* kwargs) {
  PyRef hook(check(PyObject_GetAttr(target, hook_name)));
  return PyObject_CallFunctionObjArgs(hook.get(), callable, types, args, kwargs ? kwargs : Py_None, nullptr);
}

// A plain method sees one argument of several; PyTorch asks for a class method. Its functions in C++ warn
// users, those in Python developers.
static void warn_of_plain_method(PyObject* callable, PyObject* target) {
  const PyRef hook(check(PyObject_GetAttr(target, hook_name)));
  if (!PyMethod_Check(hook.get()) || PyMethod_GET_SELF(hook.get()) != target) return;
  if (PyErr_WarnEx(
          Py_TYPE(callable) == &OpFunctionType ? PyExc_UserWarning : PyExc_DeprecationWarning,
          "Defining your `__torch_function__` as a plain method is deprecated and will be an error in "
          "future, please define it as a classmethod.",
          1) < 0)
    throw PythonError();
}

[[noreturn]] static void throw_no_implementation(PyObject* callable,
                                                 const std::vector<PyObject*>& overloaded) {
  PyRef name(PyObject_GetAttrString(callable, "__name__"));
  PyErr_Clear();
  std::string text = str("Multiple dispatch failed for 'torch.", name ? string_view(name.get()) : "function",
                         "'; all __torch_function__ handlers returned NotImplemented:\n");
  for (PyObject* o : overloaded) text += str("  - tensor subclass ", type_name(o), "\n");
  throw_python(PyExc_TypeError, text);
}

// Modes first, then the arguments' types, subclasses before their bases.
static PyObject* dispatch(PyObject* callable, const std::vector<PyObject*>& overloaded, PyObject* args,
                          PyObject* kwargs) {
  PyRef types(types_tuple(overloaded));
  if (function_state.mode_active()) {
    PyRef result;
    {
      ModeScope scope;
      PyRef keep = PyRef::borrow(scope.mode());
      result = PyRef(call_hook(scope.mode(), callable, types.get(), args, kwargs));
    }
    if (!result) throw PythonError();
    if (result.get() != Py_NotImplemented) return result.release();
    if (overloaded.empty()) return nullptr;
  }
  for (PyObject* o : overloaded) {
    warn_of_plain_method(callable, o);
    PyRef result(check(call_hook(o, callable, types.get(), args, kwargs)));
    if (result.get() != Py_NotImplemented) return result.release();
  }
  if (overloaded.empty()) return nullptr;
  throw_no_implementation(callable, overloaded);
}

// Set by overrides.redispatch_function: the next look for overrides finds none.
static thread_local bool skip_next = false;

PyObject* dispatch_torch_function(PyObject* callable, const CallArgs& call) {
  if (std::exchange(skip_next, false)) return nullptr;
  std::vector<PyObject*> overloaded;
  std::vector<Items> kept;
  const Py_ssize_t n = call.count + call.keyword_count();
  for (Py_ssize_t i = 0; i < n; ++i) add_overloaded_deep(overloaded, call.args[i], kept);
  if (overloaded.empty() && !function_state.mode_active()) return nullptr;
  PyRef args(check(PyTuple_New(call.count)));
  for (Py_ssize_t i = 0; i < call.count; ++i) PyTuple_SET_ITEM(args.get(), i, Py_NewRef(call.args[i]));
  PyRef kwargs(check(PyDict_New()));
  for (Py_ssize_t i = 0; i < call.keyword_count(); ++i)
    check(PyDict_SetItem(kwargs.get(), PyTuple_GET_ITEM(call.names, i), call.args[call.count + i]));
  return dispatch(callable, overloaded, args.get(), kwargs.get());
}

// --- helpers for functions written in Python

bool any_override(PyObject* const* args, Py_ssize_t n) {
  if (std::exchange(skip_next, false)) return false;
  if (function_state.mode_active()) return true;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* o = args[i];
    if (is_basic(o) || Py_TYPE(o) == parameter_type || (is_tensor(o) && !function_state.subclasses_enabled))
      continue;
    if (!PyType_Check(o) && type_has_torch_function(Py_TYPE(o))) return true;
  }
  return false;
}

static PyObject* has_torch_function(PyObject*, PyObject* args) {
  return guard([&] {
    PyRef sequence(check(PySequence_Fast(args, "expected a sequence")));
    const Items items(sequence.get());
    return PyBool_FromLong(any_override(items.data(), items.size()));
  });
}
static PyObject* has_torch_function_unary(PyObject*, PyObject* o) {
  return PyBool_FromLong(any_override(&o, 1));
}
static PyObject* has_torch_function_variadic(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return PyBool_FromLong(any_override(args, n));
}

// handle_torch_function(public_api, relevant_args, *args, **kwargs)
static PyObject* handle_torch_function(PyObject*, PyObject* all, PyObject* kwargs) {
  return guard([&]() -> PyObject* {
    if (PyTuple_GET_SIZE(all) < 2)
      throw_python(PyExc_TypeError, "handle_torch_function() needs a function and its relevant arguments");
    PyObject* function = PyTuple_GET_ITEM(all, 0);
    PyRef relevant(check(PySequence_Tuple(PyTuple_GET_ITEM(all, 1))));
    std::vector<PyObject*> overloaded;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(relevant.get()); ++i)
      add_overloaded(overloaded, PyTuple_GET_ITEM(relevant.get(), i));
    PyRef args(check(PyTuple_GetSlice(all, 2, PyTuple_GET_SIZE(all))));
    PyRef keywords = kwargs ? PyRef::borrow(kwargs) : PyRef(check(PyDict_New()));
    if (PyObject* result = dispatch(function, overloaded, args.get(), keywords.get())) return result;
    throw_no_implementation(function, overloaded);
  });
}

static PyObject* push_mode(PyObject*, PyObject* mode) {
  return guard([&]() -> PyObject* {
    PyRef held = PyRef::borrow(mode);
    push(held.get());
    held.release();
    Py_RETURN_NONE;
  });
}
static PyObject* pop_mode(PyObject*, PyObject*) {
  if (mode_stack().empty()) {
    PyErr_SetString(PyExc_RuntimeError, "no function mode is active");
    return nullptr;
  }
  PyObject* mode = pop();
  return mode;
}
static PyObject* mode_count(PyObject*, PyObject*) { return PyLong_FromSize_t(mode_stack().size()); }
static PyObject* mode_at(PyObject*, PyObject* index) {
  const Py_ssize_t i = PyLong_AsSsize_t(index);
  if (PyErr_Occurred()) return nullptr;
  if (i < 0 || i >= static_cast<Py_ssize_t>(mode_stack().size())) {
    PyErr_SetString(PyExc_IndexError, "no function mode at this place");
    return nullptr;
  }
  return Py_NewRef(mode_stack()[static_cast<size_t>(i)]);
}

// func, types, args=(), kwargs=None of a handler that changes nothing: runs func.
static PyObject* run_plainly(PyObject* all, PyObject* keywords) {
  static const char* names[] = {"func", "types", "args", "kwargs", nullptr};
  PyObject *func, *types, *args = nullptr, *kwargs = nullptr;
  if (!PyArg_ParseTupleAndKeywords(all, keywords, "OO|OO", const_cast<char**>(names), &func, &types, &args,
                                   &kwargs))
    return nullptr;
  PyRef positional(args ? PySequence_Tuple(args) : PyTuple_New(0));
  return positional ? PyObject_Call(func, positional.get(), kwargs == Py_None ? nullptr : kwargs) : nullptr;
}
static PyObject* disabled(PyObject*, PyObject* all, PyObject* keywords) {
  const bool before = std::exchange(function_state.subclasses_enabled, false);
  PyObject* result = run_plainly(all, keywords);
  function_state.subclasses_enabled = before;
  return result;
}
// Below __torch_dispatch__ of subclasses.
static PyObject* disabled_dispatch(PyObject*, PyObject* all, PyObject* keywords) {
  const uint32_t before = dispatch_state.consider;
  dispatch_state.consider &= ~uint32_t{kPythonDispatch};
  PyObject* result = run_plainly(all, keywords);
  dispatch_state.consider |= before & kPythonDispatch;
  return result;
}
static PyObject* skip_one_hop(PyObject*, PyObject* all, PyObject* keywords) {
  const bool before = std::exchange(skip_next, true);
  PyObject* result = run_plainly(all, keywords);
  skip_next = before;
  return result;
}
static PyObject* is_enabled(PyObject*, PyObject*) {
  return PyBool_FromLong(function_state.subclasses_enabled);
}

static PyObject* is_all_disabled(PyObject*, PyObject*) {
  return PyBool_FromLong(!function_state.subclasses_enabled && !function_state.modes_enabled);
}

PyObject* operator_methods();  // tensor_number.cpp
static PyObject* list_operator_methods(PyObject*, PyObject*) {
  return guard([] { return operator_methods(); });
}

static PyMethodDef functions[] = {
    {"_operator_methods", list_operator_methods, METH_NOARGS,
     "Names of the special methods of Tensor that __torch_function__ is told of in place of operators."},
    {"_has_torch_function", has_torch_function, METH_O, nullptr},
    {"_has_torch_function_unary", has_torch_function_unary, METH_O, nullptr},
    {"_has_torch_function_variadic", reinterpret_cast<PyCFunction>(has_torch_function_variadic),
     METH_FASTCALL, nullptr},
    {"_handle_torch_function", reinterpret_cast<PyCFunction>(handle_torch_function),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {"_push_on_torch_function_stack", push_mode, METH_O, nullptr},
    {"_pop_torch_function_stack", pop_mode, METH_NOARGS, nullptr},
    {"_len_torch_function_stack", mode_count, METH_NOARGS, nullptr},
    {"_get_function_stack_at", mode_at, METH_O, nullptr},
    {"_disabled_torch_function_impl", reinterpret_cast<PyCFunction>(disabled), METH_VARARGS | METH_KEYWORDS,
     nullptr},
    {"_disabled_torch_dispatch_impl", reinterpret_cast<PyCFunction>(disabled_dispatch),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {"_skip_one_hop_torch_function", reinterpret_cast<PyCFunction>(skip_one_hop),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {"_is_torch_function_enabled", is_enabled, METH_NOARGS, nullptr},
    {"_is_torch_function_all_disabled", is_all_disabled, METH_NOARGS, nullptr},
    {}};

// --- DisableTorchFunctionSubclass and DisableTorchFunction

struct Guard {
  PyObject_HEAD bool subclasses, modes;
};
template <bool modes_too>
static PyObject* guard_enter(PyObject* self, PyObject*) {
  auto* g = reinterpret_cast<Guard*>(self);
  g->subclasses = std::exchange(function_state.subclasses_enabled, false);
  g->modes = function_state.modes_enabled;
  if (modes_too) function_state.modes_enabled = false;
  Py_RETURN_NONE;
}
static PyObject* guard_exit(PyObject* self, PyObject*) {
  auto* g = reinterpret_cast<Guard*>(self);
  function_state.subclasses_enabled = g->subclasses;
  function_state.modes_enabled = g->modes;
  Py_RETURN_FALSE;
}
static PyMethodDef subclass_methods[] = {{"__enter__", guard_enter<false>, METH_NOARGS, nullptr},
                                         {"__exit__", guard_exit, METH_VARARGS, nullptr},
                                         {}};
static PyMethodDef all_methods[] = {{"__enter__", guard_enter<true>, METH_NOARGS, nullptr},
                                    {"__exit__", guard_exit, METH_VARARGS, nullptr},
                                    {}};
static PyTypeObject DisableSubclassType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "rushlight._C.DisableTorchFunctionSubclass",
    .tp_basicsize = sizeof(Guard),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "A context in which __torch_function__ of tensor subclasses is not called.",
    .tp_methods = subclass_methods,
    .tp_new = PyType_GenericNew,
};
static PyTypeObject DisableAllType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "rushlight._C.DisableTorchFunction",
    .tp_basicsize = sizeof(Guard),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "A context in which no __torch_function__ is called, not even a mode's.",
    .tp_methods = all_methods,
    .tp_new = PyType_GenericNew,
};

// As long as it lives, __torch_function__ is called again.
static PyObject* enable_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  auto* g = reinterpret_cast<Guard*>(self);
  g->subclasses = std::exchange(function_state.subclasses_enabled, true);
  g->modes = std::exchange(function_state.modes_enabled, true);
  return self;
}
static void enable_dealloc(PyObject* self) {
  auto* g = reinterpret_cast<Guard*>(self);
  function_state.subclasses_enabled = g->subclasses;
  function_state.modes_enabled = g->modes;
  Py_TYPE(self)->tp_free(self);
}
static PyTypeObject EnableType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "rushlight._C._EnableTorchFunction",
    .tp_basicsize = sizeof(Guard),
    .tp_dealloc = enable_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "While it lives, __torch_function__ is called again.",
    .tp_new = enable_new,
};

// --- _DisableFuncTorch: pauses vmap and forward mode, as code that saves random states asks for

struct PauseTransforms {
  PyObject_HEAD uint32_t always, consider;
};
static PyObject* pause_enter(PyObject* self, PyObject*) {
  constexpr uint32_t transforms = kWrapped | kForwardGrad;
  auto* p = reinterpret_cast<PauseTransforms*>(self);
  p->always = dispatch_state.always & transforms;
  p->consider = dispatch_state.consider & kForwardGrad;
  dispatch_state.always &= ~transforms;
  dispatch_state.consider &= ~uint32_t{kForwardGrad};
  Py_RETURN_NONE;
}
static PyObject* pause_exit(PyObject* self, PyObject*) {
  const auto* p = reinterpret_cast<PauseTransforms*>(self);
  dispatch_state.always |= p->always;
  dispatch_state.consider |= p->consider;
  Py_RETURN_FALSE;
}
static PyMethodDef pause_methods[] = {
    {"__enter__", pause_enter, METH_NOARGS, nullptr}, {"__exit__", pause_exit, METH_VARARGS, nullptr}, {}};
static PyTypeObject PauseTransformsType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "rushlight._C._DisableFuncTorch",
    .tp_basicsize = sizeof(PauseTransforms),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "A context in which no function transform is active.",
    .tp_methods = pause_methods,
    .tp_new = PyType_GenericNew,
};

void init_overrides(PyObject* module) {
  add_functions(module, functions);
  disabled_torch_function = check(PyObject_GetAttrString(module, "_disabled_torch_function_impl"));
  disabled_torch_dispatch = check(PyObject_GetAttrString(module, "_disabled_torch_dispatch_impl"));
  add_type(module, "DisableTorchFunctionSubclass", &DisableSubclassType);
  add_type(module, "DisableTorchFunction", &DisableAllType);
  add_type(module, "_EnableTorchFunction", &EnableType);
  add_type(module, "_DisableFuncTorch", &PauseTransformsType);
}

}  // namespace rushlight::python
