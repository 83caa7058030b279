// Note [Python dispatch]
// The innermost interceptor. It runs for tensors whose class defines __torch_dispatch__ (kPythonDispatch)
// and, while modes are on this thread's stack, for every call. Composites never come here: what they call
// does. The handler gets the operator's object of torch.ops and Python arguments; while it runs, its mode is
// off the stack and nothing is recorded, because autograd and the transforms have had their turn.
//
// Modes of the other stack (dispatch/pre_dispatch.h) see calls as the program made them, composites whole and
// everything else still to come.
#include "python/torch_dispatch.h"

#include <bit>

#include "core/generator.h"
#include "dispatch/operands.h"
#include "dispatch/pre_dispatch.h"
#include "dispatch/profiler.h"
#include "python/mode_stack.h"
#include "python/replaced_kernel.h"
#include "python/types.h"

namespace rushlight::python {

PyObject* wrap_scalar(const Scalar& s);  // convert.cpp

namespace {

const Name hook_name{"__torch_dispatch__"}, with_number_name{"with_number"}, out_names_name{"out_names"};

}  // namespace

bool type_has_torch_dispatch(PyTypeObject* type) {
  if (type == tensor_type || type == &TensorBaseType || type == parameter_type) return false;
  PyRef hook(PyObject_GetAttr(reinterpret_cast<PyObject*>(type), hook_name));
  if (!hook) PyErr_Clear();
  return hook && hook.get() != disabled_torch_dispatch && hook.get() != disabled_torch_function;
}

static thread_local const BelowTransforms* innermost_below = nullptr;

BelowTransforms::BelowTransforms()
    : always_(dispatch_state.always),
      consider_(dispatch_state.consider),
      grad_enabled_(dispatch_state.grad_enabled),
      view_flags_(view_flags),
      outer_(std::exchange(innermost_below, this)) {
  dispatch_state.always &= kPythonDispatch | kProfiled | kPreDispatch;
  dispatch_state.consider &= kPythonDispatch | kNotCpu | kSpecialElements;
  dispatch_state.grad_enabled = false;
}
BelowTransforms::~BelowTransforms() {
  innermost_below = outer_;
  restore_caller();
}
const BelowTransforms* BelowTransforms::innermost() { return innermost_below; }
void BelowTransforms::restore_caller() const {
  // The mode stack may have changed meanwhile only in balance: what was watched is watched again.
  dispatch_state.always = always_;
  dispatch_state.consider = consider_;
  dispatch_state.grad_enabled = grad_enabled_;
  view_flags = view_flags_;  // a GradMode scope inside ended with its own idea of it
}

// --- arguments

namespace {

template <class List, class F>
PyRef boxed_list(const List& list, F&& box) {
  PyRef out(check(PyList_New(static_cast<Py_ssize_t>(list.size()))));
  for (size_t i = 0; i < list.size(); ++i)
    PyList_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), check(box(list[i])));
  return out;
}

PyObject* wrap_argument(const Tensor& t) {
  if (t.defined() && !t->pyobj) t->flags |= kBoxedTemporary;
  return check(wrap(t));
}

// Equal to the default, which the schema spells out: no tensors but none and the empty list.
bool is_default(const Value& v, const Parameter& p) {
  if (!p.has_default) return false;
  const Value& d = p.default_value;
  if (v.is_none() || d.is_none()) return v.is_none() && d.is_none();
  switch (v.tag()) {
    case Tag::TensorList:
      return d.tag() == Tag::TensorList && v.tensors().empty();
    case Tag::IntList:
      return v.ints() == d.ints();
    case Tag::FloatList:
      return std::equal(v.floats().begin(), v.floats().end(), d.floats().begin(), d.floats().end());
    case Tag::ScalarList:
      return std::equal(v.scalars().begin(), v.scalars().end(), d.scalars().begin(), d.scalars().end());
    case Tag::String:
      return v.string() == d.string();
    case Tag::Float:
      return v.floating() == d.floating();
    case Tag::Scalar:
    case Tag::Int:
    case Tag::Bool: {
      if (d.tag() != Tag::Scalar && d.tag() != Tag::Int && d.tag() != Tag::Bool) return false;
      const Scalar a = v.scalar(), b = d.scalar();
      return a.kind() == b.kind() && !a.is_complex() && a.to_double() == b.to_double();
    }
    case Tag::DType:
      return v.dtype() == d.dtype();
    case Tag::Device:
      return d.tag() == Tag::Device && v.device() == d.device();
    case Tag::MemoryFormat:
      return v.memory_format() == d.memory_format();
    default:
      return false;
  }
}

}  // namespace

PyRef box_value(const Value& v) {
  switch (v.tag()) {
    case Tag::Tensor:
      if (v.tensor().defined() && v.tensor().is_wrapped_number() && v.tensor().has_data())
        return PyRef(check(wrap_scalar(read_scalar(v.tensor()))));
      return PyRef(wrap_argument(v.tensor()));
    case Tag::TensorList:
      return boxed_list(v.tensors(), wrap_argument);
    case Tag::IntList:
      return boxed_list(v.ints(), [](int64_t i) { return PyLong_FromLongLong(i); });
    case Tag::FloatList:
      return boxed_list(v.floats(), [](double d) { return PyFloat_FromDouble(d); });
    case Tag::ScalarList:
      return boxed_list(v.scalars(), [](const Scalar& s) { return wrap_scalar(s); });
    case Tag::BoolList:
      return boxed_list(v.bools(), [](bool b) { return PyBool_FromLong(b); });
    case Tag::Generator:
      return PyRef(check(wrap_generator(Ref<Generator>::share(v.generator()))));
    default:
      return PyRef(check(wrap_value(v)));
  }
}

namespace {

// What PyTorch's own functions always say of a tensor that they make: memory that is not pinned, and where it
// is unless an operand tells.
PyRef stated_option(const Schema& schema, const Parameter& p) {
  if (schema.name.front() == '_') return PyRef();  // called by other operators, with what those were given
  if (p.type == Tag::Bool && p.name == "pin_memory") return PyRef(Py_NewRef(Py_False));
  const bool told = std::any_of(schema.parameters.begin(), schema.parameters.end(),
                                [](const Parameter& o) { return o.type == Tag::Tensor; });
  if (p.type == Tag::Device && !told) return box_value(Value(Device{}));
  return PyRef();
}

}  // namespace

BoxedCall box_call(const Frame& frame) {
  const auto& parameters = frame.op.schema.parameters;
  const int positional = frame.op.schema.positional_count();
  int given = positional;
  while (given > 0 && is_default(frame.args[given - 1], parameters[static_cast<size_t>(given - 1)])) --given;
  BoxedCall call{PyRef(check(PyTuple_New(given))), PyRef(check(PyDict_New()))};
  for (int i = 0; i < given; ++i) PyTuple_SET_ITEM(call.args.get(), i, box_value(frame.args[i]).release());
  auto add = [&](std::string_view name, const PyRef& value) {
    check(PyDict_SetItem(call.kwargs.get(), PyRef(to_python(name)).get(), value.get()));
  };
  for (size_t i = static_cast<size_t>(positional); i < parameters.size(); ++i)
    if (!is_default(frame.args[i], parameters[i])) {
      add(parameters[i].name, box_value(frame.args[i]));
    } else if (PyRef stated = stated_option(frame.op.schema, parameters[i])) {
      add(parameters[i].name, stated);
    }
  if (!frame.out || frame.inplace) return call;
  const PyRef names(check(PyObject_GetAttr(overload_object(frame.op, Form::Out), out_names_name)));
  for (Py_ssize_t i = 0; i < PyTuple_Size(names.get()); ++i)
    check(PyDict_SetItem(call.kwargs.get(), PyTuple_GET_ITEM(names.get(), i),
                         box_value(Value(frame.out[i])).get()));
  return call;
}

// --- results

namespace {

Tensor tensor_result(const Op& op, PyObject* o) {
  if (o == Py_None) return {};
  if (!is_tensor(o)) {
    if (is_number(o)) return number_tensor(o);
    throw_python(PyExc_RuntimeError,
                 str("Unable to cast Python instance of type ", type_name(o),
                     " to C++ type 'at::Tensor' (a Python implementation of ", op.name(), " returned it)"));
  }
  return tensor_of(o);
}

PyRef sequence_result(const Op& op, PyObject* result) {
  PyRef sequence(PySequence_Fast(result, "expected a sequence"));
  if (sequence) return sequence;
  PyErr_Clear();
  throw_python(PyExc_RuntimeError,
               str("Unable to cast Python instance of type ", type_name(result),
                   " to a sequence of tensors (a Python implementation of ", op.name(), " returned it)"));
}

// Returns how many there were.
int64_t append_list(const Op& op, PyObject* result, std::vector<Tensor>& list) {
  PyRef sequence = sequence_result(op, result);
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(sequence.get());
  for (Py_ssize_t i = 0; i < count; ++i)
    list.push_back(tensor_result(op, PySequence_Fast_GET_ITEM(sequence.get(), i)));
  return count;
}

Value plain_result(const Return& r, PyObject* o) {
  switch (r.type) {
    case Tag::Bool:
      return Value(PyObject_IsTrue(o) == 1);
    case Tag::Int:
      return Value(to_int(o));
    case Tag::Float:
      return Value(to_double(o));
    case Tag::Device:
      return Value(parse_device(o));
    case Tag::Layout:
      if (is_layout(o)) return Value(layout_of_object(o));
      [[fallthrough]];
    default:
      return Value(to_scalar(o));
  }
}

}  // namespace

void unbox_results(const Op& op, PyObject* result, Results& results) {
  const auto& returns = op.schema.returns;
  if (returns.empty()) return;
  if (returns.size() == 1) {
    if (returns[0].type == Tag::Tensor) {
      results.tensors[0] = tensor_result(op, result);
      results.count = 1;
    } else if (returns[0].type == Tag::TensorList) {
      append_list(op, result, results.list);
    } else if (returns[0].type == Tag::IntList) {  // as number tensors
      PyRef sequence = sequence_result(op, result);
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence.get()); ++i)
        results.list.push_back(wrapped_number(Scalar(to_int(PySequence_Fast_GET_ITEM(sequence.get(), i)))));
    } else {
      results.plain = plain_result(returns[0], result);
    }
    return;
  }
  PyRef sequence = sequence_result(op, result);
  RL_CHECK(PySequence_Fast_GET_SIZE(sequence.get()) == static_cast<Py_ssize_t>(returns.size()), op.name(),
           ": a Python implementation returned ", int64_t{PySequence_Fast_GET_SIZE(sequence.get())},
           " values, expected ", returns.size());
  RL_CHECK(returns.size() <= Results::kMax, op.name(), ": an operator has at most ", Results::kMax,
           " results, not ", returns.size());
  for (size_t i = 0; i < returns.size(); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(sequence.get(), static_cast<Py_ssize_t>(i));
    results.tensors[i] = returns[i].type == Tag::TensorList
                             ? wrapped_number(Scalar(append_list(op, item, results.list)))
                             : tensor_result(op, item);
  }
  results.count = static_cast<int>(returns.size());
}

// --- the interceptor

namespace {

// The operands whose classes dispatch, one of each class, subclasses before their bases.
std::vector<PyRef> dispatching_operands(const Frame& frame) {
  std::vector<PyRef> found;
  auto add = [&](const Tensor& t) {
    if (!(t->flags & kPythonDispatch)) return;
    PyRef o(wrap(t));
    size_t at = found.size();
    for (size_t i = 0; i < found.size(); ++i) {
      if (Py_TYPE(found[i].get()) == Py_TYPE(o.get())) return;
      if (at == found.size() && PyType_IsSubtype(Py_TYPE(o.get()), Py_TYPE(found[i].get()))) at = i;
    }
    found.insert(found.begin() + static_cast<std::ptrdiff_t>(at), std::move(o));
  };
  each_operand(frame, add);
  return found;
}

PyRef types_of(const std::vector<PyRef>& operands) {
  PyRef types(check(PyTuple_New(static_cast<Py_ssize_t>(operands.size()))));
  for (size_t i = 0; i < operands.size(); ++i)
    PyTuple_SET_ITEM(types.get(), static_cast<Py_ssize_t>(i),
                     Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(operands[i].get()))));
  return types;
}

struct Handled {
  PyObject *func, *types, *args, *kwargs;

  // `target` is a mode or a tensor; rules that a program registered for its type come first.
  PyRef call(const Op& op, PyObject* target, bool mode) const {
    if (PyObject* rule = op.made_in_python ? dispatch_rule(op, Py_TYPE(target)) : nullptr) {
      PyObject* first = mode ? target : reinterpret_cast<PyObject*>(Py_TYPE(target));
      return PyRef(check(PyObject_CallFunctionObjArgs(rule, first, func, types, args, kwargs, nullptr)));
    }
    PyRef hook(check(PyObject_GetAttr(target, hook_name)));  // a class's may be a method of its tensors
    return PyRef(check(PyObject_CallFunctionObjArgs(hook.get(), func, types, args, kwargs, nullptr)));
  }
};

[[noreturn]] void throw_unhandled(PyObject* func, PyObject* mode, const std::vector<PyRef>& operands) {
  PyRef name(check(PyObject_Str(func)));
  std::string text = str("Multiple dispatch failed for '", string_view(name.get()),
                         "'; all __torch_dispatch__ handlers returned NotImplemented:\n\n");
  if (mode) {
    PyRef shown(check(PyObject_Repr(mode)));
    text += str("  - mode object ", string_view(shown.get()), "\n");
  }
  for (const PyRef& o : operands) {
    PyRef shown(check(PyObject_Repr(reinterpret_cast<PyObject*>(Py_TYPE(o.get())))));
    text += str("  - tensor subclass ", string_view(shown.get()), "\n");
  }
  throw_python(PyExc_TypeError,
               text + "\nFor more information, try re-running with TORCH_LOGS=not_implemented");
}

PyRef run_handlers(const Frame& frame, const Handled& call, const std::vector<PyRef>& operands) {
  PyRef mode;
  if (dispatch_modes().active()) {
    ModeScope scope(dispatch_modes());
    mode = PyRef::borrow(scope.mode());
    PyRef result = call.call(frame.op, scope.mode(), true);
    if (result.get() != Py_NotImplemented) return result;
  }
  for (const PyRef& o : operands) {
    PyRef result = call.call(frame.op, o.get(), false);
    if (result.get() != Py_NotImplemented) return result;
  }
  throw_unhandled(call.func, mode.get(), operands);
}

bool counts_versions(const Tensor& t) { return t.defined() && !(t->flags & kInference); }

// A class that computes elsewhere does not count the write on its own tensor.
struct Written {
  std::vector<std::pair<Tensor, uint32_t>> tensors;

  explicit Written(const Frame& frame) {
    auto add = [&](const Tensor& t) {
      if (counts_versions(t)) tensors.emplace_back(t, t.version());
    };
    each_operand(frame.op.mutated, frame.args, add);
    if (frame.out)
      for (int i = 0; i < target_count(frame); ++i) add(frame.out[i]);
  }
  void count(const Op& op) const {
    for (const auto& [t, before] : tensors)
      if (t.version() == before) t.bump_version(&op.schema.name);
  }
};

void take_results(Frame& frame, PyObject* result) {
  const Op& op = frame.op;
  if (frame.out) {
    const size_t n = frame.inplace ? 1 : op.schema.returns.size();
    for (size_t i = 0; i < n; ++i) frame.results.tensors[i] = frame.out[i];
    frame.results.count = static_cast<int>(n);
  } else if ((op.mutated & 1) && op.schema.returns.size() == 1 && op.schema.returns[0].mutated) {
    frame.results.tensors[0] = frame.args[0].tensor();
    frame.results.count = 1;
  } else {
    unbox_results(op, result, frame.results);
  }
}

bool is_hollow(const Tensor& t) { return t->storage && !t.has_data() && !t->wrapping; }

// What a class or a mode answers for a view is a tensor of its own. Writes to it must reach the history of
// what it is a view of, as those to views that kernels make: Note [Views].
void link_view(const Op& op, const Tensor& base, const Tensor& result, uint32_t made_under) {
  if (!result.defined() || result->autograd || result.is_same(base)) return;
  if (result->view_base) {  // a handler's own view, which was made without gradients, as all within a handler
    const bool whole = result->view_base.get() == (base->view_base ? base->view_base.get() : base.impl());
    if (whole && !made_under) result->flags &= ~uint32_t{kNoGradView};
    return;
  }
  if (result.dtype() != base.dtype() && !is_complex(result.dtype()) && !is_complex(base.dtype())) return;
  if (result->storage != base->storage) {
    if (!is_hollow(result) || !is_hollow(base)) return;  // a copy
    result->storage = base->storage;
    result->version = base->version;
  }
  const uint32_t inherited = base->view_base ? base->flags & (kNoGradView | kMultiView) : 0;
  result->view_base = base->view_base ? base->view_base : Ref<TensorImpl>::share(base.impl());
  result->flags |= made_under | inherited;
  if (op.schema.returns[0].type == Tag::TensorList) result->flags |= kMultiView;
}

// What is cut from the graph (`detach`) still counts the writes to its memory.
void share_version(const Tensor& base, const Tensor& result) {
  if (!result.defined() || result.is_same(base) || !is_hollow(result) || !is_hollow(base)) return;
  result->storage = base->storage;
  result->version = base->version;
}

void link_views(const Frame& frame, uint32_t made_under) {
  const Op& op = frame.op;
  if (op.family != Family::View || op.mutated || frame.out || frame.inplace) return;
  if (frame.args[0].tag() != Tag::Tensor) return;
  const Tensor& base = frame.args[0].tensor();
  if (base->flags & kInference) return;
  if (!op.derivative) {
    for (int i = 0; i < frame.results.count; ++i) share_version(base, frame.results.tensors[i]);
    return;
  }
  for (int i = 0; i < frame.results.count; ++i) link_view(op, base, frame.results.tensors[i], made_under);
  for (const Tensor& t : frame.results.list) link_view(op, base, t, made_under);
}

Form form_of(const Frame& frame) {
  return frame.inplace ? Form::Inplace : frame.out ? Form::Out : Form::Functional;
}

// The object of torch.ops for a call: where a number stands for a tensor, PyTorch has an overload of its own.
PyRef called_overload(const Frame& frame) {
  const auto is_number = [](const Value& v) {
    return v.tag() == Tag::Tensor && v.tensor().defined() && v.tensor().is_wrapped_number();
  };
  PyObject* func = overload_object(frame.op, form_of(frame));
  const int count = frame.arg_count();
  if (frame.op.traits.numbers == Numbers::None || count < 2 || is_number(frame.args[0]))
    return PyRef::borrow(func);
  const PyRef other(check(PyObject_GetAttr(func, with_number_name)));
  if (!PyTuple_Check(other.get())) return PyRef::borrow(func);
  const Py_ssize_t at = PyLong_AsSsize_t(PyTuple_GET_ITEM(other.get(), 1));
  return PyRef::borrow(at < count && is_number(frame.args[at]) ? PyTuple_GET_ITEM(other.get(), 0) : func);
}

void dispatch_python(Frame& frame) {
  GilAcquire gil;
  const std::vector<PyRef> operands = dispatching_operands(frame);
  if (operands.empty() && !dispatch_modes().active()) {
    if (!modes_are_disabled() && kernels_are_replaced() && run_replaced_kernel(frame)) return;
    return frame.proceed();
  }
  const PyRef func = called_overload(frame);
  const PyRef types = types_of(operands);
  const BoxedCall boxed = box_call(frame);
  const Written written(frame);
  const uint32_t made_under = view_flags;  // the caller's: handlers run without gradients
  BelowTransforms scope;
  const PyRef result =
      run_handlers(frame, Handled{func.get(), types.get(), boxed.args.get(), boxed.kwargs.get()}, operands);
  take_results(frame, result.get());
  link_views(frame, made_under);
  written.count(frame.op);
}

void pre_dispatch(Frame& frame) {
  GilAcquire gil;
  const PyRef func = called_overload(frame);
  const std::vector<PyRef> operands = dispatching_operands(frame);
  const PyRef types = types_of(operands);
  const BoxedCall boxed = box_call(frame);
  const Handled handled{func.get(), types.get(), boxed.args.get(), boxed.kwargs.get()};
  PyRef result, mode;
  {
    ModeScope scope(pre_dispatch_modes());
    mode = PyRef::borrow(scope.mode());
    result = handled.call(frame.op, scope.mode(), true);
  }
  if (result.get() != Py_NotImplemented) return take_results(frame, result.get());
  if (operands.empty()) throw_unhandled(func.get(), mode.get(), {});
  frame.proceed();  // a class that answers is asked at its turn
}

// --- contexts

// Python's with-statement over a change of the thread's dispatch state.
struct StateGuard {
  PyObject_HEAD uint32_t consider;
  bool grad_enabled, disabled;
  uint32_t always, view_flags;
};
PyObject* disable_enter(PyObject* self, PyObject*) {
  auto* g = reinterpret_cast<StateGuard*>(self);
  g->consider = dispatch_state.consider;
  g->disabled = disable_modes(true);
  dispatch_state.consider &= ~uint32_t{kPythonDispatch};
  Py_RETURN_NONE;
}
PyObject* disable_exit(PyObject* self, PyObject*) {
  auto* g = reinterpret_cast<StateGuard*>(self);
  disable_modes(g->disabled);
  dispatch_state.consider |= g->consider & kPythonDispatch;
  Py_RETURN_FALSE;
}
PyObject* below_enter(PyObject* self, PyObject*) {
  auto* g = reinterpret_cast<StateGuard*>(self);
  g->consider = dispatch_state.consider;
  g->grad_enabled = dispatch_state.grad_enabled;
  dispatch_state.consider &= ~uint32_t{kAutograd};
  dispatch_state.grad_enabled = false;
  Py_RETURN_NONE;
}
PyObject* below_exit(PyObject* self, PyObject*) {
  auto* g = reinterpret_cast<StateGuard*>(self);
  dispatch_state.grad_enabled = g->grad_enabled;
  dispatch_state.consider |= g->consider & kAutograd;
  Py_RETURN_FALSE;
}
PyObject* reentrant_enter(PyObject* self, PyObject*) {
  auto* g = reinterpret_cast<StateGuard*>(self);
  g->always = dispatch_state.always;
  g->consider = dispatch_state.consider;
  g->grad_enabled = dispatch_state.grad_enabled;
  g->view_flags = view_flags;
  if (const BelowTransforms* below = BelowTransforms::innermost()) below->restore_caller();
  watch_python_dispatch();
  Py_RETURN_NONE;
}
PyObject* reentrant_exit(PyObject* self, PyObject*) {
  auto* g = reinterpret_cast<StateGuard*>(self);
  dispatch_state.always = g->always;
  dispatch_state.consider = g->consider;
  dispatch_state.grad_enabled = g->grad_enabled;
  view_flags = g->view_flags;
  watch_python_dispatch();
  Py_RETURN_FALSE;
}
PyMethodDef disable_methods[] = {{"__enter__", disable_enter, METH_NOARGS, nullptr},
                                 {"__exit__", disable_exit, METH_VARARGS, nullptr},
                                 {}};
PyMethodDef below_methods[] = {
    {"__enter__", below_enter, METH_NOARGS, nullptr}, {"__exit__", below_exit, METH_VARARGS, nullptr}, {}};
PyMethodDef reentrant_methods[] = {{"__enter__", reentrant_enter, METH_NOARGS, nullptr},
                                   {"__exit__", reentrant_exit, METH_VARARGS, nullptr},
                                   {}};
PyTypeObject guard_type(const char* name, const char* doc, PyMethodDef* methods) {
  PyTypeObject type{.ob_base = {PyObject_HEAD_INIT(nullptr) 0}};
  type.tp_name = name;
  type.tp_basicsize = sizeof(StateGuard);
  type.tp_flags = Py_TPFLAGS_DEFAULT;
  type.tp_doc = doc;
  type.tp_methods = methods;
  type.tp_new = PyType_GenericNew;
  return type;
}
PyTypeObject DisableTorchDispatchType =
    guard_type("rushlight._C._DisableTorchDispatch", "A context in which no __torch_dispatch__ is called.",
               disable_methods);
PyTypeObject BelowAutogradType = guard_type("rushlight._C._AutoDispatchBelowAutograd",
                                            "A context in which autograd does not record.", below_methods);
PyTypeObject RestoreCallerType = guard_type(
    "rushlight._C._RestorePythonTLSSnapshot",
    "A context in a handler in which operators are recorded as for its caller.", reentrant_methods);

Scalar ask_scalar(const Tensor& t) {
  static const Op& op = *operator_table().find("", "_local_scalar_dense")[0];
  const Value argument(t);
  Results results;
  call_boxed(op, &argument, results);
  return results.plain.scalar();
}

}  // namespace

Scalar read_item(const Tensor& t) {
  const uint32_t watched = dispatch_state.always | (t->flags & dispatch_state.consider);
  return watched & (kPythonDispatch | kPreDispatch) ? ask_scalar(t) : read_scalar(t);
}

void init_torch_dispatch(PyObject* module) {
  init_mode_stacks(module);
  add_type(module, "_DisableTorchDispatch", &DisableTorchDispatchType);
  add_type(module, "_AutoDispatchBelowAutograd", &BelowAutogradType);
  add_type(module, "_RestorePythonTLSSnapshot", &RestoreCallerType);
  set_interceptor(kPythonDispatch, dispatch_python);
  set_interceptor(static_cast<TensorFlag>(kPreDispatch), pre_dispatch);
  read_dispatched_scalar = ask_scalar;
}

}  // namespace rushlight::python
