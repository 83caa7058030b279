// Depthwise convolutions of bytes: how taps are grouped, and the lines of the result shared among threads.
#include <algorithm>
#include <cstring>

#include "core/parallel.h"
#include "cpu/byte_conv.h"
#include "cpu/isa_variant.h"

namespace rushlight::cpu {

RL_DECLARE_VARIANTS(ByteDepthwiseKernels byte_depthwise_kernels_variant();)

namespace {

const ByteDepthwiseKernels& depthwise_kernels() {
  static const ByteDepthwiseKernels chosen = RL_ISA_VARIANT(byte_depthwise_kernels_variant());
  return chosen;
}

int64_t divided_up(int64_t n, int64_t by) { return (n + by - 1) / by; }

}  // namespace

// A group is taps of one column, or neighbours of one line: whichever takes fewer steps.
ByteDepthwiseFilters::ByteDepthwiseFilters(const ByteConvShape& s, const int8_t* filters)
    : sums_(static_cast<size_t>(s.channels)) {
  const ByteDepthwiseKernels& kernels = depthwise_kernels();
  const int64_t lines = s.kernel[0] * s.kernel[1], width = s.kernel[2], taps = s.taps(), each = kernels.taps;
  const bool columns = divided_up(lines, each) * width <= lines * divided_up(width, each);
  const int64_t groups = columns ? divided_up(lines, each) : lines;
  for (int64_t group = 0; group < groups; ++group) {
    for (int64_t i = 0; i < each; ++i) {
      const int64_t line = columns ? group * each + i : group;
      taps_.push_back({line < lines ? line : -1, columns ? 0 : i * s.dilation[2]});
    }
    for (int64_t x = 0; x < width; x += columns ? 1 : each) steps_.push_back({group, x * s.dilation[2]});
  }
  const int64_t panels = divided_up(s.channels, kByteDepthwiseChannels);
  panels_.resize(static_cast<size_t>(panels) * steps_.size() * kByteDepthwiseBytes);
  for (int64_t c = 0; c < s.channels; ++c)
    for (int64_t tap = 0; tap < taps; ++tap) sums_[static_cast<size_t>(c)] += filters[c * taps + tap];
  int8_t* to = panels_.data();
  for (int64_t panel = 0; panel < panels; ++panel)
    for (const ByteDepthwiseTap& step : steps_)
      for (const uint8_t place : kernels.order)
        for (int64_t i = 0; i < each; ++i, to += kernels.element) {
          const ByteDepthwiseTap& tap = taps_[static_cast<size_t>(step.line * each + i)];
          const int64_t x = (step.shift + tap.shift) / s.dilation[2],
                        c = first_of_byte_panel(panel, s.channels) + place;
          if (c >= s.channels || tap.line < 0 || x >= width) continue;
          const int16_t factor = filters[c * taps + tap.line * width + x];
          std::memcpy(to, &factor, static_cast<size_t>(kernels.element));
        }
}

void ByteDepthwiseFilters::convolve(const ByteConvShape& s, const void* image, bool is_signed,
                                    const ByteProduct& rest) const {
  const ByteDepthwiseKernels& kernels = depthwise_kernels();
  const int64_t panels = divided_up(s.channels, kByteDepthwiseChannels), steps = std::ssize(steps_),
                groups = std::ssize(taps_) / kernels.taps, zero = rest.a_zero + (is_signed ? 128 : 0);
  std::vector<int32_t> settings(static_cast<size_t>(panels * 3 * kByteDepthwiseChannels));
  int32_t* setting = settings.data();
  for (int64_t panel = 0; panel < panels; ++panel, setting += 2 * kByteDepthwiseChannels)
    for (const uint8_t place : kernels.order) {
      const int64_t c = first_of_byte_panel(panel, s.channels) + place;
      if (c < s.channels) {
        *setting = static_cast<int32_t>(-zero * sums_[static_cast<size_t>(c)]);
        if (rest.scales) std::memcpy(setting + kByteDepthwiseChannels, rest.scales + c, sizeof(float));
        if (rest.bias) std::memcpy(setting + 2 * kByteDepthwiseChannels, rest.bias + c, sizeof(float));
      }
      ++setting;
    }
  ByteDepthwiseLine line{};
  line.rest = &rest;
  line.taps = taps_.data(), line.filters = panels_.data(), line.settings = settings.data();
  line.groups = groups, line.steps = steps, line.channels = s.channels;
  line.width = s.in[2], line.count = s.out[2], line.stride = s.stride[2], line.margin = s.padding[2];
  line.padding = static_cast<uint8_t>(rest.a_zero), line.is_signed = is_signed;
  for (const ByteDepthwiseTap& step : steps_) line.span = std::max(line.span, step.shift);
  // So many columns that the nearest cache holds what lies side by side, and at least a few pixels.
  constexpr int64_t kNear = 20 * 1024, kFewPixels = 4;
  line.columns =
      std::max(line.span + 1 + (kFewPixels - 1) * s.stride[2], kNear / (kByteDepthwiseBytes * groups));
  line.columns = std::min(line.columns, line.span + 1 + (s.out[2] - 1) * s.stride[2]);
  std::vector<int64_t> offsets;
  for (const ByteDepthwiseTap& step : steps_)
    offsets.push_back((step.line * line.columns + step.shift) * kByteDepthwiseBytes);
  line.offsets = offsets.data();

  const int64_t element = rest.result == ByteResult::kInt32 || rest.result == ByteResult::kFloat ? 4 : 1;
  const int64_t work = s.channels * s.out[2] * s.taps();
  parallel_for(0, s.batch * s.out[0] * s.out[1], std::max<int64_t>(1, kGrainSize / work),
               [&](int64_t begin, int64_t end) {
                 const Buffer memory(line.columns * groups * kByteDepthwiseBytes);
                 std::vector<const uint8_t*> lines(static_cast<size_t>(s.kernel[0] * s.kernel[1]));
                 ByteDepthwiseLine own = line;
                 own.memory = memory.as<char>(), own.lines = lines.data();
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t y = i % s.out[1] * s.stride[1] - s.padding[1],
                                 z = i / s.out[1] % s.out[0] * s.stride[0] - s.padding[0],
                                 b = i / (s.out[1] * s.out[0]);
                   auto line_at = lines.begin();
                   for (int64_t kz = 0; kz < s.kernel[0]; ++kz)
                     for (int64_t ky = 0; ky < s.kernel[1]; ++ky) {
                       const int64_t iz = z + kz * s.dilation[0], iy = y + ky * s.dilation[1];
                       const bool inside = iz >= 0 && iz < s.in[0] && iy >= 0 && iy < s.in[1];
                       *line_at++ = inside ? static_cast<const uint8_t*>(image) +
                                                 ((b * s.in[0] + iz) * s.in[1] + iy) * s.in[2] * s.channels
                                           : nullptr;
                     }
                   own.to = static_cast<char*>(rest.c) + i * s.out[2] * rest.ldc * element;
                   kernels.line(own);
                 }
               });
}

}  // namespace rushlight::cpu
