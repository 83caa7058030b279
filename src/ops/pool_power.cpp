// Pooling by power means, made of average pooling.
#include "dispatch/table.h"
#include "ops/activation.h"
#include "ops/operators.h"
#include "ops/pointwise.h"
#include "ops/pool.h"

namespace rushlight {
namespace {

using namespace ops;

template <int N>
Tensor lp_pool_body(const Call&, const Tensor& input, const Scalar& norm, IntList kernel,
                    const OptIntList& stride, bool ceil_mode) {
  const Tensor powers = rushlight::pow(input, norm);
  Tensor mean;
  if constexpr (N == 1) mean = avg_pool1d(powers, kernel, stride, IntList{0}, ceil_mode);
  if constexpr (N == 2) mean = avg_pool2d(powers, kernel, stride, IntList{0, 0}, ceil_mode);
  if constexpr (N == 3) mean = avg_pool3d(powers, kernel, stride, IntList{0, 0, 0}, ceil_mode);
  // An odd power can have a negative sum; its root is taken of the positive part.
  const Tensor sums = sign(mean) * relu(abs(mean)) * Scalar(checked_numel(kernel));
  return rushlight::pow(sums, Scalar(1.0 / norm.to_double()));
}

}  // namespace

void register_power_pool_operators(Table& t) {
  t.composite(
       "nn::lp_pool1d(Tensor input, Scalar norm_type, int[1] kernel_size, int[1]? stride=None, bool "
       "ceil_mode=False) -> Tensor",
       lp_pool_body<1>)
      .doc("The p-norm of each window of (N, C, L).");
  t.composite(
       "nn::lp_pool2d(Tensor input, Scalar norm_type, int[2] kernel_size, int[2]? stride=None, bool "
       "ceil_mode=False) -> Tensor",
       lp_pool_body<2>)
      .doc("The p-norm of each window of (N, C, H, W).");
  t.composite(
       "nn::lp_pool3d(Tensor input, Scalar norm_type, int[3] kernel_size, int[3]? stride=None, bool "
       "ceil_mode=False) -> Tensor",
       lp_pool_body<3>)
      .doc("The p-norm of each window of (N, C, D, H, W).");
}

}  // namespace rushlight
