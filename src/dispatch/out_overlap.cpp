#include "dispatch/out_overlap.h"

#include "core/error.h"
#include "dispatch/operands.h"

namespace rushlight {
namespace {

// Operators that read and write in no fixed order refuse outputs that share memory with an operand or with
// themselves.
void check_disjoint(const Op& op, const Value* args, const Tensor& out) {
  RL_CHECK(!has_internal_overlap(out),
           "unsupported operation: more than one element of the written-to tensor refers to a single memory "
           "location. Please clone() the tensor before performing the operation. (",
           op.name(), ")");
  for (uint64_t bits = op.tensor_parameters; bits; bits &= bits - 1) {
    const Value& v = args[std::countr_zero(bits)];
    if (v.tag() != Tag::Tensor || v.is_none()) continue;
    const Overlap overlap = out.numel() == 0 ? Overlap::No : memory_overlap(out, v.tensor());
    const bool accumulates = op.traits.out_overlap.accumulates && (bits & 1);
    RL_CHECK(overlap == Overlap::No || (overlap == Overlap::Full && accumulates),
             "unsupported operation: some elements of the input tensor and the written-to tensor refer to a "
             "single memory location. Please clone() the tensor before performing the operation. (",
             op.name(), ")");
  }
}

void check_apart(const Op& op, const Tensor& out, const Tensor& operand) {
  if (!out->storage || out->storage.get() != operand->storage.get()) return;
  if (!is_non_overlapping_and_dense(out) || !is_non_overlapping_and_dense(operand)) return;
  const Overlap overlap = memory_overlap(out, operand);
  RL_CHECK(overlap == Overlap::No || (overlap == Overlap::Full && !op.traits.out_overlap.strict),
           "unsupported operation: some elements of the input tensor and the written-to tensor refer to a "
           "single memory location. Please clone() the tensor before performing the operation. (",
           op.name(), ")");
}

}  // namespace

void check_output_overlap(const Op& op, const Value* args, const Tensor* out, size_t count) {
  const uint64_t apart = op.traits.out_overlap.apart & op.tensor_parameters;
  for (size_t i = 0; i < count; ++i) {
    if (op.traits.out == OutRule::Disjoint)
      check_disjoint(op, args, out[i]);
    else
      each_operand(apart, args, [&](const Tensor& operand) { check_apart(op, out[i], operand); });
  }
}

void check_output_dtype(const Op& op, const Value* args, const Tensor& out) {
  for (size_t i = op.schema.parameters.size(); i-- > 0;) {
    if (op.schema.parameters[i].name != "dtype") continue;
    if (args[i].tag() != Tag::DType || args[i].dtype() == out.dtype()) return;
    RL_CHECK(op.tensor_parameters, "dtype ", legacy_name(args[i].dtype()),
             " does not match dtype of out parameter (", legacy_name(out.dtype()), ")");
    RL_CHECK(false, "Expected out tensor to have dtype ", cpp_name(args[i].dtype()), ", but got ",
             cpp_name(out.dtype()), " instead");
  }
}

}  // namespace rushlight
