// What the executor makes of a node: arguments boxed as far as they are known, and places to fill in.
#pragma once
#include <deque>
#include <memory>

#include "jit/graph.h"
#include "jit/memory_plan.h"

namespace rushlight::jit {

// The values of one run, kept for later ones.
struct Frame {
  std::vector<Tensor> tensors;  // by ValueId; constants stay
  std::vector<Scalar> numbers;

  std::vector<Value> args;  // of the call under way, and what they borrow
  std::deque<std::vector<Tensor>> tensor_lists;
  std::deque<std::vector<int64_t>> int_lists;
  std::vector<Tensor> wrapped;

  Ref<Arena> arena;
  std::unique_ptr<PlannedMemory> source;
  bool ran_planned = false;
  int64_t reused = 0;

  StorageSource* planned(const MemoryPlan& plan);
};

struct Step {
  // Where in the arguments a value of the run stands; lists that hold some are made anew.
  struct Place {
    size_t index;
    const Parameter* parameter;
    ValueId value;
    bool number = false;  // the value is one
    const List* list = nullptr;
  };
  const Node* node = nullptr;
  std::vector<Value> args;
  std::deque<OwnedValue> owned;  // what args borrow
  std::vector<Place> places;
  std::vector<ValueId> dying;  // last used here
  ValueId reuse = kNoValue;    // the operand that the result may take the place of
  DType result_dtype = DType::Float32;

  void prepare(const Graph& graph);
  void find_reuse(const Graph& graph);  // once it is known what dies
  void run(Frame& frame) const;

 private:
  void add_argument(const Graph& graph, const Argument& argument, const Parameter& parameter);
  void call(Frame& frame) const;
  const std::vector<Value>& fill(Frame& frame) const;
  bool may_reuse(const Frame& frame, const std::vector<Value>& args) const;
  void keep_results(Frame& frame, Results& results) const;
  int64_t compute_size(const Frame& frame) const;
  Value boxed(const Argument& argument, Tag type);
  Value boxed_list(const List& list, Tag type);
  Value value_of(const Place& place, Frame& frame) const;
  Value list_of(const Place& place, Frame& frame) const;
  const Tensor& tensor_of(const Place& place, ValueId id, bool optional, const Frame& frame) const;
};

}  // namespace rushlight::jit
