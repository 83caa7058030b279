// Which operators run on devices besides those whose records say so.
#include <algorithm>
#include <string>
#include <string_view>

#include "ops/register.h"

namespace rushlight {
namespace {

// Kernels that touch data only through ops/device_loops.h, besides those of the pointwise family.
constexpr std::string_view kShared[] = {
    "sigmoid_backward",
    "tanh_backward",
    "log_sigmoid_backward",
    "silu_backward",
    "mish_backward",
    "gelu_backward",
    "softplus_backward",
    "threshold_backward",
    "leaky_relu_backward",
    "hardtanh_backward",
    "hardsigmoid_backward",
    "hardswish_backward",
    "softshrink_backward",
    "hardshrink_backward",
    "elu_backward",
    "positive",
    // reductions and running sums
    "sum",
    "mean",
    "nansum",
    "all",
    "any",
    "count_nonzero",
    "amax",
    "amin",
    "max",
    "min",
    "argmax",
    "argmin",
    "prod",
    "var",
    "std",
    "var_mean",
    "std_mean",
    "cumsum",
    "cumprod",
    // at computed positions
    "index",
    "index_put_",
    "index_select",
    "index_add",
    "gather",
    "scatter",
    "scatter_add",
    "embedding",
    "embedding_dense_backward",
    "cat",
    "stack",
    // matrix products
    "mm",
    "addmm",
    "bmm",
    "baddbmm",
    "mv",
    "dot",
    "vdot",
    // random numbers
    "uniform_",
    "normal_",
    "exponential_",
    "random_",
    "bernoulli_.float",
    "rand",
    "randn",
    "randint",
    "rand_like",
    "randn_like",
    "randint_like",
    "_dropout_noise",
    // by position
    "arange",
    "range",
    "tril",
    "triu",
};

bool is_shared(const Op& op) {
  if (op.family == Family::Pointwise) return true;
  const std::string full = str(op.name(), ".", op.schema.overload);
  return std::ranges::any_of(kShared,
                             [&](std::string_view name) { return name == op.name() || name == full; });
}

}  // namespace

void register_device_operators(Table& t) {
  for (Op& op : t.ops())
    if (is_shared(op)) op.kernel[static_cast<int>(DeviceType::CUDA)] = op.kernel[0];
}

}  // namespace rushlight
