// Attention in bfloat16 by tiles of AMX: scores, and the gradients of one head.
#pragma once
#include "cpu/isa/attention_inl.h"
#include "cpu/isa/tile_registers_inl.h"

#if defined(__AVX512BW__)
#include <immintrin.h>

namespace rushlight::cpu::RL_ISA {
namespace {

// scores[i][j] = rows[i] . keys[key + j] for `count` rows of `depth` pairs and n keys laid out by
// pack_turned; scores of different rows lie `stride` apart, and exist up to whole tiles.
inline void multiply_keys_by_tiles(const AttentionHead& h, int64_t count, const void* rows, int64_t depth,
                                   const FactorPair* panels, int64_t key, int64_t n, float* scores,
                                   int64_t stride) {
  constexpr int64_t kPair = sizeof(FactorPair), lanes = Lanes<float>::count;
  for (int64_t column = 0; column < n; column += kPanel<float>) {
    const int64_t begin = key + column, left = lesser(kPanel<float>, h.keys - begin);
    multiply_pairs<false>(
        {rows, depth * kPair, panels + begin * depth, up(left, lanes) * kPair, depth / kTileRowCount}, count,
        up(lesser(left, n - column), lanes), scores + column, stride * static_cast<int64_t>(sizeof(float)));
  }
}

// Scores times the scale, of which the masked ones become -inf, so that no scale undoes that.
inline void scale_and_mask(const AttentionHead& h, int64_t query, int64_t key, int64_t n, float* scores) {
  const float scale = static_cast<float>(h.scale);
  for (int64_t j = 0; j < n; ++j) scores[j] *= scale;
  mask_scores(h, query, key, n, scores);
}

// Two rows of sixteen floats as bfloat16.
struct TwoRows {
  __m512i halves;  // the first row, then the second
  TwoRows(SixteenFloats first, SixteenFloats second) {
    asm("vcvtne2ps2bf16 %1, %2, %0" : "=v"(halves) : "v"(first), "v"(second));
  }
  void store_pairs(FactorPair* to) const {
    alignas(64) static constexpr uint16_t order[] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                     21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                     11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    const __m512i pairs = _mm512_permutexvar_epi16(_mm512_load_si512(order), halves);
    __builtin_memcpy(static_cast<void*>(to), &pairs, sizeof(pairs));
  }
  void store(BFloat16* first, BFloat16* second) const {
    __builtin_memcpy(static_cast<void*>(first), &halves, 32);
    __builtin_memcpy(static_cast<void*>(second), reinterpret_cast<const char*>(&halves) + 32, 32);
  }
};

// Gradients of one head, whose steps are those of Backward. Probabilities come as rows of queries: as pairs
// of them they are a product's right side, so that the sums of keys and values are held as columns.
class TileBackward {
  using Pairs = FactorPair;
  static constexpr int64_t kQueries = 64;  // whose scores are held at once
  static constexpr int64_t kKeys = 128;    // of one block
  static constexpr int64_t kUnit = 32;     // elements in a row of a tile
  static constexpr int64_t lanes = Lanes<float>::count;

 public:
  // With no memory, what it would need is counted.
  TileBackward(const AttentionHead& h, const AttentionHeadGradients* g, void* memory)
      : h_(h), g_(g), memory_(static_cast<char*>(memory)) {
    const int64_t keys = up(h.keys, lanes), all = blocks() * kKeys,
                  widest = width_ > value_width_ ? width_ : value_width_;
    take(turned_keys_, keys * width_ / 2);
    take(turned_values_, keys * value_width_ / 2);
    take(key_pairs_, key_depth_ * columns_.padded());
    take(key_sums_, all * width_);
    take(value_sums_, all * value_width_);
    take(strip_, kKeys * widest);
    take(queries_, kQueries * width_);
    take(turned_queries_, kQueries * width_);
    take(grads_, kQueries * value_width_);
    take(turned_grads_, kQueries * value_width_);
    take(query_sums_, kQueries * columns_.padded());
    take(scores_, kQueries * kKeys);
    take(flow_, kQueries * kKeys);
    take(weight_pairs_, kQueries / 2 * kKeys);
    take(flow_pairs_, kQueries / 2 * kKeys);
    take(flow_rows_, kQueries * kKeys);
  }
  int64_t bytes() const { return bytes_; }

  void prepare() {
    const auto *keys = static_cast<const BFloat16*>(h_.key), *values = static_cast<const BFloat16*>(h_.value);
    auto* strip = reinterpret_cast<BFloat16*>(strip_);
    pack_turned<BFloat16, true>(keys, h_.key_row, h_.keys, h_.width, strip, turned_keys_, width_ / 2);
    pack_turned<BFloat16, true>(values, h_.value_row, h_.keys, h_.value_width, strip, turned_values_,
                                value_width_ / 2);
    pack_rows<BFloat16, true>(keys, h_.key_row, h_.keys, h_.width, key_pairs_, key_depth_);
    zero(key_sums_, blocks() * kKeys * width_);
    zero(value_sums_, blocks() * kKeys * value_width_);
  }

  void run() {
    const TileSizes sizes;
    for (first_ = 0; first_ < h_.queries; first_ += kQueries) {
      count_ = lesser(kQueries, h_.queries - first_);
      load_queries();
      const int64_t end = seen(h_, first_ + count_ - 1);
      for (int64_t key = 0; key < end; key += kKeys) add_keys(key, lesser(kKeys, end - key));
      scale(query_sums_, count_ * columns_.padded());
      for (int64_t i = 0; i < count_; ++i)
        copy_row(query_sums_ + i * columns_.padded(), h_.width, h_.width,
                 static_cast<BFloat16*>(g_->query) + (first_ + i) * g_->query_row);
    }
  }

  void finish() const {
    scale(key_sums_, blocks() * kKeys * width_);
    store_columns(key_sums_, width_, h_.width, static_cast<BFloat16*>(g_->key), g_->key_row);
    store_columns(value_sums_, value_width_, h_.value_width, static_cast<BFloat16*>(g_->value),
                  g_->value_row);
  }

 private:
  template <class E>
  void take(E*& part, int64_t count) {
    part = reinterpret_cast<E*>(memory_ + bytes_);
    bytes_ += up(count * static_cast<int64_t>(sizeof(E)), 64);
  }
  template <class E>
  static void zero(E* to, int64_t count) {
    __builtin_memset(static_cast<void*>(to), 0, static_cast<size_t>(count) * sizeof(E));
  }
  int64_t blocks() const { return up(h_.keys, kKeys) / kKeys; }

  void scale(float* x, int64_t n) const {
    const float scale = static_cast<float>(h_.scale);
    for (int64_t i = 0; i < n; ++i) x[i] *= scale;
  }

  // Queries and what flows into their results, each as rows and as columns, and the sums of out * grad_out.
  void load_queries() {
    const auto* query = static_cast<const BFloat16*>(h_.query) + first_ * h_.query_row;
    const auto* grad = static_cast<const BFloat16*>(g_->grad_out) + first_ * g_->grad_out_row;
    const auto* out = static_cast<const BFloat16*>(h_.out) + first_ * h_.out_row;
    for (int64_t i = 0; i < count_; ++i) {
      copy_row(query + i * h_.query_row, h_.width, width_, queries_ + i * width_);
      copy_row(grad + i * g_->grad_out_row, h_.value_width, value_width_, grads_ + i * value_width_);
      delta_[i] = row_product(out + i * h_.out_row, grad + i * g_->grad_out_row, h_.value_width);
    }
    const int64_t rows = up(count_, kUnit);
    zero(queries_ + count_ * width_, (rows - count_) * width_);
    zero(grads_ + count_ * value_width_, (rows - count_) * value_width_);
    turn(queries_, width_, rows, turned_queries_);
    turn(grads_, value_width_, rows, turned_grads_);
    zero(query_sums_, kQueries * columns_.padded());
  }

  static void turn(const BFloat16* rows, int64_t width, int64_t count, BFloat16* to) {
    constexpr int64_t kItem = sizeof(BFloat16);
    transpose_tile(kItem)(reinterpret_cast<char*>(to), kQueries * kItem, reinterpret_cast<const char*>(rows),
                          width * kItem, width, count);
  }

  // What n keys from `key` on give and take.
  void add_keys(int64_t key, int64_t n) {
    constexpr int64_t kHalf = sizeof(BFloat16), kPair = sizeof(Pairs), kFloat = sizeof(float);
    multiply_keys_by_tiles(h_, count_, queries_, width_ / 2, turned_keys_, key, n, scores_, kKeys);
    multiply_keys_by_tiles(h_, count_, grads_, value_width_ / 2, turned_values_, key, n, flow_, kKeys);
    weigh(key, n);
    const int64_t query_parts = up(count_, kUnit) / kUnit, key_parts = up(n, kUnit) / kUnit;
    multiply_pairs<true>({turned_grads_, kQueries * kHalf, weight_pairs_, kKeys * kPair, query_parts},
                         h_.value_width, n, value_sums_ + key * value_width_, kKeys * kFloat);
    multiply_pairs<true>({turned_queries_, kQueries * kHalf, flow_pairs_, kKeys * kPair, query_parts},
                         h_.width, n, key_sums_ + key * width_, kKeys * kFloat);
    const int64_t width = columns_.width();
    for (int64_t p = 0; p < columns_.panels; ++p)
      multiply_pairs<true>({flow_rows_, kKeys * kHalf, key_pairs_ + (p * key_depth_ + key / 2) * width,
                            width * kPair, key_parts},
                           count_, width, query_sums_ + p * width, columns_.padded() * kFloat);
  }

  // Scores become probabilities p, and what flowed into them p * (flow - delta), for two queries at a time.
  void weigh(int64_t key, int64_t n) {
    const int64_t padded = up(n, kUnit);
    const bool prepared = h_.mask || !(h_.scale > 0);  // -inf stays what it is under a positive scale only
    const float scale = prepared ? 1.0f : static_cast<float>(h_.scale);
    for (int64_t i = 0; i < count_; i += 2) {
      for (int64_t r = i; r < i + 2; ++r) {
        const int64_t visible = r < count_ ? seen(h_, first_ + r) - key : 0,
                      now = visible < 0 ? 0 : lesser(n, visible);
        if (prepared && now > 0) scale_and_mask(h_, first_ + r, key, now, scores_ + r * kKeys);
        for (int64_t j = now; j < padded; ++j) {
          scores_[r * kKeys + j] = -std::numeric_limits<float>::infinity();
          flow_[r * kKeys + j] = 0;
        }
      }
      weigh_two(i, padded, scale);
    }
    const int64_t pairs = (count_ + 1) / 2, all = up(count_, kUnit) / 2;
    zero(weight_pairs_ + pairs * kKeys, (all - pairs) * kKeys);
    zero(flow_pairs_ + pairs * kKeys, (all - pairs) * kKeys);
  }

  void weigh_two(int64_t i, int64_t padded, float scale) {
    const bool both = i + 1 < count_;
    const float* shift = static_cast<const float*>(h_.logsumexp) + first_ + i;
    const float shifts[] = {shift[0], both ? shift[1] : 0}, deltas[] = {delta_[i], both ? delta_[i + 1] : 0};
    for (int64_t j = 0; j < padded; j += lanes) {
      LaneVector<float> p[2], f[2];
      for (int r = 0; r < 2; ++r) {
        load(p[r], scores_ + (i + r) * kKeys + j), load(f[r], flow_ + (i + r) * kKeys + j);
        p[r] = exp_lanes<float>(p[r] * scale - shifts[r]);
        f[r] = p[r] * (f[r] - deltas[r]);
      }
      TwoRows(p[0], p[1]).store_pairs(weight_pairs_ + i / 2 * kKeys + j);
      const TwoRows flows(f[0], f[1]);
      flows.store_pairs(flow_pairs_ + i / 2 * kKeys + j);
      flows.store(flow_rows_ + i * kKeys + j, flow_rows_ + (i + 1) * kKeys + j);
    }
  }

  // Columns of blocks of keys become rows.
  void store_columns(const float* sums, int64_t width, int64_t used, BFloat16* to, int64_t row) const {
    constexpr int64_t kItem = sizeof(float);
    for (int64_t key = 0; key < h_.keys; key += kKeys) {
      const int64_t n = lesser(kKeys, h_.keys - key);
      transpose_tile(kItem)(reinterpret_cast<char*>(strip_), width * kItem,
                            reinterpret_cast<const char*>(sums + key * width), kKeys * kItem, n, used);
      for (int64_t i = 0; i < n; ++i) copy_row(strip_ + i * width, used, used, to + (key + i) * row);
    }
  }

  const AttentionHead& h_;
  const AttentionHeadGradients* g_;
  char* memory_;
  int64_t bytes_ = 0, first_ = 0, count_ = 0;
  const int64_t width_ = up(h_.width, kUnit), value_width_ = up(h_.value_width, kUnit);
  const Columns<float> columns_{h_.width};
  const int64_t key_depth_ = up(h_.keys, kUnit) / 2;
  Pairs *turned_keys_, *turned_values_, *key_pairs_, *weight_pairs_, *flow_pairs_;
  BFloat16 *queries_, *turned_queries_, *grads_, *turned_grads_, *flow_rows_;
  float *key_sums_, *value_sums_, *strip_, *query_sums_, *scores_, *flow_;
  float delta_[kQueries];
};

}  // namespace
}  // namespace rushlight::cpu::RL_ISA
#endif
