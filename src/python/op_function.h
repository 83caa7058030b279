// Operators as Python callables: one vectorcall type over the operator table.
#pragma once
#include "python/parse.h"

namespace rushlight::python {

// The overloads of one name; signatures are worked out on the first call.
struct OverloadSet {
  std::string_view space, name;
  std::vector<const Op*> ops;
};

struct OpFunction {
  PyObject_HEAD vectorcallfunc vectorcall;
  const OverloadSet* set;
  std::atomic<const std::vector<const SignatureSpec*>*> specs;  // made by the first call
  PyObject* name;                                               // "add", "add_"
  const char* text_name;
  bool method, inplace;
  PyObject* shown;  // what __torch_function__ is told was called, when it is not this object: borrowed
};
extern PyTypeObject OpFunctionType, OpMethodType;

// An operator called from C++ with Python arguments.
PyObject* call_operator(OpFunction* f, PyObject* const* args, size_t count, PyObject* kwnames = nullptr);
// The function or method of that name; null when no such operator is registered.
OpFunction* find_function(std::string_view space, std::string_view name);
OpFunction* find_method(std::string_view name);

// Some overloads alone, with the schema's own parameter names: what torch.ops calls.
OpFunction* make_overload(std::vector<const Op*> ops, bool inplace);

// Runs the record on parsed arguments and converts what it returns.
PyObject* run_operator(const SignatureSpec& spec, Arguments& a);
// Of a call, `written` if to tensors of out=. In convert.cpp.
PyObject* wrap_results(const Op& op, Results& results, bool written);
PyObject* wrap_value(const Value& v);
PyObject* return_type(PyObject* module, PyObject* name);
PyObject* make_return_type(PyObject* module, PyObject* args);
PyObject* wrap_scalar(const Scalar& s);

const std::vector<const SignatureSpec*>& specs_of(OpFunction* f);
// What the overloads accept, as a list of dicts (records.cpp).
PyObject* overloads_of(OpFunction* f);
// The text or signature that the function of that name in rushlight._operators.signatures makes of them.
PyObject* describe(OpFunction* f, const char* how);

// The value of a one-element tensor, as a dispatching class or mode sees it read (torch_dispatch.cpp).
Scalar read_item(const Tensor& t);

// __torch_function__ (overrides.cpp).
struct FunctionState {
  bool subclasses_enabled = true;
  bool modes_enabled = true;
  uint32_t mode_count = 0;  // of mode_stack() in overrides.cpp
  bool mode_active() const { return modes_enabled && mode_count > 0; }
};
extern constinit thread_local FunctionState function_state __attribute__((tls_model("initial-exec")));
extern PyObject *disabled_torch_function, *disabled_torch_dispatch;
bool type_has_torch_function(PyTypeObject* type);
// Whether using the tensor may run a __torch_function__: of its class, or of a mode.
inline bool may_be_overridden(const Tensor& t) {
  return function_state.mode_active() || ((t->flags & kPythonSubclass) && function_state.subclasses_enabled);
}
// Runs the override of Tensor.`name`, given up to two more arguments; null when there is none
// (tensor_override.cpp).
PyObject* override_slot(const char* name, PyObject* self, PyObject* second = nullptr,
                        PyObject* third = nullptr);
// Calls the overrides of the arguments; null with no error set when none of them applies.
PyObject* dispatch_torch_function(PyObject* callable, const CallArgs& call);

}  // namespace rushlight::python
