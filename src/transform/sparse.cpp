#include "transform/sparse.h"

#include "core/sparse.h"
#include "dispatch/op.h"
#include "ops/copy.h"
#include "ops/sparse.h"
#include "transform/pending.h"
#include "transform/quantized.h"

namespace rushlight {
namespace {

Tensor in_dtype(const Tensor& t, DType dtype) {
  if (t.dtype() == dtype) return t;
  SparseParts parts = sparse_parts(t);
  parts.values = to_dtype(parts.values, dtype);
  return make_sparse(std::move(parts), t.sizes());
}

// Into the target of out= or of a call in place, which keeps its dtype.
void store(const Frame& frame, const Tensor& target, const Tensor& result) {
  if (frame.inplace && is_sparse(result) && !is_sparse(target) && layout_of(result) == Layout::SparseCoo)
    return store(frame, target, ops::to_dense(result, std::nullopt, std::nullopt));
  if (!result.is_same(target)) {
    RL_CHECK(is_sparse(target) == is_sparse(result), frame.op.name(), "(): the result is ",
             is_sparse(result) ? "sparse" : "dense", " and can't be written to ",
             is_sparse(target) ? "a sparse" : "a dense", " tensor of shape ", target.sizes(),
             "; use .to_dense() or .to_sparse()");
    RL_CHECK(can_cast(result.dtype(), target.dtype()), "result type ", legacy_name(result.dtype()),
             " can't be cast to the desired output type ", legacy_name(target.dtype()));
    RL_CHECK(!frame.inplace || result.sizes() == target.sizes(), frame.op.name(),
             "_(): the result has shape ", result.sizes(), ", but self has ", target.sizes());
    if (is_sparse(target))
      replace_sparse(target, in_dtype(result, target.dtype()));
    else {
      if (!frame.inplace) prepare_output(frame.op, target, result.sizes(), result.dtype(), false);
      copy_result(target, result, false);
    }
  }
  target.bump_version(&frame.op.schema.name);
}

void special_call(Frame& frame) {
  if (has_pending(frame)) return pending_call(frame, special_call);
  if (has_special_dtype(frame)) return special_dtype_call(frame);
  const Op& op = frame.op;
  if (!op.sparse_kernel)
    RL_NOT_IMPLEMENTED("Could not run 'aten::", op.name(),
                       "' with arguments from the 'SparseCPU' backend: ", op.name(),
                       " has no rule for sparse tensors; convert them with .to_dense()");
  op.trampoline(op.sparse_kernel, Call{op, frame.out, frame.inplace}, frame.args, frame.results);
  if (frame.out) {
    for (size_t i = 0; i < (frame.inplace ? 1 : op.schema.returns.size()); ++i) {
      store(frame, frame.out[i], frame.results.tensors[i]);
      frame.results.tensors[i] = frame.out[i];
    }
  }
  if (op.mutated) bump_mutated(op, frame.args);
}

}  // namespace

void install_sparse() { set_interceptor(kSpecialElements, special_call); }

}  // namespace rushlight
