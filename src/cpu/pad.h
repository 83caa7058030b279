// Blocks of elements framed by a constant, or by what they hold.
#pragma once
#include <utility>
#include <vector>

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

// Copies between positions of one dimension of a tensor: `moves` says to where and from where.
struct Repetition {
  Dims sizes, strides;  // of the other dimensions, the innermost one last
  int64_t step;         // between positions
  std::vector<std::pair<int64_t, int64_t>> moves;
};
void repeat_positions(const Repetition& r, size_t itemsize, void* data);

}  // namespace rushlight::cpu
