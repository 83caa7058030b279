// Gradients of what attention_hopper.cu computes, in two kernels that compute the weights again: of queries,
// over all keys, and of keys and values, over all queries. Sums have a fixed order.
#include "cuda/attention_hopper.h"
#include "cuda/workspace.h"

namespace rushlight::cuda {

#if defined(__CUDACC__) && defined(RL_HOPPER)
namespace {

using namespace hopper;
using Operand = DeviceAttention::Operand;

// Of each query what the scores' gradients need: the logarithm of its sum, to the base of two, and what is
// subtracted. Rows of `padded` queries; those that are not there have no weights.
template <class S>
__global__ void numbers_kernel(AttentionPlan plan, Operand grad_out, float* numbers, int64_t padded,
                               int64_t batch) {
  const DeviceAttention& p = plan.p;
  constexpr int kSharers = 16, kPack = 8;
  const int64_t i = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kSharers, b = i / padded,
                row = i - b * padded;
  const int sharer = static_cast<int>(threadIdx.x) % kSharers, column = sharer * kPack;
  if (b >= batch) return;  // whole warps: padded is a multiple of two
  float sum = 0;
  if (row < p.queries && column < p.width) {
    uint4 packs[2];
    packs[0] = *reinterpret_cast<const uint4*>(static_cast<const S*>(p.out.data) + plan.start(p.out, b, 1) +
                                               row * p.out.row + column);
    packs[1] = *reinterpret_cast<const uint4*>(static_cast<const S*>(grad_out.data) +
                                               plan.start(grad_out, b, 1) + row * grad_out.row + column);
    const S *x = reinterpret_cast<const S*>(&packs[0]), *g = reinterpret_cast<const S*>(&packs[1]);
#pragma unroll
    for (int k = 0; k < kPack; ++k) sum += widened(x[k]) * widened(g[k]);
  }
#pragma unroll
  for (int distance = kSharers / 2; distance > 0; distance /= 2)
    sum += __shfl_xor_sync(0xffffffffu, sum, distance);
  if (sharer != 0) return;
  float logarithm = INFINITY;
  if (row < p.queries) {
    const float of = static_cast<const float*>(p.logsumexp)[b * p.queries + row];
    if (of != -INFINITY) logarithm = of * kLog2E;
  }
  numbers[(2 * b) * padded + row] = logarithm;
  numbers[(2 * b + 1) * padded + row] = sum;
}

// Gradients of 128 keys and values, over tiles of `columns` queries; or of 128 queries, over tiles of keys.
template <class S, int width, int columns, bool of_keys>
struct Backward {
  static constexpr int kGroups = 2, kRows = kGroups * kGroupRows, kStages = width == 128 ? 3 : 2;
  // The sums of a tile go on while the next one is scored; there are no registers for two sums of keys.
  static constexpr bool kGoesOn = width == 128 && !of_keys;
  static constexpr int kThreads = (kGroups + 1) * kGroupThreads;
  using Rows = Panels<width, kRows>;
  using Columns = Panels<width, columns>;
  static constexpr uint32_t kNumbers = of_keys ? 2 * columns * 4 : 0;
  static constexpr uint32_t kStage = 2 * Columns::kBytes;
  // Queries and their gradients, or keys and values.
  static constexpr uint32_t kFirstAt = 1024, kSecondAt = kFirstAt + Rows::kBytes,
                            kStagesAt = kSecondAt + Rows::kBytes, kNumbersAt = kStagesAt + kStages * kStage,
                            kEnd = kNumbersAt + kStages * kNumbers;

  const Maps& maps;
  const AttentionPlan& plan;
  const DeviceAttentionGradients& g;
  const float* numbers;
  const int64_t padded, heads;
  const uint32_t base;

  __device__ uint32_t rows_full() const { return base; }
  __device__ uint32_t full(uint32_t n) const { return base + 16 + n % kStages * 8; }
  __device__ uint32_t empty(uint32_t n) const { return base + 48 + n % kStages * 8; }
  __device__ static uint32_t parity(uint32_t n) { return n / kStages & 1; }
  __device__ void begin() const {
    begin_barrier(rows_full(), 1);
    for (uint32_t n = 0; n < kStages; ++n) {
      begin_barrier(full(n), 1);
      begin_barrier(empty(n), kGroups * 4);
    }
    show_barriers();
  }

  // The rows' tile, and the tiles of columns that it meets: f(number, matrix of queries, first column).
  __device__ int rows_there() const { return static_cast<int>(of_keys ? plan.p.keys : plan.p.queries); }
  __device__ int per() const { return (rows_there() + kRows - 1) / kRows; }
  __device__ int matrix() const { return static_cast<int>(blockIdx.x) / per(); }
  __device__ int first() const {
    const int tile = static_cast<int>(blockIdx.x) % per();
    return (of_keys ? tile : per() - 1 - tile) * kRows;  // causal rows with most columns first
  }
  template <class F>
  __device__ __forceinline__ void for_tiles(F&& f) const {
    const DeviceAttention& p = plan.p;
    const int m = matrix(), at = first();
    uint32_t n = 0;
    if constexpr (of_keys) {
      const int begin = p.causal ? at / columns * columns : 0, group = static_cast<int>(p.group),
                end = static_cast<int>(p.queries);
      for (int b = m * group; b < (m + 1) * group; ++b)
        for (int from = begin; from < end; from += columns) f(n++, b, from);
    } else {
      const int end = static_cast<int>(plan.last_key(at, kRows));
      for (int from = 0; from < end; from += columns) f(n++, m, from);
    }
  }

  __device__ void produce() const {
    const int group = static_cast<int>(plan.p.group), heads_of = static_cast<int>(heads), m = matrix(),
              at = first();
    const int mine = of_keys ? heads_of / group : heads_of;
    arrive_and_expect(rows_full(), 2 * Rows::kBytes);
    Rows::fetch(base + kFirstAt, of_keys ? &maps.key : &maps.query, rows_full(), at, m % mine, m / mine);
    Rows::fetch(base + kSecondAt, of_keys ? &maps.value : &maps.flow, rows_full(), at, m % mine, m / mine);
    for_tiles([&](uint32_t n, int b, int from) {
      const uint32_t to = base + kStagesAt + n % kStages * kStage;
      const int of = b / heads_of, head = b % heads_of / (of_keys ? 1 : group);
      await(empty(n), parity(n) ^ 1);
      arrive_and_expect(full(n), kStage + kNumbers);
      Columns::fetch(to, of_keys ? &maps.query : &maps.key, full(n), from, head, of);
      Columns::fetch(to + Columns::kBytes, of_keys ? &maps.flow : &maps.value, full(n), from, head, of);
      if constexpr (of_keys)
        for (int k = 0; k < 2; ++k)
          fetch_bytes(base + kNumbersAt + n % kStages * kNumbers + k * columns * 4,
                      numbers + (2 * int64_t{b} + k) * padded + from, columns * 4, full(n));
    });
  }

  // Groups take turns to hand scores to the tensor cores: what the other computes of its own falls between.
  __device__ static __forceinline__ void give_turn(int to) {
    asm volatile("bar.arrive %0, %1;" ::"r"(kTurnBarrier + to), "n"(kGroups * kGroupThreads) : "memory");
  }
  __device__ static __forceinline__ void take_turn(int group) {
    asm volatile("bar.sync %0, %1;" ::"r"(kTurnBarrier + group), "n"(kGroups * kGroupThreads) : "memory");
  }

  using Tile = float[columns / 8][4];
  __device__ __forceinline__ void score(Tile& s, uint32_t rows_at, int group, uint32_t columns_at) const {
#pragma unroll
    for (int k = 0; k < width / 16; ++k)
      multiply<S>(s, Rows::across(base + rows_at, group * kGroupRows, k), Columns::across(columns_at, 0, k),
                  k > 0);
    commit_products();
  }
  __device__ static __forceinline__ void add(float (&out)[width / 8][4],
                                             const uint32_t (&left)[columns / 16][4], uint32_t columns_at) {
#pragma unroll
    for (int k = 0; k < columns / 16; ++k) multiply_turned<S>(out, left[k], Columns::down(columns_at, k), 1);
    commit_products();
  }

  __device__ void consume() const {
    const DeviceAttention& p = plan.p;
    const int group = static_cast<int>(threadIdx.x) / kGroupThreads - 1,
              warp = static_cast<int>(threadIdx.x) % kGroupThreads / 32,
              lane = static_cast<int>(threadIdx.x) % 32, own = group * kGroupRows + warp * 16;
    const float scale = static_cast<float>(p.scale), to_log2 = scale * kLog2E;
    const int m = matrix(), at = first(), from_row = at + group * kGroupRows;
    float logarithm[2], subtracted[2];
    if constexpr (!of_keys)
#pragma unroll
      for (int h = 0; h < 2; ++h) {  // padded is a multiple of kRows
        const float* row = numbers + 2 * int64_t{m} * padded + at + own + lane / 4 + 8 * h;
        logarithm[h] = row[0];
        subtracted[h] = row[padded];
      }
    float of_first[width / 8][4] = {}, of_second[of_keys ? width / 8 : 1][4] = {};
    uint32_t gradients[columns / 16][4];
    int going = -1;  // the tile whose sums go on
    auto end_sums = [&] {
      await_products<0>();
      hold(of_first);
      if constexpr (of_keys) hold(of_second);
    };
    await(rows_full(), 0);
    if (group == 1) give_turn(0);
    for_tiles([&](uint32_t n, int, int from) {
      const uint32_t first_at = base + kStagesAt + n % kStages * kStage,
                     second_at = first_at + Columns::kBytes;
      await(full(n), parity(n));
      const bool none = p.causal && (of_keys ? from + columns <= from_row : from >= from_row + kGroupRows);
      if (!none) {
        Tile s, flow;
        take_turn(group);
        begin_products();
        score(s, kFirstAt, group, first_at);
        score(flow, kSecondAt, group, second_at);
        give_turn(1 - group);
        const uint32_t numbers_at = base + kNumbersAt + n % kStages * kNumbers + lane % 4 * 8;
        await_products<1>();
        hold(s);
        if (kGoesOn && going >= 0) arrive_by_warp(empty(static_cast<uint32_t>(going)));
#pragma unroll
        for (int j = 0; j < columns / 8; ++j) {
          float of_column[2];
          if constexpr (of_keys)
            asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];"
                         : "=f"(of_column[0]), "=f"(of_column[1])
                         : "r"(numbers_at + j * 32));
#pragma unroll
          for (int c = 0; c < 4; ++c)
            s[j][c] = power_of_two(fmaf(s[j][c], to_log2, -(of_keys ? of_column[c % 2] : logarithm[c / 2])));
        }
        if (of_keys ? p.causal && from < from_row + kGroupRows - 1
                    : from + columns > p.keys || (p.causal && from + columns > from_row + 1)) {
          const int row = at + own - from, end = of_keys ? columns : static_cast<int>(p.keys) - from;
          for_sums(s, [&](int r, int column, float& x) {
            if (column >= end || (p.causal && (of_keys ? row + r > column : column > row + r))) x = 0;
          });
        }
        uint32_t left[columns / 16][4];
        if constexpr (of_keys) {
#pragma unroll
          for (int k = 0; k < columns / 16; ++k) as_left<S>(left[k], s[2 * k], s[2 * k + 1]);
          hold(of_second);
          begin_products();
          add(of_second, left, second_at);
          await_products<1>();
        } else {
          await_products<0>();
        }
        hold(flow);
#pragma unroll
        for (int j = 0; j < columns / 8; ++j) {
          float of_column[2];
          if constexpr (of_keys)
            asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];"
                         : "=f"(of_column[0]), "=f"(of_column[1])
                         : "r"(numbers_at + columns * 4 + j * 32));
#pragma unroll
          for (int c = 0; c < 4; ++c)
            s[j][c] *= flow[j][c] - (of_keys ? of_column[c % 2] : subtracted[c / 2]);
        }
#pragma unroll
        for (int k = 0; k < columns / 16; ++k) as_left<S>(gradients[k], s[2 * k], s[2 * k + 1]);
        hold(of_first);
        begin_products();
        add(of_first, gradients, first_at);
        if constexpr (kGoesOn) {
          going = static_cast<int>(n);
          return;
        }
        end_sums();
      } else {
        take_turn(group);
        give_turn(1 - group);
        if (kGoesOn && going >= 0) {
          end_sums();
          arrive_by_warp(empty(static_cast<uint32_t>(going)));
          going = -1;
        }
      }
      arrive_by_warp(empty(n));
    });
    if constexpr (kGoesOn) end_sums();
#pragma unroll
    for (int d = 0; d < width / 8; ++d)
#pragma unroll
      for (int c = 0; c < 4; ++c) of_first[d][c] *= scale;
    wait_for_group(group);
    const Operand& to = of_keys ? g.key : g.query;
    const int64_t shared = of_keys ? p.group : 1;
    Rows::store(base + kFirstAt, own, of_first, static_cast<S*>(to.data) + plan.start(to, m, shared), to.row,
                at, rows_there(), p.width);
    if constexpr (of_keys)
      Rows::store(base + kSecondAt, own, of_second,
                  static_cast<S*>(g.value.data) + plan.start(g.value, m, shared), g.value.row, at,
                  rows_there(), p.width);
  }
};

template <class S, int width, int columns, bool of_keys>
__global__ void __launch_bounds__(Backward<S, width, columns, of_keys>::kThreads, 1)
    backward_kernel(const __grid_constant__ Maps maps, const __grid_constant__ AttentionPlan plan,
                    const __grid_constant__ DeviceAttentionGradients g, const float* numbers, int64_t padded,
                    int64_t heads) {
  using Kernel = Backward<S, width, columns, of_keys>;
  extern __shared__ unsigned char memory[];
  const Kernel kernel{maps, plan, g, numbers, padded, heads, (shared_address(memory) + 1023) & ~1023u};
  if (threadIdx.x == 0) kernel.begin();
  __syncthreads();
  if (threadIdx.x < kGroupThreads) {
    leave_registers<24>();
    if (threadIdx.x == 0) kernel.produce();
  } else {
    take_registers<240>();
    kernel.consume();
  }
}

}  // namespace

bool attention_hopper_backward(int device, const DeviceAttention& p, const DeviceAttentionGradients& g) {
  if (!lies_in_packs(p, g) || !fits(device_of(device), p)) return false;
  return visit(p, [&](auto tag, auto width) {
    using S = typename decltype(tag)::type;
    constexpr int kWidth = decltype(width)::value, kColumns = kWidth == 64 ? 128 : 64;
    using Queries = Backward<S, kWidth, kColumns, false>;
    using Keys = Backward<S, kWidth, kColumns, true>;
    constexpr int kRows = Queries::kRows;
    Maps queries{}, keys{};
    if (!map_of(&queries.query, p, p.query, p.queries, 1, kRows) ||
        !map_of(&queries.flow, p, g.grad_out, p.queries, 1, kRows) ||
        !map_of(&queries.key, p, p.key, p.keys, p.group, kColumns) ||
        !map_of(&queries.value, p, p.value, p.keys, p.group, kColumns) ||
        !map_of(&keys.query, p, p.query, p.queries, 1, kColumns) ||
        !map_of(&keys.flow, p, g.grad_out, p.queries, 1, kColumns) ||
        !map_of(&keys.key, p, p.key, p.keys, p.group, kRows) ||
        !map_of(&keys.value, p, p.value, p.keys, p.group, kRows))
      return false;
    const int64_t padded = tiles_of(p.queries, kRows) * kRows, lines = p.batch() * padded,
                  heads = heads_of(p);
    const Workspace memory(static_cast<size_t>(2 * lines) * sizeof(float), device);
    auto* numbers = static_cast<float*>(memory.data());
    const Launch at{device, "attention_backward"};
    constexpr int kThreads = 256;
    on_stream(at, [&](cudaStream_t stream) {
      numbers_kernel<S><<<static_cast<unsigned>(tiles_of(lines * 16, kThreads)), kThreads, 0, stream>>>(
          AttentionPlan{p}, g.grad_out, numbers, padded, p.batch());
    });
    launch(at, backward_kernel<S, kWidth, kColumns, false>, p.batch() * tiles_of(p.queries, kRows),
           Queries::kThreads, Queries::kEnd, queries, AttentionPlan{p}, g, numbers, padded, heads);
    launch(at, backward_kernel<S, kWidth, kColumns, true>, p.batch() / p.group * tiles_of(p.keys, kRows),
           Keys::kThreads, Keys::kEnd, keys, AttentionPlan{p}, g, numbers, padded, heads);
    return true;
  });
}

#else

bool attention_hopper_backward(int, const DeviceAttention&, const DeviceAttentionGradients&) { return false; }

#endif

}  // namespace rushlight::cuda
