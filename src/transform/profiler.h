// Profiling: tells the recorder of every operator call and of every step of a backward pass.
#pragma once
#include "dispatch/op.h"

namespace rushlight {

// Sees every call on its thread when it has run, composites after what they called; asked where kProfiled is
// in dispatch_state.always, a profiler running or not.
struct CallObserver {
  virtual void enter() = 0;
  virtual void leave() noexcept = 0;  // also of a call that failed
  virtual void ran(const Frame& frame) = 0;

 protected:
  ~CallObserver() = default;
};
// This thread's, or null. A function of src/python, whose thread-local variables are no static ones.
extern CallObserver* (*call_observer)();

void install_profiler();

}  // namespace rushlight
