// Connectionist temporal classification: the forward and backward recursions over alignments.
#pragma once
#include <cstdint>

#include "core/dtype.h"

namespace rushlight::cpu {

// One sample. Class c of step t is at t * step + c * class_step; the gradient needs classes side by side.
// States are the labels with blanks around: 2 * labels
// + 1.
struct CtcSample {
  const void* log_probs = nullptr;
  int64_t step = 0, class_step = 1, steps = 0, classes = 0;
  const int64_t* labels = nullptr;
  int64_t label_count = 0, blank = 0;
  void* alpha = nullptr;  // log_alpha, rows of `width` states
  int64_t width = 0;
};

// Fills alpha; the negative log likelihood.
double ctc_forward(DType dtype, const CtcSample& sample);
// grad[t * step + c] for all steps and classes, scaled by grad_out.
void ctc_backward(DType dtype, const CtcSample& sample, double loss, double grad_out, void* grad);

}  // namespace rushlight::cpu
