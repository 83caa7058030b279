// The LSTM step, for each instruction set.
#include "cpu/rnn.h"

#include "core/parallel.h"
#include "formulas/math.h"

namespace rushlight::cpu::RL_ISA {
namespace {

template <class C>
inline C sigmoid(C x) {
  return C(1) / (C(1) + formulas::exp(-x));
}

template <class T>
void step(const LstmStep& s) {
  using C = compute_type<T>;
  const int64_t h = s.hidden;
  parallel_for(0, s.batch, std::max<int64_t>(1, kGrainSize / (16 * std::max<int64_t>(h, 1))),
               [&](int64_t begin, int64_t end) {
                 for (int64_t n = begin; n < end; ++n) {
                   const T *a = static_cast<const T*>(s.input_gates) + n * s.input_stride,
                           *b = static_cast<const T*>(s.hidden_gates) + n * s.hidden_stride;
                   const T* cell = static_cast<const T*>(s.cell) + n * h;
                   T *hidden = static_cast<T*>(s.new_hidden) + n * h,
                     *new_cell = static_cast<T*>(s.new_cell) + n * h;
                   T* gates = static_cast<T*>(s.gates) + n * 4 * h;
                   auto pre = [&](int64_t k) { return static_cast<C>(a[k]) + static_cast<C>(b[k]); };
                   for (int64_t k = 0; k < h; ++k) {
                     const C i = sigmoid(pre(k)), f = sigmoid(pre(h + k)), g = formulas::tanh(pre(2 * h + k)),
                             o = sigmoid(pre(3 * h + k));
                     const C c = f * static_cast<C>(cell[k]) + i * g;
                     gates[k] = T(i), gates[h + k] = T(f), gates[2 * h + k] = T(g), gates[3 * h + k] = T(o);
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
          const T *cell = static_cast<const T*>(s.cell) + n * h,
                  *new_cell = static_cast<const T*>(s.new_cell) + n * h;
          const T* gates = static_cast<const T*>(s.gates) + n * 4 * h;
          T *out = static_cast<T*>(s.grad_gates) + n * 4 * h, *old = static_cast<T*>(s.grad_old_cell) + n * h;
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

}  // namespace

void lstm_step(DType dtype, const LstmStep& s) {
  visit_dtype(FloatTypes{}, dtype, "lstm_cell", [&](auto tag) { step<decltype(tag)>(s); });
}
void lstm_step_backward(DType dtype, const LstmStepGradients& s) {
  visit_dtype(FloatTypes{}, dtype, "lstm_cell_backward", [&](auto tag) { step_backward<decltype(tag)>(s); });
}

}  // namespace rushlight::cpu::RL_ISA
