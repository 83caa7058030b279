// Group normalisation.
#include <cstring>

#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/norm.h"
#include "ops/norm_common.h"
#include "ops/operators.h"
#include "ops/reduction.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

void check_groups(int64_t channels, int64_t groups, const Tensor& input, const Tensor& weight,
                  const Tensor& bias) {
  RL_CHECK(groups > 0, "Expected num groups to be greater than 0, got ", groups);
  RL_CHECK(channels % groups == 0,
           "Expected number of channels in input to be divisible by num_groups, but got input of shape ",
           input.sizes(), " and num_groups=", groups);
  RL_CHECK(!weight.defined() || (weight.dim() == 1 && weight.numel() == channels),
           "Expected weight to be a vector of size equal to the number of channels in input, but got weight "
           "of shape ",
           weight.sizes(), " and input of shape ", input.sizes());
  RL_CHECK(
      !bias.defined() || (bias.dim() == 1 && bias.numel() == channels),
      "Expected bias to be a vector of size equal to the number of channels in input, but got bias of shape ",
      bias.sizes(), " and input of shape ", input.sizes());
}

ThreeTensors native_group_norm_kernel(const Call&, const Tensor& input, const Tensor& weight,
                                      const Tensor& bias, int64_t n, int64_t channels, int64_t inner,
                                      int64_t groups, double eps) {
  check_groups(channels, groups, input, weight, bias);
  RL_CHECK(
      n >= 0 && channels >= 0 && inner >= 0 && checked_numel(IntList{n, channels, inner}) == input.numel(),
      "Expected HxW and N x C to match the input of shape ", input.sizes(), ", got N=", n, ", C=", channels,
      ", HxW=", inner);
  check_parameter_types("group_norm", input, {{"weight", weight}, {"bias", bias}});
  const DType compute = compute_dtype(input.dtype());
  Tensor y = empty_tensor(input.sizes(), input.dtype(), input.device());
  Tensor mean = empty_tensor(IntList{n, groups}, compute, input.device()),
         rstd = empty_tensor(IntList{n, groups}, compute, input.device());
  const auto& kernels = cpu::norm_kernels(input.dtype(), "GroupNormKernelImpl");
  const DType kept = statistics_dtype(input, {&weight, &bias});
  const DeviceLayers* layers = device_layers(y);
  if (!y.is_cpu() && !layers) return {y, to_dtype(mean, kept), to_dtype(rstd, kept)};
  if (input.numel() == 0) {
    clear(mean), clear(rstd);
    return {y, to_dtype(mean, kept), to_dtype(rstd, kept)};
  }
  const Tensor x = as_contiguous(input), w = norm_parameter(weight, compute),
               b = norm_parameter(bias, compute);
  const cpu::NormArguments arguments{x.data_ptr(), pointer_or_null(w), pointer_or_null(b),
                                     y.data_ptr(), mean.data_ptr(),    rstd.data_ptr(),
                                     eps};
  if (layers)
    layers->norm(y.device().index(), x.dtype(), {n, channels, inner}, groups, arguments, false);
  else
    kernels.groups({n, channels, inner}, groups, arguments);
  if (is_channels_last(input))
    y = contiguous(y, input.dim() == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d);
  return {y, to_dtype(mean, kept), to_dtype(rstd, kept)};
}

ThreeTensors group_norm_gradients_kernel(const Call&, const Tensor& grad, const Tensor& input,
                                         const Tensor& weight, const Tensor& mean, const Tensor& rstd,
                                         int64_t groups, int64_t wanted) {
  RL_CHECK(input.dim() >= 2 && grad.sizes() == input.sizes() && grad.dtype() == input.dtype(),
           "_group_norm_gradients: a gradient ", describe(grad), " does not fit an input ", describe(input));
  RL_CHECK(groups > 0 && input->sizes[1] % groups == 0 && mean.numel() == input->sizes[0] * groups &&
               rstd.numel() == mean.numel() && (!weight.defined() || weight.numel() == input->sizes[1]),
           "_group_norm_gradients: statistics or weights do not fit ", groups, " groups of ",
           describe(input));
  const DType compute = compute_dtype(input.dtype());
  const int64_t n = input->sizes[0], channels = input->sizes[1];
  const int64_t inner = n * channels > 0 ? input.numel() / (n * channels) : 0;
  const Tensor g = as_contiguous(grad), x = as_contiguous(input), w = norm_parameter(weight, compute),
               center = norm_parameter(mean, compute), scale = norm_parameter(rstd, compute);
  Tensor gx, gw, gb;
  if (wanted & 1) gx = empty_tensor(input.sizes(), input.dtype(), input.device());
  if (wanted & 2) gw = empty_tensor(IntList{channels}, compute, input.device());
  if (wanted & 4) gb = empty_tensor(IntList{channels}, compute, input.device());
  const DeviceLayers* layers = device_layers(input);
  if (!input.is_cpu() && !layers) return {gx, gw, gb};
  const cpu::NormGradients gradients{g.data_ptr(),        x.data_ptr(),       pointer_or_null(w),
                                     center.data_ptr(),   scale.data_ptr(),   pointer_or_null(gx),
                                     pointer_or_null(gw), pointer_or_null(gb)};
  if (layers)
    layers->norm_backward(input.device().index(), input.dtype(), {n, channels, inner}, groups, gradients,
                          false);
  else
    cpu::norm_kernels(input.dtype(), "group_norm_backward")
        .groups_backward({n, channels, inner}, groups, gradients);
  return {gx, gw, gb};
}

Grads group_gradients(const Tensor& g, const Tensor& x, const Tensor& weight, const Tensor& mean,
                      const Tensor& rstd, int64_t n, int64_t channels, int64_t inner, int64_t groups,
                      double eps, int64_t wanted) {
  const Dims flat{n, channels, inner}, grouped{n, groups, -1};
  if (!derivatives_wanted() && !dispatch_state.level) {
    if (is_reduced_float(mean.dtype())) {  // too coarse: once more
      const Tensor wide = new_ones(x, IntList{channels}, DType::Float32);
      const auto [y, m, r] = native_group_norm(x, wide, Tensor(), n, channels, inner, groups, eps);
      return group_gradients(g, x, weight, m, r, n, channels, inner, groups, eps, wanted);
    }
    auto [gx, gw, gb] =
        group_norm_gradients(reshape(g, flat), reshape(x, flat), weight, mean, rstd, groups, wanted);
    return {gx.defined() ? view(gx, x.sizes()) : gx, gw, gb};
  }
  if (x.numel() == 0) {
    const Tensor none = wanted & 2 ? weight * Scalar(0) : Tensor();
    const Tensor sums = wanted & 4 ? sum_dim(reshape(g, flat), IntList{0, 2}, false, std::nullopt) : Tensor();
    return {wanted & 1 ? x * Scalar(0) : Tensor(), none, sums};
  }
  const Dims dims{2};
  const Tensor grad = reshape(g, flat);
  const Normalized normal = normalized_reference(reshape(x, grouped), dims, eps);
  Tensor gx, gw, gb;
  if (wanted & 1) {
    const Tensor scaled = weight.defined() ? grad * view(weight, IntList{channels, 1}) : grad;
    gx = reshape(normalized_gradient(reshape(scaled, grouped), normal, dims), x.sizes());
  }
  if (wanted & 2) gw = sum_dim(grad * reshape(normal.centred, flat), IntList{0, 2}, false, std::nullopt);
  if (wanted & 4) gb = sum_dim(grad, IntList{0, 2}, false, std::nullopt);
  return {gx, gw, gb};
}

// What flows back from the mean and 1 / deviation that the operator also returns.
Tensor statistics_gradient(const Tensor& grad_mean, const Tensor& grad_rstd, const Tensor& x, int64_t n,
                           int64_t channels, int64_t inner, int64_t groups, double eps) {
  const int64_t size = channels / groups * inner;
  const Tensor grouped = reshape(to_dtype(x, compute_dtype(x.dtype())), IntList{n, groups, -1});
  const Normalized normal = normalized_reference(grouped, IntList{2}, eps);
  Tensor total = grouped * Scalar(0);
  if (grad_mean.defined()) total = total + unsqueeze(grad_mean, -1) / Scalar(size);
  if (grad_rstd.defined())
    total = total - unsqueeze(grad_rstd, -1) * normal.centred * normal.rstd * normal.rstd / Scalar(size);
  return to_dtype(reshape(total, x.sizes()), x.dtype());
}

Tensor group_norm_body(const Call&, const Tensor& input, int64_t groups, const Tensor& weight,
                       const Tensor& bias, double eps) {
  RL_CHECK(input.dim() >= 2, "Expected at least 2 dimensions for input tensor but received ", input.dim());
  const int64_t n = input->sizes[0], channels = input->sizes[1];
  check_groups(channels, groups, input, weight, bias);
  int64_t inner = 1;
  for (int64_t d = 2; d < input.dim(); ++d) inner *= input->sizes[d];
  RL_CHECK_VALUE(n * (channels / groups) * inner != 1,
                 "Expected more than 1 value per channel when training, got input size torch.Size(",
                 input.sizes(), ")");
  return std::get<0>(native_group_norm(input, weight, bias, n, channels, inner, groups, eps));
}
Tensor torch_group_norm_body(const Call&, const Tensor& input, int64_t groups, const Tensor& weight,
                             const Tensor& bias, double eps, bool) {
  RL_CHECK(input.dim() >= 2, "Expected at least 2 dimensions for input tensor but received ", input.dim());
  const int64_t n = input->sizes[0], channels = input->sizes[1];
  int64_t inner = 1;
  for (int64_t d = 2; d < input.dim(); ++d) inner *= input->sizes[d];
  return std::get<0>(native_group_norm(input, weight, bias, n, channels, inner, groups, eps));
}

}  // namespace

void register_group_norm_operators(Table& t) {
  t.op(native_group_norm,
       "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, int N, int C, int HxW, int group, "
       "float eps) -> (Tensor, Tensor, Tensor)",
       native_group_norm_kernel)
      .function_only()
      .doc("Group normalisation; also returns the mean and 1 / deviation of each group.")
      .family(Family::Normalization)
      .on_devices()
      .derivative([](Grad g, GradOf<1> gm, GradOf<2> gr, In<0> x, In<1> w, Attr<3, int64_t> n,
                     Attr<4, int64_t> c, Attr<5, int64_t> inner, Attr<6, int64_t> groups, Attr<7, double> eps,
                     Out<1> mean, Out<2> rstd, Needs need) {
        Grads grads{Tensor(), Tensor(), Tensor()};
        if (g.defined())
          grads =
              group_gradients(g, x, w, mean, rstd, n, c, inner, groups, eps, wanted_gradients(need, 1, 2));
        if (need[0] && (gm.defined() || gr.defined()) && x.numel() > 0) {
          const Tensor more = statistics_gradient(gm, gr, x, n, c, inner, groups, eps);
          grads[0] = grads[0].defined() ? grads[0] + more : more;
        }
        return grads;
      });
  t.op(group_norm_gradients,
       "_group_norm_gradients(Tensor grad, Tensor input, Tensor? weight, Tensor mean, Tensor rstd, int "
       "groups, int wanted) -> (Tensor, Tensor, Tensor)",
       group_norm_gradients_kernel)
      .absent_in_pytorch()
      .doc(
          "Gradients of group_norm with respect to input, weight and bias; `wanted` is a mask of those asked "
          "for.")
      .internal()
      .family(Family::Gradient)
      .on_devices()
      .not_differentiable("the rule uses Note [Reference normalisations] when gradients are recorded");
  t.composite(group_norm,
              "nn::group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float "
              "eps=1e-05) -> Tensor",
              group_norm_body)
      .doc(
          "Channels in num_groups groups, each shifted and scaled to mean 0 and variance 1 for every "
          "sample.")
      .autocast(Cast::None, Cast::Float);
  t.composite(
       "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, "
       "bool cudnn_enabled=True) -> Tensor",
       torch_group_norm_body)
      .doc(
          "As nn.functional.group_norm: mean 0 and variance 1 over groups of channels, then weight and bias.")
      .function_only()
      .autocast(Cast::None, Cast::Float);
}

}  // namespace rushlight
