// Which outputs may share memory with what an operator reads (traits.out, traits.out_overlap).
#pragma once
#include "dispatch/op.h"

namespace rushlight {

// Refuses targets of out= that overlap operands or themselves where the operator's traits say so.
void check_output_overlap(const Op& op, const Value* args, const Tensor* out, size_t count);

}  // namespace rushlight
