// Walks over arbitrary strided memory, element by element: for the rare cases without a faster kernel.
#pragma once
#include "core/dims.h"
#include "core/dtype.h"

namespace rushlight::cpu {

// data[geometry] += values, where `values` is contiguous; elements of the geometry may coincide.
void strided_add(void* data, DType dtype, IntList sizes, IntList strides, const void* values);

}  // namespace rushlight::cpu
