// Hinge losses of rows of class scores, of the classes that belong to a row against all others.
#pragma once
#include "core/dtype.h"

namespace rushlight::cpu {

// Scores [rows, classes], contiguous; weights of the same type, or null.
struct MarginPlan {
  int64_t rows = 0, classes = 0;
  const int64_t* target = nullptr;  // one class a row; or `classes` of them, of which those before a -1 count
  bool listed = false;
  bool squared = false;
  double margin = 1;
  const void* weight = nullptr;  // by the target class
};

// Fails if a target is no class.
void check_margin_targets(const MarginPlan& plan);
// losses[rows]
void margin_loss(const MarginPlan& plan, DType dtype, const void* scores, void* losses);
// grad_losses[rows], grad_scores[rows, classes]
void margin_loss_backward(const MarginPlan& plan, DType dtype, const void* grad_losses, const void* scores,
                          void* grad_scores);

}  // namespace rushlight::cpu
