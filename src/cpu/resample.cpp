#include "cpu/resample.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "cpu/isa_variant.h"

namespace rushlight::cpu {

RL_DECLARE_VARIANTS(void resample(DType dtype, const ResamplePlan& plan, const void* in, void* out);)

namespace {

void resample_variant(DType dtype, const ResamplePlan& plan, const void* in, void* out) {
  RL_ISA_VARIANT(resample(dtype, plan, in, out));
}

// The axis of rows whose elements are pixels of a few channels, element by element.
ResampleAxis by_channels(const ResampleAxis& axis, int64_t channels) {
  ResampleAxis wide;
  wide.in = axis.in * channels, wide.out = axis.out * channels, wide.taps = axis.taps;
  wide.index.resize(axis.index.size() * static_cast<size_t>(channels));
  wide.weight.resize(wide.index.size());
  size_t to = 0;
  for (size_t i = 0; i < axis.index.size(); ++i)
    for (int64_t c = 0; c < channels; ++c, ++to) {
      wide.index[to] = static_cast<int32_t>(axis.index[i] * channels + c);
      wide.weight[to] = axis.weight[i];
    }
  return wide;
}

}  // namespace

void resample(DType dtype, const ResamplePlan& plan, const void* in, void* out) {
  constexpr int64_t kFew = 8;
  const ResampleAxis& width = plan.axis[2];
  const bool narrow = plan.inner > 1 && plan.inner <= kFew && width.out > 1 && !plan.copies &&
                      width.in * plan.inner <= std::numeric_limits<int32_t>::max();
  if (!narrow || dtype == DType::UInt8) return resample_variant(dtype, plan, in, out);
  ResamplePlan wide = plan;
  wide.inner = 1;
  wide.axis[2] = by_channels(width, plan.inner);
  resample_variant(dtype, wide, in, out);
}

namespace {

void resize(ResampleAxis& axis, int64_t taps) {
  axis.taps = taps;
  axis.index.assign(static_cast<size_t>(taps * axis.out), 0);
  axis.weight.assign(static_cast<size_t>(taps * axis.out), 0.0);
}
void set(ResampleAxis& axis, int64_t tap, int64_t o, int64_t index, double weight) {
  axis.index[static_cast<size_t>(tap * axis.out + o)] = static_cast<int32_t>(index);
  axis.weight[static_cast<size_t>(tap * axis.out + o)] = weight;
}

template <class C>
C axis_scale(int64_t in, int64_t out, std::optional<double> factor, bool align_corners) {
  if (align_corners) return out > 1 ? static_cast<C>(in - 1) / static_cast<C>(out - 1) : C(0);
  if (factor && *factor > 0) return static_cast<C>(1.0 / *factor);
  return static_cast<C>(in) / static_cast<C>(out);
}

template <class C>
void fill_nearest(ResampleAxis& axis, C scale, bool exact) {
  resize(axis, 1);
  for (int64_t o = 0; o < axis.out; ++o) {
    const C at =
        exact ? std::fma(scale, static_cast<C>(o) + C(0.5), C(-0.5)) + C(0.5) : static_cast<C>(o) * scale;
    // PyTorch rounds to float before it rounds down, also for float64.
    const auto index = static_cast<int64_t>(std::floor(static_cast<float>(at)));
    set(axis, 0, o, std::clamp<int64_t>(index, 0, axis.in - 1), 1);
  }
}

// Keys' cubic convolution: the weights of the four neighbours at fraction t between the middle two.
template <class C>
std::array<C, 4> cubic_weights(C t, C a) {
  const auto inner = [a](C x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  const auto outer = [a](C x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  return {outer(t + 1), inner(t), inner(1 - t), outer(2 - t)};
}

template <class C>
void fill_neighbours(ResampleAxis& axis, C scale, bool cubic, bool align_corners) {
  resize(axis, cubic ? 4 : 2);
  for (int64_t o = 0; o < axis.out; ++o) {
    C at = align_corners ? scale * static_cast<C>(o) : scale * (static_cast<C>(o) + C(0.5)) - C(0.5);
    if (!cubic) at = std::max(at, C(0));
    if (!cubic && axis.in == axis.out) at = static_cast<C>(o);
    const auto base = std::min(static_cast<int64_t>(std::floor(at)), axis.in - 1);
    const C t = std::clamp(at - static_cast<C>(base), C(0), C(1));
    const auto clamped = [&](int64_t i) { return std::clamp<int64_t>(i, 0, axis.in - 1); };
    if (cubic) {
      const auto w = cubic_weights(t, C(-0.75));
      for (int64_t k = 0; k < 4; ++k) set(axis, k, o, clamped(base - 1 + k), w[static_cast<size_t>(k)]);
    } else {
      set(axis, 0, o, clamped(base), 1 - t);
      set(axis, 1, o, clamped(base + 1), t);
    }
  }
}

template <class C>
C filter_value(Filter filter, C x) {
  x = std::abs(x);
  if (filter == Filter::LinearAntialias) return std::max(1 - x, C(0));
  if (filter == Filter::CubicAntialias) {
    if (x >= 2) return 0;
    return x < 1 ? cubic_weights(x, C(-0.5))[1] : cubic_weights(x - 1, C(-0.5))[0];
  }
  if (x >= 3) return 0;
  const auto sinc = [](C v) {
    const C angle = v * std::numbers::pi_v<C>;
    return v == 0 ? C(1) : std::sin(angle) / angle;
  };
  return sinc(x) * sinc(x / 3);
}

// A filter as wide as the output pixel when shrinking; weights add up to 1.
template <class C>
void fill_antialiased(ResampleAxis& axis, Filter filter, C scale) {
  const C radius = filter == Filter::LinearAntialias ? 1 : filter == Filter::CubicAntialias ? 2 : 3;
  const C support = scale >= 1 ? radius * scale : radius, inverse = scale >= 1 ? 1 / scale : C(1);
  const int64_t most = std::min<int64_t>(static_cast<int64_t>(std::ceil(support)) * 2 + 1, axis.in);
  resize(axis, most);
  std::vector<C> w(static_cast<size_t>(most));
  for (int64_t o = 0; o < axis.out; ++o) {
    const C center = scale * (static_cast<C>(o) + C(0.5));
    const auto first = std::max<int64_t>(static_cast<int64_t>(center - support + C(0.5)), 0);
    const auto stop = std::min<int64_t>(static_cast<int64_t>(center + support + C(0.5)), axis.in);
    const int64_t count = std::clamp<int64_t>(stop - first, 0, most);
    C total = 0;
    for (int64_t k = 0; k < count; ++k)
      total += w[static_cast<size_t>(k)] =
          filter_value(filter, (static_cast<C>(k + first) - center + C(0.5)) * inverse);
    for (int64_t k = 0; k < most; ++k) {
      const bool used = k < count;
      set(axis, k, o, std::clamp<int64_t>(first + (used ? k : 0), 0, axis.in - 1),
          used ? w[static_cast<size_t>(k)] / (total != 0 ? total : C(1)) : 0);
    }
  }
}

template <class C>
void fill(ResampleAxis& axis, Filter filter, std::optional<double> factor, bool align_corners) {
  const C scale = axis_scale<C>(axis.in, axis.out, factor, align_corners);
  switch (filter) {
    case Filter::Nearest:
    case Filter::NearestExact:
      return fill_nearest(axis, scale, filter == Filter::NearestExact);
    case Filter::Linear:
    case Filter::Cubic:
      return fill_neighbours(axis, scale, filter == Filter::Cubic, align_corners);
    default:
      return fill_antialiased(axis, filter, scale);
  }
}

}  // namespace

bool ResampleAxis::is_padded() const { return std::find(weight.begin(), weight.end(), 0.0) != weight.end(); }

int64_t ResampleAxis::span() const {
  int64_t most = 1;
  for (int64_t o = 0; o < out; ++o) {
    int32_t low = index[static_cast<size_t>(o)], high = low;
    for (int64_t k = 1; k < taps; ++k) {
      const int32_t i = index[static_cast<size_t>(k * out + o)];
      low = std::min(low, i), high = std::max(high, i);
    }
    most = std::max<int64_t>(most, high - low + 1);
  }
  return most;
}

ResampleAxis resample_axis(Filter filter, int64_t in, int64_t out, std::optional<double> factor,
                           bool align_corners, DType dtype) {
  ResampleAxis axis;
  axis.in = in, axis.out = out;
  // The integers' weights are rounded to fixed point from float64.
  const bool wide = dtype == DType::Float64 || (dtype == DType::UInt8 && filter > Filter::NearestExact);
  if (wide)
    fill<double>(axis, filter, factor, align_corners);
  else
    fill<float>(axis, filter, factor, align_corners);
  return axis;
}

ResampleAxis transposed(const ResampleAxis& axis) {
  ResampleAxis t;
  t.in = axis.out, t.out = axis.in;
  std::vector<int64_t> count(static_cast<size_t>(t.out));
  for (size_t i = 0; i < axis.index.size(); ++i)
    if (axis.weight[i] != 0) ++count[static_cast<size_t>(axis.index[i])];
  resize(t, std::max<int64_t>(1, *std::max_element(count.begin(), count.end())));
  std::fill(count.begin(), count.end(), 0);
  for (int64_t o = 0; o < axis.out; ++o)
    for (int64_t k = 0; k < axis.taps; ++k) {
      const auto at = static_cast<size_t>(k * axis.out + o);
      if (axis.weight[at] == 0) continue;
      int64_t& n = count[static_cast<size_t>(axis.index[at])];
      set(t, n++, axis.index[at], o, axis.weight[at]);
    }
  // Padding taps stay near, so that they need no row of their own.
  for (int64_t o = 0; o < t.out; ++o)
    for (int64_t k = count[static_cast<size_t>(o)]; k < t.taps; ++k)
      set(t, k, o, k > 0 ? t.index[static_cast<size_t>(o)] : 0, 0);
  return t;
}

}  // namespace rushlight::cpu
