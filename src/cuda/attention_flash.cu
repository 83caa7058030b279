// Attention of halves without a mask or dropout, in registers: a warp keeps its rows of scores, weights and
// sums in the operands of its matrix products (Dao, "FlashAttention-2: Faster Attention with Better
// Parallelism and Work Partitioning", 2023). What it does not take goes to attention_halves.cu; so does
// everything on the host.
#include "cuda/attention_plan.h"
#include "cuda/channels.h"
#include "cuda/flash.h"

namespace rushlight::cuda {

#ifdef __CUDACC__
namespace {

using namespace flash;
using Operand = DeviceAttention::Operand;

// Matrix b of an operand, whose rows are o.row apart.
template <class S>
__device__ const S* matrix(const AttentionPlan& plan, const Operand& o, int64_t b, int64_t group) {
  return static_cast<const S*>(o.data) + plan.start(o, b, group);
}

// The largest and the sum of weights of a row, in each of the four threads that share it.
struct RowState {
  float largest = -INFINITY, sum = 0;
};

template <class S, int width, int warps, int tiles, int keys>
__global__ void __launch_bounds__(warps * 32) forward_kernel(AttentionPlan plan) {
  constexpr int kQueries = warps * tiles * 16;
  using QueryTile = SharedRows<S, width, warps * 32>;
  extern __shared__ __align__(128) unsigned char memory[];
  const uint32_t query_at = shared_address(memory), key_at = query_at + QueryTile::bytes(kQueries),
                 value_at = key_at + 2 * QueryTile::bytes(keys);
  const DeviceAttention& p = plan.p;
  const int64_t per = (p.queries + kQueries - 1) / kQueries, b = blockIdx.x / per;
  const int64_t first = (per - 1 - (blockIdx.x - b * per)) * kQueries;  // causal rows with most keys first
  const S *query = matrix<S>(plan, p.query, b, 1), *key = matrix<S>(plan, p.key, b / p.group, p.group),
          *value = matrix<S>(plan, p.value, b / p.group, p.group);
  const int64_t end = plan.last_key(first, kQueries), count = (end + keys - 1) / keys;
  auto fetch = [&](int64_t n) {
    const uint32_t stage = (n & 1) * QueryTile::bytes(keys);
    QueryTile::fetch(key_at + stage, key, p.key.row, n * keys, p.keys, p.width, keys);
    QueryTile::fetch(value_at + stage, value, p.value.row, n * keys, p.keys, p.width, keys);
    commit();
  };
  QueryTile::fetch(query_at, query, p.query.row, first, p.queries, p.width, kQueries);
  fetch(0);

  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, own = warp * tiles * 16;
  const float to_log2 = static_cast<float>(p.scale) * 1.44269504088896340736f;
  uint32_t q[tiles][width / 16][4];
  float out[tiles][width / 8][4] = {};
  RowState rows[tiles][2];
  for (int64_t n = 0; n < count; ++n) {
    if (n + 1 < count) {
      fetch(n + 1);
      wait<1>();
    } else {
      wait<0>();
    }
    __syncthreads();
    if (n == 0)
#pragma unroll
      for (int m = 0; m < tiles; ++m)
#pragma unroll
        for (int k = 0; k < width / 16; ++k) QueryTile::left(q[m][k], query_at, own + m * 16, k);
    const uint32_t stage = (n & 1) * QueryTile::bytes(keys);
    float s[tiles][keys / 8][4] = {};
#pragma unroll
    for (int k = 0; k < width / 16; ++k)
#pragma unroll
      for (int j = 0; j < keys / 16; ++j) {
        uint32_t right[4];
        QueryTile::right(right, key_at + stage, j * 16, k);
#pragma unroll
        for (int m = 0; m < tiles; ++m) {
          multiply<S>(s[m][2 * j], q[m][k], right[0], right[1]);
          multiply<S>(s[m][2 * j + 1], q[m][k], right[2], right[3]);
        }
      }
    const int64_t from = n * keys;
    if (from + keys > p.keys || (p.causal && from + keys > first + own + 1)) {
#pragma unroll
      for (int m = 0; m < tiles; ++m)
        for_sums(s[m], [&](int row, int column, float& x) {
          const int64_t at = from + column;
          if (at >= p.keys || (p.causal && at > first + own + m * 16 + row)) x = -INFINITY;
        });
    }
#pragma unroll
    for (int m = 0; m < tiles; ++m)
#pragma unroll
      for (int h = 0; h < 2; ++h) {  // rows lane / 4 and lane / 4 + 8
        RowState& mine = rows[m][h];
        float largest = mine.largest;
#pragma unroll
        for (int j = 0; j < keys / 8; ++j)
          largest = fmaxf(largest, fmaxf(s[m][j][2 * h], s[m][j][2 * h + 1]));
        largest = largest_of_four(largest);
        const float base = largest == -INFINITY ? 0.0f : largest * to_log2;
        const float shrink = exp2f(mine.largest * to_log2 - base);
        mine.largest = largest;
        float sum = mine.sum * shrink;
#pragma unroll
        for (int j = 0; j < keys / 8; ++j)
#pragma unroll
          for (int c = 2 * h; c < 2 * h + 2; ++c) {
            s[m][j][c] = exp2f(s[m][j][c] * to_log2 - base);
            sum += s[m][j][c];
          }
        mine.sum = sum;
#pragma unroll
        for (int d = 0; d < width / 8; ++d) out[m][d][2 * h] *= shrink, out[m][d][2 * h + 1] *= shrink;
      }
#pragma unroll
    for (int j = 0; j < keys / 16; ++j) {
      uint32_t weights[tiles][4];
#pragma unroll
      for (int m = 0; m < tiles; ++m) as_left<S>(weights[m], s[m][2 * j], s[m][2 * j + 1]);
#pragma unroll
      for (int d = 0; d < width / 16; ++d) {
        uint32_t right[4];
        QueryTile::right_turned(right, value_at + stage, j * 16, d);
#pragma unroll
        for (int m = 0; m < tiles; ++m) {
          multiply<S>(out[m][2 * d], weights[m], right[0], right[1]);
          multiply<S>(out[m][2 * d + 1], weights[m], right[2], right[3]);
        }
      }
    }
    __syncthreads();
  }
  if (count == 0) wait<0>();
#pragma unroll
  for (int m = 0; m < tiles; ++m)
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float sum = sum_of_four(rows[m][h].sum), inverse = sum == 0 ? 0.0f : 1 / sum;
      const int64_t at = first + own + m * 16 + lane / 4 + 8 * h;
      if (p.logsumexp && lane % 4 == 0 && at < p.queries)
        static_cast<float*>(p.logsumexp)[b * p.queries + at] =
            sum == 0 ? -INFINITY : rows[m][h].largest * static_cast<float>(p.scale) + logf(sum);
#pragma unroll
      for (int d = 0; d < width / 8; ++d) out[m][d][2 * h] *= inverse, out[m][d][2 * h + 1] *= inverse;
    }
  S* to = static_cast<S*>(p.out.data) + plan.start(p.out, b, 1);
#pragma unroll
  for (int m = 0; m < tiles; ++m)  // by way of the warp's own queries
    QueryTile::store(query_at, own + m * 16, out[m], to, p.out.row, first, p.queries, p.width);
}

// Weights of a tile of products s, whose rows and columns hidden(row, column) leaves out, by the rows' (or,
// where `turned`, the columns') logarithms of sums.
template <int count, class F, class G>
__device__ void weigh(float (&s)[count][4], float to_log2, F&& hidden, G&& logarithm) {
  for_sums(s, [&](int row, int column, float& x) {
    x = hidden(row, column) ? 0.0f : exp2f(x * to_log2 - logarithm(row, column) * 1.44269504088896340736f);
  });
}

template <class S, int width, int warps, int keys>
__global__ void __launch_bounds__(warps * 32)
    query_gradient_kernel(AttentionPlan plan, DeviceAttentionGradients g, const float* along) {
  constexpr int kQueries = warps * 16;
  using T = SharedRows<S, width, warps * 32>;
  extern __shared__ __align__(128) unsigned char memory[];
  const uint32_t query_at = shared_address(memory), flow_at = query_at + T::bytes(kQueries),
                 key_at = flow_at + T::bytes(kQueries), value_at = key_at + 2 * T::bytes(keys);
  const DeviceAttention& p = plan.p;
  const int64_t per = (p.queries + kQueries - 1) / kQueries, b = blockIdx.x / per;
  const int64_t first = (per - 1 - (blockIdx.x - b * per)) * kQueries;
  const S *key = matrix<S>(plan, p.key, b / p.group, p.group),
          *value = matrix<S>(plan, p.value, b / p.group, p.group);
  const int64_t end = plan.last_key(first, kQueries), count = (end + keys - 1) / keys;
  auto fetch = [&](int64_t n) {
    const uint32_t stage = (n & 1) * T::bytes(keys);
    T::fetch(key_at + stage, key, p.key.row, n * keys, p.keys, p.width, keys);
    T::fetch(value_at + stage, value, p.value.row, n * keys, p.keys, p.width, keys);
    commit();
  };
  T::fetch(query_at, matrix<S>(plan, p.query, b, 1), p.query.row, first, p.queries, p.width, kQueries);
  T::fetch(flow_at, matrix<S>(plan, g.grad_out, b, 1), g.grad_out.row, first, p.queries, p.width, kQueries);
  fetch(0);

  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, own = warp * 16;
  const float scale = static_cast<float>(p.scale), to_log2 = scale * 1.44269504088896340736f;
  float sums[2] = {}, subtracted[2] = {};
  for (int h = 0; h < 2; ++h) {
    const int64_t at = first + own + lane / 4 + 8 * h;
    if (at >= p.queries) continue;
    sums[h] = static_cast<const float*>(p.logsumexp)[b * p.queries + at];
    subtracted[h] = along[b * p.queries + at];
  }
  float out[width / 8][4] = {};
  for (int64_t n = 0; n < count; ++n) {
    if (n + 1 < count) {
      fetch(n + 1);
      wait<1>();
    } else {
      wait<0>();
    }
    __syncthreads();
    const uint32_t stage = (n & 1) * T::bytes(keys);
    float s[keys / 8][4] = {}, flow[keys / 8][4] = {};
#pragma unroll
    for (int k = 0; k < width / 16; ++k) {
      uint32_t q[4], f[4];
      T::left(q, query_at, own, k);
      T::left(f, flow_at, own, k);
#pragma unroll
      for (int j = 0; j < keys / 16; ++j) {
        uint32_t right[4];
        T::right(right, key_at + stage, j * 16, k);
        multiply<S>(s[2 * j], q, right[0], right[1]);
        multiply<S>(s[2 * j + 1], q, right[2], right[3]);
        T::right(right, value_at + stage, j * 16, k);
        multiply<S>(flow[2 * j], f, right[0], right[1]);
        multiply<S>(flow[2 * j + 1], f, right[2], right[3]);
      }
    }
    const int64_t from = n * keys;
    weigh(
        s, to_log2,
        [&](int row, int column) {
          const int64_t at = from + column;
          return at >= p.keys || (p.causal && at > first + own + row);
        },
        [&](int row, int) { return sums[row / 8]; });
    for_sums(s, flow,
             [&](int row, int, float& weight, float& x) { weight *= (x - subtracted[row / 8]) * scale; });
#pragma unroll
    for (int j = 0; j < keys / 16; ++j) {
      uint32_t left[4];
      as_left<S>(left, s[2 * j], s[2 * j + 1]);
#pragma unroll
      for (int d = 0; d < width / 16; ++d) {
        uint32_t right[4];
        T::right_turned(right, key_at + stage, j * 16, d);
        multiply<S>(out[2 * d], left, right[0], right[1]);
        multiply<S>(out[2 * d + 1], left, right[2], right[3]);
      }
    }
    __syncthreads();
  }
  if (count == 0) wait<0>();
  S* to = static_cast<S*>(g.query.data) + plan.start(g.query, b, 1);
  T::store(query_at, own, out, to, g.query.row, first, p.queries, p.width);
}

// The same with keys as rows and queries as columns.
template <class S, int width, int warps, int queries>
__global__ void __launch_bounds__(warps * 32)
    key_gradient_kernel(AttentionPlan plan, DeviceAttentionGradients g, const float* along) {
  constexpr int kKeys = warps * 16;
  using T = SharedRows<S, width, warps * 32>;
  extern __shared__ __align__(128) unsigned char memory[];
  const uint32_t key_at = shared_address(memory), value_at = key_at + T::bytes(kKeys),
                 query_at = value_at + T::bytes(kKeys), flow_at = query_at + 2 * T::bytes(queries);
  // Logarithms of sums and what is subtracted, by query of a tile.
  float* of_queries = reinterpret_cast<float*>(memory + 2 * T::bytes(kKeys) + 4 * T::bytes(queries));
  const DeviceAttention& p = plan.p;
  const int64_t per = (p.keys + kKeys - 1) / kKeys, kb = blockIdx.x / per,
                first = (blockIdx.x - kb * per) * kKeys;
  const int64_t begin = p.causal ? first / queries : 0, tiles = (p.queries + queries - 1) / queries,
                each = tiles > begin ? tiles - begin : 0, count = each * p.group;
  auto fetch = [&](int64_t n) {
    const int64_t b = kb * p.group + n / each, from = (begin + n % each) * queries;
    const uint32_t stage = (n & 1) * T::bytes(queries);
    T::fetch(query_at + stage, matrix<S>(plan, p.query, b, 1), p.query.row, from, p.queries, p.width,
             queries);
    T::fetch(flow_at + stage, matrix<S>(plan, g.grad_out, b, 1), g.grad_out.row, from, p.queries, p.width,
             queries);
    commit();
    for (int i = threadIdx.x; i < queries; i += warps * 32) {
      const bool there = from + i < p.queries;
      const int64_t at = b * p.queries + from + i;
      float* to = of_queries + (n & 1) * 2 * queries + i;
      to[0] = there ? static_cast<const float*>(p.logsumexp)[at] : 0.0f;
      to[queries] = there ? along[at] : 0.0f;
    }
  };
  T::fetch(key_at, matrix<S>(plan, p.key, kb, p.group), p.key.row, first, p.keys, p.width, kKeys);
  T::fetch(value_at, matrix<S>(plan, p.value, kb, p.group), p.value.row, first, p.keys, p.width, kKeys);
  if (count) fetch(0);

  const int own = threadIdx.x / 32 * 16;
  const float scale = static_cast<float>(p.scale), to_log2 = scale * 1.44269504088896340736f;
  float of_key[width / 8][4] = {}, of_value[width / 8][4] = {};
  for (int64_t n = 0; n < count; ++n) {
    if (n + 1 < count) {
      fetch(n + 1);
      wait<1>();
    } else {
      wait<0>();
    }
    __syncthreads();
    const uint32_t stage = (n & 1) * T::bytes(queries);
    const float* numbers = of_queries + (n & 1) * 2 * queries;
    float s[queries / 8][4] = {}, flow[queries / 8][4] = {};
#pragma unroll
    for (int k = 0; k < width / 16; ++k) {
      uint32_t left[4], f[4];
      T::left(left, key_at, own, k);
      T::left(f, value_at, own, k);
#pragma unroll
      for (int j = 0; j < queries / 16; ++j) {
        uint32_t right[4];
        T::right(right, query_at + stage, j * 16, k);
        multiply<S>(s[2 * j], left, right[0], right[1]);
        multiply<S>(s[2 * j + 1], left, right[2], right[3]);
        T::right(right, flow_at + stage, j * 16, k);
        multiply<S>(flow[2 * j], f, right[0], right[1]);
        multiply<S>(flow[2 * j + 1], f, right[2], right[3]);
      }
    }
    const int64_t from = (begin + n % each) * queries;
    weigh(
        s, to_log2,
        [&](int row, int column) {
          const int64_t query = from + column, key = first + own + row;
          return query >= p.queries || key >= p.keys || (p.causal && key > query);
        },
        [&](int, int column) { return numbers[column]; });
#pragma unroll
    for (int j = 0; j < queries / 16; ++j) {
      uint32_t left[4];
      as_left<S>(left, s[2 * j], s[2 * j + 1]);
#pragma unroll
      for (int d = 0; d < width / 16; ++d) {
        uint32_t right[4];
        T::right_turned(right, flow_at + stage, j * 16, d);
        multiply<S>(of_value[2 * d], left, right[0], right[1]);
        multiply<S>(of_value[2 * d + 1], left, right[2], right[3]);
      }
    }
    for_sums(s, flow, [&](int, int column, float& weight, float& x) {
      weight *= (x - numbers[queries + column]) * scale;
    });
#pragma unroll
    for (int j = 0; j < queries / 16; ++j) {
      uint32_t left[4];
      as_left<S>(left, s[2 * j], s[2 * j + 1]);
#pragma unroll
      for (int d = 0; d < width / 16; ++d) {
        uint32_t right[4];
        T::right_turned(right, query_at + stage, j * 16, d);
        multiply<S>(of_key[2 * d], left, right[0], right[1]);
        multiply<S>(of_key[2 * d + 1], left, right[2], right[3]);
      }
    }
    __syncthreads();
  }
  if (count == 0) wait<0>();
  T::store(key_at, own, of_key, static_cast<S*>(g.key.data) + plan.start(g.key, kb, p.group), g.key.row,
           first, p.keys, p.width);
  T::store(value_at, own, of_value, static_cast<S*>(g.value.data) + plan.start(g.value, kb, p.group),
           g.value.row, first, p.keys, p.width);
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

// f(an element of memory, whether rows have up to 64 columns)
template <class F>
void visit(const DeviceAttention& p, F&& f) {
  visit_floating(p.dtype, [&](auto tag) {
    if constexpr (is_stored_half<typename decltype(tag)::type>) {
      if (p.width <= 64)
        f(tag, std::true_type{});
      else
        f(tag, std::false_type{});
    }
  });
}

int64_t tiles_of(int64_t rows, int tile) { return (rows + tile - 1) / tile; }

}  // namespace

bool attention_flash(int device, const DeviceAttention& p) {
  if (!lies_in_packs(p)) return false;
  visit(p, [&](auto tag, auto narrow) {
    using S = typename decltype(tag)::type;
    constexpr int kWidth = narrow ? 64 : 128, kWarps = narrow ? 4 : 8, kTiles = narrow ? 2 : 1, kKeys = 64;
    using T = SharedRows<S, kWidth, kWarps * 32>;
    launch({device, "attention"}, forward_kernel<S, kWidth, kWarps, kTiles, kKeys>,
           p.batch() * tiles_of(p.queries, kWarps * kTiles * 16), kWarps * 32,
           T::bytes(kWarps * kTiles * 16) + 4 * T::bytes(kKeys), AttentionPlan{p});
  });
  return true;
}

bool attention_flash_backward(int device, const DeviceAttention& p, const DeviceAttentionGradients& g,
                              const float* along) {
  if (!lies_in_packs(p, g)) return false;
  visit(p, [&](auto tag, auto narrow) {
    using S = typename decltype(tag)::type;
    constexpr int kWidth = narrow ? 64 : 128, kWarps = 8, kRows = kWarps * 16, kOthers = narrow ? 64 : 32;
    using T = SharedRows<S, kWidth, kWarps * 32>;
    const Launch at{device, "attention_backward"};
    const size_t bytes = 2 * T::bytes(kRows) + 4 * T::bytes(kOthers);
    launch(at, query_gradient_kernel<S, kWidth, kWarps, kOthers>, p.batch() * tiles_of(p.queries, kRows),
           kWarps * 32, bytes, AttentionPlan{p}, g, along);
    launch(at, key_gradient_kernel<S, kWidth, kWarps, kOthers>, p.batch() / p.group * tiles_of(p.keys, kRows),
           kWarps * 32, bytes + 4 * kOthers * sizeof(float), AttentionPlan{p}, g, along);
  });
  return true;
}

#else

bool attention_flash(int, const DeviceAttention&) { return false; }
bool attention_flash_backward(int, const DeviceAttention&, const DeviceAttentionGradients&, const float*) {
  return false;
}

#endif

}  // namespace rushlight::cuda
