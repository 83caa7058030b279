// Products for batch-invariant mode: each element of the result is one chain of multiplications and additions
// along k, from the first factor to the last, each rounded once. Its bits depend on nothing else: not on the
// other rows, the number of threads or, where multiplying and adding is one instruction, the instruction set.
#pragma once
#include "cpu/gemm.h"

namespace rushlight::cpu {

// Whether products of this type are such chains now.
bool multiplies_in_chains(DType dtype);
// The mode itself, for whoever else must not look at the size of a batch.
bool batch_invariant();
// Whether that or torch.use_deterministic_algorithms asks for results that the number of threads does not
// change: then no library divides sums among threads.
bool same_on_any_threads();

// As gemm_batch, of float32 or float64; `bias` of n elements is added to each row, or null.
void chain_products(const GemmShape& s, const Scalar& alpha, const Scalar& beta, const void* bias, void* c);

// A few rows by a matrix that is read as it lies, without bias: panels of its columns are brought in order
// piece by piece, in the first-level cache.
struct ChainRows {
  static constexpr int64_t kMost = 48;  // rows
  DType dtype;
  int64_t m, n, k;
  MatrixView a, b;
  void* c;  // strides in elements
  int64_t c_row, c_column;
};

struct ChainKernels {
  int64_t (*width)(DType dtype);  // columns of a panel
  // The columns in panels [begin, end).
  void (*multiply)(const ChainRows& p, int64_t begin, int64_t end);
};

}  // namespace rushlight::cpu
