// __torch_dispatch__: classes and modes that see every operator that really runs. Note [Python dispatch]
#pragma once
#include "python/op_function.h"

namespace rushlight::python {

// The forms of a record that torch.ops shows.
enum class Form : uint8_t { Functional, Inplace, Out };

// On a tensor that no Python object stood for before a handler was told of it: made within the operator's
// caller.
constexpr uint32_t kBoxedTemporary = 1u << 16;

// torch.ops.<namespace>.<name>.<overload>, borrowed: it lives as long as the process.
PyObject* overload_object(const Op& op, Form form);
// A borrowed argument as torch.ops shows it: lists are lists, a number that stood in for a tensor is a
// number.
PyRef box_value(const Value& v);
// What a Python implementation returned, for the operator's caller.
//
// Note [Mixed results]
// An operator with several results may have numbers and lists among them. In Results, whose `tensors` has one
// entry for each, a number stands as a number tensor, and a list as its length: its elements follow those of
// the lists before it in `list`. Only operators that a program defines have such results.
void unbox_results(const Op& op, PyObject* result, Results& results);

// The arguments of a call as torch.ops takes them, trailing defaults left out.
struct BoxedCall {
  PyRef args, kwargs;
};
BoxedCall box_call(const Frame& frame);

// Whether `type` defines a __torch_dispatch__ of its own.
bool type_has_torch_dispatch(PyTypeObject* type);

// Below these, operators are neither recorded nor transformed: they are what a recorded call consists of.
class BelowTransforms {
 public:
  BelowTransforms();
  ~BelowTransforms();
  BelowTransforms(const BelowTransforms&) = delete;

  static const BelowTransforms* innermost();  // on this thread, or null
  void restore_caller() const;                // operators are what they were for the recorded call's caller

 private:
  uint32_t always_, consider_;
  bool grad_enabled_;
  uint32_t view_flags_;
  const BelowTransforms* outer_;
};

// Operators that the program itself defines (custom_op.cpp).
PyObject* dispatch_rule(const Op& op, PyTypeObject* type);  // borrowed, or null

}  // namespace rushlight::python
