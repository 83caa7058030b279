// The steps of LSTM layers, for each instruction set.
#include "cpu/lstm_layer.h"

#include "cpu/isa/gates_lanes_inl.h"
#include "cpu/isa/tile_inl.h"
#include "cpu/isa/tile_registers_inl.h"
#include "cpu/transpose.h"

namespace rushlight::cpu::RL_ISA {
namespace {

template <class C>
constexpr int64_t kUnits = Lanes<C>::count;

// --- elements to and from the computing type

template <class To, class From>
void convert(const From* from, int64_t n, To* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = from ? To(static_cast<compute_type<To>>(from[i])) : To(0);
}
// The same for a row of the scratch, where products and vectors read beyond the end.
template <class To, class From>
void convert_padded(const From* from, int64_t n, int64_t padded, To* to) {
  convert(from, n, to);
  for (int64_t i = n; i < padded; ++i) to[i] = To(0);
}

int64_t row_of(const LstmSteps& s, int64_t k, int64_t b) { return s.start[s.at(k)] + b * s.row_step; }
// The sequences among `rows` that have a step k: from rows.begin to here. Step -1 and the one after the last
// have none.
int64_t live_end(const LstmSteps& s, int64_t k, Span rows) {
  const int64_t n = k < 0 || k >= s.count ? 0 : s.active[s.at(k)];
  return n < rows.begin ? rows.begin : n < rows.end ? n : rows.end;
}

// --- products

// Calls f(first, sums) with a.panel of some rows at a time: sums[R][V], rows that lie `stride` factors apart;
// expect(rows) before these are computed.
template <int V, class C, class Factor, class Expect, class F>
void multiply_rows([[maybe_unused]] bool tiles, Span rows, const Factor* a, int64_t stride,
                   const Factor* panel, int64_t depth, Expect&& expect, F&& f) {
#if defined(__AVX512BW__)
  constexpr int64_t kTileFactors = 16;
  if constexpr (std::is_same_v<Factor, FactorPair>)
    if (tiles) {
      constexpr int64_t kRows = kLstmTileRows, kColumns = V * Lanes<C>::count, kFactor = sizeof(Factor);
      const int64_t parts = depth / kTileFactors, done = parts * kTileFactors;
      const TileSizes sizes;
      alignas(kTileBytes) C products[kRows * kColumns];
      for (int64_t begin = rows.begin; begin < rows.end; begin += kRows) {
        const int64_t end = begin + kRows < rows.end ? begin + kRows : rows.end;
        expect(Span{begin, end});
        multiply_pairs<false>({a + begin * stride, stride * kFactor, panel, kColumns * kFactor, parts},
                              end - begin, kColumns, products, kColumns * static_cast<int64_t>(sizeof(C)));
        for_row_groups<V>(begin, end, [&]<int R>(int64_t first) {
          LaneVector<C> sums[R][V];
          __builtin_memcpy(sums, products + (first - begin) * kColumns, sizeof(sums));
          accumulate_tile<R, V, C>(a + first * stride + done, stride, 1, panel + done * kColumns,
                                   depth - done, sums);
          f.template operator()<R>(first, sums);
        });
      }
      return;
    }
#endif
  for_row_groups<V>(rows.begin, rows.end, [&]<int R>(int64_t first) {
    expect(Span{first, first + R});
    LaneVector<C> sums[R][V];
    multiply_tile<R, V, C>(a + first * stride, stride, panel, depth, sums);
    f.template operator()<R>(first, sums);
  });
}

// --- layout of the weight

int64_t forward_width(DType dtype, int64_t) {
  return 4 * (kRegisterBytes / (dtype == DType::Float64 ? 8 : 4));
}

// Panels of four vectors, unless many columns would be empty.
int64_t backward_width(DType dtype, int64_t hidden) {
  const int64_t lanes = kRegisterBytes / (dtype == DType::Float64 ? 8 : 4);
  const int64_t vectors = (hidden + lanes - 1) / lanes;
  for (int64_t width : {4, 2})
    if (((vectors + width - 1) / width * width - vectors) * 8 <= vectors) return width * lanes;
  return lanes;
}

// panel[k][gate][unit] = weight[gate][unit][k], or [k / 2][gate][unit][k % 2].
template <class T, bool Pairs>
void pack_forward_as(const LstmLayer& s, const LstmScratch& m, Span panels) {
  using Type = ProductTypes<T, Pairs>;
  using State = typename Type::State;
  constexpr int64_t lanes = kUnits<compute_type<T>>, step = Type::step;
  const int64_t h = s.hidden, depth = (h + step - 1) / step * step;
  const bool turn = std::is_same_v<T, State> && depth == h;  // factors lie in the weight as they are needed
  const TransposeTile transpose = transpose_tile(sizeof(typename Type::Factor));
  for (int64_t p = panels.begin; p < panels.end; ++p)
    for (int64_t gate = 0; gate < 4; ++gate) {
      auto* panel = static_cast<State*>(m.weight) + p * depth * m.width + gate * lanes * step;
      const T* weight = static_cast<const T*>(s.weight) + (gate * h + p * lanes) * h;
      const int64_t units = turn ? (h - p * lanes < lanes ? h - p * lanes : lanes) : 0;
      auto at = [&](int64_t k, int64_t unit) -> State& {
        return panel[k / step * step * m.width + unit * step + k % step];
      };
      if (turn)
        transpose(
            reinterpret_cast<char*>(panel), m.width * static_cast<int64_t>(sizeof(typename Type::Factor)),
            reinterpret_cast<const char*>(weight), h * static_cast<int64_t>(sizeof(T)), depth / step, units);
      for (int64_t unit = units; unit < lanes; ++unit)
        for (int64_t k = 0; k < depth; ++k)
          at(k, unit) = k < h && p * lanes + unit < h
                            ? State(static_cast<compute_type<T>>(weight[unit * h + k]))
                            : State(0);
    }
}

// panel[k][unit] = weight[k][unit], or [k / 2][unit][k % 2].
template <class T, bool Pairs>
void pack_backward_as(const LstmLayerGradients& s, const LstmScratch& m, Span panels) {
  using C = compute_type<T>;
  using Type = ProductTypes<T, Pairs>;
  constexpr int64_t step = Type::step;
  const int64_t h = s.hidden;
  for (int64_t p = panels.begin; p < panels.end; ++p) {
    auto* panel = static_cast<typename Type::State*>(m.weight) + p * 4 * h * m.width;
    const int64_t first = p * m.width, n = h - first < m.width ? h - first : m.width;
    for (int64_t k = 0; k < 4 * h; k += step) {
      const T* w = static_cast<const T*>(s.weight) + first + k * h;
      auto* to = panel + k * m.width;
      if constexpr (Pairs) {
#pragma GCC ivdep
        for (int64_t j = 0; j < n; ++j) to[2 * j] = w[j], to[2 * j + 1] = w[h + j];
      } else {
#pragma GCC ivdep
        for (int64_t j = 0; j < n; ++j) to[j] = static_cast<C>(w[j]);
      }
      for (int64_t j = n * step; j < m.width * step; ++j) to[j] = C(0);
    }
  }
}

// --- forward

template <class T, bool Pairs>
void enter_forward_as(const LstmLayer& s, const LstmScratch& m, int64_t k, Span rows) {
  using C = compute_type<T>;
  const int64_t h = s.hidden, before = live_end(s, k - 1, rows), now = live_end(s, k, rows);
  auto* state = static_cast<typename ProductTypes<T, Pairs>::State*>(m.states[k & 1]);
  C* cell = static_cast<C*>(m.cell);
  for (int64_t b = before; b < now; ++b) {
    convert_padded(static_cast<const T*>(s.hx) + b * h, h, m.padded, state + b * m.padded);
    convert_padded(static_cast<const T*>(s.cx) + b * h, h, m.padded, cell + b * m.padded);
  }
  for (int64_t b = now; b < before; ++b) {
    convert(state + b * m.padded, h, static_cast<T*>(s.last_hidden) + b * h);
    convert(cell + b * m.padded, h, static_cast<T*>(s.last_cell) + b * h);
  }
}

template <class T, class C>
[[gnu::always_inline]] inline LaneVector<C> read_vector(const T* from, int64_t n) {
  alignas(kRegisterBytes) C lanes[kUnits<C>];
  read_lanes(from, n, lanes);
  LaneVector<C> v;
  load(v, lanes);
  return v;
}
template <class T, class C>
[[gnu::always_inline]] inline void write_vector(const LaneVector<C>& v, int64_t n, T* to) {
  alignas(kRegisterBytes) C lanes[kUnits<C>];
  __builtin_memcpy(lanes, &v, sizeof(v));
  write_lanes(lanes, n, to);
}

// One sequence, the units of one panel. gates: before activation, without the input's share.
template <class T, class C, class State>
[[gnu::always_inline]] inline void finish_gates(const LstmLayer& s, int64_t row, int64_t unit,
                                                LaneVector<C> (&gates)[4], C* __restrict cell, State* state) {
  constexpr int64_t lanes = kUnits<C>;
  const int64_t h = s.hidden, n = h - unit < lanes ? h - unit : lanes;
  for (int64_t gate = 0; gate < 4; ++gate)
    gates[gate] += read_vector<T, C>(static_cast<const T*>(s.projected) + (row * 4 + gate) * h + unit, n);
  LaneVector<C> c;
  load(c, cell);
  const Fraction<C> forget = sigmoid_fraction(gates[1]);
  const Both<C> fresh = both<C>(sigmoid_fraction(gates[0]), tanh_fraction(gates[2]));
  const LaneVector<C> f = forget.over / forget.under;
  c = f * c + fresh.product;
  __builtin_memcpy(cell, &c, sizeof(c));
  const Both<C> out = both<C>(sigmoid_fraction(gates[3]), tanh_fraction(c));
  write_vector<State, C>(out.product, lanes, state);
  write_vector<T, C>(out.product, n, static_cast<T*>(s.output) + row * h + unit);
  if (!s.gates) return;
  write_vector<C, C>(c, n, static_cast<C*>(s.cells) + row * h + unit);
  T* kept = static_cast<T*>(s.gates) + row * 4 * h + unit;
  write_vector<T, C>(fresh.a, n, kept);
  write_vector<T, C>(f, n, kept + h);
  write_vector<T, C>(fresh.b, n, kept + 2 * h);
  write_vector<T, C>(out.a, n, kept + 3 * h);
}

// The input's share comes from far away and in small pieces, which no processor foresees.
template <class T>
[[gnu::always_inline]] inline void expect_gates(const LstmLayer& s, int64_t row, int64_t unit) {
  for (int64_t gate = 0; gate < 4; ++gate)
    __builtin_prefetch(static_cast<const T*>(s.projected) + (row * 4 + gate) * s.hidden + unit);
}

template <class T, bool Pairs>
void forward_as(const LstmLayer& s, const LstmScratch& m, int64_t k, Span rows, Span panels) {
  using Type = ProductTypes<T, Pairs>;
  using C = typename Type::C;
  using Factor = typename Type::Factor;
  constexpr int64_t lanes = kUnits<C>;
  const int64_t depth = (s.hidden + Type::step - 1) / Type::step, stride = m.padded / Type::step;
  const auto* old = static_cast<const Factor*>(m.states[k & 1]);
  auto* fresh = static_cast<typename Type::State*>(m.states[(k + 1) & 1]);
  C* cell = static_cast<C*>(m.cell);
  const int64_t live = live_end(s, k, rows);
  for (int64_t p = panels.begin; p < panels.end; ++p) {
    const Factor* panel = static_cast<const Factor*>(m.weight) + p * depth * m.width;
    const auto expect = [&](Span near) {
      for (int64_t b = near.begin; b < near.end; ++b) expect_gates<T>(s, row_of(s, k, b), p * lanes);
    };
    multiply_rows<4, C>(m.tiles, {rows.begin, live}, old, stride, panel, depth, expect,
                        [&]<int R>(int64_t first, auto& sums) {
                          for (int r = 0; r < R; ++r) {
                            const int64_t b = first + r, place = b * m.padded + p * lanes;
                            finish_gates<T, C>(s, row_of(s, k, b), p * lanes, sums[r], cell + place,
                                               fresh + place);
                          }
                        });
  }
}

// --- backward

// Steps are left in the order k = count - 1 ... 0; `k` = -1 comes after the last.
template <class T>
void enter_backward_as(const LstmLayerGradients& s, const LstmScratch& m, int64_t k, Span rows) {
  using C = compute_type<T>;
  const int64_t h = s.hidden, before = live_end(s, k + 1, rows), now = live_end(s, k, rows);
  C *state = static_cast<C*>(m.states[0]), *cell = static_cast<C*>(m.cell);
  auto incoming = [&](const void* grad, int64_t b) {
    return grad ? static_cast<const T*>(grad) + b * h : nullptr;
  };
  for (int64_t b = before; b < now; ++b) {
    convert_padded(incoming(s.grad_hidden, b), h, m.padded, state + b * m.padded);
    convert_padded(incoming(s.grad_cell, b), h, m.padded, cell + b * m.padded);
  }
  for (int64_t b = now; b < before; ++b) {
    convert(state + b * m.padded, h, static_cast<T*>(s.grad_hx) + b * h);
    convert(cell + b * m.padded, h, static_cast<T*>(s.grad_cx) + b * h);
  }
}

// The gradients of one sequence's gates; the cell's gradient becomes that of the cell before.
template <class T, class C, class B, class State>
[[gnu::always_inline]] inline void gate_gradients(const LstmLayerGradients& s, int64_t row, const B* before,
                                                  const C* state, C* cell, State* grads) {
  constexpr int64_t lanes = kUnits<C>;
  const int64_t h = s.hidden;
  const T* saved = static_cast<const T*>(s.gates) + row * 4 * h;
  T* result = static_cast<T*>(s.grad_gates) + row * 4 * h;
  for (int64_t unit = 0; unit < h; unit += lanes) {
    const int64_t n = h - unit < lanes ? h - unit : lanes;
    using V = LaneVector<C>;
    const auto gate = [&](int64_t k) { return read_vector<T, C>(saved + k * h + unit, n); };
    const V i = gate(0), f = gate(1), g = gate(2), o = gate(3);
    const V old = read_vector<B, C>(before + unit, n);
    V dh = read_vector<C, C>(state + unit, n);
    if (s.grad_output) dh += read_vector<T, C>(static_cast<const T*>(s.grad_output) + row * h + unit, n);
    const Fraction<C> squashed =
        tanh_fraction(read_vector<C, C>(static_cast<const C*>(s.cells) + row * h + unit, n));
    const V t = squashed.over / squashed.under;
    const V d = read_vector<C, C>(cell + unit, n) + dh * o * (C(1) - t * t);
    const V result_of[4] = {d * g * i * (C(1) - i), d * old * f * (C(1) - f), d * i * (C(1) - g * g),
                            dh * t * o * (C(1) - o)};
    write_vector<C, C>(d * f, n, cell + unit);
    for (int64_t k = 0; k < 4; ++k) {
      write_vector<State, C>(result_of[k], n, grads + k * h + unit);
      write_vector<T, C>(result_of[k], n, result + k * h + unit);
    }
  }
}

template <class T, bool Pairs>
void gates_backward_as(const LstmLayerGradients& s, const LstmScratch& m, int64_t k, Span rows) {
  using C = compute_type<T>;
  const int64_t h = s.hidden, live = live_end(s, k, rows), older = live_end(s, k - 1, rows);
  for (int64_t b = rows.begin; b < live; ++b) {
    const C* state = static_cast<const C*>(m.states[0]) + b * m.padded;
    C* cell = static_cast<C*>(m.cell) + b * m.padded;
    auto* grads = static_cast<typename ProductTypes<T, Pairs>::State*>(m.states[1]) + b * 4 * h;
    if (b < older)
      gate_gradients<T>(s, row_of(s, k, b), static_cast<const C*>(s.cells) + row_of(s, k - 1, b) * h, state,
                        cell, grads);
    else
      gate_gradients<T>(s, row_of(s, k, b), static_cast<const T*>(s.cx) + b * h, state, cell, grads);
  }
}

template <int V, class C, class Factor>
void states_backward_in(const LstmLayerGradients& s, const LstmScratch& m, Span rows, Span panels) {
  const auto* grads = static_cast<const Factor*>(m.states[1]);
  const int64_t products = std::is_same_v<C, Factor> ? 4 * s.hidden : 2 * s.hidden;
  for (int64_t p = panels.begin; p < panels.end; ++p) {
    const Factor* panel = static_cast<const Factor*>(m.weight) + p * products * m.width;
    multiply_rows<V, C>(
        m.tiles, rows, grads, products, panel, products, [](Span) {},
        [&]<int R>(int64_t first, auto& sums) {
          for (int r = 0; r < R; ++r)
            __builtin_memcpy(static_cast<C*>(m.states[0]) + (first + r) * m.padded + p * m.width, sums[r],
                             sizeof(sums[r]));
        });
  }
}

template <class T, bool Pairs>
void states_backward_as(const LstmLayerGradients& s, const LstmScratch& m, int64_t k, Span rows,
                        Span panels) {
  using C = compute_type<T>;
  using Factor = typename ProductTypes<T, Pairs>::Factor;
  const Span live{rows.begin, live_end(s, k, rows)};
  switch (m.width / kUnits<C>) {
    case 4:
      return states_backward_in<4, C, Factor>(s, m, live, panels);
    case 2:
      return states_backward_in<2, C, Factor>(s, m, live, panels);
    default:
      return states_backward_in<1, C, Factor>(s, m, live, panels);
  }
}

// --- by dtype

// f<type, pairs>().
template <class F>
void with_types(DType dtype, bool pairs, F&& f) {
#if defined(__AVX512BW__)
  if (pairs) return f.template operator()<BFloat16, true>();
#endif
  (void)pairs;
  visit_dtype(FloatTypes{}, dtype, "lstm", [&](auto tag) { f.template operator()<decltype(tag), false>(); });
}
void pack_forward(const LstmLayer& s, const LstmScratch& m, Span panels) {
  with_types(s.dtype, m.pairs, [&]<class T, bool Pairs>() { pack_forward_as<T, Pairs>(s, m, panels); });
}
void pack_backward(const LstmLayerGradients& s, const LstmScratch& m, Span panels) {
  with_types(s.dtype, m.pairs, [&]<class T, bool Pairs>() { pack_backward_as<T, Pairs>(s, m, panels); });
}
void enter_forward(const LstmLayer& s, const LstmScratch& m, int64_t k, Span rows) {
  with_types(s.dtype, m.pairs, [&]<class T, bool Pairs>() { enter_forward_as<T, Pairs>(s, m, k, rows); });
}
void enter_backward(const LstmLayerGradients& s, const LstmScratch& m, int64_t k, Span rows) {
  with_types(s.dtype, m.pairs, [&]<class T, bool Pairs>() { enter_backward_as<T>(s, m, k, rows); });
}
void forward(const LstmLayer& s, const LstmScratch& m, int64_t k, Span rows, Span panels) {
  with_types(s.dtype, m.pairs, [&]<class T, bool Pairs>() { forward_as<T, Pairs>(s, m, k, rows, panels); });
}
void gates_backward(const LstmLayerGradients& s, const LstmScratch& m, int64_t k, Span rows) {
  with_types(s.dtype, m.pairs, [&]<class T, bool Pairs>() { gates_backward_as<T, Pairs>(s, m, k, rows); });
}
void states_backward(const LstmLayerGradients& s, const LstmScratch& m, int64_t k, Span rows, Span panels) {
  with_types(s.dtype, m.pairs,
             [&]<class T, bool Pairs>() { states_backward_as<T, Pairs>(s, m, k, rows, panels); });
}

}  // namespace

LstmKernels lstm_kernels() {
  return {has_pair_products(), forward_width, pack_forward, enter_forward, forward};
}
LstmBackwardKernels lstm_backward_kernels() {
  return {has_pair_products(), backward_width, pack_backward,
          enter_backward,      gates_backward, states_backward};
}

}  // namespace rushlight::cpu::RL_ISA
