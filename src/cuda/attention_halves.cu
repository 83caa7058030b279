// Attention of halves on tensor cores, in tiles of 64 queries by 64 keys (32 where rows are wide). The sums
// of a tile stay with the warps that compute them; scores and weights pass through the team's memory (Dao,
// "FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning", 2023). Four threads
// share a row of scores.
#include "cuda/attention_plan.h"
#include "cuda/channels.h"
#include "cuda/layers.h"
#include "cuda/matrix.h"

namespace rushlight::cuda {
namespace {

using Operand = DeviceAttention::Operand;

constexpr int kQueries = 64, kSharers = 4;
static_assert(kQueries * kSharers == kTeamThreads);

// Part of a team's memory, in bytes; the next one may begin at its end.
struct Region {
  size_t begin, end;
  constexpr Region(size_t from, size_t bytes)
      : begin(from), end((from + bytes + kTeamAlignment - 1) / kTeamAlignment * kTeamAlignment) {}
};

template <class T>
RL_DEVICE T* in(const Team& team, size_t begin) {
  return reinterpret_cast<T*>(team.memory + begin);
}

// S: in memory; rows of queries, keys and values are filled with zeros up to `width`. Rows are longer by 16
// bytes than what they hold, so that they lie in different banks.
template <class S, int width>
struct HalfTiles : AttentionPlan {
  static constexpr int kKeys = width <= 64 ? 64 : 32;
  static constexpr int kRow = width + 8, kScoreRow = kKeys + 4, kWeightRow = kKeys + 8, kSumRow = width + 4;
  static constexpr int kOwn = kKeys / kSharers;
  static constexpr size_t kQueryBytes = kQueries * kRow * sizeof(S), kKeyBytes = kKeys * kRow * sizeof(S);
  static constexpr size_t kScoreBytes = kQueries * kScoreRow * sizeof(float),
                          kWeightBytes = kQueries * kWeightRow * sizeof(S);

  RL_BOTH int64_t query_tiles() const { return (p.queries + kQueries - 1) / kQueries; }
  RL_BOTH int64_t key_tiles() const { return (p.keys + kKeys - 1) / kKeys; }

  // Rows [first, first + tile_rows) of a matrix into a tile.
  template <int tile_rows>
  RL_DEVICE void read(uint32_t thread, const Operand& o, int64_t begin, int64_t first, int64_t rows,
                      int64_t columns, S* tile) const {
    constexpr int kPack = 16 / sizeof(S), kPacks = width / kPack;
    struct alignas(16) Pack {
      S item[kPack];
    };
    const S* from = static_cast<const S*>(o.data) + begin + first * o.row;
    const bool aligned = reinterpret_cast<uintptr_t>(from) % 16 == 0 && o.row % kPack == 0;
    for (int i = static_cast<int>(thread); i < tile_rows * kPacks; i += kTeamThreads) {
      const int row = i / kPacks, column = i % kPacks * kPack;
      Pack pack;
      if (aligned && first + row < rows && column + kPack <= columns) {
        pack = *reinterpret_cast<const Pack*>(from + row * o.row + column);
      } else {
        for (int k = 0; k < kPack; ++k)
          pack.item[k] =
              first + row < rows && column + k < columns ? from[row * o.row + column + k] : number<S>(0.0f);
      }
      *reinterpret_cast<Pack*>(tile + row * kRow + column) = pack;
    }
  }
  // Rows of sums, kSumRow apart, to a matrix.
  template <int tile_rows>
  RL_DEVICE void write(uint32_t thread, const Operand& o, int64_t begin, int64_t first, int64_t rows,
                       int64_t columns, const float* sums) const {
    S* to = static_cast<S*>(o.data) + begin + first * o.row;
    for (int i = static_cast<int>(thread); i < tile_rows * width; i += kTeamThreads) {
      const int row = i / width, column = i % width;
      if (first + row < rows && column < columns)
        to[row * o.row + column] = number<S>(sums[row * kSumRow + column]);
    }
  }

  // scores = left * right^T, for rows of queries and of keys.
  RL_DEVICE static void products(uint32_t warp, const S* left, const S* right, float* scores) {
    WarpParts<kQueries, kKeys>::each(warp, [&](int, int row, int column) {
      MatrixSum sum;
      sum.clear();
      for (int k = 0; k < width; k += kMatrix)
        sum.template add_product<Order::Rows, Order::Columns>(left + row * kRow + k, kRow,
                                                              right + column * kRow + k, kRow);
      sum.write(scores + row * kScoreRow + column, kScoreRow);
    });
  }
};

RL_DEVICE inline float exp_of(float x) {
#ifdef __CUDA_ARCH__
  return __expf(x);  // a few units in the last place of float, which halves do not see
#else
  return std::exp(x);
#endif
}

// What a thread keeps of its row.
struct HalfRow {
  float largest = -INFINITY, sum = 0;
};
template <int count>
struct Sums {
  MatrixSum part[count];
};

template <class S, int width>
struct ForwardOfHalves {
  using Tiles = HalfTiles<S, width>;
  using Parts = WarpParts<kQueries, width>;
  Tiles tiles;

  static constexpr Region kQuery{0, Tiles::kQueryBytes};
  static constexpr Region kKey{kQuery.end, Tiles::kKeyBytes}, kValue{kKey.end, Tiles::kKeyBytes};
  static constexpr Region kScores{kValue.end, Tiles::kScoreBytes}, kWeights{kScores.end, Tiles::kWeightBytes};
  static constexpr Region kOfSharers{kWeights.end, kQueries * kSharers * sizeof(float)};
  static constexpr Region kFactors{kOfSharers.end, kQueries * sizeof(float)};
  static constexpr Region kRowNumbers{kFactors.end, kMatrix * kMatrix * sizeof(float)};
  static constexpr size_t kBytes = kRowNumbers.end;
  static_assert(kQueries * Tiles::kSumRow * sizeof(float) <= kScores.end);  // where results wait

  struct Warp : Sums<Parts::kCount> {
    MatrixSum rows;  // the number of each element's row
  };

  RL_DEVICE void operator()(const Team& team) const {
    const DeviceAttention& p = tiles.p;
    const int64_t per = tiles.query_tiles(), b = team.index / per, first = (team.index - b * per) * kQueries;
    S *query = in<S>(team, kQuery.begin), *key = in<S>(team, kKey.begin), *value = in<S>(team, kValue.begin),
      *weights = in<S>(team, kWeights.begin);
    float *scores = in<float>(team, kScores.begin), *of_sharers = in<float>(team, kOfSharers.begin),
          *factors = in<float>(team, kFactors.begin), *row_numbers = in<float>(team, kRowNumbers.begin);
    const int64_t key_begin = tiles.start(p.key, b / p.group, p.group),
                  value_begin = tiles.start(p.value, b / p.group, p.group),
                  mask_begin = tiles.start(p.mask, b, 1);
    PerThread<HalfRow> rows;
    PerWarp<Warp> warps;
    team.each(rows, [&](uint32_t t, HalfRow& mine) {
      mine = HalfRow();
      row_numbers[t] = static_cast<float>(t / kMatrix);
      tiles.template read<kQueries>(t, p.query, tiles.start(p.query, b, 1), first, p.queries, p.width, query);
    });
    team.each_warp(warps, [&](uint32_t, Warp& mine) {
      mine.rows.read(row_numbers, kMatrix);
      for (MatrixSum& sum : mine.part) sum.clear();
    });
    for (int64_t from = 0, end = tiles.last_key(first, kQueries); from < end; from += Tiles::kKeys) {
      team.each([&](uint32_t t) {
        tiles.template read<Tiles::kKeys>(t, p.key, key_begin, from, p.keys, p.width, key);
        tiles.template read<Tiles::kKeys>(t, p.value, value_begin, from, p.keys, p.value_width, value);
      });
      team.each_warp([&](uint32_t warp) { tiles.products(warp, query, key, scores); });
      team.each(
          [&](uint32_t t) { of_sharers[t] = look(scores, mask_begin, first, from, static_cast<int>(t)); });
      team.each(rows, [&](uint32_t t, HalfRow& mine) {
        weigh(mine, static_cast<int>(t), b, first, from, scores, of_sharers, weights, factors);
      });
      team.each_warp(warps, [&](uint32_t warp, Warp& mine) {
        Parts::each(warp, [&](int i, int row, int column) {
          MatrixSum& sum = mine.part[i];
          sum.scale_rows(mine.rows, factors + row);
          for (int k = 0; k < Tiles::kKeys; k += kMatrix)
            sum.template add_product<Order::Rows, Order::Rows>(weights + row * Tiles::kWeightRow + k,
                                                               Tiles::kWeightRow,
                                                               value + k * Tiles::kRow + column, Tiles::kRow);
        });
      });
    }
    finish(team, b, first, rows, warps);
  }

  // Turns products into scores; the largest one of those that thread t has.
  RL_DEVICE float look(float* scores, int64_t mask_begin, int64_t first, int64_t from, int t) const {
    const int row = t / kSharers;
    float largest = -INFINITY;
    for (int i = 0; i < Tiles::kOwn; ++i) {
      const int j = t % kSharers + i * kSharers;
      float& x = scores[row * Tiles::kScoreRow + j];
      x = tiles.hidden(first + row, from + j) ? -INFINITY : tiles.score(x, mask_begin, first + row, from + j);
      largest = x > largest || x != x ? x : largest;  // NaN stays
    }
    return largest;
  }
  RL_DEVICE void weigh(HalfRow& mine, int t, int64_t b, int64_t first, int64_t from, const float* scores,
                       const float* of_sharers, S* weights, float* factors) const {
    const int row = t / kSharers;
    float largest = mine.largest;
    for (int i = 0; i < kSharers; ++i) {
      const float x = of_sharers[row * kSharers + i];
      largest = x > largest || x != x ? x : largest;
    }
    const float shrink = largest == mine.largest ? 1.0f : exp_of(mine.largest - largest);
    mine.largest = largest, mine.sum *= shrink;
    if (t % kSharers == 0) factors[row] = shrink;
    tiles.template for_own<Tiles::kKeys, kSharers>(t % kSharers, b, first + row, from, [&](int j, bool kept) {
      const float x = scores[row * Tiles::kScoreRow + j],
                  weight = x == -INFINITY ? 0.0f : exp_of(x - largest);
      mine.sum += weight;
      weights[row * Tiles::kWeightRow + j] = number<S>(kept ? weight : 0.0f);
    });
  }
  RL_DEVICE void finish(const Team& team, int64_t b, int64_t first, PerThread<HalfRow>& rows,
                        PerWarp<Warp>& warps) const {
    const DeviceAttention& p = tiles.p;
    float *of_sharers = in<float>(team, kOfSharers.begin), *factors = in<float>(team, kFactors.begin),
          *sums = reinterpret_cast<float*>(team.memory);
    team.each(rows, [&](uint32_t t, HalfRow& mine) { of_sharers[t] = mine.sum; });
    team.each(rows, [&](uint32_t t, HalfRow& mine) {
      if (t % kSharers) return;
      float sum = 0;
      for (uint32_t i = 0; i < kSharers; ++i) sum += of_sharers[t + i];
      factors[t / kSharers] =
          sum == 0 ? 0.0f : tiles.template growth<float>() / sum;  // who looks at nothing gets zeros
      const int64_t query = first + t / kSharers;
      if (query < p.queries && p.logsumexp)
        static_cast<float*>(p.logsumexp)[b * p.queries + query] =
            sum == 0 ? -INFINITY : mine.largest + std::log(sum);
    });
    team.each_warp(warps, [&](uint32_t warp, Warp& mine) {
      Parts::each(warp, [&](int i, int row, int column) {
        mine.part[i].scale_rows(mine.rows, factors + row);
        mine.part[i].write(sums + row * Tiles::kSumRow + column, Tiles::kSumRow);
      });
    });
    team.each([&](uint32_t t) {
      tiles.template write<kQueries>(t, p.out, tiles.start(p.out, b, 1), first, p.queries, p.value_width,
                                     sums);
    });
  }
};

// What the gradients of queries and of keys both begin with.
template <class S, int width>
struct BackwardOfHalves {
  using Tiles = HalfTiles<S, width>;
  Tiles tiles;
  DeviceAttentionGradients g;
  const float* along;

  static constexpr Region kQuery{0, Tiles::kQueryBytes}, kGrad{kQuery.end, Tiles::kQueryBytes};
  static constexpr Region kKey{kGrad.end, Tiles::kKeyBytes}, kValue{kKey.end, Tiles::kKeyBytes};
  static constexpr Region kScores{kValue.end, Tiles::kScoreBytes}, kFlows{kScores.end, Tiles::kScoreBytes};
  static constexpr Region kGradients{kFlows.end, Tiles::kWeightBytes};
  static constexpr Region kWeights{kGradients.end, Tiles::kWeightBytes};       // of keys' gradients alone
  static_assert(kQueries * Tiles::kSumRow * sizeof(float) <= kGradients.end);  // where results wait

  RL_DEVICE void read_queries(const Team& team, uint32_t t, int64_t b, int64_t first) const {
    const DeviceAttention& p = tiles.p;
    tiles.template read<kQueries>(t, p.query, tiles.start(p.query, b, 1), first, p.queries, p.width,
                                  in<S>(team, kQuery.begin));
    tiles.template read<kQueries>(t, g.grad_out, tiles.start(g.grad_out, b, 1), first, p.queries,
                                  p.value_width, in<S>(team, kGrad.begin));
  }
  RL_DEVICE void read_keys(const Team& team, uint32_t t, int64_t kb, int64_t from) const {
    const DeviceAttention& p = tiles.p;
    tiles.template read<Tiles::kKeys>(t, p.key, tiles.start(p.key, kb, p.group), from, p.keys, p.width,
                                      in<S>(team, kKey.begin));
    tiles.template read<Tiles::kKeys>(t, p.value, tiles.start(p.value, kb, p.group), from, p.keys,
                                      p.value_width, in<S>(team, kValue.begin));
  }
  // Weights (unless null) and the scores' gradients of one tile.
  RL_DEVICE void flow(const Team& team, int64_t b, int64_t first, int64_t from, S* weights) const {
    const DeviceAttention& p = tiles.p;
    float *scores = in<float>(team, kScores.begin), *flows = in<float>(team, kFlows.begin);
    S* gradients = in<S>(team, kGradients.begin);
    const int64_t mask_begin = tiles.start(p.mask, b, 1);
    team.each_warp([&](uint32_t warp) {
      tiles.products(warp, in<S>(team, kQuery.begin), in<S>(team, kKey.begin), scores);
      tiles.products(warp, in<S>(team, kGrad.begin), in<S>(team, kValue.begin), flows);
    });
    team.each([&](uint32_t t) {
      const auto row = static_cast<int>(t) / kSharers;
      const int64_t query = first + row, line = b * p.queries + query;
      const float growth = tiles.template growth<float>();
      tiles.template for_own<Tiles::kKeys, kSharers>(
          static_cast<int>(t) % kSharers, b, query, from, [&](int j, bool kept) {
            const int at = row * Tiles::kScoreRow + j;
            float weight = 0, gradient = 0;
            const float score = tiles.hidden(query, from + j)
                                    ? -INFINITY
                                    : tiles.score(scores[at], mask_begin, query, from + j);
            if (score != -INFINITY) {
              weight = exp_of(score - static_cast<const float*>(p.logsumexp)[line]);
              gradient = weight * ((kept ? flows[at] * growth : 0.0f) - along[line]);
            }
            if (weights) weights[row * Tiles::kWeightRow + j] = number<S>(kept ? weight * growth : 0.0f);
            gradients[row * Tiles::kWeightRow + j] = number<S>(gradient * static_cast<float>(p.scale));
            if (g.mask.data) flows[at] = gradient;
          });
    });
  }
};

template <class S, int width>
struct QueryGradientOfHalves {
  using Back = BackwardOfHalves<S, width>;
  using Tiles = typename Back::Tiles;
  using Parts = WarpParts<kQueries, width>;
  Back back;
  static constexpr size_t kBytes = Back::kGradients.end;

  RL_DEVICE void operator()(const Team& team) const {
    const Tiles& tiles = back.tiles;
    const DeviceAttention& p = tiles.p;
    const int64_t per = tiles.query_tiles(), b = team.index / per, first = (team.index - b * per) * kQueries;
    const S *key = in<S>(team, Back::kKey.begin), *gradients = in<S>(team, Back::kGradients.begin);
    float* sums = reinterpret_cast<float*>(team.memory);
    PerWarp<Sums<Parts::kCount>> warps;
    team.each([&](uint32_t t) { back.read_queries(team, t, b, first); });
    team.each_warp(warps, [&](uint32_t, auto& mine) {
      for (MatrixSum& sum : mine.part) sum.clear();
    });
    for (int64_t from = 0, end = tiles.last_key(first, kQueries); from < end; from += Tiles::kKeys) {
      team.each([&](uint32_t t) { back.read_keys(team, t, b / p.group, from); });
      back.flow(team, b, first, from, nullptr);
      if (back.g.mask.data)
        team.each([&](uint32_t t) {
          put_mask_gradient<kQueries, Tiles::kKeys>(t, p, back.g, tiles.start(back.g.mask, b, 1), first, from,
                                                    in<float>(team, Back::kFlows.begin), Tiles::kScoreRow);
        });
      team.each_warp(warps, [&](uint32_t warp, auto& mine) {
        Parts::each(warp, [&](int i, int row, int column) {
          for (int k = 0; k < Tiles::kKeys; k += kMatrix)
            mine.part[i].template add_product<Order::Rows, Order::Rows>(
                gradients + row * Tiles::kWeightRow + k, Tiles::kWeightRow, key + k * Tiles::kRow + column,
                Tiles::kRow);
        });
      });
    }
    team.each_warp(warps, [&](uint32_t warp, auto& mine) {
      Parts::each(warp, [&](int i, int row, int column) {
        mine.part[i].write(sums + row * Tiles::kSumRow + column, Tiles::kSumRow);
      });
    });
    team.each([&](uint32_t t) {
      tiles.template write<kQueries>(t, back.g.query, tiles.start(back.g.query, b, 1), first, p.queries,
                                     p.width, sums);
    });
  }
};

template <class S, int width>
struct KeyGradientOfHalves {
  using Back = BackwardOfHalves<S, width>;
  using Tiles = typename Back::Tiles;
  using Parts = WarpParts<Tiles::kKeys, width>;
  Back back;
  static constexpr size_t kBytes = Back::kWeights.end;

  struct Warp {
    Sums<Parts::kCount> key, value;
  };

  RL_DEVICE void operator()(const Team& team) const {
    const Tiles& tiles = back.tiles;
    const DeviceAttention& p = tiles.p;
    const int64_t per = tiles.key_tiles(), kb = team.index / per,
                  from = (team.index - kb * per) * Tiles::kKeys;
    S* weights = in<S>(team, Back::kWeights.begin);
    const S *gradients = in<S>(team, Back::kGradients.begin), *query = in<S>(team, Back::kQuery.begin),
            *grad = in<S>(team, Back::kGrad.begin);
    PerWarp<Warp> warps;
    team.each([&](uint32_t t) { back.read_keys(team, t, kb, from); });
    team.each_warp(warps, [&](uint32_t, Warp& mine) {
      for (MatrixSum& sum : mine.key.part) sum.clear();
      for (MatrixSum& sum : mine.value.part) sum.clear();
    });
    for (int64_t b = kb * p.group; b < (kb + 1) * p.group; ++b) {
      for (int64_t first = p.causal ? from / kQueries * kQueries : 0; first < p.queries; first += kQueries) {
        team.each([&](uint32_t t) { back.read_queries(team, t, b, first); });
        back.flow(team, b, first, from, weights);
        team.each_warp(warps, [&](uint32_t warp, Warp& mine) {
          Parts::each(warp, [&](int i, int row, int column) {
            for (int k = 0; k < kQueries; k += kMatrix) {
              const int at = k * Tiles::kWeightRow + row, other = k * Tiles::kRow + column;
              mine.key.part[i].template add_product<Order::Columns, Order::Rows>(
                  gradients + at, Tiles::kWeightRow, query + other, Tiles::kRow);
              mine.value.part[i].template add_product<Order::Columns, Order::Rows>(
                  weights + at, Tiles::kWeightRow, grad + other, Tiles::kRow);
            }
          });
        });
      }
    }
    const DeviceAttentionGradients& g = back.g;
    put(team, warps, g.key, tiles.start(g.key, kb, p.group), from, p.width,
        [](Warp& w) { return w.key.part; });
    put(team, warps, g.value, tiles.start(g.value, kb, p.group), from, p.value_width,
        [](Warp& w) { return w.value.part; });
  }

  template <class Which>
  RL_DEVICE void put(const Team& team, PerWarp<Warp>& warps, const Operand& to, int64_t begin, int64_t from,
                     int64_t columns, Which which) const {
    float* sums = reinterpret_cast<float*>(team.memory);
    team.each_warp(warps, [&](uint32_t warp, Warp& mine) {
      Parts::each(warp, [&](int i, int row, int column) {
        which(mine)[i].write(sums + row * Tiles::kSumRow + column, Tiles::kSumRow);
      });
    });
    team.each([&](uint32_t t) {
      back.tiles.template write<Tiles::kKeys>(t, to, begin, from, back.tiles.p.keys, columns, sums);
    });
  }
};

constexpr int kNarrow = 64, kWide = 128;

// f(an element of memory, the width of tiles)
template <class F>
void visit(const DeviceAttention& p, F&& f) {
  visit_floating(p.dtype, [&](auto tag) {
    if constexpr (is_stored_half<typename decltype(tag)::type>) {
      if (p.width <= kNarrow && p.value_width <= kNarrow)
        f(tag, std::integral_constant<int, kNarrow>{});
      else
        f(tag, std::integral_constant<int, kWide>{});
    }
  });
}

}  // namespace

void attention_of_halves(int device, const DeviceAttention& plan) {
  visit(plan, [&](auto tag, auto width) {
    using Kernel = ForwardOfHalves<typename decltype(tag)::type, decltype(width)::value>;
    const Kernel kernel{{{plan}}};
    for_each_team({device, "attention"}, plan.batch() * kernel.tiles.query_tiles(), Kernel::kBytes, kernel);
  });
}

void attention_backward_of_halves(int device, const DeviceAttention& plan,
                                  const DeviceAttentionGradients& gradients, const float* along) {
  visit(plan, [&](auto tag, auto width) {
    using S = typename decltype(tag)::type;
    constexpr int kWidth = decltype(width)::value;
    const BackwardOfHalves<S, kWidth> back{{{plan}}, gradients, along};
    const Launch at{device, "attention_backward"};
    using Queries = QueryGradientOfHalves<S, kWidth>;
    using Keys = KeyGradientOfHalves<S, kWidth>;
    for_each_team(at, plan.batch() * back.tiles.query_tiles(), Queries::kBytes, Queries{back});
    for_each_team(at, plan.batch() / plan.group * back.tiles.key_tiles(), Keys::kBytes, Keys{back});
  });
}

}  // namespace rushlight::cuda
