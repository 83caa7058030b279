// Dropout in all its forms, and the randomised ReLU: the input times noise that is drawn here.
#include <cmath>

#include "ops/activation.h"
#include "ops/copy.h"
#include "ops/device_positions.h"
#include "ops/factory.h"
#include "ops/operators.h"
#include "ops/pointwise.h"
#include "ops/random.h"
#include "ops/random_common.h"
#include "ops/register.h"

namespace rushlight {
namespace ops {
inline Fn<Tensor(const Tensor& self, double keep)> dropout_mask;
inline Fn<std::tuple<Tensor, Tensor>(const Tensor& self, double keep)> dropout_and_mask;
}  // namespace ops

namespace {

using namespace ops;

void check_scalable(const Tensor& self) {
  RL_CHECK(is_differentiable(self.dtype()), "result type Float can't be cast to the desired output type ",
           legacy_name(self.dtype()));
}

Tensor dropout_noise_kernel(const Call&, const Tensor& self, IntList size, double keep, bool scaled) {
  check_scalable(self);
  const bool same = self.sizes() == size;
  const Tensor noise =
      same ? empty_like_tensor(self, self.dtype()) : empty_tensor(size, self.dtype(), self.device());
  if (draw_on_device(DeviceKernels::Random::Bernoulli, noise, keep, 0, 0, nullptr)) {
    if (scaled) mul.inplace(noise, wrapped_number(Scalar(1 / keep)));
    return noise;
  }
  write_random(noise, [&](cpu::RandomOut out) {
    cpu::fill_bernoulli(out, keep, default_generator());
    if (!scaled) return;
    visit_dtype(FloatTypes{}, out.dtype, "dropout", [&](auto tag) {
      using T = decltype(tag);
      using C = compute_type<T>;
      const T value = T(C(1) / static_cast<C>(keep)), zero = T(C(0));
      T* data = static_cast<T*>(out.data);
      for (int64_t i = 0; i < out.n; ++i) data[i] = static_cast<C>(data[i]) != 0 ? value : zero;
    });
  });
  return noise;
}

// How many elements PyTorch's fused kernel reads at once: as many as have 16 bytes, the address allows and
// the size is a multiple of.
int64_t read_at_once(const Tensor& t) {
  if (!is_dense_from_data(t)) return 1;
  const auto address = reinterpret_cast<uintptr_t>(t.data_ptr());
  int64_t most = std::min<int64_t>(8, 16 / static_cast<int64_t>(t.itemsize()));
  while (most > 1 && (address % (static_cast<size_t>(most) * t.itemsize()) || t.numel() % most)) most /= 2;
  return most;
}

Tensor dropout_mask_kernel(const Call&, const Tensor& self, double keep) {
  const Tensor mask = empty_like_tensor(self, self.dtype());
  if (self.is_cpu())
    write_random(mask, [&](cpu::RandomOut out) { cpu::fill_bernoulli(out, keep, default_generator()); });
  else if (self.device().is_cuda())
    draw_on_device(DeviceKernels::Random::Bernoulli, mask, keep, static_cast<double>(read_at_once(self)), 0,
                   nullptr);
  return mask;
}

// The input with its mask's zeros, divided by `keep`, and the mask in bool; on CUDA in one kernel.
std::tuple<Tensor, Tensor> dropout_and_mask_kernel(const Call&, const Tensor& self, double keep) {
  if (!self.device().is_cuda() || self.numel() == 0) {
    const Tensor mask = dropout_mask(self, keep);
    return {mul(self, mask) * Scalar(1 / keep), to_dtype(mask, DType::Bool)};
  }
  Tensor input = self;
  if (!is_dense_from_data(self)) {
    input = empty_like_tensor(self, self.dtype());
    loops::copy(input, self);
  }
  const Tensor out = empty_like_tensor(input, self.dtype()), mask = empty_like_tensor(input, DType::Bool);
  loops::moves_on(self).dropout(out, mask, input, keep, read_at_once(input),
                                device_generator(self.device().index()));
  return {out, mask};
}

Dims noise_sizes(const Tensor& self, bool feature) {
  if (!feature) return self.sizes().dims();
  RL_CHECK(self.dim() >= 2, "Feature dropout requires at least 2 dimensions in the input");
  Dims sizes(static_cast<size_t>(self.dim()), 1);
  sizes[0] = self.size(0);
  sizes[1] = self.size(1);
  return sizes;
}

Tensor times(const Tensor& self, const Tensor& noise, bool inplace) {
  return inplace ? mul.inplace(self, noise) : mul(self, noise);
}

template <bool feature, bool alpha, bool inplace>
Tensor dropout_body(const Call&, const Tensor& self, double p, bool train) {
  RL_CHECK(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
  if (p == 0 || !train || self.numel() == 0) return self;
  if (p == 1) return times(self, zeros({}, self.dtype(), std::nullopt, self.device()), inplace);
  if constexpr (!feature && !alpha && !inplace)
    if (self.device().is_cuda() && is_floating(self.dtype()) && !dispatch_state.level)
      return std::get<0>(dropout_and_mask(self, 1 - p));
  // Channels' noise is dense in order, that of elements lies as they do.
  const Dims sizes = noise_sizes(self, feature);
  const bool reordered = feature && self.sizes() == IntList(sizes) && !self.is_contiguous();
  const Tensor noise = dropout_noise(reordered ? empty_tensor(sizes, self.dtype(), self.device()) : self,
                                     sizes, 1 - p, !alpha);
  if (!alpha) return times(self, noise, inplace);
  // Dropped values become -alpha of SELU; a and b keep mean and variance.
  constexpr double kAlpha = 1.7580993408473766;
  const double a = 1 / std::sqrt((kAlpha * kAlpha * p + 1) * (1 - p));
  const Tensor shift = (noise + Scalar(-1)) * Scalar(kAlpha * a) + Scalar(kAlpha * a * p);
  const Tensor product = times(self, noise * Scalar(a), inplace);
  return inplace ? add.inplace(product, shift) : add(product, shift);
}

std::tuple<Tensor, Tensor> native_dropout_body(const Call&, const Tensor& self, double p,
                                               std::optional<bool> train) {
  if (!train.value_or(true))
    return {clone(self), ones(self.sizes(), DType::Bool, std::nullopt, self.device())};
  check_scalable(self);
  const double keep = 1 - p;
  const Tensor mask = empty_like(self, DType::Bool);
  bernoulli_(mask, keep, nullptr);
  return {mul(self, mask) * Scalar(keep == 0 ? 0 : 1 / keep), mask};
}

Tensor rrelu_slopes_kernel(const Call&, const Tensor& self, double lower, double upper,
                           OptGenerator generator) {
  const Tensor input = contiguous(self), slopes = empty_tensor(self.sizes(), self.dtype(), self.device());
  write_random(slopes, [&](cpu::RandomOut out) {
    cpu::draw_rrelu_slopes(out, input.data_ptr(), lower, upper, generator_or_default(generator));
  });
  return slopes;
}

template <bool inplace>
Tensor rrelu_body(const Call&, const Tensor& self, const Scalar& lower, const Scalar& upper, bool training,
                  OptGenerator generator) {
  const double low = lower.to_double(), high = upper.to_double();
  RL_CHECK(low <= high, "Lower bound should be less than or equal to the upper bound");
  const Tensor x = inplace ? self : contiguous(self);  // the result is in order, as in PyTorch
  if (training) return times(x, rrelu_slopes(x, low, high, generator), inplace);
  const Scalar slope((low + high) / 2);
  return inplace ? leaky_relu.inplace(x, slope) : leaky_relu(x, slope);
}

// Unlike other names with an underscore these are functions, and no methods.
void function_in_place(OpBuilder record) {
  record.op().is_function = true;
  record.op().is_method = false;
}

}  // namespace

void register_dropout_operators(Table& t) {
  t.op(rrelu_slopes,
       "_rrelu_slopes(Tensor self, float lower, float upper, Generator? generator=None) -> Tensor",
       rrelu_slopes_kernel)
      .absent_in_pytorch()
      .doc("A slope from [lower, upper] for each negative element, 1 for the others.")
      .family(Family::Random)
      .internal()
      .batching(Batching::RandomLike)
      .not_differentiable("depends on the signs only");
  t.composite(rrelu,
              "rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, "
              "Generator? generator=None) -> Tensor",
              rrelu_body<false>)
      .doc("ReLU whose slope below zero is drawn for each element while training.")
      .function_only()
      .one_node()
      .node("RreluWithNoiseBackward0")
      .elementwise();
  function_in_place(
      t.composite(rrelu_,
                  "rrelu_(Tensor(a!) self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool "
                  "training=False, Generator? generator=None) -> Tensor(a!)",
                  rrelu_body<true>)
          .doc("As rrelu, written into self."));
  t.op(dropout_noise, "_dropout_noise(Tensor self, int[] size, float keep, bool scaled) -> Tensor",
       dropout_noise_kernel)
      .absent_in_pytorch()
      .doc("Ones with probability keep and zeros otherwise, divided by keep if scaled.")
      .family(Family::Random)
      .internal()
      .on_devices()
      .batching(Batching::RandomLike)
      .not_differentiable("only the shape is used");
  t.op(dropout_mask, "_dropout_mask(Tensor self, float keep) -> Tensor", dropout_mask_kernel)
      .absent_in_pytorch()
      .doc("Ones with probability keep and zeros otherwise; on CUDA those of PyTorch's fused kernel.")
      .family(Family::Random)
      .internal()
      .on_devices()
      .not_differentiable("only the shape is used");
  t.op(dropout_and_mask, "_dropout_and_mask(Tensor self, float keep) -> (Tensor, Tensor)",
       dropout_and_mask_kernel)
      .absent_in_pytorch()
      .doc("Dropout as one kernel, and the mask of what was kept.")
      .family(Family::Random)
      .internal()
      .on_devices()
      .node("NativeDropoutBackward0")
      .derivative([](Grad g, Attr<1, double> keep, Out<1> mask) { return mul(g, mask) * Scalar(1 / *keep); });
  t.composite(dropout, "dropout(Tensor input, float p, bool train) -> Tensor",
              dropout_body<false, false, false>)
      .doc("Zeroes elements with probability p and scales the others by 1 / (1 - p).")
      .function_only();
  function_in_place(t.composite(dropout_, "dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)",
                                dropout_body<false, false, true>)
                        .doc("As dropout, written into self."));
  t.composite(feature_dropout, "feature_dropout(Tensor input, float p, bool train) -> Tensor",
              dropout_body<true, false, false>)
      .doc("Dropout of whole channels.")
      .function_only();
  function_in_place(t.composite(feature_dropout_,
                                "feature_dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)",
                                dropout_body<true, false, true>)
                        .doc("As feature_dropout, written into self."));
  t.composite(alpha_dropout, "alpha_dropout(Tensor input, float p, bool train) -> Tensor",
              dropout_body<false, true, false>)
      .doc("Dropout that keeps mean and variance of SELU networks.")
      .function_only();
  function_in_place(t.composite(alpha_dropout_,
                                "alpha_dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)",
                                dropout_body<false, true, true>)
                        .doc("As alpha_dropout, written into self."));
  t.composite(feature_alpha_dropout, "feature_alpha_dropout(Tensor input, float p, bool train) -> Tensor",
              dropout_body<true, true, false>)
      .doc("alpha_dropout of whole channels.")
      .function_only();
  function_in_place(t.composite(feature_alpha_dropout_,
                                "feature_alpha_dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)",
                                dropout_body<true, true, true>)
                        .doc("As feature_alpha_dropout, written into self."));
  t.composite(native_dropout, "native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)",
              native_dropout_body)
      .doc("Dropout, and the mask of the elements that were kept.")
      .function_only();
}

}  // namespace rushlight
