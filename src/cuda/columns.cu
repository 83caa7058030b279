// Blocks of images as columns, by which convolutions become products; and back.
#include "cuda/channels.h"
#include "cuda/layers.h"
#include "device/layers.h"

namespace rushlight::cuda {
namespace {

// The place of one element of the columns.
struct ColumnPlace {
  int64_t batch, channel, kernel[3], output[3];
};
struct Shape {
  DeviceColumns s;
  int64_t outputs, kernels, inputs;
  explicit Shape(const DeviceColumns& shape)
      : s(shape),
        outputs(shape.output[0] * shape.output[1] * shape.output[2]),
        kernels(shape.kernel[0] * shape.kernel[1] * shape.kernel[2]),
        inputs(shape.input[0] * shape.input[1] * shape.input[2]) {}
  int64_t columns() const { return s.batch * s.channels * kernels * outputs; }
  int64_t images() const { return s.batch * s.channels * inputs; }
  RL_BOTH ColumnPlace place_of(int64_t i) const {
    ColumnPlace p;
    for (int a = 2; a >= 0; --a) p.output[a] = i % s.output[a], i /= s.output[a];
    if (!s.batch_first) p.batch = i % s.batch, i /= s.batch;
    for (int a = 2; a >= 0; --a) p.kernel[a] = i % s.kernel[a], i /= s.kernel[a];
    p.channel = i % s.channels, i /= s.channels;
    if (s.batch_first) p.batch = i;
    return p;
  }
  RL_BOTH int64_t column_of(int64_t batch, int64_t channel, int64_t kernel, int64_t output) const {
    const int64_t row = channel * kernels + kernel;
    return ((s.batch_first ? batch * s.channels * kernels + row : row * s.batch + batch)) * outputs + output;
  }
};

template <class Word>
struct ToColumns {
  Shape shape;
  const Word* image;
  Word* columns;
  RL_BOTH void operator()(int64_t i) const {
    const DeviceColumns& s = shape.s;
    const ColumnPlace p = shape.place_of(i);
    int64_t from = p.batch * s.channels + p.channel;
    for (int a = 0; a < 3; ++a) {
      const int64_t at = p.output[a] * s.stride[a] - s.padding[a] + p.kernel[a] * s.dilation[a];
      if (at < 0 || at >= s.input[a]) {
        columns[i] = Word{};
        return;
      }
      from = from * s.input[a] + at;
    }
    columns[i] = image[from];
  }
};

// All elements of a place of the output in one channel, of fewer than 2^31 such: neighbours write neighbours.
template <class Word>
struct ToColumnsByPlace {
  Shape shape;
  Divider output[3], channels;
  const Word* image;
  Word* columns;
  RL_BOTH void operator()(int64_t i) const {
    const DeviceColumns& s = shape.s;
    auto rest = static_cast<uint32_t>(i);
    int64_t from[3];
    for (int a = 2; a >= 0; --a) {
      const uint32_t quotient = output[a].divide(rest);
      from[a] = (rest - quotient * output[a].divisor) * s.stride[a] - s.padding[a];
      rest = quotient;
    }
    const int64_t place = i - static_cast<int64_t>(rest) * shape.outputs;
    const uint32_t batch = channels.divide(rest), channel = rest - batch * channels.divisor;
    const Word* plane = image + static_cast<int64_t>(rest) * shape.inputs;
    Word* to = columns + shape.column_of(batch, channel, 0, place);
    const int64_t step = s.batch_first ? shape.outputs : s.batch * shape.outputs;
    for (int64_t z = 0; z < s.kernel[0]; ++z) {
      const int64_t at_z = from[0] + z * s.dilation[0];
      const bool in_z = at_z >= 0 && at_z < s.input[0];
      for (int64_t y = 0; y < s.kernel[1]; ++y) {
        const int64_t at_y = from[1] + y * s.dilation[1];
        const bool in_y = in_z && at_y >= 0 && at_y < s.input[1];
        const Word* row = plane + (at_z * s.input[1] + at_y) * s.input[2];
        for (int64_t x = 0; x < s.kernel[2]; ++x, to += step) {
          const int64_t at_x = from[2] + x * s.dilation[2];
          *to = in_y && at_x >= 0 && at_x < s.input[2] ? row[at_x] : Word{};
        }
      }
    }
  }
};

// One element of the image gathers what lies over it. Complex elements have two parts.
template <class S, class A, int parts>
struct ToImage {
  Shape shape;
  const S* columns;
  S* image;
  RL_BOTH void operator()(int64_t i) const {
    const DeviceColumns& s = shape.s;
    int64_t at[3], rest = i;
    for (int a = 2; a >= 0; --a) at[a] = rest % s.input[a], rest /= s.input[a];
    const int64_t channel = rest % s.channels, batch = rest / s.channels;
    A sum[parts] = {};
    int64_t k[3];
    for (k[0] = 0; k[0] < s.kernel[0]; ++k[0])
      for (k[1] = 0; k[1] < s.kernel[1]; ++k[1])
        for (k[2] = 0; k[2] < s.kernel[2]; ++k[2]) {
          int64_t kernel = 0, output = 0;
          bool inside = true;
          for (int a = 0; a < 3 && inside; ++a) {
            const int64_t from = at[a] + s.padding[a] - k[a] * s.dilation[a];
            inside = from >= 0 && from % s.stride[a] == 0 && from / s.stride[a] < s.output[a];
            kernel = kernel * s.kernel[a] + k[a];
            output = output * s.output[a] + from / s.stride[a];
          }
          if (!inside) continue;
          const S* from = columns + shape.column_of(batch, channel, kernel, output) * parts;
          for (int part = 0; part < parts; ++part) sum[part] += number<A>(from[part]);
        }
    for (int part = 0; part < parts; ++part) image[i * parts + part] = number<S>(sum[part]);
  }
};

template <class Word>
void to_columns(const Launch& at, const Shape& shape, const void* image, void* columns) {
  constexpr int64_t kMany = 1 << 18;  // threads that keep a device busy
  const DeviceColumns& s = shape.s;
  const int64_t places = s.batch * s.channels * shape.outputs;
  if (places >= kMany && places < INT32_MAX) {
    auto divider = [](int64_t size) { return Divider(static_cast<uint32_t>(size)); };
    return for_each_index(
        at, places,
        ToColumnsByPlace<Word>{shape,
                               {divider(s.output[0]), divider(s.output[1]), divider(s.output[2])},
                               divider(s.channels),
                               static_cast<const Word*>(image),
                               static_cast<Word*>(columns)});
  }
  for_each_index(at, shape.columns(),
                 ToColumns<Word>{shape, static_cast<const Word*>(image), static_cast<Word*>(columns)});
}
template <class S, class A, int parts>
void to_image(const Launch& at, const Shape& shape, const void* columns, void* image) {
  for_each_index(at, shape.images(),
                 ToImage<S, A, parts>{shape, static_cast<const S*>(columns), static_cast<S*>(image)});
}

}  // namespace

void image_to_columns(int device, DType dtype, const DeviceColumns& s, const void* image, void* columns) {
  const Launch at{device, "image_to_columns"};
  const Shape shape(s);
  visit_word(element_size(dtype),
             [&](auto tag) { to_columns<typename decltype(tag)::type>(at, shape, image, columns); });
}

void columns_to_image(int device, DType dtype, const DeviceColumns& s, const void* columns, void* image) {
  const Launch at{device, "columns_to_image"};
  const Shape shape(s);
  if (dtype == DType::Complex64) return to_image<float, float, 2>(at, shape, columns, image);
  if (dtype == DType::Complex128) return to_image<double, double, 2>(at, shape, columns, image);
  visit_stored(dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    to_image<S, std::conditional_t<std::is_integral_v<S>, int64_t, ComputeOf<S>>, 1>(at, shape, columns,
                                                                                     image);
  });
}

}  // namespace rushlight::cuda
