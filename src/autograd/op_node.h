// OpNode: a recorded operator call. One allocation holds the node and all it saved.
#pragma once
#include "autograd/saved.h"
#include "dispatch/op.h"

namespace rushlight {

// Note [OpNode memory]
// Behind the object lie, in this order: edges, output descriptions, saved shapes, attributes, saved tensors and the bytes of
// list attributes. Parameters find their part through the short tables `edge_at`, `saved_at`, ..., indexed by the rank of the
// parameter's bit in the record's masks.
class OpNode final : public Node {
 public:
  // Collects edges and saves inputs, shapes and attributes as the record's derivative says.
  static Ref<OpNode> record(const Op& op, const Value* args, uint64_t overwritten);

  std::string name() const override;
  Gradients apply(Gradients grads) override;
  void release_saved() override;

  const Op& op() const { return op_; }
  // Describes output `i` and saves it where the derivative reads it. All outputs must be announced.
  void set_output_count(size_t n);
  void describe_output(size_t i, const Tensor& t);
  void save_output(size_t i, const Tensor& t);
  bool output_is_differentiable(size_t i) const { return i == 0 || (op_.derivative.used_grads >> i & 1); }

  // For Python's _saved_* attributes: the saved tensors of a parameter or output, and attributes.
  bool saves_input(int parameter) const { return op_.derivative.saved_inputs >> parameter & 1; }
  std::span<SavedVariable> saved_inputs(int parameter);
  SavedVariable* saved_output(int index);
  const Value* attribute(int parameter) const;  // null when it is not saved

 private:
  friend class OpContext;
  struct Plan;
  OpNode(const Op& op, uint32_t bytes) : op_(op), bytes_(bytes) { is_op = true; }
  ~OpNode() override;
  void free() noexcept override;

  const Op& op_;
  uint32_t bytes_;
};

}  // namespace rushlight
