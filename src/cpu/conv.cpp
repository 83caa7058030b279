#include "cpu/conv.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "core/constant_memory.h"
#include "core/cpu_allocator.h"
#include "core/parallel.h"
#include "cpu/chain_product.h"
#include "cpu/conv_columns.h"
#include "cpu/conv_onednn.h"
#include "cpu/conv_planes.h"
#include "cpu/copy.h"
#include "cpu/depthwise.h"
#include "cpu/depthwise_lines.h"
#include "cpu/filter_gradient.h"
#include "cpu/gemm.h"
#include "cpu/line_conv.h"
#include "cpu/packed_conv.h"
#include "cpu/transpose.h"
#include "cpu/winograd.h"

namespace rushlight::cpu {

int64_t ConvShape::input_numel() const { return batch * in_channels * input[0] * input[1] * input[2]; }
int64_t ConvShape::output_numel() const { return batch * out_channels * output[0] * output[1] * output[2]; }
int64_t ConvShape::weight_numel() const {
  return out_channels * (in_channels / groups) * kernel[0] * kernel[1] * kernel[2];
}

namespace {

// Scratch memory from the caching allocator.
class Scratch {
 public:
  explicit Scratch(size_t bytes) : bytes_(bytes), data_(cpu_allocate(bytes)) {}
  ~Scratch() { cpu_deallocate(data_, bytes_); }
  Scratch(const Scratch&) = delete;
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  size_t bytes_;
  void* data_;
};

// Sizes of the products of one group of one image.
struct GroupSizes {
  int64_t in, out, taps, area, out_area;  // channels, channels, kernel volume, pixels, pixels
  explicit GroupSizes(const ConvShape& s)
      : in(s.in_channels / s.groups),
        out(s.out_channels / s.groups),
        taps(volume(s.kernel)),
        area(volume(s.input)),
        out_area(volume(s.output)) {}
  int64_t columns() const { return in * taps; }
};

// Whether each result sees the pixel in its place alone: an image is its own columns.
bool sees_points(const ConvShape& s) {
  return volume(s.kernel) == 1 && s.input == s.output && s.padding == std::array<int64_t, 3>{};
}
// Volumes and lines in planes by such filters are products as they lie, which oneDNN would turn; so are large
// images, which a product would read across their lines to bring channels last.
bool multiplies_planes(const ConvShape& s) {
  constexpr int64_t kLargeImage = 512;
  return s.dtype == DType::Float32 && !s.channels_last && sees_points(s) &&
         (s.spatial != 2 || (s.stays_in_planes && volume(s.output) >= kLargeImage));
}

template <class T, class F>
void for_each_image_and_group(const ConvShape& s, F&& f) {
  const GroupSizes g(s);
  const Scratch columns(sizeof(T) * (sees_points(s) ? 1 : std::max<int64_t>(1, g.columns() * g.out_area)));
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t group = 0; group < s.groups; ++group) f(g, n, group, columns.as<T>());
}

template <class T>
const T* image_to_columns(const ConvShape& s, int64_t channels, const T* image, T* columns) {
  if (sees_points(s)) return image;
  fill_columns(s, channels, image, columns);
  return columns;
}

template <class T>
void forward_by_gemm(const ConvShape& s, const T* input, const T* weight, const T* bias, T* output) {
  for_each_image_and_group<T>(s, [&](const GroupSizes& g, int64_t n, int64_t group, T* space) {
    const T* columns = image_to_columns(s, g.in, input + (n * s.groups + group) * g.in * g.area, space);
    T* out = output + (n * s.groups + group) * g.out * g.out_area;
    if (bias)
      for (int64_t c = 0; c < g.out; ++c)
        std::fill_n(out + c * g.out_area, g.out_area, bias[group * g.out + c]);
    gemm(dtype_of<T>, g.out, g.out_area, g.columns(), 1,
         {weight + group * g.out * g.columns(), g.columns(), 1}, {columns, g.out_area, 1}, bias ? 1 : 0, out,
         g.out_area);
  });
}

template <class T>
void input_gradient_by_gemm(const ConvShape& s, const T* gradient, const T* weight, T* result) {
  const bool points = sees_points(s);
  for_each_image_and_group<T>(s, [&](const GroupSizes& g, int64_t n, int64_t group, T* space) {
    T* own = result + (n * s.groups + group) * g.in * g.area;
    T* columns = points ? own : space;
    gemm(dtype_of<T>, g.columns(), g.out_area, g.out, 1,
         {weight + group * g.out * g.columns(), 1, g.columns()},
         {gradient + (n * s.groups + group) * g.out * g.out_area, g.out_area, 1}, 0, columns, g.out_area);
    if (!points) columns_to_image(s, g.in, columns, own);
  });
}

template <class T>
void weight_gradient_by_gemm(const ConvShape& s, const T* gradient, const T* input, T* result) {
  if (s.batch == 0) std::fill_n(result, s.weight_numel(), T(0));
  for_each_image_and_group<T>(s, [&](const GroupSizes& g, int64_t n, int64_t group, T* space) {
    const T* columns = image_to_columns(s, g.in, input + (n * s.groups + group) * g.in * g.area, space);
    gemm(dtype_of<T>, g.out, g.columns(), g.out_area, 1,
         {gradient + (n * s.groups + group) * g.out * g.out_area, g.out_area, 1}, {columns, 1, g.out_area},
         n ? 1 : 0, result + group * g.out * g.columns(), g.columns());
  });
}

// [n, c, area] <-> [n, area, c]
template <class T>
void swap_layout(const T* from, T* to, int64_t n, int64_t rows, int64_t columns) {
  constexpr int64_t kBlock = 64, item = sizeof(T);
  const TransposeTile transpose = transpose_tile(item);
  const int64_t across = (columns + kBlock - 1) / kBlock, image = rows * columns;
  parallel_for(0, n * across, std::max<int64_t>(1, kGrainSize / (rows * kBlock)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t column = i % across * kBlock, wide = std::min(kBlock, columns - column);
                   const T* source = from + i / across * image + column;
                   T* target = to + i / across * image + column * rows;
                   for (int64_t row = 0; row < rows; row += kBlock)
                     transpose(reinterpret_cast<char*>(target + row), rows * item,
                               reinterpret_cast<const char*>(source + row * columns), columns * item, wide,
                               std::min(kBlock, rows - row));
                 }
               });
}

// Presents channels-last memory as [n, c, area] while f runs; writes it back when it was an output.
template <class T, class F>
void as_planes(const ConvShape& s, T* data, int64_t channels, int64_t area, bool output, F&& f) {
  if (!s.channels_last) return f(data);
  const Scratch planes(sizeof(T) * std::max<int64_t>(1, s.batch * channels * area));
  if (!output) swap_layout(data, planes.as<T>(), s.batch, area, channels);
  f(planes.as<T>());
  if (output) swap_layout(planes.as<T>(), data, s.batch, channels, area);
}

template <class T>
T* pointer(const void* data) {
  return static_cast<T*>(const_cast<void*>(data));
}

// So little work that preparing a call of oneDNN would take longer.
bool is_tiny(const ConvShape& s) {
  const GroupSizes g(s);
  const int64_t batch = batch_invariant() ? 1 : s.batch;
  return batch * s.groups <= 4 && batch * s.out_channels * g.out_area * g.columns() <= (1 << 15);
}

// Volumes of so few channels that oneDNN's blocks of them stay nearly empty: columns and products take a
// fraction of the time, while the columns are not too many.
bool has_few_channels(const ConvShape& s) {
  const GroupSizes g(s);
  return s.dtype == DType::Float32 && s.spatial == 3 && s.groups == 1 && g.in <= 4 && g.out <= 4 &&
         g.columns() * g.out_area <= (1 << 24);
}

// The same of gradients in volumes of few channels, where they lie in planes.
bool gradient_by_columns(const ConvShape& s) {
  ConvShape few = s;
  few.out_channels = std::min<int64_t>(s.out_channels, 4);
  return !s.channels_last && has_few_channels(few);
}

// Filters of one pixel are a matrix and so, with channels last, are images: a product needs no other order of
// the filters, nor images in planes where oneDNN has no such convolution.
bool is_product(const ConvShape& s) {
  const bool unknown = (s.dtype == DType::Half || s.dtype == DType::Float64) && !is_tiny(s);
  return s.channels_last && s.groups == 1 && volume(s.kernel) == 1 && s.padding == std::array<int64_t, 3>{} &&
         (unknown || conv_by_onednn(s));
}

// Calls f(position in the input, position in the output) for the pixels that the strides leave.
template <class F>
void for_strided_pixels(const ConvShape& s, F&& f) {
  const int64_t area = volume(s.output);
  parallel_for(0, s.batch * area, std::max<int64_t>(1, kGrainSize / s.in_channels),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t n = i / area, z = i % area / (s.output[1] * s.output[2]),
                                 y = i / s.output[2] % s.output[1], x = i % s.output[2];
                   const int64_t row = (n * s.input[0] + z * s.stride[0]) * s.input[1] + y * s.stride[1];
                   f(row * s.input[2] + x * s.stride[2], i);
                 }
               });
}
// The pixels that a filter of one pixel sees, without gaps: the image itself or a copy in `space`.
const void* pixels_seen(const ConvShape& s, const void* input, std::optional<Scratch>& space) {
  if (s.input == s.output) return input;
  const size_t pixel = static_cast<size_t>(s.in_channels) * element_size(s.dtype);
  auto* to = space.emplace(pixel * static_cast<size_t>(s.batch * volume(s.output))).as<char>();
  for_strided_pixels(s, [&](int64_t from, int64_t i) {
    std::memcpy(to + i * pixel, static_cast<const char*>(input) + from * pixel, pixel);
  });
  return to;
}

// f(pixels, image of `first`, image of `second`) for every image; they have so many channels.
template <class Second, class F>
void for_each_image(const ConvShape& s, int64_t channels, const void* first, int64_t others, Second* second,
                    F&& f) {
  using Bytes = std::conditional_t<std::is_const_v<Second>, const char, char>;
  const int64_t area = volume(s.output), item = static_cast<int64_t>(element_size(s.dtype));
  for (int64_t n = 0; n < s.batch; ++n)
    f(area, static_cast<const char*>(first) + n * channels * area * item,
      static_cast<Bytes*>(second) + n * others * area * item);
}

void product_forward(const ConvShape& s, const void* input, const void* weight, const void* bias,
                     void* output) {
  std::optional<Scratch> space;
  const int64_t in = s.in_channels, out = s.out_channels;
  if (s.input_in_planes)
    return for_each_image(s, in, input, out, output, [&](int64_t area, const void* x, void* y) {
      gemm_bias(s.dtype, area, out, in, {x, 1, area}, {weight, 1, in}, bias, y, out);
    });
  gemm_bias(s.dtype, s.batch * volume(s.output), out, in, {pixels_seen(s, input, space), in, 1},
            {weight, 1, in}, bias, output, out);
}
void product_input_gradient(const ConvShape& s, OutputGradient gradient, const void* weight, void* result) {
  const int64_t in = s.in_channels, out = s.out_channels, pixels = s.batch * volume(s.output);
  const auto product = [&](void* to) {
    gemm(s.dtype, pixels, in, out, 1, {gradient.data, out, 1}, {weight, in, 1}, 0, to, in);
  };
  if (gradient.in_planes)
    return for_each_image(s, out, gradient.data, in, result, [&](int64_t area, const void* g, void* to) {
      gemm(s.dtype, area, in, out, 1, {g, 1, area}, {weight, in, 1}, 0, to, in);
    });
  if (s.input == s.output) return product(result);
  const size_t pixel = static_cast<size_t>(in) * element_size(s.dtype);
  const Scratch space(pixel * static_cast<size_t>(pixels));
  product(space.as<void>());
  clear(result, static_cast<size_t>(s.input_numel()) * element_size(s.dtype));
  for_strided_pixels(s, [&](int64_t to, int64_t i) {
    std::memcpy(static_cast<char*>(result) + to * pixel, space.as<char>() + i * pixel, pixel);
  });
}
void product_weight_gradient(const ConvShape& s, OutputGradient gradient, const void* input, void* result) {
  std::optional<Scratch> space;
  const int64_t in = s.in_channels, out = s.out_channels;
  int64_t kept = 0;  // 1 where an image adds to what those before gave
  if (s.input_in_planes || gradient.in_planes)
    return for_each_image(s, in, input, out, gradient.data, [&](int64_t area, const void* x, const void* g) {
      const MatrixView pixels = s.input_in_planes ? MatrixView{x, 1, area} : MatrixView{x, in, 1},
                       results = gradient.in_planes ? MatrixView{g, area, 1} : MatrixView{g, 1, out};
      gemm(s.dtype, out, in, area, 1, results, pixels, std::exchange(kept, 1), result, in);
    });
  gemm(s.dtype, out, in, s.batch * volume(s.output), 1, {gradient.data, 1, out},
       {pixels_seen(s, input, space), in, 1}, 0, result, in);
}

using ConvTypes = Concat<IntegralTypes, FloatTypes, ComplexTypes>;

}  // namespace

static bool multiplies_by_pixels(const ConvShape& s) {
  constexpr int64_t kPixels = 64;  // fewer make products too small
  return is_product(s) && s.input == s.output && volume(s.output) >= kPixels;
}
// Of wider images lines would be turned for each that sees them.
constexpr int64_t kMostTurnedWidth = 64;
static bool turns_lines(const ConvShape& s) {
  return s.groups > 1 && s.spatial == 2 && std::max(s.input[2], s.output[2]) <= kMostTurnedWidth &&
         !winograd_convolves(s);
}
bool reads_planes(const ConvShape& s) {
  return multiplies_by_pixels(s) || (turns_lines(s) && line_convolves(s));
}
// The gradient of filters that sums over pixels takes both of its operands in planes.
static bool is_filter_gradient(const ConvShape& s) {
  return filter_gradient_sums(s) && !depthwise_by_lines(s) && !is_product(s) && !winograd_convolves_weight(s);
}
bool reads_input_planes_in_gradient(const ConvShape& s) {
  return multiplies_by_pixels(s) ||
         (s.spatial == 2 && s.output[2] <= kMostTurnedWidth && is_filter_gradient(s));
}
bool reads_gradient_planes(const ConvShape& s, bool of_weight) {
  return multiplies_by_pixels(s) ||
         (of_weight ? s.spatial == 2 && is_filter_gradient(s) : turns_lines(s) && line_convolves_gradient(s));
}
bool conv_by_onednn(const ConvShape& s) {
  return !is_tiny(s) && !has_few_channels(s) && !multiplies_planes(s) && onednn_convolves(s);
}
bool conv_likes_channels_last(const ConvShape& s, const void* weight) {
#if defined(__wasm_simd128__)
  ConvShape last = s;
  last.channels_last = true;
  return weight &&
         (packed_convolves(last, weight) ||
          (ConstantMemory::contains(weight) && (winograd_convolves(last) || depthwise_by_lines(last))));
#else
  (void)weight;
  return conv_by_onednn(s);
#endif
}

// A convolution of one pixel's filters by blocks of pixels, so that a block is finished in cache.
static void product_forward(const ConvShape& s, const void* input, const void* weight, const void* bias,
                            void* output, const EpilogueArguments& after) {
  constexpr int64_t kBlockBytes = 512 << 10, kLeastPixels = 128, kLeastWork = 1 << 22;
  const auto item = static_cast<int64_t>(element_size(s.dtype));
  const int64_t in = s.in_channels, out = s.out_channels, pixels = s.batch * volume(s.output);
  const int64_t block = std::max({kLeastPixels, kBlockBytes / (out * item), kLeastWork / (in * out)});
  if (s.input_in_planes || pixels <= block) {
    product_forward(s, input, weight, bias, output);
    return finish_pixels(after, 0, pixels);
  }
  std::optional<Scratch> space;
  const auto* seen = static_cast<const char*>(pixels_seen(s, input, space));
  const int64_t blocks = (pixels + block - 1) / block;
  const auto each = [&, constants = UseConstants::current()](int64_t first, int64_t last) {
    const UseConstants known(constants);
    for (int64_t i = first; i < last; ++i) {
      const int64_t begin = i * pixels / blocks, end = (i + 1) * pixels / blocks;
      gemm_bias(s.dtype, end - begin, out, in, {seen + begin * in * item, in, 1}, {weight, 1, in}, bias,
                static_cast<char*>(output) + begin * out * item, out);
      finish_pixels(after, begin, end);
    }
  };
  if (blocks >= get_num_threads())
    parallel_for(0, blocks, 1, each);
  else
    each(0, blocks);
}

// Convolves and then finishes, image by image where images are large. (oneDNN's own steps after a convolution
// would turn NaN into numbers.)
template <class Convolve>
static void convolve_and_finish(const ConvShape& s, const void* input, void* output,
                                const EpilogueArguments& after, Convolve&& convolve) {
  constexpr int64_t kLarge = 1 << 20;
  const auto item = static_cast<int64_t>(element_size(s.dtype));
  const int64_t pixels = volume(s.output);
  if (s.batch == 1 || s.output_numel() * item < kLarge) {
    convolve(s, input, output);
    return finish_pixels(after, 0, s.batch * pixels);
  }
  ConvShape one = s;
  one.batch = 1;
  for (int64_t n = 0; n < s.batch; ++n) {
    convolve(one, static_cast<const char*>(input) + n * one.input_numel() * item,
             static_cast<char*>(output) + n * one.output_numel() * item);
    finish_pixels(after, n * pixels, (n + 1) * pixels);
  }
}

void conv_forward(const ConvShape& s, const void* input, const void* weight, const void* bias, void* output,
                  const EpilogueArguments& after) {
  if (s.output_numel() == 0) return;
  if (batch_invariant()) {
    conv_forward(s, input, weight, bias, output);
    return finish_pixels(after, 0, s.batch * volume(s.output));
  }
  if (packed_convolves(s, weight) && packed_conv_forward(s, input, weight, bias, output, &after)) return;
  if (depthwise_by_lines(s)) {
    if (follows_depthwise_lines(&after))
      return depthwise_lines_forward(s, input, weight, bias, output, &after);
    return convolve_and_finish(s, input, output, after, [&](const ConvShape& one, const void* x, void* y) {
      depthwise_lines_forward(one, x, weight, bias, y, nullptr);
    });
  }
  const bool depthwise = depthwise_convolves(s, weight);
  if (!depthwise && is_product(s)) return product_forward(s, input, weight, bias, output, after);
  if (!depthwise && winograd_convolves(s) && winograd_forward(s, input, weight, bias, output, &after)) return;
  if (!depthwise && !winograd_convolves(s) && !line_convolves(s) && conv_by_onednn(s))
    return convolve_and_finish(s, input, output, after, [&](const ConvShape& one, const void* x, void* y) {
      onednn_conv_forward(one, x, weight, bias, y);
    });
  conv_forward(s, input, weight, bias, output);
  finish_pixels(after, 0, s.batch * volume(s.output));
}

// For batch-invariant mode, where an image must not depend on the others: f(shape of one, its number) for
// those images in whose `result` not all is finite, or for all if there is none, a thread each.
template <class F>
static void for_images_apart(const ConvShape& s, const void* weight, const void* result, int64_t result_numel,
                             F&& f) {
  ConvShape one = s;
  one.batch = 1;
  ConstantSet own;  // so that what is made of the weight serves all images
  own.add(weight, static_cast<size_t>(s.weight_numel()) * element_size(s.dtype), false);
  parallel_for(0, s.batch, 1, [&](int64_t begin, int64_t end) {
    const UseConstants known(&own);
    const int64_t each = result_numel / s.batch;
    for (int64_t n = begin; n < end; ++n) {
      const float* made = static_cast<const float*>(result) + n * each;
      if (!result || !std::all_of(made, made + each, [](float x) { return std::isfinite(x); })) f(one, n);
    }
  });
}
static const void* image_at(const ConvShape& s, const void* images, int64_t numel, int64_t n) {
  return static_cast<const char*>(images) +
         n * (numel / s.batch) * static_cast<int64_t>(element_size(s.dtype));
}
static void* image_at(const ConvShape& s, void* images, int64_t numel, int64_t n) {
  return const_cast<void*>(image_at(s, static_cast<const void*>(images), numel, n));
}

// An image in planes with its channels last.
static const void* turned(const ConvShape& s, const void* planes, int64_t channels, int64_t area,
                          std::optional<Scratch>& space) {
  auto* last = space.emplace(static_cast<size_t>(s.batch * channels * area) * sizeof(float)).as<float>();
  swap_layout(static_cast<const float*>(planes), last, s.batch, channels, area);
  return last;
}

// By what takes images whole.
static void forward_rest(ConvShape s, const void* input, const void* weight, const void* bias, void* output) {
  if (line_convolves(s) && line_conv_forward(s, input, weight, bias, output)) return;
  std::optional<Scratch> space;
  if (std::exchange(s.input_in_planes, false))
    input = turned(s, input, s.in_channels, volume(s.input), space);
  if (conv_by_onednn(s)) return onednn_conv_forward(s, input, weight, bias, output);
  visit_dtype(ConvTypes{}, s.dtype, "slow_conv", [&](auto tag) {
    using T = decltype(tag);
    as_planes(s, pointer<T>(input), s.in_channels, volume(s.input), false, [&](T* in) {
      as_planes(s, pointer<T>(output), s.out_channels, volume(s.output), true,
                [&](T* out) { forward_by_gemm<T>(s, in, pointer<T>(weight), pointer<T>(bias), out); });
    });
  });
}

void conv_forward(const ConvShape& s, const void* input, const void* weight, const void* bias, void* output) {
  if (s.output_numel() == 0) return;
  if (packed_convolves(s, weight) && packed_conv_forward(s, input, weight, bias, output, nullptr)) return;
  if (depthwise_by_lines(s)) return depthwise_lines_forward(s, input, weight, bias, output, nullptr);
  if (depthwise_convolves(s, weight)) return depthwise_forward(s, input, weight, bias, output);
  if (is_product(s)) return product_forward(s, input, weight, bias, output);
  const bool transformed = winograd_convolves(s);
  if (transformed && winograd_forward(s, input, weight, bias, output, nullptr)) return;
  if (!batch_invariant() || s.batch == 1) return forward_rest(s, input, weight, bias, output);
  for_images_apart(s, weight, transformed ? output : nullptr, s.output_numel(),
                   [&](const ConvShape& one, int64_t n) {
                     forward_rest(one, image_at(s, input, s.input_numel(), n), weight, bias,
                                  image_at(s, output, s.output_numel(), n));
                   });
}

static void input_gradient_rest(const ConvShape& s, OutputGradient gradient, const void* weight,
                                void* input_gradient) {
  if (line_convolves_gradient(s) && line_conv_input_gradient(s, gradient, weight, input_gradient)) return;
  std::optional<Scratch> space;
  const void* output_gradient = gradient.data;
  if (gradient.in_planes)
    output_gradient = turned(s, output_gradient, s.out_channels, volume(s.output), space);
  if (conv_by_onednn(s) && !gradient_by_columns(s))
    return onednn_conv_input_gradient(s, output_gradient, weight, input_gradient);
  visit_dtype(ConvTypes{}, s.dtype, "slow_conv_input_gradient", [&](auto tag) {
    using T = decltype(tag);
    as_planes(s, pointer<T>(output_gradient), s.out_channels, volume(s.output), false, [&](T* planes) {
      as_planes(s, pointer<T>(input_gradient), s.in_channels, volume(s.input), true,
                [&](T* result) { input_gradient_by_gemm<T>(s, planes, pointer<T>(weight), result); });
    });
  });
}

void conv_input_gradient(const ConvShape& s, const void* output_gradient, const void* weight,
                         void* input_gradient) {
  conv_input_gradient(s, OutputGradient{output_gradient}, weight, input_gradient);
}
void conv_input_gradient(const ConvShape& s, OutputGradient gradient, const void* weight,
                         void* input_gradient) {
  const void* output_gradient = gradient.data;
  if (s.input_numel() == 0) return;
  if (s.output_numel() == 0) {
    std::memset(input_gradient, 0, s.input_numel() * element_size(s.dtype));
    return;
  }
  if (depthwise_gradient_by_lines(s))
    return depthwise_lines_input_gradient(s, output_gradient, weight, input_gradient);
  if (depthwise_convolves(s, weight))
    return depthwise_input_gradient(s, output_gradient, weight, input_gradient);
  if (is_product(s)) return product_input_gradient(s, gradient, weight, input_gradient);
  const bool transformed = winograd_convolves(s);
  if (transformed && winograd_input_gradient(s, output_gradient, weight, input_gradient)) return;
  if (!batch_invariant() || s.batch == 1) return input_gradient_rest(s, gradient, weight, input_gradient);
  for_images_apart(s, weight, transformed ? input_gradient : nullptr, s.input_numel(),
                   [&](const ConvShape& one, int64_t n) {
                     const void* own = image_at(s, output_gradient, s.output_numel(), n);
                     input_gradient_rest(one, {own, gradient.in_planes}, weight,
                                         image_at(s, input_gradient, s.input_numel(), n));
                   });
}

// With all channels last after all.
static void weight_gradient_of_planes(ConvShape s, OutputGradient gradient, const void* input, void* result) {
  std::optional<Scratch> images, gradients;
  if (std::exchange(s.input_in_planes, false))
    input = turned(s, input, s.in_channels, volume(s.input), images);
  if (std::exchange(gradient.in_planes, false))
    gradient.data = turned(s, gradient.data, s.out_channels, volume(s.output), gradients);
  conv_weight_gradient(s, gradient, input, result);
}

void conv_weight_gradient(const ConvShape& s, const void* output_gradient, const void* input,
                          void* weight_gradient) {
  conv_weight_gradient(s, OutputGradient{output_gradient}, input, weight_gradient);
}
void conv_weight_gradient(const ConvShape& s, OutputGradient gradient, const void* input,
                          void* weight_gradient) {
  const void* output_gradient = gradient.data;
  if (s.weight_numel() == 0) return;
  if (s.output_numel() == 0) {
    std::memset(weight_gradient, 0, s.weight_numel() * element_size(s.dtype));
    return;
  }
  if (depthwise_by_lines(s))
    return depthwise_lines_weight_gradient(s, output_gradient, input, weight_gradient);
  if (depthwise_convolves(s)) return depthwise_weight_gradient(s, output_gradient, input, weight_gradient);
  if (is_product(s)) return product_weight_gradient(s, gradient, input, weight_gradient);
  if (winograd_convolves_weight(s) && winograd_weight_gradient(s, output_gradient, input, weight_gradient))
    return;
  if (filter_gradient_sums(s)) {
    if (filter_gradient(s, gradient, input, weight_gradient)) return;
    if (s.input_in_planes || gradient.in_planes)
      return weight_gradient_of_planes(s, gradient, input, weight_gradient);
  }
  if (conv_by_onednn(s)) return onednn_conv_weight_gradient(s, output_gradient, input, weight_gradient);
  visit_dtype(ConvTypes{}, s.dtype, "slow_conv_weight_gradient", [&](auto tag) {
    using T = decltype(tag);
    as_planes(s, pointer<T>(output_gradient), s.out_channels, volume(s.output), false, [&](T* planes) {
      as_planes(s, pointer<T>(input), s.in_channels, volume(s.input), false,
                [&](T* in) { weight_gradient_by_gemm<T>(s, planes, in, pointer<T>(weight_gradient)); });
    });
  });
}

}  // namespace rushlight::cpu
