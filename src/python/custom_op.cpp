// Operators that the running program defines: real records whose kernels are Python functions.
#include "autograd/meta.h"
#include "dispatch/operands.h"
#include "dispatch/table.h"
#include "python/torch_dispatch.h"
#include "python/types.h"
#include "transform/autocast.h"
#include "transform/autograd.h"
#include "transform/vmap.h"

namespace rushlight::python {
namespace {

struct CustomOp {
  // What a record's kernel pointer points at: the trampoline learns the device from it.
  struct Slot {
    DeviceType device;
    PyObject* function = nullptr;
    PyObject* autocast = nullptr;  // runs in its place in a region
  };
  std::array<Slot, kDeviceTypeCount> slots;
  PyObject* any_device = nullptr;
  PyObject* autograd = nullptr;
  PyObject* batching = nullptr;  // from register_vmap
  PyObject* rules = nullptr;     // dict: type -> function, from register_torch_dispatch
  bool watched = false;          // a backward pass that reaches it warns that it has no derivative
  std::string schema;
  uint32_t intercepted = 0;  // by the record, as it was defined
};

const CustomOp& custom(const Op& op) { return *static_cast<const CustomOp*>(op.made_in_python); }

std::string qualified(const Op& op) {
  const auto& s = op.schema;
  return s.overload.empty() ? str(s.space, "::", s.name) : str(s.space, "::", s.name, ".", s.overload);
}

[[noreturn]] void throw_no_kernel(const Op& op, DeviceType device) {
  const std::string name = qualified(op);
  if (device == DeviceType::Meta)
    RL_NOT_IMPLEMENTED(
        name,
        ": attempted to run this operator with Meta tensors, but there was no fake impl or Meta "
        "kernel registered. Please use torch.library.register_fake to add one.");
  RL_NOT_IMPLEMENTED("Could not run '", name, "' with arguments from the '", device_type_name(device),
                     "' backend. This could be because the operator doesn't exist for this backend; register "
                     "a kernel for it with torch.library.register_kernel or Library.impl.");
}

bool warns_of_missing_derivatives = true;

bool is_watched(const CustomOp& op, const Call& call, const Value* args) {
  if (!op.watched || op.autograd || !warns_of_missing_derivatives || call.op.family == Family::Composite ||
      !(dispatch_state.consider & kAutograd))
    return false;
  bool wanted = false;
  each_operand(call.op, args, [&](const Tensor& t) { wanted |= requires_grad(t); });
  return wanted;
}

// The results with hooks and nodes that warn when a gradient comes.
PyRef watch(const Op& op, const BoxedCall& boxed, PyRef result) {
  PyRef module(check(PyImport_ImportModule("rushlight._library.autograd")));
  return PyRef(check(PyObject_CallMethod(module.get(), "watched", "sOOO", qualified(op).c_str(),
                                         boxed.args.get(), boxed.kwargs.get(), result.get())));
}

void run_in_python(const void* kernel, const Call& call, const Value* args, Results& results) {
  GilAcquire gil;
  const auto& slot = *static_cast<const CustomOp::Slot*>(kernel);
  const CustomOp& op = custom(call.op);
  PyObject* function = slot.function ? slot.function : op.any_device;
  if (!function) throw_no_kernel(call.op, slot.device);
  const PyRef keep = PyRef::borrow(function);
  const BoxedCall boxed = box_call(Frame{call.op, args, nullptr, false, 0, results});
  PyRef result(check(PyObject_Call(function, boxed.args.get(), boxed.kwargs.get())));
  if (is_watched(op, call, args)) result = watch(call.op, boxed, std::move(result));
  unbox_results(call.op, result.get(), results);
}

// In place of a derivative in C++: a function that runs the operator below autograd and records it.
void record_in_python(Frame& frame) {
  GilAcquire gil;
  PyObject* function = custom(frame.op).autograd;
  if (!function) return frame.proceed();
  const PyRef keep = PyRef::borrow(function);
  const BoxedCall boxed = box_call(frame);
  const PyRef result(check(PyObject_Call(function, boxed.args.get(), boxed.kwargs.get())));
  unbox_results(frame.op, result.get(), frame.results);
}

bool autocast_in_python(Frame& frame, DeviceType device) {
  PyObject* function = custom(frame.op).slots[static_cast<size_t>(device)].autocast;
  if (!function) return false;
  GilAcquire gil;
  const PyRef keep = PyRef::borrow(function);
  const BoxedCall boxed = box_call(frame);
  const PyRef result(check(PyObject_Call(function, boxed.args.get(), boxed.kwargs.get())));
  unbox_results(frame.op, result.get(), frame.results);
  return true;
}

const char* randomness_name(Randomness r) {
  return r == Randomness::Error ? "error" : r == Randomness::Same ? "same" : "different";
}

// Where the examples are in each positional argument: 0, or None; lists of that for lists.
PyRef batch_dims(const BatchCall& c, Py_ssize_t positional) {
  auto dim_of = [&](const Tensor& t) {
    return PyRef(t.defined() && c.is_batched(t) ? PyLong_FromLong(0) : Py_NewRef(Py_None));
  };
  PyRef dims(check(PyTuple_New(positional)));
  for (Py_ssize_t i = 0; i < positional; ++i) {
    const Value& v = c.arg(static_cast<int>(i));
    PyRef dim = v.tag() == Tag::Tensor ? dim_of(v.tensor()) : PyRef::borrow(Py_None);
    if (v.tag() == Tag::TensorList) {
      dim = PyRef(check(PyList_New(0)));
      for (const Tensor& t : v.tensors()) check(PyList_Append(dim.get(), dim_of(t).get()));
    }
    PyTuple_SET_ITEM(dims.get(), i, dim.release());
  }
  return dims;
}

// Under vmap: the registered function sees operands with the examples in front; library.py puts its results
// so.
void batch_in_python(BatchCall& c) {
  GilAcquire gil;
  PyObject* rule = custom(c.op()).batching;
  if (!rule) return loop_over_examples(c);
  const Operands inner(c.frame(), [&](const Tensor& t, int) { return c.front(t); });
  const BoxedCall boxed = box_call(Frame{c.op(), inner.args(), nullptr, false, 0, c.results});
  const PyRef dims = batch_dims(c, PyTuple_GET_SIZE(boxed.args.get()));
  PyRef library(check(PyImport_ImportModule("rushlight.library")));
  const PyRef result(check(PyObject_CallMethod(
      library.get(), "_run_vmap_rule", "OLsOOO", rule, static_cast<long long>(c.size()),
      randomness_name(c.level().randomness), dims.get(), boxed.args.get(), boxed.kwargs.get())));
  unbox_results(c.op(), result.get(), c.results);
}

// --- from Python

Op& custom_by_id(PyObject* id) {
  const size_t i = PyLong_AsSize_t(id);
  if (i == static_cast<size_t>(-1) && PyErr_Occurred()) throw PythonError();
  const auto& ops = operator_table().ops();
  RL_CHECK_INDEX(i < ops.size() && ops[i].made_in_python, "there is no operator ", i, " made in Python");
  return const_cast<Op&>(ops[i]);
}
CustomOp& changeable(Op& op) { return *static_cast<CustomOp*>(const_cast<void*>(op.made_in_python)); }

// _define_operator("ns::name(Tensor x) -> Tensor"): its number.
PyObject* define_operator(PyObject*, PyObject* schema) {
  return guard([&] {
    auto own = std::make_unique<CustomOp>();
    own->schema = string_view(schema);
    for (int i = 0; i < kDeviceTypeCount; ++i) own->slots[i].device = static_cast<DeviceType>(i);
    Op& op = mutable_operator_table().define(own->schema.c_str(), run_in_python, nullptr);
    for (int i = 0; i < kDeviceTypeCount; ++i) op.kernel[i] = &own->slots[i];
    op.intercepted &= ~kAutograd;
    own->intercepted = op.intercepted;
    op.made_in_python = own.release();
    op.is_function = op.is_method = false;
    return PyLong_FromUnsignedLong(op.id);
  });
}

void replace(PyObject*& target, PyObject* value) {
  Py_XSETREF(target, value == Py_None ? nullptr : Py_NewRef(value));
}

PyObject*& kernel_of(Op& op, std::string_view device) {
  CustomOp& own = changeable(op);
  if (device == "any" || device == "composite") return own.any_device;
  for (auto& slot : own.slots)
    if (device_type_name(slot.device) == device) return slot.function;
  throw_python(PyExc_ValueError, str("no kernels can be registered for device type '", device, "'"));
}

// _set_operator_kernel(id, device, function): device "any" for all but meta, "composite" for all, also below
// autograd and modes: they see what the function calls.
PyObject* set_kernel(PyObject*, PyObject* args) {
  PyObject *id = nullptr, *device = nullptr, *function = nullptr;
  if (!PyArg_ParseTuple(args, "OUO", &id, &device, &function)) return nullptr;
  return guard([&]() -> PyObject* {
    Op& op = custom_by_id(id);
    replace(kernel_of(op, string_view(device)), function);
    if (string_view(device) == "composite") {
      op.family = Family::Composite;
      op.intercepted &= ~(kAutograd | kForwardGrad | kWrapped | kLowered | kPythonDispatch);
    }
    Py_RETURN_NONE;
  });
}
PyObject* get_kernel(PyObject*, PyObject* args) {
  PyObject *id = nullptr, *device = nullptr;
  if (!PyArg_ParseTuple(args, "OU", &id, &device)) return nullptr;
  return guard([&] {
    PyObject* function = kernel_of(custom_by_id(id), string_view(device));
    return Py_NewRef(function ? function : Py_None);
  });
}
PyObject* set_autograd(PyObject*, PyObject* args) {
  PyObject *id = nullptr, *function = nullptr;
  if (!PyArg_ParseTuple(args, "OO", &id, &function)) return nullptr;
  return guard([&]() -> PyObject* {
    Op& op = custom_by_id(id);
    replace(changeable(op).autograd, function);
    op.intercepted = function == Py_None ? op.intercepted & ~kAutograd : op.intercepted | kAutograd;
    Py_RETURN_NONE;
  });
}
// _watch_operator(id, watched): whether a backward pass warns when it lacks the operator's derivative.
PyObject* watch_operator(PyObject*, PyObject* args) {
  PyObject* id = nullptr;
  int watched = 0;
  if (!PyArg_ParseTuple(args, "Op", &id, &watched)) return nullptr;
  return guard([&]() -> PyObject* {
    changeable(custom_by_id(id)).watched = watched;
    Py_RETURN_NONE;
  });
}
PyObject* set_fallback_mode(PyObject*, PyObject* mode) {
  return guard([&]() -> PyObject* {
    const std::string_view name = PyUnicode_Check(mode) ? string_view(mode) : "";
    RL_CHECK_VALUE(name == "nothing" || name == "warn", "the mode is 'nothing' or 'warn'");
    warns_of_missing_derivatives = name == "warn";
    Py_RETURN_NONE;
  });
}
PyObject* get_fallback_mode(PyObject*, PyObject*) {
  return PyUnicode_FromString(warns_of_missing_derivatives ? "warn" : "nothing");
}
// _set_operator_autocast(id, device, function)
PyObject* set_autocast(PyObject*, PyObject* args) {
  PyObject *id = nullptr, *device = nullptr, *function = nullptr;
  if (!PyArg_ParseTuple(args, "OUO", &id, &device, &function)) return nullptr;
  return guard([&]() -> PyObject* {
    Op& op = custom_by_id(id);
    for (auto& slot : changeable(op).slots)
      if (device_type_name(slot.device) == string_view(device)) replace(slot.autocast, function);
    op.intercepted |= kAutocast;
    Py_RETURN_NONE;
  });
}
PyObject* set_batching(PyObject*, PyObject* args) {
  PyObject *id = nullptr, *function = nullptr;
  if (!PyArg_ParseTuple(args, "OO", &id, &function)) return nullptr;
  return guard([&]() -> PyObject* {
    replace(changeable(custom_by_id(id)).batching, function);
    Py_RETURN_NONE;
  });
}
PyObject* set_rule(PyObject*, PyObject* args) {
  PyObject *id = nullptr, *type = nullptr, *function = nullptr;
  if (!PyArg_ParseTuple(args, "OO!O", &id, &PyType_Type, &type, &function)) return nullptr;
  return guard([&]() -> PyObject* {
    CustomOp& own = changeable(custom_by_id(id));
    if (!own.rules) own.rules = check(PyDict_New());
    check(PyDict_SetItem(own.rules, type, function));
    Py_RETURN_NONE;
  });
}

// _forget_operator(id): as it was when it was defined, without functions. The record stays, for whoever still
// holds it or defines it again.
PyObject* forget_operator(PyObject*, PyObject* id) {
  return guard([&]() -> PyObject* {
    Op& op = custom_by_id(id);
    CustomOp& own = changeable(op);
    op.family = Family::Other;
    op.intercepted = own.intercepted;
    own.watched = false;
    for (auto& slot : own.slots) {
      Py_CLEAR(slot.function);
      Py_CLEAR(slot.autocast);
    }
    for (PyObject** function : {&own.any_device, &own.autograd, &own.batching, &own.rules})
      Py_CLEAR(*function);
    Py_RETURN_NONE;
  });
}

PyMethodDef functions[] = {{"_define_operator", define_operator, METH_O, nullptr},
                           {"_forget_operator", forget_operator, METH_O, nullptr},
                           {"_set_operator_kernel", set_kernel, METH_VARARGS, nullptr},
                           {"_get_operator_kernel", get_kernel, METH_VARARGS, nullptr},
                           {"_set_operator_autograd", set_autograd, METH_VARARGS, nullptr},
                           {"_watch_operator", watch_operator, METH_VARARGS, nullptr},
                           {"_set_autograd_fallback_mode", set_fallback_mode, METH_O, nullptr},
                           {"_get_autograd_fallback_mode", get_fallback_mode, METH_NOARGS, nullptr},
                           {"_set_operator_autocast", set_autocast, METH_VARARGS, nullptr},
                           {"_set_operator_batching", set_batching, METH_VARARGS, nullptr},
                           {"_set_operator_rule", set_rule, METH_VARARGS, nullptr},
                           {}};

}  // namespace

PyObject* dispatch_rule(const Op& op, PyTypeObject* type) {
  PyObject* rules = custom(op).rules;
  return rules ? PyDict_GetItem(rules, reinterpret_cast<PyObject*>(type)) : nullptr;
}

void init_custom_ops(PyObject* module) {
  add_functions(module, functions);
  record_custom_call = record_in_python;
  autocast_custom_call = autocast_in_python;
  custom_batch_entry.rule = batch_in_python;
}

}  // namespace rushlight::python
