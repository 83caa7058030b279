#include "autograd/meta.h"

#include "autograd/accumulate.h"
#include "autograd/gradient_ops.h"
#include "autograd/lone_base.h"
#include "autograd/view.h"
#include "core/history_flags.h"
#include "core/pending.h"
#include "core/quantizer.h"

namespace rushlight {

GradientOps gradient_ops;

namespace {

void forget_retained(Node& node, AutogradMeta* meta) {
  std::lock_guard guard(node.lock);
  if (NodeHooks* hooks = node.hooks())
    std::erase_if(hooks->retained, [&](const NodeHooks::Retained& r) { return r.meta == meta; });
}

void add_retained(Node& node, AutogradMeta* meta) {
  std::lock_guard guard(node.lock);
  node.ensure_hooks().retained.push_back({meta->output_nr, meta});
}

void free_meta(AutogradMeta* meta) {
  if (meta->retains_grad && meta->grad_fn) forget_retained(*meta->grad_fn, meta);
  delete meta;
}

OptDType allowed_grad_dtype(const Tensor& t) {
  const AutogradMeta* meta = t->autograd;
  return meta && meta->extra && meta->extra->grad_dtype_set ? meta->extra->grad_dtype : OptDType(t.dtype());
}

void set_gradient_edge(const Tensor& t, const Ref<Node>& node, uint32_t output) {
  AutogradMeta& meta = autograd_meta(t);
  const bool retains = meta.retains_grad;
  if (retains && meta.grad_fn) forget_retained(*meta.grad_fn, &meta);
  const bool counted = t->view_base && !(t->flags & kInference);
  const uint32_t version = counted ? t.version() : 0;
  Ref<Node> former = node;
  Ref<TensorHook> python_hooks;  // they stay with the former grad_fn
  std::vector<Ref<TensorHook>> hooks;
  {
    std::lock_guard guard(meta.lock);
    std::swap(meta.grad_fn, former);
    meta.output_nr = output;
    if (counted) meta.seen_version = version;
    if (AutogradMeta::Extra* extra = meta.extra) [[unlikely]]
      std::swap(extra->python_hooks, python_hooks), std::swap(extra->hooks, hooks);
  }
  if (retains) add_retained(*node, &meta);
  t->flags |= kAutograd;
}

}  // namespace

void install_autograd_meta() {
  free_autograd_meta = free_meta;
  note_version = note_version_of;
}

// Where the gradient of `t` goes. It is the accumulator of a leaf for a stand-in that hooks gave for the
// leaf.
static Ref<Node> next_node(const Tensor& t) {
  if (t->view_base) [[unlikely]]
    return view_grad_fn(t);
  AutogradMeta* meta = t->autograd;
  return meta ? recorded_node(*meta) : nullptr;
}

Ref<Node> grad_fn(const Tensor& t) {
  Ref<Node> node = next_node(t);
  return node && node->is_accumulate ? nullptr : node;
}

bool is_leaf(const Tensor& t) { return !requires_grad(t) || has_no_history(t) || !grad_fn(t); }

Edge gradient_edge(const Tensor& t) {
  if (!requires_grad(t)) return {};
  if (Ref<Node> node = next_node(t)) return {std::move(node), output_nr(t)};
  if (t->flags & kAutograd) return {grad_accumulator(t), 0};
  return {};
}

void set_requires_grad(const Tensor& t, bool value) {
  RL_CHECK(!(t->flags & kInference) || dispatch_state.inference || !value,
           "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.");
  if (!is_leaf(t)) {
    RL_CHECK(value,
             "you can only change requires_grad flags of leaf variables. If you want to use a computed "
             "variable in a "
             "subgraph that doesn't require differentiation use var_no_grad = var.detach().");
    return;
  }
  RL_CHECK(!value || is_differentiable(t.dtype()),
           "only Tensors of floating point and complex dtype can require gradients");
  if (value)
    t->flags.set(kAutograd);
  else
    t->flags.clear(kAutograd);
}

void set_grad(const Tensor& t, const Tensor& grad) {
  if (!grad.defined()) {
    if (AutogradMeta* meta = t->autograd) exchange_grad(*meta, Tensor());
    return;
  }
  RL_CHECK(!grad.is_same(t), "can't assign Variable as its own grad");
  const OptDType expected = allowed_grad_dtype(t);
  RL_CHECK(!expected || grad.dtype() == *expected, "attempting to assign a gradient with dtype '",
           dtype_name(grad.dtype()), "' to a tensor with grad_dtype '", dtype_name(*expected),
           "'. The gradient must match the tensor's grad_dtype (defaults to the tensor's dtype). You can set "
           "the tensor's grad_dtype attribute with a specific dtype, or None to allow any dtype. Set "
           "grad_dtype with caution. Diverging the dtypes of a tensor and its gradient may break downstream "
           "systems that assume they match.");
  RL_CHECK(grad.device().type() == t.device().type(), "attempting to assign a gradient with device type '",
           device_type_name(grad.device().type()), "' to a tensor with device type '",
           device_type_name(t.device().type()),
           "'. Please ensure that the gradient and the tensor are on the same device");
  RL_CHECK(grad.sizes() == t.sizes(), "attempting to assign a gradient of size '", grad.sizes(),
           "' to a tensor of size '", t.sizes(),
           "'. Please ensure that the gradient and the tensor are the same size");
  exchange_grad(autograd_meta(t), grad);
}

OptDType grad_dtype(const Tensor& t) {
  RL_CHECK(is_leaf(t), "grad_dtype can only be accessed on leaf tensors.");
  return allowed_grad_dtype(t);
}

void set_grad_dtype(const Tensor& t, OptDType dtype) {
  RL_CHECK(is_leaf(t), "grad_dtype can only be set on leaf tensors.");
  if (const Tensor grad = grad_of(t); dtype && grad.defined())
    RL_CHECK(grad.dtype() == *dtype, "Cannot set grad_dtype to '", dtype_name(*dtype),
             "' because there is already a gradient with dtype '", dtype_name(grad.dtype()),
             "'. Please clear the gradient (.grad = None) before changing grad_dtype, or ensure the new "
             "grad_dtype matches the existing gradient's dtype.");
  AutogradMeta& meta = autograd_meta(t);
  AutogradMeta::Extra& extra = meta.ensure_extra();
  std::lock_guard guard(meta.lock);
  extra.grad_dtype_set = true;
  extra.grad_dtype = dtype;
  if (meta.accumulator) meta.accumulator->expect_dtype(dtype);
}

void retain_grad(const Tensor& t) {
  RL_CHECK(requires_grad(t), "can't retain_grad on Tensor that has requires_grad=False");
  const Ref<Node> node = grad_fn(t);
  if (!node || retains_grad(t)) return;
  AutogradMeta& meta = autograd_meta(t);
  meta.retains_grad = true;
  add_retained(*node, &meta);
}

void move_retained(AutogradMeta& meta, Node& from, Node& to) {
  forget_retained(from, &meta);
  add_retained(to, &meta);
}

void set_history(const Tensor& t, const Ref<Node>& node, uint32_t output) {
  set_gradient_edge(t, node, output);
}

void rebase_history(const Tensor& t, const Ref<Node>& node, uint32_t output) {
  if (!t->view_base) return set_gradient_edge(t, node, output);
  RL_CHECK(output == 0,
           "in-place: a view was written by an operator with several outputs; write to a clone() instead");
  const Tensor base(t->view_base);
  set_gradient_edge(base, Ref<Node>::adopt(new CopySlices(base, t, node)), 0);
  t->flags |= kAutograd;
  AutogradMeta& meta = autograd_meta(t);
  const uint32_t version = t.version();
  {
    std::lock_guard guard(meta.lock);
    // Any node, where there is none: what matters is that it is out of date.
    if (!meta.grad_fn) meta.grad_fn = node;
    meta.seen_version = version - 1;
  }
  (void)view_grad_fn(t);
}

void check_inplace(const Tensor& t, bool recorded) {
  RL_CHECK(!(t->flags & kInference) || dispatch_state.inference,
           "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to "
           "get a normal tensor "
           "before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details.");
  if (!recorded) return;
  if (t->view_base) {
    check_view_inplace(t);
    RL_CHECK(!requires_grad(t) || !is_leaf(Tensor(t->view_base)),
             "a view of a leaf Variable that requires grad is being used in an in-place operation.");
  }
  RL_CHECK(!requires_grad(t) || !is_leaf(t),
           "a leaf Variable that requires grad is being used in an in-place operation.");
}

Tensor detach(const Tensor& t) {
  if (t->flags & dispatch_state.consider & kPythonDispatch) [[unlikely]]
    return gradient_ops.detach(t);
  return make_view(t, t.sizes(), t.strides(), t.storage_offset(), false);
}

void detach_in_place(const Tensor& t) {
  const bool alone = has_lone_base(t);
  RL_CHECK(
      !t->view_base || alone,
      "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for "
      "training, and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence "
      "detach_() cannot "
      "be called on these gradients. To fix this error, please refer to the Optimizer.zero_grad() function "
      "in "
      "torch/optim/optimizer.py as a solution.");
  if (Tensor view = t; alone) leave_base(view);
  t->flags &= ~uint32_t{kAutograd | kForwardGrad};
  if (!t->autograd) return;
  AutogradMeta& meta = *t->autograd;
  if (recorded_node(meta)) t->flags |= kDetachedInPlace;
  if (meta.retains_grad && meta.grad_fn) forget_retained(*meta.grad_fn, &meta);
  meta.retains_grad = false;
  Ref<Node> former;
  std::lock_guard guard(meta.lock);
  std::swap(meta.grad_fn, former);
  meta.output_nr = 0;
}

Tensor tensor_data(const Tensor& t) {
  Tensor data = detach(t);
  if (!(t->flags & kInference)) data->version = make_ref<VersionCounter>();
  return data;
}

void set_data(const Tensor& t, const Tensor& source) {
  RL_CHECK(!t->sparse == !source->sparse && !t->quantizer == !source->quantizer &&
               is_special(t.dtype()) == is_special(source.dtype()),
           "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible "
           "tensor type.");
  RL_CHECK(!requires_grad(t) || is_differentiable(source.dtype()),
           "data set to a tensor that requires gradients must be floating point or complex dtype");
  if (t->autograd && (t.dtype() != source.dtype() || t.device() != source.device())) {
    std::lock_guard guard(t->autograd->lock);
    t->autograd->accumulator = nullptr;  // it describes the old dtype and device
  }
  if (!(t->flags & kInference) &&
      t->storage != source->storage) {  // the count goes on, whatever memory it counts for
    const uint32_t version = t.version();
    t->version = make_ref<VersionCounter>();
    t->version->value = version;
  }
  t->storage = source->storage;
  t->offset = source->offset;
  t->dtype = source->dtype;
  t->device = source->device;
  if (source->quantizer) *t->quantizer = *source->quantizer;
  t->flags = source->device.is_cpu() ? t->flags & ~kNotCpu : t->flags | kNotCpu;
  if (is_pending(t) || is_pending(source)) {
    constexpr uint32_t kElements = kPending | kSpecialElements;
    t->flags = (t->flags & ~kElements) | (source->flags & kElements);
  }
  t->set_layout(source.sizes(), source.strides());
}

std::function<void()> register_tensor_hook(const Tensor& t, Ref<TensorHook> hook) {
  RL_CHECK(requires_grad(t), "cannot register a hook on a tensor that doesn't require gradient");
  if (Ref<Node> node = grad_fn(t)) {
    node->add_output_hook(output_nr(t), hook);
    return [node, hook] {
      std::lock_guard guard(node->lock);
      std::erase_if(node->hooks()->on_outputs, [&](const NodeHooks::OnOutput& h) { return h.hook == hook; });
    };
  }
  AutogradMeta& meta = autograd_meta(t);
  AutogradMeta::Extra& extra = meta.ensure_extra();
  std::lock_guard guard(meta.lock);
  extra.hooks.push_back(hook);
  return [t, hook] {
    AutogradMeta& meta = autograd_meta(t);
    std::lock_guard guard(meta.lock);
    std::erase(meta.ensure_extra().hooks, hook);
  };
}

void set_python_hooks(const Tensor& t, Ref<TensorHook> hooks) {
  if (hooks)
    if (const Ref<Node> node = grad_fn(t)) node->add_output_hook(output_nr(t), hooks);
  AutogradMeta& meta = autograd_meta(t);
  AutogradMeta::Extra& extra = meta.ensure_extra();
  std::lock_guard guard(meta.lock);
  std::swap(extra.python_hooks, hooks);
}

void set_post_accumulate_hook(const Tensor& t, Ref<PostAccumulateHook> hook) {
  AutogradMeta& meta = autograd_meta(t);
  AutogradMeta::Extra& extra = meta.ensure_extra();
  std::lock_guard guard(meta.lock);
  std::swap(extra.after_accumulate, hook);
}

}  // namespace rushlight
