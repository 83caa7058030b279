// Functions in parts: each part holds for some of the arguments, and is either plain arithmetic without
// branches or a sum or recurrence in steps. A loop over a block of numbers (cpu/isa/parts_inl.h) computes
// those parts that the block needs, all of its numbers at once.
#pragma once
#include "formulas/math.h"

namespace rushlight::formulas {

// A function F has `Parts`, a TypeList, and `part(x, y)`, one bit of which tells the part. A part has
// `value(x, y)`; or, in steps, the count kNumbers of numbers that it carries, `start`, `more`, `step` and
// `end` over them, the steps counted from 1. `steps` tells how many there are
// for any x, if that is known. kAlone says that it branches, so that loops take its numbers one
// by one.
template <class P>
concept Stepwise = requires { P::kNumbers; };
template <class P>
concept Alone = requires { P::kAlone; };

template <class P>
RL_HD inline double value_of_part(double x, double y) {
  if constexpr (Stepwise<P>) {
    double numbers[P::kNumbers];
    P::start(x, y, numbers);
    for (double k = 1; P::more(x, y, k, numbers); ++k) P::step(x, y, k, numbers);
    return P::end(x, y, numbers);
  } else {
    return P::value(x, y);
  }
}

#if defined(__CUDACC__) || defined(RL_WHOLE_FORMULAS)
template <class... P>
RL_HD inline double value_of_parts(TypeList<P...>, unsigned part, double x, double y) {
  double value = 0;
  unsigned bit = 1;
  ((value = part == bit ? value_of_part<P>(x, y) : value, bit *= 2), ...);
  return value;
}
template <class F, Real T>
RL_HD inline T in_parts(T x, T y = 0) {
  return static_cast<T>(value_of_parts(typename F::Parts{}, F::part(x, y), x, y));
}
#else
// What loops recognise such a formula by.
template <class F>
struct InParts {
  using Function = F;
};
template <class F, Real T>
constexpr InParts<F> in_parts(T, T = 0) {
  return {};
}
#endif

}  // namespace rushlight::formulas
