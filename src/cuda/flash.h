// Matrix products of a warp whose operands are registers (mma.sync, sm_80 on; PTX ISA, "Matrix Fragments for
// mma.m16n8k16"), and tiles in shared memory that feed them. Of a product's 16 x 8 sums a lane has two
// neighbours in row lane / 4 and two in row lane / 4 + 8.
#pragma once
#ifdef __CUDACC__
#include <cstdint>

#include "cuda/memory.h"

namespace rushlight::cuda::flash {

__device__ inline uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}
// Copies of 16 bytes that go on in the background; of which `bytes` are read and the rest is zero.
__device__ inline void copy_16(uint32_t to, const void* from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
__device__ inline void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int groups>
__device__ void wait() {  // until no more than so many groups are under way
  asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory");
}

__device__ inline void read_matrices(uint32_t (&to)[4], uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(row)
               : "memory");
}
__device__ inline void read_matrices_turned(uint32_t (&to)[4], uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(row)
               : "memory");
}

// sums += left * right, of 16 x 16 and 16 x 8.
template <class S>
__device__ void multiply(float (&sums)[4], const uint32_t (&left)[4], uint32_t right0, uint32_t right1) {
  if constexpr (std::is_same_v<S, StoredBFloat16>)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right0), "r"(right1));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right0), "r"(right1));
}

// Two numbers as halves, the first in the low bits.
template <class S>
__device__ uint32_t as_halves(float first, float second) {
  uint32_t both;
  if constexpr (std::is_same_v<S, StoredBFloat16>)
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
  else
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
  return both;
}
// Sums of 16 x 16, two products side by side, as the left operand of the next product.
template <class S>
__device__ void as_left(uint32_t (&left)[4], const float (&a)[4], const float (&b)[4]) {
  left[0] = as_halves<S>(a[0], a[1]), left[1] = as_halves<S>(a[2], a[3]);
  left[2] = as_halves<S>(b[0], b[1]), left[3] = as_halves<S>(b[2], b[3]);
}

// f(row, column, sum) for a lane's sums of products side by side.
template <int count, class F>
__device__ void for_sums(float (&sums)[count][4], F&& f) {
  const int lane = threadIdx.x % 32, row = lane / 4, column = lane % 4 * 2;
#pragma unroll
  for (int j = 0; j < count; ++j)
#pragma unroll
    for (int c = 0; c < 4; ++c) f(row + c / 2 * 8, j * 8 + column + c % 2, sums[j][c]);
}
template <int count, class F>
__device__ void for_sums(float (&sums)[count][4], float (&others)[count][4], F&& f) {
  const int lane = threadIdx.x % 32, row = lane / 4, column = lane % 4 * 2;
#pragma unroll
  for (int j = 0; j < count; ++j)
#pragma unroll
    for (int c = 0; c < 4; ++c) f(row + c / 2 * 8, j * 8 + column + c % 2, sums[j][c], others[j][c]);
}

// Over the four lanes that share a row.
__device__ inline float largest_of_four(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}
__device__ inline float sum_of_four(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

// Rows of `width` halves in shared memory. Packs of 16 bytes change places within a row, by the row's number,
// so that the same pack of eight rows lies in different banks.
template <class S, int width, int threads>
struct SharedRows {
  static constexpr int kPack = 8, kPacks = width / kPack;
  __host__ __device__ static constexpr uint32_t bytes(int rows) {
    return static_cast<uint32_t>(rows * width * 2);
  }
  __device__ static uint32_t place(uint32_t tile, int row, int pack) {
    return tile + static_cast<uint32_t>(row * kPacks + (pack ^ (row & 7))) * 16;
  }

  // Rows [first, first + count) of a matrix, by all threads of the block; zeros beyond its rows and columns.
  __device__ static void fetch(uint32_t tile, const S* from, int64_t step, int64_t first, int64_t rows,
                               int64_t columns, int count) {
    for (int i = static_cast<int>(threadIdx.x); i < count * kPacks; i += threads) {
      const int row = i / kPacks, pack = i % kPacks;
      const bool there = first + row < rows && pack * kPack < columns;
      copy_16(place(tile, row, pack), there ? from + (first + row) * step + pack * kPack : from,
              there ? 16 : 0);
    }
  }

  // Rows [row, row + 16) and columns [16 k, 16 k + 16) as a left operand.
  __device__ static void left(uint32_t (&to)[4], uint32_t tile, int row, int k) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    read_matrices(to, place(tile, row + lane % 16, 2 * k + lane / 16));
  }
  // The same rows as columns of two right operands, each 16 columns of the tile by 8 of its rows.
  __device__ static void right(uint32_t (&to)[4], uint32_t tile, int row, int k) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    read_matrices(to, place(tile, row + lane % 8 + lane / 16 * 8, 2 * k + lane / 8 % 2));
  }
  // And as rows of two right operands, each 16 rows by 8 columns.
  __device__ static void right_turned(uint32_t (&to)[4], uint32_t tile, int row, int k) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    read_matrices_turned(to, place(tile, row + lane % 16, 2 * k + lane / 16));
  }

  // A warp's 16 rows of sums to a matrix, by way of rows [row, row + 16) of the tile, which are its own.
  __device__ static void store(uint32_t tile, int row, const float (&sums)[width / 8][4], S* to, int64_t step,
                               int64_t first, int64_t rows, int64_t columns) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    __syncwarp();
#pragma unroll
    for (int d = 0; d < width / 8; ++d)
#pragma unroll
      for (int h = 0; h < 2; ++h)
        asm volatile("st.shared.b32 [%0], %1;" ::"r"(place(tile, row + lane / 4 + 8 * h, d) + lane % 4 * 4),
                     "r"(as_halves<S>(sums[d][2 * h], sums[d][2 * h + 1]))
                     : "memory");
    __syncwarp();
    for (int i = lane; i < 16 * kPacks; i += 32) {
      const int r = row + i / kPacks, pack = i % kPacks;
      if (first + r >= rows || pack * kPack >= columns) continue;
      uint4 data;
      asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(data.x), "=r"(data.y), "=r"(data.z), "=r"(data.w)
                   : "r"(place(tile, r, pack))
                   : "memory");
      *reinterpret_cast<uint4*>(to + (first + r) * step + pack * kPack) = data;
    }
  }
};

}  // namespace rushlight::cuda::flash
#endif
