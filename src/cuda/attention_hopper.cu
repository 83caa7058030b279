// Attention of halves without a mask or dropout on compute capability 9.0: one thread has tiles copied while
// groups of four warps multiply, weigh and sum (Shah et al., "FlashAttention-3: Fast and Accurate Attention
// with Asynchrony and Low-precision", 2024). The rest goes to attention_flash.cu; so does everything on the
// host.
#include <algorithm>

#include "cuda/attention_hopper.h"

namespace rushlight::cuda {

#if defined(__CUDACC__) && defined(RL_HOPPER)
namespace {

using namespace hopper;

// How matrices and tiles are numbered.
struct Order {
  int batch, heads;  // matrices of queries, and of them in a batch
  int tiles, total;  // of queries of one and of all
  int together;      // matrices whose tiles alternate, so that their keys and values stay in the cache
};

template <class S, int width>
struct Forward {
  static constexpr int kGroups = 2, kKeys = 128, kStages = 2;
  static constexpr int kThreads = (kGroups + 1) * kGroupThreads, kQueries = kGroups * kGroupRows;
  static constexpr int kTaken = 240, kLeft = 24;  // registers of a multiplying thread, and of others
  using Rows = Panels<width, kQueries>;
  using Columns = Panels<width, kKeys>;
  static constexpr uint32_t kQueryAt = 1024, kOutAt = kQueryAt + Rows::kBytes, kKeyAt = kOutAt + Rows::kBytes,
                            kValueAt = kKeyAt + kStages * Columns::kBytes,
                            kEnd = kValueAt + kStages * Columns::kBytes;

  const Maps& maps;
  const AttentionPlan& plan;
  const Order order;
  const uint32_t base;

  // Barriers: queries there, or read; keys and values of a stage there, or read.
  __device__ uint32_t query_full() const { return base; }
  __device__ uint32_t query_empty() const { return base + 8; }
  __device__ uint32_t key_full(uint32_t n) const { return base + 16 + n % kStages * 8; }
  __device__ uint32_t key_empty(uint32_t n) const { return base + 48 + n % kStages * 8; }
  __device__ uint32_t value_full(uint32_t n) const { return base + 80 + n % kStages * 8; }
  __device__ uint32_t value_empty(uint32_t n) const { return base + 112 + n % kStages * 8; }
  __device__ static uint32_t parity(uint32_t n) { return n / kStages & 1; }

  __device__ void begin() const {
    begin_barrier(query_full(), 1);
    begin_barrier(query_empty(), kGroups * 4);
    for (uint32_t n = 0; n < kStages; ++n) {
      begin_barrier(key_full(n), 1);
      begin_barrier(value_full(n), 1);
      begin_barrier(key_empty(n), kGroups * 4);
      begin_barrier(value_empty(n), kGroups * 4);
    }
    show_barriers();
  }

  struct Tile {
    int b, first, count;  // of keys' tiles
  };
  __device__ Tile tile(int i) const {
    const int per = order.tiles, section = i / (per * order.together), start = section * order.together,
              width_of = min(order.batch - start, order.together), rest = i - start * per,
              turn = rest / width_of;
    Tile t;
    t.b = start + (rest - turn * width_of);
    t.first = (per - 1 - turn) * kQueries;  // causal rows with most keys first
    t.count = (static_cast<int>(plan.last_key(t.first, kQueries)) + kKeys - 1) / kKeys;
    return t;
  }

  __device__ void produce() const {
    uint32_t n = 0, turn = 0;
    for (int i = blockIdx.x; i < order.total; i += gridDim.x, ++turn) {
      const Tile t = tile(i);
      const int head = t.b % order.heads, of = t.b / order.heads,
                shared = head / static_cast<int>(plan.p.group);
      await(query_empty(), (turn & 1) ^ 1);
      arrive_and_expect(query_full(), Rows::kBytes);
      Rows::fetch(base + kQueryAt, &maps.query, query_full(), t.first, head, of);
      for (int k = 0; k < t.count; ++k, ++n) {
        const uint32_t stage = n % kStages * Columns::kBytes;
        await(key_empty(n), parity(n) ^ 1);
        arrive_and_expect(key_full(n), Columns::kBytes);
        Columns::fetch(base + kKeyAt + stage, &maps.key, key_full(n), k * kKeys, shared, of);
        await(value_empty(n), parity(n) ^ 1);
        arrive_and_expect(value_full(n), Columns::kBytes);
        Columns::fetch(base + kValueAt + stage, &maps.value, value_full(n), k * kKeys, shared, of);
      }
    }
  }

  // Groups take turns to hand products to the tensor cores: the weights of one are computed meanwhile. Each
  // takes as many turns.
  __device__ static __forceinline__ void give_turn(int to) {
    asm volatile("bar.arrive %0, %1;" ::"r"(kTurnBarrier + to), "n"(kGroups * kGroupThreads) : "memory");
  }
  __device__ static __forceinline__ void begin_turns(int group) {
    for (int g = 0; g < group; ++g) give_turn(g);
  }
  __device__ static __forceinline__ void take_turn(int group) {
    asm volatile("bar.sync %0, %1;" ::"r"(kTurnBarrier + group), "n"(kGroups * kGroupThreads) : "memory");
  }
  __device__ static __forceinline__ void end_turn(int group) {
    for (int g = 0; g < kGroups; ++g)
      if (g != group) give_turn(g);
  }

  using Scores = float[kKeys / 8][4];

  __device__ __forceinline__ void score(Scores& s, int group, uint32_t n) const {
    begin_products();
#pragma unroll
    for (int k = 0; k < width / 16; ++k)
      multiply<S>(s, Rows::across(base + kQueryAt, group * kGroupRows, k),
                  Columns::across(base + kKeyAt + n % kStages * Columns::kBytes, 0, k), k > 0);
    commit_products();
  }
  __device__ __forceinline__ void add(float (&out)[width / 8][4], const uint32_t (&weights)[kKeys / 16][4],
                                      uint32_t n) const {
#pragma unroll
    for (int k = 0; k < kKeys / 16; ++k)
      multiply_turned<S>(out, weights[k], Columns::down(base + kValueAt + n % kStages * Columns::kBytes, k),
                         1);
    commit_products();
  }
  __device__ static __forceinline__ void narrow_weights(uint32_t (&weights)[kKeys / 16][4], const Scores& s) {
#pragma unroll
    for (int k = 0; k < kKeys / 16; ++k) as_left<S>(weights[k], s[2 * k], s[2 * k + 1]);
  }

  __device__ void consume() const {
    const DeviceAttention& p = plan.p;
    const int group = static_cast<int>(threadIdx.x) / kGroupThreads - 1,
              warp = static_cast<int>(threadIdx.x) % kGroupThreads / 32,
              lane = static_cast<int>(threadIdx.x) % 32, own = group * kGroupRows + warp * 16;
    const float to_log2 = static_cast<float>(p.scale) * kLog2E;
    uint32_t n = 0, turn = 0;
    begin_turns(group);
    for (int i = blockIdx.x; i < order.total; i += gridDim.x, ++turn) {
      const Tile t = tile(i);
      const int from_row = t.first + group * kGroupRows;
      int mine = from_row < p.queries ? t.count : 0;
      if (p.causal) mine = min(mine, (from_row + kGroupRows + kKeys - 1) / kKeys);
      Scores s;
      uint32_t weights[kKeys / 16][4];
      float out[width / 8][4] = {};
      float largest[2] = {-INFINITY, -INFINITY}, sum[2] = {}, shrink[2];
      // Scores of keys from `from` on become weights.
      auto weigh = [&](int from) {
        if (from + kKeys > p.keys || (p.causal && from + kKeys > from_row + 1)) {
          const int end = static_cast<int>(p.keys) - from, row = t.first + own - from;
          for_sums(s, [&](int r, int column, float& x) {
            if (column >= end || (p.causal && column > row + r)) x = -INFINITY;
          });
        }
        // Of rows lane / 4 and lane / 4 + 8, in several chains each: the next links wait for the last ones.
        float start[2], part[2][4] = {};
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          float most[4] = {largest[h], s[0][2 * h], s[0][2 * h + 1], s[1][2 * h]};
          most[0] = fmaxf(most[0], s[1][2 * h + 1]);
#pragma unroll
          for (int j = 2; j < kKeys / 8; ++j)
#pragma unroll
            for (int c = 0; c < 2; ++c) {
              float& chain = most[j % 2 * 2 + c];
              chain = fmaxf(chain, s[j][2 * h + c]);
            }
          const float all = largest_of_four(fmaxf(fmaxf(most[0], most[1]), fmaxf(most[2], most[3])));
          start[h] = all == -INFINITY ? 0.0f : all * to_log2;
          shrink[h] = power_of_two(largest[h] * to_log2 - start[h]);
          largest[h] = all;
        }
#pragma unroll
        for (int j = 0; j < kKeys / 8; ++j)
#pragma unroll
          for (int c = 0; c < 4; ++c) {
            s[j][c] = power_of_two(fmaf(s[j][c], to_log2, -start[c / 2]));
            part[c / 2][j % 2 * 2 + c % 2] += s[j][c];
          }
#pragma unroll
        for (int h = 0; h < 2; ++h)
          sum[h] = fmaf(sum[h], shrink[h], (part[h][0] + part[h][1]) + (part[h][2] + part[h][3]));
      };

      await(query_full(), turn & 1);
      if (mine > 0) {
        await(key_full(n), parity(n));
        take_turn(group);
        score(s, group, n);
        end_turn(group);
        await_products<0>();
        hold(s);
        arrive_by_warp(key_empty(n));
        weigh(0);
        narrow_weights(weights, s);
        for (int k = 1; k < mine; ++k) {
          const uint32_t next = n + static_cast<uint32_t>(k);
          await(key_full(next), parity(next));
          hold(s);
          hold(out);
          take_turn(group);
          score(s, group, next);
          await(value_full(next - 1), parity(next - 1));
          add(out, weights, next - 1);
          end_turn(group);
          await_products<1>();
          hold(s);
          arrive_by_warp(key_empty(next));
          weigh(k * kKeys);
          await_products<0>();
          hold(out);
          arrive_by_warp(value_empty(next - 1));
          narrow_weights(weights, s);
#pragma unroll
          for (int d = 0; d < width / 8; ++d)
#pragma unroll
            for (int c = 0; c < 4; ++c) out[d][c] *= shrink[c / 2];
        }
        const uint32_t last = n + static_cast<uint32_t>(mine) - 1;
        await(value_full(last), parity(last));
        hold(out);
        begin_products();
        add(out, weights, last);
        await_products<0>();
        hold(out);
        arrive_by_warp(value_empty(last));
      }
      arrive_by_warp(query_empty());
      for (int k = mine; k < t.count; ++k) {  // that other groups look at
        const uint32_t next = n + static_cast<uint32_t>(k);
        await(key_full(next), parity(next));
        arrive_by_warp(key_empty(next));
        take_turn(group), end_turn(group);
        await(value_full(next), parity(next));
        arrive_by_warp(value_empty(next));
      }
      n += static_cast<uint32_t>(t.count);
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const float all = sum_of_four(sum[h]), inverse = all == 0 ? 0.0f : 1 / all;
        const int at = t.first + own + lane / 4 + 8 * h;
        if (p.logsumexp && lane % 4 == 0 && at < p.queries)
          static_cast<float*>(p.logsumexp)[int64_t{t.b} * p.queries + at] =
              all == 0 ? -INFINITY : largest[h] * static_cast<float>(p.scale) + logf(all);
#pragma unroll
        for (int d = 0; d < width / 8; ++d) out[d][2 * h] *= inverse, out[d][2 * h + 1] *= inverse;
      }
      Rows::store(base + kOutAt, own, out, static_cast<S*>(p.out.data) + plan.start(p.out, t.b, 1), p.out.row,
                  t.first, p.queries, p.width);
    }
  }
};

template <class S, int width>
__global__ void __launch_bounds__(Forward<S, width>::kThreads, 1)
    forward_kernel(const __grid_constant__ Maps maps, const __grid_constant__ AttentionPlan plan,
                   Order order) {
  using Kernel = Forward<S, width>;
  extern __shared__ unsigned char memory[];
  const Kernel kernel{maps, plan, order, (shared_address(memory) + 1023) & ~1023u};
  if (threadIdx.x == 0) kernel.begin();
  __syncthreads();
  if (threadIdx.x < kGroupThreads) {
    leave_registers<Kernel::kLeft>();
    if (threadIdx.x == 0) kernel.produce();
  } else {
    take_registers<Kernel::kTaken>();
    kernel.consume();
  }
}

}  // namespace

bool attention_hopper(int device, const DeviceAttention& p) {
  const Device on = device_of(device);
  if (!fits(on, p) || !lies_in_packs(p)) return false;
  return visit(p, [&](auto tag, auto width) {
    using S = typename decltype(tag)::type;
    constexpr int kWidth = decltype(width)::value;
    using Kernel = Forward<S, kWidth>;
    Maps maps{};
    if (!map_of(&maps.query, p, p.query, p.queries, 1, Kernel::kQueries) ||
        !map_of(&maps.key, p, p.key, p.keys, p.group, Kernel::kKeys) ||
        !map_of(&maps.value, p, p.value, p.keys, p.group, Kernel::kKeys))
      return false;
    constexpr int64_t kCached = int64_t{16} << 20;
    const int64_t one = p.keys * p.width * 4 / p.group,
                  together = std::clamp<int64_t>(kCached / std::max<int64_t>(one, 1), 1, p.batch()),
                  tiles = tiles_of(p.queries, Kernel::kQueries), total = p.batch() * tiles;
    if (total >= 1 << 30) return false;
    const Order order{static_cast<int>(p.batch()), static_cast<int>(heads_of(p)), static_cast<int>(tiles),
                      static_cast<int>(total), static_cast<int>(together)};
    // A block takes tile after tile, and copies the next while it ends one; unless they differ so much in
    // length that the device had better hand them out.
    const bool uneven = kWidth == 128 && p.causal && p.keys >= 2048;
    launch({device, "attention"}, forward_kernel<S, kWidth>,
           uneven ? total : std::min<int64_t>(total, on.multiprocessors), Kernel::kThreads, Kernel::kEnd,
           maps, AttentionPlan{p}, order);
    return true;
  });
}

#else

bool attention_hopper(int, const DeviceAttention&) { return false; }

#endif

}  // namespace rushlight::cuda
