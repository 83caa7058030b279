// What out= may share its memory with.
#pragma once

#include "dispatch/op.h"

namespace rushlight {

// Refuses an output that partly overlaps an operand, for the operators with which PyTorch does. Element-wise
// operators look at their operands themselves, those of exact_out refuse every overlap.
void check_shared_outputs(const Op& op, const Value* args, const Tensor* out, size_t count);

// Whether the first operand may itself be the output, though no other may overlap it: its elements are where
// the call begins.
bool starts_from_output(const Op& op);

}  // namespace rushlight
