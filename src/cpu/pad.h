// Blocks of elements framed by a constant.
#pragma once
#include "core/dims.h"

namespace rushlight::cpu {

// A contiguous result with one block inside that comes from elsewhere.
struct FramedBlock {
  Dims sizes;    // of the result
  Dims start;    // where the block begins in the result
  Dims block;    // its sizes
  Dims strides;  // of its source, in elements
};
void fill_around(FramedBlock frame, const void* source, const void* value, size_t itemsize, void* out);

}  // namespace rushlight::cpu
