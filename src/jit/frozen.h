// State that a program reads and nobody writes to between its runs, such as a network's weights: what depends
// on it alone is computed once, and kernels may keep what they make of it. Note [Frozen state]
#pragma once
#include "core/constant_memory.h"
#include "core/write_watch.h"
#include "jit/executor.h"

namespace rushlight::jit {

// Note [Frozen state]
// A frozen value is never trusted: before each run its sources are looked at, and after a write, counted or
// not, all is computed anew. What could be written to without notice (memory that NumPy, another process or a
// file shares) is computed in each run, and kernels keep nothing of it.
class FrozenState {
 public:
  struct Made {
    explicit Made(const std::vector<Tensor>& sources) : watch(sources) {}
    WriteWatch watch;  // from before anything was computed
    std::vector<Tensor> values;
    ConstantSet constants;
  };

  // The graph computes the values from the sources.
  explicit FrozenState(Graph graph) : executor_(std::move(graph), {}, {.plan_memory = false}) {}
  // Holds no handle of the sources: programs may ask how many there are.
  std::shared_ptr<Made> current(const std::vector<Tensor>& sources);
  int64_t computed() const { return computed_; }  // how often; for tests

 private:
  Executor executor_;
  std::mutex mutex_;
  std::shared_ptr<Made> made_;
  std::atomic<int64_t> computed_{0};
};

}  // namespace rushlight::jit
