// Blocks of images as columns, and back.
#pragma once
#include <cstdint>

#include "core/dtype.h"

namespace rushlight::cpu {

// image [planes, height, width]; columns [planes, kernel_h, kernel_w, rows, columns]; both contiguous.
struct FoldPlan {
  int64_t planes = 0, height = 0, width = 0, rows = 0, columns = 0;
  int64_t kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0;
  int64_t dilation_h = 1, dilation_w = 1;
};

void image_to_columns(DType dtype, const FoldPlan& plan, const void* image, void* columns);
// Adds up; image starts as zeros.
void columns_to_image(DType dtype, const FoldPlan& plan, const void* columns, void* image);

}  // namespace rushlight::cpu
