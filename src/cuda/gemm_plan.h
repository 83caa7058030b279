// Matrix products as cuBLAS and cuBLASLt want them described: everything that needs no device. Row-major
// matrices are the transposed ones of cuBLAS, which counts by columns, so operands change places.
#pragma once
#include <cstdint>

#include "core/dtype.h"
#include "cuda/piece.h"

namespace rushlight::cuda {

// Numbers of cuBLAS (cublas_api.h, cublasLt.h of versions 12 and 13) and of library_types.h.
namespace cublas {
constexpr int kNotTransposed = 0, kTransposed = 1, kDefaultAlgorithm = -1;
constexpr int kCompute16 = 64, kCompute32 = 68, kCompute64 = 70, kComputeTf32 = 77;
constexpr int kReal16 = 2, kReal16B = 14, kReal32 = 0, kReal64 = 1, kComplex32 = 4, kComplex64 = 5;
constexpr int kDefaultMath = 0, kNoReducedSums = 16;
constexpr int kEpilogueBias = 4, kEpilogueReluBias = 6, kEpilogueGeluBias = 36;
constexpr uint32_t kAllReductions = 7, kExactReductions = 2;
}  // namespace cublas

// What a program allows (torch.backends.cuda.matmul).
struct GemmSwitches {
  bool tf32 = false;
  bool half_sums = true, bfloat16_sums = true;  // parts of a sum may be joined in the half type
  bool half_accumulation = false;               // sums of float16 may be kept in float16
};

struct GemmPlan {
  int m = 0, n = 0, k = 0, batch = 1;  // of out[m, n]
  int type = cublas::kReal32, scale_type = cublas::kReal32, compute = cublas::kCompute32;
  int left_operation = 0, right_operation = 0, left_leading = 0, right_leading = 0;
  int64_t left_step = 0, right_step = 0, out_step = 0;  // between matrices of the batch, in elements
  bool wide = false;                                    // factors are doubles
  bool exact_sums = false;                              // parts of sums stay in the compute type
  friend auto operator<=>(const GemmPlan&, const GemmPlan&) = default;
};
// Operands as cpu::gemm_readable says.
GemmPlan gemm_plan(const View& out, const View& a, const View& b, const GemmSwitches& allowed);

// The largest power of two, up to 256, that divides an address; heuristics ask for it.
uint32_t alignment_of(const void* address);

}  // namespace rushlight::cuda
