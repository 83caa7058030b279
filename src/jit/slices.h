// Which steps of a graph run on a few examples of the batch at a time, so that what lies between them stays
// in the caches.
#pragma once
#include "jit/graph.h"

namespace rushlight::jit {

struct Step;
struct Frame;

// Note [Examples in turn]
// Images of many pixels leave the caches between one layer and the next when a batch of them is computed
// layer by layer. Layers that treat each example alone give the same result for one after the other, in less
// time and in memory that does not grow with the batch. What speaks against it: weights are read for each
// slice, which is why layers of few pixels and many channels are left whole.
struct Slices {
  size_t begin = 0, end = 0;     // nodes
  int64_t bytes = 0;             // that the largest of these nodes reads and writes for one example
  std::vector<ValueId> inputs;   // made elsewhere, their first dimension counts examples
  std::vector<ValueId> outputs;  // used elsewhere

  void run(const std::vector<Step>& steps, Frame& frame) const;
};

// In the order of the nodes, apart from each other. Nothing where the graph writes to values.
std::vector<Slices> find_slices(const Graph& graph);

}  // namespace rushlight::jit
