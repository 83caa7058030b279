#include "ops/pool.h"

#include <algorithm>
#include <cstring>

#include "core/deferred_layout.h"
#include "cpu/pool.h"
#include "device/layers.h"
#include "dispatch/table.h"
#include "ops/copy.h"
#include "ops/device_loops.h"
#include "ops/index.h"
#include "ops/plain.h"
#include "ops/pool_plan.h"
#include "ops/reduction.h"
#include "ops/register.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

[[noreturn]] void refuse_shape(const char* who, const Tensor& input, int64_t n) {
  RL_FAIL(who, "(): Expected ", n + 1, "D or ", n + 2,
          "D (batch mode) tensor with optional 0 dim batch size for input, but got:", input.sizes());
}
// No dimension but the batch may be empty.
void check_input(const char* who, const Tensor& input, int64_t n) {
  bool valid = input.dim() == n + 1 || input.dim() == n + 2;
  for (int64_t d = input.dim() - n - 1; valid && d < input.dim(); ++d) valid = input->sizes[d] != 0;
  if (!valid) refuse_shape(who, input, n);
}
// Windows that adapt to the image only want something in the dimensions from `first` on.
void check_adaptive_input(const char* who, const Tensor& input, int64_t n, int64_t first) {
  if (input.dim() != n + 1 && input.dim() != n + 2) refuse_shape(who, input, n);
  for (int64_t d = first; d < input.dim(); ++d)
    RL_CHECK(input->sizes[d] != 0, who,
             "(): Expected input to have non-zero size for non-batch dimensions, but input has sizes ",
             input.sizes(), " with dimension ", d, " being empty");
}

void check_floating(const char* who, const Tensor& input) {
  if (!is_floating(input.dtype()))
    RL_NOT_IMPLEMENTED("\"", who, "\" not implemented for '", legacy_name(input.dtype()), "'");
}

// PyTorch's avg_pool3d wants a window's worth of pixels without the padding.
void check_covered(const char* who, const Tensor& input, IntList kernel) {
  const IntList image = input.sizes().slice(static_cast<size_t>(input.dim()) - 3);
  for (size_t i = 0; i < 3; ++i)
    RL_CHECK(image[i] >= kernel[kernel.size() == 1 ? 0 : i], who, "(): input image ", image,
             " smaller than kernel size ", kernel);
}

// Whether the strides put the channels last, densely or not: the result then has them last.
bool orders_channels_last(const Tensor& t, int64_t n) {
  if (t.dim() != n + 2 || t.is_contiguous() || t->strides[1] == 0) return false;
  int64_t least = 0;
  auto follows = [&](int64_t d) {
    const int64_t size = t->sizes[d], stride = t->strides[d];
    if (size == 0 || stride < least || (d == 0 && least == t->strides[1])) return false;
    least = stride * size;
    return true;
  };
  if (!follows(1)) return false;
  for (int64_t d = n + 1; d >= 2; --d)
    if (!follows(d)) return false;
  return follows(0);
}

// Means, and windows that follow from the output's size, are plain in three dimensions, as in PyTorch; those
// of other sizes are so in one.
bool keeps_channels_last(const Tensor& t, int64_t n) { return n < 3 && orders_channels_last(t, n); }

MemoryFormat format_of(int64_t dim, bool channels_last) {
  return !channels_last ? MemoryFormat::Contiguous
         : dim == 4     ? MemoryFormat::ChannelsLast
                        : MemoryFormat::ChannelsLast3d;
}
// Lines of pixels, for which there is no memory format, are turned.
Tensor in_format(const Tensor& t, bool channels_last) {
  if (channels_last && t.dim() == 3) return as_contiguous(ops::transpose(t, 1, 2));
  const MemoryFormat format = format_of(t.dim(), channels_last);
  return t.is_contiguous(format) ? t : contiguous(t, format);
}
Tensor empty_pooled(IntList sizes, const Tensor& like, DType dtype, bool channels_last) {
  if (channels_last && sizes.size() == 3)
    return ops::transpose(empty_tensor(IntList{sizes[0], sizes[2], sizes[1]}, dtype, like.device()), 1, 2);
  return empty_tensor(sizes, dtype, like.device(),
                      format_of(static_cast<int64_t>(sizes.size()), channels_last));
}

// Results keep the deferred layout of their input. Note [Deferred layout conversion]
Tensor laid_out_as(const Tensor& input, const Tensor& result) {
  return has_deferred_layout(input) ? defer_layout(result) : result;
}
std::tuple<Tensor, Tensor> laid_out_as(const Tensor& input, const std::tuple<Tensor, Tensor>& results) {
  return {laid_out_as(input, std::get<0>(results)), laid_out_as(input, std::get<1>(results))};
}

// Without places the second result stays undefined.
std::tuple<Tensor, Tensor> run_max(const char* who, const Tensor& input, int64_t n, const cpu::PoolPlan& p,
                                   bool places = true) {
  const Dims sizes = pooled_sizes(input.sizes(), n, p);
  Tensor values = empty_pooled(sizes, input, input.dtype(), p.channels_last), indices;
  if (places) indices = empty_pooled(sizes, input, DType::Int64, p.channels_last);
  const auto kernels = cpu::pool_kernels(input.dtype(), who);
  if (const DeviceLayers* layers = device_layers(values); layers && values.numel())
    layers->max_pool(values.device().index(), input.dtype(), device_plan(p),
                     in_format(input, p.channels_last).data_ptr(), values.data_ptr(),
                     indices.data<int64_t>());
  if (values.is_cpu() && values.numel())
    kernels.max(with_long_rows(p), in_format(input, p.channels_last).data_ptr(), values.data_ptr(),
                places ? indices.data<int64_t>() : nullptr);
  return {values, indices};
}

constexpr const char* max_names[] = {"", "max_pool1d", "max_pool2d", "max_pool3d"};

template <int N>
std::tuple<Tensor, Tensor> max_of_windows(const Tensor& input, IntList kernel, const OptIntList& stride,
                                          IntList padding, IntList dilation, bool ceil_mode, bool places) {
  constexpr const char* who = max_names[N];
  const PoolWindow w = pool_window_of(who, N, kernel, stride, padding, dilation, ceil_mode);
  check_input(who, input, N);
  const Tensor image = image_of(input);
  if (N == 3 && input.dim() == 4) {  // one image keeps its format as a batch of one does
    const Tensor batch = ops::unsqueeze(image, 0);
    if (!batch.is_contiguous() && batch.is_contiguous(MemoryFormat::ChannelsLast3d)) {
      const auto [values, at] = run_max(who, batch, N, window_plan(who, batch.sizes(), N, w, true), places);
      return {ops::squeeze_dim(values, 0), at.defined() ? ops::squeeze_dim(at, 0) : at};
    }
  }
  const cpu::PoolPlan plan = window_plan(who, input.sizes(), N, w, N > 1 && orders_channels_last(image, N));
  return run_max(who, image, N, plan, places);
}
template <int N>
std::tuple<Tensor, Tensor> max_pool_kernel(const Call&, const Tensor& input, IntList kernel,
                                           const OptIntList& stride, IntList padding, IntList dilation,
                                           bool ceil_mode, bool) {
  return laid_out_as(input, max_of_windows<N>(input, kernel, stride, padding, dilation, ceil_mode, true));
}

template <int N>
std::tuple<Tensor, Tensor> adaptive_max_kernel(const Call&, const Tensor& input, IntList output_size, bool) {
  constexpr const char* names[] = {"", "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d"};
  check_adaptive_input(names[N], input, N, 1);
  check_floating(names[N], input);
  const Tensor image = image_of(input);
  return laid_out_as(
      input, run_max(names[N], image, N,
                     adaptive_plan(names[N], input.sizes(), N, output_size, keeps_channels_last(image, N))));
}

Tensor run_mean(const char* who, const Tensor& input, int64_t n, const cpu::PoolPlan& p) {
  Tensor result = empty_pooled(pooled_sizes(input.sizes(), n, p), input, input.dtype(), p.channels_last);
  const auto kernels = cpu::pool_kernels(input.dtype(), who);
  if (!kernels.mean)
    RL_NOT_IMPLEMENTED("\"", who, "\" not implemented for '", legacy_name(input.dtype()), "'");
  if (const DeviceLayers* layers = device_layers(result); layers && result.numel())
    layers->mean_pool(result.device().index(), input.dtype(), device_plan(p),
                      in_format(input, p.channels_last).data_ptr(), result.data_ptr());
  if (result.is_cpu() && result.numel())
    kernels.mean(with_long_rows(p), in_format(input, p.channels_last).data_ptr(), result.data_ptr());
  return result;
}

constexpr const char* avg_names[] = {"", "avg_pool1d", "avg_pool2d", "avg_pool3d"};

void set_divisor(const char* who, cpu::PoolPlan& p, OptInt divisor) {
  RL_CHECK(!divisor || *divisor != 0, who, ": divisor must be not zero");
  p.divisor = divisor ? static_cast<double>(*divisor) : 0;
}

template <int N>
Tensor avg_pool_kernel(const Call&, const Tensor& input, IntList kernel, const OptIntList& stride,
                       IntList padding, bool ceil_mode, bool count_include_pad, OptInt divisor) {
  const char* who = avg_names[N];
  const PoolWindow w = pool_window_of(who, N, kernel, stride, padding, IntList{1}, ceil_mode);
  check_input(who, input, N);
  if (N == 3) check_covered(who, input, kernel);
  const Tensor image = image_of(input);
  cpu::PoolPlan p = window_plan(who, input.sizes(), N, w, keeps_channels_last(image, N), count_include_pad);
  set_divisor(who, p, divisor);
  return laid_out_as(input, run_mean(who, image, N, p));
}
Tensor avg_pool1d_kernel(const Call& call, const Tensor& input, IntList kernel, const OptIntList& stride,
                         IntList padding, bool ceil_mode, bool count_include_pad) {
  return avg_pool_kernel<1>(call, input, kernel, stride, padding, ceil_mode, count_include_pad, std::nullopt);
}

bool pools_all(IntList output_size, size_t n) {
  return output_size.size() == n &&
         std::all_of(output_size.begin(), output_size.end(), [](int64_t size) { return size == 1; });
}

template <int N>
Tensor adaptive_avg_kernel(const Call&, const Tensor& input, IntList output_size) {
  constexpr const char* names[] = {"", "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d"};
  // Means over planes may be of no channels; PyTorch does not let those over volumes be.
  check_adaptive_input(names[N], input, N, N == 3 ? 1 : input.dim() - N);
  check_floating(names[N], input);
  const Tensor image = image_of(input);
  if (pools_all(output_size, N) && is_floating(input.dtype()) && image.is_contiguous()) {
    constexpr int64_t last[] = {-1, -2, -3};  // one plane is one row: a reduction
    return mean_dim(input, IntList(last, N), true, std::nullopt);
  }
  return laid_out_as(
      input, run_mean(names[N], image, N,
                      adaptive_plan(names[N], input.sizes(), N, output_size, keeps_channels_last(image, N))));
}

// --- derivatives

Tensor zeros_pooled(IntList sizes, const Tensor& like, bool channels_last) {
  Tensor result = empty_pooled(sizes, like, like.dtype(), channels_last);
  if (!result.device().is_meta() && result.numel()) loops::copy(result, scalar_tensor_of(0, result.dtype()));
  return result;
}

// Pooling to nothing has no gradient, as in PyTorch.
void check_gradient(const char* who, const Tensor& grad, IntList input_sizes, int64_t n) {
  const int64_t lead = grad.dim() - n;
  RL_CHECK(n >= 1 && n <= 3 && lead >= 1 && lead <= 2 &&
               static_cast<int64_t>(input_sizes.size()) == grad.dim() &&
               grad.sizes().slice(0, lead) == input_sizes.slice(0, lead),
           who, "(): a gradient of shape ", grad.sizes(), " is not of windows in ", n,
           " dimensions of an input of shape ", input_sizes);
  for (int64_t d = grad.dim() - n; d < grad.dim(); ++d)
    RL_CHECK(grad->sizes[d] != 0, who,
             "(): Expected grad_output to have non-zero size for non-batch dimensions, but grad_output has "
             "sizes ",
             grad.sizes(), " with dimension ", d, " being empty");
}

// The layout of the forward pass shows in the strides of what it saved, or of the gradient.
bool last_format(const Tensor& t, int64_t n) { return is_channels_last(t) && t.dim() == n + 2; }

void set_axis_lengths(cpu::PoolPlan& p, IntList in, IntList out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    p.axis[3 - n + i].in = in[in.size() - n + i];
    p.axis[3 - n + i].out = out[out.size() - n + i];
  }
}

Tensor max_pool_backward_kernel(const Call&, const Tensor& grad, const Tensor& indices, IntList input_sizes,
                                int64_t n) {
  check_gradient("max_pool_backward", grad, input_sizes, n);
  RL_CHECK(grad.sizes() == indices.sizes(), "max_pool_backward: expected the gradient's shape ",
           indices.sizes(), ", got ", grad.sizes());
  RL_CHECK(indices.dtype() == DType::Int64, "max_pool_backward: expected indices of int64, got ",
           indices.dtype());
  const Tensor where = image_of(indices), g = image_of(grad);
  const bool last = last_format(where, n);
  Tensor result = zeros_pooled(input_sizes, grad, last);
  cpu::PoolPlan p = pool_plan_of(input_sizes, n, last);
  set_axis_lengths(p, input_sizes, grad.sizes(), n);
  if (const DeviceLayers* layers = device_layers(result); layers && grad.numel())
    layers->max_pool_backward(result.device().index(), grad.dtype(), device_plan(p),
                              in_format(g, last).data_ptr(), in_format(where, last).data<int64_t>(),
                              result.data_ptr());
  if (result.is_cpu() && grad.numel())
    cpu::pool_kernels(grad.dtype(), "max_pool_backward")
        .max_backward(p, in_format(g, last).data_ptr(), in_format(where, last).data<int64_t>(),
                      result.data_ptr());
  return laid_out_as(indices, result);
}

Tensor run_mean_backward(const Tensor& grad, IntList input_sizes, const cpu::PoolPlan& p) {
  const auto kernels = cpu::pool_kernels(grad.dtype(), "avg_pool_backward");
  if (!kernels.mean_backward)
    RL_NOT_IMPLEMENTED("\"avg_pool_backward\" not implemented for '", legacy_name(grad.dtype()), "'");
  Tensor result = zeros_pooled(input_sizes, grad, p.channels_last);
  if (const DeviceLayers* layers = device_layers(result); layers && grad.numel())
    layers->mean_pool_backward(result.device().index(), grad.dtype(), device_plan(p),
                               in_format(grad, p.channels_last).data_ptr(), result.data_ptr());
  if (result.is_cpu() && grad.numel())
    kernels.mean_backward(with_long_rows(p), in_format(grad, p.channels_last).data_ptr(), result.data_ptr());
  return result;
}

Tensor avg_pool_backward_kernel(const Call&, const Tensor& grad, IntList input_sizes, IntList kernel,
                                const OptIntList& stride, IntList padding, bool ceil_mode,
                                bool count_include_pad, OptInt divisor) {
  const auto n = static_cast<int64_t>(kernel.size());
  check_gradient("avg_pool_backward", grad, input_sizes, n);
  const char* who = avg_names[n];
  const PoolWindow w = pool_window_of(who, n, kernel, stride, padding, IntList{1}, ceil_mode);
  cpu::PoolPlan p = window_plan(who, input_sizes, n, w, last_format(grad, n), count_include_pad);
  const Dims expected = pooled_sizes(input_sizes, n, p);
  RL_CHECK(grad.sizes() == IntList(expected), "avg_pool_backward: expected a gradient of shape ", expected,
           ", got ", grad.sizes());
  set_divisor(who, p, divisor);
  return run_mean_backward(grad, input_sizes, p);
}

Tensor adaptive_avg_backward_kernel(const Call&, const Tensor& grad, IntList input_sizes, int64_t n) {
  check_gradient("adaptive_avg_pool_backward", grad, input_sizes, n);
  return run_mean_backward(grad, input_sizes,
                           adaptive_plan("adaptive_avg_pool_backward", input_sizes, n,
                                         grad.sizes().slice(grad.dim() - n), last_format(grad, n)));
}

// What the indices select of a tensor shaped as the input.
Tensor at_indices(const Tensor& t, const Tensor& indices, int64_t n) {
  const Tensor planes = flatten(t, -n, -1), where = flatten(indices, -n, -1);
  return view(gather(planes, -1, where, false), indices.sizes());
}

template <int N>
Tensor avg_pool_of(const Tensor& x, IntList kernel, const OptIntList& stride, IntList padding, bool ceil_mode,
                   bool include_pad, OptInt divisor) {
  if constexpr (N == 1) return avg_pool1d(x, kernel, stride, padding, ceil_mode, include_pad);
  if constexpr (N == 2) return avg_pool2d(x, kernel, stride, padding, ceil_mode, include_pad, divisor);
  return avg_pool3d(x, kernel, stride, padding, ceil_mode, include_pad, divisor);
}

template <int N>
auto max_derivative() {
  return [](Grad g, Out<1> indices, Shape<0> x) { return max_pool_backward(g, indices, x, N); };
}
template <int N>
auto adaptive_avg_derivative() {
  return [](Grad g, Shape<0> x) { return adaptive_avg_pool_backward(g, x, N); };
}
template <int N>
auto avg_derivative() {
  return [](Grad g, Shape<0> x, Attr<1, IntList> kernel, Attr<2, OptIntList> stride, Attr<3, IntList> padding,
            Attr<4, bool> ceil_mode, Attr<5, bool> include_pad, Attr<6, OptInt> divisor) {
    return avg_pool_backward(g, x, pool_spread("avg_pool", "kernel_size", kernel, N), stride, padding,
                             ceil_mode, include_pad, divisor);
  };
}

// --- the faces that PyTorch has besides

template <int N>
Tensor max_pool_body(const Call&, const Tensor& self, IntList kernel, const OptIntList& stride,
                     IntList padding, IntList dilation, bool ceil_mode) {
  if (is_plain(self)) {
    const auto results = max_of_windows<N>(self, kernel, stride, padding, dilation, ceil_mode, false);
    return laid_out_as(self, std::get<0>(results));
  }
  if constexpr (N == 1)
    return std::get<0>(max_pool1d_with_indices(self, kernel, stride, padding, dilation, ceil_mode, false));
  if constexpr (N == 2)
    return std::get<0>(max_pool2d_with_indices(self, kernel, stride, padding, dilation, ceil_mode, false));
  return std::get<0>(max_pool3d_with_indices(self, kernel, stride, padding, dilation, ceil_mode, false));
}
std::tuple<Tensor, Tensor> adaptive_max_pool1d_body(const Call&, const Tensor& self, IntList size) {
  return adaptive_max_pool1d_with_indices(self, size, true);
}
std::tuple<Tensor, Tensor> max_pool1d_indices_body(const Call&, const Tensor& self, IntList kernel,
                                                   const OptIntList& stride, IntList padding,
                                                   IntList dilation, bool ceil_mode) {
  return max_pool1d_with_indices(self, kernel, stride, padding, dilation, ceil_mode, true);
}
Tensor avg_pool1d_body(const Call&, const Tensor& self, IntList kernel, const OptIntList& stride,
                       IntList padding, bool ceil_mode, bool pad) {
  return avg_pool1d(self, kernel, stride, padding, ceil_mode, pad);
}
Tensor adaptive_avg_pool1d_body(const Call&, const Tensor& self, IntList size) {
  return adaptive_avg_pool1d(self, size);
}

// The record that gives positions too, and the composite without them.
template <int N, class Both, class Values>
OpBuilder add_max_pool(Table& t, Both& both, Values& values) {
  const std::string n = std::to_string(N),
                    windows = str("int[", n, "] kernel_size, int[", n, "]? stride=None, int[", n,
                                  "] padding=0, int[", n, "] dilation=1, bool ceil_mode=False");
  OpBuilder record =
      t.op(both,
           kept_schema(str("nn::max_pool", n, "d_with_indices(Tensor self, ", windows,
                           ", bool return_indices=False) -> (Tensor, Tensor)")),
           max_pool_kernel<N>)
          .doc(
              "The largest element of each window and its position in the plane. Shape: [batch?, "
              "channels, ...].")
          .family(Family::Window)
          .on_devices()
          .batching(Batching::Window)
          .derivative(max_derivative<N>());
  t.composite(values, kept_schema(str("max_pool", n, "d(Tensor self, ", windows, ") -> Tensor")),
              max_pool_body<N>)
      .doc("The largest element of each window. Shape: [batch?, channels, ...].")
      .function_only()
      .examples(kFirst)
      .autocast(N == 3 ? Cast::Float : Cast::None, Cast::None);
  return record;
}

void register_max(Table& t) {
  add_max_pool<1>(t, max_pool1d_with_indices, max_pool1d).node("SqueezeBackward1");
  add_max_pool<2>(t, max_pool2d_with_indices, max_pool2d);
  add_max_pool<3>(t, max_pool3d_with_indices, max_pool3d);
  t.op(adaptive_max_pool1d_with_indices,
       "nn::adaptive_max_pool1d_with_indices(Tensor input, int[1] output_size, bool return_indices=False) -> "
       "(Tensor, Tensor)",
       adaptive_max_kernel<1>)
      .absent_in_pytorch()
      .doc(
          "The largest element and its position in each of output_size windows. Shape: [batch?, channels, "
          "length].")
      .family(Family::Window)
      .on_devices()
      .batching(Batching::Window)
      .node("SqueezeBackward1")
      .derivative(max_derivative<1>());
  t.op(adaptive_max_pool2d_with_indices,
       "nn::adaptive_max_pool2d_with_indices(Tensor self, int[2] output_size, bool return_indices=False) -> "
       "(Tensor, Tensor)",
       adaptive_max_kernel<2>)
      .doc(
          "The largest element and its position in each of output_size windows. Shape: [batch?, channels, "
          "height, width].")
      .family(Family::Window)
      .on_devices()
      .batching(Batching::Window)
      .node("AdaptiveMaxPool2DBackward0")
      .derivative(max_derivative<2>());
  t.op(adaptive_max_pool3d_with_indices,
       "nn::adaptive_max_pool3d_with_indices(Tensor self, int[3] output_size, bool return_indices=False) -> "
       "(Tensor, Tensor)",
       adaptive_max_kernel<3>)
      .doc(
          "The largest element and its position in each of output_size windows. Shape: [batch?, channels, "
          "depth, height, width].")
      .family(Family::Window)
      .on_devices()
      .batching(Batching::Window)
      .autocast(Cast::Float, Cast::None)
      .node("AdaptiveMaxPool3DBackward0")
      .derivative(max_derivative<3>());
  t.composite(
       "max_pool1d_with_indices(Tensor self, int[1] kernel_size, int[1]? stride=None, int[1] padding=0, "
       "int[1] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
       max_pool1d_indices_body)
      .doc("The largest element of each window and its position. Shape: [batch?, channels, length].")
      .function_only()
      .node("SqueezeBackward1");
  t.composite("adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)",
              adaptive_max_pool1d_body)
      .doc(
          "The largest element and its position in each of output_size windows. Shape: [batch?, channels, "
          "length].")
      .function_only();
  t.op(max_pool_backward,
       "_max_pool_backward(Tensor grad_output, Tensor indices, int[] input_sizes, int n) -> Tensor",
       max_pool_backward_kernel)
      .absent_in_pytorch()
      .doc("Gradient of max pooling over n dimensions: adds the gradient at the positions in indices.")
      .internal()
      .family(Family::Gradient)
      .on_devices()
      .batching(Batching::Window)
      .derivative([](Grad g, In<1> indices, Attr<3, int64_t> n) {
        return Grads{at_indices(g, indices, n), Tensor()};
      });
}

template <int N, class F>
OpBuilder add_avg_pool(Table& t, F& handle) {
  const std::string n = std::to_string(N);
  return t
      .op(handle,
          kept_schema(str("nn::avg_pool", n, "d(Tensor self, int[", n, "] kernel_size, int[", n,
                          "]? stride=None, int[", n,
                          "] padding=0, bool ceil_mode=False, bool "
                          "count_include_pad=True, int? divisor_override=None) -> Tensor")),
          avg_pool_kernel<N>)
      .doc("The mean of each window. Shape: [batch?, channels, ...].")
      .out(OutRule::SameType)
      .family(Family::Window)
      .on_devices()
      .linear()
      .batching(Batching::Window)
      .derivative(avg_derivative<N>());
}

void register_mean(Table& t) {
  t.op(avg_pool1d,
       "nn::avg_pool1d(Tensor input, int[1] kernel_size, int[1]? stride=None, int[1] padding=0, bool "
       "ceil_mode=False, bool count_include_pad=True) -> Tensor",
       avg_pool1d_kernel)
      .doc("The mean of each window. Shape: [batch?, channels, length].")
      .family(Family::Window)
      .on_devices()
      .linear()
      .batching(Batching::Window)
      .node("SqueezeBackward1")
      .derivative([](Grad g, Shape<0> x, Attr<1, IntList> kernel, Attr<2, OptIntList> stride,
                     Attr<3, IntList> padding, Attr<4, bool> ceil_mode, Attr<5, bool> include_pad) {
        return avg_pool_backward(g, x, kernel, stride, padding, ceil_mode, include_pad, std::nullopt);
      });
  add_avg_pool<2>(t, avg_pool2d);
  add_avg_pool<3>(t, avg_pool3d).autocast(Cast::Float, Cast::None);
  t.op(adaptive_avg_pool1d, "nn::adaptive_avg_pool1d(Tensor input, int[1] output_size) -> Tensor",
       adaptive_avg_kernel<1>)
      .doc("The mean of each of output_size windows that cover the input.")
      .family(Family::Window)
      .on_devices()
      .linear()
      .batching(Batching::Window)
      .node("SqueezeBackward1")
      .derivative(adaptive_avg_derivative<1>());
  t.op(adaptive_avg_pool2d, "nn::_adaptive_avg_pool2d(Tensor self, int[2] output_size) -> Tensor",
       adaptive_avg_kernel<2>)
      .doc("Means over output_size windows. Shape: [batch?, channels, height, width].")
      .family(Family::Window)
      .on_devices()
      .linear()
      .batching(Batching::Window)
      .derivative(adaptive_avg_derivative<2>());
  t.op(adaptive_avg_pool3d, "nn::_adaptive_avg_pool3d(Tensor self, int[3] output_size) -> Tensor",
       adaptive_avg_kernel<3>)
      .doc("Means over output_size windows. Shape: [batch?, channels, depth, height, width].")
      .family(Family::Window)
      .on_devices()
      .linear()
      .batching(Batching::Window)
      .autocast(Cast::Float, Cast::None)
      .derivative(adaptive_avg_derivative<3>());
  t.composite(
       "avg_pool1d(Tensor self, int[1] kernel_size, int[1]? stride=None, int[1] padding=0, bool "
       "ceil_mode=False, bool count_include_pad=True) -> Tensor",
       avg_pool1d_body)
      .doc("Means of windows. Shape: [batch?, channels, length].")
      .function_only()
      .node("SqueezeBackward1");
  t.composite("adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor", adaptive_avg_pool1d_body)
      .doc("Means over output_size windows. Shape: [batch?, channels, length].")
      .function_only()
      .node("SqueezeBackward1");
  t.op(avg_pool_backward,
       "_avg_pool_backward(Tensor grad_output, int[] input_sizes, int[] kernel_size, int[]? stride, int[] "
       "padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
       avg_pool_backward_kernel)
      .absent_in_pytorch()
      .doc("Gradient of average pooling with respect to its input.")
      .internal()
      .family(Family::Gradient)
      .on_devices()
      .linear()
      .batching(Batching::Window)
      .derivative([](Grad g, Attr<2, IntList> kernel, Attr<3, OptIntList> stride, Attr<4, IntList> padding,
                     Attr<5, bool> ceil_mode, Attr<6, bool> include_pad, Attr<7, OptInt> divisor) {
        const auto pool = kernel->size() == 1   ? avg_pool_of<1>
                          : kernel->size() == 2 ? avg_pool_of<2>
                                                : avg_pool_of<3>;
        return pool(g, kernel, stride, padding, ceil_mode, include_pad, divisor);
      });
  t.op(adaptive_avg_pool_backward,
       "_adaptive_avg_pool_backward(Tensor grad_output, int[] input_sizes, int n) -> Tensor",
       adaptive_avg_backward_kernel)
      .absent_in_pytorch()
      .doc("Gradient of adaptive average pooling over n dimensions with respect to its input.")
      .internal()
      .family(Family::Gradient)
      .on_devices()
      .linear()
      .batching(Batching::Window)
      .derivative([](Grad g, Shape<0> y, Attr<2, int64_t> n) {
        const IntList size = y.sizes().slice(y.dim() - n.value);
        return n.value == 1   ? adaptive_avg_pool1d(g, size)
               : n.value == 2 ? adaptive_avg_pool2d(g, size)
                              : adaptive_avg_pool3d(g, size);
      });
}

}  // namespace

void register_pool_operators(Table& t) {
  register_max(t);
  register_mean(t);
}

}  // namespace rushlight
