// Products of 16 x 16 matrices of halves with sums in float: a warp computes one on tensor cores, the host by
// loops. Matrices lie in the memory of a team, 32 bytes from each other, their rows 16 bytes.
#pragma once
#include "cuda/memory.h"
#include "cuda/team.h"

#ifdef __CUDACC__
#include <mma.h>
#endif

namespace rushlight::cuda {

constexpr int kMatrix = 16;

// How a factor lies in memory: element (i, j) at i * row + j, or at j * row + i.
enum class Order : uint8_t { Rows, Columns };

#ifdef __CUDACC__

template <Order order>
using MatrixLayout =
    std::conditional_t<order == Order::Rows, nvcuda::wmma::row_major, nvcuda::wmma::col_major>;

class MatrixSum {
 public:
  RL_DEVICE void clear() { nvcuda::wmma::fill_fragment(sum_, 0.0f); }
  // this += left * right
  template <Order left_order, Order right_order, class S>
  RL_DEVICE void add_product(const S* left, int left_row, const S* right, int right_row) {
    using namespace nvcuda::wmma;
    fragment<matrix_a, kMatrix, kMatrix, kMatrix, S, MatrixLayout<left_order>> a;
    fragment<matrix_b, kMatrix, kMatrix, kMatrix, S, MatrixLayout<right_order>> b;
    load_matrix_sync(a, left, static_cast<unsigned>(left_row));
    load_matrix_sync(b, right, static_cast<unsigned>(right_row));
    mma_sync(sum_, a, b, sum_);
  }
  RL_DEVICE void read(const float* from, int row) {
    nvcuda::wmma::load_matrix_sync(sum_, from, static_cast<unsigned>(row), nvcuda::wmma::mem_row_major);
  }
  RL_DEVICE void write(float* to, int row) const {
    nvcuda::wmma::store_matrix_sync(to, sum_, static_cast<unsigned>(row), nvcuda::wmma::mem_row_major);
  }
  // Multiplies each row by a factor of its own. `rows`: read from a matrix whose elements say in which row
  // they stand, for which lane holds what is the device's secret.
  RL_DEVICE void scale_rows(const MatrixSum& rows, const float* factor) {
    for (int e = 0; e < sum_.num_elements; ++e) sum_.x[e] *= factor[static_cast<int>(rows.sum_.x[e])];
  }

 private:
  nvcuda::wmma::fragment<nvcuda::wmma::accumulator, kMatrix, kMatrix, kMatrix, float> sum_;
};

#else

class MatrixSum {
 public:
  void clear() {
    for (float& x : sum_) x = 0;
  }
  template <Order left_order, Order right_order, class S>
  void add_product(const S* left, int left_row, const S* right, int right_row) {
    check(left, left_row, 8);
    check(right, right_row, 8);
    for (int i = 0; i < kMatrix; ++i)
      for (int j = 0; j < kMatrix; ++j)
        for (int k = 0; k < kMatrix; ++k)
          sum_[i * kMatrix + j] +=
              widened(left[left_order == Order::Rows ? i * left_row + k : k * left_row + i]) *
              widened(right[right_order == Order::Rows ? k * right_row + j : j * right_row + k]);
  }
  void read(const float* from, int row) {
    check(from, row, 4);
    for (int i = 0; i < kMatrix; ++i)
      for (int j = 0; j < kMatrix; ++j) sum_[i * kMatrix + j] = from[i * row + j];
  }
  void write(float* to, int row) const {
    check(to, row, 4);
    for (int i = 0; i < kMatrix; ++i)
      for (int j = 0; j < kMatrix; ++j) to[i * row + j] = sum_[i * kMatrix + j];
  }
  void scale_rows(const MatrixSum& rows, const float* factor) {
    for (int e = 0; e < kMatrix * kMatrix; ++e) sum_[e] *= factor[static_cast<int>(rows.sum_[e])];
  }

 private:
  // What the device asks of addresses and rows.
  static void check(const void* address, int row, int multiple) {
    device_assert(reinterpret_cast<uintptr_t>(address) % 32 == 0 && row % multiple == 0, "a matrix lies ill");
  }
  float sum_[kMatrix * kMatrix];
};

#endif

// Which 16 x 16 parts of a matrix each warp of a team computes: the same number for all.
template <int rows, int columns>
struct WarpParts {
  static constexpr int kAcross = columns / kMatrix,
                       kCount = rows * columns / (kMatrix * kMatrix * kTeamWarps);
  static_assert(kCount * kMatrix * kMatrix * kTeamWarps == rows * columns);
  // f(part, first row, first column)
  template <class F>
  RL_DEVICE static void each(uint32_t warp, F&& f) {
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int i = 0; i < kCount; ++i) {
      const int part = static_cast<int>(warp) + i * kTeamWarps;
      f(i, part / kAcross * kMatrix, part % kAcross * kMatrix);
    }
  }
};

}  // namespace rushlight::cuda
