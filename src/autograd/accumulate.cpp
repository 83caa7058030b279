#include "autograd/accumulate.h"

#include "autograd/gradient_ops.h"
#include "core/history_flags.h"
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
  auto found = [&] {
    std::lock_guard guard(meta.lock);
    return meta.accumulator ? Ref<Node>::share(meta.accumulator) : nullptr;
  };
  if (Ref<Node> there = found()) return there;
  auto made = Ref<AccumulateGrad>::adopt(new AccumulateGrad(t));
  std::lock_guard guard(meta.lock);
  if (meta.accumulator)
    return Ref<Node>::share(meta.accumulator);  // another thread's; `made` dies after the lock
  meta.accumulator = made.get();
  return made;
}

bool AccumulateGrad::leave() noexcept {
  AutogradMeta& meta = *variable_->autograd;
  std::lock_guard guard(meta.lock);
  if (!release()) return false;  // found by grad_accumulator meanwhile: only our own reference goes
  if (meta.accumulator == this) meta.accumulator = nullptr;
  return true;
}

void AccumulateGrad::run_tensor_hooks(Gradients& grads) {
  Node::run_tensor_hooks(grads);
  AutogradMeta& meta = *variable_->autograd;
  AutogradMeta::Extra* extra = meta.extra;
  if (!extra || !grads[0].defined()) return;
  auto run = [&](const Ref<TensorHook>& hook) {
    Tensor changed = hook->call(grads[0]);
    if (changed.defined()) grads[0] = std::move(changed);
  };
  auto read = [&](auto&& f) {
    std::lock_guard guard(meta.lock);
    return f();
  };
  if (const Ref<TensorHook> hook = read([&] { return extra->python_hooks; })) run(hook);
  for (size_t i = 0; i < read([&] { return extra->hooks.size(); }); ++i)
    if (const auto hook = read([&] { return i < extra->hooks.size() ? extra->hooks[i] : nullptr; }))
      run(hook);
}

bool held_alone(const Tensor& t, uint32_t holders) {
  if (t->use_count() != holders || t->wrapping || t->pyobj || t->autograd) return false;
  if (!t->view_base) return t->storage->use_count() == 1;
  const TensorImpl& base = *t->view_base;
  return base.use_count() == 1 && !base.wrapping && !base.pyobj && !base.autograd &&
         t->storage->use_count() == 2 && t->storage->nbytes() == static_cast<size_t>(t.nbytes());
}

void leave_base(Tensor& t) {
  t->view_base.reset();
  t->flags &= ~(kNoGradView | kMultiView | kViewOrigin | kOriginInherited);
}

namespace {

bool owns_parts(const Tensor& sparse) {
  const SparseParts& parts = sparse_parts(sparse);
  for (const Tensor* part : {&parts.indices, &parts.compressed, &parts.plain, &parts.values})
    if (part->defined() && (*part)->storage && (*part)->storage->use_count() != 1) return false;
  return true;
}

// It is nobody else's and lies as the leaf does: it may become the leaf's gradient itself.
bool can_steal(const Tensor& grad, const Tensor& leaf, uint32_t holders) {
  if (is_sparse(grad))
    return grad->use_count() == holders && !grad->pyobj && !grad->autograd && owns_parts(grad);
  if (!held_alone(grad, holders)) return false;
  if (!gradient_layout_enforced) return is_non_overlapping_and_dense(grad);
  return is_dense_from_data(leaf) ? grad.strides() == leaf.strides() : grad.is_contiguous();
}

Tensor copy_for(const Tensor& grad, const Tensor& leaf) {
  const bool plain = !is_sparse(grad) && !is_sparse(leaf) && is_dense_from_data(leaf) &&
                     !((grad->flags | leaf->flags) & (kPythonDispatch | kWrapped));
  // Under create_graph it is recorded as PyTorch's, a copy into the leaf's layout.
  if (plain && (grad.strides() != leaf.strides() || GradMode::enabled())) {
    Tensor copy = gradient_ops.new_empty_strided(grad, leaf.sizes(), leaf.strides());
    gradient_ops.copy_into(copy, grad);
    return copy;
  }
  return gradient_ops.clone(grad);
}

}  // namespace

// Hooks that run after this node see the gradient, which the engine holds for them.
uint32_t AccumulateGrad::holders() const {
  const NodeHooks* seen = hooks();
  return seen && !seen->after.empty() ? 2 : 1;
}

void AccumulateGrad::accumulate(Tensor grad) {
  const Tensor sum = grad_of(variable_);
  if (sum.defined() && !GradMode::enabled() && (is_sparse(grad) || !is_sparse(sum)))
    return gradient_ops.add_into(sum, grad);
  if (sum.defined()) {
    grad = gradient_ops.add(sum, grad);
  } else if (!GradMode::enabled() && can_steal(grad, variable_, holders())) {
    leave_base(grad);
  } else {
    grad = copy_for(grad, variable_);
  }
  exchange_grad(*variable_->autograd, std::move(grad));
}

Gradients AccumulateGrad::apply(Gradients grads) {
  if (!grads[0].defined()) return {};
  {
    std::lock_guard guard(mutex_);
    accumulate(std::move(grads[0]));
  }
  AutogradMeta& meta = *variable_->autograd;
  if (AutogradMeta::Extra* extra = meta.extra) {
    Ref<PostAccumulateHook> hook;
    {
      std::lock_guard guard(meta.lock);
      hook = extra->after_accumulate;
    }
    if (hook) hook->call(variable_);
  }
  return {};
}

}  // namespace rushlight
