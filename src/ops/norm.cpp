#include "ops/norm.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "core/hidden_layout.h"
#include "core/write_watch.h"
#include "ops/copy.h"
#include "ops/device_loops.h"
#include "ops/epilogue.h"
#include "ops/factory.h"
#include "ops/norm_common.h"
#include "ops/operators.h"
#include "ops/reduction.h"
#include "ops/register.h"
#include "ops/view.h"

namespace rushlight {

using namespace ops;

int64_t wanted_gradients(const Needs& need, int weight, int bias) {
  return (need[0] ? 1 : 0) | (need[weight] ? 2 : 0) | (bias >= 0 && need[bias] ? 4 : 0);
}

Tensor norm_parameter(const Tensor& t, DType compute) {
  if (!t.defined()) return t;
  const Tensor typed = to_dtype(t, compute);
  return typed.is_contiguous() ? typed : contiguous(typed);
}

void check_parameter_types(std::string_view who, const Tensor& input,
                           std::initializer_list<NamedParameter> all) {
  DType wanted = input.dtype();
  for (const NamedParameter& p : all) {
    if (!p.tensor.defined()) continue;
    wanted = p.tensor.dtype();
    break;
  }
  if (wanted != input.dtype()) {
    for (const NamedParameter& p : all)
      RL_CHECK(!p.tensor.defined() || p.tensor.dtype() == DType::Float32,
               "mixed dtype (CPU): expect parameter to have scalar type of Float, but ", who, " got ", p.name,
               " ", describe(p.tensor), " with input ", describe(input));
    RL_CHECK(is_reduced_float(input.dtype()), "mixed dtype (CPU): all inputs must share same datatype, but ",
             who, " got input ", describe(input), " with parameters of float32");
  }
  if (!is_floating(input.dtype())) return;  // for which there is no kernel
  for (const NamedParameter& p : all)
    RL_CHECK(!p.tensor.defined() || p.tensor.dtype() == wanted, "expected scalar type ", legacy_name(wanted),
             " but found ", legacy_name(p.tensor.dtype()), ": ", who, " got ", p.name, " ",
             describe(p.tensor), " with input ", describe(input));
}

DType statistics_dtype(const Tensor& input, std::initializer_list<const Tensor*> parameters) {
  for (const Tensor* t : parameters)
    if (t->defined() && t->dtype() != input.dtype()) return compute_dtype(input.dtype());
  return input.dtype();
}

void clear(const Tensor& t) {
  if (t.numel()) loops::copy(t, scalar_tensor_of(0, t.dtype()));
}

Tensor dense_or_contiguous(const Tensor& t) { return t.is_contiguous() ? t : contiguous(t); }

bool observed(std::initializer_list<const Tensor*> tensors) {
  uint32_t flags = 0;
  for (const Tensor* t : tensors) flags |= detail::flags_of(*t);
  return (dispatch_state.always | (flags & dispatch_state.consider)) != 0;
}

Normalized normalized_twin(const Tensor& x, IntList dims, double eps, bool subtract_mean) {
  const Tensor shifted = subtract_mean ? x - mean_dim(x, dims, true) : x;
  const Tensor rstd = rsqrt(mean_dim(shifted * shifted, dims, true) + Scalar(eps));
  return {shifted * rstd, rstd};
}

Tensor normalized_gradient(const Tensor& grad, const Normalized& n, IntList dims, bool subtract_mean) {
  const Tensor along = n.centred * mean_dim(grad * n.centred, dims, true);
  return n.rstd * (subtract_mean ? grad - mean_dim(grad, dims, true) - along : grad - along);
}

namespace {

// --- rows: layer norm and root-mean-square norm
// --------------------------------------------------------------------------

// The number of elements of a row, after PyTorch's checks.
int64_t check_rows(const Tensor& input, IntList shape, const Tensor& weight, const Tensor& bias) {
  const size_t n = shape.size(), d = static_cast<size_t>(input.dim());
  RL_CHECK(n >= 1,
           "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, "
           "but got normalized_shape = ",
           shape);
  RL_CHECK(!weight.defined() || weight.sizes() == shape,
           "Expected weight to be of same shape as normalized_shape, but got weight of shape ",
           weight.sizes(), " and normalized_shape = ", shape);
  RL_CHECK(!bias.defined() || bias.sizes() == shape,
           "Expected bias to be of same shape as normalized_shape, but got bias of shape ", bias.sizes(),
           " and normalized_shape = ", shape);
  if (d < n || !(input.sizes().slice(d - n) == shape)) {
    std::string text = str("Given normalized_shape=", shape, ", expected input with shape [*");
    for (int64_t s : shape) text += str(", ", s);
    RL_FAIL(text, "], but got input of size", input.sizes());
  }
  return checked_numel(shape);
}

Tensor statistics_tensor(const Tensor& input, size_t row_dims, DType compute) {
  Dims sizes = input->sizes;
  for (size_t i = sizes.size() - row_dims; i < sizes.size(); ++i) sizes[i] = 1;
  Tensor t = empty_tensor(sizes, compute, input.device());
  if (input.numel() == 0) clear(t);
  return t;
}

void run_rows(const Tensor& x, int64_t n, const Tensor& weight, const Tensor& bias, double eps,
              const Tensor& y, const Tensor& mean, const Tensor& rstd, bool rms, const char* who) {
  const auto& kernels = cpu::norm_kernels(x.dtype(), who);
  const DeviceLayers* layers = device_layers(y);
  if ((!y.is_cpu() && !layers) || y.numel() == 0) return;
  const DType compute = compute_dtype(x.dtype());
  const Tensor dense = dense_or_contiguous(x), w = norm_parameter(weight, compute),
               b = norm_parameter(bias, compute);
  const cpu::NormArguments arguments{dense.data_ptr(),
                                     pointer_or_null(w),
                                     pointer_or_null(b),
                                     y.data_ptr(),
                                     pointer_or_null(mean),
                                     pointer_or_null(rstd),
                                     eps};
  if (layers)
    layers->norm(y.device().index(), x.dtype(), {x.numel() / n, n, 1}, 1, arguments, rms);
  else
    kernels.rows(x.numel() / n, n, arguments, rms);
}

ThreeTensors native_layer_norm_kernel(const Call&, const Tensor& input, IntList shape, const Tensor& weight,
                                      const Tensor& bias, double eps) {
  const int64_t n = check_rows(input, shape, weight, bias);
  check_parameter_types("layer_norm", input, {{"weight", weight}, {"bias", bias}});
  Tensor y = empty_tensor(input.sizes(), input.dtype(), input.device());
  Tensor mean = statistics_tensor(input, shape.size(), compute_dtype(input.dtype())),
         rstd = statistics_tensor(input, shape.size(), mean.dtype());
  run_rows(input, n, weight, bias, eps, y, mean, rstd, false, "LayerNormKernelImpl");
  const DType kept = statistics_dtype(input, {&weight, &bias});
  return {y, to_dtype(mean, kept), to_dtype(rstd, kept)};
}

Tensor layer_norm_body(const Call&, const Tensor& input, IntList shape, const Tensor& weight,
                       const Tensor& bias, double eps) {
  if (observed({&input, &weight, &bias}))
    return std::get<0>(native_layer_norm(input, shape, weight, bias, eps));
  const int64_t n = check_rows(input, shape, weight, bias);
  check_parameter_types("layer_norm", input, {{"weight", weight}, {"bias", bias}});
  Tensor y = empty_tensor(input.sizes(), input.dtype(), input.device());
  run_rows(input, n, weight, bias, eps, y, Tensor(), Tensor(), false, "LayerNormKernelImpl");
  return y;
}
Tensor torch_layer_norm_body(const Call&, const Tensor& input, IntList shape, const Tensor& weight,
                             const Tensor& bias, double eps, bool) {
  return layer_norm(input, shape, weight, bias, eps);
}

Dims last_dims(int64_t dim, size_t n) {
  Dims dims;
  for (int64_t d = dim - static_cast<int64_t>(n); d < dim; ++d) dims.push_back(d);
  return dims;
}

double epsilon_of(const Tensor& input, std::optional<double> eps) {
  if (eps) return *eps;
  return input.dtype() == DType::Float64 ? std::numeric_limits<double>::epsilon()
                                         : std::numeric_limits<float>::epsilon();
}

std::tuple<Tensor, Tensor> fused_rms_norm_kernel(const Call&, const Tensor& input, IntList shape,
                                                 const Tensor& weight, std::optional<double> eps) {
  const int64_t n = check_rows(input, shape, weight, Tensor());
  Tensor y = empty_tensor(input.sizes(), input.dtype(), input.device());
  Tensor rstd = statistics_tensor(input, shape.size(), compute_dtype(input.dtype()));
  run_rows(input, n, weight, Tensor(), epsilon_of(input, eps), y, Tensor(), rstd, true, "rms_norm");
  return {y, rstd};
}
Tensor rms_norm_body(const Call&, const Tensor& input, IntList shape, const Tensor& weight,
                     std::optional<double> eps) {
  const bool fits = !weight.defined() || weight.sizes() == shape;  // else that is told
  RL_CHECK_VALUE(!fits || input.dim() >= static_cast<int64_t>(shape.size()),
                 "Input tensor must have at least ", static_cast<int64_t>(shape.size()),
                 " dimensions, but got ", input.dim());
  if (is_complex(input.dtype())) {
    check_rows(input, shape, weight, Tensor());
    const double added =
        eps.value_or(input.dtype() == DType::Complex128 ? std::numeric_limits<double>::epsilon()
                                                        : std::numeric_limits<float>::epsilon());
    const Tensor square = mean_dim(input * input, IntList(last_dims(input.dim(), shape.size())), true);
    const Tensor y = input * rsqrt(square + Scalar(added));
    return weight.defined() ? y * weight : y;
  }
  return std::get<0>(fused_rms_norm(input, shape, weight, eps));
}

// `mean` undefined: the root-mean-square norm.
ThreeTensors row_norm_gradients_kernel(const Call&, const Tensor& grad, const Tensor& input,
                                       const Tensor& weight, const Tensor& mean, const Tensor& rstd,
                                       int64_t n, int64_t wanted) {
  const DType compute = compute_dtype(input.dtype());
  const Tensor g = dense_or_contiguous(grad), x = dense_or_contiguous(input),
               w = norm_parameter(weight, compute);
  Tensor gx, gw, gb;
  if (wanted & 1) gx = empty_tensor(input.sizes(), input.dtype(), input.device());
  if (wanted & 2) gw = empty_tensor(IntList{n}, compute, input.device());
  if (wanted & 4) gb = empty_tensor(IntList{n}, compute, input.device());
  const DeviceLayers* layers = device_layers(input);
  if (!input.is_cpu() && !layers) return {gx, gw, gb};
  const int64_t rows = n ? input.numel() / n : 0;
  const cpu::NormGradients gradients{g.data_ptr(),          x.data_ptr(),       pointer_or_null(w),
                                     pointer_or_null(mean), rstd.data_ptr(),    pointer_or_null(gx),
                                     pointer_or_null(gw),   pointer_or_null(gb)};
  if (layers)
    layers->norm_backward(input.device().index(), input.dtype(), {rows, n, 1}, 1, gradients, !mean.defined());
  else
    cpu::norm_kernels(input.dtype(), "layer_norm_backward")
        .rows_backward(rows, n, gradients, !mean.defined());
  return {gx, gw, gb};
}

Tensor sum_leading(const Tensor& t, IntList shape) {
  Dims dims;
  for (int64_t d = 0; d < t.dim() - static_cast<int64_t>(shape.size()); ++d) dims.push_back(d);
  return dims.empty() ? t : sum_dim(t, IntList(dims), false, std::nullopt);
}

Grads row_gradients(const Tensor& g, const Tensor& x, IntList shape, const Tensor& weight, const Tensor& mean,
                    const Tensor& rstd, double eps, int64_t wanted, bool rms) {
  if (!derivatives_wanted() && !dispatch_state.level) {
    if (mean.defined() && is_reduced_float(mean.dtype())) {  // too coarse: once more
      const auto [y, m, r] = native_layer_norm(x, shape, new_ones(x, shape, DType::Float32), Tensor(), eps);
      return row_gradients(g, x, shape, weight, m, r, eps, wanted, rms);
    }
    auto [gx, gw, gb] = row_norm_gradients(g, x, weight, mean, rstd, checked_numel(shape), wanted);
    auto shaped = [&](const Tensor& t) { return t.defined() ? view(t, shape) : t; };
    return rms ? Grads{gx, shaped(gw)} : Grads{gx, shaped(gw), shaped(gb)};
  }
  const Dims dims = last_dims(x.dim(), shape.size());
  const Normalized n = normalized_twin(x, dims, eps, !rms);
  Tensor gx, gw, gb;
  if (wanted & 1) gx = normalized_gradient(weight.defined() ? g * weight : g, n, dims, !rms);
  if (wanted & 2) gw = sum_leading(g * n.centred, shape);
  if (wanted & 4) gb = sum_leading(g, shape);
  return rms ? Grads{gx, gw} : Grads{gx, gw, gb};
}

// --- channels: batch norm
// -----------------------------------------------------------------------------------------------

struct Channels {
  Tensor x;
  cpu::ChannelShape shape;
  MemoryFormat format = MemoryFormat::Contiguous;
  bool hidden = false;  // Note [Hidden layouts]

  Tensor finished(const Tensor& result) const {
    return hidden && result.defined() ? hide_layout(result) : result;
  }
};
Channels channels_of(const Tensor& t, std::optional<MemoryFormat> wanted = std::nullopt) {
  Channels c;
  c.hidden = has_hidden_layout(t);
  const Tensor image = image_of(t);
  if (wanted)
    c.format = *wanted;
  else if (c.hidden || is_channels_last(image))
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
  if (c.hidden)
    if (const Tensor y = affine_later(c.x, scale, shift); y.defined()) return {y, kept(mean), kept(rstd)};
  const Tensor y = empty_in_format(input, c);
  if (input.numel())
    kernels.channel_affine(c.shape, c.x.data_ptr(), scale.data_ptr(), shift.data_ptr(), y.data_ptr());
  return {c.finished(y), kept(mean), kept(rstd)};
}

ThreeTensors batch_norm_gradients_kernel(const Call&, const Tensor& grad, const Tensor& input,
                                         const Tensor& weight, const Tensor& mean, const Tensor& rstd,
                                         bool training, int64_t wanted) {
  const DType compute = compute_dtype(input.dtype());
  const Channels c = channels_of(input), g = channels_of(grad, c.format);
  const Tensor w = norm_parameter(weight, compute);
  Tensor gx, gw, gb;
  if (wanted & 1) gx = empty_in_format(input, c);
  if (wanted & 2) gw = empty_tensor(IntList{c.shape.channels}, compute, input.device());
  if (wanted & 4) gb = empty_tensor(IntList{c.shape.channels}, compute, input.device());
  const DeviceLayers* layers = device_layers(input);
  if (!input.is_cpu() && !layers) return {c.finished(gx), gw, gb};
  const cpu::NormGradients gradients{g.x.data_ptr(),      c.x.data_ptr(),     pointer_or_null(w),
                                     mean.data_ptr(),     rstd.data_ptr(),    pointer_or_null(gx),
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
    n = normalized_twin(x, dims, eps);
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
  t.op(native_layer_norm,
       "native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> "
       "(Tensor, Tensor, Tensor)",
       native_layer_norm_kernel)
      .function_only()
      .doc("Layer normalisation; also returns the mean and 1 / deviation of each row.")
      .derivative([](Grad g, In<0> x, Attr<1, IntList> shape, In<2> w, Attr<4, double> eps, Out<1> mean,
                     Out<2> rstd, Needs need) {
        return row_gradients(g, x, shape, w, mean, rstd, eps, wanted_gradients(need, 2, 3), false);
      });
  t.op(fused_rms_norm,
       "_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> (Tensor, "
       "Tensor)",
       fused_rms_norm_kernel)
      .doc("rms_norm, and the reciprocal root mean square of each row.")
      .function_only()
      .derivative([](Grad g, In<0> x, Attr<1, IntList> shape, In<2> w, Attr<3, std::optional<double>> eps,
                     Out<1> rstd, Needs need) {
        return row_gradients(g, x, shape, w, Tensor(), rstd, epsilon_of(x, eps),
                             wanted_gradients(need, 2, -1), true);
      });
  t.op(native_batch_norm,
       "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
       "running_var, bool training, "
       "float momentum, float eps) -> (Tensor, Tensor, Tensor)",
       native_batch_norm_kernel)
      .function_only()
      .out()
      .doc("Batch normalisation; updates the running statistics in training and returns the statistics used.")
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
  const char* twin = "the rule uses Note [Twins of the normalisations] when gradients are recorded";
  t.op(batch_norm_gradients,
       "_batch_norm_gradients(Tensor grad, Tensor input, Tensor? weight, Tensor mean, Tensor rstd, bool "
       "training, int wanted) -> (Tensor, "
       "Tensor, Tensor)",
       batch_norm_gradients_kernel)
      .doc(
          "Gradients of batch_norm with respect to input, weight and bias; `wanted` is a mask of those asked "
          "for.")
      .internal()
      .not_differentiable(twin);
  t.op(row_norm_gradients,
       "_row_norm_gradients(Tensor grad, Tensor input, Tensor? weight, Tensor? mean, Tensor rstd, int size, "
       "int wanted) -> (Tensor, Tensor, "
       "Tensor)",
       row_norm_gradients_kernel)
      .doc("Gradients of layer_norm or rms_norm over rows of `size`; `wanted` is a mask of those asked for.")
      .internal()
      .not_differentiable(twin);
  t.composite(layer_norm,
              "nn::layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, "
              "float eps=1e-05) -> Tensor",
              layer_norm_body)
      .doc(
          "Each row of the last len(normalized_shape) dimensions shifted and scaled to mean 0 and variance "
          "1, then weight and bias.");
  t.composite(
       "layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float "
       "eps=1e-05, "
       "bool cudnn_enable=True) -> Tensor",
       torch_layer_norm_body)
      .doc(
          "As nn.functional.layer_norm: mean 0 and variance 1 over the last dimensions, then weight and "
          "bias.")
      .function_only();
  t.composite(
       rms_norm,
       "nn::rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor",
       rms_norm_body)
      .doc("Each row divided by its root mean square, times weight.");
  t.composite(
       "rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor",
       rms_norm_body)
      .doc(
          "As nn.functional.rms_norm: divides by the root mean square over the last dimensions, then "
          "multiplies by weight.")
      .function_only();
  t.composite(batch_norm,
              "nn::batch_norm(Tensor input, Tensor? running_mean, Tensor? running_var, Tensor? weight=None, "
              "Tensor? bias=None, "
              "bool training=False, float momentum=0.1, float eps=1e-05) -> Tensor",
              batch_norm_body)
      .doc(
          "Each channel shifted and scaled to mean 0 and variance 1 over the batch, or by the running "
          "statistics.");
  t.composite(
       "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
       "bool training, "
       "float momentum, float eps, bool cudnn_enabled) -> Tensor",
       torch_batch_norm_body)
      .doc("As nn.functional.batch_norm, with weight and bias before the running statistics.")
      .function_only();
  register_group_norm_operators(t);
}

}  // namespace rushlight
