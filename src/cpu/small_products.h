// Products of matrices so small, alone or in batches, that calling a library costs more than multiplying.
#pragma once
#include "cpu/gemm.h"

namespace rushlight::cpu {

struct SmallProducts : GemmShape {
  static constexpr int64_t kMost = 64;  // rows, columns and inner size
  double alpha = 1, beta = 0;
  void* c = nullptr;

  bool are_small() const {
    return (dtype == DType::Float32 || dtype == DType::Float64) && m <= kMost && n <= kMost && k <= kMost &&
           k > 0;
  }
};

// Products [begin, end).
void small_products(const SmallProducts& p, int64_t begin, int64_t end);

}  // namespace rushlight::cpu
