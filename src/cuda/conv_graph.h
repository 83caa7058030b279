// Convolutions by cuDNN's graphs: one operation each, whose plan is taken from what cuDNN's heuristics
// propose.
#pragma once
#include <memory>

#include "cuda/conv_plan.h"

namespace rushlight::cuda {

// What a convolution reads and writes; the order of cuDNN's names x, w, y.
struct ConvMemory {
  void *input, *weight, *output;
  // The largest power of two, up to 16, at whose multiples all of it begins.
  int alignment() const;
};

struct ConvWishes {
  bool tf32, deterministic, benchmark;
  size_t most_memory;
};

// A finished plan of one handle.
class ConvGraph {
 public:
  // Null where cuDNN has none. To choose by trying, `wishes.benchmark`, overwrites the result.
  static std::unique_ptr<ConvGraph> make(void* handle, int device, const ConvPlan& plan, ConvPass pass,
                                         const ConvMemory& memory, const ConvWishes& wishes);
  virtual ~ConvGraph() = default;
  virtual bool run(const ConvMemory& memory, int device) const = 0;
};

}  // namespace rushlight::cuda
