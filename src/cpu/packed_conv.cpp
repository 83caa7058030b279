#include "cpu/packed_conv.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "core/constant_memory.h"
#include "core/parallel.h"
#include "cpu/buffer.h"
#include "cpu/chain_product.h"
#include "cpu/finite.h"
#include "cpu/isa_variant.h"
#include "cpu/panel.h"
#include "cpu/winograd.h"

namespace rushlight::cpu {

RL_DECLARE_VARIANTS(PackedConvKernels packed_conv_kernels();)

namespace {

const PackedConvKernels& kernels() {
  static const PackedConvKernels chosen = RL_ISA_VARIANT(packed_conv_kernels());
  return chosen;
}

bool fast() { return kernels().lanes > 0; }

int64_t up(int64_t n, int64_t unit) { return (n + unit - 1) / unit; }

// Filters [columns, channels, taps] in panels.
struct Panels final : ConstantMemory::Made {
  Panels(int64_t taps, int64_t channels, int64_t columns)
      : taps(taps),
        channels(channels),
        columns(columns),
        vectors(up(columns, kernels().lanes)),
        elements(vectors * kernels().lanes * taps * channels),
        data(elements * static_cast<int64_t>(sizeof(float))) {}
  size_t nbytes() const override { return static_cast<size_t>(elements) * sizeof(float); }
  void fill(const float* weight);

  const int64_t taps, channels, columns, vectors, elements;
  bool finite = true;
  const Buffer data;
};

void Panels::fill(const float* weight) {
  const int64_t lanes = kernels().lanes, most = kernels().vectors, depth = taps * channels;
  std::vector<int64_t> places(static_cast<size_t>(taps));
  std::iota(places.begin(), places.end(), 0);
  parallel_for(0, up(vectors, most), std::max<int64_t>(1, kGrainSize / (depth * lanes * most)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t v = begin * most, last = std::min(end * most, vectors); v < last;) {
                   const int64_t first = v * lanes,
                                 together = panel_vectors(last - v, static_cast<int>(most));
                   pack_filters({weight + first * depth, taps, depth}, places, channels,
                                std::min(together * lanes, columns - first), together * lanes,
                                data.as<float>() + first * depth);
                   v += together;
                 }
               });
  finite = all_finite(data.as<float>(), elements);
}

std::shared_ptr<const Panels> panels_of(const void* weight, int64_t taps, int64_t channels, int64_t columns) {
  const auto same = [&](const Panels& p) {
    return p.taps == taps && p.channels == channels && p.columns == columns;
  };
  if (auto found = ConstantMemory::find<Panels>(weight, same)) return found;
  auto made = std::make_shared<Panels>(taps, channels, columns);
  made->fill(static_cast<const float*>(weight));
  ConstantMemory::keep(weight, made);
  return made;
}

// Rows of a matrix, whose factors are one piece each.
struct Rows {
  const float* first;
  int64_t step;
  void operator()(int64_t row, int count, const float** to) const {
    for (int r = 0; r < count; ++r) to[r] = first + (row + r) * step;
  }
};

// Rows and columns by blocks that fit the caches, for all threads. place(first, count, to): where the factors
// of some rows, one group, are.
template <class Place>
void run(const PixelProduct& p, int64_t rows, Place&& place) {
  constexpr int64_t kBlockBytes = 192 << 10, kPointers = 4096, kSerialWork = 64 * 64 * 64;
  const PackedConvKernels& f = kernels();
  const int64_t depth = p.pieces * p.run, vectors = up(p.columns, f.lanes);
  const int64_t work = rows * depth * p.columns, threads = work > kSerialWork ? get_num_threads() : 1;
  const int64_t most =
      std::min(kBlockBytes / (p.run * static_cast<int64_t>(sizeof(float))), kPointers / p.pieces) /
      kGroupRows * kGroupRows;
  int64_t block = std::max<int64_t>(kGroupRows, most), parts = 1;
  if (threads > 1) {
    // A large matrix is shared out by columns, so that each thread reads its part of it alone.
    if (p.columns > rows || rows < threads * kGroupRows * 4)
      parts = std::min(threads, up(vectors, f.vectors));
    else
      block = std::min(block, std::max<int64_t>(4, up(rows, threads * 4 * kGroupRows)) * kGroupRows);
  }
  const int64_t blocks = up(rows, block), panels = up(vectors, f.vectors);
  parallel_for(0, blocks * parts, threads > 1 ? 1 : blocks * parts, [&](int64_t begin, int64_t end) {
    std::vector<const float*> factors(static_cast<size_t>(std::min(block, rows) * p.pieces));
    for (int64_t task = begin, known = -1; task < end; ++task) {
      const int64_t part = task % parts, first = task / parts * block, last = std::min(first + block, rows);
      if (known != first)
        for (int64_t row = first; row < last;) {
          const int group = group_rows(last - row);
          place(row, group, factors.data() + (row - first) * p.pieces);
          row += group;
        }
      known = first;
      f.multiply(
          p, factors.data(), {first, last},
          {part * panels / parts * f.vectors, std::min(vectors, (part + 1) * panels / parts * f.vectors)});
    }
  });
}

int64_t volume(const std::array<int64_t, 3>& a) { return a[0] * a[1] * a[2]; }

// Few channels make short runs: with the pixels of a line that a filter sees they are one, where the image
// has its padding beside it.
bool joins_pixels(const ConvShape& s) { return s.in_channels < 16 && s.kernel[2] > 1 && s.dilation[2] == 1; }

// Copies an image with zeros left and right, as far as filters reach.
void pad_lines(const ConvShape& s, const float* input, int64_t width, float* padded) {
  const int64_t lines = s.batch * s.input[0] * s.input[1], c = s.in_channels;
  const int64_t left = std::min(s.padding[2], width), before = left * c,
                own = std::min(s.input[2], width - left) * c;
  parallel_for(0, lines, std::max<int64_t>(1, kGrainSize / (width * c)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      float* to = padded + i * width * c;
      std::fill_n(to, before, 0.0f);
      std::copy_n(input + i * s.input[2] * c, own, to + before);
      std::fill(to + before + own, to + width * c, 0.0f);
    }
  });
}

// The pieces that rows of a convolution, pixels of the result, are made of.
class Pixels {
 public:
  Pixels(const ConvShape& s, const float* image, int64_t width, int64_t padding, int64_t taps,
         const float* zeros)
      : s_(s), image_(image), width_(width), padding_(padding), taps_(taps), zeros_(zeros) {}

  void operator()(int64_t row, int count, const float** to) const {
    int64_t x = row % s_.output[2], y = row / s_.output[2] % s_.output[1],
            z = row / s_.output[2] / s_.output[1] % s_.output[0],
            n = row / s_.output[2] / s_.output[1] / s_.output[0];
    for (int r = 0; r < count;) {  // a line of the result after the other
      const int along = static_cast<int>(std::min<int64_t>(count - r, s_.output[2] - x));
      place(n, z, y, x, along, to + r, count);
      r += along, x = 0;
      if (++y < s_.output[1]) continue;
      y = 0;
      if (++z < s_.output[0]) continue;
      z = 0, ++n;
    }
  }

 private:
  // Of `along` pixels side by side; a piece's next tap is `count` places on.
  void place(int64_t n, int64_t z, int64_t y, int64_t x, int along, const float** next, int count) const {
    const int64_t stride = s_.stride[2], channels = s_.in_channels, last = (along - 1) * stride;
    for (int64_t d = 0; d < s_.kernel[0]; ++d) {
      const int64_t in_z = z * s_.stride[0] - s_.padding[0] + d * s_.dilation[0];
      for (int64_t h = 0; h < s_.kernel[1]; ++h) {
        const int64_t in_y = y * s_.stride[1] - s_.padding[1] + h * s_.dilation[1];
        const bool inside = in_z >= 0 && in_z < s_.input[0] && in_y >= 0 && in_y < s_.input[1];
        const int64_t line = ((n * s_.input[0] + in_z) * s_.input[1] + in_y) * width_;
        for (int64_t w = 0; w < taps_; ++w, next += count) {
          const int64_t in_x = x * stride - padding_ + w * s_.dilation[2];
          if (inside && in_x >= 0 && in_x + last < width_) {
            const float* at = image_ + (line + in_x) * channels;
            for (int r = 0; r < along; ++r, at += stride * channels) next[r] = at;
            continue;
          }
          for (int r = 0; r < along; ++r) {
            const int64_t at = in_x + r * stride;
            next[r] = inside && at >= 0 && at < width_ ? image_ + (line + at) * channels : zeros_;
          }
        }
      }
    }
  }

  const ConvShape& s_;
  const float* image_;
  int64_t width_, padding_, taps_;
  const float* zeros_;
};

}  // namespace

// With AVX-512 oneDNN's kernels are as fast but for filters of one pixel, and those by our AVX2 are behind.
static bool is_ahead(const ConvShape& s) {
  if (s.groups > 1) return false;
  const bool wide = kernels().lanes == 16;
  return !wide || volume(s.kernel) == 1;
}

// In batch-invariant mode always, since it is by chains.
bool packed_convolves(const ConvShape& s, const void* weight) {
  const bool chains = batch_invariant() && s.groups == 1;
  return s.dtype == DType::Float32 && s.channels_last && !s.input_in_planes && fast() &&
         s.out_channels >= 4 && s.in_channels * volume(s.kernel) >= 4 && s.output_numel() > 0 &&
         !winograd_convolves(s) && (chains || (is_ahead(s) && ConstantMemory::contains(weight)));
}

bool packed_conv_forward(const ConvShape& s, const void* input, const void* weight, const void* bias,
                         void* output, const EpilogueArguments* after) {
  const int64_t in = s.in_channels, taps = volume(s.kernel), columns = s.out_channels;
  const auto* image = static_cast<const float*>(input);
  const bool joined = joins_pixels(s);
  const int64_t lines = s.kernel[0] * s.kernel[1], across = joined ? 1 : s.kernel[2];
  const auto panels = panels_of(weight, taps, in, columns);
  if (!panels->finite && s.padding != std::array<int64_t, 3>{}) return false;
  PixelProduct p{joined ? lines : taps, joined ? s.kernel[2] * in : in, columns, panels->data.as<float>()};
  p.bias = static_cast<const float*>(bias), p.out = static_cast<float*>(output), p.out_step = columns;
  if (after) {
    p.residual = static_cast<const float*>(after->residual);
    if (after->scaled) p.scale = after->scale, p.shift = after->shift;
    p.bounded = after->bounded, p.low = after->low, p.high = after->high;
  }
  const int64_t pixels = s.batch * volume(s.output);
  if (taps == 1 && s.input == s.output) {
    run(p, pixels, Rows{image, in});
    return true;
  }
  const std::vector<float> zeros(static_cast<size_t>(p.run), 0.0f);
  const int64_t reach = (s.output[2] - 1) * s.stride[2] + s.kernel[2];
  const Buffer padded(joined ? s.batch * s.input[0] * s.input[1] * reach * in * 4 : 0);
  if (joined) pad_lines(s, image, reach, padded.as<float>()), image = padded.as<float>();
  run(p, pixels,
      Pixels(s, image, joined ? reach : s.input[2], joined ? 0 : s.padding[2], across, zeros.data()));
  return true;
}

}  // namespace rushlight::cpu
