// Convolutions on devices: blocks of images as columns [channels * kernel, images * outputs], of which a
// product with the weight makes the result. Groups are the batch of that product.
#include "ops/conv_device.h"

#include <algorithm>
#include <utility>

#include "device/layers.h"
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

Tensor plain(const Tensor& t) { return t.defined() ? contiguous(t, MemoryFormat::Contiguous) : t; }
Tensor last(const Tensor& t) { return contiguous(t, MemoryFormat::ChannelsLast); }

// A result with the channels last that f(shape, result) computed, if it did: by the library, which alone
// computes such.
template <class F>
Tensor with_channels_last(const cpu::ConvShape& s, const Tensor& like, IntList sizes, F&& f) {
  if (!s.channels_last || s.spatial != 2 || !device_layers(like)->convolve) return {};
  const Tensor result = empty_tensor(sizes, like.dtype(), like.device(), MemoryFormat::ChannelsLast);
  return f(s, result) ? result : Tensor();
}
// The same by way of a plain result, which f(shape, result) writes.
template <class F>
Tensor by_plain(cpu::ConvShape s, const Tensor& like, IntList sizes, F&& f) {
  const bool wants_last = std::exchange(s.channels_last, false);
  const Tensor result = empty_tensor(sizes, like.dtype(), like.device());
  if (result.numel()) f(s, result);
  if (!wants_last) return result;
  return contiguous(result, sizes.size() == 5 ? MemoryFormat::ChannelsLast3d : MemoryFormat::ChannelsLast);
}

void convolve(const cpu::ConvShape& s, const Tensor& input, const Tensor& weight, const Tensor& result) {
  if (by_library(s, ConvPass::Forward, input, weight, result)) return;
  const Sizes z(s);
  for_images(s, z, [&](int64_t first, int64_t count) {
    const Tensor columns = columns_of(s, z, narrow(input, 0, first, count));
    const Tensor product = bmm(matrices_of(s, z, weight), grouped(columns, s.groups));
    by_image(narrow(result, 0, first, count), product, count, s.out_channels, z.outputs);
  });
}

void input_gradient(const cpu::ConvShape& s, const Tensor& grad, const Tensor& weight, const Tensor& result) {
  if (by_library(s, ConvPass::InputGradient, result, weight, grad)) return;
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

void weight_gradient(const cpu::ConvShape& s, const Tensor& grad, const Tensor& input, const Tensor& result) {
  if (by_library(s, ConvPass::WeightGradient, input, result, grad)) return;
  const Sizes z(s);
  loops::copy(result, scalar_tensor_of(0, s.dtype));
  const Tensor total = matrices_of(s, z, result);
  for_images(s, z, [&](int64_t first, int64_t count) {
    const Tensor flow = by_channel(narrow(grad, 0, first, count), count, s.out_channels, z.outputs);
    const Tensor columns = columns_of(s, z, narrow(input, 0, first, count));
    add.inplace(total, bmm(grouped(flow, s.groups), transpose(grouped(columns, s.groups), 1, 2)), Scalar(1));
  });
}

}  // namespace

Tensor device_conv(const cpu::ConvShape& s, const Tensor& input, const Tensor& weight, const Tensor& bias,
                   IntList sizes) {
  Tensor result = with_channels_last(s, input, sizes, [&](const cpu::ConvShape& shape, const Tensor& to) {
    return by_library(shape, ConvPass::Forward, last(input), last(weight), to);
  });
  if (!result.defined())
    result = by_plain(s, input, sizes, [&](const cpu::ConvShape& shape, const Tensor& to) {
      convolve(shape, plain(input), plain(weight), to);
    });
  if (result.numel()) add_bias(result, plain(bias));
  return result;
}

Tensor device_conv_input_gradient(const cpu::ConvShape& s, const Tensor& grad, const Tensor& weight,
                                  IntList sizes) {
  const Tensor result =
      with_channels_last(s, grad, sizes, [&](const cpu::ConvShape& shape, const Tensor& to) {
        return by_library(shape, ConvPass::InputGradient, to, last(weight), last(grad));
      });
  if (result.defined()) return result;
  return by_plain(s, grad, sizes, [&](const cpu::ConvShape& shape, const Tensor& to) {
    input_gradient(shape, plain(grad), plain(weight), to);
  });
}

Tensor device_conv_weight_gradient(const cpu::ConvShape& s, const Tensor& grad, const Tensor& input,
                                   IntList sizes) {
  const Tensor result =
      with_channels_last(s, grad, sizes, [&](const cpu::ConvShape& shape, const Tensor& to) {
        return by_library(shape, ConvPass::WeightGradient, last(input), to, last(grad));
      });
  if (result.defined()) return result;
  return by_plain(s, grad, sizes, [&](const cpu::ConvShape& shape, const Tensor& to) {
    weight_gradient(shape, plain(grad), plain(input), to);
  });
}

}  // namespace rushlight
