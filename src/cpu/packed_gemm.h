// Products of many small matrices with one that stays: the large factor is brought into oneDNN's own order
// once.
#pragma once
#include <memory>

#include "cpu/gemm.h"

namespace rushlight::cpu {

class PackedGemm {
 public:
  // C[m, n] = A[m, k] B, or C += A B; all rows dense. B must outlive this object.
  PackedGemm(DType dtype, int64_t m, int64_t n, int64_t k, MatrixView b, bool accumulate);
  ~PackedGemm();
  PackedGemm(const PackedGemm&) = delete;
  void run(const void* a, void* c) const;

 private:
  struct Packed;
  DType dtype_;
  int64_t m_, n_, k_;
  MatrixView b_;
  bool accumulate_;
  std::unique_ptr<Packed> packed_;  // null: computed as a plain product
};

}  // namespace rushlight::cpu
