// The inner loops of fused optimizer steps.
#include "cpu/optimizer.h"

#include <algorithm>
#include <cmath>

namespace rushlight::cpu::RL_ISA {
namespace {

template <class T>
struct ComputeType {
  using type = float;
};
template <>
struct ComputeType<double> {
  using type = double;
};

template <class T>
void sgd(const StepArrays& a, const SgdOptions& o, int64_t begin, int64_t end) {
  using C = typename ComputeType<T>::type;
  T* __restrict param = static_cast<T*>(a.param);
  const T* __restrict grad = static_cast<const T*>(a.grad);
  T* __restrict buffer = static_cast<T*>(a.first);
  const C lr = static_cast<C>(o.lr), momentum = static_cast<C>(o.momentum), sign = o.maximize ? C(-1) : C(1);
  const C keep = o.first_step ? C(1) : static_cast<C>(1 - o.dampening);
  const C decay = static_cast<C>(o.weight_decay), old = o.first_step ? C(0) : momentum;
  for (int64_t i = begin; i < end; ++i) {
    const C p = static_cast<C>(param[i]);
    C g = sign * static_cast<C>(grad[i]);
    if (o.weight_decay != 0) g += decay * p;
    if (buffer) {
      // A fresh buffer holds anything, also NaN: it must not be multiplied by zero.
      const C b = o.first_step ? g : old * static_cast<C>(buffer[i]) + keep * g;
      buffer[i] = static_cast<T>(b);
      g = o.nesterov ? g + momentum * b : b;
    }
    param[i] = static_cast<T>(p - lr * g);
  }
}

template <class T>
void adam(const StepArrays& a, const AdamOptions& o, int64_t begin, int64_t end) {
  using C = typename ComputeType<T>::type;
  T* __restrict param = static_cast<T*>(a.param);
  const T* __restrict grad = static_cast<const T*>(a.grad);
  T* __restrict mean = static_cast<T*>(a.first);
  T* __restrict square = static_cast<T*>(a.second);
  T* __restrict largest = static_cast<T*>(a.largest);
  const C sign = o.maximize ? C(-1) : C(1), decay = static_cast<C>(o.decoupled ? 0 : o.weight_decay);
  const C shrink = static_cast<C>(o.decoupled ? 1 - o.lr * o.weight_decay : 1);
  const C weight1 = static_cast<C>(1 - o.beta1), beta2 = static_cast<C>(o.beta2),
          weight2 = static_cast<C>(1 - o.beta2);
  const C step = static_cast<C>(o.lr / a.correction1), root = static_cast<C>(std::sqrt(a.correction2));
  const C eps = static_cast<C>(o.eps);
  for (int64_t i = begin; i < end; ++i) {
    const C p = shrink * static_cast<C>(param[i]);
    C g = sign * static_cast<C>(grad[i]);
    if (decay != 0) g += decay * p;
    const C m0 = static_cast<C>(mean[i]), m = m0 + weight1 * (g - m0);
    C v = beta2 * static_cast<C>(square[i]) + weight2 * g * g;
    mean[i] = static_cast<T>(m);
    square[i] = static_cast<T>(v);
    if (largest) {
      const C before = static_cast<C>(largest[i]);
      v = before > v ? before : v;
      largest[i] = static_cast<T>(v);
    }
    param[i] = static_cast<T>(p - step * m / (std::sqrt(v) / root + eps));
  }
}

template <class T>
void unscale(const StepArrays& a, double scale, int64_t begin, int64_t end) {
  using C = typename ComputeType<T>::type;
  T* grad = static_cast<T*>(a.grad);
  for (int64_t i = begin; i < end; ++i)
    grad[i] = static_cast<T>(static_cast<C>(grad[i]) / static_cast<C>(scale));
}

template <class T>
constexpr StepLoops loops_of = {sgd<T>, adam<T>, unscale<T>};

}  // namespace

const StepLoops* optimizer_loops(DType dtype) {
  switch (dtype) {
    case DType::Float32:
      return &loops_of<float>;
    case DType::Float64:
      return &loops_of<double>;
    case DType::Float16:
      return &loops_of<Half>;
    case DType::BFloat16:
      return &loops_of<BFloat16>;
    default:
      return nullptr;
  }
}

}  // namespace rushlight::cpu::RL_ISA
