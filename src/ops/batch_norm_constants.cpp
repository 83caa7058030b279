// Batch normalisation by running statistics as a scale and a shift of each channel.
#include <cmath>

#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/norm_common.h"

namespace rushlight {
namespace ops {
inline Fn<std::tuple<Tensor, Tensor>(const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                                     const Tensor& running_var, double eps)>
    batch_norm_constants;
}

void check_channels(const char* what, const Tensor& t, int64_t channels) {
  if (t.defined())
    RL_CHECK(t.dim() == 1 && t.numel() == channels, what, " should contain ", channels, " elements not ",
             t.numel());
}

ChannelConstants channel_constants(const Tensor& weight, const Tensor& bias, const Tensor& mean,
                                   const Tensor& rstd, double eps) {
  ChannelConstants c{empty_tensor(mean.sizes(), mean.dtype()), empty_tensor(mean.sizes(), mean.dtype())};
  for (int64_t i = 0; i < mean.numel(); ++i) {
    const double inverse = 1 / std::sqrt(value_at(rstd, i) + eps),
                 s = (weight.defined() ? value_at(weight, i) : 1) * inverse;
    store_at(rstd, i, inverse);
    store_at(c.scale, i, s);
    store_at(c.shift, i, (bias.defined() ? value_at(bias, i) : 0) - value_at(mean, i) * s);
  }
  return c;
}

namespace {

std::tuple<Tensor, Tensor> batch_norm_constants_kernel(const Call& call, const Tensor& weight,
                                                       const Tensor& bias, const Tensor& running_mean,
                                                       const Tensor& running_var, double eps) {
  const int64_t channels = running_mean.numel();
  for (const Tensor* t : {&weight, &bias, &running_mean, &running_var}) {
    check_channels(call.op.name().data(), *t, channels);
    RL_CHECK(!t->defined() || (t->is_cpu() && is_floating(t->dtype())), call.op.name(),
             "(): expected floating-point tensors on the CPU, but got ", describe(*t));
  }
  const Tensor mean = empty_tensor(IntList{channels}, DType::Float32),
               rstd = empty_tensor(IntList{channels}, DType::Float32);
  copy_result(mean, running_mean, false);
  copy_result(rstd, running_var, false);
  const ChannelConstants c = channel_constants(norm_parameter(weight, DType::Float32),
                                               norm_parameter(bias, DType::Float32), mean, rstd, eps);
  return {c.scale, c.shift};
}

}  // namespace

void register_batch_norm_constants(Table& t) {
  t.op(ops::batch_norm_constants,
       "_batch_norm_constants(Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, float "
       "eps) -> (Tensor, Tensor)",
       batch_norm_constants_kernel)
      .absent_in_pytorch()
      .doc("Factors and terms of the channels, in float32, that an evaluation of batch_norm comes to.")
      .internal()
      .no_meta("it stands in graphs that were captured already")
      .family(Family::Normalization)
      .not_differentiable("it stands in graphs that record no gradients");
}

}  // namespace rushlight
