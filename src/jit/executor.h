// Executor: runs a graph on tensors. Any number of threads may run one executor at a time.
#pragma once
#include <list>
#include <memory>
#include <mutex>
#include <span>

#include "jit/graph.h"
#include "jit/memory_plan.h"
#include "jit/slices.h"

namespace rushlight::jit {

struct Step;  // jit/step.h
struct Frame;

struct ExecutorOptions {
  bool plan_memory = true;  // serve runs after the first one of the same sizes from one block of memory
  // The constants lie in a mapped file that does not change: kernels may keep what they make of them, and
  // their pages may leave memory. Never for constants of another origin.
  bool mapped_constants = false;
  // The same of a file that is in memory already: nothing else holds what is in its pages.
  bool constants_in_file = true;
};

// What an executor has done, for tests and for those who wonder.
struct ExecutorStatistics {
  int64_t runs = 0, planned_runs = 0, reused_operands = 0;
  size_t arena_bytes = 0;  // of the largest plan
};

class Executor {
 public:
  // Every constant of the graph must be there, of the type the graph says.
  Executor(Graph graph, Constants constants, ExecutorOptions options = {});
  ~Executor();
  Executor(const Executor&) = delete;

  // The outputs for these inputs, nothing recorded for autograd. Each value is freed after its last use,
  // inputs that nobody else holds included. `state` is in the order of graph().states(); runs write to it,
  // so that two must not share it at a time, and no output shares its memory. `any_rows`: the first size of
  // state may differ from the graph's.
  std::vector<Tensor> run(std::vector<Tensor> inputs, std::span<const Tensor> state = {},
                          bool any_rows = false);
  std::vector<Tensor> run(std::span<const Tensor> inputs) {
    return run(std::vector<Tensor>(inputs.begin(), inputs.end()));
  }

  const Graph& graph() const { return graph_; }
  ExecutorStatistics statistics() const;
  // What the inputs must be, one line each: "x: float32[N, 3, 224, 224] where N in [1, inf]".
  std::string expected_inputs() const;

 private:
  struct Planned {
    std::vector<int64_t> sizes;  // of all inputs
    std::shared_ptr<const MemoryPlan> plan;
  };
  using Sizes = std::vector<int64_t>;

  void compile();
  void add_state(const Node& node);
  Sizes check_inputs(std::span<const Tensor> inputs) const;
  [[noreturn]] void refuse_input(const std::string& what) const;
  void check_state(std::span<const Tensor> state, bool any_rows) const;
  void execute(Frame& frame, std::vector<Tensor>& inputs, std::span<const Tensor> state);
  Tensor output_of(const Frame& frame, ValueId id, std::span<const Tensor> state) const;
  std::shared_ptr<const MemoryPlan> find_plan(const Sizes& sizes);
  void add_plan(Sizes sizes, std::shared_ptr<const MemoryPlan> plan);
  std::unique_ptr<Frame> take_frame(const Sizes& sizes, std::shared_ptr<const MemoryPlan>& plan);
  void give_frame(std::unique_ptr<Frame> frame);

  const Graph graph_;
  const Constants constants_;
  const ExecutorOptions options_;
  std::vector<Step> steps_;
  std::vector<Slices> slices_;
  std::vector<Tensor> pinned_;  // constants of which kernels keep what they make
  std::vector<ValueId> held_;   // what a frame still holds after a run
  struct StateUse {
    size_t index;  // into graph().states()
    ValueId value;
  };
  std::vector<std::string> states_;
  std::vector<StateUse> state_uses_;
  bool fixed_ = false;        // every size of every input is a number: there is one plan
  mutable std::mutex mutex_;  // of what follows
  std::list<Planned> plans_;  // those used last come first
  std::vector<std::unique_ptr<Frame>> idle_;
  ExecutorStatistics statistics_;
};

}  // namespace rushlight::jit
