// Profiling: tells the recorder of every operator call and of every step of a backward pass.
#pragma once
#include "dispatch/op.h"

namespace rushlight {

// Sees every call on its thread when it has run, composites after what they called; asked where kProfiled is
// in dispatch_state.always, a profiler running or not. Set by src/python.
struct CallObserver {
  virtual void enter() = 0;
  virtual void leave() noexcept = 0;  // also of a call that failed
  virtual void ran(const Frame& frame) = 0;

 protected:
  ~CallObserver() = default;
};
extern thread_local CallObserver* call_observer;

void install_profiler();

}  // namespace rushlight
