// What the files of the indexing family share.
#pragma once
#include "cpu/index.h"
#include "dispatch/table.h"

namespace rushlight {

// What an in-place capable kernel works on: the in-place target itself, or a contiguous copy of self.
Tensor working_copy(const Call& call, const Tensor& self);
// In place: the target is not expanded and shares no memory with what is read.
void check_written_alone(const Call& call, std::initializer_list<Tensor> operands);
// The written tensor shares no memory with the indices, where both lie in memory without gaps.
void check_apart_from(const Tensor& target, TensorList indices);
// Writes to expanded tensors that older programs still do, and PyTorch allows.
void warn_of_expanded(const Tensor& target, const char* who, const char* statement);
// `t` as int64; other integer types are converted.
Tensor as_positions(const Tensor& index, const char* who);
// `t` itself, or a copy when it shares memory with `target`, which is about to be written.
Tensor apart_from(const Tensor& target, const Tensor& t);
Tensor contiguous_copy(const Tensor& t);
// The same, or t itself when it is contiguous.
Tensor dense(const Tensor& t);
// Fails for tensors without data, where the result depends on values.
void require_data(const Tensor& t, const char* who);
// The same for an operand of a tensor that has data.
inline void require_data_beside(const Tensor& self, const Tensor& operand, const char* who) {
  if (self.is_cpu()) require_data(operand, who);
}
// The elements of `self` where `mask` (bool, of its shape) is true.
Tensor select_under_mask(const Tensor& self, const Tensor& mask);
// nonzero, the above, and its inverse into contiguous memory, on devices.
Tensor nonzero_on_device(const Tensor& self);
Tensor select_on_device(const Tensor& self, const Tensor& mask);
void scatter_on_device(const Tensor& result, const Tensor& mask, const Tensor& source);
Tensor zeros_of(IntList sizes, const Tensor& like);
// Whether a call with operands of these flags is seen by more than its kernel, of whatever device that is.
inline bool takes_note(uint32_t flags) {
  return dispatch_state.always || dispatch_state.level || derivatives_wanted() ||
         (flags & dispatch_state.consider & ~kNotCpu);
}
// op(zeros like g, ...), for derivatives: written to the zeros themselves where nobody takes note of calls.
template <class Op, class... Args>
Tensor into_zeros(const Op& op, IntList sizes, const Tensor& g, const Args&... args) {
  const Tensor zeros = zeros_of(sizes, g);
  if (takes_note((detail::flags_of(g) | ... | detail::flags_of(args)))) return op(zeros, args...);
  op.inplace(zeros, args...);
  return zeros;
}
// 0-dim tensors take part in dimension-wise operators as vectors of one element.
Tensor at_least_vector(const Tensor& t);
// self[index] of a contiguous vector in memory, where no position counts from the end; else undefined.
Tensor taken_from_vector(const Tensor& self, const Tensor& index);
// Plans dimensions that are taken whole: as runs of adjacent elements, and where the runs start.
void plan_runs(cpu::IndexBlocks& blocks, IntList sizes, IntList strides);

void register_slice_operators(Table& t);
void register_flat_position_operators(Table& t);
void register_scatter_operators(Table& t);
void register_mask_operators(Table& t);
void register_repeat_operators(Table& t);

}  // namespace rushlight
