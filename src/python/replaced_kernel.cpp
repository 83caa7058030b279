// Kernels of built-in operators that a program replaces (torch.library.Library.impl on "aten").
#include "python/replaced_kernel.h"

#include <map>

#include "dispatch/operands.h"
#include "dispatch/table.h"
#include "python/mode_stack.h"
#include "python/types.h"

namespace rushlight::python {
namespace {

struct Replacement {
  PyObject* function = nullptr;  // owned
  bool records = false;          // in place of the derivative: what it calls is recorded
};
struct Key {
  uint32_t op;
  Form form;
  DeviceType device;
  auto operator<=>(const Key&) const = default;
};

std::map<Key, Replacement>& replacements() {
  static std::map<Key, Replacement> found;
  return found;
}

DeviceType device_of(const Frame& frame) {
  Device found;
  auto look = [&](const Tensor& t) {
    if (!t.is_cpu()) found = t.device();
  };
  each_operand(frame, look);
  for (int i = 0; i < frame.arg_count(); ++i)
    if (frame.args[i].tag() == Tag::Device) found = frame.args[i].device();
  return found.type();
}

DeviceType named_device(std::string_view name) {
  for (int i = 0; i < kDeviceTypeCount; ++i)
    if (device_type_name(static_cast<DeviceType>(i)) == name) return static_cast<DeviceType>(i);
  throw_python(PyExc_ValueError, str("no kernels can be replaced for device type '", name, "'"));
}

bool any_records(uint32_t id) {
  for (const auto& [key, replacement] : replacements())
    if (key.op == id && replacement.records) return true;
  return false;
}

// _replace_kernel(id, form, device, function or None, records): None gives the built-in one back.
PyObject* replace_kernel(PyObject*, PyObject* args) {
  unsigned id = 0;
  int form = 0, records = 0;
  const char* device = nullptr;
  PyObject* function = nullptr;
  if (!PyArg_ParseTuple(args, "IisOp", &id, &form, &device, &function, &records)) return nullptr;
  return guard([&]() -> PyObject* {
    const auto& ops = operator_table().ops();
    RL_CHECK_INDEX(id < ops.size(), "there is no operator ", id);
    Op& op = const_cast<Op&>(ops[id]);
    static std::map<uint32_t, uint32_t> intercepted;  // of operators as they were
    intercepted.try_emplace(id, op.intercepted);
    Replacement& at = replacements()[Key{id, static_cast<Form>(form), named_device(device)}];
    const PyRef before(at.function);
    at = Replacement{Py_NewRef(function), records != 0};
    if (function == Py_None) {
      Py_DECREF(at.function);
      replacements().erase(Key{id, static_cast<Form>(form), named_device(device)});
    }
    // A composite is met like any other operator meanwhile.
    op.intercepted = function == Py_None ? intercepted[id] : op.intercepted | kPythonDispatch;
    if (any_records(id)) op.intercepted &= ~kAutograd;
    watch_python_dispatch();
    Py_RETURN_NONE;
  });
}

// _skip_autocast(id, device, skip): the operator takes its operands as they are, or casts as its record says.
PyObject* skip_autocast(PyObject*, PyObject* args) {
  unsigned id = 0;
  int skip = 0;
  const char* device = nullptr;
  if (!PyArg_ParseTuple(args, "Isp", &id, &device, &skip)) return nullptr;
  return guard([&]() -> PyObject* {
    const auto& ops = operator_table().ops();
    RL_CHECK_INDEX(id < ops.size(), "there is no operator ", id);
    Traits& traits = const_cast<Op&>(ops[id]).traits;
    static std::map<uint32_t, Traits> as_recorded;
    const Traits& recorded = as_recorded.try_emplace(id, traits).first->second;
    const bool cuda = named_device(device) == DeviceType::CUDA;
    Cast& cast = cuda ? traits.autocast_cuda : traits.autocast_cpu;
    cast = skip ? Cast::None : cuda ? recorded.autocast_cuda : recorded.autocast_cpu;
    Py_RETURN_NONE;
  });
}

PyMethodDef functions[] = {{"_replace_kernel", replace_kernel, METH_VARARGS, nullptr},
                           {"_skip_autocast", skip_autocast, METH_VARARGS, nullptr},
                           {}};

}  // namespace

bool kernels_are_replaced() { return !replacements().empty(); }

bool run_replaced_kernel(Frame& frame) {
  const Form form = frame.inplace ? Form::Inplace : frame.out ? Form::Out : Form::Functional;
  const auto found = replacements().find(Key{frame.op.id, form, device_of(frame)});
  if (found == replacements().end()) return false;
  const PyRef keep = PyRef::borrow(found->second.function);
  const BoxedCall boxed = box_call(frame);
  if (found->second.records) {
    const PyRef result(check(PyObject_Call(keep.get(), boxed.args.get(), boxed.kwargs.get())));
    unbox_results(frame.op, result.get(), frame.results);
  } else {
    const BelowTransforms scope;
    const PyRef result(check(PyObject_Call(keep.get(), boxed.args.get(), boxed.kwargs.get())));
    unbox_results(frame.op, result.get(), frame.results);
  }
  return true;
}

void init_replaced_kernels(PyObject* module) { add_functions(module, functions); }

}  // namespace rushlight::python
