// Convolutions on devices: blocks of images as columns [channels * kernel, images * outputs], of which a
// product with the weight makes the result. Groups are the batch of that product.
#include "ops/conv_device.h"

#include <algorithm>

#include "dispatch/device_layers.h"
#include "ops/copy.h"
#include "ops/device_loops.h"
#include "ops/matmul.h"
#include "ops/operators.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

struct Sizes {
  int64_t outputs, kernels, rows;  // rows: of the columns
  bool pointwise;                  // the columns are the image
  explicit Sizes(const cpu::ConvShape& s) : outputs(1), kernels(1), pointwise(true) {
    for (size_t a = 0; a < 3; ++a) {
      outputs *= s.output[a], kernels *= s.kernel[a];
      pointwise = pointwise && s.kernel[a] == 1 && s.stride[a] == 1 && s.padding[a] == 0;
    }
    rows = s.in_channels * kernels;
  }
};

// So many images' columns that they stay within a bound.
int64_t images_at_once(const cpu::ConvShape& s, const Sizes& z) {
  constexpr int64_t kMost = int64_t{1} << 28;  // bytes
  const int64_t one = z.rows * z.outputs * static_cast<int64_t>(element_size(s.dtype));
  return std::clamp<int64_t>(one ? kMost / one : s.batch, 1, std::max<int64_t>(s.batch, 1));
}

DeviceColumns shape_of(const cpu::ConvShape& s, int64_t images) {
  DeviceColumns c;
  c.batch = images, c.channels = s.in_channels;
  for (size_t a = 0; a < 3; ++a) {
    c.input[a] = s.input[a], c.output[a] = s.output[a], c.kernel[a] = s.kernel[a];
    c.stride[a] = s.stride[a], c.padding[a] = s.padding[a], c.dilation[a] = s.dilation[a];
  }
  return c;
}

// [images, channels, points] as [channels, images * points] and back.
Tensor by_channel(const Tensor& t, int64_t images, int64_t channels, int64_t points) {
  return view(contiguous(transpose(view(t, IntList{images, channels, points}), 0, 1)),
              IntList{channels, images * points});
}
void by_image(const Tensor& result, const Tensor& t, int64_t images, int64_t channels, int64_t points) {
  loops::copy(view(result, IntList{images, channels, points}),
              transpose(view(t, IntList{channels, images, points}), 0, 1));
}

Tensor columns_of(const cpu::ConvShape& s, const Sizes& z, const Tensor& images) {
  const int64_t count = images.size(0);
  if (z.pointwise) return by_channel(images, count, z.rows, z.outputs);
  const Tensor columns = empty_tensor(IntList{z.rows, count * z.outputs}, s.dtype, images.device());
  if (columns.numel())
    device_layers(images)->image_to_columns(images.device().index(), s.dtype, shape_of(s, count),
                                            images.data_ptr(), columns.data_ptr());
  return columns;
}

Tensor grouped(const Tensor& t, int64_t groups) {
  return view(t, IntList{groups, t.size(0) / groups, t.numel() ? t.numel() / t.size(0) : 0});
}
// The weight as [groups, out / groups, rows / groups].
Tensor matrices_of(const cpu::ConvShape& s, const Sizes& z, const Tensor& weight) {
  return view(weight, IntList{s.groups, s.out_channels / s.groups, z.rows / s.groups});
}

// Calls f(first image, count) for all of the batch.
template <class F>
void for_images(const cpu::ConvShape& s, const Sizes& z, F&& f) {
  const int64_t step = images_at_once(s, z);
  for (int64_t first = 0; first < s.batch; first += step) f(first, std::min(step, s.batch - first));
}

// Whether the device's own library did it.
bool by_library(const cpu::ConvShape& s, ConvPass pass, const Tensor& input, const Tensor& weight,
                const Tensor& output) {
  const DeviceLayers& layers = *device_layers(output);
  for (const Tensor* t : {&input, &weight, &output})
    if (t->numel() == 0) return false;
  return layers.convolve && layers.convolve(output.device().index(), pass, s, input.data_ptr(),
                                            weight.data_ptr(), output.data_ptr());
}

void add_bias(const Tensor& result, const Tensor& bias) {
  if (!bias.defined()) return;
  Dims column(result.sizes().size(), 1);
  column[1] = bias.numel();
  add.inplace(result, view(bias, column), Scalar(1));
}

}  // namespace

void device_conv(const cpu::ConvShape& s, const Tensor& input, const Tensor& weight, const Tensor& bias,
                 const Tensor& result) {
  if (result.numel() == 0) return;
  if (by_library(s, ConvPass::Forward, input, weight, result)) return add_bias(result, bias);
  const Sizes z(s);
  for_images(s, z, [&](int64_t first, int64_t count) {
    const Tensor columns = columns_of(s, z, narrow(input, 0, first, count));
    const Tensor product = bmm(matrices_of(s, z, weight), grouped(columns, s.groups));
    by_image(narrow(result, 0, first, count), product, count, s.out_channels, z.outputs);
  });
  add_bias(result, bias);
}

void device_conv_input_gradient(const cpu::ConvShape& s, const Tensor& grad, const Tensor& weight,
                                const Tensor& result) {
  if (result.numel() == 0 || by_library(s, ConvPass::InputGradient, result, weight, grad)) return;
  const Sizes z(s);
  const Tensor turned = transpose(matrices_of(s, z, weight), 1, 2);
  for_images(s, z, [&](int64_t first, int64_t count) {
    const Tensor flow = by_channel(narrow(grad, 0, first, count), count, s.out_channels, z.outputs);
    const Tensor columns = bmm(turned, grouped(flow, s.groups));
    const Tensor images = narrow(result, 0, first, count);
    if (z.pointwise) return by_image(images, columns, count, z.rows, z.outputs);
    device_layers(grad)->columns_to_image(grad.device().index(), s.dtype, shape_of(s, count),
                                          columns.data_ptr(), images.data_ptr());
  });
}

void device_conv_weight_gradient(const cpu::ConvShape& s, const Tensor& grad, const Tensor& input,
                                 const Tensor& result) {
  if (result.numel() == 0 || by_library(s, ConvPass::WeightGradient, input, result, grad)) return;
  const Sizes z(s);
  loops::copy(result, scalar_tensor_of(0, s.dtype));
  const Tensor total = matrices_of(s, z, result);
  for_images(s, z, [&](int64_t first, int64_t count) {
    const Tensor flow = by_channel(narrow(grad, 0, first, count), count, s.out_channels, z.outputs);
    const Tensor columns = columns_of(s, z, narrow(input, 0, first, count));
    add.inplace(total, bmm(grouped(flow, s.groups), transpose(grouped(columns, s.groups), 1, 2)), Scalar(1));
  });
}

}  // namespace rushlight
