// In-place writes through views.
#pragma once
#include "autograd/meta.h"

namespace rushlight {

// Note [Views]
// A differentiable view knows its base (TensorImpl::view_base, never itself a view). A write in place to
// either changes both:
// - Written through the view: the base's new grad_fn is a CopySlices, which sends the gradient of the written
// part through
//   the operator's node and passes the rest on to the base's former history.
// - The view's own grad_fn is then out of date. AutogradMeta::seen_version remembers the version at which it
// was made, and
//   grad_fn() makes an as_strided node on the base's present history when the version has moved on.
// - A view taken before its base came to require grad has no history of its own; the gate therefore looks at
// the base's
//   flag too (dispatch/op.h, flags_of), and grad_fn() finds the base's history in the same way.
// Views made under no_grad (kNoGradView) and several views from one operator (kMultiView) cannot be renewed
// so: writing to them under autograd is an error, as in PyTorch. So is asking a view that was taken under
// no_grad for its history after a write to its base (kKnowsVersion).
class CopySlices final : public PlainNode {
 public:
  CopySlices(const Tensor& base, const Tensor& view, Ref<Node> write);
  std::string name() const override;
  Gradients apply(Gradients grads) override;
  // The write's node may be reached apart from this one, through the result it saved: then it releases
  // itself.
  void release_saved() override {
    if (write_->use_count() == 1) write_->release_saved();
  }
  void each_saved(const std::function<void(const SavedVariable&)>& f) const override {
    write_->each_saved(f);
  }
  const Ref<Node>& write() const { return write_; }

 private:
  struct Geometry {
    Dims sizes, strides;
    int64_t offset;
    int64_t real_offset;  // in elements of the view's dtype
  };
  Geometry base_, view_;
  DType dtype_;      // of the view
  uint32_t turned_;  // what is pending of the view and not of the base, or the other way round
  Ref<Node> write_;
};

// The grad_fn of a view whose base has a history, made anew when out of date.
Ref<Node> view_grad_fn(const Tensor& view);
// Notes the version of its base in a view taken under no_grad; core calls it as it makes one.
void note_version_of(const Tensor& view);
// Taken under no_grad and not written to under autograd since.
bool has_no_history(const Tensor& view);
void check_view_inplace(const Tensor& view);
// The gradient that `meta` keeps comes from another node now.
void move_retained(AutogradMeta& meta, Node& from, Node& to);

}  // namespace rushlight
