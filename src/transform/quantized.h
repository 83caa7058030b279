// Quantised operands, and those of other types that no kernel knows. Note [Quantised tensors] in
// core/quantizer.h
#pragma once

namespace rushlight {

struct Frame;

// Whether an operand, or what is written to, has such a type.
bool has_special_dtype(const Frame& frame);
void special_dtype_call(Frame& frame);

}  // namespace rushlight
