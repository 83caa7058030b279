// What writes by index may share with what they read.
#include "ops/index_common.h"

namespace rushlight {

void check_written_alone(const Call& call, std::initializer_list<Tensor> operands) {
  if (!call.inplace || !call.out) return;
  const Tensor& target = *call.out;
  RL_CHECK(!has_internal_overlap(target),
           "unsupported operation: more than one element of the written-to tensor refers to a single memory "
           "location. Please clone() the tensor before performing the operation.");
  for (const Tensor& t : operands)
    RL_CHECK(t->storage != target->storage || memory_overlap(target, t) == Overlap::No,
             "unsupported operation: some elements of the input tensor and the written-to tensor refer to a "
             "single memory location. Please clone() the tensor before performing the operation.");
}
void check_apart_from(const Tensor& target, TensorList indices) {
  for (const Tensor& t : indices)
    RL_CHECK(!t.defined() || t->storage.get() != target->storage.get() || !is_non_overlapping_and_dense(t) ||
                 !is_non_overlapping_and_dense(target) || memory_overlap(target, t) == Overlap::No,
             "unsupported operation: some elements of the input tensor and the written-to tensor refer to a "
             "single memory location. Please clone() the tensor before performing the operation.");
}
void warn_of_expanded(const Tensor& target, const char* who, const char* statement) {
  if (has_internal_overlap(target))
    show_warning(str("Use of ", who,
                     " on expanded tensors is deprecated. Please clone() the tensor before performing this "
                     "operation. This also applies to advanced indexing e.g. ",
                     statement));
}

}  // namespace rushlight
