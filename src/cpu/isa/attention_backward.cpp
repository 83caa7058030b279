// Gradients of attention in tiles whose sums stay in registers, for each instruction set. Scores are computed
// again; products are taken in the computing type.
#include "core/host/processor.h"
#include "cpu/isa/attention_inl.h"
#include "cpu/isa/attention_tiles_inl.h"

namespace rushlight::cpu::RL_ISA {
namespace {

constexpr int64_t kQueries = 48;  // whose scores are held at once
constexpr int64_t kKeys = 128;    // of one block

// Where the parts of one head's memory lie, in elements.
template <class C>
struct Layout {
  const AttentionHead& h;
  const Columns<C> columns{h.width}, value_columns{h.value_width};
  const int64_t keys = up(h.keys, Lanes<C>::count);
  const int64_t turned_keys = 0, turned_values = turned_keys + keys * h.width,
                key_rows = turned_values + keys * h.value_width,
                grad_keys = key_rows + h.keys * columns.padded(),
                grad_values = grad_keys + h.keys * columns.padded(),
                strip = grad_values + h.keys * value_columns.padded(),
                queries = strip + kPanel<C> * (h.width > h.value_width ? h.width : h.value_width),
                query_panels = queries + kQueries * h.width,
                grads = query_panels + kQueries * columns.padded(),
                grad_panels = grads + kQueries * h.value_width,
                grad_queries = grad_panels + kQueries * value_columns.padded(),
                scores = grad_queries + kQueries * columns.padded(), flow = scores + kQueries * kKeys,
                total = flow + kQueries * kKeys;
};

template <class T>
class Backward {
  using C = compute_type<T>;
  static constexpr int64_t lanes = Lanes<C>::count;

 public:
  Backward(const AttentionHead& h, const AttentionHeadGradients& g, void* memory)
      : h_(h), g_(g), l_{h}, memory_(static_cast<C*>(memory)) {}

  void prepare() {
    C* strip = at(l_.strip);
    const T *keys = static_cast<const T*>(h_.key), *values = static_cast<const T*>(h_.value);
    pack_turned<T, false>(keys, h_.key_row, h_.keys, h_.width, strip, at(l_.turned_keys), h_.width);
    pack_turned<T, false>(values, h_.value_row, h_.keys, h_.value_width, strip, at(l_.turned_values),
                          h_.value_width);
    pack_rows<T, false>(keys, h_.key_row, h_.keys, h_.width, at(l_.key_rows), h_.keys);
    __builtin_memset(at(l_.grad_keys), 0, static_cast<size_t>(l_.strip - l_.grad_keys) * sizeof(C));
  }

  void run(int64_t first, int64_t count) {
    first_ = first, count_ = count;
    load_queries();
    const int64_t end = seen(h_, first + count - 1);
    for (int64_t key = 0; key < end; key += kKeys) {
      const int64_t n = lesser(kKeys, end - key);
      multiply_keys(h_, first, count, at(l_.queries), h_.width, at(l_.turned_keys), key, n,
                    static_cast<C>(h_.scale), at(l_.scores), kKeys);
      multiply_keys(h_, first, count, at(l_.grads), h_.value_width, at(l_.turned_values), key, n, C(1),
                    at(l_.flow), kKeys);
      for (int64_t i = 0; i < count; ++i) weigh(i, key, n);
      with_vectors(l_.value_columns.vectors, [&]<int V>() {
        add_to_keys<V>(l_.value_columns, key, n, at(l_.scores), at(l_.grad_panels), at(l_.grad_values));
      });
      with_vectors(l_.columns.vectors, [&]<int V>() {
        add_to_keys<V>(l_.columns, key, n, at(l_.flow), at(l_.query_panels), at(l_.grad_keys));
        add_to_queries<V>(key, n);
      });
    }
    store(at(l_.grad_queries), count, l_.columns.padded(), h_.width,
          static_cast<T*>(g_.query) + first * g_.query_row, g_.query_row);
  }

  void finish() const {
    store(at(l_.grad_keys), h_.keys, l_.columns.padded(), h_.width, static_cast<T*>(g_.key), g_.key_row);
    store(at(l_.grad_values), h_.keys, l_.value_columns.padded(), h_.value_width, static_cast<T*>(g_.value),
          g_.value_row);
  }

 private:
  C* at(int64_t place) const { return memory_ + place; }

  static void store(const C* from, int64_t rows, int64_t padded, int64_t width, T* to, int64_t row) {
    for (int64_t i = 0; i < rows; ++i) copy_row(from + i * padded, width, width, to + i * row);
  }

  // Queries and what flows into their results, each as rows and as panels, and the sums of out * grad_out.
  void load_queries() {
    const T* query = static_cast<const T*>(h_.query) + first_ * h_.query_row;
    const T* grad = static_cast<const T*>(g_.grad_out) + first_ * g_.grad_out_row;
    const T* out = static_cast<const T*>(h_.out) + first_ * h_.out_row;
    for (int64_t i = 0; i < count_; ++i) {
      copy_row(query + i * h_.query_row, h_.width, h_.width, at(l_.queries) + i * h_.width);
      copy_row(grad + i * g_.grad_out_row, h_.value_width, h_.value_width, at(l_.grads) + i * h_.value_width);
      delta_[i] = row_product(out + i * h_.out_row, grad + i * g_.grad_out_row, h_.value_width);
    }
    pack_rows<T, false>(query, h_.query_row, count_, h_.width, at(l_.query_panels), count_);
    pack_rows<T, false>(grad, g_.grad_out_row, count_, h_.value_width, at(l_.grad_panels), count_);
    __builtin_memset(at(l_.grad_queries), 0, static_cast<size_t>(count_ * l_.columns.padded()) * sizeof(C));
  }

  // Scores become probabilities p, and what flowed into them p * (flow - delta) * scale.
  void weigh(int64_t i, int64_t key, int64_t n) {
    const int64_t visible = seen(h_, first_ + i) - key, now = visible < 0 ? 0 : lesser(n, visible);
    C *x = at(l_.scores) + i * kKeys, *flow = at(l_.flow) + i * kKeys;
    mask_scores(h_, first_ + i, key, now, x);
    const int64_t padded = up(n, lanes);
    for (int64_t j = now; j < padded; ++j) x[j] = -std::numeric_limits<C>::infinity(), flow[j] = 0;
    const C shift = static_cast<const C*>(h_.logsumexp)[first_ + i], delta = delta_[i],
            scale = static_cast<C>(h_.scale);
    for (int64_t j = 0; j < padded; j += lanes) {
      LaneVector<C> p, f;
      load(p, x + j), load(f, flow + j);
      p = exp_lanes<C>(p - shift);
      f = p * (f - delta) * scale;
      __builtin_memcpy(x + j, &p, sizeof(p));
      __builtin_memcpy(flow + j, &f, sizeof(f));
    }
  }

  // sums[key] += sum over the queries that see it of weights[query][key] * rows[query]
  template <int V>
  void add_to_keys(const Columns<C>& columns, int64_t key, int64_t n, const C* weights, const C* panels,
                   C* sums) {
    const int64_t padded = columns.padded();
    for (int64_t p = 0; p < columns.panels; ++p)
      for_row_groups<V>(0, n, [&]<int R>(int64_t row) {
        const int64_t from = h_.causal && key + row > first_ ? key + row - first_ : 0;
        if (from >= count_) return;
        add_tile<R, V, C>(weights + from * kKeys + row, 1, kKeys, panels + (p * count_ + from) * (V * lanes),
                          count_ - from, sums + (key + row) * padded + p * (V * lanes), padded);
      });
  }

  template <int V>
  void add_to_queries(int64_t key, int64_t n) {
    const int64_t padded = l_.columns.padded();
    for (int64_t p = 0; p < l_.columns.panels; ++p)
      for_row_groups<V>(0, count_, [&]<int R>(int64_t row) {
        const int64_t end = lesser(n, seen(h_, first_ + row + R - 1) - key);
        if (end <= 0) return;
        add_tile<R, V, C>(at(l_.flow) + row * kKeys, kKeys, 1,
                          at(l_.key_rows) + (p * h_.keys + key) * (V * lanes), end,
                          at(l_.grad_queries) + row * padded + p * (V * lanes), padded);
      });
  }

  const AttentionHead& h_;
  const AttentionHeadGradients& g_;
  const Layout<C> l_;
  C* memory_;
  int64_t first_ = 0, count_ = 0;
  C delta_[kQueries];
};

#if defined(__AVX512BW__)
// Whether products are taken by tiles.
bool by_tiles(const AttentionHead& h) { return h.dtype == DType::BFloat16 && host::has_bfloat16_tiles(); }
#endif

}  // namespace

int64_t attention_backward_bytes(const AttentionHead& h) {
#if defined(__AVX512BW__)
  if (by_tiles(h)) return TileBackward(h, nullptr, nullptr).bytes();
#endif
  return h.dtype == DType::Float64 ? Layout<double>{h}.total * static_cast<int64_t>(sizeof(double))
                                   : Layout<float>{h}.total * static_cast<int64_t>(sizeof(float));
}

// `first` and `last` of the matrices of queries that share keys and values.
void attention_backward_head(const AttentionHead& h, const AttentionHeadGradients& g, void* memory,
                             bool first, bool last) {
#if defined(__AVX512BW__)
  if (by_tiles(h)) {
    TileBackward backward(h, &g, memory);
    if (first) backward.prepare();
    backward.run();
    if (last) backward.finish();
    return;
  }
#endif
  visit_dtype(FloatTypes{}, h.dtype, "scaled_dot_product_attention_backward", [&](auto tag) {
    Backward<decltype(tag)> backward(h, g, memory);
    if (first) backward.prepare();
    for (int64_t query = 0; query < h.queries; query += kQueries)
      backward.run(query, lesser(kQueries, h.queries - query));
    if (last) backward.finish();
  });
}

}  // namespace rushlight::cpu::RL_ISA
