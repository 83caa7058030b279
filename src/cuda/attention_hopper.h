// What both passes of attention on compute capability 9.0 do with tiles, and how the host tells the unit that
// copies them of the operands.
#pragma once
#include "cuda/attention_plan.h"

#if defined(__CUDACC__) && defined(RL_HOPPER)
#include "cuda/channels.h"
#include "cuda/flash.h"
#include "cuda/hopper.h"

namespace rushlight::cuda::hopper {

using namespace flash;

constexpr int kPanel = 64, kPanelRow = 128;  // columns, and their bytes
constexpr int kGroupThreads = 128, kGroupRows = 64;
constexpr int kTurnBarrier = 4;  // the first of those by which groups take turns
constexpr float kLog2E = 1.44269504088896340736f;

// Tiles of `rows` rows in shared memory: panels of 64 columns, one after the other.
template <int width, int rows>
struct Panels {
  static constexpr uint32_t kBytes = rows * width * 2, kStep = rows * kPanelRow;

  __device__ static void fetch(uint32_t to, const CUtensorMap* from, uint32_t barrier, int row, int head,
                               int batch) {
#pragma unroll
    for (int p = 0; p < width / kPanel; ++p)
      fetch_box(to + p * kStep, from, barrier, p * kPanel, row, head, batch);
  }
  // Rows from `row` on, columns [16 k, 16 k + 16): summed over columns.
  __device__ static uint64_t across(uint32_t tile, int row, int k) {
    return operand(tile + row * kPanelRow + k / 4 * kStep + k % 4 * 32);
  }
  // Rows [16 k, 16 k + 16): summed over rows.
  __device__ static uint64_t down(uint32_t tile, int k) { return operand(tile + k * 16 * kPanelRow, kStep); }
  // A warp's 16 rows of sums to a matrix, by way of the tile's rows [row, row + 16), which are its own.
  template <class S>
  __device__ static void store(uint32_t tile, int row, const float (&sums)[width / 8][4], S* to, int64_t step,
                               int64_t first, int64_t rows_there, int64_t columns) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    auto place = [&](int r, int pack) {
      return tile + pack / 8 * kStep + static_cast<uint32_t>(r * kPanelRow + ((pack ^ r) & 7) * 16);
    };
    __syncwarp();
#pragma unroll
    for (int d = 0; d < width / 8; ++d)
#pragma unroll
      for (int h = 0; h < 2; ++h)
        asm volatile("st.shared.b32 [%0], %1;" ::"r"(place(row + lane / 4 + 8 * h, d) + lane % 4 * 4),
                     "r"(as_halves<S>(sums[d][2 * h], sums[d][2 * h + 1]))
                     : "memory");
    __syncwarp();
#pragma unroll
    for (int i = lane; i < 16 * width / 8; i += 32) {
      const int r = row + i / (width / 8), pack = i % (width / 8);
      if (first + r >= rows_there || pack * 8 >= columns) continue;
      uint4 data;
      asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(data.x), "=r"(data.y), "=r"(data.z), "=r"(data.w)
                   : "r"(place(r, pack))
                   : "memory");
      *reinterpret_cast<uint4*>(to + (first + r) * step + pack * 8) = data;
    }
  }
};

__device__ __forceinline__ float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// Between the warps of one group.
__device__ __forceinline__ void wait_for_group(int group) {
  asm volatile("bar.sync %0, %1;" ::"r"(group + 1), "n"(kGroupThreads) : "memory");
}
// After all lanes have read what the barrier guards: one arrives for all of them.
__device__ __forceinline__ void arrive_by_warp(uint32_t barrier) {
  __syncwarp();
  if (threadIdx.x % 32 == 0) arrive(barrier);
}

struct Maps {
  CUtensorMap query, key, value, flow;
};
// --- on the host

using Encode = decltype(&cuTensorMapEncodeTiled);

// The driver's function, or null; it is not linked, so that the library loads without a driver.
inline Encode encoder() {
  static const Encode found = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult result{};
#if CUDART_VERSION >= 12050
    const bool there = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                                        cudaEnableDefault, &result) == cudaSuccess;
#else
    const bool there = cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault,
                                               &result) == cudaSuccess;
#endif
    return there && result == cudaDriverEntryPointSuccess ? reinterpret_cast<Encode>(function) : nullptr;
  }();
  return found;
}

struct Device {
  bool hopper = false;
  int multiprocessors = 0;
};
inline Device device_of(int device) {
  int major = 0, minor = 0;
  Device d;
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "attention");
  check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device), "attention");
  check(cudaDeviceGetAttribute(&d.multiprocessors, cudaDevAttrMultiProcessorCount, device), "attention");
  d.hopper = major == 9 && minor == 0;
  return d;
}

// A map of an operand's matrices, in boxes of 64 columns by `box` rows. False: the unit does not take it.
inline bool map_of(CUtensorMap* map, const DeviceAttention& p, const DeviceAttention::Operand& o,
                   int64_t rows, int64_t group, int box) {
  cuuint64_t sizes[4] = {static_cast<cuuint64_t>(p.width), static_cast<cuuint64_t>(rows), 1, 1},
             strides[3] = {static_cast<cuuint64_t>(o.row) * 2, static_cast<cuuint64_t>(o.row) * 2,
                           static_cast<cuuint64_t>(o.row) * 2};
  for (int d = 0; d < p.lead_rank; ++d) {
    const int from_last = p.lead_rank - 1 - d;
    const int64_t size = from_last == 0 ? p.lead[d] / group : p.lead[d];
    sizes[2 + from_last] = static_cast<cuuint64_t>(size);
    if (size > 1 && o.strides[d] <= 0) return false;
    if (size > 1) strides[1 + from_last] = static_cast<cuuint64_t>(o.strides[d]) * 2;
  }
  if (o.row <= 0) return false;
  const cuuint32_t boxes[4] = {kPanel, static_cast<cuuint32_t>(box), 1, 1}, steps[4] = {1, 1, 1, 1};
  const CUtensorMapDataType type =
      p.dtype == DType::BFloat16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  return encoder()(map, type, 4, o.data, sizes, strides, boxes, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                   CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                   CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

inline bool fits(const Device& device, const DeviceAttention& p) {
  return device.hopper && encoder() && p.lead_rank <= 2 && p.queries < 1 << 30 && p.keys < 1 << 30 &&
         p.batch() < 1 << 30;
}

template <class Kernel, class... Arguments>
void launch(const Launch& at, Kernel* kernel, int64_t blocks, int threads, size_t bytes,
            const Arguments&... arguments) {
  bytes += 1024;  // for alignment
  on_stream(at, [&](cudaStream_t stream) {
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
          at.name);
    kernel<<<static_cast<unsigned>(blocks), threads, bytes, stream>>>(arguments...);
  });
}

// f(an element of memory, the width of tiles)
template <class F>
bool visit(const DeviceAttention& p, F&& f) {
  bool done = false;
  visit_floating(p.dtype, [&](auto tag) {
    if constexpr (is_stored_half<typename decltype(tag)::type>) {
      if (p.width <= 64)
        done = f(tag, std::integral_constant<int, 64>{});
      else
        done = f(tag, std::integral_constant<int, 128>{});
    }
  });
  return done;
}

inline int64_t heads_of(const DeviceAttention& p) { return p.lead_rank == 0 ? 1 : p.lead[p.lead_rank - 1]; }
inline int64_t tiles_of(int64_t rows, int tile) { return (rows + tile - 1) / tile; }

}  // namespace rushlight::cuda::hopper
#endif
