#include "transform/sparse.h"

#include "core/sparse.h"
#include "dispatch/op.h"

namespace rushlight {
namespace {

void store(const Frame& frame, const Tensor& result) {
  const Tensor& target = frame.out[0];
  if (!result.is_same(target)) {
    RL_CHECK(is_sparse(target) == is_sparse(result), frame.op.name(), "(): the result is ",
             is_sparse(result) ? "sparse" : "dense", " and can't be written to ",
             is_sparse(target) ? "a sparse" : "a dense", " tensor of shape ", target.sizes(),
             "; use .to_dense() or .to_sparse()");
    if (is_sparse(target))
      replace_sparse(target, result);
    else
      copy_result(target, result, false);
  }
  target.bump_version(&frame.op.schema.name);
}

void sparse_call(Frame& frame) {
  const Op& op = frame.op;
  if (!op.sparse_kernel)
    RL_NOT_IMPLEMENTED("Could not run 'aten::", op.name(),
                       "' with arguments from the 'SparseCPU' backend: ", op.name(),
                       " has no rule for sparse tensors; convert them with .to_dense()");
  op.trampoline(op.sparse_kernel, Call{op, frame.out, frame.inplace}, frame.args, frame.results);
  if (frame.out) {
    RL_CHECK(frame.inplace || op.schema.returns.size() == 1, op.name(),
             "(): out= with several results is not supported for sparse tensors");
    store(frame, frame.results.tensors[0]);
    frame.results.tensors[0] = frame.out[0];
  }
  if (op.mutated) bump_mutated(op, frame.args);
}

}  // namespace

void install_sparse() { set_interceptor(kSparseTensor, sparse_call); }

}  // namespace rushlight
