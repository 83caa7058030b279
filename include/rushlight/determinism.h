// What results may depend on: see docs/determinism.md.
#pragma once

namespace rushlight {

// A row's result has the same bits in any batch and on any number of threads, for the process from now on.
void use_batch_invariant(bool mode);
bool is_batch_invariant_enabled();

// The same for the length of a scope.
class BatchInvariantGuard {
 public:
  explicit BatchInvariantGuard(bool mode = true) : before_(is_batch_invariant_enabled()) {
    use_batch_invariant(mode);
  }
  ~BatchInvariantGuard() { use_batch_invariant(before_); }
  BatchInvariantGuard(const BatchInvariantGuard&) = delete;

 private:
  bool before_;
};

}  // namespace rushlight
