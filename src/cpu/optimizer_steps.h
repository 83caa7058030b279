// What the optimizers of cpu/optimizer.h do to the elements of a parameter, for the host and for devices.
// `Elements` has begin, end and step; it also keeps what instruction sets compile apart.
#pragma once
#include <cmath>

#include "cpu/optimizer.h"
#include "formulas/elementary.h"

namespace rushlight::cpu::steps {

template <class T>
struct StepType {
  using type = float;
};
template <>
struct StepType<double> {
  using type = double;
};

// Runs `move(p, g, states)` over elements e.begin, e.begin + e.step, ...; `kStates` has a bit for each of the
// three states that there are. Elements that come in pairs are moved so, and return the first one that is
// left.
template <class T, int kStates, class Elements, class Move>
RL_HD void each(const StepArrays& arrays, const UpdateOptions& o, Elements e, const Move& move) {
  using C = typename StepType<T>::type;
  T* __restrict param = static_cast<T*>(arrays.param);
  const T* __restrict grad = static_cast<const T*>(arrays.grad);
  T* __restrict first = static_cast<T*>(arrays.first);
  T* __restrict second = static_cast<T*>(arrays.second);
  T* __restrict third = static_cast<T*>(arrays.third);
  const C sign = o.maximize ? C(-1) : C(1), decay = static_cast<C>(o.weight_decay),
          shrink = static_cast<C>(o.shrink);
  const auto moved = [=](C number, C slope, C& a, C& b, C& c) {
    C p = shrink * number, g = sign * slope;
    if (decay != 0) g += decay * p;
    move(p, g, a, b, c);
    return p;
  };
  if constexpr (requires { e.template in_pairs<kStates>(arrays, moved); })
    e.begin = e.template in_pairs<kStates>(arrays, moved);
  for (int64_t i = e.begin; i < e.end; i += e.step) {
    C a{}, b{}, c{};
    if constexpr (kStates & 1) a = static_cast<C>(first[i]);
    if constexpr (kStates & 2) b = static_cast<C>(second[i]);
    if constexpr (kStates & 4) c = static_cast<C>(third[i]);
    const C p = moved(static_cast<C>(param[i]), static_cast<C>(grad[i]), a, b, c);
    if constexpr (kStates & 1) first[i] = static_cast<T>(a);
    if constexpr (kStates & 2) second[i] = static_cast<T>(b);
    if constexpr (kStates & 4) third[i] = static_cast<T>(c);
    param[i] = static_cast<T>(p);
  }
}

#define RL_MOVE [=](C& p, C& g, [[maybe_unused]] C& a, [[maybe_unused]] C& b, [[maybe_unused]] C& c)

template <class T, class Elements>
RL_HD void sgd(const StepArrays& s, const SgdOptions& o, Elements e) {
  using C = typename StepType<T>::type;
  const UpdateOptions common{{}, {}, o.weight_decay, 1.0, o.maximize};
  const C lr = static_cast<C>(o.lr), momentum = static_cast<C>(o.momentum);
  const C fresh = static_cast<C>(1 - o.dampening);
  if (!s.first) return each<T, 0>(s, common, e, RL_MOVE { p -= lr * g; });
  auto with_buffer = [&](auto buffer) {  // two loops: a choice in one would keep it from vectors
    if (o.nesterov)
      return each<T, 1>(
          s, common, e, RL_MOVE {
            a = buffer(a, g);
            p -= lr * (g + momentum * a);
          });
    each<T, 1>(
        s, common, e, RL_MOVE {
          a = buffer(a, g);
          p -= lr * a;
        });
  };
  // A fresh buffer holds anything, also NaN: it must not be multiplied by zero.
  if (o.first_step) return with_buffer([](C, C g) { return g; });
  with_buffer([=](C old, C g) { return momentum * old + fresh * g; });
}

template <class T, class Elements>
RL_HD void adam(const StepArrays& s, const AdamOptions& o, Elements e) {
  using C = typename StepType<T>::type;
  const UpdateOptions common{
      {}, {}, o.decoupled ? 0 : o.weight_decay, o.decoupled ? 1 - o.lr * o.weight_decay : 1, o.maximize};
  const C weight1 = static_cast<C>(1 - o.beta1), beta2 = static_cast<C>(o.beta2),
          weight2 = static_cast<C>(1 - o.beta2);
  const C step = static_cast<C>(o.lr / s.correction1), root = static_cast<C>(std::sqrt(s.correction2));
  const C eps = static_cast<C>(o.eps);
  const auto means = [=](C g, C& a, C& b) {
    a += weight1 * (g - a);
    b = beta2 * b + weight2 * g * g;
  };
  if (s.third)
    return each<T, 7>(
        s, common, e, RL_MOVE {
          means(g, a, b);
          c = c > b ? c : b;
          p -= step * a / (std::sqrt(c) / root + eps);
        });
  each<T, 3>(
      s, common, e, RL_MOVE {
        means(g, a, b);
        p -= step * a / (std::sqrt(b) / root + eps);
      });
}

// The rules of cpu/optimizer.h.
template <class T, class Elements>
struct Rules {
  using C = typename StepType<T>::type;
  RL_HD static C number(const UpdateOptions& o, size_t i) { return static_cast<C>(o.numbers[i]); }
  RL_HD static C factor(const StepArrays& s, size_t i) { return static_cast<C>(s.factors[i]); }

  RL_HD static void adagrad(const StepArrays& s, const UpdateOptions& o, Elements e) {
    const C eps = number(o, 0), step = factor(s, 0);
    each<T, 1>(
        s, o, e, RL_MOVE {
          a += g * g;
          p -= step * g / (std::sqrt(a) + eps);
        });
  }

  template <bool kMomentum, bool kCentered>
  RL_HD static void rmsprop_with(const StepArrays& s, const UpdateOptions& o, Elements e) {
    const C eps = number(o, 0), alpha = number(o, 1), fresh = static_cast<C>(1 - o.numbers[1]);
    const C step = number(o, 2), momentum = number(o, 3);
    each<T, 1 + 2 * kMomentum + 4 * kCentered>(
        s, o, e, RL_MOVE {
          a = alpha * a + fresh * g * g;
          C square = a;
          if constexpr (kCentered) {
            c += fresh * (g - c);
            square -= c * c;
          }
          C d = g / (std::sqrt(square) + eps);
          if constexpr (kMomentum) d = b = momentum * b + d;
          p -= step * d;
        });
  }
  RL_HD static void rmsprop(const StepArrays& s, const UpdateOptions& o, Elements e) {
    if (s.second) return s.third ? rmsprop_with<true, true>(s, o, e) : rmsprop_with<true, false>(s, o, e);
    s.third ? rmsprop_with<false, true>(s, o, e) : rmsprop_with<false, false>(s, o, e);
  }

  RL_HD static void adadelta(const StepArrays& s, const UpdateOptions& o, Elements e) {
    const C eps = number(o, 0), rho = number(o, 1), fresh = static_cast<C>(1 - o.numbers[1]);
    const C step = number(o, 2);
    each<T, 3>(
        s, o, e, RL_MOVE {
          a = rho * a + fresh * g * g;
          const C d = std::sqrt(b + eps) / std::sqrt(a + eps) * g;
          b = rho * b + fresh * d * d;
          p -= step * d;
        });
  }

  RL_HD static void adamax(const StepArrays& s, const UpdateOptions& o, Elements e) {
    const C eps = number(o, 0), fresh = static_cast<C>(1 - o.numbers[1]), keep = number(o, 2);
    const C step = factor(s, 0);
    each<T, 3>(
        s, o, e, RL_MOVE {
          a += fresh * (g - a);
          const C old = keep * b, now = std::abs(g) + eps;
          b = old >= now || old != old ? old : now;  // NaN stays
          p -= step * a / b;
        });
  }

  RL_HD static void nadam(const StepArrays& s, const UpdateOptions& o, Elements e) {
    const C eps = number(o, 0), fresh1 = static_cast<C>(1 - o.numbers[1]);
    const C keep2 = number(o, 2), fresh2 = static_cast<C>(1 - o.numbers[2]);
    const C now = factor(s, 0), ahead = factor(s, 1), correction = factor(s, 2);
    each<T, 3>(
        s, o, e, RL_MOVE {
          a += fresh1 * (g - a);
          b = keep2 * b + fresh2 * g * g;
          p -= (now * g + ahead * a) / (std::sqrt(b / correction) + eps);
        });
  }

  RL_HD static void radam(const StepArrays& s, const UpdateOptions& o, Elements e) {
    const C eps = number(o, 0), fresh1 = static_cast<C>(1 - o.numbers[1]);
    const C keep2 = number(o, 2), fresh2 = static_cast<C>(1 - o.numbers[2]);
    const C step = factor(s, 0), rectified = factor(s, 1);
    each<T, 3>(
        s, o, e, RL_MOVE {
          a += fresh1 * (g - a);
          b = keep2 * b + fresh2 * g * g;
          p -= step * a * (rectified != 0 ? rectified / (std::sqrt(b) + eps) : C(1));
        });
  }

  RL_HD static void asgd(const StepArrays& s, const UpdateOptions& o, Elements e) {
    const C step = factor(s, 0), weight = factor(s, 1),
            keep = static_cast<C>(1 - s.factors[0] * o.numbers[0]);
    each<T, 1>(
        s, o, e, RL_MOVE {
          p = keep * p - step * g;
          a = weight == 1 ? p : a + (p - a) * weight;
        });
  }

  RL_HD static void rprop(const StepArrays& s, const UpdateOptions& o, Elements e) {
    const C shrinking = number(o, 0), growing = number(o, 1), least = number(o, 2), most = number(o, 3);
    each<T, 3>(
        s, o, e, RL_MOVE {
          const C agreement = g * a;
          const C size = b * (agreement > 0 ? growing : agreement < 0 ? shrinking : C(1));
          b = size < least ? least : size > most ? most : size;
          a = agreement < 0 ? C(0) : g;
          p -= a > 0 ? b : a < 0 ? -b : a;
        });
  }
};
#undef RL_MOVE

template <class T, class Elements>
RL_HD void unscale(const StepArrays& a, double scale, Elements e) {
  using C = typename StepType<T>::type;
  T* grad = static_cast<T*>(a.grad);
  for (int64_t i = e.begin; i < e.end; i += e.step)
    grad[i] = static_cast<T>(static_cast<C>(grad[i]) / static_cast<C>(scale));
}

}  // namespace rushlight::cpu::steps
