#include "cpu/line_conv.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <vector>

#include "core/constant_memory.h"
#include "core/parallel.h"
#include "cpu/buffer.h"
#include "cpu/finite.h"
#include "cpu/image_window.h"
#include "cpu/isa_variant.h"
#include "cpu/panel.h"

namespace rushlight::cpu {

RL_DECLARE_VARIANTS(LineConvKernels line_conv_kernels();)

namespace {

constexpr int64_t kItem = sizeof(float);

// Kernels for results of so many channels a group: of a few, wide vectors would be half empty.
const LineConvKernels& kernels_for([[maybe_unused]] int64_t columns) {
  static const LineConvKernels widest = RL_ISA_VARIANT(line_conv_kernels());
#if defined(RUSHLIGHT_WITH_AVX2)
  static const LineConvKernels narrow = avx2::line_conv_kernels();
  if (widest.lanes > narrow.lanes && columns <= narrow.lanes) return narrow;
#endif
  return widest;
}

int64_t up(int64_t n, int64_t unit) { return (n + unit - 1) / unit; }

// Along one axis: result i * out_step + first reads position i * step + taps[].at of the source.
struct Tap {
  int64_t filter, at;  // of the filter along the axis; in the source
};
struct Remainder {
  int64_t first, count;  // of the results
  std::vector<Tap> taps;
};
struct Axis {
  int64_t size, step, result, out_step;
  std::vector<Remainder> remainders;
  int64_t least = 0, most = 0;  // places of taps

  Axis(const ConvShape& s, int axis, bool gradient)
      : size(gradient ? s.output[axis] : s.input[axis]),
        step(gradient ? 1 : s.stride[axis]),
        result(gradient ? s.input[axis] : s.output[axis]),
        out_step(gradient ? s.stride[axis] : 1) {
    const int64_t stride = s.stride[axis], padding = s.padding[axis], dilation = s.dilation[axis];
    for (int64_t first = 0; first < std::min(out_step, result); ++first) {
      Remainder r{first, up(result - first, out_step), {}};
      for (int64_t k = 0; k < s.kernel[axis]; ++k) {
        const int64_t at = gradient ? first + padding - k * dilation : k * dilation - padding;
        if (!gradient) r.taps.push_back({k, at});
        if (gradient && at % stride == 0) r.taps.push_back({k, at / stride});
      }
      std::ranges::sort(r.taps, {}, &Tap::at);
      for (const Tap& tap : r.taps) least = std::min(least, tap.at), most = std::max(most, tap.at);
      remainders.push_back(std::move(r));
    }
  }
  int64_t longest() const { return remainders.front().count; }
  int64_t most_taps() const {
    size_t most = 1;
    for (const Remainder& r : remainders) most = std::max(most, r.taps.size());
    return static_cast<int64_t>(most);
  }
  bool stays_inside() const { return least == 0 && (longest() - 1) * step + most < size; }
};

// Filters in panels: for each pair of remainders [groups][panels][taps, channels, columns].
struct LinePanels final : ConstantMemory::Made {
  LinePanels(const ConvShape& s, bool gradient, int64_t elements)
      : shape(s), gradient(gradient), data(elements * kItem), elements(elements) {}
  size_t nbytes() const override { return static_cast<size_t>(elements * kItem); }
  bool are(const ConvShape& s, bool turned) const {
    return gradient == turned && shape.out_channels == s.out_channels && shape.in_channels == s.in_channels &&
           shape.groups == s.groups && shape.kernel == s.kernel && shape.stride == s.stride &&
           shape.padding == s.padding && shape.dilation == s.dilation;
  }
  const ConvShape shape;
  const bool gradient;
  bool finite = true;
  const Buffer data;
  const int64_t elements;
};

class LineConvolution {
 public:
  LineConvolution(const ConvShape& s, bool gradient, bool planes)
      : s_(s),
        gradient_(gradient),
        planes_(planes),
        from_((gradient ? s.out_channels : s.in_channels) / s.groups),
        to_((gradient ? s.in_channels : s.out_channels) / s.groups),
        kernels_(kernels_for(to_)),
        vectors_(up(to_, kernels_.lanes)),
        deep_(s, 0, gradient),
        high_(s, 1, gradient),
        wide_(s, 2, gradient) {
    constexpr int64_t kBytes = 128 << 10;
    copied_ = planes || !deep_.stays_inside() || !high_.stays_inside() || !wide_.stays_inside();
    const int64_t channels = from_ * s.groups, across = (wide_.longest() - 1) * wide_.step + reach(wide_);
    const int64_t most =
        std::max<int64_t>(1, kBytes / (across * channels * kItem * high_.step * deep_.most_taps()));
    const int64_t lines = high_.longest();
    lines_ = up(lines, up(lines, std::min(most, lines)));
    window_ = {high_.size,
               wide_.size,
               channels,
               (lines_ - 1) * high_.step + reach(high_),
               copied_ ? across : wide_.size,
               channels};
    elements_ = 0;
    for (const Remainder& d : deep_.remainders)
      for (const Remainder& h : high_.remainders)
        for (const Remainder& w : wide_.remainders) add_part(d, h, w);
  }

  bool run(const float* image, const void* weight, const float* bias, float* result) {
    panels_ = panels_of(weight);
    if (!panels_->finite && copied_) return false;
    const int64_t lanes = kernels_.lanes, chunks = up(high_.longest(), lines_),
                  tasks = s_.batch * deep_.result * chunks;
    const Buffer terms(s_.groups * vectors_ * lanes * kItem);
    for (int64_t group = 0; group < s_.groups; ++group)
      for (int64_t c = 0; c < vectors_ * lanes; ++c)
        terms.as<float>()[group * vectors_ * lanes + c] = bias && c < to_ ? bias[group * to_ + c] : -0.0f;
    const int64_t work = s_.output_numel() / s_.out_channels * s_.weight_numel() / s_.groups;
    const int64_t threads = work > kSerialWork ? get_num_threads() : 1;
    // Few chunks are cut by panels too.
    const int64_t all = s_.groups * up(vectors_, 2),
                  cuts = std::clamp<int64_t>(up(2 * threads, tasks), 1, threads > 1 ? all : 1);
    parallel_for(0, tasks * cuts, threads > 1 ? 1 : tasks * cuts, [&](int64_t begin, int64_t end) {
      const Buffer copy(copied_ ? deep_.most_taps() * window_.elements() * kItem : 0);
      for (int64_t task = begin, known = -1; task < end; ++task) {
        const int64_t chunk = task / cuts, cut = task % cuts, above = chunk / chunks,
                      n = above / deep_.result, z = above % deep_.result, line = chunk % chunks * lines_;
        const float* own = image + n * deep_.size * plane();
        const float* seen =
            own + z / deep_.out_step * deep_.step * plane() + line * high_.step * window_.line();
        if (copied_) {
          if (chunk != known) copy_windows(own, z, line, copy.as<float>());
          known = chunk, seen = copy.as<float>();
        }
        multiply(seen, z % deep_.out_step, line, {cut * all / cuts, (cut + 1) * all / cuts},
                 terms.as<float>(), result + above * high_.result * wide_.result * to_ * s_.groups);
      }
    });
    return true;
  }

 private:
  static constexpr int64_t kSerialWork = 64 * 64 * 64;
  static int64_t reach(const Axis& a) { return a.most - a.least + 1; }

  // Results of one remainder along each axis: the taps that they see.
  struct Part {
    const Remainder &high, &wide;
    int64_t start;                 // of the panels
    std::vector<int64_t> places;   // of taps in a filter
    std::vector<int64_t> offsets;  // of pieces of the source, from what a result sees first
    int64_t joined = 1;            // taps of a piece
    int64_t taps() const { return static_cast<int64_t>(places.size()); }
  };
  void add_part(const Remainder& d, const Remainder& h, const Remainder& w) {
    Part part{h, w, elements_, {}, {}};
    // Pixels side by side are one piece, if all of their channels are seen.
    const auto across = static_cast<int64_t>(w.taps.size());
    if (s_.groups == 1 && across > 1 && w.taps.back().at - w.taps.front().at == across - 1)
      part.joined = across;
    for (size_t i = 0; i < d.taps.size(); ++i)
      for (const Tap& y : h.taps)
        for (const Tap& x : w.taps) {
          const int64_t plane_at =
              copied_ ? static_cast<int64_t>(i) * window_.elements() : d.taps[i].at * plane();
          part.places.push_back((d.taps[i].filter * s_.kernel[1] + y.filter) * s_.kernel[2] + x.filter);
          if (part.places.size() % static_cast<size_t>(part.joined) == 1 || part.joined == 1)
            part.offsets.push_back(plane_at + (y.at - high_.least) * window_.line() +
                                   (x.at - wide_.least) * window_.channels);
        }
    elements_ += s_.groups * group_elements(part);
    parts_.push_back(std::move(part));
  }
  int64_t plane() const { return high_.size * wide_.size * window_.channels; }  // of the source
  int64_t depth(const Part& p) const { return p.taps() * from_; }
  int64_t group_elements(const Part& p) const { return depth(p) * vectors_ * kernels_.lanes; }

  // What the lines of a chunk see of an image: a window for each tap along the first axis.
  void copy_windows(const float* image, int64_t z, int64_t line, float* to) const {
    const auto copy = planes_ ? &ImageWindow::copy_planes : &ImageWindow::copy;
    for (const Tap& tap : deep_.remainders[static_cast<size_t>(z % deep_.out_step)].taps) {
      const int64_t at = z / deep_.out_step * deep_.step + tap.at;
      if (at < 0 || at >= deep_.size)
        std::fill_n(to, window_.elements(), 0.0f);
      else
        (window_.*copy)(image + at * plane(), line * high_.step + high_.least, wide_.least, to);
      to += window_.elements();
    }
  }

  // Panels, counted through all groups, of the lines of a chunk, `line` being its first.
  void multiply(const float* seen, int64_t remainder, int64_t line, Span panels, const float* bias,
                float* result) const {
    const int64_t lanes = kernels_.lanes, each = up(vectors_, 2), step = to_ * s_.groups;
    const size_t count = parts_.size() / deep_.remainders.size();
    for (const Part& part : std::span(parts_).subspan(static_cast<size_t>(remainder) * count, count)) {
      const float* filters = panels_->data.as<float>() + part.start;
      const int64_t lines = std::min(lines_, part.high.count - line);
      for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
        const int64_t group = panel / each, vector = panel % each * 2;
        const auto width = static_cast<int>(std::min<int64_t>(2, vectors_ - vector));
        LineProduct p{seen + group * from_,
                      wide_.step * window_.pitch,
                      part.offsets.data(),
                      static_cast<int64_t>(part.offsets.size()),
                      part.joined * from_,
                      filters + group * group_elements(part) + vector * lanes * depth(part),
                      bias + (group * vectors_ + vector) * lanes,
                      std::min(width * lanes, to_ - vector * lanes),
                      nullptr,
                      wide_.out_step * step};
        for (int64_t y = 0; y < lines; ++y, p.image += high_.step * window_.line()) {
          p.out = result +
                  (((line + y) * high_.out_step + part.high.first) * wide_.result + part.wide.first) * step +
                  group * to_ + vector * lanes;
          kernels_.multiply(p, width, part.wide.count);
        }
      }
    }
  }

  std::shared_ptr<const LinePanels> panels_of(const void* weight) const {
    const auto same = [&](const LinePanels& p) { return p.are(s_, gradient_); };
    const bool constant = ConstantMemory::contains(weight);
    if (constant)
      if (auto found = ConstantMemory::find<LinePanels>(weight, same)) return found;
    auto made = std::make_shared<LinePanels>(s_, gradient_, elements_);
    fill(static_cast<const float*>(weight), *made);
    if (constant) ConstantMemory::keep(weight, made);
    return made;
  }

  void fill(const float* weight, LinePanels& made) const {
    const int64_t lanes = kernels_.lanes, each = up(vectors_, 2),
                  taps = s_.kernel[0] * s_.kernel[1] * s_.kernel[2];
    // Filters [out, in, taps]; the channels of a result are columns.
    const int64_t in = s_.in_channels / s_.groups, row_step = gradient_ ? in * taps : taps,
                  column_step = gradient_ ? taps : in * taps, group_step = from_ * to_ * taps;
    for (const Part& part : parts_) {
      float* filters = made.data.as<float>() + part.start;
      parallel_for(0, s_.groups * each,
                   std::max<int64_t>(1, kGrainSize / (2 * lanes * std::max<int64_t>(1, depth(part)))),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t panel = begin; panel < end; ++panel) {
                       const int64_t group = panel / each, vector = panel % each * 2;
                       const int64_t width = std::min<int64_t>(2, vectors_ - vector) * lanes;
                       pack_filters({weight + group * group_step + vector * lanes * column_step, row_step,
                                     column_step},
                                    part.places, from_, std::min(width, to_ - vector * lanes), width,
                                    filters + group * group_elements(part) + vector * lanes * depth(part));
                     }
                   });
    }
    made.finite = all_finite(made.data.as<float>(), elements_);
  }

  const ConvShape& s_;
  const bool gradient_, planes_;
  const int64_t from_, to_;  // channels of a group
  const LineConvKernels& kernels_;
  const int64_t vectors_;
  const Axis deep_, high_, wide_;
  int64_t lines_, elements_;
  bool copied_;
  ImageWindow window_;
  std::vector<Part> parts_;
  std::shared_ptr<const LinePanels> panels_;
};

bool can_convolve(const ConvShape& s) {
  return s.dtype == DType::Float32 && s.channels_last && s.spatial >= 2 &&
         kernels_for(s.out_channels).lanes > 0;
}

bool has_avx2_alone() { return host::isa() == host::Isa::kAvx2; }

// Groups of a few channels: of more, oneDNN's kernels are as fast.
bool has_small_groups(const ConvShape& s) {
  constexpr int64_t kMost = 48;
  const int64_t least = has_avx2_alone() ? 4 : 8;
  const int64_t in = s.in_channels / s.groups, out = s.out_channels / s.groups;
  return s.groups > 1 && std::min(in, out) >= least && std::max(in, out) <= kMost &&
         s.kernel[0] * s.kernel[1] * s.kernel[2] > 1;
}
bool has_few_channels(const ConvShape& s) {
  constexpr int64_t kMost = 4, kLeast = 16;
  return s.groups == 1 && s.in_channels <= kMost && s.out_channels >= kLeast;
}
}  // namespace

bool line_convolves(const ConvShape& s) {
  constexpr int64_t kMostFilters = 1 << 14;
  if (!can_convolve(s)) return false;
  return has_small_groups(s) || (has_avx2_alone() && has_few_channels(s) && s.weight_numel() <= kMostFilters);
}
// With AVX2 oneDNN steps badly through images whose size the strides do not divide.
bool line_convolves_gradient(const ConvShape& s) {
  constexpr int64_t kMostFilters = 1 << 17, kLeastChannels = 16;
  if (!can_convolve(s)) return false;
  const bool uneven = s.groups == 1 && s.input[2] % s.stride[2] != 0 &&
                      std::min(s.in_channels, s.out_channels) >= kLeastChannels &&
                      s.weight_numel() <= kMostFilters;
  return has_small_groups(s) || has_few_channels(s) || (has_avx2_alone() && uneven);
}

bool line_conv_forward(const ConvShape& s, const void* input, const void* weight, const void* bias,
                       void* output) {
  return LineConvolution(s, false, s.input_in_planes)
      .run(static_cast<const float*>(input), weight, static_cast<const float*>(bias),
           static_cast<float*>(output));
}
bool line_conv_input_gradient(const ConvShape& s, OutputGradient output_gradient, const void* weight,
                              void* input_gradient) {
  return LineConvolution(s, true, output_gradient.in_planes)
      .run(static_cast<const float*>(output_gradient.data), weight, nullptr,
           static_cast<float*>(input_gradient));
}

}  // namespace rushlight::cpu
