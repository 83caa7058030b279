// Levels: the nested function transforms of torch.func, and the tensors that stand for others inside them.
#pragma once
#include <map>

#include "dispatch/operands.h"

namespace rushlight {

// Note [Levels]
// Every running transform (grad, vjp, jvp, vmap, ...) is a Level; dispatch_state.level is the innermost one,
// each knows its parent, and the bottom is ordinary eager execution. A tensor of a level is a TensorImpl that
// wraps a tensor of some level further out:
// - At a Vmap level the inner tensor has one dimension more, which the wrapper hides; the wrapper has no
//   memory of its own, so that nobody reads it past the rules.
// - At a Grad or Jvp level the inner tensor is the same value one level out; the wrapper shares its memory
//   and has its own autograd state. So each level has its own graph and its own tangents, and nothing that
//   belongs to one derivative can be confused with another.
// While a level is active, every operator but a composite passes through the interceptor kWrapped. It asks
// the innermost level first. Vmap takes a call when an operand is batched at this level (or when it draws
// random numbers) and otherwise leaves it to its parent; Grad and Jvp take every call: they lift all operands
// to wrappers, record the call as usual, and compute it one level further out (kLowered). There a mode
// (gradients, tangents) is on if it is on for the caller and was on when the level began: no_grad inside a
// transform holds for all levels, no_grad around one does not concern the transform. Nor does inference mode
// around a Grad level, which ends it for as long as the level lives. A tensor that outlives its level counts
// as what it wraps.
enum class LevelKind : uint8_t { Vmap, Grad, Jvp };
enum class Randomness : uint8_t { Error, Different, Same };

struct Level : RefCounted {
  LevelKind kind = LevelKind::Grad;
  Randomness randomness = Randomness::Error;
  bool alive = true;
  bool grad_enabled = true;     // outside, when the level began
  bool forward_enabled = true;  // likewise
  bool inference = false;       // likewise
  int64_t batch_size = 0;
  int64_t depth = 1;
  Ref<Level> parent;
  static void destroy(Level* level) { delete level; }
};

// A bit of TensorImpl::flags: a wrapper of this tensor has views, so it keeps the memory that they show.
constexpr uint32_t kViewedAtLevel = 1u << 20;

struct Wrapping {
  Tensor inner;
  Ref<Level> level;
  int64_t batch_dim = -1;  // of `inner`; -1 at Grad and Jvp levels
};

// Begins a level inside the present one; leave_level ends the innermost one.
Level& enter_level(LevelKind kind, int64_t batch_size = 0, Randomness randomness = Randomness::Error);
void leave_level();

class NewLevel {  // scope
 public:
  explicit NewLevel(LevelKind kind) : level_(enter_level(kind)) {}
  ~NewLevel() { leave_level(); }
  NewLevel(const NewLevel&) = delete;
  Level& level() const { return level_; }

 private:
  Level& level_;
};

// Scope: execution at `level`, which is the present one or further out, under the modes that hold there.
class AtLevel {
 public:
  explicit AtLevel(Level* level);
  ~AtLevel();
  AtLevel(const AtLevel&) = delete;

 private:
  DispatchState saved_;
  uint32_t view_flags_;
};

inline Wrapping* wrapping_at(const Tensor& t, const Level& level) {
  return t.defined() && t->wrapping && t->wrapping->level.get() == &level ? t->wrapping : nullptr;
}
// Whether the program, or a transform further out, differentiates what is computed from `t`.
bool has_history(const Tensor& t);
// What `t` stands for once the levels that have ended are forgotten.
Tensor without_dead(const Tensor& t);

// `inner` as a tensor of `level`. batched: `dim` is the dimension of examples.
Tensor wrap_tensor(const Tensor& inner, Level& level);
Tensor wrap_batched(const Tensor& inner, int64_t dim, Level& level);
// Makes a tensor that no program has seen yet stand for itself at `level`, so that it can be written to.
bool promote_in_place(const Tensor& t, Level& level);
// Fails for a tensor whose memory its level hides.
void check_memory(const Tensor& t);
// After a write to `inner` that may have changed its geometry.
void refresh_wrapper(const Tensor& t);

// Every Tensor operand of a call replaced by f(operand, parameter); owns what it makes.
class Operands {
 public:
  template <class F>
  Operands(const Frame& frame, F&& f) : args_(frame.args, frame.args + frame.arg_count()) {
    for (uint64_t bits = frame.op.tensor_parameters; bits; bits &= bits - 1) {
      const int p = __builtin_ctzll(bits);
      const Value& v = frame.args[p];
      if (v.tag() == Tag::Tensor && v.tensor().defined()) {
        args_[p] = Value(single_[p] = f(v.tensor(), p));
      } else if (v.tag() == Tag::TensorList) {
        std::vector<Tensor>& list = lists_[p];
        for (const Tensor& t : v.tensors()) list.push_back(t.defined() ? f(t, p) : t);
        args_[p] = Value(TensorList(list));
      }
    }
    if (!frame.out) return;
    for (int i = 0; i < target_count(frame); ++i) out_[i] = f(frame.out[i], -1);
    has_out_ = true;
  }
  const Value* args() const { return args_.data(); }
  Value& operator[](int p) { return args_[p]; }
  const Tensor* out() const { return has_out_ ? out_ : nullptr; }

 private:
  std::vector<Value> args_;
  std::map<int, Tensor> single_;
  std::map<int, std::vector<Tensor>> lists_;
  Tensor out_[Results::kMax];
  bool has_out_ = false;
};

// Vmap's part of the interceptor; false when the call does not concern `level`.
bool run_batched(Frame& frame, Level& level);
void install_levels();
void install_reference_gradients();

}  // namespace rushlight
