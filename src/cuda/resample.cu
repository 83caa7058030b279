// Resizing by tables of neighbours and their weights.
#include "cuda/channels.h"
#include "cuda/layers.h"
#include "device/layers.h"

namespace rushlight::cuda {
namespace {

template <class S>
struct Resample {
  using C = std::conditional_t<std::is_integral_v<S>, double, ComputeOf<S>>;
  DeviceResample plan;
  const S* in;
  S* out;
  RL_BOTH void operator()(int64_t i) const {
    int64_t at[3], rest = i / plan.inner;
    const int64_t inner = i - rest * plan.inner;
    for (int a = 2; a >= 0; --a) at[a] = rest % plan.axis[a].out, rest /= plan.axis[a].out;
    const auto& [depth, height, width] = plan.axis;
    C sum = 0;
    for (int64_t z = 0; z < depth.taps; ++z) {
      const int64_t dz = z * depth.out + at[0];
      for (int64_t y = 0; y < height.taps; ++y) {
        const int64_t dy = y * height.out + at[1];
        const C outer = static_cast<C>(depth.weight[dz]) * static_cast<C>(height.weight[dy]);
        const int64_t row = ((rest * depth.in + depth.index[dz]) * height.in + height.index[dy]) * width.in;
        for (int64_t x = 0; x < width.taps; ++x) {
          const int64_t dx = x * width.out + at[2];
          const C weight = outer * static_cast<C>(width.weight[dx]);
          if (plan.skip_zeros && weight == C(0)) continue;
          sum += weight * number<C>(in[(row + width.index[dx]) * plan.inner + inner]);
        }
      }
    }
    if constexpr (std::is_integral_v<S>)
      out[i] = static_cast<S>(sum <= 0 ? 0 : sum >= 255 ? 255 : sum + 0.5);
    else
      out[i] = number<S>(sum);
  }
};

}  // namespace

void resample(int device, DType dtype, const DeviceResample& plan, const void* in, void* out) {
  const int64_t n = plan.batch * plan.axis[0].out * plan.axis[1].out * plan.axis[2].out * plan.inner;
  const Launch at{device, "resample"};
  if (dtype == DType::UInt8)
    return for_each_index(
        at, n, Resample<uint8_t>{plan, static_cast<const uint8_t*>(in), static_cast<uint8_t*>(out)});
  visit_floating(dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    for_each_index(at, n, Resample<S>{plan, static_cast<const S*>(in), static_cast<S*>(out)});
  });
}

}  // namespace rushlight::cuda
