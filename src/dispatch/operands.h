// The tensors of a call: its operands, and what it writes to.
#pragma once
#include <bit>

#include "dispatch/op.h"

namespace rushlight {

// Calls f(tensor) for each operand among `parameters` (bits), elements of lists included. Absent ones are
// left out.
template <class F>
void each_operand(uint64_t parameters, const Value* args, F&& f) {
  for (; parameters; parameters &= parameters - 1) {
    const Value& v = args[std::countr_zero(parameters)];
    if (v.tag() == Tag::Tensor) {
      if (v.tensor().defined()) f(v.tensor());
    } else if (v.tag() == Tag::TensorList) {
      for (const Tensor& t : v.tensors())
        if (t.defined()) f(t);
    }
  }
}
template <class F>
void each_operand(const Op& op, const Value* args, F&& f) {
  each_operand(op.tensor_parameters, args, std::forward<F>(f));
}

// Bits of the parameters that a call writes to; what out= names is not among them.
inline uint64_t written_parameters(const Frame& frame) { return frame.op.mutated | (frame.inplace ? 1 : 0); }

// out= and in-place: how many tensors are written.
inline int target_count(const Frame& frame) {
  return frame.inplace ? 1 : static_cast<int>(frame.op.schema.returns.size());
}
// The operands, then what out= or an in-place call writes to.
template <class F>
void each_operand(const Frame& frame, F&& f) {
  each_operand(frame.op, frame.args, f);
  if (frame.out)
    for (int i = 0; i < target_count(frame); ++i) f(frame.out[i]);
}
}  // namespace rushlight
