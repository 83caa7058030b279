// What attention and its gradients share: masks, operands laid out for tiles in registers.
#pragma once
#include <cstring>
#include <limits>

#include "cpu/attention.h"
#include "cpu/isa/exp_lanes_inl.h"
#include "cpu/transpose.h"
#include "cpu/truth.h"

namespace rushlight::cpu::RL_ISA {
namespace {

inline int64_t up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }
inline int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }

template <class C, class M>
[[gnu::always_inline]] inline void add_mask_row(C* x, int64_t n, const M* mask, int64_t step) {
  for (int64_t j = 0; j < n; ++j) {
    if constexpr (std::is_same_v<M, Truth>)
      x[j] = mask[j * step].byte ? x[j] : -std::numeric_limits<C>::infinity();
    else
      x[j] += static_cast<C>(static_cast<compute_type<M>>(mask[j * step]));
  }
}

// Applies the mask to the scores of one query with keys `first` to `first + n`.
template <class C>
void mask_scores(const AttentionHead& h, int64_t query, int64_t first, int64_t n, C* x) {
  if (!h.mask || n <= 0) return;
  const int64_t start = query * h.mask_row + first * h.mask_column;
  visit_dtype(Concat<TypeList<bool>, FloatTypes>{}, h.mask_dtype, "scaled_dot_product_attention",
              [&](auto tag) {
                const auto* mask = static_cast<const Stored<decltype(tag)>*>(h.mask) + start;
                if (h.mask_column == 1)
                  add_mask_row(x, n, mask, 1);
                else
                  add_mask_row(x, n, mask, h.mask_column);
              });
}

// The keys before this one are seen by the query.
inline int64_t seen(const AttentionHead& h, int64_t query) {
  return h.causal ? lesser(query + 1, h.keys) : h.keys;
}

// Vectors of a panel, but for the last: fewer leave room for more rows of sums, each of which uses what was
// read of the panel.
constexpr int kPanelVectors = kRegisters == 32 ? 4 : 2;
template <class C>
constexpr int64_t kPanel = kPanelVectors * Lanes<C>::count;

// How the columns of a matrix are divided among panels of the same number of vectors.
template <class C>
struct Columns {
  int64_t vectors, panels;
  explicit Columns(int64_t count) {
    const int64_t all = (count + Lanes<C>::count - 1) / Lanes<C>::count;
    panels = (all + kPanelVectors - 1) / kPanelVectors;
    vectors = panels ? (all + panels - 1) / panels : 0;
  }
  int64_t width() const { return vectors * Lanes<C>::count; }
  int64_t padded() const { return panels * width(); }
};

// n elements, converted, and zeros up to `padded`.
template <class T, class State>
[[gnu::always_inline]] inline void copy_row(const T* from, int64_t n, int64_t padded, State* to) {
  using C = compute_type<State>;
  constexpr int64_t lanes = Lanes<C>::count;
  int64_t i = 0;
  if constexpr (std::is_same_v<T, State>) {
    for (; i + lanes <= n; i += lanes) __builtin_memcpy(to + i, from + i, lanes * sizeof(T));
  } else {
    C block[lanes];
    for (; i + lanes <= n; i += lanes) {
      read_lanes(from + i, lanes, block);
      write_lanes(block, lanes, to + i);
    }
  }
  for (; i < n; ++i) to[i] = State(static_cast<compute_type<T>>(from[i]));
  for (; i < padded; ++i) to[i] = State(0);
}

// A vector of n elements, converted, the rest of it zeros.
template <class T>
[[gnu::always_inline]] inline LaneVector<compute_type<T>> lanes_at(const T* x, int64_t n) {
  alignas(kRegisterBytes) compute_type<T> lanes[Lanes<compute_type<T>>::count];
  LaneVector<compute_type<T>> v;
  read_lanes(x, n, lanes);
  load(v, lanes);
  return v;
}

// The sum of a[i] * b[i].
template <class T>
inline compute_type<T> row_product(const T* a, const T* b, int64_t n) {
  using C = compute_type<T>;
  LaneVector<C> sum{};
  for (int64_t i = 0; i < n; i += Lanes<C>::count) sum += lanes_at(a + i, n - i) * lanes_at(b + i, n - i);
  return fold_vector<C>(sum, [](C x, C y) { return x + y; });
}

// Calls f.template operator()<V>() for V = vectors, from 1 to those of a panel.
template <int V = kPanelVectors, class F>
[[gnu::always_inline]] inline void with_vectors(int64_t vectors, F&& f) {
  if constexpr (V > 1)
    if (vectors < V) return with_vectors<V - 1>(vectors, f);
  f.template operator()<V>();
}

// Rows as columns of panels: panel p holds rows p * kPanel and on as [factors of a row][rows], the last one
// only as many vectors as it needs. `strip`: a panel's worth of rows in the type of the products; `depth`:
// the factors of a row, those beyond its width zeros.
template <class T, bool Pairs>
void pack_turned(const T* from, int64_t row, int64_t rows, int64_t width,
                 typename ProductTypes<T, Pairs>::State* strip,
                 typename ProductTypes<T, Pairs>::Factor* panels, int64_t depth) {
  using Type = ProductTypes<T, Pairs>;
  using State = typename Type::State;
  using Factor = typename Type::Factor;
  using C = typename Type::C;
  const TransposeTile transpose = transpose_tile(sizeof(Factor));
  const bool direct = std::is_same_v<T, State> && width == depth * Type::step;
  for (int64_t first = 0; first < rows; first += kPanel<C>) {
    const int64_t n = lesser(kPanel<C>, rows - first), columns = up(n, Lanes<C>::count);
    Factor* panel = panels + first * depth;
    const char* source = reinterpret_cast<const char*>(from + first * row);
    int64_t line = row * static_cast<int64_t>(sizeof(T));
    if (!direct) {
      line = depth * static_cast<int64_t>(sizeof(Factor));
      for (int64_t i = 0; i < n; ++i)
        copy_row(from + (first + i) * row, width, depth * Type::step, strip + i * depth * Type::step);
      source = reinterpret_cast<const char*>(strip);
    }
    transpose(reinterpret_cast<char*>(panel), columns * static_cast<int64_t>(sizeof(Factor)), source, line,
              depth, n);
    for (int64_t i = 0; i < depth && n < columns; ++i)
      __builtin_memset(static_cast<void*>(panel + i * columns + n), 0,
                       static_cast<size_t>(columns - n) * sizeof(Factor));
  }
}

// Rows as they are, in panels of some columns: [rows][columns], or [rows / 2][columns][2]; `depth` of them,
// those beyond the rows zeros.
template <class T, bool Pairs>
void pack_rows(const T* from, int64_t row, int64_t rows, int64_t width,
               typename ProductTypes<T, Pairs>::Factor* panels, int64_t depth) {
  using Type = ProductTypes<T, Pairs>;
  using State = typename Type::State;
  const Columns<typename Type::C> columns(width);
  const int64_t w = columns.width();
  for (int64_t p = 0; p < columns.panels; ++p) {
    const int64_t n = lesser(w, width - p * w);
    State* to = reinterpret_cast<State*>(panels + p * depth * w);
    for (int64_t i = 0; i < depth; ++i, to += w * Type::step) {
      const T* a = from + i * Type::step * row + p * w;
      if constexpr (!Pairs) {
        copy_row(a, n, w, to);
      } else if (2 * i >= rows) {
        std::memset(static_cast<void*>(to), 0, static_cast<size_t>(2 * w) * sizeof(State));
      } else {
        const T* b = a + row;
        const bool both = 2 * i + 1 < rows;
#pragma GCC ivdep
        for (int64_t j = 0; j < n; ++j) to[2 * j] = a[j], to[2 * j + 1] = both ? b[j] : State(0);
        for (int64_t j = 2 * n; j < 2 * w; ++j) to[j] = State(0);
      }
    }
  }
}

// scores[i][j] = scale * rows[i] . keys[key + j] for `count` queries from `first` on and n keys, laid out as
// panels; tiles beyond the diagonal are left out. Scores of different queries lie `stride` apart.
template <class C, class Factor>
void multiply_keys(const AttentionHead& h, int64_t first, int64_t count, const Factor* rows, int64_t depth,
                   const Factor* panels, int64_t key, int64_t n, C scale, C* scores, int64_t stride) {
  constexpr int64_t lanes = Lanes<C>::count;
  for (int64_t column = 0; column < n; column += kPanel<C>) {
    const int64_t begin = key + column, left = lesser(kPanel<C>, h.keys - begin);
    const Factor* panel = panels + begin * depth;
    with_vectors(up(left, lanes) / lanes, [&]<int V>() {
      for_row_groups<V>(0, count, [&]<int R>(int64_t row) {
        if (begin >= seen(h, first + row + R - 1)) return;
        LaneVector<C> sums[R][V];
        multiply_tile<R, V, C>(rows + row * depth, depth, panel, depth, sums);
        for (int r = 0; r < R; ++r)
          for (int v = 0; v < V; ++v) sums[r][v] *= scale;
        for (int r = 0; r < R; ++r)
          __builtin_memcpy(scores + (row + r) * stride + column, sums[r], sizeof(sums[r]));
      });
    });
  }
}

// to[r] += a[r, 0..k) panel[0..k, V vectors) in rows of `width` elements.
template <int R, int V, class C, class Factor>
[[gnu::always_inline]] inline void add_tile(const Factor* a, int64_t row, int64_t column, const Factor* panel,
                                            int64_t k, C* to, int64_t width) {
  LaneVector<C> sums[R][V];
  for (int r = 0; r < R; ++r) __builtin_memcpy(sums[r], to + r * width, sizeof(sums[r]));
  accumulate_tile<R, V, C>(a, row, column, panel, k, sums);
  for (int r = 0; r < R; ++r) __builtin_memcpy(to + r * width, sums[r], sizeof(sums[r]));
}

}  // namespace
}  // namespace rushlight::cpu::RL_ISA
