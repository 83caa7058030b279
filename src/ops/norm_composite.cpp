// Normalisations made of others: by example and channel, by neighbouring channels, and the parts of batch
// norm that synchronised layers put together.
#include <limits>

#include "core/device_math.h"
#include "cpu/norm.h"
#include "dispatch/table.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/norm.h"
#include "ops/norm_common.h"
#include "ops/operators.h"
#include "ops/pad.h"
#include "ops/pointwise.h"
#include "ops/pool.h"
#include "ops/reduction.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

using TwoTensors = std::tuple<Tensor, Tensor>;

// --- every channel of every example

Tensor for_each_example(const Tensor& t, int64_t n) { return t.defined() ? repeat(t, IntList{n}) : t; }

// The mean over the examples of what batch norm made of the running statistics.
void update_running(const Tensor& running, const Tensor& each, int64_t n) {
  if (!running.defined()) return;
  const GradMode off(false);
  copy_(running, mean_dim(reshape(each, IntList{n, -1}), OptIntList(IntList{0}), false, std::nullopt), false);
}

Tensor instance_norm_body(const Call&, const Tensor& input, const Tensor& weight, const Tensor& bias,
                          const Tensor& running_mean, const Tensor& running_var, bool use_input_stats,
                          double momentum, double eps, bool) {
  RL_CHECK(use_input_stats || (running_mean.defined() && running_var.defined()),
           "Expected running_mean and running_var to be defined when use_input_stats is false");
  RL_CHECK(input.dim() >= 2, "instance_norm: Expected at least 2 dimensions for input tensor, but received ",
           describe(input));
  if (running_mean.defined() && running_var.defined())
    RL_CHECK(running_var.dtype() == running_mean.dtype() || running_var.dtype() == input.dtype(),
             "expected scalar type ", legacy_name(running_mean.dtype()), " but found ",
             legacy_name(running_var.dtype()),
             ": instance_norm got a running_var of another dtype than running_mean");
  const int64_t n = input.size(0), c = input.size(1);
  Dims sizes = input.sizes().dims();
  sizes[0] = 1, sizes[1] = n * c;
  // Statistics are copied anyway: in the type that the parameters have.
  const Tensor& first = weight.defined() ? weight : bias;
  const DType type = first.defined() ? first.dtype() : compute_dtype(input.dtype());
  const auto statistics = [&](const Tensor& t) {
    return t.defined() ? to_dtype(for_each_example(t, n), type) : t;
  };
  const Tensor mean = statistics(running_mean), var = statistics(running_var);
  const Tensor out =
      torch_batch_norm(view(contiguous(input), sizes), for_each_example(weight, n), for_each_example(bias, n),
                       mean, var, use_input_stats, momentum, eps, true);
  if (use_input_stats) update_running(running_mean, mean, n), update_running(running_var, var, n);
  return view(out, input.sizes());
}

Tensor nn_instance_norm_body(const Call&, const Tensor& input, const Tensor& running_mean,
                             const Tensor& running_var, const Tensor& weight, const Tensor& bias,
                             bool use_input_stats, double momentum, double eps) {
  if (use_input_stats)
    RL_CHECK_VALUE(input.dim() > 2 && checked_numel(input.sizes().slice(2)) != 1,
                   "Expected more than 1 spatial element when training, got input size torch.Size(",
                   input.sizes(), ")");
  return instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, true);
}

// --- neighbouring channels

Tensor local_response_norm_body(const Call&, const Tensor& input, int64_t size, double alpha, double beta,
                                double k) {
  RL_CHECK_VALUE(input.dim() >= 3, "Expected 3D or higher dimensionality input (got ", input.dim(),
                 " dimensions)");
  if (input.numel() == 0) return input;
  const Tensor squares = unsqueeze(flatten(input * input, 2, -1), 1);
  const Tensor padded = constant_pad_nd(squares, IntList{0, 0, size / 2, (size - 1) / 2}, Scalar(0));
  // Pictures go by the pool of volumes, which autocast computes in float32, as it does not that of lines.
  const Tensor mean =
      input.dim() == 3 ? avg_pool2d(padded, IntList{size, 1}, OptIntList(IntList{1, 1}), IntList{0, 0}, false,
                                    true, std::nullopt)
                       : avg_pool3d(unsqueeze(padded, -1), IntList{size, 1, 1}, OptIntList(IntList{1, 1, 1}),
                                    IntList{0, 0, 0}, false, true, std::nullopt);
  return input / rushlight::pow(view(mean, input.sizes()) * Scalar(alpha) + Scalar(k), Scalar(beta));
}

// --- parts of batch norm

Dims all_but_channels(const Tensor& t) {
  Dims dims{0};
  for (int64_t d = 2; d < t.dim(); ++d) dims.push_back(d);
  return dims;
}
Tensor by_channel(const Tensor& t, const Tensor& like) {
  Dims sizes(static_cast<size_t>(like.dim()), 1);
  sizes[1] = -1;
  return view(t, sizes);
}
// Of halves, in one kernel that widens them as it reads, unless somebody takes note of the steps.
bool has_plain_channels(const Tensor& t) {
  return !observed({&t}) && !dispatch_state.level && t.is_cpu() && t.has_data() &&
         is_reduced_float(t.dtype()) && t.is_contiguous() && t.numel() > 0;
}
TwoTensors variance_and_mean(const Tensor& input) {
  if (has_plain_channels(input)) {
    const int64_t channels = input.size(1), inner = input.numel() / (input.size(0) * channels);
    const Tensor mean = empty_tensor(IntList{channels}, DType::Float32),
                 variance = empty_tensor(IntList{channels}, DType::Float32);
    cpu::norm_kernels(input.dtype(), "batch_norm")
        .channel_statistics({input.size(0), channels, inner}, input.data_ptr(), mean.data_ptr(),
                            variance.data_ptr());
    return {to_dtype(variance, input.dtype()), to_dtype(mean, input.dtype())};
  }
  return var_mean_correction(input, OptIntList(IntList(all_but_channels(input))), OptScalar(Scalar(0)),
                             false);
}

TwoTensors batch_norm_stats_body(const Call&, const Tensor& input, double eps) {
  const auto [variance, mean] = variance_and_mean(input);
  return {mean, rsqrt(variance + Scalar(eps))};
}

Tensor batch_norm_elemt_body(const Call&, const Tensor& input, const Tensor& weight, const Tensor& bias,
                             const Tensor& mean, const Tensor& invstd, double) {
  Tensor result = (input - by_channel(mean, input)) * by_channel(invstd, input);
  if (weight.defined()) result = result * by_channel(weight, input);
  return bias.defined() ? result + by_channel(bias, input) : result;
}

TwoTensors batch_norm_update_stats_body(const Call& call, const Tensor& input, const Tensor& running_mean,
                                        const Tensor& running_var, double momentum) {
  RL_CHECK(input.dim() >= 2 && input.numel() > 0, call.op.name(),
           ": input tensor must have at least one element, but got input_sizes = ", input.sizes());
  check_channels("running_mean", running_mean, input.size(1));
  check_channels("running_var", running_var, input.size(1));
  const auto [variance, mean] = variance_and_mean(input);
  const GradMode off(false);
  const auto approach = [&](const Tensor& running, const Tensor& value) {
    if (running.defined())
      copy_(running, running + (to_dtype(value, running.dtype()) - running) * Scalar(momentum), false);
  };
  const double count = static_cast<double>(input.numel() / input.size(1));
  approach(running_mean, mean);
  approach(running_var,
           variance * Scalar(count > 1 ? count / (count - 1) : std::numeric_limits<double>::quiet_NaN()));
  return {mean, variance};
}

// --- of slices of weights

Tensor norm_except_dim_body(const Call&, const Tensor& v, int64_t pow, int64_t dim) {
  if (dim == -1) return vector_norm(v, Scalar(pow), std::nullopt, false, std::nullopt);
  Dims others;
  for (int64_t d = 0; d < v.dim(); ++d)
    if (d != wrap_dim(dim, v.dim())) others.push_back(d);
  if (others.empty()) return abs(v);
  return vector_norm(v, Scalar(pow), OptIntList(IntList(others)), true, std::nullopt);
}

}  // namespace

void register_composite_norm_operators(Table& t) {
  t.composite(instance_norm,
              "instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
              "running_var, bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor",
              instance_norm_body)
      .writes_unmarked(1 << 3 | 1 << 4, 5)
      .function_only()
      .doc("Batch normalisation with every example's channel as a channel of its own.");
  t.composite(
       "nn::instance_norm(Tensor input, Tensor? running_mean=None, Tensor? running_var=None, Tensor? "
       "weight=None, Tensor? bias=None, bool use_input_stats=True, float momentum=0.1, float eps=1e-05) -> "
       "Tensor",
       nn_instance_norm_body)
      .writes_unmarked(1 << 1 | 1 << 2, 5)
      .doc("Batch normalisation with every example's channel as a channel of its own.");
  t.composite(
       "nn::local_response_norm(Tensor input, int size, float alpha=0.0001, float beta=0.75, float k=1.0) -> "
       "Tensor",
       local_response_norm_body)
      .doc("Each element divided by a power of the mean square of its neighbours in the channel dimension.");
  t.composite("batch_norm_stats(Tensor input, float eps) -> (Tensor, Tensor)", batch_norm_stats_body)
      .function_only()
      .doc("Mean and 1 / sqrt(variance + eps) of every channel.");
  t.composite(
       "batch_norm_elemt(Tensor input, Tensor? weight, Tensor? bias, Tensor mean, Tensor invstd, float eps) "
       "-> Tensor",
       batch_norm_elemt_body)
      .function_only()
      .out()
      .doc("Normalises with statistics that are given.");
  t.composite(
       "batch_norm_update_stats(Tensor input, Tensor? running_mean, Tensor? running_var, float momentum) -> "
       "(Tensor, Tensor)",
       batch_norm_update_stats_body)
      .writes_unmarked(1 << 1 | 1 << 2)
      .function_only()
      .doc("Mean and variance of every channel; the running ones move towards them by `momentum`.");
  t.composite(norm_except_dim, "norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor",
              norm_except_dim_body)
      .function_only()
      .doc("Norms of the slices along `dim`, kept as dimensions of size 1; of everything for -1.");
}

}  // namespace rushlight
