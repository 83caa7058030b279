// What kernels take: operands in merged dimensions that 32-bit indices reach.
#pragma once
#include "core/dtype.h"
#include "cuda/geometry.h"

namespace rushlight::cuda {

// One operand of a kernel: elements of a dtype at an address, or one value for all.
struct Operand {
  char* data = nullptr;
  DType dtype = DType::Float32;
  bool is_value = false;
  alignas(16) unsigned char value[16] = {};
};

struct Piece {
  Geometry geometry;
  Operand operands[kMaxOperands];  // the result first
  bool linear = false;             // every operand that is no value is contiguous, in one order
};

// A tensor as kernels that walk it their own way see it. Strides in bytes, the outermost dimension first.
struct View {
  char* data = nullptr;
  DType dtype = DType::Float32;
  int device = 0, rank = 0;
  int64_t numel = 1;
  int64_t sizes[kMaxRank] = {}, strides[kMaxRank] = {};
};

}  // namespace rushlight::cuda
