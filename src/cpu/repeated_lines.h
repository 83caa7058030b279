// Expanded tensors hold the same line again and again, of which one is computed.
#pragma once
#include "core/tensor.h"
#include "cpu/copy.h"

namespace rushlight::cpu {

// Calls run(tensor without the repeats, values, indices) if `in` has dimensions besides `dim` that repeat its
// lines, and fills `values` and `indices` with what that wrote; false where each line is another.
template <class Run>
bool run_without_repeats(const Tensor& in, int64_t dim, const Tensor& values, const Tensor& indices,
                         Run&& run) {
  if (in.device().is_meta() || in.numel() == 0) return false;
  Dims sizes = in->sizes, result_sizes = values->sizes;
  bool repeats = false;
  for (int64_t d = 0; d < in.dim(); ++d) {
    if (d == dim || sizes[d] == 1 || in->strides[d] != 0) continue;
    sizes[d] = result_sizes[d] = 1;
    repeats = true;
  }
  if (!repeats) return false;
  const Tensor once = make_view(in, sizes, in.strides(), in.storage_offset(), false),
               some_values = empty_tensor(result_sizes, values.dtype()),
               some_indices = empty_tensor(result_sizes, indices.dtype());
  run(once, some_values, some_indices);
  copy(values, some_values);
  copy(indices, some_indices);
  return true;
}

}  // namespace rushlight::cpu
