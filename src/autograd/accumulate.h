// AccumulateGrad: the end of the graph, where gradients are added into the .grad of a leaf.
#pragma once
#include "autograd/meta.h"

namespace rushlight {

// Whether a gradient that lies otherwise than its leaf is copied into the leaf's layout. Of this thread.
extern thread_local bool gradient_layout_enforced;

// Whether the pass now running computes but some of the gradients: those of the tensors that it was given.
bool pass_is_partial();

// Whether nobody else sees the dense tensor or its memory, so that it may be written over or given away. That
// holds for a view of all of a tensor which only the view keeps alive, too.
bool held_alone(const Tensor& t, uint32_t holders = 1);
// Makes such a view a tensor of its own.
void leave_base(Tensor& t);

// Note [Accumulators]
// A leaf's accumulator lives while a graph refers to it. It owns the leaf; the leaf only knows it
// (AutogradMeta::accumulator). Both sides take the lock of the leaf's meta: whoever finds the accumulator
// there takes a reference under the lock, and the accumulator, whose last reference is gone, looks under the
// lock whether somebody just did so (leave).
class AccumulateGrad final : public Node {
 public:
  explicit AccumulateGrad(const Tensor& leaf);
  static void destroy(AccumulateGrad* node) noexcept { Node::destroy(node); }

  std::string name() const override { return "AccumulateGrad"; }
  Gradients apply(Gradients grads) override;
  void run_tensor_hooks(Gradients& grads) override;
  const Tensor& variable() const { return variable_; }
  void expect_dtype(OptDType dtype);  // nothing: any

  static void* operator new(size_t) { return Pool::take(); }
  static void operator delete(void* memory) { Pool::give(memory); }

 private:
  using Pool = FreeList<256, 16>;
  ~AccumulateGrad() override = default;
  bool leave() noexcept override;
  void accumulate(Tensor grad);
  uint32_t holders() const;

  Tensor variable_;
  InputMeta meta_;
  std::mutex mutex_;  // held while adding
};
static_assert(sizeof(AccumulateGrad) <= 256);

}  // namespace rushlight
