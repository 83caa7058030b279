// What compute capability 9.0 has beyond flash.h: barriers in shared memory that count bytes, boxes of
// tensors that a unit of its own copies (TMA), and products of 64 rows by four warps (PTX ISA, "wgmma").
#pragma once
#ifdef __CUDACC__
#include <cuda.h>

#include <cstdint>

#include "cuda/memory.h"

namespace rushlight::cuda::hopper {

// --- barriers, by the address of their eight bytes

__device__ __forceinline__ void begin_barrier(uint32_t at, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(arrivals) : "memory");
}
// Before others use barriers that this thread began.
__device__ __forceinline__ void show_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async;" ::: "memory");
}
__device__ __forceinline__ void arrive(uint32_t at) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory");
}
__device__ __forceinline__ void arrive_and_expect(uint32_t at, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(bytes) : "memory");
}
// Until the phase of this parity is over.
__device__ __forceinline__ void await(uint32_t at, uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred over;\n"
      "AGAIN:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1;\n"
      "@over bra OVER;\n"
      "bra AGAIN;\n"
      "OVER:\n"
      "}" ::"r"(at),
      "r"(parity)
      : "memory");
}

// --- copies to shared memory that count their bytes on a barrier

__device__ __forceinline__ void fetch_box(uint32_t to, const CUtensorMap* from, uint32_t barrier, int column,
                                          int row, int head, int batch) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, "
      "%6}], [%2];" ::"r"(to),
      "l"(from), "r"(barrier), "r"(column), "r"(row), "r"(head), "r"(batch)
      : "memory");
}
__device__ __forceinline__ void fetch_bytes(uint32_t to, const void* from, uint32_t bytes, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
      "l"(from), "r"(bytes), "r"(barrier)
      : "memory");
}

// --- registers of the four warps that call it

template <int count>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
}
template <int count>
__device__ __forceinline__ void leave_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
}

// --- products

// Panels of 64 halves a row in shared memory, packs of 16 bytes swizzled as TMA does (and SharedRows of 64).
// `turned`: rows are summed over; then the next 64 columns are `panel` bytes further.
__device__ __forceinline__ uint64_t operand(uint32_t at, uint32_t panel = 16) {
  return (uint64_t{at & 0x3ffff} >> 4) | uint64_t{panel >> 4} << 16 | uint64_t{1024 >> 4} << 32 |
         uint64_t{1} << 62;
}

__device__ __forceinline__ void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void commit_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int groups>
__device__ __forceinline__ void await_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(groups) : "memory");
}
// The compiler must not move uses of sums across this place.
template <int count>
__device__ __forceinline__ void hold(float (&sums)[count][4]) {
#pragma unroll
  for (int j = 0; j < count; ++j)
#pragma unroll
    for (int c = 0; c < 4; ++c) asm volatile("" : "+f"(sums[j][c])::"memory");
}

#define RL_SUMS_4(i) "+f"(sums[i][0]), "+f"(sums[i][1]), "+f"(sums[i][2]), "+f"(sums[i][3])
#define RL_SUMS_16(i) RL_SUMS_4(i), RL_SUMS_4(i + 1), RL_SUMS_4(i + 2), RL_SUMS_4(i + 3)
#define RL_SUMS_32 RL_SUMS_16(0), RL_SUMS_16(4)
#define RL_SUMS_64 RL_SUMS_32, RL_SUMS_16(8), RL_SUMS_16(12)
#define RL_NAMES_32                                                                                      \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, " \
  "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define RL_NAMES_64                                                                                        \
  RL_NAMES_32                                                                                              \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, " \
  "%52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define RL_SHARED(columns, sums_list, names, type, a, b, c)                                             \
  asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, %" c                                             \
               ", 0;\n"                                                                                 \
               "wgmma.mma_async.sync.aligned.m64n" columns "k16.f32." type "." type " {" names "}, %" a \
               ", %" b ", adds, 1, 1, 0, 0;\n}"                                                         \
               : sums_list                                                                              \
               : "l"(left), "l"(right), "r"(adds))
#define RL_REGISTERS(columns, sums_list, names, type, a, b, c, d, e, f)                                  \
  asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, %" f                                              \
               ", 0;\n"                                                                                  \
               "wgmma.mma_async.sync.aligned.m64n" columns "k16.f32." type "." type " {" names "}, {%" a \
               ", %" b ", %" c ", %" d "}, %" e ", adds, 1, 1, 1;\n}"                                    \
               : sums_list                                                                               \
               : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right), "r"(adds))

// sums (+)= left right^T over 16 columns of both, 64 rows of left by 8 count rows of right.
template <class S, int count>
__device__ __forceinline__ void multiply(float (&sums)[count][4], uint64_t left, uint64_t right, int adds) {
  static_assert(count == 8 || count == 16);
  if constexpr (count == 8) {
    if constexpr (std::is_same_v<S, StoredBFloat16>)
      RL_SHARED("64", RL_SUMS_32, RL_NAMES_32, "bf16", "32", "33", "34");
    else
      RL_SHARED("64", RL_SUMS_32, RL_NAMES_32, "f16", "32", "33", "34");
  } else {
    if constexpr (std::is_same_v<S, StoredBFloat16>)
      RL_SHARED("128", RL_SUMS_64, RL_NAMES_64, "bf16", "64", "65", "66");
    else
      RL_SHARED("128", RL_SUMS_64, RL_NAMES_64, "f16", "64", "65", "66");
  }
}
// sums (+)= left right over 16 rows of right, of 8 count columns; left's 16 columns are in registers.
template <class S, int count>
__device__ __forceinline__ void multiply_turned(float (&sums)[count][4], const uint32_t (&left)[4],
                                                uint64_t right, int adds) {
  static_assert(count == 8 || count == 16);
  if constexpr (count == 8) {
    if constexpr (std::is_same_v<S, StoredBFloat16>)
      RL_REGISTERS("64", RL_SUMS_32, RL_NAMES_32, "bf16", "32", "33", "34", "35", "36", "37");
    else
      RL_REGISTERS("64", RL_SUMS_32, RL_NAMES_32, "f16", "32", "33", "34", "35", "36", "37");
  } else {
    if constexpr (std::is_same_v<S, StoredBFloat16>)
      RL_REGISTERS("128", RL_SUMS_64, RL_NAMES_64, "bf16", "64", "65", "66", "67", "68", "69");
    else
      RL_REGISTERS("128", RL_SUMS_64, RL_NAMES_64, "f16", "64", "65", "66", "67", "68", "69");
  }
}
#undef RL_SUMS_4
#undef RL_SUMS_16
#undef RL_SUMS_32
#undef RL_SUMS_64
#undef RL_NAMES_32
#undef RL_NAMES_64
#undef RL_SHARED
#undef RL_REGISTERS

}  // namespace rushlight::cuda::hopper
#endif
