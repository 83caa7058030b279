#include "cpu/fake_quantize.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/parallel.h"
#include "cpu/isa_variant.h"

namespace rushlight::cpu {

RL_DECLARE_VARIANTS(void fake_quantize_range(const FakeQuantization& f, int64_t begin, int64_t end);
                    void fake_quantize_backward_range(const FakeQuantizationGradient& g, int64_t begin,
                                                      int64_t end);)

void fake_quantize(const FakeQuantization& f) {
  parallel_for(0, f.n, kGrainSize,
               [&](int64_t begin, int64_t end) { RL_ISA_VARIANT(fake_quantize_range(f, begin, end)); });
}
void fake_quantize_backward(const FakeQuantizationGradient& g) {
  parallel_for(0, g.forward.n, kGrainSize / 2, [&](int64_t begin, int64_t end) {
    RL_ISA_VARIANT(fake_quantize_backward_range(g, begin, end));
  });
}

ScaleAndZero choose_quantization(float min, float max, int lowest, int highest, bool symmetric) {
  // Below this scale sums of products would lose their precision.
  constexpr float kSmallest = 6.1e-5f;
  // As PyTorch's, differences wrap where the bounds are all that 32 bits hold.
  const auto minus = [](int a, int b) {
    return static_cast<int>(static_cast<uint32_t>(a) - static_cast<uint32_t>(b));
  };
  const auto size = [&](int v) { return v < 0 ? minus(0, v) : v; };
  const int steps = minus(highest, lowest);
  const auto spans_zero = [&] { return min < 0 && max > 0; };
  if (symmetric && spans_zero()) {
    const int below = -(steps / 2 + 1), above = steps / 2;
    const double widest = std::max<double>(std::fabs(min / static_cast<float>(below)),
                                           std::fabs(max / static_cast<float>(above)));
    min = static_cast<float>(widest * below);
    max = static_cast<float>(widest * above);
  }
  min = std::min(min, 0.f);
  max = std::max(max, 0.f);
  double scale = (static_cast<double>(max) - min) / steps;
  if (static_cast<float>(scale) == 0.f || std::isinf(1.f / static_cast<float>(scale))) scale = 0.1;
  if (scale < kSmallest) {
    const float grow = kSmallest / static_cast<float>(scale);
    if (min == 0.f)
      max = kSmallest * static_cast<float>(steps);
    else if (max == 0.f)
      min = -kSmallest * static_cast<float>(steps);
    else
      min *= grow, max *= grow;
    scale = kSmallest;
  }
  // From the end that loses less by rounding.
  const double down = min / scale, up = max / scale;
  double zero = size(lowest) - std::fabs(down) < size(highest) - std::fabs(up) ? lowest - down : highest - up;
  if (symmetric && spans_zero()) zero = (static_cast<double>(lowest) + highest) / 2;
  const int32_t nudged = zero < lowest      ? lowest
                         : zero > highest   ? highest
                         : std::isnan(zero) ? std::numeric_limits<int32_t>::min()
                                            : static_cast<int32_t>(std::nearbyint(zero));
  return {scale, nudged};
}

}  // namespace rushlight::cpu
