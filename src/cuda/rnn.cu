// The pointwise part of a step of an LSTM or GRU, one element of the state a thread; products are cuBLAS's.
#include <cmath>

#include "cpu/rnn.h"
#include "cuda/channels.h"
#include "cuda/layers.h"

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
template <class S>
struct LstmForward {
  using C = ComputeOf<S>;
  cpu::LstmStep s;
  RL_BOTH void operator()(int64_t i) const {
    const auto [h, a, b, gates] = GatePlace<S, cpu::LstmStep>(s, i);
    C g[4];
    for (int j = 0; j < 4; ++j) {
      const C x = number<C>(a[j * h]) + number<C>(b[j * h]);
      gates[j * h] = number<S>(j == 2 ? std::tanh(x) : sigmoid_gate(x));
      g[j] = number<C>(gates[j * h]);
    }
    const C cell = g[1] * number<C>(static_cast<const S*>(s.cell)[i]) + g[0] * g[2];
    static_cast<S*>(s.new_cell)[i] = number<S>(cell);
    static_cast<S*>(s.new_hidden)[i] = number<S>(g[3] * std::tanh(cell));
  }
};

template <class S>
struct LstmBackward {
  using C = ComputeOf<S>;
  cpu::LstmStepGradients s;
  RL_BOTH C or_zero(const void* data, int64_t i) const {
    return data ? number<C>(static_cast<const S*>(data)[i]) : C(0);
  }
  RL_BOTH void operator()(int64_t i) const {
    const int64_t h = s.hidden, at = i / h * 4 * h + i % h;
    const S* gates = static_cast<const S*>(s.gates) + at;
    const C in = number<C>(gates[0]), forget = number<C>(gates[h]), fresh = number<C>(gates[2 * h]),
            out = number<C>(gates[3 * h]);
    const C t = std::tanh(or_zero(s.new_cell, i)), dh = or_zero(s.grad_hidden, i);
    const C dc = or_zero(s.grad_cell, i) + dh * out * (1 - t * t);
    S* to = static_cast<S*>(s.grad_gates) + at;
    to[0] = number<S>(dc * fresh * in * (1 - in));
    to[h] = number<S>(dc * or_zero(s.cell, i) * forget * (1 - forget));
    to[2 * h] = number<S>(dc * in * (1 - fresh * fresh));
    to[3 * h] = number<S>(dh * t * out * (1 - out));
    static_cast<S*>(s.grad_old_cell)[i] = number<S>(dc * forget);
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
void gru_step(int device, DType dtype, const cpu::GruStep& step) {
  for_each_state<GruForward>({device, "gru"}, dtype, step);
}
void gru_step_backward(int device, DType dtype, const cpu::GruStepGradients& step) {
  for_each_state<GruBackward>({device, "gru_backward"}, dtype, step);
}

}  // namespace rushlight::cuda
