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

}  // namespace rushlight::cuda
