// NumPy's .npy files: arrays of numbers, in C or Fortran order, little-endian.
#pragma once
#include <string>

#include "core/tensor.h"

namespace rushlight::io {

Tensor read_npy(const std::string& path);
// In C order. NumPy has no bfloat16: such a tensor is an error.
void write_npy(const std::string& path, const Tensor& tensor);

}  // namespace rushlight::io
