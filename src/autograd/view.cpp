#include "autograd/view.h"

#include "autograd/engine.h"
#include "autograd/gradient_ops.h"
#include "autograd/node_names.h"

namespace rushlight {

namespace {

// `base` in the dtype of its views: complex tensors have real views (view_as_real, real, imag).
Tensor in_dtype_of_view(const Tensor& base, DType dtype) {
  if (base.dtype() == dtype) return base;
  RL_CHECK(is_complex(base.dtype()) && real_dtype(base.dtype()) == dtype, "an in-place write to a ",
           dtype_name(dtype), " view of a ", dtype_name(base.dtype()),
           " tensor cannot be differentiated; write to the base, or to a clone()");
  return gradient_ops.view_as_real(base);
}

}  // namespace

CopySlices::CopySlices(const Tensor& base, const Tensor& view, Ref<Node> write)
    : base_{base->sizes, base->strides, base.storage_offset(), base.storage_offset()},
      view_{view->sizes, view->strides, view.storage_offset(), view.storage_offset()},
      dtype_(view.dtype()),
      write_(std::move(write)) {
  if (base.dtype() != dtype_) base_.real_offset = in_dtype_of_view(detach(base), dtype_).storage_offset();
  add_output(base);
  add_edge(gradient_edge(base));
  for (const Edge& e : write_->edges().subspan(1)) add_edge(e);
}

std::string CopySlices::name() const { return end_of ? name_of_composite(*this) : "CopySlices"; }

Gradients CopySlices::apply(Gradients grads) {
  Gradients results(edges().size());
  if (!grads[0].defined()) return results;
  // 1. The base's gradient, laid out as the base is, so that the view's geometry finds its part.
  Tensor whole = empty_strided_tensor(base_.sizes, base_.strides, grads[0].dtype(), grads[0].device());
  gradient_ops.copy_into(whole, grads[0]);
  const Tensor parts = in_dtype_of_view(whole, dtype_);
  const Tensor part =
      gradient_ops.as_strided(parts, view_.sizes, view_.strides, view_.offset - base_.real_offset);
  // 2. The part goes through the operator that wrote it.
  Gradients written(1);
  written[0] = gradient_ops.clone(part);
  Gradients inner = write_->apply(std::move(written));
  // 3. What was there before receives what the operator leaves over for it.
  if (inner.size() && inner[0].defined())
    gradient_ops.copy_into(part, inner[0]);
  else
    gradient_ops.copy_into(part, gradient_ops.zeros(IntList{}, part.dtype(), part.device()));
  if (edges()[0]) results[0] = std::move(whole);
  for (size_t i = 1; i < inner.size() && i < results.size(); ++i) results[i] = std::move(inner[i]);
  return results;
}

namespace {

std::string maker_of(const Tensor& view) {
  std::string name = view->autograd && view->autograd->grad_fn ? view->autograd->grad_fn->name() : "None";
  if (const size_t at = name.rfind("Backward"); at != std::string::npos) name.resize(at);
  return str("Output ", output_nr(view), " of ", name, " is a view and ");
}

constexpr const char* kMultiText =
    " This view is the output of a function that returns multiple views. Such functions do not allow the "
    "output views to be "
    "modified inplace. You should replace the inplace operation by an out-of-place one.";

}  // namespace

void check_view_inplace(const Tensor& view) {
  if (view->flags & kNoGradView)
    RL_FAIL(
        "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Given that "
        "this use case is "
        "ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the view and "
        "the inplace either "
        "both inside the no_grad block (if you don't want the inplace to be tracked) or both outside (if you "
        "want the inplace "
        "to be tracked).");
  if (view->flags & kMultiView) RL_FAIL(maker_of(view), "is being modified inplace.", kMultiText);
}

Ref<Node> view_grad_fn(const Tensor& view) {
  const Tensor base(view->view_base);
  AutogradMeta* meta = view->autograd;
  const bool counted = requires_grad(base) && !(view->flags & kInference);
  const uint32_t version = counted ? view.version() : 0;
  bool has_own = false;
  if (meta) {
    std::lock_guard guard(meta->lock);
    has_own = static_cast<bool>(meta->grad_fn);
    if (has_own && (!counted || meta->seen_version == version)) return meta->grad_fn;
  }
  if (!counted) return nullptr;
  // A base that is a leaf was never written to under autograd, and a view under no_grad never had a history.
  if (!has_own && (is_leaf(base) || (view->flags & kNoGradView))) return nullptr;
  if (view->flags & kMultiView)
    RL_FAIL(maker_of(view), "its base or another view of its base has been modified inplace.", kMultiText);
  GradMode on(true);
  const Tensor again = gradient_ops.as_strided(in_dtype_of_view(base, view.dtype()), view.sizes(),
                                               view.strides(), view.storage_offset());
  RL_CHECK(again->autograd,
           "a view whose base was modified inplace has no history any more: the function transform that "
           "recorded it has ended");
  AutogradMeta& own = autograd_meta(view);
  view->flags.set(kAutograd);
  Ref<Node> former = again->autograd->grad_fn;  // what it takes the place of dies after the lock
  std::lock_guard guard(own.lock);
  // Another reader may have been faster: all get the same node.
  if (own.grad_fn && own.seen_version == version) return own.grad_fn;
  std::swap(own.grad_fn, former);
  own.output_nr = 0;
  own.seen_version = version;
  return own.grad_fn;
}

}  // namespace rushlight
