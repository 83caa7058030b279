// The LSTM and GRU steps, for each instruction set.
#include "cpu/rnn.h"

#include "core/parallel.h"
#include "cpu/isa/gates_inl.h"

namespace rushlight::cpu::RL_ISA {
namespace {

inline int64_t step_grain(int64_t hidden) {
  return std::max<int64_t>(1, kGrainSize / (16 * std::max<int64_t>(hidden, 1)));
}

template <class T>
void step(const LstmStep& s) {
  using C = compute_type<T>;
  const int64_t h = s.hidden;
  parallel_for(0, s.batch, step_grain(h), [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const T* a = static_cast<const T*>(s.input_gates) + n * s.input_stride;
      const T* b = static_cast<const T*>(s.hidden_gates) + n * s.hidden_stride;
      const T* cell = static_cast<const T*>(s.cell) + n * h;
      T *hidden = static_cast<T*>(s.new_hidden) + n * h, *new_cell = static_cast<T*>(s.new_cell) + n * h;
      T* gates = static_cast<T*>(s.gates) + n * 4 * h;
      auto pre = [&](int64_t k) { return static_cast<C>(a[k]) + static_cast<C>(b[k]); };
#pragma GCC ivdep
      for (int64_t k = 0; k < 2 * h; ++k) gates[k] = T(sigmoid_gate(pre(k)));
#pragma GCC ivdep
      for (int64_t k = 2 * h; k < 3 * h; ++k) gates[k] = T(tanh_gate(pre(k)));
#pragma GCC ivdep
      for (int64_t k = 3 * h; k < 4 * h; ++k) gates[k] = T(sigmoid_gate(pre(k)));
#pragma GCC ivdep
      for (int64_t k = 0; k < h; ++k) {
        const C i = gates[k], f = gates[h + k], g = gates[2 * h + k], o = gates[3 * h + k];
        const C c = f * static_cast<C>(cell[k]) + i * g;
        new_cell[k] = T(c);
        hidden[k] = T(o * tanh_gate(c));
      }
    }
  });
}

// Either gradient may be null: it is 0 then.
template <class T>
void step_backward(const LstmStepGradients& s) {
  using C = compute_type<T>;
  const int64_t h = s.hidden;
  parallel_for(0, s.batch, step_grain(h), [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const T* cell = static_cast<const T*>(s.cell) + n * h;
      const T* new_cell = static_cast<const T*>(s.new_cell) + n * h;
      const T* gates = static_cast<const T*>(s.gates) + n * 4 * h;
      const T* gh = s.grad_hidden ? static_cast<const T*>(s.grad_hidden) + n * h : cell;
      const T* gc = s.grad_cell ? static_cast<const T*>(s.grad_cell) + n * h : cell;
      const C from_hidden = s.grad_hidden ? 1 : 0, from_cell = s.grad_cell ? 1 : 0;
      T *out = static_cast<T*>(s.grad_gates) + n * 4 * h, *old = static_cast<T*>(s.grad_old_cell) + n * h;
#pragma GCC ivdep
      for (int64_t k = 0; k < h; ++k) {
        const C i = gates[k], f = gates[h + k], g = gates[2 * h + k], o = gates[3 * h + k];
        const C t = tanh_gate(static_cast<C>(new_cell[k]));
        const C dh = from_hidden != 0 ? static_cast<C>(gh[k]) : C(0);
        const C dc = (from_cell != 0 ? static_cast<C>(gc[k]) : C(0)) + dh * o * (1 - t * t);
        out[k] = T(dc * g * i * (1 - i));
        out[h + k] = T(dc * static_cast<C>(cell[k]) * f * (1 - f));
        out[2 * h + k] = T(dc * i * (1 - g * g));
        out[3 * h + k] = T(dh * t * o * (1 - o));
        old[k] = T(dc * f);
      }
    }
  });
}

template <class T>
void gru(const GruStep& s) {
  using C = compute_type<T>;
  const int64_t h = s.hidden;
  parallel_for(0, s.batch, step_grain(h), [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const T* a = static_cast<const T*>(s.input_gates) + n * s.input_stride;
      const T* b = static_cast<const T*>(s.hidden_gates) + n * s.hidden_stride;
      const T* state = static_cast<const T*>(s.state) + n * h;
      T* to = static_cast<T*>(s.new_state) + n * h;
      T* gates = static_cast<T*>(s.gates) + n * 4 * h;
#pragma GCC ivdep
      for (int64_t k = 0; k < 2 * h; ++k)
        gates[k] = T(sigmoid_gate(static_cast<C>(a[k]) + static_cast<C>(b[k])));
#pragma GCC ivdep
      for (int64_t k = 0; k < h; ++k) {
        const C r = static_cast<C>(gates[k]), z = static_cast<C>(gates[h + k]),
                y = static_cast<C>(b[2 * h + k]);
        const C fresh = static_cast<C>(T(tanh_gate(static_cast<C>(a[2 * h + k]) + r * y)));
        gates[2 * h + k] = T(fresh);
        gates[3 * h + k] = T(y);
        to[k] = T((static_cast<C>(state[k]) - fresh) * z + fresh);
      }
    }
  });
}

template <class T>
void gru_backward(const GruStepGradients& s) {
  using C = compute_type<T>;
  const int64_t h = s.hidden;
  parallel_for(0, s.batch, step_grain(h), [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const T* __restrict grad = static_cast<const T*>(s.grad_state) + n * h;
      const T* __restrict state = static_cast<const T*>(s.state) + n * h;
      const T* __restrict gates = static_cast<const T*>(s.gates) + n * 4 * h;
      T* __restrict x = static_cast<T*>(s.grad_input_gates) + n * 3 * h;
      T* __restrict y = static_cast<T*>(s.grad_hidden_gates) + n * 3 * h;
      T* __restrict old = static_cast<T*>(s.grad_old_state) + n * h;
#pragma GCC ivdep
      for (int64_t k = 0; k < h; ++k) {
        const C r = static_cast<C>(gates[k]), z = static_cast<C>(gates[h + k]),
                fresh = static_cast<C>(gates[2 * h + k]), share = static_cast<C>(gates[3 * h + k]);
        const C g = static_cast<C>(grad[k]);
        const C d_fresh = g * (1 - z) * (1 - fresh * fresh);
        const C d_reset = d_fresh * share * r * (1 - r);
        const C d_update = g * (static_cast<C>(state[k]) - fresh) * z * (1 - z);
        x[k] = y[k] = T(d_reset);
        x[h + k] = y[h + k] = T(d_update);
        x[2 * h + k] = T(d_fresh);
        y[2 * h + k] = T(d_fresh * r);
        old[k] = T(g * z);
      }
    }
  });
}

}  // namespace

void gru_step(DType dtype, const GruStep& s) {
  visit_dtype(FloatTypes{}, dtype, "gru_cell", [&](auto tag) { gru<decltype(tag)>(s); });
}
void gru_step_backward(DType dtype, const GruStepGradients& s) {
  visit_dtype(FloatTypes{}, dtype, "gru_cell_backward", [&](auto tag) { gru_backward<decltype(tag)>(s); });
}

void lstm_step(DType dtype, const LstmStep& s) {
  visit_dtype(FloatTypes{}, dtype, "lstm_cell", [&](auto tag) { step<decltype(tag)>(s); });
}
void lstm_step_backward(DType dtype, const LstmStepGradients& s) {
  visit_dtype(FloatTypes{}, dtype, "lstm_cell_backward", [&](auto tag) { step_backward<decltype(tag)>(s); });
}

}  // namespace rushlight::cpu::RL_ISA
