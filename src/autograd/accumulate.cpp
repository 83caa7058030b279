#include "autograd/accumulate.h"

#include "autograd/gradient_ops.h"
#include "core/sparse.h"

namespace rushlight {

thread_local bool gradient_layout_enforced = true;

AccumulateGrad::AccumulateGrad(const Tensor& leaf)
    : Node(kLast), variable_(leaf), meta_{Dims(leaf->sizes), leaf.dtype(), leaf.device()} {
  is_accumulate = true;
  outputs_ = &meta_;
  output_count_ = 1;
  expect_dtype(grad_dtype(leaf));
}

void AccumulateGrad::expect_dtype(OptDType dtype) {
  any_dtype = !dtype;
  if (dtype) meta_.dtype = *dtype;
}

Ref<Node> grad_accumulator(const Tensor& t) {
  AutogradMeta& meta = autograd_meta(t);
  std::lock_guard guard(meta.lock);
  // A count of zero: the last owner is about to free it and waits for the lock.
  if (meta.accumulator && meta.accumulator->use_count() > 0) return Ref<Node>::share(meta.accumulator);
  meta.accumulator = new AccumulateGrad(t);
  return Ref<Node>::adopt(meta.accumulator);
}

void AccumulateGrad::free() noexcept {
  AutogradMeta& meta = *variable_->autograd;
  {
    std::lock_guard guard(meta.lock);
    if (use_count() > 1) {  // found by grad_accumulator meanwhile: only our own reference goes
      [[maybe_unused]] const bool last = release();
      return;
    }
    if (meta.accumulator == this) meta.accumulator = nullptr;
  }
  delete this;
}

void AccumulateGrad::run_tensor_hooks(Gradients& grads) {
  Node::run_tensor_hooks(grads);
  const auto& extra = variable_->autograd->extra;
  if (!extra || !grads[0].defined()) return;
  auto run = [&](const Ref<TensorHook>& kept) {
    const Ref<TensorHook> hook = kept;
    Tensor changed = hook->call(grads[0]);
    if (changed.defined()) grads[0] = std::move(changed);
  };
  if (extra->python_hooks) run(extra->python_hooks);
  for (size_t i = 0; i < extra->hooks.size(); ++i)
    if (extra->hooks[i]) run(extra->hooks[i]);
}

bool held_alone(const Tensor& t) {
  if (t->use_count() != 1 || t->wrapping || t->pyobj || t->autograd) return false;
  if (!t->view_base) return t->storage->use_count() == 1;
  const TensorImpl& base = *t->view_base;
  return base.use_count() == 1 && !base.wrapping && !base.pyobj && !base.autograd &&
         t->storage->use_count() == 2 && t->storage->nbytes() == static_cast<size_t>(t.nbytes());
}

void leave_base(Tensor& t) {
  t->view_base.reset();
  t->flags &= ~(kNoGradView | kMultiView);
}

namespace {

bool owns_parts(const Tensor& sparse) {
  const SparseParts& parts = sparse_parts(sparse);
  for (const Tensor* part : {&parts.indices, &parts.compressed, &parts.plain, &parts.values})
    if (part->defined() && (*part)->storage && (*part)->storage->use_count() != 1) return false;
  return true;
}

// It is nobody else's and lies as the leaf does: it may become the leaf's gradient itself.
bool can_steal(const Tensor& grad, const Tensor& leaf) {
  if (is_sparse(grad)) return grad->use_count() == 1 && !grad->pyobj && !grad->autograd && owns_parts(grad);
  if (!held_alone(grad)) return false;
  if (!gradient_layout_enforced) return is_non_overlapping_and_dense(grad);
  return is_non_overlapping_and_dense(leaf) ? grad.strides() == leaf.strides() : grad.is_contiguous();
}

Tensor copy_for(const Tensor& grad, const Tensor& leaf) {
  if (!is_sparse(grad) && !is_sparse(leaf) && is_non_overlapping_and_dense(leaf) &&
      grad.strides() != leaf.strides() && !GradMode::enabled() && !(grad->flags & kPythonDispatch)) {
    Tensor copy = empty_strided_tensor(leaf.sizes(), leaf.strides(), grad.dtype(), grad.device());
    gradient_ops.copy_into(copy, grad);
    return copy;
  }
  return gradient_ops.clone(grad);
}

}  // namespace

void AccumulateGrad::accumulate(Tensor grad) {
  Tensor& target = variable_->autograd->grad;
  if (!target.defined()) {
    if (!GradMode::enabled() && can_steal(grad, variable_)) {
      leave_base(grad);
      target = std::move(grad);
    } else {
      target = copy_for(grad, variable_);
    }
  } else if (!GradMode::enabled() && (is_sparse(grad) || !is_sparse(target))) {
    gradient_ops.add_into(target, grad);
  } else {
    target = gradient_ops.add(target, grad);
  }
}

Gradients AccumulateGrad::apply(Gradients grads) {
  if (!grads[0].defined()) return {};
  {
    std::lock_guard guard(mutex_);
    accumulate(std::move(grads[0]));
  }
  if (const auto& extra = variable_->autograd->extra; extra && extra->after_accumulate) {
    const Ref<PostAccumulateHook> hook = extra->after_accumulate;
    hook->call(variable_);
  }
  return {};
}

}  // namespace rushlight
