// Attention of float32 without dropout: tiles of queries by 64 keys, of whose products a thread sums 4
// columns of several rows in registers. What it does not take goes to attention.cu.
#include "cuda/attention_plan.h"
#include "cuda/channels.h"

namespace rushlight::cuda {
namespace {

using Operand = DeviceAttention::Operand;

constexpr int kColumns = 64, kAcross = 16, kDown = static_cast<int>(kTeamThreads) / kAcross;
constexpr int kWeightRow = kColumns + 4;  // packs of a column lie in different banks
constexpr int kPack = 4;

struct alignas(16) Pack {
  float at[kPack];
};
RL_BOTH inline Pack pack_at(const float* p) { return *reinterpret_cast<const Pack*>(p); }

// Tiles of `rows` rows by 64 columns; `width`: the most that a query has.
template <int width, int rows>
struct FloatTiles : AttentionPlan {
  bool packed;  // rows of all operands begin at multiples of 16 bytes

  static constexpr int kRow = width + kPack, kEach = rows / kDown, kOwn = width / kAcross;
  static constexpr int kRowsSize = rows * kRow, kColumnsSize = kColumns * kRow, kScores = rows * kWeightRow;
  // A thread has rows t / 16 + 16 i; of products columns t % 16 + 16 j, of results 4 (t % 16) + 64 j.
  using Products = float[kEach][kColumns / kAcross];
  using Results = float[kEach][kOwn];

  // Rows [first, first + count) of a matrix into a tile, zeros beyond its rows and columns.
  template <int count>
  RL_BOTH void read(uint32_t t, const Operand& o, int64_t begin, int64_t first, int64_t there,
                    float* tile) const {
    constexpr int kPacks = width / kPack;
    RL_UNROLL for (int n = 0; n < count * kPacks / static_cast<int>(kTeamThreads); ++n) {
      const int i = static_cast<int>(t) + n * static_cast<int>(kTeamThreads), row = i / kPacks,
                column = i % kPacks * kPack;
      Pack pack{};
      if (first + row < there && column < p.width) {
        const float* from = static_cast<const float*>(o.data) + begin + (first + row) * o.row + column;
        if (packed)
          pack = pack_at(from);
        else
          for (int k = 0; k < kPack; ++k)
            if (column + k < p.width) pack.at[k] = from[k];
      }
      *reinterpret_cast<Pack*>(tile + row * kRow + column) = pack;
    }
  }
  // A thread's results to a matrix, each row i times by(i).
  template <class By>
  RL_BOTH void write(uint32_t t, const Operand& o, int64_t begin, int64_t first, int64_t there,
                     const Results& own, By&& by) const {
    RL_UNROLL for (int i = 0; i < kEach; ++i) {
      const int row = static_cast<int>(t) / kAcross + i * kDown;
      if (first + row >= there) continue;
      const float factor = by(i);
      RL_UNROLL for (int j = 0; j < kOwn; j += kPack) {
        const int column = j * kAcross + static_cast<int>(t) % kAcross * kPack;
        float* to = static_cast<float*>(o.data) + begin + (first + row) * o.row + column;
        Pack pack;
        RL_UNROLL for (int k = 0; k < kPack; ++k) pack.at[k] = own[i][j + k] * factor;
        if (packed && column < p.width)
          *reinterpret_cast<Pack*>(to) = pack;
        else
          for (int k = 0; k < kPack; ++k)
            if (column + k < p.width) to[k] = pack.at[k];
      }
    }
  }
  // Products of rows of two tiles.
  RL_BOTH void multiply(uint32_t t, const float* of_rows, const float* of_columns, Products& sums) const {
    const float *a = of_rows + static_cast<int>(t) / kAcross * kRow,
                *b = of_columns + static_cast<int>(t) % kAcross * kRow;
    RL_UNROLL for (int i = 0; i < kEach; ++i) RL_UNROLL for (int j = 0; j < kColumns / kAcross; ++j)
        sums[i][j] = 0;
    const int end = static_cast<int>(p.width);
    for (int d = 0; d < end; d += kPack) {
      Pack right[kColumns / kAcross];
      RL_UNROLL for (int j = 0; j < kColumns / kAcross; ++j) right[j] = pack_at(b + j * kAcross * kRow + d);
      RL_UNROLL for (int i = 0; i < kEach; ++i) {
        const Pack left = pack_at(a + i * kDown * kRow + d);
        RL_UNROLL for (int j = 0; j < kColumns / kAcross; ++j) RL_UNROLL for (int k = 0; k < kPack; ++k)
            sums[i][j] += left.at[k] * right[j].at[k];
      }
    }
  }
  // own += weights times the rows of a tile.
  RL_BOTH void add(uint32_t t, const float* weights, const float* tile, Results& own) const {
    const float *w = weights + static_cast<int>(t) / kAcross * kWeightRow,
                *v = tile + static_cast<int>(t) % kAcross * kPack;
    for (int k = 0; k < kColumns; k += kPack) {
      Pack right[kPack][kOwn / kPack];
      RL_UNROLL for (int q = 0; q < kPack; ++q) RL_UNROLL for (int c = 0; c < kOwn / kPack; ++c) right[q][c] =
          pack_at(v + (k + q) * kRow + c * kAcross * kPack);
      RL_UNROLL for (int i = 0; i < kEach; ++i) {
        const Pack left = pack_at(w + i * kDown * kWeightRow + k);
        RL_UNROLL for (int q = 0; q < kPack; ++q) RL_UNROLL for (int c = 0; c < kOwn; ++c) own[i][c] +=
            left.at[q] * right[q][c / kPack].at[c % kPack];
      }
    }
  }
  // Whether some query and key of a tile must not meet.
  RL_BOTH bool at_edge(int64_t query, int queries, int64_t key, int keys) const {
    return query + queries > p.queries || key + keys > p.keys || (p.causal && key + keys > query + 1);
  }
};

template <int width, int rows>
struct FloatForward {
  using Tiles = FloatTiles<width, rows>;
  Tiles tiles;
  static constexpr int kSharers = static_cast<int>(kTeamThreads) / rows;  // of a row of scores
  static constexpr int kKey = Tiles::kRowsSize, kValue = kKey + Tiles::kColumnsSize,
                       kScores = kValue + Tiles::kColumnsSize, kOfSharers = kScores + Tiles::kScores,
                       kFactors = kOfSharers + static_cast<int>(kTeamThreads), kEnd = kFactors + rows;

  struct Mine {
    typename Tiles::Results own = {};
    float largest = -INFINITY, sum = 0;  // of this sharer's keys
  };

  RL_BOTH void operator()(const Team& team) const {
    const DeviceAttention& p = tiles.p;
    const int64_t per = (p.queries + rows - 1) / rows, b = team.index / per,
                  first = (per - 1 - (team.index - b * per)) * rows;  // causal rows with most keys first
    float *query = reinterpret_cast<float*>(team.memory), *key = query + kKey, *value = query + kValue,
          *scores = query + kScores, *of_sharers = query + kOfSharers, *factors = query + kFactors;
    const int64_t key_begin = tiles.start(p.key, b / p.group, p.group),
                  value_begin = tiles.start(p.value, b / p.group, p.group),
                  mask_begin = tiles.start(p.mask, b, 1);
    PerThread<Mine> threads;
    team.each([&](uint32_t t) {
      tiles.template read<rows>(t, p.query, tiles.start(p.query, b, 1), first, p.queries, query);
    });
    for (int64_t from = 0, end = tiles.last_key(first, rows); from < end; from += kColumns) {
      team.each([&](uint32_t t) {
        tiles.template read<kColumns>(t, p.key, key_begin, from, p.keys, key);
        tiles.template read<kColumns>(t, p.value, value_begin, from, p.keys, value);
      });
      team.each([&](uint32_t t) {
        typename Tiles::Products sums;
        tiles.multiply(t, query, key, sums);
        put_scores(t, sums, mask_begin, first, from, scores);
      });
      team.each([&](uint32_t t) { of_sharers[t] = largest_of(scores, t); });
      team.each(threads, [&](uint32_t t, Mine& mine) { weigh(t, mine, of_sharers, scores, factors); });
      team.each(threads, [&](uint32_t t, Mine& mine) {
        RL_UNROLL for (int i = 0; i < Tiles::kEach; ++i) {
          const float factor = factors[static_cast<int>(t) / kAcross + i * kDown];
          RL_UNROLL for (int c = 0; c < Tiles::kOwn; ++c) mine.own[i][c] *= factor;
        }
        tiles.add(t, scores, value, mine.own);
      });
    }
    team.each(threads, [&](uint32_t t, Mine& mine) { of_sharers[t] = mine.sum; });
    team.each(threads, [&](uint32_t t, Mine& mine) {
      const int row = static_cast<int>(t) / kSharers;
      if (static_cast<int>(t) % kSharers) return;
      float sum = 0;
      for (int i = 0; i < kSharers; ++i) sum += of_sharers[static_cast<int>(t) + i];
      factors[row] = sum == 0 ? 0.0f : 1 / sum;  // who looks at nothing gets zeros
      if (first + row < p.queries && p.logsumexp)
        static_cast<float*>(p.logsumexp)[b * p.queries + first + row] =
            sum == 0 ? -INFINITY : mine.largest + std::log(sum);
    });
    team.each(threads, [&](uint32_t t, Mine& mine) {
      tiles.write(t, p.out, tiles.start(p.out, b, 1), first, p.queries, mine.own,
                  [&](int i) { return factors[static_cast<int>(t) / kAcross + i * kDown]; });
    });
  }

  RL_BOTH void put_scores(uint32_t t, const typename Tiles::Products& sums, int64_t mask_begin, int64_t first,
                          int64_t from, float* scores) const {
    const bool edge = tiles.at_edge(first, rows, from, kColumns);
    RL_UNROLL for (int i = 0; i < Tiles::kEach; ++i) RL_UNROLL for (int j = 0; j < kColumns / kAcross; ++j) {
      const int row = static_cast<int>(t) / kAcross + i * kDown,
                column = static_cast<int>(t) % kAcross + j * kAcross;
      scores[row * kWeightRow + column] =
          edge && tiles.hidden(first + row, from + column)
              ? -INFINITY
              : tiles.score(sums[i][j], mask_begin, first + row, from + column);
    }
  }
  // Thread t has packs t % kSharers + i kSharers of row t / kSharers.
  RL_BOTH static float* pack_of(float* scores, uint32_t t, int i) {
    return scores + static_cast<int>(t) / kSharers * kWeightRow +
           (static_cast<int>(t) % kSharers + i * kSharers) * kPack;
  }
  static constexpr int kPacksEach = kColumns / kPack / kSharers;
  RL_BOTH static float largest_of(float* scores, uint32_t t) {
    float largest = -INFINITY;
    RL_UNROLL for (int i = 0; i < kPacksEach; ++i) {
      const Pack x = pack_at(pack_of(scores, t, i));
      RL_UNROLL for (int k = 0; k < kPack; ++k) largest =
          x.at[k] > largest || x.at[k] != x.at[k] ? x.at[k] : largest;  // NaN stays
    }
    return largest;
  }
  RL_BOTH static void weigh(uint32_t t, Mine& mine, const float* of_sharers, float* scores, float* factors) {
    const int row = static_cast<int>(t) / kSharers;
    float largest = mine.largest;
    RL_UNROLL for (int i = 0; i < kSharers; ++i) {
      const float x = of_sharers[row * kSharers + i];
      largest = x > largest || x != x ? x : largest;
    }
    const float shrink = largest == mine.largest ? 1.0f : std::exp(mine.largest - largest);
    mine.largest = largest;
    float sum = mine.sum * shrink;
    if (static_cast<int>(t) % kSharers == 0) factors[row] = shrink;
    RL_UNROLL for (int i = 0; i < kPacksEach; ++i) {
      float* at = pack_of(scores, t, i);
      Pack x = pack_at(at);
      RL_UNROLL for (int k = 0; k < kPack; ++k) {
        x.at[k] = x.at[k] == -INFINITY ? 0.0f : std::exp(x.at[k] - largest);
        sum += x.at[k];
      }
      *reinterpret_cast<Pack*>(at) = x;
    }
    mine.sum = sum;
  }
};

// Gradients of rows of queries over tiles of keys, or of keys and values over tiles of queries.
template <int width, bool of_keys>
struct FloatBackward {
  static constexpr int kRows = 64;
  using Tiles = FloatTiles<width, kRows>;
  Tiles tiles;
  DeviceAttentionGradients g;
  const float* along;  // of each query, what softmax's gradient subtracts

  static constexpr int kSecond = Tiles::kRowsSize, kFirstColumns = 2 * Tiles::kRowsSize,
                       kSecondColumns = kFirstColumns + Tiles::kColumnsSize,
                       kGradients = kSecondColumns + Tiles::kColumnsSize,
                       kWeights = kGradients + Tiles::kScores,
                       kEnd = of_keys ? kWeights + Tiles::kScores : kWeights;

  struct Mine {
    typename Tiles::Results first = {};
    typename Tiles::Results second = {};
  };

  RL_BOTH void operator()(const Team& team) const {
    const DeviceAttention& p = tiles.p;
    const int64_t there = of_keys ? p.keys : p.queries, per = (there + kRows - 1) / kRows,
                  m = team.index / per, turn = team.index - m * per,
                  at = (of_keys ? turn : per - 1 - turn) * kRows;
    float* memory = reinterpret_cast<float*>(team.memory);
    PerThread<Mine> threads;
    team.each([&](uint32_t t) {
      if constexpr (of_keys)
        read_keys(t, m, at, memory, memory + kSecond);
      else
        read_queries(t, m, at, memory, memory + kSecond);
    });
    if constexpr (of_keys) {
      const int64_t begin = p.causal ? at / kColumns * kColumns : 0;
      for (int64_t b = m * p.group; b < (m + 1) * p.group; ++b)
        for (int64_t from = begin; from < p.queries; from += kColumns)
          step(team, threads, b, from, at, [&](uint32_t t) {
            read_queries(t, b, from, memory + kFirstColumns, memory + kSecondColumns);
          });
    } else {
      for (int64_t from = 0, end = tiles.last_key(at, kRows); from < end; from += kColumns)
        step(team, threads, m, at, from, [&](uint32_t t) {
          read_keys(t, m / p.group, from, memory + kFirstColumns, memory + kSecondColumns);
        });
    }
    const Operand& to = of_keys ? g.key : g.query;
    const int64_t shared = of_keys ? p.group : 1;
    team.each(threads, [&](uint32_t t, Mine& mine) {
      tiles.write(t, to, tiles.start(to, m, shared), at, there, mine.first,
                  [&](int) { return static_cast<float>(p.scale); });
      if constexpr (of_keys)
        tiles.write(t, g.value, tiles.start(g.value, m, shared), at, there, mine.second,
                    [](int) { return 1.0f; });
    });
  }

  RL_BOTH void read_queries(uint32_t t, int64_t b, int64_t first, float* to, float* second) const {
    const DeviceAttention& p = tiles.p;
    tiles.template read<kRows>(t, p.query, tiles.start(p.query, b, 1), first, p.queries, to);
    tiles.template read<kRows>(t, g.grad_out, tiles.start(g.grad_out, b, 1), first, p.queries, second);
  }
  RL_BOTH void read_keys(uint32_t t, int64_t kb, int64_t from, float* to, float* second) const {
    const DeviceAttention& p = tiles.p;
    tiles.template read<kRows>(t, p.key, tiles.start(p.key, kb, p.group), from, p.keys, to);
    tiles.template read<kRows>(t, p.value, tiles.start(p.value, kb, p.group), from, p.keys, second);
  }
  // One tile of scores: queries from `query` on, keys from `key` on.
  template <class Read>
  RL_BOTH void step(const Team& team, PerThread<Mine>& threads, int64_t b, int64_t query, int64_t key,
                    Read&& read) const {
    float *memory = reinterpret_cast<float*>(team.memory), *gradients = memory + kGradients,
          *weights = memory + kWeights;
    const int64_t mask_begin = tiles.start(tiles.p.mask, b, 1);
    team.each(read);
    team.each([&](uint32_t t) {
      typename Tiles::Products s, flow;
      tiles.multiply(t, memory, memory + kFirstColumns, s);
      tiles.multiply(t, memory + kSecond, memory + kSecondColumns, flow);
      put(t, s, flow, b, mask_begin, query, key, weights, gradients);
    });
    if constexpr (!of_keys)
      if (g.mask.data)
        team.each([&](uint32_t t) {
          put_mask_gradient<kRows, kColumns>(t, tiles.p, g, tiles.start(g.mask, b, 1), query, key, gradients,
                                             kWeightRow);
        });
    team.each(threads, [&](uint32_t t, Mine& mine) {
      tiles.add(t, gradients, memory + kFirstColumns, mine.first);
      if constexpr (of_keys) tiles.add(t, weights, memory + kSecondColumns, mine.second);
    });
  }
  RL_BOTH void put(uint32_t t, const typename Tiles::Products& s, const typename Tiles::Products& flow,
                   int64_t b, int64_t mask_begin, int64_t query, int64_t key, float* weights,
                   float* gradients) const {
    const DeviceAttention& p = tiles.p;
    const bool edge = tiles.at_edge(query, kRows, key, kColumns);
    RL_UNROLL for (int i = 0; i < Tiles::kEach; ++i) RL_UNROLL for (int j = 0; j < kColumns / kAcross; ++j) {
      const int row = static_cast<int>(t) / kAcross + i * kDown,
                column = static_cast<int>(t) % kAcross + j * kAcross;
      const int64_t q = query + (of_keys ? column : row), k = key + (of_keys ? row : column);
      float weight = 0, gradient = 0;
      if (!(edge && tiles.hidden(q, k))) {
        const float score = tiles.score(s[i][j], mask_begin, q, k);
        if (score != -INFINITY) {
          const int64_t line = b * p.queries + q;
          weight = std::exp(score - static_cast<const float*>(p.logsumexp)[line]);
          gradient = weight * (flow[i][j] - along[line]);
        }
      }
      if constexpr (of_keys) weights[row * kWeightRow + column] = weight;
      gradients[row * kWeightRow + column] = gradient;
    }
  }
};

bool in_packs(const DeviceAttention& p, const Operand& o) {
  bool good = reinterpret_cast<uintptr_t>(o.data) % 16 == 0 && o.row % kPack == 0;
  for (int d = 0; d < p.lead_rank; ++d) good &= o.strides[d] % kPack == 0;
  return good;
}
bool in_packs(const DeviceAttention& p) {
  return p.width % kPack == 0 && in_packs(p, p.query) && in_packs(p, p.key) && in_packs(p, p.value) &&
         in_packs(p, p.out);
}

bool fits(int device, const DeviceAttention& p, int elements) {
  return p.dtype == DType::Float32 && p.dropout.p == 0 && p.width == p.value_width && p.width <= 128 &&
         p.width > 0 && static_cast<size_t>(elements) * sizeof(float) <= most_team_memory(device);
}

int64_t tiles_of(int64_t rows, int tile) { return (rows + tile - 1) / tile; }

template <int width, int rows>
bool forward(int device, const DeviceAttention& p) {
  using Kernel = FloatForward<width, rows>;
  if (!fits(device, p, Kernel::kEnd)) return false;
  for_each_team({device, "attention"}, p.batch() * tiles_of(p.queries, rows), Kernel::kEnd * sizeof(float),
                Kernel{{{p}, in_packs(p)}});
  return true;
}

template <int width>
bool backward(int device, const DeviceAttention& p, const DeviceAttentionGradients& g, const float* along) {
  using Queries = FloatBackward<width, false>;
  using Keys = FloatBackward<width, true>;
  if (!fits(device, p, Keys::kEnd)) return false;
  const bool packed = in_packs(p) && in_packs(p, g.grad_out) && in_packs(p, g.query) && in_packs(p, g.key) &&
                      in_packs(p, g.value);
  const Launch at{device, "attention_backward"};
  for_each_team(at, p.batch() * tiles_of(p.queries, Queries::kRows), Queries::kEnd * sizeof(float),
                Queries{{{p}, packed}, g, along});
  for_each_team(at, p.batch() / p.group * tiles_of(p.keys, Keys::kRows), Keys::kEnd * sizeof(float),
                Keys{{{p}, packed}, g, along});
  return true;
}

}  // namespace

bool attention_of_floats(int device, const DeviceAttention& plan) {
  if (attention_in_tf32(device, plan)) return true;
  return plan.width <= 64 ? forward<64, 128>(device, plan) : forward<128, 64>(device, plan);
}
bool attention_backward_of_floats(int device, const DeviceAttention& plan,
                                  const DeviceAttentionGradients& gradients, const float* along) {
  if (attention_backward_in_tf32(device, plan, gradients, along)) return true;
  return plan.width <= 64 ? backward<64>(device, plan, gradients, along)
                          : backward<128>(device, plan, gradients, along);
}

}  // namespace rushlight::cuda
