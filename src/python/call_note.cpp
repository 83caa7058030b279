#include "python/call_note.h"

#include "python/op_function.h"
#include "python/package_name.h"

namespace rushlight::python {
namespace {

constexpr size_t kTensorsShown = 6;  // of a list

std::string describe_tensor(const Tensor& t) {
  if (!t.defined()) return "None";
  if (t.is_wrapped_number()) return to_string(read_scalar(t));
  std::string text = str(t.dtype(), to_string(t.sizes()));
  if (!t.device().is_cpu()) text += str(" on ", t.device());
  return text;
}

std::string describe_tensors(TensorList list) {
  std::string text = "[";
  for (size_t i = 0; i < list.size(); ++i) {
    if (i) text += ", ";
    if (i == kTensorsShown) {
      text += str("... ", list.size(), " in all");
      break;
    }
    text += describe_tensor(list[i]);
  }
  return text + "]";
}

std::string represent(const Value& v) {
  PyRef object(wrap_value(v));
  PyRef text(object ? PyObject_Repr(object.get()) : nullptr);
  if (text) return std::string(string_view(text.get()));
  PyErr_Clear();
  return "?";
}

std::string describe(const Value& v) {
  if (v.is_none()) return "None";
  if (v.tag() == Tag::Tensor) return describe_tensor(v.tensor());
  if (v.tag() == Tag::TensorList) return describe_tensors(v.tensors());
  if (v.tag() == Tag::IntList) return to_string(v.ints());
  return represent(v);
}

std::string public_name(const Op& op) {
  std::string_view name = op.name();
  if (name.starts_with("_")) name.remove_prefix(1);  // _einsum, which Python wraps
  const std::string_view space = op.schema.space;
  return space.empty() || space == "nn" ? std::string(name) : str(space, ".", name);
}

bool is_default(const Parameter& parameter, const Value& v) {
  if (!parameter.has_default) return false;
  if (parameter.default_value.is_none() || v.is_none())
    return parameter.default_value.is_none() && v.is_none();
  return parameter.type != Tag::Tensor && represent(parameter.default_value) == represent(v);
}

// rushlight._errors.advice.add_notes, imported by the first error.
PyObject* note_function() {
  static constinit Lazy function;
  try {
    return function.get([] {
      PyRef module(check(PyImport_ImportModule((package_name() + "._errors.advice").c_str())));
      return check(PyObject_GetAttrString(module.get(), "add_notes"));
    });
  } catch (PythonError& e) {
    e.restore();
    return nullptr;
  }
}

}  // namespace

std::string describe_call(const Op& op, const Value* values, bool inplace) {
  std::string text = str("in ", public_name(op), inplace ? "_(" : "(");
  bool first = true;
  for (size_t i = 0; i < op.schema.parameters.size(); ++i) {
    const Parameter& parameter = op.schema.parameters[i];
    if (is_default(parameter, values[i])) continue;
    if (!first) text += ", ";
    first = false;
    const bool tensors = parameter.type == Tag::Tensor || parameter.type == Tag::TensorList;
    text += str(parameter.name, tensors ? ": " : "=", describe(values[i]));
  }
  return text + ")";
}

void add_notes(const std::string& call) noexcept {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  PyObject* function = note_function();
  PyRef done(function ? PyObject_CallFunction(function, "Os", value, call.c_str()) : nullptr);
  if (!done) PyErr_Clear();  // the notes matter less than the error
  PyErr_Restore(type, value, traceback);
}

}  // namespace rushlight::python
