// How samples move with the parameters of their distributions.
#pragma once
#include <cstdint>

namespace rushlight::cpu {

// For a fixed uniform number a sample moves with a parameter by -(d cdf / d parameter) / pdf ("implicit
// reparameterisation"). `exactness`: what a term of a series may be among those before.
//
// Of Gamma(a) at x; `v`: a, x, log x and psi(a + 1), n of each.
void gamma_slopes(int64_t n, const double* const* v, double exactness, double* slopes);
// Of one share x of a Dirichlet distribution with its parameter a; `v`: x, a, the sum of all parameters, log
// x and what that is on average.
void dirichlet_slopes(int64_t n, const double* const* v, double exactness, double* slopes);

}  // namespace rushlight::cpu
