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
