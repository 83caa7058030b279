// Attention over keys and values in pages, for each instruction set. Keys lie as columns, so that a vector
// holds the scores of neighbouring positions. Each sum goes along one axis in order: nothing depends on what
// is computed beside it.
#include "cpu/paged_attention.h"

#include <limits>

#include "cpu/isa/exp_lanes_inl.h"

namespace rushlight::cpu::RL_ISA {
namespace {

using Floats = Lanes<float>::type;
constexpr int64_t kLanes = Lanes<float>::count;
constexpr int kVectors = 2, kQueries = 4;
constexpr int64_t kStep = kVectors * kLanes;
static_assert(kPageUnit % kStep == 0);
constexpr float kNever = -std::numeric_limits<float>::infinity();

template <class T>
[[gnu::always_inline]] inline Floats widened(const T* from, int64_t n = kLanes) {
  float lanes[kLanes];
  Floats v;
  read_lanes(from, n, lanes);
  __builtin_memcpy(&v, lanes, sizeof(v));
  return v;
}

// One query of a tile.
struct Query {
  const float* at;
  float* result;
  float* scores;       // by position
  int64_t begin, end;  // the positions that it sees
};

template <class T>
class Tile {
 public:
  Tile(const PagedAttention& p, const PagedTile& tile, float* scratch) : p_(p), head_(tile.key_head) {
    const int64_t groups = p.heads / p.key_heads;
    pages_ = p.pages + p.texts[tile.first] * p.most;
    for (int64_t i = 0; i < tile.count; ++i)
      for (int64_t g = 0; g < groups; ++g, scratch += p.reach) {
        const int64_t token = tile.first + i, end = p.positions[token] + 1;
        const int64_t row = (token * p.heads + head_ * groups + g) * p.width;
        const int64_t begin = p.window > 0 && end > p.window ? end - p.window : 0;
        with_query({p.query + row, p.result + row, scratch, begin, end});
      }
    run();
  }

 private:
  // Queries come in fours, which share what is read.
  void with_query(const Query& q) {
    queries_[count_++] = q;
    if (count_ == kQueries) run();
  }
  void run() {
    if (count_ == kQueries)
      attend<kQueries>();
    else
      for (int i = 0; i < count_; ++i) {
        queries_[0] = queries_[i];
        attend<1>();
      }
    count_ = 0;
  }

  template <int R>
  void attend() {
    int64_t begin = queries_[0].begin, end = 0, late = 0, least = queries_[0].end;
    for (int r = 0; r < R; ++r) {
      begin = std::min(begin, queries_[r].begin), end = std::max(end, queries_[r].end);
      late = std::max(late, queries_[r].begin), least = std::min(least, queries_[r].end);
    }
    for (int64_t at = begin / kStep * kStep; at < end; at += kStep) find_scores<R>(at);
    float sums[R];
    for (int r = 0; r < R; ++r) {
      sums[r] = find_probabilities(queries_[r]);
      std::fill_n(queries_[r].result, p_.width, 0.0f);
    }
    if (late < least) {  // what all see is read once; nobody reads what it does not see
      for (int r = 0; r < R; ++r) add_values<1>(r, queries_[r].begin, late);
      add_values<R>(0, late, least);
      for (int r = 0; r < R; ++r) add_values<1>(r, least, queries_[r].end);
    } else {
      for (int r = 0; r < R; ++r) add_values<1>(r, queries_[r].begin, queries_[r].end);
    }
    for (int r = 0; r < R; ++r) {
      const float factor = 1 / sums[r];
      for (int64_t d = 0; d < p_.width; ++d) queries_[r].result[d] *= factor;
    }
  }

  // Of kStep positions.
  template <int R>
  void find_scores(int64_t at) {
    const T* keys = static_cast<const T*>(p_.keys) +
                    (pages_[at / p_.page] * p_.key_heads + head_) * p_.width * p_.page + at % p_.page;
    Floats sums[R][kVectors] = {};
    for (int64_t d = 0; d < p_.width; ++d, keys += p_.page) {
      Floats column[kVectors];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) column[v] = widened(keys + v * kLanes);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        const float factor = queries_[r].at[d];
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) sums[r][v] += factor * column[v];
      }
    }
    for (int r = 0; r < R; ++r)
      for (int v = 0; v < kVectors; ++v) {
        const Floats scaled = sums[r][v] * p_.scale;
        __builtin_memcpy(queries_[r].scores + at + v * kLanes, &scaled, sizeof(scaled));
      }
  }

  // Exponentials in place of scores; their sum.
  float find_probabilities(const Query& q) const {
    const int64_t first = q.begin / kLanes * kLanes, last = (q.end + kLanes - 1) / kLanes * kLanes;
    for (int64_t i = first; i < q.begin; ++i) q.scores[i] = kNever;
    for (int64_t i = q.end; i < last; ++i) q.scores[i] = kNever;
    Floats most = Floats{} + kNever, sum{};
    for (int64_t i = first; i < last; i += kLanes) {
      Floats x;
      load(x, q.scores + i);
      most = larger_lanes<float>(x, most);
    }
    const float top = fold_vector<float>(most, [](float a, float b) { return a > b ? a : b; });
    for (int64_t i = first; i < last; i += kLanes) {
      Floats x;
      load(x, q.scores + i);
      x = exp_lanes<float>(x - top);
      sum += x;
      __builtin_memcpy(q.scores + i, &x, sizeof(x));
    }
    return fold_vector<float>(sum, [](float a, float b) { return a + b; });
  }

  // Adds values of positions [begin, end) to the results of R queries from `first` on.
  template <int R>
  void add_values(int first, int64_t begin, int64_t end) {
    if (begin >= end) return;
    int64_t d = 0;
    for (; d + kStep <= p_.width; d += kStep) add_columns<R, kVectors>(first, begin, end, d, kLanes);
    for (; d < p_.width; d += kLanes) add_columns<R, 1>(first, begin, end, d, std::min(kLanes, p_.width - d));
  }
  template <int R, int V>
  void add_columns(int first, int64_t begin, int64_t end, int64_t d, int64_t n) {
    Floats sums[R][V];
    for (int r = 0; r < R; ++r)
      for (int v = 0; v < V; ++v) sums[r][v] = widened(queries_[first + r].result + d + v * kLanes, n);
    for (int64_t at = begin; at < end;) {
      const int64_t last = std::min(end, (at / p_.page + 1) * p_.page);
      const T* row = static_cast<const T*>(p_.values) +
                     ((pages_[at / p_.page] * p_.key_heads + head_) * p_.page + at % p_.page) * p_.width + d;
      for (; at < last; ++at, row += p_.width) {
        Floats value[V];
#pragma GCC unroll 2
        for (int v = 0; v < V; ++v) value[v] = widened(row + v * kLanes, n);
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) {
          const float factor = queries_[first + r].scores[at];
#pragma GCC unroll 2
          for (int v = 0; v < V; ++v) sums[r][v] += factor * value[v];
        }
      }
    }
    for (int r = 0; r < R; ++r)
      for (int v = 0; v < V; ++v) {
        float lanes[kLanes];
        __builtin_memcpy(lanes, &sums[r][v], sizeof(lanes));
        write_lanes(lanes, n, queries_[first + r].result + d + v * kLanes);
      }
  }

  const PagedAttention& p_;
  const int64_t head_;
  const int64_t* pages_;
  Query queries_[kQueries];
  int count_ = 0;
};

void attend(const PagedAttention& p, const PagedTile& tile, float* scratch) {
  if (p.dtype == DType::BFloat16)
    Tile<BFloat16>(p, tile, scratch);
  else
    Tile<float>(p, tile, scratch);
}

}  // namespace

PagedKernels paged_kernels() { return {attend}; }

}  // namespace rushlight::cpu::RL_ISA
