#include "autograd/saved.h"

#include "autograd/engine.h"
#include "core/history_flags.h"

namespace rushlight {

// Whether this thread ever had hooks: reaching them takes a guard, this does not.
static thread_local constinit bool hooks_used __attribute__((tls_model("initial-exec"))) = false;

SavedHooksState& saved_hooks_state() {
  static thread_local SavedHooksState state;
  hooks_used = true;
  return state;
}

bool saved_hooks_active() { return hooks_used && !saved_hooks_state().stack.empty(); }

void fail_released() {
  RL_FAIL(
      "Trying to backward through the graph a second time (or directly access saved tensors after they have "
      "already been "
      "freed). Saved intermediate values of the graph are freed when you call .backward() or "
      "autograd.grad(). Specify "
      "retain_graph=True if you need to backward through the graph a second time or if you need to access "
      "saved tensors "
      "after calling backward.");
}

namespace {

Ref<PackedTensor> pack(SavedTensorHooks& hooks, const Tensor& t) {
  NoSavedHooks unseen;
  GradMode off(false);
  const uint32_t version = t.version();
  Ref<PackedTensor> packed = hooks.pack(t);
  RL_CHECK(
      t.version() == version,
      "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook can "
      "not be modified by in-place operations as this can lead to unexpected side-effects. Please open an "
      "issue if you need to perform in-place operations on the input to a pack hook.");
  return packed;
}

}  // namespace

SavedVariable::SavedVariable(const Tensor& t, bool is_output) : state_(State::Kept), is_output_(is_output) {
  if (!t.defined()) {
    state_ = State::Empty;
    return;
  }
  RL_CHECK(!(t->flags & kInference),
           "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference "
           "mode in computation "
           "tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it "
           "in autograd, or "
           "use `torch.no_grad()` instead of `torch.inference_mode()`.");
  version_ = t.version();
  was_detached_ = t->flags & kDetachedInPlace;
  if (is_output) {
    output_nr_ = output_nr(t);
    output_requires_grad_ = requires_grad(t);
  }
  if (hooks_used && !(t->flags & kWrappedNumber) && pack_by_hooks(t)) return;
  data_ = is_output ? detach(t) : t;
}

bool SavedVariable::pack_by_hooks(const Tensor& t) {
  const SavedHooksState& hooks = saved_hooks_state();
  if (hooks.stack.empty() || hooks.tracing) return false;
  RL_CHECK(hooks.forbidden.empty(), hooks.forbidden);
  const Ref<SavedTensorHooks> innermost = hooks.stack.back();
  packed_ = pack(*innermost, is_output_ ? detach(t) : t);
  if (!is_output_) packed_->edge = gradient_edge(t);
  return true;
}

namespace {

// What forward mode knows of a saved tensor is known of its stand-in, or derivatives of derivatives lack a
// part.
void keep_tangent(const Tensor& from, const Tensor& to) {
  if (!(from->flags & kForwardGrad) || !from->autograd || !from->autograd->extra) return;
  AutogradMeta::Extra& extra = autograd_meta(to).ensure_extra();
  extra.tangent = from->autograd->extra->tangent;
  extra.tangent_level = from->autograd->extra->tangent_level;
  to->flags |= kForwardGrad;
}

}  // namespace

Tensor SavedVariable::as_output(const Tensor& data, Node& owner) const {
  if (!output_requires_grad_ || !GradMode::enabled()) return data;
  Tensor result = detach(data);
  set_history(result, Ref<Node>::share(&owner), output_nr_);
  keep_tangent(data, result);
  return result;
}

Tensor SavedVariable::unpack(Node& owner) const {
  SavedVariable now;  // another pass may release this one meanwhile
  {
    std::lock_guard guard(owner.lock);
    if (state_ == State::Empty) return {};
    if (state_ == State::Released) fail_released();
    now = *this;
  }
  return now.take(owner);
}

Tensor SavedVariable::take(Node& owner) {
  if (packed_) {
    Tensor data = packed_->unpack();
    if (packed_->edge && GradMode::enabled()) {
      const Tensor unpacked = data;
      data = detach(data);
      set_history(data, packed_->edge.node, packed_->edge.input);
      keep_tangent(unpacked, data);
    }
    return is_output_ ? as_output(data, owner) : data;
  }
  if (data_.version() != version_) [[unlikely]]
    fail_version(owner);
  if ((data_->flags & kDetachedInPlace) && !was_detached_) [[unlikely]]
    RL_FAIL(
        "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_().This is not "
        "supported, please use out-of-place `.detach()` instead");
  return is_output_ ? as_output(data_, owner) : std::move(data_);
}

void SavedVariable::fail_version(const Node& owner) const {
  std::string text =
      str("one of the variables needed for gradient computation has been modified by an inplace operation: "
          "[torch.",
          legacy_name(data_.dtype()), "Tensor ", data_.sizes(), "]");
  AutogradMeta* meta = data_->autograd;
  const Ref<Node> made_by = !is_output_ && meta ? recorded_node(*meta) : nullptr;
  if (const Node* maker = is_output_ ? &owner : made_by.get()) {
    std::string name = maker->name();
    if (const size_t at = name.rfind("Backward"); at != std::string::npos) name.resize(at);
    text += str(", which is output ", is_output_ ? output_nr_ : output_nr(data_), " of ", name, ",");
  }
  text += str(" is at version ", data_.version(), "; expected version ", version_, " instead.");
  if (const std::string_view* writer = data_->storage ? data_->storage->last_writer.load() : nullptr)
    text += str(" It was last written by ", *writer, "().");
  text +=
      anomaly_state.enabled
          ? " Hint: the backtrace further above shows the operation that failed to compute its gradient. The "
            "variable in "
            "question was changed in there or anywhere later. Good luck!"
          : " Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
            "torch.autograd.set_detect_anomaly(True, check_nan=False).";
  RL_FAIL(text);
}

void release_saved(std::span<SavedVariable> saved, Node& owner) {
  for (SavedVariable& variable : saved) {
    SavedVariable dead;  // dies outside the lock: its end may run user code
    std::lock_guard guard(owner.lock);
    std::swap(dead, variable);
    if (dead.defined()) variable.mark_released();
  }
}

void SavedVariable::release() {
  if (state_ == State::Empty) return;
  state_ = State::Released;
  data_.reset();
  packed_.reset();
}

void SavedVariable::register_hooks(SavedTensorHooks& hooks) {
  RL_CHECK(state_ != State::Released,
           "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of "
           "the graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if "
           "you need to backward through the graph a second time or if you need to access saved variables "
           "after calling backward.");
  RL_CHECK(state_ == State::Kept, "Calling register_hooks on a saved tensor with value None is forbidden");
  RL_CHECK(!packed_,
           "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair "
           "of hooks "
           "is allowed at a time.");
  RL_CHECK(data_.version() == version_,
           "Saved tensor was modified in place before its hooks were registered");
  packed_ = pack(hooks, data_);
  if (!is_output_) packed_->edge = gradient_edge(data_);
  data_.reset();
}

}  // namespace rushlight
