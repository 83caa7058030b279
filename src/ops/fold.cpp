#include "ops/fold.h"

#include <cstring>

#include "cpu/fold.h"
#include "device/layers.h"
#include "dispatch/table.h"
#include "ops/copy.h"
#include "ops/register.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

std::array<int64_t, 2> pair_of(const char* what, IntList given) {
  RL_CHECK(given.size() == 1 || given.size() == 2, "It is expected ", what, " equals to 2, but got size ",
           given.size());
  return {given[0], given.back()};
}

cpu::FoldPlan plan_of(IntList image, IntList kernel, IntList dilation, IntList padding, IntList stride) {
  const auto k = pair_of("kernel_size", kernel), d = pair_of("dilation", dilation),
             p = pair_of("padding", padding), s = pair_of("stride", stride);
  RL_CHECK(k[0] > 0 && k[1] > 0, "kernel size should be greater than zero, but got kernel_height: ", k[0],
           " kernel_width: ", k[1]);
  RL_CHECK(d[0] > 0 && d[1] > 0, "dilation should be greater than zero, but got dilation_height: ", d[0],
           " dilation_width: ", d[1]);
  RL_CHECK(p[0] >= 0 && p[1] >= 0, "padding should be non-negative, but got pad_height: ", p[0],
           " pad_width: ", p[1]);
  RL_CHECK(s[0] > 0 && s[1] > 0, "stride should be greater than zero, but got stride_height: ", s[0],
           " stride_width: ", s[1]);
  constexpr int64_t kMost = int64_t{1} << 31;
  for (int i = 0; i < 2; ++i)
    RL_CHECK(k[i] < kMost && d[i] < kMost && p[i] < kMost && s[i] < kMost,
             "fold: kernel_size, dilation, padding and stride must be below 2^31");
  cpu::FoldPlan f;
  f.height = image[image.size() - 2], f.width = image.back();
  f.kernel_h = k[0], f.kernel_w = k[1], f.dilation_h = d[0], f.dilation_w = d[1];
  f.pad_h = p[0], f.pad_w = p[1], f.stride_h = s[0], f.stride_w = s[1];
  const auto count = [](int64_t size, int64_t kernel, int64_t dilation, int64_t pad, int64_t stride) {
    const int64_t room = size + 2 * pad - dilation * (kernel - 1) - 1;
    return room < 0 ? int64_t{0} : room / stride + 1;
  };
  f.rows = count(f.height, f.kernel_h, f.dilation_h, f.pad_h, f.stride_h);
  f.columns = count(f.width, f.kernel_w, f.dilation_w, f.pad_w, f.stride_w);
  return f;
}

// What a device's kernels take: every plane is an image of one channel.
DeviceColumns device_shape(const cpu::FoldPlan& p) {
  DeviceColumns s;
  s.batch = p.planes, s.channels = 1, s.batch_first = true;
  s.input[1] = p.height, s.output[1] = p.rows, s.kernel[1] = p.kernel_h;
  s.input[2] = p.width, s.output[2] = p.columns, s.kernel[2] = p.kernel_w;
  s.stride[1] = p.stride_h, s.padding[1] = p.pad_h, s.dilation[1] = p.dilation_h;
  s.stride[2] = p.stride_w, s.padding[2] = p.pad_w, s.dilation[2] = p.dilation_w;
  return s;
}

Tensor im2col_kernel(const Call&, const Tensor& self, IntList kernel, IntList dilation, IntList padding,
                     IntList stride) {
  const int64_t n = self.dim();
  bool valid = n == 3 || n == 4;
  for (int64_t d = n - 3; valid && d < n; ++d) valid = self.size(d) != 0;
  RL_CHECK(valid,
           "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions "
           "for input, but got: ",
           self.sizes());
  cpu::FoldPlan p = plan_of(self.sizes(), kernel, dilation, padding, stride);
  RL_CHECK(p.rows > 0 && p.columns > 0, "Given input with spatial size (", p.height, ", ", p.width,
           "), kernel_size=(", p.kernel_h, ", ", p.kernel_w, "), dilation=(", p.dilation_h, ", ",
           p.dilation_w, "), padding=(", p.pad_h, ", ", p.pad_w,
           "), calculated shape of the array of sliding blocks as (", p.rows, ", ", p.columns,
           "), but its components must be at least one.");
  const int64_t channels = self.size(n - 3);
  p.planes = n == 4 ? self.size(0) * channels : channels;
  Dims sizes{checked_numel(IntList{channels, p.kernel_h, p.kernel_w}),
             checked_numel(IntList{p.rows, p.columns})};
  if (n == 4) sizes.insert(0, self.size(0));
  Tensor result = empty_tensor(sizes, self.dtype(), self.device());
  if (const DeviceLayers* layers = device_layers(result); layers && result.numel())
    layers->image_to_columns(result.device().index(), self.dtype(), device_shape(p),
                             as_contiguous(self).data_ptr(), result.data_ptr());
  if (result.is_cpu() && result.numel())
    cpu::image_to_columns(self.dtype(), p, as_contiguous(self).data_ptr(), result.data_ptr());
  return result;
}

Tensor col2im_kernel(const Call&, const Tensor& self, IntList size, IntList kernel, IntList dilation,
                     IntList padding, IntList stride) {
  const int64_t n = self.dim();
  const auto image = pair_of("output_size", size);
  RL_CHECK(image[0] >= 0 && image[1] >= 0, "fold: output_size must not be negative, got ", size);
  bool valid = n == 2 || n == 3;
  for (int64_t d = n - 2; valid && d < n; ++d) valid = self.size(d) != 0;
  RL_CHECK(
      valid,
      "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions "
      "for input, but got: ",
      self.sizes());
  cpu::FoldPlan p = plan_of(IntList{image[0], image[1]}, kernel, dilation, padding, stride);
  const int64_t block = checked_numel(IntList{p.kernel_h, p.kernel_w}), lines = self.size(n - 2);
  RL_CHECK(lines % block == 0,
           "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
           "input.size(1)=",
           lines, " and kernel_size=(", p.kernel_h, ", ", p.kernel_w, ").");
  const bool fits = p.rows > 0 && p.columns > 0;
  if (!fits || self.size(n - 1) != p.rows * p.columns) {
    const std::string given =
        str("Given output_size=(", image[0], ", ", image[1], "), kernel_size=(", p.kernel_h, ", ", p.kernel_w,
            "), dilation=(", p.dilation_h, ", ", p.dilation_w, "), padding=(", p.pad_h, ", ", p.pad_w,
            "), stride=(", p.stride_h, ", ", p.stride_w, "), ");
    RL_CHECK(fits, given, "calculated shape of the array of sliding blocks as (", p.rows, ", ", p.columns,
             "), which is too small (non-positive)");
    RL_CHECK(false, given,
             "expected size of input's dimension 2 to match the calculated number of sliding blocks ", p.rows,
             " * ", p.columns, " = ", p.rows * p.columns, ", but got input.size(2)=", self.size(n - 1), ".");
  }
  const int64_t channels = lines / block;
  p.planes = n == 3 ? self.size(0) * channels : channels;
  Dims sizes{channels, image[0], image[1]};
  if (n == 3) sizes.insert(0, self.size(0));
  Tensor result = empty_tensor(sizes, self.dtype(), self.device());
  if (const DeviceLayers* layers = device_layers(result); layers && result.numel())
    layers->columns_to_image(result.device().index(), self.dtype(), device_shape(p),
                             as_contiguous(self).data_ptr(), result.data_ptr());
  if (!result.is_cpu() || result.numel() == 0) return result;
  std::memset(result.data_ptr(), 0, result.nbytes());
  cpu::columns_to_image(self.dtype(), p, as_contiguous(self).data_ptr(), result.data_ptr());
  return result;
}

Tensor unfold_body(const Call&, const Tensor& input, IntList kernel, IntList dilation, IntList padding,
                   IntList stride) {
  return im2col(input, kernel, dilation, padding, stride);
}
Tensor fold_body(const Call&, const Tensor& input, IntList size, IntList kernel, IntList dilation,
                 IntList padding, IntList stride) {
  return col2im(input, size, kernel, dilation, padding, stride);
}

}  // namespace

void register_fold_operators(Table& t) {
  t.op(im2col,
       "nn::im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> "
       "Tensor",
       im2col_kernel)
      .out()
      .doc(
          "Every block of an image as a column. Shape: [batch?, channels, height, width] to [batch?, "
          "channels * "
          "block, blocks].")
      .family(Family::Window)
      .on_devices()
      .derivative([](Grad g, Shape<0> x, Attr<1, IntList> kernel, Attr<2, IntList> dilation,
                     Attr<3, IntList> padding, Attr<4, IntList> stride) {
        return col2im(g, x.sizes().slice(x.sizes().size() - 2), kernel, dilation, padding, stride);
      });
  t.op(col2im,
       "nn::col2im(Tensor self, int[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, "
       "int[2] stride) -> Tensor",
       col2im_kernel)
      .out()
      .doc("The sum of the blocks that columns stand for, as an image.")
      .family(Family::Window)
      .on_devices()
      .derivative([](Grad g, Attr<2, IntList> kernel, Attr<3, IntList> dilation, Attr<4, IntList> padding,
                     Attr<5, IntList> stride) { return im2col(g, kernel, dilation, padding, stride); });
  t.composite(
       "nn::unfold(Tensor input, int[2] kernel_size, int[2] dilation=1, int[2] padding=0, int[2] stride=1) "
       "-> Tensor",
       unfold_body)
      .doc("Every block of an image as a column.");
  t.composite(
       "nn::fold(Tensor input, int[2] output_size, int[2] kernel_size, int[2] dilation=1, int[2] padding=0, "
       "int[2] stride=1) -> Tensor",
       fold_body)
      .doc("The sum of the blocks that columns stand for, as an image.");
}

}  // namespace rushlight
