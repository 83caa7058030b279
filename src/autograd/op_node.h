// OpNode: a recorded operator call. One allocation holds the node and all it saved.
#pragma once
#include "autograd/saved.h"
#include "dispatch/op.h"

namespace rushlight {

// Note [OpNode memory]
// Behind the object lie, in this order: edges, output descriptions, saved shapes, attributes, saved tensors,
// the index and the bytes of list attributes. The index gives, for each Tensor parameter, where its edges,
// saved tensors and shapes begin; a Tensor[] parameter has as many of each as it has elements.
class OpNode final : public Node {
 public:
  // Collects edges and saves inputs, shapes and attributes as the record's derivative says. The parameters in
  // `overwritten` are about to be written in place: of those, a copy is saved.
  static Ref<OpNode> record(const Op& op, const Value* args, uint64_t overwritten);

  std::string name() const override;
  Gradients apply(Gradients grads) override;
  void release_saved() override;
  void each_saved(const std::function<void(const SavedVariable&)>& f) const override {
    for (uint32_t i = 0; i < saved_count_; ++i) f(saved_[i]);
  }

  const Op& op() const { return op_; }
  // For operators that return a list: how long it is. Others know from their schema.
  void set_output_count(size_t n);
  void describe_output(size_t i, const Tensor& t) {
    outputs_[i] = InputMeta{t->sizes, t.dtype(), t.device()};
  }
  void save_output(size_t i, const Tensor& t) { *saved_output(static_cast<int>(i)) = SavedVariable(t, true); }
  bool output_is_differentiable(size_t i) const {
    return i == 0 || (i < 32 ? op_.derivative.used_grads >> i & 1 : op_.derivative.used_grads == ~0u);
  }

  // For Python's _saved_* attributes; empty or null when the derivative does not save it.
  std::span<SavedVariable> saved_inputs(int parameter);
  SavedVariable* saved_output(int index);
  const Value* attribute(int parameter) const;
  const InputMeta* saved_shape(int parameter) const;  // of a Tensor parameter

 private:
  friend class OpContext;
  struct Plan;
  struct Start {  // of one Tensor parameter's entries
    uint32_t edge, saved, shape;
  };
  OpNode(const Op& op, const Plan& plan, std::byte* memory);
  ~OpNode() override;
  void free() noexcept override;
  void fill(const Value* args, const Plan& plan, uint64_t overwritten);
  int rank(int parameter) const {
    return __builtin_popcountll(op_.tensor_parameters & ((1ull << parameter) - 1));
  }
  const Start& start(int parameter) const { return starts_[rank(parameter)]; }
  const Edge* edge(int parameter, int element) const;  // null where no gradient is wanted
  bool needs(int parameter, int element) const { return edge(parameter, element); }

  const Op& op_;
  uint32_t bytes_, saved_count_, shape_count_;
  bool outputs_on_heap_ = false;
  uint8_t column_majors_ = 0;  // of the first parameters, as far as the derivative asks
  InputMeta* shapes_;
  Value* attributes_;
  SavedVariable* saved_;  // inputs, then outputs
  Start* starts_;         // one more than there are Tensor parameters
};

}  // namespace rushlight
