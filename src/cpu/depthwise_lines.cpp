#include "cpu/depthwise_lines.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "core/constant_memory.h"
#include "core/parallel.h"
#include "cpu/buffer.h"
#include "cpu/chain_product.h"
#include "cpu/isa_variant.h"

namespace rushlight::cpu {

RL_DECLARE_VARIANTS(DepthwiseLineKernels depthwise_line_kernels();)

namespace {

constexpr int64_t kItem = sizeof(float);

const DepthwiseLineKernels& kernels() {
  static const DepthwiseLineKernels chosen = RL_ISA_VARIANT(depthwise_line_kernels());
  return chosen;
}

int64_t taps_of(const ConvShape& s) { return s.kernel[1] * s.kernel[2]; }
int64_t spread(const ConvShape& s, int axis) { return (s.kernel[axis] - 1) * s.dilation[axis]; }

// Filters [vectors, taps, lanes], run through backwards where they are turned.
struct Filters final : ConstantMemory::Made {
  Filters(const float* weight, int64_t channels, int64_t taps, bool turned)
      : taps(taps), turned(turned), bytes(channels * taps * kItem), data(bytes) {
    const int64_t lanes = kernels().lanes;
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t t = 0; t < taps; ++t)
        data.as<float>()[(c / lanes * taps + t) * lanes + c % lanes] =
            weight[c * taps + (turned ? taps - 1 - t : t)];
  }
  size_t nbytes() const override { return static_cast<size_t>(bytes); }
  const int64_t taps;
  const bool turned;
  const int64_t bytes;
  const Buffer data;
};

std::shared_ptr<const Filters> filters_of(const void* weight, const ConvShape& s, bool turned) {
  const auto same = [&](const Filters& f) {
    return f.turned == turned && f.taps == taps_of(s) && f.bytes == s.weight_numel() * kItem;
  };
  const bool constant = ConstantMemory::contains(weight);
  if (constant)
    if (auto found = ConstantMemory::find<Filters>(weight, same)) return found;
  auto made =
      std::make_shared<const Filters>(static_cast<const float*>(weight), s.out_channels, taps_of(s), turned);
  if (constant) ConstantMemory::keep(weight, made);
  return made;
}

// The convolution that a gradient in the image of stride 1 is, with turned filters.
ConvShape turned_shape(const ConvShape& s) {
  ConvShape t = s;
  std::swap(t.input, t.output);
  for (int i = 1; i < 3; ++i) t.padding[i] = spread(s, i) - s.padding[i];
  return t;
}

void convolve(const ConvShape& s, const float* image, const Filters& filters, const float* bias,
              float* output, const EpilogueArguments* after) {
  const int64_t c = s.out_channels, line = s.input[2] * c;
  const bool bounded = after && after->bounded;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  parallel_for(0, s.batch * s.output[1], std::max<int64_t>(1, kGrainSize / (s.output[2] * c)),
               [&](int64_t begin, int64_t end) {
                 std::vector<const float*> lines(static_cast<size_t>(s.kernel[1]));
                 DepthwiseLine d{lines.data(),
                                 s.kernel[1],
                                 s.kernel[2],
                                 c,
                                 s.stride[2],
                                 s.padding[2],
                                 s.dilation[2],
                                 s.input[2],
                                 s.output[2],
                                 filters.data.as<float>(),
                                 bias,
                                 bounded ? after->low : -kInfinity,
                                 bounded ? after->high : kInfinity,
                                 nullptr};
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t n = i / s.output[1], y = i % s.output[1] * s.stride[1] - s.padding[1];
                   for (int64_t h = 0; h < s.kernel[1]; ++h) {
                     const int64_t at = y + h * s.dilation[1];
                     lines[static_cast<size_t>(h)] =
                         at >= 0 && at < s.input[1] ? image + (n * s.input[1] + at) * line : nullptr;
                   }
                   d.out = output + i * s.output[2] * c;
                   kernels().line(d);
                 }
               });
}

// The pixels of a line of the result that see a filter's column inside the image.
struct Seen {
  int64_t first, last;
};
Seen seen_by(const ConvShape& s, int64_t column) {
  const int64_t shift = column * s.dilation[2] - s.padding[2], step = s.stride[2];
  const int64_t first = std::max<int64_t>(0, (step - 1 - shift) / step),
                last = s.input[2] - 1 - shift < 0 ? 0 : (s.input[2] - 1 - shift) / step + 1;
  return {std::min(first, s.output[2]), std::clamp(last, std::min(first, s.output[2]), s.output[2])};
}

// Adds the sums of lines of the result to those of the filters.
class WeightGradient {
 public:
  WeightGradient(const ConvShape& s, const float* gradient, const float* image)
      : s_(s), gradient_(gradient), image_(image), common_{0, s.output[2]} {
    for (int64_t w = 0; w < s.kernel[2]; ++w) {
      columns_.push_back(seen_by(s, w));
      common_ = {std::max(common_.first, columns_.back().first),
                 std::min(common_.last, columns_.back().last)};
    }
    common_.last = std::max(common_.first, common_.last);
  }

  void add(int64_t begin, int64_t end, float* sums) const {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t x = 0; x < common_.first; ++x) add_pixels(i, x, x + 1, sums);
      add_pixels(i, common_.first, common_.last, sums);
      for (int64_t x = common_.last; x < s_.output[2]; ++x) add_pixels(i, x, x + 1, sums);
    }
  }

 private:
  // Pixels of line i that see the same taps.
  void add_pixels(int64_t i, int64_t first, int64_t last, float* sums) const {
    if (first == last) return;
    const int64_t n = i / s_.output[1], y = i % s_.output[1] * s_.stride[1] - s_.padding[1],
                  c = s_.out_channels, lanes = kernels().lanes;
    DepthwiseTap taps[DepthwiseSums::kMost];
    DepthwiseSums d{gradient_ + (i * s_.output[2] + first) * c,
                    last - first,
                    c,
                    s_.stride[2],
                    taps_of(s_) * lanes,
                    taps,
                    0};
    for (int64_t h = 0; h < s_.kernel[1]; ++h) {
      const int64_t at = y + h * s_.dilation[1];
      if (at < 0 || at >= s_.input[1]) continue;
      const float* line = image_ + (n * s_.input[1] + at) * s_.input[2] * c;
      for (int64_t w = 0; w < s_.kernel[2]; ++w) {
        const Seen& seen = columns_[static_cast<size_t>(w)];
        if (first < seen.first || last > seen.last) continue;
        taps[d.count++] = {line + (first * s_.stride[2] - s_.padding[2] + w * s_.dilation[2]) * c,
                           sums + (h * s_.kernel[2] + w) * lanes};
        if (d.count < DepthwiseSums::kMost) continue;
        kernels().add(d);
        d.count = 0;
      }
    }
    if (d.count) kernels().add(d);
  }

  const ConvShape& s_;
  const float *gradient_, *image_;
  std::vector<Seen> columns_;
  Seen common_;
};

}  // namespace

bool depthwise_by_lines(const ConvShape& s) {
  return s.dtype == DType::Float32 && s.channels_last && !s.input_in_planes && s.spatial == 2 &&
         s.groups > 1 && s.groups == s.in_channels && s.out_channels == s.in_channels &&
         kernels().lanes > 0 && s.in_channels % kernels().lanes == 0;
}
bool depthwise_gradient_by_lines(const ConvShape& s) {
  return depthwise_by_lines(s) && s.stride[1] == 1 && s.stride[2] == 1 && s.padding[1] <= spread(s, 1) &&
         s.padding[2] <= spread(s, 2);
}
bool follows_depthwise_lines(const EpilogueArguments* after) {
  return !after || !(after->residual || after->scaled);
}

void depthwise_lines_forward(const ConvShape& s, const void* input, const void* weight, const void* bias,
                             void* output, const EpilogueArguments* after) {
  convolve(s, static_cast<const float*>(input), *filters_of(weight, s, false),
           static_cast<const float*>(bias), static_cast<float*>(output), after);
}
void depthwise_lines_input_gradient(const ConvShape& s, const void* output_gradient, const void* weight,
                                    void* input_gradient) {
  convolve(turned_shape(s), static_cast<const float*>(output_gradient), *filters_of(weight, s, true), nullptr,
           static_cast<float*>(input_gradient), nullptr);
}

void depthwise_lines_weight_gradient(const ConvShape& s, const void* output_gradient, const void* input,
                                     void* weight_gradient) {
  const int64_t lines = s.batch * s.output[1], sums = s.weight_numel(), taps = taps_of(s),
                lanes = kernels().lanes;
  constexpr int64_t kAnyThreads = 8;
  const int64_t threads = same_on_any_threads() ? kAnyThreads : get_num_threads();
  const int64_t parts =
      std::clamp<int64_t>(s.output_numel() * taps / (4 * kGrainSize), 1, std::min<int64_t>(threads, lines));
  const Buffer memory(parts * sums * kItem);
  auto* all = memory.as<float>();
  const WeightGradient w(s, static_cast<const float*>(output_gradient), static_cast<const float*>(input));
  parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      std::memset(all + part * sums, 0, static_cast<size_t>(sums * kItem));
      w.add(part * lines / parts, (part + 1) * lines / parts, all + part * sums);
    }
  });
  auto* result = static_cast<float*>(weight_gradient);
  for (int64_t c = 0; c < s.out_channels; ++c)
    for (int64_t t = 0; t < taps; ++t) {
      float sum = 0;
      for (int64_t part = 0; part < parts; ++part)
        sum += all[part * sums + (c / lanes * taps + t) * lanes + c % lanes];
      *result++ = sum;
    }
}

}  // namespace rushlight::cpu
