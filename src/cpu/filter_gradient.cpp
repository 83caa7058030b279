#include "cpu/filter_gradient.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "core/parallel.h"
#include "cpu/buffer.h"
#include "cpu/chain_product.h"
#include "cpu/finite.h"
#include "cpu/image_window.h"
#include "cpu/isa_variant.h"

namespace rushlight::cpu {

RL_DECLARE_VARIANTS(FilterGradientKernels filter_gradient_kernels();)

namespace {

constexpr int64_t kItem = sizeof(float);

const FilterGradientKernels& kernels() {
  static const FilterGradientKernels chosen = RL_ISA_VARIANT(filter_gradient_kernels());
  return chosen;
}

int64_t up(int64_t n, int64_t unit) { return (n + unit - 1) / unit; }

// Some lines of the result, or parts of lines, of one image.
struct Chunk {
  int64_t image, plane, line, lines, first, width;
};

// How a gradient is computed: sizes of one group, and of the pieces.
class Plan {
 public:
  Plan(const ConvShape& s, bool planes)
      : s_(s),
        planes_(planes),
        in_(s.in_channels / s.groups),
        out_(s.out_channels / s.groups),
        rows_(in_ * s.kernel[0] * s.kernel[1] * s.kernel[2]),
        vectors_(up(out_, kernels().lanes)) {
    constexpr int64_t kPixels = 192, kBytes = 192 << 10;
    const int64_t most = std::clamp<int64_t>(
        kBytes / (s.in_channels * s.kernel[0] * s.stride[2] * s.stride[1] * kItem), 16, kPixels);
    width_ = up(s.output[2], up(s.output[2], most));
    lines_ = width_ < s.output[2] ? 1 : std::clamp<int64_t>(most / width_, 1, s.output[1]);
    lines_ = up(s.output[1], up(s.output[1], lines_));
    // Pixels a power of two apart would share few places of the cache.
    const int64_t pitch = s.in_channels + (s.in_channels * s.stride[2] % 128 ? 0 : 16);
    copied_ = pitch != s.in_channels || s.input_in_planes || s.padding != std::array<int64_t, 3>{};
    window_ = {s.input[1],
               s.input[2],
               s.in_channels,
               (lines_ - 1) * s.stride[1] + (s.kernel[1] - 1) * s.dilation[1] + 1,
               copied_ ? (width_ - 1) * s.stride[2] + (s.kernel[2] - 1) * s.dilation[2] + 1 : s.input[2],
               pitch};
    const int64_t plane_step = copied_ ? window_.elements() : s.dilation[0] * plane();
    offsets_.reserve(static_cast<size_t>(rows_));
    for (int64_t d = 0; d < s.kernel[0]; ++d)
      for (int64_t h = 0; h < s.kernel[1]; ++h)
        for (int64_t w = 0; w < s.kernel[2]; ++w)
          for (int64_t i = 0; i < in_; ++i)
            offsets_.push_back(d * plane_step + h * s.dilation[1] * window_.line() +
                               w * s.dilation[2] * pitch + i);
  }

  int64_t chunks() const {
    return s_.batch * s_.output[0] * up(s_.output[1], lines_) * up(s_.output[2], width_);
  }
  Chunk chunk(int64_t i) const {
    const int64_t columns = up(s_.output[2], width_), rows = up(s_.output[1], lines_);
    const int64_t first = i % columns * width_, line = i / columns % rows * lines_;
    const int64_t plane = i / columns / rows;
    return {plane / s_.output[0],
            plane % s_.output[0],
            line,
            std::min(lines_, s_.output[1] - line),
            first,
            std::min(width_, s_.output[2] - first)};
  }
  // Panels of one group: pairs of vectors, and one more.
  int64_t panels() const { return up(vectors_, 2); }
  int64_t group_sums() const { return vectors_ * kernels().lanes * rows_; }
  int64_t sums() const { return s_.groups * group_sums(); }

  // Where the sums of a panel begin.
  int64_t place(int64_t panel) const {
    return panel / panels() * group_sums() + panel % panels() * 2 * kernels().lanes * rows_;
  }
  // What the chunks give to the panels, which are counted through all groups.
  void add(Span chunks, Span panels, const float* image, const float* gradient, float* sums) const {
    const int64_t lanes = kernels().lanes;
    const Buffer copy(copied_ ? s_.kernel[0] * window_.elements() * kItem : 0),
        columns(lines_ * width_ * 2 * lanes * kItem);
    for (int64_t i = chunks.begin; i < chunks.end; ++i) {
      const Chunk c = chunk(i);
      const float* own = image + c.image * s_.input[0] * plane();
      const float* seen =
          own + ((c.plane * s_.stride[0] * s_.input[1] + c.line * s_.stride[1]) * s_.input[2] +
                 c.first * s_.stride[2]) *
                    s_.in_channels;
      if (copied_) copy_windows(c, own, copy.as<float>()), seen = copy.as<float>();
      PixelSums p{c.lines,
                  c.width,
                  columns.as<float>(),
                  nullptr,
                  s_.stride[1] * window_.line(),
                  s_.stride[2] * window_.pitch,
                  offsets_.data(),
                  nullptr,
                  i == chunks.begin};
      for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
        const int64_t group = panel / this->panels(), vector = panel % this->panels() * 2;
        const auto width = static_cast<int>(std::min<int64_t>(2, vectors_ - vector));
        copy_columns(c, group * out_ + vector * lanes, std::min(out_ - vector * lanes, width * lanes),
                     width * lanes, gradient, columns.as<float>());
        p.image = seen + group * in_;
        p.sums = sums + place(panel);
        kernels().add(p, width, {0, rows_});
      }
    }
  }

  // The filters of a panel from its sums; false when a number is not finite.
  bool collect(int64_t panel, const float* sums, float* weight) const {
    constexpr int64_t kTogether = 16;  // channels whose sums stay in the first-level cache
    const int64_t lanes = kernels().lanes, taps = rows_ / in_, vector = panel % panels() * 2,
                  step = std::min<int64_t>(2, vectors_ - vector) * lanes,
                  columns = std::min(step, out_ - vector * lanes);
    const float* from = sums + place(panel);
    float* to = weight + (panel / panels() * out_ + vector * lanes) * rows_;
    for (int64_t first = 0; first < in_; first += kTogether) {
      const int64_t count = std::min(in_ - first, kTogether);
      for (int64_t tap = 0; tap < taps; ++tap)
        for (int64_t o = 0; o < columns; ++o) {
          float* next = to + o * rows_ + first * taps + tap;
          const float* sum = from + (tap * in_ + first) * step + o;
          for (int64_t i = 0; i < count; ++i) next[i * taps] = sum[i * step];
        }
    }
    return all_finite(to, columns * rows_);
  }

 private:
  int64_t plane() const { return s_.input[1] * s_.input[2] * s_.in_channels; }
  // What a chunk sees of an image, plane by plane.
  void copy_windows(const Chunk& c, const float* image, float* to) const {
    const auto copy = s_.input_in_planes ? &ImageWindow::copy_planes : &ImageWindow::copy;
    for (int64_t d = 0; d < s_.kernel[0]; ++d, to += window_.elements()) {
      const int64_t at = c.plane * s_.stride[0] - s_.padding[0] + d * s_.dilation[0];
      if (at < 0 || at >= s_.input[0])
        std::fill_n(to, window_.elements(), 0.0f);
      else
        (window_.*copy)(image + at * plane(), c.line * s_.stride[1] - s_.padding[1],
                        c.first * s_.stride[2] - s_.padding[2], to);
    }
  }
  // Channels [channel, channel + count) of the gradient in the chunk, filled up to `width` with zeros.
  void copy_columns(const Chunk& c, int64_t channel, int64_t count, int64_t width, const float* gradient,
                    float* to) const {
    if (planes_) {
      const int64_t area = s_.output[1] * s_.output[2];
      const float* planes = gradient + (c.image * s_.out_channels + channel) * area;
      if (count < width) std::fill_n(to, c.lines * c.width * width, 0.0f);
      for (int64_t line = c.line; line < c.line + c.lines; ++line, to += c.width * width)
        turn_planes(planes + line * s_.output[2] + c.first, area, count, c.width, to, width);
      return;
    }
    for (int64_t line = c.line; line < c.line + c.lines; ++line) {
      const int64_t above = (c.image * s_.output[0] + c.plane) * s_.output[1] + line;
      const float* from = gradient + (above * s_.output[2] + c.first) * s_.out_channels + channel;
      for (int64_t x = 0; x < c.width; ++x, from += s_.out_channels, to += width) {
        if (count == 16)
          std::memcpy(to, from, 16 * kItem);
        else if (count == 8 && width == 8)
          std::memcpy(to, from, 8 * kItem);
        else
          std::fill(std::copy_n(from, count, to), to + width, 0.0f);
      }
    }
  }

  const ConvShape& s_;
  const bool planes_;  // the gradient's
  int64_t in_, out_, rows_, vectors_, width_, lines_;
  bool copied_;
  ImageWindow window_;
  std::vector<int64_t> offsets_;
};

}  // namespace

bool filter_gradient_sums(const ConvShape& s) {
  constexpr int64_t kLeastPixels = 32;  // of an image: fewer make loops too short
  // With AVX2 oneDNN has nothing but its plain loops for groups of few channels.
  const int64_t least = s.groups > 1 && host::isa() == host::Isa::kAvx2 ? 1 : 4;
  return s.dtype == DType::Float32 && s.channels_last && s.spatial >= 2 && kernels().lanes > 0 &&
         s.out_channels / s.groups >= least && s.output[1] * s.output[2] >= kLeastPixels;
}

bool filter_gradient(const ConvShape& s, OutputGradient output_gradient, const void* input,
                     void* weight_gradient) {
  constexpr int64_t kMostBytes = 256 << 20, kSerialWork = 64 * 64 * 64;
  const Plan plan(s, output_gradient.in_planes);
  const auto *gradient = static_cast<const float*>(output_gradient.data),
             *image = static_cast<const float*>(input);
  const int64_t chunks = plan.chunks(), panels = s.groups * plan.panels(), sums = plan.sums();
  const int64_t threads = s.output_numel() / s.out_channels * sums > kSerialWork ? get_num_threads() : 1;
  // Threads take pixels of their own, and of few also panels; or panels alone where the sums must not depend
  // on their number.
  const int64_t parts = same_on_any_threads()
                            ? 1
                            : std::min({threads, chunks, std::max<int64_t>(1, kMostBytes / (sums * kItem))}),
                cuts = std::clamp<int64_t>(threads / parts, 1, panels);
  const Buffer memory(parts * sums * kItem);
  auto* all = memory.as<float>();
  parallel_for(0, parts * cuts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t part = i / cuts, cut = i % cuts;
      float* own = all + part * sums;
      const Span mine{cut * panels / cuts, (cut + 1) * panels / cuts};
      plan.add({part * chunks / parts, (part + 1) * chunks / parts}, mine, image, gradient, own);
    }
  });
  if (parts > 1)
    parallel_for(0, sums, kGrainSize, [&](int64_t begin, int64_t end) {
      for (int64_t part = 1; part < parts; ++part)
        for (int64_t i = begin; i < end; ++i) all[i] += all[part * sums + i];
    });
  std::atomic<bool> finite{true};
  parallel_for(0, panels, std::max<int64_t>(1, kGrainSize * panels / sums), [&](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel)
      if (!plan.collect(panel, all, static_cast<float*>(weight_gradient))) finite = false;
  });
  return finite;
}

}  // namespace rushlight::cpu
