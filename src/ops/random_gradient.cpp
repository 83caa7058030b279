// Samples of Gamma and Dirichlet distributions as functions of their parameters.
#include <cmath>

#include "cpu/sample_slope.h"
#include "ops/copy.h"
#include "ops/operators.h"
#include "ops/pointwise.h"
#include "ops/random.h"
#include "ops/reduction.h"
#include "ops/register.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

constexpr double kTiny = std::numeric_limits<double>::min();

// Tensors of one dtype as contiguous doubles of one shape.
std::vector<Tensor> as_doubles(const Call& call, std::initializer_list<const Tensor*> inputs) {
  const Tensor& first = **inputs.begin();
  Dims shape = first.sizes().dims();
  for (const Tensor* t : inputs) {
    RL_CHECK(is_floating(t->dtype()) && t->dtype() == first.dtype(), call.op.name(),
             ": expected floating-point tensors of one dtype, got ", legacy_name(first.dtype()), " and ",
             legacy_name(t->dtype()));
    shape = broadcast_shapes(shape, t->sizes());
  }
  std::vector<Tensor> values;
  for (const Tensor* t : inputs)
    values.push_back(contiguous(expand(to_dtype(*t, DType::Float64), IntList(shape))));
  return values;
}

// slopes(values, result) of their elements.
template <class Slopes>
Tensor each(const std::vector<Tensor>& values, DType dtype, Slopes slopes) {
  const Tensor result = empty_tensor(values[0].sizes(), DType::Float64, values[0].device());
  std::vector<const double*> from;
  if (!result.is_cpu()) return to_dtype(result, dtype);
  for (const Tensor& t : values) from.push_back(t.data<double>());
  slopes(from.data(), result.numel(), result.data<double>());
  return to_dtype(result, dtype);
}

// Of a term among those before.
double exactness_of(DType dtype) { return dtype == DType::Float64 ? 1e-17 : 4e-9; }

// Logarithms and digammas are those of operators, which compute many at once.
Tensor standard_gamma_grad_kernel(const Call& call, const Tensor& self, const Tensor& output) {
  std::vector<Tensor> values = as_doubles(call, {&self, &output});
  values.push_back(ops::log(values[1]));
  values.push_back(ops::digamma(values[0] + Scalar(1)));
  return each(values, self.dtype(), [&](const double* const* v, int64_t n, double* slopes) {
    cpu::gamma_slopes(n, v, exactness_of(self.dtype()), slopes);
  });
}
Tensor dirichlet_grad_kernel(const Call& call, const Tensor& x, const Tensor& alpha, const Tensor& total) {
  std::vector<Tensor> values = as_doubles(call, {&x, &alpha, &total});
  values.push_back(ops::log(values[0]));
  values.push_back(ops::digamma(values[1]) - ops::digamma(values[2]));
  return each(values, x.dtype(), [&](const double* const* v, int64_t n, double* slopes) {
    cpu::dirichlet_slopes(n, v, exactness_of(x.dtype()), slopes);
  });
}

// Gamma numbers in double precision, normalised; kept off 0 and 1, where the density has poles.
Tensor sample_dirichlet_kernel(const Call& call, const Tensor& self, OptGenerator generator) {
  RL_CHECK(is_floating(self.dtype()), call.op.name(), ": expected a floating-point tensor, got ",
           legacy_name(self.dtype()));
  RL_CHECK(self.dim() > 0, call.op.name(), ": expected at least one dimension, got a 0-dim tensor");
  const Tensor gamma = ops::clamp_min(ops::standard_gamma(to_dtype(self, DType::Float64), generator), kTiny);
  const int64_t last = -1;
  const Tensor share = to_dtype(gamma / ops::sum_dim(gamma, IntList(&last, 1), true), self.dtype());
  double low = kTiny, high = 1 - 0x1p-53;
  if (self.dtype() == DType::Float32) low = std::numeric_limits<float>::min(), high = 1 - 0x1p-24;
  if (self.dtype() == DType::Float16) low = 0x1p-14, high = 1 - 0x1p-11;
  if (self.dtype() == DType::BFloat16) low = std::numeric_limits<float>::min(), high = 1 - 0x1p-8;
  return ops::clamp(share, Scalar(low), Scalar(high));
}

}  // namespace

void register_random_gradient_operators(Table& t) {
  constexpr const char* kSecond = "PyTorch offers no second derivative either";
  t.op(standard_gamma_grad, "_standard_gamma_grad(Tensor self, Tensor output) -> Tensor",
       standard_gamma_grad_kernel)
      .function_only()
      .doc("Derivative of gamma samples by the concentration.")
      .family(Family::Gradient)
      .not_differentiable(kSecond);
  t.op(dirichlet_grad, "_dirichlet_grad(Tensor x, Tensor alpha, Tensor total) -> Tensor",
       dirichlet_grad_kernel)
      .function_only()
      .doc("Derivative of Dirichlet samples by one concentration.")
      .family(Family::Gradient)
      .not_differentiable(kSecond);
  t.op(sample_dirichlet, "_sample_dirichlet(Tensor self, Generator? generator=None) -> Tensor",
       sample_dirichlet_kernel)
      .family(Family::Random)
      .function_only()
      .doc("Points of the simplex, Dirichlet distributed with the concentrations along the last dimension.")
      .derivative([](Grad g, In<0> alpha, Out<0> x) {
        const int64_t last = -1;
        const Tensor total = expand(sum_dim(alpha, IntList(&last, 1), true), alpha.sizes());
        return dirichlet_grad(x, alpha, total) * (g - sum_dim(g * x, IntList(&last, 1), true));
      });
}

}  // namespace rushlight
