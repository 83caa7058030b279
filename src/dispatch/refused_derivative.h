// A derivative that only refuses: the operator is recorded, since a result without a history would leave its
// part of a gradient out unseen, and the backward pass says what is missing.
#pragma once
#include <algorithm>

#include "dispatch/derivative.h"

namespace rushlight {

template <size_t N>
struct RefusalText {
  char text[N];
  consteval RefusalText(const char (&words)[N]) { std::copy_n(words, N, text); }
};

// `more`: the outputs after the first that depend on the operands, too.
template <RefusalText reason, int... more>
struct RefusedDerivative {
  Grads operator()(Grad, GradOf<more>...) const { RL_NOT_IMPLEMENTED(reason.text); }
};

}  // namespace rushlight
