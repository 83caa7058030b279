// The negative log likelihood of target classes.
#pragma once
#include "core/dtype.h"

namespace rushlight::cpu {

// log_probabilities [batch, classes, inner], targets [batch, inner], all contiguous; weights of the same
// type, or null.
struct NllPlan {
  int64_t batch = 1, classes = 0, inner = 1;
  int64_t ignored = -100;
  const int64_t* target = nullptr;
  const void* weight = nullptr;
};

// Fails with IndexError if a target is no class.
void check_targets(const NllPlan& plan);
// losses[batch, inner]
void nll_each(const NllPlan& plan, DType dtype, const void* log_probabilities, void* losses);
struct NllSums {
  double loss = 0, weight = 0;
};
NllSums nll_sums(const NllPlan& plan, DType dtype, const void* log_probabilities);
// grad_in, zeros before: -weight * grad at the targets. `grad` is one element (inner and batch step 0) or one
// per target.
void nll_backward(const NllPlan& plan, DType dtype, const void* grad, bool grad_each, double scale,
                  void* grad_in);

}  // namespace rushlight::cpu
