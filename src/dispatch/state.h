// What the gate considers on this thread, and grad mode, which is part of it.
#pragma once
#include "core/tensor.h"

namespace rushlight {

struct Level;

// Note [The gate]
// always: interceptors on for every call (autocast, profiler, ...). consider: tensor flag bits that matter
// now; grad mode off clears kAutograd from it. A call takes the straight path when (always | (flags &
// consider)) & op.intercepted is 0.
struct DispatchState {
  uint32_t always = 0;
  uint32_t consider = kDispatchBits & ~kForwardGrad;  // the latter while a dual level is active
  bool grad_enabled = true;
  bool inference = false;
  Level* level = nullptr;  // the innermost function transform. Note [Levels] in transform/level.h
};
extern thread_local DispatchState dispatch_state __attribute__((tls_model("initial-exec")));

// Whether what is computed now may be differentiated: a derivative then takes its differentiable reference.
inline bool derivatives_wanted() { return dispatch_state.consider & (kAutograd | kForwardGrad); }

class GradMode {  // scope: GradMode off(false);
 public:
  explicit GradMode(bool enabled) : previous_(dispatch_state.grad_enabled) { set(enabled); }
  ~GradMode() { set(previous_); }
  GradMode(const GradMode&) = delete;
  static bool enabled() { return dispatch_state.grad_enabled; }
  static bool is_enabled() { return enabled(); }  // PyTorch's names
  static void set_enabled(bool enabled) { set(enabled); }
  static void set(bool enabled) {
    dispatch_state.grad_enabled = enabled;
    const bool records = enabled && !dispatch_state.inference;
    dispatch_state.consider =
        records ? dispatch_state.consider | kAutograd : dispatch_state.consider & ~kAutograd;
    view_flags = enabled ? 0u : uint32_t{kNoGradView};
  }

 private:
  bool previous_;
};

// Under inference mode nothing is recorded, whatever grad mode says, and new tensors can never be part of a
// graph.
inline void set_inference_mode(bool on) {
  dispatch_state.inference = on;
  new_tensor_flags = on ? uint32_t{kInference} : 0u;
  GradMode::set(GradMode::enabled());
}

}  // namespace rushlight
