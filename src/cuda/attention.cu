// Attention in tiles of 32 queries by 32 keys, whose scores never leave the chip (Dao et al.,
// "FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness", 2022). Eight threads share a
// row of a tile. Halves have tiles of their own, in attention_halves.cu.
#include <cmath>

#include "cuda/attention_plan.h"
#include "cuda/channels.h"
#include "cuda/layers.h"
#include "cuda/team.h"
#include "cuda/workspace.h"

namespace rushlight::cuda {
namespace {

using Operand = DeviceAttention::Operand;

constexpr int kTile = 32, kSharers = 8;
constexpr int kMostWidth = 128, kOwnColumns = kMostWidth / kSharers;
constexpr int kScoreRow = kTile + 1;  // a column more, so that rows lie in different banks
static_assert(kTile * kSharers == kTeamThreads);

// Where things lie in the memory of a team, in elements.
struct Layout {
  int width_row, value_row, query, key, value, grad, first, second, total;
  RL_BOTH Layout(int64_t width, int64_t value_width, bool backward)
      : width_row(static_cast<int>(width) + 1),
        value_row(static_cast<int>(value_width) + 1),
        query(0),
        key(kTile * width_row),
        value(2 * kTile * width_row),
        grad(value + kTile * value_row),
        first(backward ? grad + kTile * value_row : grad),
        second(first + kTile * kScoreRow),
        total(backward ? second + kTile * kScoreRow : second) {}
};

// What all kernels here do with a plan. S: in memory, C: what is computed in.
template <class S>
struct Tiles : AttentionPlan {
  using C = ComputeOf<S>;

  RL_BOTH Layout layout(bool backward) const { return Layout(p.width, p.value_width, backward); }
  RL_BOTH int64_t query_tiles() const { return (p.queries + kTile - 1) / kTile; }
  RL_BOTH int64_t key_tiles() const { return (p.keys + kTile - 1) / kTile; }

  // Rows [first, first + kTile) of a matrix into a tile, zero beyond its end.
  RL_BOTH void read(uint32_t thread, const Operand& o, int64_t begin, int64_t first, int64_t rows,
                    int64_t width, C* tile, int tile_row) const {
    const auto columns = static_cast<uint32_t>(width);
    for (uint32_t i = thread; i < kTile * columns; i += kTeamThreads) {
      const uint32_t row = i / columns, column = i - row * columns;
      const int64_t at = first + row;
      tile[row * static_cast<uint32_t>(tile_row) + column] =
          at < rows ? number<C>(static_cast<const S*>(o.data)[begin + at * o.row + column]) : C(0);
    }
  }
  RL_BOTH void write(const Operand& o, int64_t begin, int64_t row, uint32_t sharer, int64_t width,
                     const C* own) const {
    for (int k = 0; k < kOwnColumns; ++k) {
      const int64_t column = sharer + k * kSharers;
      if (column < width) static_cast<S*>(o.data)[begin + row * o.row + column] = number<S>(own[k]);
    }
  }
  // The score of a query and a key, from their rows of tiles; minus infinity where the one may not look.
  RL_BOTH C score(int64_t mask_begin, int64_t query, int64_t key, const C* q, const C* k) const {
    if (hidden(query, key)) return -static_cast<C>(INFINITY);
    C sum = 0;
    for (int64_t d = 0; d < p.width; ++d) sum += q[d] * k[d];
    return AttentionPlan::score(sum, mask_begin, query, key);
  }
};

// What a thread keeps of its row.
template <class C>
struct Row {
  C largest = -static_cast<C>(INFINITY), sum = 0, shrink = 1;
  C own[kOwnColumns] = {};
};

template <class S>
struct Forward {
  Tiles<S> tiles;
  using C = typename Tiles<S>::C;

  RL_BOTH void operator()(const Team& team) const {
    const DeviceAttention& p = tiles.p;
    const int64_t per = tiles.query_tiles(), b = team.index / per, first = (team.index - b * per) * kTile;
    const Layout at = tiles.layout(false);
    C* memory = reinterpret_cast<C*>(team.memory);
    C *query = memory + at.query, *key = memory + at.key, *value = memory + at.value,
      *scores = memory + at.first;
    const int64_t key_begin = tiles.start(p.key, b / p.group, p.group),
                  value_begin = tiles.start(p.value, b / p.group, p.group),
                  mask_begin = tiles.start(p.mask, b, 1);
    PerThread<Row<C>> rows;
    team.each([&](uint32_t t) {
      tiles.read(t, p.query, tiles.start(p.query, b, 1), first, p.queries, p.width, query, at.width_row);
    });
    for (int64_t from = 0, end = tiles.last_key(first, kTile); from < end; from += kTile) {
      team.each([&](uint32_t t) {
        tiles.read(t, p.key, key_begin, from, p.keys, p.width, key, at.width_row);
        tiles.read(t, p.value, value_begin, from, p.keys, p.value_width, value, at.value_row);
      });
      team.each([&](uint32_t t) {
        const auto row = static_cast<int>(t) / kSharers;
        for (int j = static_cast<int>(t) % kSharers; j < kTile; j += kSharers)
          scores[row * kScoreRow + j] = tiles.score(mask_begin, first + row, from + j,
                                                    query + row * at.width_row, key + j * at.width_row);
      });
      team.each(rows, [&](uint32_t t, Row<C>& mine) { raise(mine, scores + t / kSharers * kScoreRow); });
      team.each(rows, [&](uint32_t t, Row<C>& mine) {
        C* row = scores + t / kSharers * kScoreRow;
        mine.sum *= mine.shrink;
        tiles.template for_own<kTile, kSharers>(
            static_cast<int>(t) % kSharers, b, first + t / kSharers, from, [&](int j, bool kept) {
              const C weight = row[j] == -static_cast<C>(INFINITY) ? C(0) : std::exp(row[j] - mine.largest);
              mine.sum += weight;
              row[j] = kept ? weight : C(0);
            });
      });
      team.each(rows, [&](uint32_t t, Row<C>& mine) {
        add(mine, scores + t / kSharers * kScoreRow, value + t % kSharers, at.value_row);
      });
    }
    team.each(rows, [&](uint32_t t, Row<C>& mine) {
      scores[t / kSharers * kScoreRow + t % kSharers] = mine.sum;  // of this sharer's keys
    });
    team.each(rows, [&](uint32_t t, Row<C>& mine) {
      mine.sum = 0;
      for (int i = 0; i < kSharers; ++i) mine.sum += scores[t / kSharers * kScoreRow + i];
      finish(mine, b, first + t / kSharers, t % kSharers);
    });
  }

  // The largest score so far, and by what earlier sums shrink. NaN stays.
  RL_BOTH static void raise(Row<C>& mine, const C* scores) {
    C largest = mine.largest;
    for (int j = 0; j < kTile; ++j)
      largest = scores[j] > largest || scores[j] != scores[j] ? scores[j] : largest;
    mine.shrink = largest == mine.largest ? C(1) : std::exp(mine.largest - largest);
    mine.largest = largest;
  }
  RL_BOTH void add(Row<C>& mine, const C* weights, const C* value, int value_row) const {
    for (int k = 0; k < kOwnColumns; ++k) {
      if (k * kSharers >= tiles.p.value_width) break;
      C total = mine.own[k] * mine.shrink;
      for (int j = 0; j < kTile; ++j) total += weights[j] * value[j * value_row + k * kSharers];
      mine.own[k] = total;
    }
  }
  RL_BOTH void finish(Row<C>& mine, int64_t b, int64_t row, uint32_t sharer) const {
    const DeviceAttention& p = tiles.p;
    if (row >= p.queries) return;
    const C by =
        mine.sum == 0 ? C(0) : tiles.template growth<C>() / mine.sum;  // who looks at nothing gets zeros
    for (C& x : mine.own) x *= by;
    tiles.write(p.out, tiles.start(p.out, b, 1), row, sharer, p.value_width, mine.own);
    if (sharer == 0 && p.logsumexp)
      static_cast<C*>(p.logsumexp)[b * p.queries + row] =
          mine.sum == 0 ? -static_cast<C>(INFINITY) : mine.largest + std::log(mine.sum);
  }
};

// along[b, query] = sum of grad_out * out: what softmax's gradient subtracts.
template <class S>
struct Along {
  Tiles<S> tiles;
  Operand grad_out;
  typename Tiles<S>::C* along;
  RL_BOTH void operator()(const Block& block) const {
    using C = typename Tiles<S>::C;
    const DeviceAttention& p = tiles.p;
    const int64_t i = block.index, b = i / p.queries, row = i - b * p.queries;
    const S* x = static_cast<const S*>(p.out.data) + tiles.start(p.out, b, 1) + row * p.out.row;
    const S* g = static_cast<const S*>(grad_out.data) + tiles.start(grad_out, b, 1) + row * grad_out.row;
    C sum = 0;
    for (int64_t d = block.thread; d < p.value_width; d += block.threads)
      sum += number<C>(x[d]) * number<C>(g[d]);
    sum = block_reduce(block, sum, [](C a, C c) { return a + c; });
    if (block.thread == 0) along[i] = sum;
  }
};

// The gradients of one tile of scores: what queries' and keys' kernels both begin with.
template <class S>
struct Backward {
  Tiles<S> tiles;
  DeviceAttentionGradients g;
  const typename Tiles<S>::C* along;
  using C = typename Tiles<S>::C;

  // Weights and the scores' gradients, four of them a thread.
  RL_BOTH void flow(uint32_t t, const C* memory, const Layout& at, int64_t b, int64_t mask_begin,
                    int64_t first, int64_t from, C* weights, C* gradients) const {
    const DeviceAttention& p = tiles.p;
    const auto row = static_cast<int>(t) / kSharers;
    const int64_t query = first + row, line = b * p.queries + query;
    const C growth = tiles.template growth<C>();
    tiles.template for_own<kTile, kSharers>(
        static_cast<int>(t) % kSharers, b, query, from, [&](int j, bool kept) {
          C weight = 0, gradient = 0;
          const C score = tiles.score(mask_begin, query, from + j, memory + at.query + row * at.width_row,
                                      memory + at.key + j * at.width_row);
          if (score != -static_cast<C>(INFINITY)) {
            weight = std::exp(score - static_cast<const C*>(p.logsumexp)[line]);
            C sum = 0;
            if (kept) {
              const C *grad = memory + at.grad + row * at.value_row,
                      *value = memory + at.value + j * at.value_row;
              for (int64_t d = 0; d < p.value_width; ++d) sum += grad[d] * value[d];
            }
            gradient = weight * (sum * growth - along[line]);
          }
          if (weights) weights[row * kScoreRow + j] = kept ? weight * growth : C(0);
          gradients[row * kScoreRow + j] = gradient;
        });
  }
  RL_BOTH void read_queries(uint32_t t, int64_t b, int64_t first, C* memory, const Layout& at) const {
    const DeviceAttention& p = tiles.p;
    tiles.read(t, p.query, tiles.start(p.query, b, 1), first, p.queries, p.width, memory + at.query,
               at.width_row);
    tiles.read(t, g.grad_out, tiles.start(g.grad_out, b, 1), first, p.queries, p.value_width,
               memory + at.grad, at.value_row);
  }
  RL_BOTH void read_keys(uint32_t t, int64_t kb, int64_t from, C* memory, const Layout& at) const {
    const DeviceAttention& p = tiles.p;
    tiles.read(t, p.key, tiles.start(p.key, kb, p.group), from, p.keys, p.width, memory + at.key,
               at.width_row);
    tiles.read(t, p.value, tiles.start(p.value, kb, p.group), from, p.keys, p.value_width, memory + at.value,
               at.value_row);
  }
  // own[column] += sum over the tile of factor[step * i] * rows[i][column]
  RL_BOTH static void accumulate(C* own, const C* factor, int step, const C* rows, int row, int64_t width) {
    for (int k = 0; k < kOwnColumns; ++k) {
      if (k * kSharers >= width) break;
      C total = own[k];
      for (int i = 0; i < kTile; ++i) total += factor[i * step] * rows[i * row + k * kSharers];
      own[k] = total;
    }
  }
};

template <class S>
struct QueryGradient {
  Backward<S> back;
  using C = typename Tiles<S>::C;
  RL_BOTH void operator()(const Team& team) const {
    const Tiles<S>& tiles = back.tiles;
    const DeviceAttention& p = tiles.p;
    const DeviceAttentionGradients& g = back.g;
    const int64_t per = tiles.query_tiles(), b = team.index / per, first = (team.index - b * per) * kTile;
    const Layout at = tiles.layout(true);
    C *memory = reinterpret_cast<C*>(team.memory), *gradients = memory + at.second;
    const int64_t mask_begin = tiles.start(p.mask, b, 1), mask_gradient_begin = tiles.start(g.mask, b, 1);
    PerThread<Row<C>> rows;
    team.each([&](uint32_t t) { back.read_queries(t, b, first, memory, at); });
    for (int64_t from = 0, end = tiles.last_key(first, kTile); from < end; from += kTile) {
      team.each([&](uint32_t t) { back.read_keys(t, b / p.group, from, memory, at); });
      team.each(
          [&](uint32_t t) { back.flow(t, memory, at, b, mask_begin, first, from, nullptr, gradients); });
      if (g.mask.data)
        team.each([&](uint32_t t) {
          put_mask_gradient<kTile, kTile>(t, p, g, mask_gradient_begin, first, from, gradients, kScoreRow);
        });
      team.each(rows, [&](uint32_t t, Row<C>& mine) {
        back.accumulate(mine.own, gradients + t / kSharers * kScoreRow, 1, memory + at.key + t % kSharers,
                        at.width_row, p.width);
      });
    }
    team.each(rows, [&](uint32_t t, Row<C>& mine) {
      const int64_t row = first + t / kSharers;
      for (C& x : mine.own) x *= static_cast<C>(p.scale);
      if (row < p.queries)
        tiles.write(g.query, tiles.start(g.query, b, 1), row, t % kSharers, p.width, mine.own);
    });
  }
};

template <class C>
struct KeyRow {
  C key[kOwnColumns] = {}, value[kOwnColumns] = {};
};

template <class S>
struct KeyGradient {
  Backward<S> back;
  using C = typename Tiles<S>::C;
  RL_BOTH void operator()(const Team& team) const {
    const Tiles<S>& tiles = back.tiles;
    const DeviceAttention& p = tiles.p;
    const int64_t per = tiles.key_tiles(), kb = team.index / per, from = (team.index - kb * per) * kTile;
    const Layout at = tiles.layout(true);
    C *memory = reinterpret_cast<C*>(team.memory), *weights = memory + at.first,
      *gradients = memory + at.second;
    PerThread<KeyRow<C>> rows;
    team.each([&](uint32_t t) { back.read_keys(t, kb, from, memory, at); });
    for (int64_t b = kb * p.group; b < (kb + 1) * p.group; ++b) {
      const int64_t mask_begin = tiles.start(p.mask, b, 1);
      for (int64_t first = p.causal ? from : 0; first < p.queries; first += kTile) {
        team.each([&](uint32_t t) { back.read_queries(t, b, first, memory, at); });
        team.each(
            [&](uint32_t t) { back.flow(t, memory, at, b, mask_begin, first, from, weights, gradients); });
        team.each(rows, [&](uint32_t t, KeyRow<C>& mine) {
          const uint32_t key = t / kSharers, sharer = t % kSharers;
          back.accumulate(mine.key, gradients + key, kScoreRow, memory + at.query + sharer, at.width_row,
                          p.width);
          back.accumulate(mine.value, weights + key, kScoreRow, memory + at.grad + sharer, at.value_row,
                          p.value_width);
        });
      }
    }
    team.each(rows, [&](uint32_t t, KeyRow<C>& mine) {
      const int64_t row = from + t / kSharers;
      if (row >= p.keys) return;
      for (C& x : mine.key) x *= static_cast<C>(p.scale);
      const DeviceAttentionGradients& g = back.g;
      tiles.write(g.key, tiles.start(g.key, kb, p.group), row, t % kSharers, p.width, mine.key);
      tiles.write(g.value, tiles.start(g.value, kb, p.group), row, t % kSharers, p.value_width, mine.value);
    });
  }
};

size_t memory_of(const DeviceAttention& p, bool backward) {
  const size_t element = p.dtype == DType::Float64 ? 8 : 4;
  return static_cast<size_t>(Layout(p.width, p.value_width, backward).total) * element;
}

bool fits(const DeviceAttention& p) {
  constexpr size_t kMost = size_t{96}
                           << 10;  // what a block may have on every device since compute capability 8
  const bool known = p.dtype == DType::Float32 || p.dtype == DType::Float64 || p.dtype == DType::Float16 ||
                     p.dtype == DType::BFloat16;
  return known && p.width <= kMostWidth && p.value_width <= kMostWidth && memory_of(p, true) <= kMost;
}

}  // namespace

bool attention(int device, const DeviceAttention& plan) {
  if (!fits(plan)) return false;
  visit_floating(plan.dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    if constexpr (is_stored_half<S>) {
      if (!attention_hopper(device, plan) && !attention_flash(device, plan))
        attention_of_halves(device, plan);
    } else {
      if (attention_of_floats(device, plan)) return;
      const Tiles<S> tiles{plan};
      for_each_team({device, "attention"}, plan.batch() * tiles.query_tiles(), memory_of(plan, false),
                    Forward<S>{tiles});
    }
  });
  return true;
}

bool attention_backward(int device, const DeviceAttention& plan, const DeviceAttentionGradients& gradients) {
  if (!fits(plan)) return false;
  visit_floating(plan.dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    using C = ComputeOf<S>;
    if constexpr (is_stored_half<S>)
      if (attention_hopper_backward(device, plan, gradients)) return;
    const Tiles<S> tiles{plan};
    const int64_t lines = plan.batch() * plan.queries;
    const Workspace memory(static_cast<size_t>(lines) * sizeof(C), device);
    auto* along = static_cast<C*>(memory.data());
    const Launch at{device, "attention_backward"};
    for_each_warp(at, lines, Along<S>{tiles, gradients.grad_out, along});
    if constexpr (is_stored_half<S>) {
      if (!attention_flash_backward(device, plan, gradients, along))
        attention_backward_of_halves(device, plan, gradients, along);
    } else {
      if constexpr (std::is_same_v<S, float>)
        if (attention_backward_of_floats(device, plan, gradients, along)) return;
      const Backward<S> back{tiles, gradients, along};
      const size_t bytes = memory_of(plan, true);
      for_each_team(at, plan.batch() * tiles.query_tiles(), bytes, QueryGradient<S>{back});
      for_each_team(at, plan.batch() / plan.group * tiles.key_tiles(), bytes, KeyGradient<S>{back});
    }
  });
  return true;
}

}  // namespace rushlight::cuda
