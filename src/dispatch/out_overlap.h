// What outputs may be: which may share memory with what an operator reads (traits.out, traits.out_overlap),
// and of which type they are where a call says so.
#pragma once
#include "dispatch/op.h"

namespace rushlight {

// Refuses targets of out= that overlap operands or themselves where the operator's traits say so.
void check_output_overlap(const Op& op, const Value* args, const Tensor* out, size_t count);
// Refuses an out= of another type than dtype= asks for.
void check_output_dtype(const Op& op, const Value* args, const Tensor& out);

}  // namespace rushlight
