// SavedVariable: a tensor that a node keeps for its backward pass.
#pragma once
#include <utility>

#include "autograd/node.h"

namespace rushlight {

// What torch.autograd.graph.saved_tensors_hooks made of a saved tensor.
class PackedTensor : public Attachment {
 public:
  Edge edge;  // where the gradient of the saved tensor goes, for higher derivatives
  virtual Tensor unpack() = 0;
};
class SavedTensorHooks : public Attachment {
 public:
  virtual Ref<PackedTensor> pack(const Tensor& t) = 0;
};

// The hooks in force on this thread, innermost last, and the reason why they are forbidden, if they are.
struct SavedHooksState {
  std::vector<Ref<SavedTensorHooks>> stack;
  std::string forbidden;
  bool tracing = false;  // hooks do not see what they save themselves
};
SavedHooksState& saved_hooks_state();
bool saved_hooks_active();  // whether hooks of this thread see what is saved now

class NoSavedHooks {  // scope
 public:
  NoSavedHooks() : before_(std::exchange(saved_hooks_state().tracing, true)) {}
  ~NoSavedHooks() { saved_hooks_state().tracing = before_; }
  NoSavedHooks(const NoSavedHooks&) = delete;

 private:
  bool before_;
};

class SavedVariable {
 public:
  SavedVariable() = default;
  // Outputs are kept detached: the node owns them, so they must not own the node.
  SavedVariable(const Tensor& t, bool is_output);

  bool defined() const { return state_ != State::Empty; }
  bool is_output() const { return is_output_; }
  bool released() const { return state_ == State::Released; }
  // The tensor as it was. Fails when it was freed or changed in place since. `owner` is the node an output
  // belongs to.
  Tensor unpack(Node& owner) const;
  void release();
  void mark_released() { state_ = State::Released; }
  // Replaces the pack and unpack hooks of this one tensor.
  void register_hooks(SavedTensorHooks& hooks);
  void* python() const { return packed_ ? packed_->python() : nullptr; }
  const Tensor& kept() const { return data_; }  // for the cycle collector, and to note an output's tangent

 private:
  enum class State : uint8_t { Empty, Kept, Released };
  bool pack_by_hooks(const Tensor& t);
  [[noreturn]] void fail_version(const Node& owner) const;
  Tensor as_output(const Tensor& data, Node& owner) const;
  Tensor take(Node& owner);

  Tensor data_;
  Ref<PackedTensor> packed_;
  uint32_t version_ = 0;
  uint32_t output_nr_ = 0;
  State state_ = State::Empty;
  bool is_output_ = false;
  bool output_requires_grad_ = false;
  bool was_detached_ = false;  // by detach_(), before it was saved
};

// Releases what `owner` saved, one by one: others may be reading it.
void release_saved(std::span<SavedVariable> saved, Node& owner);

[[noreturn]] void fail_released();

}  // namespace rushlight
