// The pointwise part of a step of an LSTM or GRU, one element of the state a thread; products are cuBLAS's.
#include <cmath>

#include "cpu/rnn.h"
#include "cuda/channels.h"
#include "cuda/layers.h"
#include "cuda/team.h"

namespace rushlight::cuda {
namespace {

template <class C>
RL_BOTH C sigmoid_gate(C x) {
  return C(1) / (C(1) + std::exp(-x));
}

// Where an element's gates lie: those of the input's and the state's product, and where they go.
template <class S, class Step>
struct GatePlace {
  int64_t h;
  const S *a, *b;
  S* gates;
  RL_BOTH GatePlace(const Step& s, int64_t i) : h(s.hidden) {
    const int64_t n = i / h, k = i % h;
    a = static_cast<const S*>(s.input_gates) + n * s.input_stride + k;
    b = static_cast<const S*>(s.hidden_gates) + n * s.hidden_stride + k;
    gates = static_cast<S*>(s.gates) + n * 4 * h + k;
  }
};

// Gates are rounded to what memory holds before they are used: backward passes read them there.
// before(j): gate j before its activation.
template <class S, class F>
RL_BOTH void lstm_element(const cpu::LstmStep& s, int64_t i, S* gates, F&& before) {
  using C = ComputeOf<S>;
  C g[4];
  for (int j = 0; j < 4; ++j) {
    const C x = before(j);
    gates[j * s.hidden] = number<S>(j == 2 ? std::tanh(x) : sigmoid_gate(x));
    g[j] = number<C>(gates[j * s.hidden]);
  }
  const C cell = g[1] * number<C>(static_cast<const S*>(s.cell)[i]) + g[0] * g[2];
  static_cast<S*>(s.new_cell)[i] = number<S>(cell);
  static_cast<S*>(s.new_hidden)[i] = number<S>(g[3] * std::tanh(cell));
}

template <class S>
struct LstmForward {
  using C = ComputeOf<S>;
  cpu::LstmStep s;
  RL_BOTH void operator()(int64_t i) const {
    const GatePlace<S, cpu::LstmStep> at(s, i);
    lstm_element<S>(s, i, at.gates,
                    [&](int j) { return number<C>(at.a[j * at.h]) + number<C>(at.b[j * at.h]); });
  }
};

template <class S>
struct LstmBackward {
  using C = ComputeOf<S>;
  cpu::LstmStepGradients s;
  RL_BOTH C or_zero(const void* data, int64_t i) const {
    return data ? number<C>(static_cast<const S*>(data)[i]) : C(0);
  }
  RL_BOTH void operator()(int64_t i) const { element(i, or_zero(s.grad_hidden, i)); }
  RL_BOTH void element(int64_t i, C dh) const {
    const int64_t h = s.hidden, at = i / h * 4 * h + i % h;
    const S* gates = static_cast<const S*>(s.gates) + at;
    const C in = number<C>(gates[0]), forget = number<C>(gates[h]), fresh = number<C>(gates[2 * h]),
            out = number<C>(gates[3 * h]);
    const C t = std::tanh(or_zero(s.new_cell, i));
    const C dc = or_zero(s.grad_cell, i) + dh * out * (1 - t * t);
    S* to = static_cast<S*>(s.grad_gates) + at;
    to[0] = number<S>(dc * fresh * in * (1 - in));
    to[h] = number<S>(dc * or_zero(s.cell, i) * forget * (1 - forget));
    to[2 * h] = number<S>(dc * in * (1 - fresh * fresh));
    to[3 * h] = number<S>(dh * t * out * (1 - out));
    static_cast<S*>(s.grad_old_cell)[i] = number<S>(dc * forget);
  }
};

// Few rows: a step and its product are one launch, for eight elements of the state of 16 rows a block.
constexpr int kUnits = 8, kRows = 16, kDepth = 64, kStride = kDepth + 1;
struct LstmTile {
  int64_t unit, row;  // the first ones
  RL_BOTH LstmTile(int64_t index, int64_t hidden) {
    const int64_t across = (hidden + kUnits - 1) / kUnits;
    unit = index % across * kUnits, row = index / across * kRows;
  }
  static int64_t count(int64_t batch, int64_t hidden) {
    return ((hidden + kUnits - 1) / kUnits) * ((batch + kRows - 1) / kRows);
  }
};
// Rows [row, row + kRows) and columns [from, from + kDepth) of a matrix into a tile, zero beyond its ends.
template <class C, class S>
RL_BOTH void read_rows(uint32_t thread, const S* data, int64_t row, int64_t rows, int64_t from,
                       int64_t columns, C* tile) {
  for (int i = static_cast<int>(thread); i < kRows * kDepth; i += kTeamThreads) {
    const int64_t r = row + i / kDepth, k = from + i % kDepth;
    tile[i / kDepth * kStride + i % kDepth] =
        r < rows && k < columns ? number<C>(data[r * columns + k]) : C(0);
  }
}

template <class S>
struct LstmWholeForward {
  using C = ComputeOf<S>;
  static constexpr int kGates = 4 * kUnits, kSumRow = kRows + 1;
  static constexpr size_t kBytes = ((kGates + kRows) * kStride + kGates * kSumRow) * sizeof(C);
  struct Sums {
    C a = 0, b = 0;
  };
  cpu::LstmStep s;
  const S *state, *weight;

  RL_BOTH void operator()(const Team& team) const {
    const LstmTile tile(team.index, s.hidden);
    const int64_t h = s.hidden;
    C *w = reinterpret_cast<C*>(team.memory), *x = w + kGates * kStride, *sums = x + kRows * kStride;
    PerThread<Sums> all;
    team.each(all, [](uint32_t, Sums& mine) { mine = Sums(); });
    for (int64_t from = 0; from < h; from += kDepth) {
      team.each([&](uint32_t t) {
        for (int i = static_cast<int>(t); i < kGates * kDepth; i += kTeamThreads) {
          const int gate = i / kDepth / kUnits, k = i % kDepth;
          const int64_t unit = tile.unit + i / kDepth % kUnits;
          w[i / kDepth * kStride + k] =
              unit < h && from + k < h ? number<C>(weight[(gate * h + unit) * h + from + k]) : C(0);
        }
        read_rows(t, state, tile.row, s.batch, from, h, x);
      });
      team.each(all, [&](uint32_t t, Sums& mine) {  // of one gate, and of rows 8 apart
        const C *left = w + t % kGates * kStride, *right = x + t / kGates * kStride;
        for (int k = 0; k < kDepth; ++k) {
          mine.a += left[k] * right[k];
          mine.b += left[k] * right[k + kRows / 2 * kStride];
        }
      });
    }
    team.each(all, [&](uint32_t t, Sums& mine) {
      C* to = sums + t % kGates * kSumRow + t / kGates;
      to[0] = mine.a, to[kRows / 2] = mine.b;
    });
    team.each([&](uint32_t t) {
      const int64_t unit = tile.unit + t % kUnits, row = tile.row + t / kUnits;
      if (t >= kUnits * kRows || unit >= h || row >= s.batch) return;
      const S* in = static_cast<const S*>(s.input_gates) + row * s.input_stride + unit;
      const C* own = sums + t % kUnits * kSumRow + t / kUnits;
      lstm_element<S>(s, row * h + unit, static_cast<S*>(s.gates) + row * 4 * h + unit,
                      [&](int j) { return number<C>(in[j * h]) + own[j * kUnits * kSumRow]; });
    });
  }
};

// What reaches the state from the step that follows is a product with the gradients of that one's gates.
template <class S>
struct LstmWholeBackward {
  using C = ComputeOf<S>;
  static constexpr int kShares = kTeamThreads / (kUnits * kRows);  // threads to an element
  static constexpr size_t kBytes = (kRows * kStride + kDepth * kUnits + kTeamThreads) * sizeof(C);
  struct Sum {
    C value = 0;
  };
  LstmBackward<S> step;
  const S *later, *weight;  // later: null for the last step

  RL_BOTH void operator()(const Team& team) const {
    const cpu::LstmStepGradients& s = step.s;
    const LstmTile tile(team.index, s.hidden);
    const int64_t h = s.hidden, depth = later ? 4 * h : 0;
    C *x = reinterpret_cast<C*>(team.memory), *w = x + kRows * kStride, *sums = w + kDepth * kUnits;
    PerThread<Sum> all;
    team.each(all, [](uint32_t, Sum& mine) { mine = Sum(); });
    for (int64_t from = 0; from < depth; from += kDepth) {
      team.each([&](uint32_t t) {
        read_rows(t, later, tile.row, s.batch, from, depth, x);
        for (int i = static_cast<int>(t); i < kDepth * kUnits; i += kTeamThreads) {
          const int64_t k = from + i / kUnits, unit = tile.unit + i % kUnits;
          w[i] = k < depth && unit < h ? number<C>(weight[k * h + unit]) : C(0);
        }
      });
      team.each(all, [&](uint32_t t, Sum& mine) {
        const uint32_t element = t % (kUnits * kRows);
        const C *left = x + element / kUnits * kStride, *right = w + element % kUnits;
        for (uint32_t k = t / (kUnits * kRows); k < kDepth; k += kShares)
          mine.value += left[k] * right[k * kUnits];
      });
    }
    team.each(all, [&](uint32_t t, Sum& mine) { sums[t] = mine.value; });
    team.each([&](uint32_t t) {
      const int64_t unit = tile.unit + t % kUnits, row = tile.row + t / kUnits;
      if (t >= kUnits * kRows || unit >= h || row >= s.batch) return;
      C flow = step.or_zero(s.grad_hidden, row * h + unit);
      for (int i = 0; i < kShares; ++i) flow += sums[t + static_cast<uint32_t>(i * kUnits * kRows)];
      step.element(row * h + unit, flow);
    });
  }
};

template <class S>
struct GruForward {
  using C = ComputeOf<S>;
  cpu::GruStep s;
  RL_BOTH void operator()(int64_t i) const {
    const auto [h, a, b, gates] = GatePlace<S, cpu::GruStep>(s, i);
    for (int j = 0; j < 2; ++j)
      gates[j * h] = number<S>(sigmoid_gate(number<C>(a[j * h]) + number<C>(b[j * h])));
    const C reset = number<C>(gates[0]), update = number<C>(gates[h]), share = number<C>(b[2 * h]);
    gates[2 * h] = number<S>(std::tanh(number<C>(a[2 * h]) + reset * share));
    gates[3 * h] = b[2 * h];
    const C fresh = number<C>(gates[2 * h]);
    static_cast<S*>(s.new_state)[i] =
        number<S>((number<C>(static_cast<const S*>(s.state)[i]) - fresh) * update + fresh);
  }
};

template <class S>
struct GruBackward {
  using C = ComputeOf<S>;
  cpu::GruStepGradients s;
  RL_BOTH void operator()(int64_t i) const {
    const int64_t h = s.hidden, n = i / h, k = i % h;
    const S* gates = static_cast<const S*>(s.gates) + n * 4 * h + k;
    const C reset = number<C>(gates[0]), update = number<C>(gates[h]), fresh = number<C>(gates[2 * h]),
            share = number<C>(gates[3 * h]), g = number<C>(static_cast<const S*>(s.grad_state)[i]),
            state = number<C>(static_cast<const S*>(s.state)[i]);
    const C d_fresh = g * (1 - update) * (1 - fresh * fresh);
    S* x = static_cast<S*>(s.grad_input_gates) + n * 3 * h + k;
    S* y = static_cast<S*>(s.grad_hidden_gates) + n * 3 * h + k;
    x[0] = y[0] = number<S>(d_fresh * share * reset * (1 - reset));
    x[h] = y[h] = number<S>(g * (state - fresh) * update * (1 - update));
    x[2 * h] = number<S>(d_fresh);
    y[2 * h] = number<S>(d_fresh * reset);
    static_cast<S*>(s.grad_old_state)[i] = number<S>(g * update);
  }
};

template <template <class> class Kernel, class Step>
void for_each_state(const Launch& at, DType dtype, const Step& step) {
  visit_floating(dtype, [&](auto tag) {
    for_each_index(at, step.batch * step.hidden, Kernel<typename decltype(tag)::type>{step});
  });
}

}  // namespace

void lstm_step(int device, DType dtype, const cpu::LstmStep& step) {
  for_each_state<LstmForward>({device, "lstm"}, dtype, step);
}
void lstm_step_backward(int device, DType dtype, const cpu::LstmStepGradients& step) {
  for_each_state<LstmBackward>({device, "lstm_backward"}, dtype, step);
}
void lstm_whole_step(int device, DType dtype, const cpu::LstmStep& step, const void* state,
                     const void* weight) {
  visit_floating(dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    for_each_team({device, "lstm"}, LstmTile::count(step.batch, step.hidden), LstmWholeForward<S>::kBytes,
                  LstmWholeForward<S>{step, static_cast<const S*>(state), static_cast<const S*>(weight)});
  });
}
void lstm_whole_step_backward(int device, DType dtype, const cpu::LstmStepGradients& step, const void* later,
                              const void* weight) {
  visit_floating(dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    for_each_team({device, "lstm_backward"}, LstmTile::count(step.batch, step.hidden),
                  LstmWholeBackward<S>::kBytes,
                  LstmWholeBackward<S>{{step}, static_cast<const S*>(later), static_cast<const S*>(weight)});
  });
}
void gru_step(int device, DType dtype, const cpu::GruStep& step) {
  for_each_state<GruForward>({device, "gru"}, dtype, step);
}
void gru_step_backward(int device, DType dtype, const cpu::GruStepGradients& step) {
  for_each_state<GruBackward>({device, "gru_backward"}, dtype, step);
}

}  // namespace rushlight::cuda
