// What autograd keeps beside a tensor, and the questions and changes that the other layers make through it.
#pragma once
#include "autograd/node.h"
#include "dispatch/op.h"

namespace rushlight {

class AccumulateGrad;

struct AutogradMeta {
  struct Extra {                   // rarely present
    Ref<TensorHook> python_hooks;  // Tensor._backward_hooks
    std::vector<Ref<TensorHook>> hooks;
    Ref<PostAccumulateHook> after_accumulate;
    std::string name;
    Tensor tangent;              // of forward-mode differentiation
    uint64_t tangent_level = 0;  // which dual level it belongs to
    bool grad_dtype_set = false;
    OptDType grad_dtype;  // once it is set: what gradients are cast to, or nothing for any dtype
  };
  AutogradMeta() = default;
  ~AutogradMeta() { delete extra.get(); }
  // `lock` guards what may be replaced: grad, grad_fn with what belongs to it, and the hooks in `extra`.
  Tensor grad;
  Ref<Node> grad_fn;
  AccumulateGrad* accumulator = nullptr;  // not owned. Note [Accumulators]
  Published<Extra> extra;                 // owned
  uint32_t output_nr = 0;
  uint32_t seen_version = 0;  // views: the version at which grad_fn was made. Note [Views]
  bool retains_grad = false;
  SpinLock lock;

  Extra& ensure_extra() {
    if (Extra* there = extra) return *there;
    auto mine = std::make_unique<Extra>();
    Extra* there = extra.publish(mine.get());
    if (there == mine.get()) (void)mine.release();
    return *there;
  }
  static void* operator new(size_t) { return FreeList<64, 16>::take(); }
  static void operator delete(void* memory) { FreeList<64, 16>::give(memory); }
};

inline AutogradMeta& autograd_meta(const Tensor& t) {
  if (AutogradMeta* meta = t->autograd) return *meta;
  auto mine = std::make_unique<AutogradMeta>();
  AutogradMeta* there = t->autograd.publish(mine.get());
  if (there == mine.get()) (void)mine.release();
  return *there;
}

// Tensor.requires_grad. A view also requires grad when its base came to do so after the view was taken.
inline bool requires_grad(const Tensor& t) {
  return t.defined() && ((t->flags | (t->view_base ? t->view_base->flags : 0)) & kAutograd);
}
// Checks as PyTorch: floating leaves only, no inference tensors.
void set_requires_grad(const Tensor& t, bool value);
// Tensor.grad_fn; renews that of a view whose base was written in place. Note [Views]
Ref<Node> grad_fn(const Tensor& t);
bool is_leaf(const Tensor& t);
inline uint32_t output_nr(const Tensor& t) { return t->autograd ? t->autograd->output_nr : 0; }
// Where the gradient of `t` goes: its grad_fn, or the accumulator of a leaf; empty when it needs none.
Edge gradient_edge(const Tensor& t);
// The node that adds into t.grad, made on demand.
Ref<Node> grad_accumulator(const Tensor& t);

// Tensor.grad. set_grad checks shape, dtype and device with PyTorch's messages; an undefined grad clears it.
inline Tensor grad_of(const Tensor& t) {
  AutogradMeta* meta = t->autograd;
  if (!meta) return Tensor();
  std::lock_guard guard(meta->lock);
  return meta->grad;
}
// Replaces it without a check, and returns what was there.
inline Tensor exchange_grad(AutogradMeta& meta, Tensor grad) {
  std::lock_guard guard(meta.lock);
  return std::exchange(meta.grad, std::move(grad));
}
// A copy of the node that `meta` names, which another thread may renew.
inline Ref<Node> recorded_node(AutogradMeta& meta) {
  std::lock_guard guard(meta.lock);
  return meta.grad_fn;
}
void set_grad(const Tensor& t, const Tensor& grad);
// Tensor.grad_dtype of a leaf: the dtype that its gradients are cast to; nothing lets them be of any.
OptDType grad_dtype(const Tensor& t);
void set_grad_dtype(const Tensor& t, OptDType dtype);
void retain_grad(const Tensor& t);
inline bool retains_grad(const Tensor& t) { return t->autograd && t->autograd->retains_grad; }

// Makes `t` a result of `node`, at output `output`.
void set_history(const Tensor& t, const Ref<Node>& node, uint32_t output);
// The same for a tensor written in place: views pass the write on to their base.
void rebase_history(const Tensor& t, const Ref<Node>& node, uint32_t output = 0);
// Fails with PyTorch's messages where a recorded in-place write to `t` is not possible.
void check_inplace(const Tensor& t, bool recorded);

// A tensor on the same memory outside the graph: detach() shares the version counter, data() has its own.
Tensor detach(const Tensor& t);
void detach_in_place(const Tensor& t);
Tensor tensor_data(const Tensor& t);
void set_data(const Tensor& t, const Tensor& source);

// Tensor.register_hook for C++: returns a function that removes the hook.
std::function<void()> register_tensor_hook(const Tensor& t, Ref<TensorHook> hook);
// The dictionary of hooks that Python keeps; attaches it to the leaf or to its grad_fn.
void set_python_hooks(const Tensor& t, Ref<TensorHook> hooks);
void set_post_accumulate_hook(const Tensor& t, Ref<PostAccumulateHook> hook);

// Must be called once, before the first tensor with autograd state dies.
void install_autograd_meta();

}  // namespace rushlight
