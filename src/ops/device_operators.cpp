// Which operators run on devices besides those whose records say so.
#include <algorithm>
#include <string_view>

#include "ops/register.h"

namespace rushlight {
namespace {

// Kernels that touch data only through ops/device_loops.h, besides those of the pointwise family.
constexpr std::string_view kShared[] = {
    "sigmoid_backward",    "tanh_backward",       "log_sigmoid_backward", "silu_backward",
    "mish_backward",       "gelu_backward",       "softplus_backward",    "threshold_backward",
    "leaky_relu_backward", "hardtanh_backward",   "hardsigmoid_backward", "hardswish_backward",
    "softshrink_backward", "hardshrink_backward", "elu_backward",         "positive",
};

}  // namespace

void register_device_operators(Table& t) {
  for (Op& op : t.ops()) {
    const bool shared =
        op.family == Family::Pointwise || std::ranges::find(kShared, op.name()) != std::end(kShared);
    if (shared) op.kernel[static_cast<int>(DeviceType::CUDA)] = op.kernel[0];
  }
}

}  // namespace rushlight
