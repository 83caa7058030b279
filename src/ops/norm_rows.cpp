// Normalisation over rows: layer norm and root-mean-square norm.
#include <limits>

#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/norm.h"
#include "ops/norm_common.h"
#include "ops/operators.h"
#include "ops/reduction.h"
#include "ops/view.h"

namespace rushlight {

using namespace ops;

namespace {

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
  const Tensor dense = as_contiguous(x), w = norm_parameter(weight, compute),
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

bool on_one_device(const Tensor& input, const Tensor& parameter) {
  return !parameter.defined() || parameter.device() == input.device();
}

Tensor layer_norm_body(const Call&, const Tensor& input, IntList shape, const Tensor& weight,
                       const Tensor& bias, double eps) {
  const bool elsewhere =
      !input.is_cpu() && device_layers(input) && on_one_device(input, weight) && on_one_device(input, bias);
  if (observed({&input, &weight, &bias}, elsewhere ? uint32_t{kNotCpu} : 0))
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
  const int64_t rows = n > 0 ? input.numel() / n : 0;
  const auto holds = [](const Tensor& t, int64_t numel) { return !t.defined() || t.numel() == numel; };
  const bool all_read =
      n == 0 || (holds(mean, rows) && holds(rstd, rows));  // rows of nothing have statistics
  RL_CHECK(n >= 0 && rows * n == input.numel() && grad.sizes() == input.sizes() &&
               grad.dtype() == input.dtype() && holds(weight, n) && all_read,
           "layer_norm_backward: a gradient ", describe(grad), " or statistics ", describe(rstd),
           " do not fit rows of ", n, " elements of ", describe(input));
  const DType compute = compute_dtype(input.dtype());
  const Tensor g = as_contiguous(grad), x = as_contiguous(input), w = norm_parameter(weight, compute),
               center = norm_parameter(mean, compute), scale = norm_parameter(rstd, compute);
  Tensor gx, gw, gb;
  if (wanted & 1) gx = empty_tensor(input.sizes(), input.dtype(), input.device());
  if (wanted & 2) gw = empty_tensor(IntList{n}, compute, input.device());
  if (wanted & 4) gb = empty_tensor(IntList{n}, compute, input.device());
  const DeviceLayers* layers = device_layers(input);
  if (!input.is_cpu() && !layers) return {gx, gw, gb};
  const cpu::NormGradients gradients{
      g.data_ptr(),     x.data_ptr(),        pointer_or_null(w),  pointer_or_null(center),
      scale.data_ptr(), pointer_or_null(gx), pointer_or_null(gw), pointer_or_null(gb)};
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
  const Normalized n = normalized_reference(x, dims, eps, !rms);
  Tensor gx, gw, gb;
  if (wanted & 1) gx = normalized_gradient(weight.defined() ? g * weight : g, n, dims, !rms);
  if (wanted & 2) gw = sum_leading(g * n.centred, shape);
  if (wanted & 4) gb = sum_leading(g, shape);
  return rms ? Grads{gx, gw} : Grads{gx, gw, gb};
}

}  // namespace

void register_row_norm_operators(Table& t) {
  t.op(native_layer_norm,
       "native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> "
       "(Tensor, Tensor, Tensor)",
       native_layer_norm_kernel)
      .function_only()
      .doc("Layer normalisation; also returns the mean and 1 / deviation of each row.")
      .family(Family::Normalization)
      .on_devices()
      .autocast(Cast::None, Cast::Float)
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
      .family(Family::Normalization)
      .on_devices()
      .derivative([](Grad g, In<0> x, Attr<1, IntList> shape, In<2> w, Attr<3, std::optional<double>> eps,
                     Out<1> rstd, Needs need) {
        return row_gradients(g, x, shape, w, Tensor(), rstd, epsilon_of(x, eps),
                             wanted_gradients(need, 2, -1), true);
      });
  const char* reference = "the rule uses Note [Reference normalisations] when gradients are recorded";
  t.op(row_norm_gradients,
       "_row_norm_gradients(Tensor grad, Tensor input, Tensor? weight, Tensor? mean, Tensor rstd, int size, "
       "int wanted) -> (Tensor, Tensor, Tensor)",
       row_norm_gradients_kernel)
      .absent_in_pytorch()
      .doc("Gradients of layer_norm or rms_norm over rows of `size`; `wanted` is a mask of those asked for.")
      .internal()
      .family(Family::Gradient)
      .on_devices()
      .not_differentiable(reference);
  t.composite(layer_norm,
              "nn::layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, "
              "float eps=1e-05) -> Tensor",
              layer_norm_body)
      .doc(
          "Each row of the last len(normalized_shape) dimensions shifted and scaled to mean 0 and variance "
          "1, then weight and bias.")
      .autocast(Cast::None, Cast::Float);
  t.composite(
       "layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float "
       "eps=1e-05, bool cudnn_enable=True) -> Tensor",
       torch_layer_norm_body)
      .doc(
          "As nn.functional.layer_norm: mean 0 and variance 1 over the last dimensions, then weight and "
          "bias.")
      .function_only()
      .autocast(Cast::None, Cast::Float);
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
}

}  // namespace rushlight
