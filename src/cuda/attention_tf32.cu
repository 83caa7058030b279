// Attention of float32 without dropout, on tensor cores: each factor is the sum of two numbers of
// TF32, of whose products three are taken (the fourth is below a float's last place). The scheme is that of
// attention_flash.cu. What it does not take goes to attention_floats.cu; so does everything on the host.
#include "cuda/attention_plan.h"
#include "cuda/channels.h"
#include "cuda/flash.h"

namespace rushlight::cuda {

#ifdef __CUDACC__
namespace {

using flash::commit;
using flash::copy_16;
using flash::for_sums;
using flash::largest_of_four;
using flash::shared_address;
using flash::sum_of_four;
using flash::wait;
using Operand = DeviceAttention::Operand;

constexpr float kLog2E = 1.44269504088896340736f;

__device__ __forceinline__ float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Numbers as sums of two that a tensor core takes whole: it drops the last 13 bits of a float.
template <int count>
struct Split {
  uint32_t high[count], low[count];
  __device__ __forceinline__ void put(int i, float x) {
    high[i] = __float_as_uint(x) & 0xffffe000u;
    low[i] = __float_as_uint(x - __uint_as_float(high[i]));
  }
};

// sums += left * right, of 16 x 8 and 8 x 8. Of `left` a lane has rows lane / 4 (+ 8) of columns lane % 4
// (+ 4), of `right` row lane % 4 (+ 4) of column lane / 4; of the sums as in flash.h.
__device__ __forceinline__ void multiply_once(float (&sums)[4], const uint32_t (&left)[4],
                                              const uint32_t (&right)[2]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, "
      "%1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
}
__device__ __forceinline__ void multiply(float (&sums)[4], const Split<4>& left, const Split<2>& right) {
  multiply_once(sums, left.low, right.high);
  multiply_once(sums, left.high, right.low);
  multiply_once(sums, left.high, right.high);
}

// Rows of `width` floats in shared memory, four more apart: what a warp reads lies in different banks.
template <int width, int threads>
struct Floats {
  static constexpr int kPack = 4, kPacks = width / kPack, kRow = width + kPack;
  __host__ __device__ static constexpr int size(int rows) { return rows * kRow; }

  // Rows [first, first + count) of a matrix; zeros beyond its rows and columns.
  __device__ static void fetch(float* tile, const float* from, int64_t step, int64_t first, int64_t rows,
                               int64_t columns, int count) {
    for (int i = static_cast<int>(threadIdx.x); i < count * kPacks; i += threads) {
      const int row = i / kPacks, pack = i % kPacks;
      const bool there = first + row < rows && pack * kPack < columns;
      copy_16(shared_address(tile + row * kRow + pack * kPack),
              there ? from + (first + row) * step + pack * kPack : from, there ? 16 : 0);
    }
  }
  __device__ static __forceinline__ Split<4> left(const float* tile, int row, int k) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const float* at = tile + (row + lane / 4) * kRow + k * 8 + lane % 4;
    Split<4> s;
    s.put(0, at[0]), s.put(1, at[8 * kRow]), s.put(2, at[4]), s.put(3, at[8 * kRow + 4]);
    return s;
  }
  // Eight rows as columns.
  __device__ static __forceinline__ Split<2> right(const float* tile, int row, int k) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const float* at = tile + (row + lane / 4) * kRow + k * 8 + lane % 4;
    Split<2> s;
    s.put(0, at[0]), s.put(1, at[4]);
    return s;
  }
  // Eight rows as rows, in the order in which as_left has columns; eight columns from `column` on.
  __device__ static __forceinline__ Split<2> right_turned(const float* tile, int row, int column) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const float* at = tile + (row + lane % 4 * 2) * kRow + column + lane / 4;
    Split<2> s;
    s.put(0, at[0]), s.put(1, at[kRow]);
    return s;
  }
  // A warp's 16 rows of sums.
  __device__ static void store(const float (&sums)[width / 8][4], float* to, int64_t step, int64_t first,
                               int64_t rows, int64_t columns) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int64_t row = first + lane / 4 + 8 * h;
      if (row >= rows) continue;
#pragma unroll
      for (int d = 0; d < width / 8; ++d)
        if (const int column = d * 8 + lane % 4 * 2; column < columns)
          *reinterpret_cast<float2*>(to + row * step + column) =
              make_float2(sums[d][2 * h], sums[d][2 * h + 1]);
    }
  }
};

// Sums of 16 x 8 as the left operand of the next product, whose columns are 0, 2, 4, 6, 1, 3, 5, 7.
__device__ __forceinline__ Split<4> as_left(const float (&sums)[4]) {
  Split<4> s;
  s.put(0, sums[0]), s.put(1, sums[2]), s.put(2, sums[1]), s.put(3, sums[3]);
  return s;
}

// out += weights times eight by eight rows of a tile. A tensor core cuts its sums off: those of a tile are
// added to the rest by rounded additions.
template <class T, int count, int width>
__device__ __forceinline__ void add_rows(float (&out)[width][4], const float (&weights)[count][4],
                                         const float* tile) {
  constexpr int kAtOnce = 4;
#pragma unroll
  for (int first = 0; first < width; first += kAtOnce) {
    float sums[kAtOnce][4] = {};
#pragma unroll
    for (int j = 0; j < count; ++j) {
      const Split<4> left = as_left(weights[j]);
#pragma unroll
      for (int d = 0; d < kAtOnce; ++d)
        multiply(sums[d], left, T::right_turned(tile, j * 8, (first + d) * 8));
    }
#pragma unroll
    for (int d = 0; d < kAtOnce; ++d)
#pragma unroll
      for (int c = 0; c < 4; ++c) out[first + d][c] += sums[d][c];
  }
}

__device__ const float* matrix(const AttentionPlan& plan, const Operand& o, int64_t b, int64_t group) {
  return static_cast<const float*>(o.data) + plan.start(o, b, group);
}

// With a mask scores are scaled before it is added, else with the logarithm's base.
template <bool masked>
__device__ float scale_of(const DeviceAttention& p) {
  return masked ? 1.0f : static_cast<float>(p.scale);
}

template <int width, int warps, int keys, bool masked>
__global__ void __launch_bounds__(warps * 32) forward_kernel(AttentionPlan plan) {
  constexpr int kQueries = warps * 16;
  using T = Floats<width, warps * 32>;
  extern __shared__ __align__(128) float memory[];
  float *query = memory, *key = query + T::size(kQueries), *value = key + 2 * T::size(keys);
  const DeviceAttention& p = plan.p;
  const int64_t per = (p.queries + kQueries - 1) / kQueries, b = blockIdx.x / per,
                first = (per - 1 - (blockIdx.x - b * per)) * kQueries;
  const float *keys_at = matrix(plan, p.key, b / p.group, p.group),
              *values_at = matrix(plan, p.value, b / p.group, p.group);
  const int64_t end = plan.last_key(first, kQueries), count = (end + keys - 1) / keys;
  auto fetch = [&](int64_t n) {
    T::fetch(key + (n & 1) * T::size(keys), keys_at, p.key.row, n * keys, p.keys, p.width, keys);
    T::fetch(value + (n & 1) * T::size(keys), values_at, p.value.row, n * keys, p.keys, p.width, keys);
    commit();
  };
  T::fetch(query, matrix(plan, p.query, b, 1), p.query.row, first, p.queries, p.width, kQueries);
  fetch(0);

  const int lane = threadIdx.x % 32, own = threadIdx.x / 32 * 16, steps = (static_cast<int>(p.width) + 7) / 8;
  const float scale = scale_of<masked>(p), to_log2 = scale * kLog2E;
  const int64_t mask_begin = masked ? plan.start(p.mask, b, 1) : 0;
  float out[width / 8][4] = {}, largest[2] = {-INFINITY, -INFINITY}, sum[2] = {};
  for (int64_t n = 0; n < count; ++n) {
    if (n + 1 < count) {
      fetch(n + 1);
      wait<1>();
    } else {
      wait<0>();
    }
    __syncthreads();
    const float *k_tile = key + (n & 1) * T::size(keys), *v_tile = value + (n & 1) * T::size(keys);
    float s[keys / 8][4] = {};
    for (int k = 0; k < steps; ++k) {
      const Split<4> q = T::left(query, own, k);
#pragma unroll
      for (int j = 0; j < keys / 8; ++j) multiply(s[j], q, T::right(k_tile, j * 8, k));
    }
    const int64_t from = n * keys;
    if constexpr (masked) {
      for_sums(s, [&](int row, int column, float& x) {
        const int64_t query_at = first + own + row, key_at = from + column;
        x = plan.hidden(query_at, key_at) ? -INFINITY : plan.score(x, mask_begin, query_at, key_at);
      });
    } else if (from + keys > p.keys || (p.causal && from + keys > first + own + 1)) {
      for_sums(s, [&](int row, int column, float& x) {
        if (from + column >= p.keys || (p.causal && from + column > first + own + row)) x = -INFINITY;
      });
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {  // rows lane / 4 and lane / 4 + 8
      float most = largest[h];
#pragma unroll
      for (int j = 0; j < keys / 8; ++j) most = fmaxf(most, fmaxf(s[j][2 * h], s[j][2 * h + 1]));
      most = largest_of_four(most);
      const float start = most == -INFINITY ? 0.0f : most * to_log2;
      const float shrink = power_of_two(largest[h] * to_log2 - start);
      largest[h] = most;
      float total = sum[h] * shrink;
#pragma unroll
      for (int j = 0; j < keys / 8; ++j)
#pragma unroll
        for (int c = 2 * h; c < 2 * h + 2; ++c) {
          s[j][c] = power_of_two(fmaf(s[j][c], to_log2, -start));
          total += s[j][c];
        }
      sum[h] = total;
#pragma unroll
      for (int d = 0; d < width / 8; ++d) out[d][2 * h] *= shrink, out[d][2 * h + 1] *= shrink;
    }
    add_rows<T>(out, s, v_tile);
    __syncthreads();
  }
  if (count == 0) wait<0>();
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const float all = sum_of_four(sum[h]), inverse = all == 0 ? 0.0f : 1 / all;
    const int64_t at = first + own + lane / 4 + 8 * h;
    if (p.logsumexp && lane % 4 == 0 && at < p.queries)
      static_cast<float*>(p.logsumexp)[b * p.queries + at] =
          all == 0 ? -INFINITY : largest[h] * scale + logf(all);
#pragma unroll
    for (int d = 0; d < width / 8; ++d) out[d][2 * h] *= inverse, out[d][2 * h + 1] *= inverse;
  }
  T::store(out, static_cast<float*>(p.out.data) + plan.start(p.out, b, 1), p.out.row, first + own, p.queries,
           p.width);
}

// Gradients of rows of queries over tiles of keys, or of keys and values over tiles of queries.
template <int width, int warps, int columns, bool of_keys, bool masked>
__global__ void __launch_bounds__(warps * 32)
    backward_kernel(AttentionPlan plan, DeviceAttentionGradients g, const float* along) {
  constexpr int kRows = warps * 16;
  using T = Floats<width, warps * 32>;
  extern __shared__ __align__(128) float memory[];
  float *first_rows = memory, *second_rows = first_rows + T::size(kRows),
        *first_columns = second_rows + T::size(kRows), *second_columns = first_columns + 2 * T::size(columns);
  // Logarithms of sums and what is subtracted, by query of a tile.
  float* numbers = second_columns + 2 * T::size(columns);
  const DeviceAttention& p = plan.p;
  const int64_t there = of_keys ? p.keys : p.queries, per = (there + kRows - 1) / kRows, m = blockIdx.x / per,
                turn = blockIdx.x - m * per, first = (of_keys ? turn : per - 1 - turn) * kRows;
  const int64_t begin = of_keys && p.causal ? first / columns : 0,
                tiles = ((of_keys ? p.queries : plan.last_key(first, kRows)) + columns - 1) / columns,
                each = tiles > begin ? tiles - begin : 0, count = of_keys ? each * p.group : each;
  auto fetch_both = [&](float* one, float* two, bool queries, int64_t b, int64_t from, int rows) {
    const Operand &x = queries ? p.query : p.key, &y = queries ? g.grad_out : p.value;
    const int64_t group = queries ? 1 : p.group, limit = queries ? p.queries : p.keys;
    T::fetch(one, matrix(plan, x, b, group), x.row, from, limit, p.width, rows);
    T::fetch(two, matrix(plan, y, b, group), y.row, from, limit, p.width, rows);
  };
  auto matrix_of = [&](int64_t n) { return of_keys ? m * p.group + n / each : m; };
  auto start_of = [&](int64_t n) { return (begin + (of_keys ? n % each : n)) * columns; };
  auto fetch = [&](int64_t n) {
    const int64_t b = matrix_of(n), from = start_of(n);
    const int stage = static_cast<int>(n & 1) * T::size(columns);
    fetch_both(first_columns + stage, second_columns + stage, of_keys, of_keys ? b : b / p.group, from,
               columns);
    commit();
    if (of_keys)
      for (int i = threadIdx.x; i < columns; i += warps * 32) {
        float* to = numbers + (n & 1) * 2 * columns + i;
        const bool in = from + i < p.queries;
        const float of = in ? static_cast<const float*>(p.logsumexp)[b * p.queries + from + i] : -INFINITY;
        to[0] = of == -INFINITY ? INFINITY : of * kLog2E;
        to[columns] = in ? along[b * p.queries + from + i] : 0.0f;
      }
  };
  fetch_both(first_rows, second_rows, !of_keys, m, first, kRows);
  if (count) fetch(0);

  const int lane = threadIdx.x % 32, own = threadIdx.x / 32 * 16, steps = (static_cast<int>(p.width) + 7) / 8;
  const float scale = static_cast<float>(p.scale), to_log2 = scale_of<masked>(p) * kLog2E;
  float logarithm[2] = {INFINITY, INFINITY}, subtracted[2] = {};
  if (!of_keys)
    for (int h = 0; h < 2; ++h) {
      const int64_t at = first + own + lane / 4 + 8 * h;
      if (at >= p.queries) continue;
      const float of = static_cast<const float*>(p.logsumexp)[m * p.queries + at];
      if (of != -INFINITY) logarithm[h] = of * kLog2E;
      subtracted[h] = along[m * p.queries + at];
    }
  float of_first[width / 8][4] = {}, of_second[of_keys ? width / 8 : 1][4] = {};
  for (int64_t n = 0; n < count; ++n) {
    if (n + 1 < count) {
      fetch(n + 1);
      wait<1>();
    } else {
      wait<0>();
    }
    __syncthreads();
    const int stage = static_cast<int>(n & 1) * T::size(columns);
    const float *one = first_columns + stage, *two = second_columns + stage,
                *of_columns = numbers + (n & 1) * 2 * columns;
    float s[columns / 8][4] = {}, flow[columns / 8][4] = {};
    for (int k = 0; k < steps; ++k) {
      const Split<4> a = T::left(first_rows, own, k);
#pragma unroll
      for (int j = 0; j < columns / 8; ++j) multiply(s[j], a, T::right(one, j * 8, k));
      const Split<4> f = T::left(second_rows, own, k);
#pragma unroll
      for (int j = 0; j < columns / 8; ++j) multiply(flow[j], f, T::right(two, j * 8, k));
    }
    const int64_t from = start_of(n), row_at = first + own - from, limit = of_keys ? columns : p.keys - from,
                  mask_begin = masked ? plan.start(p.mask, matrix_of(n), 1) : 0;
    for_sums(s, [&](int row, int column, float& x) {
      if constexpr (masked) {
        const int64_t at = first + own + row, other = from + column, query = of_keys ? other : at,
                      key = of_keys ? at : other;
        x = plan.hidden(query, key) ? -INFINITY : plan.score(x, mask_begin, query, key);
      }
      const bool hidden =
          masked ? x == -INFINITY
                 : column >= limit || (p.causal && (of_keys ? row_at + row > column : column > row_at + row));
      x = hidden ? 0.0f
                 : power_of_two(fmaf(x, to_log2, -(of_keys ? of_columns[column] : logarithm[row / 8])));
    });
    if constexpr (of_keys) add_rows<T>(of_second, s, two);
    for_sums(s, flow, [&](int row, int column, float& weight, float& x) {
      weight *= x - (of_keys ? of_columns[columns + column] : subtracted[row / 8]);
    });
    add_rows<T>(of_first, s, one);
    __syncthreads();
  }
  if (count == 0) wait<0>();
#pragma unroll
  for (int d = 0; d < width / 8; ++d)
#pragma unroll
    for (int c = 0; c < 4; ++c) of_first[d][c] *= scale;
  const Operand& to = of_keys ? g.key : g.query;
  const int64_t shared = of_keys ? p.group : 1;
  T::store(of_first, static_cast<float*>(to.data) + plan.start(to, m, shared), to.row, first + own, there,
           p.width);
  if constexpr (of_keys) {
    T::store(of_second, static_cast<float*>(g.value.data) + plan.start(g.value, m, shared), g.value.row,
             first + own, there, p.width);
  }
}

bool in_packs(const DeviceAttention& p, const Operand& o) {
  bool good = reinterpret_cast<uintptr_t>(o.data) % 16 == 0 && o.row % 4 == 0;
  for (int d = 0; d < p.lead_rank; ++d) good &= o.strides[d] % 4 == 0;
  return good;
}
bool fits(int device, const DeviceAttention& p, size_t bytes) {
  return p.dtype == DType::Float32 && p.dropout.p == 0 && p.scale > 0 && p.width % 4 == 0 &&
         p.width == p.value_width && p.width > 0 && p.width <= 128 && p.queries > 0 && p.keys > 0 &&
         in_packs(p, p.query) && in_packs(p, p.key) && in_packs(p, p.value) && in_packs(p, p.out) &&
         bytes <= most_team_memory(device);
}

template <class Kernel, class... Arguments>
void launch(const Launch& at, Kernel* kernel, int64_t blocks, int threads, size_t bytes,
            const Arguments&... arguments) {
  on_stream(at, [&](cudaStream_t stream) {
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
          at.name);
    kernel<<<static_cast<unsigned>(blocks), threads, bytes, stream>>>(arguments...);
  });
}
int64_t tiles_of(int64_t rows, int tile) { return (rows + tile - 1) / tile; }

template <int width, int warps, int keys>
bool forward(int device, const DeviceAttention& p) {
  using T = Floats<width, warps * 32>;
  constexpr size_t kBytes = sizeof(float) * (T::size(warps * 16) + 4 * T::size(keys));
  if (!fits(device, p, kBytes)) return false;
  launch({device, "attention"},
         p.mask.data ? forward_kernel<width, warps, keys, true> : forward_kernel<width, warps, keys, false>,
         p.batch() * tiles_of(p.queries, warps * 16), warps * 32, kBytes, AttentionPlan{p});
  return true;
}

template <int width, int warps, int columns>
bool backward(int device, const DeviceAttention& p, const DeviceAttentionGradients& g, const float* along) {
  using T = Floats<width, warps * 32>;
  constexpr int kRows = warps * 16;
  constexpr size_t kBytes = sizeof(float) * (2 * T::size(kRows) + 4 * T::size(columns) + 4 * columns);
  if (g.mask.data || !in_packs(p, g.grad_out) || !in_packs(p, g.query) || !in_packs(p, g.key) ||
      !in_packs(p, g.value) || !fits(device, p, kBytes))
    return false;
  const Launch at{device, "attention_backward"};
  launch(at,
         p.mask.data ? backward_kernel<width, warps, columns, false, true>
                     : backward_kernel<width, warps, columns, false, false>,
         p.batch() * tiles_of(p.queries, kRows), warps * 32, kBytes, AttentionPlan{p}, g, along);
  launch(at,
         p.mask.data ? backward_kernel<width, warps, columns, true, true>
                     : backward_kernel<width, warps, columns, true, false>,
         p.batch() / p.group * tiles_of(p.keys, kRows), warps * 32, kBytes, AttentionPlan{p}, g, along);
  return true;
}

}  // namespace

bool attention_in_tf32(int device, const DeviceAttention& p) {
  return p.width > 64 ? forward<128, 8, 64>(device, p) : forward<64, 4, 64>(device, p);
}
bool attention_backward_in_tf32(int device, const DeviceAttention& p, const DeviceAttentionGradients& g,
                                const float* along) {
  return p.width > 64 ? backward<128, 8, 32>(device, p, g, along) : backward<64, 4, 64>(device, p, g, along);
}

#else

bool attention_in_tf32(int, const DeviceAttention&) { return false; }
bool attention_backward_in_tf32(int, const DeviceAttention&, const DeviceAttentionGradients&, const float*) {
  return false;
}

#endif

}  // namespace rushlight::cuda
