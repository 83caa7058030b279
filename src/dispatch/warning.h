// Warnings that are shown once a process, or each time where a program asked for that.
#pragma once
#include <atomic>

namespace rushlight {

inline std::atomic<bool> warn_always{false};    // torch.set_warn_always
inline std::atomic<bool> warn_of_loops{false};  // of vmap, where an operator has no rule for batches

inline bool warns_now(std::atomic<bool>& warned) { return !warned.exchange(true) || warn_always; }

// For a static variable beside what it warns of.
class OnceWarning {
 public:
  constexpr explicit OnceWarning(const char* text) : text_(text) {}
  void show();

 private:
  const char* text_;
  std::atomic<bool> shown_{false};
};

}  // namespace rushlight
