// The LSTM and GRU steps, for each instruction set.
#include "cpu/rnn.h"

#include "core/parallel.h"
#include "formulas/math.h"

namespace rushlight::cpu::RL_ISA {
namespace {

template <class C>
inline C sigmoid(C x) {
  return C(1) / (C(1) + formulas::exp(-x));
}

inline int64_t step_grain(int64_t hidden) {
  return std::max<int64_t>(1, kGrainSize / (16 * std::max<int64_t>(hidden, 1)));
}

template <class T>
void step(const LstmStep& s) {
  using C = compute_type<T>;
  const int64_t h = s.hidden;
  parallel_for(
      0, s.batch, std::max<int64_t>(1, kGrainSize / (16 * std::max<int64_t>(h, 1))),
      [&](int64_t begin, int64_t end) {
        for (int64_t n = begin; n < end; ++n) {
          const T* __restrict a = static_cast<const T*>(s.input_gates) + n * s.input_stride, * __restrict b =
                                                                                                 static_cast<
                                                                                                     const T*>(
                                                                                                     s.hidden_gates) +
                                                                                                 n * s.hidden_stride;
          const T* __restrict cell = static_cast<const T*>(s.cell) + n * h;
          T* __restrict hidden = static_cast<T*>(s.new_hidden) + n * h, * __restrict new_cell =
                                                                            static_cast<T*>(s.new_cell) +
                                                                            n * h;
          T* __restrict gates = static_cast<T*>(s.gates) + n * 4 * h;
          // One function a loop: so they become calls of its vector version.
          auto pre = [&](int64_t k) { return static_cast<C>(a[k]) + static_cast<C>(b[k]); };
          for (int64_t k = 0; k < 2 * h; ++k) gates[k] = T(sigmoid(pre(k)));
          for (int64_t k = 2 * h; k < 3 * h; ++k) gates[k] = T(formulas::tanh(pre(k)));
          for (int64_t k = 3 * h; k < 4 * h; ++k) gates[k] = T(sigmoid(pre(k)));
          for (int64_t k = 0; k < h; ++k) {
            const C i = gates[k], f = gates[h + k], g = gates[2 * h + k], o = gates[3 * h + k];
            const C c = f * static_cast<C>(cell[k]) + i * g;
            new_cell[k] = T(c);
            hidden[k] = T(o * formulas::tanh(c));
          }
        }
      });
}

template <class T>
void step_backward(const LstmStepGradients& s) {
  using C = compute_type<T>;
  const int64_t h = s.hidden;
  parallel_for(
      0, s.batch, std::max<int64_t>(1, kGrainSize / (8 * std::max<int64_t>(h, 1))),
      [&](int64_t begin, int64_t end) {
        for (int64_t n = begin; n < end; ++n) {
          const T* gh = s.grad_hidden ? static_cast<const T*>(s.grad_hidden) + n * h : nullptr;
          const T* gc = s.grad_cell ? static_cast<const T*>(s.grad_cell) + n * h : nullptr;
          const T* __restrict cell = static_cast<const T*>(s.cell) + n * h, * __restrict new_cell =
                                                                                static_cast<const T*>(
                                                                                    s.new_cell) +
                                                                                n * h;
          const T* __restrict gates = static_cast<const T*>(s.gates) + n * 4 * h;
          T* __restrict out = static_cast<T*>(s.grad_gates) + n * 4 * h, * __restrict old =
                                                                             static_cast<T*>(
                                                                                 s.grad_old_cell) +
                                                                             n * h;
          for (int64_t k = 0; k < h; ++k) {
            const C i = gates[k], f = gates[h + k], g = gates[2 * h + k], o = gates[3 * h + k];
            const C t = formulas::tanh(static_cast<C>(new_cell[k])), dh = gh ? static_cast<C>(gh[k]) : C(0);
            const C dc = (gc ? static_cast<C>(gc[k]) : C(0)) + dh * o * (1 - t * t);
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
      const T* __restrict a = static_cast<const T*>(s.input_gates) + n * s.input_stride;
      const T* __restrict b = static_cast<const T*>(s.hidden_gates) + n * s.hidden_stride;
      const T* __restrict state = static_cast<const T*>(s.state) + n * h;
      T* __restrict to = static_cast<T*>(s.new_state) + n * h;
      T* __restrict gates = static_cast<T*>(s.gates) + n * 4 * h;
      for (int64_t k = 0; k < h; ++k) gates[k] = T(sigmoid(static_cast<C>(a[k]) + static_cast<C>(b[k])));
      for (int64_t k = h; k < 2 * h; ++k) gates[k] = T(sigmoid(static_cast<C>(a[k]) + static_cast<C>(b[k])));
      for (int64_t k = 0; k < h; ++k) {
        const C r = static_cast<C>(gates[k]), y = static_cast<C>(b[2 * h + k]);
        gates[2 * h + k] = T(formulas::tanh(static_cast<C>(a[2 * h + k]) + r * y));
        gates[3 * h + k] = T(y);
      }
      for (int64_t k = 0; k < h; ++k) {
        const C z = static_cast<C>(gates[h + k]), fresh = static_cast<C>(gates[2 * h + k]);
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
