#include "autograd/view.h"

#include "autograd/engine.h"
#include "autograd/gradient_ops.h"
#include "autograd/node_names.h"
#include "autograd/saved.h"
#include "core/history_flags.h"
#include "core/pending.h"

namespace rushlight {

namespace {

// The memory of a real tensor as complex numbers in a row; undefined where they would not fill it.
Tensor pairs_of(const Tensor& base) {
  int64_t span = 1;
  for (int64_t d = 0; d < base.dim(); ++d) {
    if (base.stride(d) < 0) return {};
    span += (base.size(d) - 1) * base.stride(d);
  }
  if (!base.numel() || span % 2 || base.storage_offset() % 2) return {};
  return gradient_ops.view_as_complex(
      gradient_ops.as_strided(base, Dims{span / 2, 2}, Dims{2, 1}, base.storage_offset()));
}

// `base` in the dtype of its views: complex tensors have real views (view_as_real, real, imag), and real ones
// complex views.
Tensor in_dtype_of_view(const Tensor& base, DType dtype) {
  if (base.dtype() == dtype) return base;
  if (is_complex(dtype) && real_dtype(dtype) == base.dtype())
    if (const Tensor pairs = pairs_of(base); pairs.defined()) return pairs;
  RL_CHECK(is_complex(base.dtype()) && real_dtype(base.dtype()) == dtype, "an in-place write to a ",
           dtype_name(dtype), " view of a ", dtype_name(base.dtype()),
           " tensor cannot be differentiated; write to the base, or to a clone()");
  return gradient_ops.view_as_real(base);
}

uint32_t turned_between(const Tensor& base, const Tensor& view) {
  return (base->flags ^ view->flags) & kPending;
}

}  // namespace

CopySlices::CopySlices(const Tensor& base, const Tensor& view, Ref<Node> write)
    : base_{base->sizes, base->strides, base.storage_offset(), base.storage_offset()},
      view_{view->sizes, view->strides, view.storage_offset(), view.storage_offset()},
      dtype_(view.dtype()),
      turned_(turned_between(base, view)),
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
  Tensor whole = gradient_ops.new_empty_strided(grads[0], base_.sizes, base_.strides);
  gradient_ops.copy_into(whole, grads[0]);
  const Tensor parts = in_dtype_of_view(whole, dtype_);
  const Tensor part =
      gradient_ops.as_strided(parts, view_.sizes, view_.strides, view_.offset - base_.real_offset);
  // 2. The part goes through the operator that wrote it.
  Gradients written(1);
  written[0] = turned_ ? gradient_ops.turned(part, turned_) : gradient_ops.clone(part);
  Gradients inner = write_->apply(std::move(written));
  // 3. What was there before receives what the operator leaves over for it.
  if (inner.size() && inner[0].defined())
    gradient_ops.copy_into(part, gradient_ops.turned(inner[0], turned_));
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

// Why a write to the view, or to what it is a view of, has no gradient.
[[noreturn]] void refuse_write(const Tensor& view, bool to_another) {
  const uint32_t flags = view->flags;
  const bool custom = flags & kCustomView, multiple = !custom && (flags & kMultiView),
             inference = !custom && !multiple && (flags & kInferenceView);
  const char* written = to_another ? "its base or another view of its base has been" : "is being";
  const char* mode = inference ? "inference" : "no_grad";
  const char* then =
      inference ? " modified inplace in normal mode." : " modified inplace with grad mode enabled.";
  std::string text;
  if (custom || multiple)
    text = view->autograd && view->autograd->grad_fn
               ? str(maker_of(view), written, " modified inplace.")
               : str("A view was created in no_grad mode and ", written, then);
  else if (flags & kOriginInherited)
    text = str("Output ", output_nr(view), " of View is a view of a view which was created in ", mode,
               " mode and ", written, then);
  else
    text = str("A view was created in ", mode, " mode and ", written, then);
  if (custom)
    text +=
        " This view was created inside a custom Function (or because an input was returned as-is) and the "
        "autograd logic to handle view+inplace would override the custom backward associated with the "
        "custom Function, leading to incorrect gradients. This behavior is forbidden. You can fix this by "
        "cloning the output of the custom Function.";
  else if (multiple)
    text +=
        " This view is the output of a function that returns multiple views. Such functions do not allow "
        "the output views to be modified inplace. You should replace the inplace operation by an "
        "out-of-place one.";
  else
    text += str(
        " Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code "
        "by moving both the view and the inplace either both inside the ",
        inference ? "inference_mode" : "no_grad",
        " block (if you don't want the inplace to be tracked) or both outside (if you want the inplace to be "
        "tracked).");
  RL_FAIL(text);
}

}  // namespace

void check_view_inplace(const Tensor& view) {
  if (view->flags & (kNoGradView | kMultiView | kCustomView)) refuse_write(view, false);
}

// The node in place of the one that is out of date. Hooks stay with the former; .grad is kept by the new one.
static Ref<Node> renew(AutogradMeta& own, Ref<Node> node, uint32_t version) {
  Ref<Node> former = node;  // what it takes the place of dies after the lock
  Ref<TensorHook> python_hooks;
  std::vector<Ref<TensorHook>> hooks;
  bool retains = false;
  {
    std::lock_guard guard(own.lock);
    // Another reader may have been faster: all get the same node.
    if (own.grad_fn && own.seen_version == version) return own.grad_fn;
    std::swap(own.grad_fn, former);
    own.output_nr = 0;
    own.seen_version = version;
    retains = former && own.retains_grad;
    if (AutogradMeta::Extra* extra = own.extra; extra && former)
      std::swap(extra->python_hooks, python_hooks), std::swap(extra->hooks, hooks);
  }
  if (retains) move_retained(own, *former, *node);
  return node;
}

void note_version_of(const Tensor& view) {
  autograd_meta(view).seen_version = view.version();
  view->flags |= kKnowsVersion;
}

bool has_no_history(const Tensor& view) {
  AutogradMeta* meta = view->autograd;
  return (view->flags & kNoGradView) && !(meta && recorded_node(*meta));
}

Ref<Node> view_grad_fn(const Tensor& view) {
  Tensor base(view->view_base);
  AutogradMeta* meta = view->autograd;
  const bool kept = requires_grad(base), counted = !(view->flags & kInference);
  const uint32_t version = counted ? view.version() : 0;
  bool has_own = false;
  if (meta) {
    std::lock_guard guard(meta->lock);
    has_own = static_cast<bool>(meta->grad_fn);
    if (has_own && (!counted || meta->seen_version == version)) return meta->grad_fn;
  }
  if (!counted || (!kept && !has_own)) return nullptr;
  if (!has_own && (view->flags & kKnowsVersion) && meta->seen_version != version) refuse_write(view, true);
  // A base that is a leaf was never written to under autograd, and a view under no_grad never had a history.
  if (!has_own && (is_leaf(base) || (view->flags & kNoGradView))) return nullptr;
  if (view->flags & (kMultiView | kCustomView)) refuse_write(view, true);
  GradMode on(true);
  NoSavedHooks unseen;  // what the program saves does not depend on when a history is made anew
  if (!kept) set_requires_grad(base = detach(base), true);  // written after detach_(): a history of nothing
  Tensor again = gradient_ops.as_strided(in_dtype_of_view(base, view.dtype()), view.sizes(), view.strides(),
                                         view.storage_offset());
  again = gradient_ops.turned(again, turned_between(base, view));
  RL_CHECK(again->autograd,
           "a view whose base was modified inplace has no history any more: the function transform that "
           "recorded it has ended");
  if (!kept) again->autograd->grad_fn->edges()[0] = Edge();
  AutogradMeta& own = autograd_meta(view);
  view->flags.set(kAutograd);
  return renew(own, again->autograd->grad_fn, version);
}

}  // namespace rushlight
