// Products of matrices so small, alone or in batches, that calling a library costs more than multiplying.
#pragma once
#include "cpu/gemm.h"

namespace rushlight::cpu {

struct SmallProducts {
  static constexpr int64_t kMost = 64;  // rows, columns and inner size
  DType dtype = DType::Float32;
  int64_t m = 0, n = 0, k = 0;
  MatrixView a, b;
  int64_t a_step = 0, b_step = 0, ldc = 0, c_step = 0;
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
