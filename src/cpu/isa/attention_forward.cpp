// Attention in tiles whose sums stay in registers, for each instruction set: a few queries at a time against
// a block of keys, whose scores fit into the nearest caches.
#include <optional>

#include "core/host/processor.h"
#include "cpu/isa/attention_tiles_inl.h"

namespace rushlight::cpu::RL_ISA {

int64_t attention_backward_bytes(const AttentionHead& h);
void attention_backward_head(const AttentionHead& h, const AttentionHeadGradients& g, void* memory,
                             bool first, bool last);

namespace {

constexpr int64_t kQueries = 32;    // whose scores are held at once: two tiles' rows
constexpr int64_t kKeys = 256;      // of one block
constexpr int64_t kValueKeys = 64;  // whose values the nearest cache holds beside the sums
constexpr int64_t kFewQueries = 4;  // for which laying out keys and values does not pay

// A vector of weights in the type of the products.
template <class C, class Weight>
[[gnu::always_inline]] inline void store_weights(const LaneVector<C>& x, Weight* to) {
#if defined(__AVX512BW__)
  if constexpr (std::is_same_v<Weight, BFloat16>) {
    const SixteenHalves halves = narrow_to_pairs(x);
    __builtin_memcpy(static_cast<void*>(to), &halves, sizeof(halves));
    return;
  }
#endif
  if constexpr (std::is_same_v<Weight, C>) __builtin_memcpy(to, &x, sizeof(x));
}

// Whether products of pairs are taken by tiles.
template <class Factor>
bool uses_tiles() {
#if defined(__AVX512BW__)
  return std::is_same_v<Factor, FactorPair> && host::has_bfloat16_tiles();
#else
  return false;
#endif
}

// The softmax of one query as it comes to know more keys.
template <class C>
struct Running {
  C largest = -std::numeric_limits<C>::infinity(), total = 0;

  // weights[0, n) = exp(scale * x - largest), up to `padded` they are 0; what was summed before shrinks.
  template <class Weight>
  [[gnu::always_inline]] void take(C* x, int64_t n, int64_t padded, C scale, Weight* weights, C* out,
                                   int64_t width) {
    constexpr int64_t lanes = Lanes<C>::count;
    constexpr int together = 4;  // vectors that do not wait for each other
    constexpr C nothing = -std::numeric_limits<C>::infinity();
    for (int64_t j = n; j < padded; ++j) x[j] = nothing;
    LaneVector<C> tops[together], sums[together] = {}, score;
    for (LaneVector<C>& top : tops) top = LaneVector<C>{} + largest;
    const int64_t whole = padded - padded % (together * lanes);
    const auto look = [&](int64_t j, int u) {
      load(score, x + j);
      tops[u] = larger_lanes<C>(score * scale, tops[u]);
    };
    for (int64_t j = 0; j < whole; j += together * lanes)
      for (int u = 0; u < together; ++u) look(j + u * lanes, u);
    for (int64_t j = whole; j < padded; j += lanes) look(j, 0);
    for (int u = 1; u < together; ++u) tops[0] = larger_lanes<C>(tops[u], tops[0]);
    const C most = fold_vector<C>(tops[0], [](C a, C b) { return b > a ? b : a; });
    const C shift = most == nothing ? C(0) : most;
    const auto weigh = [&](int64_t j, int u) {
      load(score, x + j);
      score = exp_lanes<C>(score * scale - shift);
      sums[u] += score;
      store_weights<C>(score, weights + j);
    };
    for (int64_t j = 0; j < whole; j += together * lanes)
      for (int u = 0; u < together; ++u) weigh(j + u * lanes, u);
    for (int64_t j = whole; j < padded; j += lanes) weigh(j, 0);
    const LaneVector<C> sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    if (most != largest) {
      const C shrink = exp_negative(largest - shift);
      for (int64_t c = 0; c < width; ++c) out[c] *= shrink;
      total *= shrink;
      largest = most;
    }
    total += fold_vector<C>(sum, [](C a, C b) { return a + b; });
  }
};

template <class T>
void finish_row(const AttentionHead& h, int64_t query, const Running<compute_type<T>>& row,
                compute_type<T>* sums) {
  using C = compute_type<T>;
  const bool nothing = row.total == 0;  // a query that may look at nothing gets zeros, not NaN
  if (nothing) __builtin_memset(sums, 0, static_cast<size_t>(h.value_width) * sizeof(C));
  const C inverse = nothing ? C(1) : 1 / row.total;
#pragma GCC ivdep
  for (int64_t c = 0; c < h.value_width; ++c) sums[c] *= inverse;
  copy_row(sums, h.value_width, h.value_width, static_cast<T*>(h.out) + query * h.out_row);
  static_cast<C*>(h.logsumexp)[query] =
      nothing ? std::numeric_limits<C>::infinity() : row.largest + __builtin_log(row.total);
}

// --- many queries

// Memory for one head: keys and values laid out, then what a block of queries needs.
template <class C, class Factor>
struct Layout {
  using State = std::conditional_t<std::is_same_v<C, Factor>, C, BFloat16>;
  static constexpr int64_t step = static_cast<int64_t>(sizeof(Factor) / sizeof(State)),
                           lanes = Lanes<C>::count;
  const AttentionHead& h;
  const bool tiles = uses_tiles<Factor>();
  const int64_t unit = tiles ? 32 : step;  // what factors are filled up to: a tile's row
  const Columns<C> columns{h.value_width};
  const int64_t depth = up(h.width, unit) / step;       // factors of a query
  const int64_t value_depth = up(h.keys, unit) / step;  // of a column of values

  int64_t key_factors() const { return up(h.keys, lanes) * depth; }
  int64_t value_factors() const { return value_depth * columns.padded(); }
  int64_t packed_bytes() const {
    return (key_factors() + value_factors()) * static_cast<int64_t>(sizeof(Factor)) +
           kPanel<C> * depth * static_cast<int64_t>(sizeof(Factor));
  }
  int64_t scratch_bytes() const {
    return kQueries * (kKeys * static_cast<int64_t>(sizeof(C) + sizeof(State)) +
                       depth * static_cast<int64_t>(sizeof(Factor)) +
                       columns.padded() * static_cast<int64_t>(sizeof(C)));
  }
};

template <class T, bool Pairs>
using LayoutOf = Layout<compute_type<T>, typename ProductTypes<T, Pairs>::Factor>;

template <class T, bool Pairs>
void pack_as(const AttentionHead& h, void* packed) {
  using Types = ProductTypes<T, Pairs>;
  const LayoutOf<T, Pairs> l{h};
  auto* keys = static_cast<typename Types::Factor*>(packed);
  auto* values = keys + l.key_factors();
  auto* strip = reinterpret_cast<typename Types::State*>(values + l.value_factors());
  pack_turned<T, Pairs>(static_cast<const T*>(h.key), h.key_row, h.keys, h.width, strip, keys, l.depth);
  pack_rows<T, Pairs>(static_cast<const T*>(h.value), h.value_row, h.keys, h.value_width, values,
                      l.value_depth);
}

template <class C, class Factor>
class Block {
  using L = Layout<C, Factor>;
  using State = typename L::State;

 public:
  Block(const AttentionHead& h, const void* packed, void* scratch)
      : h_(h),
        l_{h},
        keys_(static_cast<const Factor*>(packed)),
        values_(keys_ + l_.key_factors()),
        queries_(static_cast<State*>(scratch)),
        scores_(reinterpret_cast<C*>(queries_ + kQueries * l_.depth * L::step)),
        sums_(scores_ + kQueries * kKeys),
        weights_(reinterpret_cast<State*>(sums_ + kQueries * l_.columns.padded())) {}

  template <class T>
  void run(int64_t first, int64_t count) {
    first_ = first, count_ = count;
    for (int64_t i = 0; i < count; ++i)
      copy_row(static_cast<const T*>(h_.query) + (first + i) * h_.query_row, h_.width, l_.depth * L::step,
               queries_ + i * l_.depth * L::step);
    __builtin_memset(sums_, 0, static_cast<size_t>(count * l_.columns.padded()) * sizeof(C));
    for (int64_t i = 0; i < count; ++i) rows_[i] = {};
    const int64_t end = seen(h_, first + count - 1);
    for (int64_t key = 0; key < end; key += kKeys) {
      const int64_t n = lesser(kKeys, end - key);
      if (l_.tiles) {
        run_tiles(key, n);
        continue;
      }
      multiply_keys(h_, first, count, reinterpret_cast<const Factor*>(queries_), l_.depth, keys_, key, n,
                    static_cast<C>(h_.scale), scores_, kKeys);
      weigh(key, n, up(n, L::lanes), C(1));
      with_vectors(l_.columns.vectors, [&]<int V>() { add_values<V>(key, n); });
    }
    for (int64_t i = 0; i < count; ++i)
      finish_row<T>(h_, first + i, rows_[i], sums_ + i * l_.columns.padded());
  }

 private:
  // Scores become weights, zeros where a query does not see a key.
  void weigh(int64_t key, int64_t n, int64_t padded, C scale) {
    const int64_t width = l_.columns.padded();
    for (int64_t i = 0; i < count_; ++i) {
      C* x = scores_ + i * kKeys;
      const int64_t visible = seen(h_, first_ + i) - key, now = visible < 0 ? 0 : lesser(n, visible);
      mask_scores(h_, first_ + i, key, now, x);
      C* sums = sums_ + i * width;
      if constexpr (L::step > 1)
        rows_[i].take(x, now, padded, scale, weights_ + i * kKeys, sums, key > 0 ? width : 0);
      else
        rows_[i].take(x, now, padded, scale, x, sums, key > 0 ? width : 0);
    }
  }

  // The same products by tiles: those of scores leave the scale out.
  void run_tiles([[maybe_unused]] int64_t key, [[maybe_unused]] int64_t n) {
#if defined(__AVX512BW__)
    if constexpr (L::step > 1) {
      multiply_keys_by_tiles(h_, count_, queries_, l_.depth, keys_, key, n, scores_, kKeys);
      // What is masked stays -inf if it is scaled later.
      C scale = static_cast<C>(h_.scale);
      if (h_.mask || !(scale > 0)) {
        for (int64_t i = 0; i < count_ * kKeys; i += kKeys)
          for (int64_t j = 0; j < n; ++j) scores_[i + j] *= scale;
        scale = 1;
      }
      const int64_t padded = up(n, 32), width = l_.columns.width() * static_cast<int64_t>(sizeof(Factor));
      weigh(key, n, padded, scale);
      for (int64_t p = 0; p < l_.columns.panels; ++p)
        multiply_pairs<true>(
            {weights_, kKeys * static_cast<int64_t>(sizeof(State)),
             values_ + (p * l_.value_depth + key / 2) * l_.columns.width(), width, padded / 32},
            count_, l_.columns.width(), sums_ + p * l_.columns.width(),
            l_.columns.padded() * static_cast<int64_t>(sizeof(C)));
    }
#endif
  }

  const Factor* weights() const {
    if constexpr (L::step > 1)
      return reinterpret_cast<const Factor*>(weights_);
    else
      return scores_;
  }

  template <int V>
  void add_values(int64_t key, int64_t n) {
    constexpr int64_t stride = kKeys / L::step;
    const int64_t width = l_.columns.padded();
    for (int64_t p = 0; p < l_.columns.panels; ++p)
      for (int64_t from = 0; from < n; from += kValueKeys) {
        const Factor* panel = values_ + (p * l_.value_depth + (key + from) / L::step) * (V * L::lanes);
        for_row_groups<V>(0, count_, [&]<int R>(int64_t row) {
          const int64_t end = lesser(lesser(n, from + kValueKeys), seen(h_, first_ + row + R - 1) - key);
          if (end <= from) return;
          C* to = sums_ + row * width + p * (V * L::lanes);
          add_tile<R, V, C>(weights() + row * stride + from / L::step, stride, 1, panel,
                            up(end - from, L::step) / L::step, to, width);
        });
      }
  }

  const AttentionHead& h_;
  const L l_;
  const Factor *keys_, *values_;
  State* queries_;
  C *scores_, *sums_;
  State* weights_;
  int64_t first_ = 0, count_ = 0;
  Running<C> rows_[kQueries];
};

template <class T, bool Pairs>
void forward_as(const AttentionHead& h, const void* packed, void* scratch, Span queries) {
  Block<compute_type<T>, typename ProductTypes<T, Pairs>::Factor> block(h, packed, scratch);
#if defined(__AVX512BW__)
  std::optional<TileSizes> sizes;
  if (Pairs && host::has_bfloat16_tiles()) sizes.emplace();
#endif
  for (int64_t first = queries.begin; first < queries.end; first += kQueries)
    block.template run<T>(first, lesser(kQueries, queries.end - first));
}

// --- few queries, as when a text is made word by word: keys and values are read where they lie

// scores[0, N) = scale * query . keys
template <int N, class T, class C>
void score_keys(const C* query, const T* key, int64_t row, int64_t width, C scale, C* scores) {
  constexpr int64_t lanes = Lanes<C>::count;
  LaneVector<C> sums[N] = {}, q;
  for (int64_t c = 0; c < width; c += lanes) {
    load(q, query + c);
    for (int i = 0; i < N; ++i) sums[i] += q * lanes_at(key + i * row + c, width - c);
  }
  for (int i = 0; i < N; ++i) scores[i] = scale * fold_vector<C>(sums[i], [](C a, C b) { return a + b; });
}

// sums[0, n) += sum of weights[j] * value[j]; n: up to two vectors
template <class T, class C>
void weigh_values(const C* weights, int64_t keys, const T* value, int64_t row, int64_t n, C* sums) {
  constexpr int64_t lanes = Lanes<C>::count;
  LaneVector<C> a, b{};
  load(a, sums);
  if (n <= lanes) {
    for (int64_t j = 0; j < keys; ++j) a += weights[j] * lanes_at(value + j * row, n);
  } else {
    load(b, sums + lanes);
    for (int64_t j = 0; j < keys; ++j) {
      a += weights[j] * lanes_at(value + j * row, lanes);
      b += weights[j] * lanes_at(value + j * row + lanes, n - lanes);
    }
    __builtin_memcpy(sums + lanes, &b, sizeof(b));
  }
  __builtin_memcpy(sums, &a, sizeof(a));
}

template <class T>
void forward_few(const AttentionHead& h, void* scratch, Span queries) {
  using C = compute_type<T>;
  constexpr int64_t lanes = Lanes<C>::count, two = 2 * lanes;
  const int64_t width = up(h.width, lanes), value_width = up(h.value_width, two);
  const C scale = static_cast<C>(h.scale);
  C *query = static_cast<C*>(scratch), *sums = query + width, *scores = sums + value_width;
  const T *keys = static_cast<const T*>(h.key), *values = static_cast<const T*>(h.value);
  for (int64_t i = queries.begin; i < queries.end; ++i) {
    copy_row(static_cast<const T*>(h.query) + i * h.query_row, h.width, width, query);
    __builtin_memset(sums, 0, static_cast<size_t>(value_width) * sizeof(C));
    Running<C> row;
    const int64_t end = seen(h, i);
    for (int64_t key = 0; key < end; key += kKeys) {
      const int64_t n = lesser(kKeys, end - key);
      int64_t j = 0;
      for (; j + 4 <= n; j += 4)
        score_keys<4>(query, keys + (key + j) * h.key_row, h.key_row, h.width, scale, scores + j);
      for (; j < n; ++j)
        score_keys<1>(query, keys + (key + j) * h.key_row, h.key_row, h.width, scale, scores + j);
      mask_scores(h, i, key, n, scores);
      row.take(scores, n, up(n, lanes), C(1), scores, sums, value_width);
      for (int64_t c = 0; c < h.value_width; c += two)
        weigh_values(scores, n, values + key * h.value_row + c, h.value_row, lesser(two, h.value_width - c),
                     sums + c);
    }
    finish_row<T>(h, i, row, sums);
  }
}

// --- by dtype

// f<type, pairs>().
template <class F>
void with_types(DType dtype, F&& f) {
#if defined(__AVX512BW__)
  // Intel's processors take longer for products of pairs than for as many of floats, but have tiles.
  if (dtype == DType::BFloat16 && has_pair_products() && (!host::is_intel() || host::has_bfloat16_tiles()))
    return f.template operator()<BFloat16, true>();
#endif
  visit_dtype(FloatTypes{}, dtype, "scaled_dot_product_attention",
              [&](auto tag) { f.template operator()<decltype(tag), false>(); });
}

bool is_few(const AttentionHead& h) { return h.queries <= kFewQueries; }
int64_t packed_bytes(const AttentionHead& h) {
  int64_t bytes = 0;
  if (!is_few(h)) with_types(h.dtype, [&]<class T, bool P>() { bytes = LayoutOf<T, P>{h}.packed_bytes(); });
  return bytes;
}
int64_t scratch_bytes(const AttentionHead& h) {
  if (is_few(h))
    return (up(h.width, 16) + up(h.value_width, 32) + kKeys) * static_cast<int64_t>(sizeof(double));
  int64_t bytes = 0;
  with_types(h.dtype, [&]<class T, bool P>() { bytes = LayoutOf<T, P>{h}.scratch_bytes(); });
  return bytes;
}
void pack(const AttentionHead& h, void* packed) {
  if (!is_few(h)) with_types(h.dtype, [&]<class T, bool P>() { pack_as<T, P>(h, packed); });
}
void forward(const AttentionHead& h, const void* packed, void* scratch, Span queries) {
  if (is_few(h))
    visit_dtype(FloatTypes{}, h.dtype, "scaled_dot_product_attention",
                [&](auto tag) { forward_few<decltype(tag)>(h, scratch, queries); });
  else
    with_types(h.dtype, [&]<class T, bool P>() { forward_as<T, P>(h, packed, scratch, queries); });
}

}  // namespace

AttentionKernels attention_kernels() {
  return {packed_bytes, scratch_bytes, pack, forward, attention_backward_bytes, attention_backward_head};
}

}  // namespace rushlight::cpu::RL_ISA
