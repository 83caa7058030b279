// The recursions of CTC, all states of a step at once, for each instruction set.
#include "cpu/ctc.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu/isa/exp_inl.h"
#include "cpu/scratch.h"
#include "formulas/math.h"

namespace rushlight::cpu::RL_ISA {
namespace {

template <class C>
constexpr C kNever = -std::numeric_limits<C>::infinity();

// Rows of states, with two that are never reached on either side.
template <class C>
class Lattice {
 public:
  explicit Lattice(const CtcSample& s)
      : states_(2 * s.label_count + 1), space_(static_cast<C*>(take_scratch(bytes(4)))) {
    for (int64_t i = 0; i < 4 * row(); ++i) space_[i] = kNever<C>;
  }
  ~Lattice() { give_scratch(space_); }
  Lattice(const Lattice&) = delete;
  int64_t states() const { return states_; }
  C* line(int k) { return space_ + k * row() + 2; }

 private:
  int64_t row() const { return states_ + 4; }
  int64_t bytes(int rows) const { return rows * row() * static_cast<int64_t>(sizeof(C)); }
  int64_t states_;
  C* space_;
};

inline int64_t label_of(const CtcSample& s, int64_t state) {
  return state % 2 == 0 ? s.blank : s.labels[state / 2];
}

// to = log(exp(a) + exp(b) + exp(c + skip)) + emitted, state by state.
template <class C>
void advance(int64_t n, const C* __restrict a, const C* __restrict b, const C* __restrict c,
             const C* __restrict skip, const C* __restrict emitted, C* __restrict to) {
  for (int64_t i = 0; i < n; ++i) {
    const C z = c[i] + skip[i];
    C top = a[i] > b[i] ? a[i] : b[i];
    top = z > top ? z : top;
    const C shift = top == kNever<C> ? C(0) : top;
    to[i] = exp_negative(a[i] - shift) + exp_negative(b[i] - shift) + exp_negative(z - shift);
  }
  for (int64_t i = 0; i < n; ++i) to[i] = formulas::log(to[i]);
  for (int64_t i = 0; i < n; ++i) {
    const C z = c[i] + skip[i];
    C top = a[i] > b[i] ? a[i] : b[i];
    top = z > top ? z : top;
    to[i] += (top == kNever<C> ? C(0) : top) + emitted[i];
  }
}

// Lines of the lattice: 0 and 1 alternate between steps, 2 holds emissions, 3 the skips.
template <class C>
double forward(const CtcSample& s) {
  if (s.steps == 0) return s.label_count == 0 ? 0 : std::numeric_limits<double>::infinity();
  Lattice<C> lattice(s);
  const int64_t n = lattice.states();
  C *emitted = lattice.line(2), *skip = lattice.line(3);
  for (int64_t i = 0; i < n; ++i)
    skip[i] = i >= 3 && i % 2 == 1 && s.labels[i / 2] != s.labels[i / 2 - 1] ? C(0) : kNever<C>;
  for (int64_t t = 0; t < s.steps; ++t) {
    const C* x = static_cast<const C*>(s.log_probs) + t * s.step;
    C *now = lattice.line(t % 2), *before = lattice.line((t + 1) % 2);
    if (t == 0) {
      now[0] = x[s.blank * s.class_step];
      if (n > 1) now[1] = x[s.labels[0] * s.class_step];
    } else {
      for (int64_t i = 0; i < n; ++i) emitted[i] = x[label_of(s, i) * s.class_step];
      advance(n, before, before - 1, before - 2, skip, emitted, now);
    }
    C* alpha = static_cast<C*>(s.alpha) + t * s.width;
    for (int64_t i = 0; i < n; ++i) alpha[i] = now[i];
    for (int64_t i = n; i < s.width; ++i) alpha[i] = kNever<C>;
  }
  const C* last = static_cast<const C*>(s.alpha) + (s.steps - 1) * s.width;
  const C a = last[n - 1], b = n > 1 ? last[n - 2] : kNever<C>, top = std::max(a, b);
  const C shift = top == kNever<C> ? C(0) : top;
  return -static_cast<double>(std::log(std::exp(a - shift) + std::exp(b - shift)) + shift);
}

template <class C>
void backward(const CtcSample& s, double loss, double grad_out, C* grad) {
  const auto scale = static_cast<C>(grad_out), nll = static_cast<C>(loss);
  Lattice<C> lattice(s);
  const int64_t n = lattice.states();
  C *emitted = lattice.line(2), *skip = lattice.line(3);
  for (int64_t i = 0; i < n; ++i)  // from state i to i + 2
    skip[i] = i % 2 == 1 && i + 2 < n && s.labels[i / 2] != s.labels[i / 2 + 1] ? C(0) : kNever<C>;
  const bool impossible = loss == std::numeric_limits<double>::infinity();
  for (int64_t t = s.steps - 1; t >= 0; --t) {
    const C* x = static_cast<const C*>(s.log_probs) + t * s.step;
    C *now = lattice.line(t % 2), *after = lattice.line((t + 1) % 2);
    for (int64_t i = 0; i < n; ++i) emitted[i] = x[label_of(s, i)];
    if (t == s.steps - 1) {
      now[n - 1] = emitted[n - 1];
      if (n > 1) now[n - 2] = emitted[n - 2];
    } else {
      advance(n, after, after + 1, after + 2, skip, emitted, now);
    }
    C* g = grad + t * s.step;
    for (int64_t c = 0; c < s.classes; ++c) g[c] = 0;
    const C* alpha = static_cast<const C*>(s.alpha) + t * s.width;
    // The share of all alignments that pass through the state.
    for (int64_t i = 0; i < n; ++i) g[label_of(s, i)] += std::exp(alpha[i] + now[i] - emitted[i] + nll);
    for (int64_t c = 0; c < s.classes; ++c)
      g[c] = impossible ? std::numeric_limits<C>::quiet_NaN() : (std::exp(x[c]) - g[c]) * scale;
  }
}

}  // namespace

double ctc_forward(DType dtype, const CtcSample& sample) {
  return dtype == DType::Float32 ? forward<float>(sample) : forward<double>(sample);
}
void ctc_backward(DType dtype, const CtcSample& sample, double loss, double grad_out, void* grad) {
  if (dtype == DType::Float32)
    backward(sample, loss, grad_out, static_cast<float*>(grad));
  else
    backward(sample, loss, grad_out, static_cast<double*>(grad));
}

}  // namespace rushlight::cpu::RL_ISA
