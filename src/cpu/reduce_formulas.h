// The formulas of reductions; included by isa/reduce_hot.cpp and reduce_rest.cpp only.
#pragma once
#include "cpu/reduce_loops.h"
#include "cpu/truth.h"

namespace rushlight::cpu::RL_ISA {
namespace {

// --- sums: sum, nansum, mean (by the divisor), prod and the sum of squared deviations behind var and std
template <class T>
struct Sum : FormulaBase<T> {
  using In = Stored<T>;
  using Acc = std::conditional_t<std::is_integral_v<T>, int64_t, compute_type<T>>;
  using Out = std::conditional_t<std::is_integral_v<T>, int64_t, T>;
  static Acc init() { return Acc(0); }
  static Acc step(Acc a, auto x, Acc) { return combine(a, static_cast<Acc>(x)); }
  static Acc sum_of(const Truth* x, int64_t n) { return count_truths(x, n); }
  // Whole numbers may be added in any order.
  static Acc sum_of(const In* x, int64_t n)
    requires(std::is_integral_v<T> && !std::is_same_v<T, bool>)
  {
    uint64_t sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += static_cast<uint64_t>(static_cast<int64_t>(x[i]));
    return static_cast<Acc>(sum);
  }
  static Acc combine(Acc a, Acc b) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<Acc>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    else
      return a + b;
  }
  static Out finish(Acc a, const ReduceParams& p) {
    if constexpr (std::is_integral_v<T>) {
      return a;
    } else if constexpr (is_complex_v<T>) {
      return p.divisor == 1 ? a : a / static_cast<typename T::value_type>(p.divisor);
    } else {
      return static_cast<Out>(a / static_cast<Acc>(p.divisor));
    }
  }
};

template <class T>
struct NanSum : Sum<T> {
  using Acc = typename Sum<T>::Acc;
  static Acc step(Acc a, auto x, Acc) {
    const Acc v = static_cast<Acc>(x);
    return a + (v == v ? v : Acc(0));
  }
};

template <class T>
struct Deviation : Sum<T> {
  using Acc = typename Sum<T>::Acc;
  static constexpr bool kCentred = true;
  static Acc step(Acc a, auto x, Acc centre) {
    const Acc d = static_cast<Acc>(x) - centre;
    return a + d * d;
  }
};

template <class T>
struct Product : FormulaBase<T> {
  using In = Stored<T>;
  static constexpr int kRegisters = 4;
  using Acc = std::conditional_t<std::is_integral_v<T>, int64_t, compute_type<T>>;
  using Out = std::conditional_t<std::is_integral_v<T>, int64_t, T>;
  static Acc init() { return Acc(1); }
  static Acc step(Acc a, auto x, Acc) { return combine(a, static_cast<Acc>(x)); }
  static Acc combine(Acc a, Acc b) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<Acc>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    else if constexpr (is_complex_v<T>)  // without the standard's recovery of infinities
      return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
    else
      return a * b;
  }
  static Out finish(Acc a, const ReduceParams&) { return static_cast<Out>(a); }
};

// --- amax and amin: a NaN anywhere is the result
template <class A>
constexpr A lowest() {
  return std::numeric_limits<A>::has_infinity ? -std::numeric_limits<A>::infinity()
                                              : std::numeric_limits<A>::lowest();
}
template <class A>
constexpr A highest() {
  return std::numeric_limits<A>::has_infinity ? std::numeric_limits<A>::infinity()
                                              : std::numeric_limits<A>::max();
}

template <class T>
struct Max : FormulaBase<T> {
  using Acc = compute_type<T>;
  static constexpr int kRegisters = 4;
  static constexpr bool kSticksToNan = true;
  static Acc init() { return lowest<Acc>(); }
  static Acc closer(Acc x, Acc a) { return x > a ? x : a; }
  static Acc step(Acc a, auto x, Acc) { return combine(a, static_cast<Acc>(x)); }
  static Acc combine(Acc a, Acc b) { return (b > a) | (b != b) ? b : a; }
};

template <class T>
struct Min : FormulaBase<T> {
  using Acc = compute_type<T>;
  static constexpr int kRegisters = 4;
  static constexpr bool kSticksToNan = true;
  static Acc init() { return highest<Acc>(); }
  static Acc closer(Acc x, Acc a) { return x < a ? x : a; }
  static Acc step(Acc a, auto x, Acc) { return combine(a, static_cast<Acc>(x)); }
  static Acc combine(Acc a, Acc b) { return (b < a) | (b != b) ? b : a; }
};

// --- all and any
template <bool Conjunction>
struct Logic : FormulaBase<uint8_t> {  // of bool and uint8
  static uint8_t init() { return Conjunction; }
  static uint8_t step(uint8_t a, uint8_t x, uint8_t) { return combine(a, x != 0); }
  static uint8_t combine(uint8_t a, uint8_t b) { return Conjunction ? a & b : a | b; }
};

// --- vector norms of real numbers; complex input comes in as absolute values
template <class T>
struct NormBase : FormulaBase<T> {
  using Acc = compute_type<T>;
  static Acc init() { return 0; }
  static Acc combine(Acc a, Acc b) { return a + b; }
};
template <class T>
struct Norm0 : NormBase<T> {
  using Acc = compute_type<T>;
  static Acc step(Acc a, auto x, Acc) { return a + Acc(static_cast<Acc>(x) != 0); }
};
template <class T>
struct Norm1 : NormBase<T> {
  using Acc = compute_type<T>;
  static Acc step(Acc a, auto x, Acc) { return a + std::abs(static_cast<Acc>(x)); }
};
template <class T>
struct Norm2 : NormBase<T> {
  using Acc = compute_type<T>;
  static Acc step(Acc a, auto x, Acc) { return a + static_cast<Acc>(x) * static_cast<Acc>(x); }
  static T finish(Acc a, const ReduceParams&) { return static_cast<T>(std::sqrt(a)); }
};
template <class T>
struct MaxAbs : NormBase<T> {
  using Acc = compute_type<T>;
  static Acc step(Acc a, auto x, Acc) { return combine(a, std::abs(static_cast<Acc>(x))); }
  static Acc combine(Acc a, Acc b) { return (b > a) | (b != b) ? b : a; }
};
template <class T>
struct MinAbs : NormBase<T> {
  using Acc = compute_type<T>;
  static Acc init() { return std::numeric_limits<Acc>::infinity(); }
  static Acc step(Acc a, auto x, Acc) { return combine(a, std::abs(static_cast<Acc>(x))); }
  static Acc combine(Acc a, Acc b) { return (b < a) | (b != b) ? b : a; }
};

}  // namespace
}  // namespace rushlight::cpu::RL_ISA
