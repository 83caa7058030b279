// Derivatives that PyTorch refuses in the backward pass alone. Results without a history would leave their
// part of a gradient out unseen, so these have one:
//   .derivative(refused_derivative<"derivative for aten::heaviside is not implemented">)
#pragma once
#include <algorithm>

#include "dispatch/derivative.h"

namespace rushlight {

template <size_t N>
struct RefusalText {
  char text[N];
  consteval RefusalText(const char (&words)[N]) { std::copy_n(words, N, text); }
};

template <RefusalText words, int... more>
struct RefusedDerivative {
  Grads operator()(Grad, GradOf<more>...) const { RL_NOT_IMPLEMENTED(words.text); }
};
// `more`: the outputs after the first that depend on the operands, too.
template <RefusalText words, int... more>
inline constexpr RefusedDerivative<words, more...> refused_derivative{};

}  // namespace rushlight
