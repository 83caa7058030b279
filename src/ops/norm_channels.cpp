// Normalisation over channels: batch norm.
#include <cmath>
#include <cstring>

#include "core/deferred_layout.h"
#include "core/write_watch.h"
#include "ops/copy.h"
#include "ops/device_loops.h"
#include "ops/epilogue.h"
#include "ops/factory.h"
#include "ops/norm.h"
#include "ops/norm_common.h"
#include "ops/operators.h"
#include "ops/reduction.h"
#include "ops/register.h"
#include "ops/view.h"

namespace rushlight {

using namespace ops;

namespace {

struct Channels {
  Tensor x;
  cpu::ChannelShape shape;
  MemoryFormat format = MemoryFormat::Contiguous;
  bool deferred = false;  // Note [Deferred layout conversion]

  Tensor finished(const Tensor& result) const {
    return deferred && result.defined() ? defer_layout(result) : result;
  }
};
Channels channels_of(const Tensor& t, std::optional<MemoryFormat> wanted = std::nullopt) {
  Channels c;
  c.deferred = has_deferred_layout(t);
  const Tensor image = image_of(t);
  if (wanted)
    c.format = *wanted;
  else if (c.deferred || is_channels_last(image))
    c.format = t.dim() == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
  c.x = image.is_contiguous(c.format) ? image : contiguous(image, c.format);
  c.shape.channels = t->sizes[1];
  const int64_t rest = c.shape.channels ? t.numel() / c.shape.channels : 0;
  const bool last = c.format != MemoryFormat::Contiguous || t.dim() == 2;
  c.shape.outer = last ? rest : t->sizes[0];
  c.shape.inner = last || t->sizes[0] == 0 ? 1 : rest / t->sizes[0];
  return c;
}
Tensor empty_in_format(const Tensor& like, const Channels& c) {
  return empty_tensor(like.sizes(), like.dtype(), like.device(), c.format);
}

// running = (1 - momentum) * running + momentum * batch
template <class F>
void update_running(const Tensor& running, double momentum, F&& batch) {
  running.check_writable("batch_norm");
  note_write(*running->storage);
  visit_dtype(FloatTypes{}, running.dtype(), "batch_norm", [&](auto tag) {
    using T = decltype(tag);
    T* data = running.data<T>();
    for (int64_t c = 0; c < running.numel(); ++c) {
      T& value = data[c * running->strides[0]];
      value = T(static_cast<compute_type<T>>(
          (1 - momentum) * static_cast<double>(static_cast<compute_type<T>>(value)) + momentum * batch(c)));
    }
  });
}

// The same on a device, where the constants of channels are computed too.
void normalize_channels(const DeviceLayers& layers, const Channels& c, const Tensor& weight,
                        const Tensor& bias, const Tensor& running_mean, const Tensor& running_var,
                        bool training, double momentum, double eps, const Tensor& y, const Tensor& mean,
                        const Tensor& rstd) {
  const int device = y.device().index();
  if (training && running_mean.defined()) running_mean.check_writable("batch_norm");
  if (training && running_var.defined()) running_var.check_writable("batch_norm");
  const Tensor scale = empty_like_tensor(mean, mean.dtype()), shift = empty_like_tensor(mean, mean.dtype());
  if (c.shape.channels == 0) return;
  if (training)
    layers.channel_statistics(device, c.x.dtype(), c.shape, c.x.data_ptr(), mean.data_ptr(), rstd.data_ptr());
  BatchNormConstants constants;
  constants.channels = c.shape.channels;
  constants.mean = mean.data_ptr(), constants.variance = rstd.data_ptr();
  constants.weight = pointer_or_null(weight), constants.bias = pointer_or_null(bias);
  constants.scale = scale.data_ptr(), constants.shift = shift.data_ptr();
  constants.training = training, constants.momentum = momentum, constants.eps = eps;
  constants.count = static_cast<double>(c.shape.outer * c.shape.inner);
  if (running_mean.defined() && (!training || y.numel())) {
    constants.running_mean = running_mean.data_ptr(), constants.mean_dtype = running_mean.dtype();
    constants.mean_step = running_mean->strides[0];
  }
  if (running_var.defined() && (!training || y.numel())) {
    constants.running_variance = running_var.data_ptr(), constants.variance_dtype = running_var.dtype();
    constants.variance_step = running_var->strides[0];
  }
  layers.batch_norm_constants(device, mean.dtype(), constants);
  if (y.numel())
    layers.channel_affine(device, c.x.dtype(), c.shape, c.x.data_ptr(), scale.data_ptr(), shift.data_ptr(),
                          y.data_ptr());
}

ThreeTensors native_batch_norm_kernel(const Call&, const Tensor& input, const Tensor& weight,
                                      const Tensor& bias, const Tensor& running_mean,
                                      const Tensor& running_var, bool training, double momentum, double eps) {
  RL_CHECK(input.dim() >= 2, "batch_norm: Expected at least 2 dimensions for input tensor, but received ",
           describe(input));
  const int64_t channels = input->sizes[1];
  check_channels("running_mean", running_mean, channels);
  check_channels("running_var", running_var, channels);
  check_channels("weight", weight, channels);
  check_channels("bias", bias, channels);
  RL_CHECK_VALUE(running_mean.defined() == running_var.defined(),
                 "running_mean and running_var must either both be None or neither be None");
  RL_CHECK(training || (running_mean.defined() && running_var.defined()),
           "running_mean must be defined in evaluation mode");
  const auto& kernels = cpu::norm_kernels(input.dtype(), "batch_norm");
  check_parameter_types(
      "batch_norm", input,
      {{"weight", weight}, {"bias", bias}, {"running_mean", running_mean}, {"running_var", running_var}});
  const DType compute = compute_dtype(input.dtype());
  const Channels c = channels_of(input);
  Tensor mean = empty_tensor(IntList{channels}, compute, input.device()),
         rstd = empty_tensor(IntList{channels}, compute, input.device());
  // Evaluation keeps no statistics: the running ones are there.
  const DType type = statistics_dtype(input, {&weight, &bias, &running_mean, &running_var});
  const auto kept = [&](const Tensor& t) {
    return training ? to_dtype(t, type) : empty_tensor(IntList{0}, type, input.device());
  };
  const Tensor w = norm_parameter(weight, compute), b = norm_parameter(bias, compute);
  if (!input.is_cpu()) {
    const Tensor y = empty_in_format(input, c);
    if (const DeviceLayers* layers = device_layers(y))
      normalize_channels(*layers, c, w, b, running_mean, running_var, training, momentum, eps, y, mean, rstd);
    return {y, kept(mean), kept(rstd)};
  }
  const auto count = static_cast<double>(c.shape.outer * c.shape.inner);
  if (training && input.numel()) {
    kernels.channel_statistics(c.shape, c.x.data_ptr(), mean.data_ptr(), rstd.data_ptr());
    if (running_mean.defined())
      update_running(running_mean, momentum, [&](int64_t i) { return value_at(mean, i); });
    if (running_var.defined())
      update_running(running_var, momentum,
                     [&](int64_t i) { return value_at(rstd, i) * (count / (count - 1)); });
  } else if (training) {
    std::memset(mean.data_ptr(), 0, mean.nbytes());
    std::memset(rstd.data_ptr(), 0, rstd.nbytes());
  } else {
    copy_result(mean, running_mean, false);
    copy_result(rstd, running_var, false);
  }
  const auto [scale, shift] = channel_constants(w, b, mean, rstd, eps);
  if (c.deferred)
    if (const Tensor y = defer_affine(c.x, scale, shift); y.defined()) return {y, kept(mean), kept(rstd)};
  const Tensor y = empty_in_format(input, c);
  if (input.numel())
    kernels.channel_affine(c.shape, c.x.data_ptr(), scale.data_ptr(), shift.data_ptr(), y.data_ptr());
  return {c.finished(y), kept(mean), kept(rstd)};
}

ThreeTensors batch_norm_gradients_kernel(const Call&, const Tensor& grad, const Tensor& input,
                                         const Tensor& weight, const Tensor& mean, const Tensor& rstd,
                                         bool training, int64_t wanted) {
  RL_CHECK(input.dim() >= 2 && grad.sizes() == input.sizes() && grad.dtype() == input.dtype(),
           "_batch_norm_gradients: a gradient ", describe(grad), " does not fit an input ", describe(input));
  const auto by_channel = [&](const Tensor& t) { return !t.defined() || t.numel() == input->sizes[1]; };
  RL_CHECK(input.numel() == 0 || (by_channel(weight) && by_channel(mean) && by_channel(rstd)),
           "_batch_norm_gradients: weights and statistics need a number for each channel of ",
           describe(input));
  const DType compute = compute_dtype(input.dtype());
  const Channels c = channels_of(input), g = channels_of(grad, c.format);
  const Tensor w = norm_parameter(weight, compute), center = norm_parameter(mean, compute),
               scale = norm_parameter(rstd, compute);
  Tensor gx, gw, gb;
  if (wanted & 1) gx = empty_in_format(input, c);
  if (wanted & 2) gw = empty_tensor(IntList{c.shape.channels}, compute, input.device());
  if (wanted & 4) gb = empty_tensor(IntList{c.shape.channels}, compute, input.device());
  const DeviceLayers* layers = device_layers(input);
  if (!input.is_cpu() && !layers) return {c.finished(gx), gw, gb};
  const cpu::NormGradients gradients{g.x.data_ptr(),      c.x.data_ptr(),     pointer_or_null(w),
                                     center.data_ptr(),   scale.data_ptr(),   pointer_or_null(gx),
                                     pointer_or_null(gw), pointer_or_null(gb)};
  if (layers)
    layers->channel_backward(input.device().index(), input.dtype(), c.shape, gradients, training);
  else if (!input.numel())
    for (const Tensor& sum : {gw, gb}) {
      if (sum.defined()) std::memset(sum.data_ptr(), 0, sum.nbytes());
    }
  else
    cpu::norm_kernels(input.dtype(), "batch_norm_backward").channel_backward(c.shape, gradients, training);
  return {c.finished(gx), gw, gb};
}

// Every dimension but the channels, and a vector of channels made to broadcast against `dim` dimensions.
Dims all_but_channels(int64_t dim) {
  Dims dims{0};
  for (int64_t d = 2; d < dim; ++d) dims.push_back(d);
  return dims;
}
Tensor by_channel(const Tensor& t, int64_t dim) {
  Dims sizes(static_cast<size_t>(dim - 1), 1);
  sizes[0] = t.numel();
  return view(t, sizes);
}

Grads batch_gradients(const Tensor& g, const Tensor& x, const Tensor& weight, const Tensor& mean,
                      const Tensor& rstd, bool training, double eps, int64_t wanted) {
  if (!derivatives_wanted() && !dispatch_state.level) {
    if (is_reduced_float(mean.dtype())) {  // too coarse: once more
      const Tensor wide = new_ones(x, IntList{x.size(1)}, DType::Float32);
      const auto [y, m, r] = native_batch_norm(x, wide, Tensor(), Tensor(), Tensor(), true, 0, eps);
      return batch_gradients(g, x, weight, m, r, training, eps, wanted);
    }
    auto [gx, gw, gb] = batch_norm_gradients(g, x, weight, mean, rstd, training, wanted);
    return {gx, gw, gb};
  }
  const Dims dims = all_but_channels(x.dim());
  Normalized n;
  if (training) {
    n = normalized_reference(x, dims, eps);
  } else {
    n.rstd = by_channel(rstd, x.dim());
    n.centred = (x - by_channel(mean, x.dim())) * n.rstd;
  }
  const Tensor scaled = weight.defined() ? g * by_channel(weight, x.dim()) : g;
  Tensor gx, gw, gb;
  if (wanted & 1) gx = training ? normalized_gradient(scaled, n, dims) : scaled * n.rstd;
  if (wanted & 2) gw = sum_dim(g * n.centred, IntList(dims), false, std::nullopt);
  if (wanted & 4) gb = sum_dim(g, IntList(dims), false, std::nullopt);
  return {gx, gw, gb};
}

// Before the operator asks for both or neither.
void check_evaluated(bool training, const Tensor& running_mean, const Tensor& running_var) {
  RL_CHECK(training || running_mean.defined(), "running_mean must be defined in evaluation mode");
  RL_CHECK(training || running_var.defined(), "running_var must be defined in evaluation mode");
}

Tensor batch_norm_body(const Call&, const Tensor& input, const Tensor& running_mean,
                       const Tensor& running_var, const Tensor& weight, const Tensor& bias, bool training,
                       double momentum, double eps) {
  RL_CHECK_VALUE(!training || !(eps <= 0), "batch_norm eps must be positive during training, but got ", eps);
  RL_CHECK_VALUE(!(eps < 0), "batch_norm eps must be non-negative, but got ", eps);
  if (training && input.dim() >= 2) {
    int64_t per_channel = input->sizes[0];
    for (int64_t d = 2; d < input.dim(); ++d) per_channel *= input->sizes[d];
    RL_CHECK_VALUE(per_channel != 1,
                   "Expected more than 1 value per channel when training, got input size torch.Size(",
                   input.sizes(), ")");
  }
  check_evaluated(training, running_mean, running_var);
  if (input.dim() == 1 && input.numel() == 0) {  // no values, and so none to shift or scale
    const Tensor scaled = weight.defined() ? input * weight : clone(input, std::nullopt);
    return bias.defined() ? scaled + bias : scaled;
  }
  return std::get<0>(
      native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps));
}
Tensor torch_batch_norm_body(const Call&, const Tensor& input, const Tensor& weight, const Tensor& bias,
                             const Tensor& running_mean, const Tensor& running_var, bool training,
                             double momentum, double eps, bool) {
  check_evaluated(training, running_mean, running_var);
  return std::get<0>(
      native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps));
}

}  // namespace

void register_norm_operators(Table& t) {
  register_row_norm_operators(t);
  t.op(native_batch_norm,
       "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
       "running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
       native_batch_norm_kernel)
      .function_only()
      .writes_unmarked(1 << 3 | 1 << 4, 5)
      .out(OutRule::SameType)
      .out_overload("out(out, save_mean, save_invstd)")
      .doc("Batch normalisation; updates the running statistics in training and returns the statistics used.")
      .family(Family::Normalization)
      .on_devices()
      .derivative([](Grad g, In<0> x, In<1> w, In<3> running_mean, In<4> running_var, Attr<5, bool> training,
                     Attr<7, double> eps, Out<1> mean, Out<2> rstd, Needs need) {
        const DType compute = compute_dtype(x.dtype());
        const Tensor m = training ? mean : norm_parameter(running_mean, compute);
        const Tensor r = training ? rstd : rsqrt(norm_parameter(running_var, compute) + Scalar(*eps));
        Grads grads = batch_gradients(g, x, w, m, r, training, eps, wanted_gradients(need, 1, 2));
        grads.push_back(Tensor());
        grads.push_back(Tensor());
        return grads;
      });
  const char* reference = "the rule uses Note [Reference normalisations] when gradients are recorded";
  t.op(batch_norm_gradients,
       "_batch_norm_gradients(Tensor grad, Tensor input, Tensor? weight, Tensor mean, Tensor rstd, bool "
       "training, int wanted) -> (Tensor, Tensor, Tensor)",
       batch_norm_gradients_kernel)
      .absent_in_pytorch()
      .doc(
          "Gradients of batch_norm with respect to input, weight and bias; `wanted` is a mask of those asked "
          "for.")
      .internal()
      .family(Family::Gradient)
      .on_devices()
      .not_differentiable(reference);
  t.composite(batch_norm,
              "nn::batch_norm(Tensor input, Tensor? running_mean, Tensor? running_var, Tensor? weight=None, "
              "Tensor? bias=None, bool training=False, float momentum=0.1, float eps=1e-05) -> Tensor",
              batch_norm_body)
      .writes_unmarked(1 << 1 | 1 << 2, 5)
      .doc(
          "Each channel shifted and scaled to mean 0 and variance 1 over the batch, or by the running "
          "statistics.");
  t.composite(torch_batch_norm,
              "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
              "running_var, bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor",
              torch_batch_norm_body)
      .writes_unmarked(1 << 3 | 1 << 4, 5)
      .doc("As nn.functional.batch_norm, with weight and bias before the running statistics.")
      .function_only();
  register_group_norm_operators(t);
  register_composite_norm_operators(t);
}

}  // namespace rushlight
