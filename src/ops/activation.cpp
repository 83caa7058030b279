#include "ops/activation.h"

#include "cpu/pointwise.h"
#include "ops/epilogue.h"
#include "ops/factory.h"
#include "ops/operators.h"
#include "ops/pointwise_family.h"
#include "ops/register.h"
#include "ops/register_alias.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using cpu::Formula;
using Unary = Tensor (*)(const Call&, const Tensor&);

// Activations refuse integers where their formula has fractions; they don't promote.
template <Formula F, class... P>
Tensor activate(const Call& call, const Tensor& self, const P&... parameters) {
  static const PointwiseSpec* spec = pointwise::make_spec(F, Promote::Same);
  const Scalar list[sizeof...(P) + 1] = {parameters...};
  const auto type = static_cast<int>(self.dtype());
  const bool fractions = !spec->direct[type] && !is_integral(cpu::row(F).compute[type]);
  if (is_integral_or_bool(self.dtype()) && fractions)
    RL_NOT_IMPLEMENTED("\"", call.op.name(), "_cpu\" not implemented for '", legacy_name(self.dtype()), "'");
  return pointwise::unary_with(call, *spec, self, {list, sizeof...(P)});
}

template <Formula F, class... P>
Tensor activate_backward(const Call& call, const Tensor& grad, const Tensor& self, const P&... parameters) {
  static const PointwiseSpec* spec = pointwise::make_spec(F, Promote::Same);
  const Scalar list[sizeof...(P) + 1] = {parameters...};
  return pointwise::binary_with(call, *spec, grad, self, {list, sizeof...(P)});
}

// The same for those whose out= must have the operand's dtype.
template <Formula F, class... P>
Tensor activate_exactly(const Call& call, const Tensor& self, const P&... parameters) {
  pointwise::check_same_out(call, self);
  return activate<F>(call, self, parameters...);
}

Tensor relu_kernel(const Call& call, const Tensor& self) {
  RL_CHECK(!is_bool(self.dtype()), "Boolean inputs not supported for relu");
  if (is_complex(self.dtype())) RL_NOT_IMPLEMENTED("relu is not supported for complex inputs");
  if (const Tensor deferred = defer_clamp(call, self, 0, std::numeric_limits<double>::infinity());
      deferred.defined())
    return deferred;
  return activate<Formula::Relu>(call, self);
}

Tensor elu_kernel(const Call& call, const Tensor& self, const Scalar& alpha, const Scalar& scale,
                  const Scalar& input_scale) {
  return activate<Formula::Elu>(call, self, Scalar(alpha.to_double() * scale.to_double()), scale,
                                input_scale);
}
Tensor elu_backward_kernel(const Call& call, const Tensor& g, const Scalar& alpha, const Scalar& scale,
                           const Scalar& input_scale, const Tensor& self) {
  return activate_backward<Formula::EluBackward>(call, g, self, Scalar(alpha.to_double() * scale.to_double()),
                                                 scale, input_scale);
}

bool is_tanh(std::string_view approximate) {
  RL_CHECK(approximate == "none" || approximate == "tanh",
           "approximate argument must be either none or tanh.");
  return approximate == "tanh";
}
Tensor gelu_kernel(const Call& call, const Tensor& self, std::string_view approximate) {
  return is_tanh(approximate) ? activate_exactly<Formula::GeluTanh>(call, self)
                              : activate_exactly<Formula::GeluErf>(call, self);
}
Tensor gelu_backward_kernel(const Call& call, const Tensor& g, const Tensor& self,
                            std::string_view approximate) {
  return is_tanh(approximate) ? activate_backward<Formula::GeluTanhBackward>(call, g, self)
                              : activate_backward<Formula::GeluErfBackward>(call, g, self);
}

// A tensor without its repetitions: what expand made of a dimension of one is one again.
Tensor unexpanded(const Tensor& self) {
  Tensor once = self;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (self->strides[d] == 0 && self->sizes[d] > 1) once = ops::narrow(once, d, 0, 1);
  return once;
}

Tensor threshold_kernel(const Call& call, const Tensor& self, const Scalar& threshold, const Scalar& value) {
  threshold.check_fits(self.dtype()), value.check_fits(self.dtype());
  // Elements in one place of memory may be written together: PyTorch lets this operator alone do that.
  if (call.inplace && has_internal_overlap(self)) {
    ops::threshold.inplace(unexpanded(self), threshold, value);
    return self;
  }
  return activate<Formula::Threshold>(call, self, threshold, value);
}

Tensor hardtanh_kernel(const Call& call, const Tensor& self, const Scalar& low, const Scalar& high) {
  RL_CHECK(!is_bool(self.dtype()), "Bool inputs not supported for hardtanh");
  RL_CHECK_VALUE(low.to_double() <= high.to_double(), "min_val cannot be greater than max_val");
  RL_CHECK(is_signed(self.dtype()) || (low.to_int() >= 0 && high.to_int() >= 0),
           "cannot do hardtanh on an unsigned type with negative limits");
  if (const Tensor deferred = defer_clamp(call, self, low.to_double(), high.to_double()); deferred.defined())
    return deferred;
  return activate<Formula::Clamp>(call, self, low, high);
}
Tensor shrink_bound(const Call& call, const Tensor& self, const Scalar& lambd) {
  const double most = self.dtype() == DType::Float64   ? std::numeric_limits<double>::max()
                      : self.dtype() == DType::Float16 ? 65504.0
                                                       : std::numeric_limits<float>::max();
  RL_CHECK(lambd.to_double() >= 0, "lambda must be in range [0, ", most, "] for input dtype ",
           legacy_name(self.dtype()), ", but found ", lambd.to_double());
  return activate_exactly<Formula::Softshrink>(call, self, lambd);
}

Tensor prelu_kernel(const Call& call, const Tensor& self, const Tensor& weight) {
  RL_CHECK(self.dtype() == weight.dtype(), "prelu: Type promoting not supported. Got ",
           dtype_name(self.dtype()), " and ", dtype_name(weight.dtype()));
  return pointwise::compute(call, Formula::Prelu, self.dtype(), {&self, &weight});
}
// One weight for all, or one for each channel.
Tensor prelu_body(const Call&, const Tensor& self, const Tensor& weight) {
  RL_CHECK(weight.dim() <= 1,
           "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = ", weight.dim());
  if (weight.numel() == 1) return ops::prelu_kernel(self, ops::reshape(weight, IntList{}));
  RL_CHECK(self.dim() > 0, "Not allow zero-dim input tensor.");
  const int64_t channels = self.dim() > 1 ? self.size(1) : 1;
  RL_CHECK(channels == weight.numel(),
           "Mismatch of parameter numbers and input channel size. Found parameter numbers = ", weight.numel(),
           " and channel size = ", channels, ".");
  Dims shape(static_cast<size_t>(self.dim()), 1);
  if (self.dim() > 1) shape[1] = channels;
  return ops::prelu_kernel(self, ops::reshape(weight, shape));
}

Tensor selu_body(const Call&, const Tensor& self) {
  return ops::elu(self, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1.0);
}
Tensor celu_body(const Call&, const Tensor& self, const Scalar& alpha) {
  RL_CHECK(alpha.to_double() != 0, "ZeroDivisionError: alpha cannot be 0 for CELU");
  return ops::elu(self, alpha, 1.0, 1 / alpha.to_double());
}

// --- second derivatives, in public operators

// d/dx of slope(x), as the slope of a sum: g * s'(x) * grad, where the slope formula is smooth.
Grads slope_grads(const Tensor& g, const Tensor& grad, const Tensor& slope, const Tensor& curvature,
                  Needs need) {
  return Grads{need[0] ? g * slope : Tensor(), need[1] ? g * grad * curvature : Tensor()};
}

Grads silu_second(const Tensor& g, const Tensor& grad, const Tensor& x, Needs need) {
  const Tensor s = ops::sigmoid(x), one = Scalar(1) - s;
  return slope_grads(g, grad, s * (x * one + 1), s * one * (x * (one - s) + 2), need);
}
Grads mish_second(const Tensor& g, const Tensor& grad, const Tensor& x, Needs need) {
  const Tensor s = ops::sigmoid(x), t = ops::tanh(ops::softplus(x, 1, 20)), sech = Scalar(1) - t * t;
  const Tensor curvature = s * sech * (x * (Scalar(1) - s - t * s * 2) + 2);
  return slope_grads(g, grad, t + x * s * sech, curvature, need);
}
Grads gelu_second(const Tensor& g, const Tensor& grad, const Tensor& x, std::string_view approximate,
                  Needs need) {
  constexpr double kAlpha = 0.70710678118654752440, kBeta = 0.79788456080286535588, kKappa = 0.044715;
  if (!is_tanh(approximate)) {
    const Tensor density = ops::exp(x * x * -0.5) * (0.5 * kBeta);
    return slope_grads(g, grad, (ops::erf(x * kAlpha) + 1) * 0.5 + x * density, density * (Scalar(2) - x * x),
                       need);
  }
  const Tensor square = x * x, t = ops::tanh((x + square * x * kKappa) * kBeta), sech = Scalar(1) - t * t;
  const Tensor first = (square * (3 * kKappa) + 1) * kBeta, second = x * (6 * kKappa * kBeta);
  return slope_grads(g, grad, (t + 1) * 0.5 + x * sech * first * 0.5,
                     sech * first + x * sech * (second - t * first * first * 2) * 0.5, need);
}
Grads elu_second(const Tensor& g, const Tensor& grad, double alpha, double scale, double input_scale,
                 const Tensor& x) {
  const Tensor bend = ops::exp(x * input_scale) * (alpha * scale * input_scale * input_scale);
  return Grads{ops::elu_backward(g, alpha, scale, input_scale, x),
               rushlight::where(x < 0, g * grad * bend, 0)};
}

// --- records

OpBuilder pointwise_record(OpBuilder r, const char* doc) {
  return r.internal().family(Family::Pointwise).inplace().out().doc(doc);
}

void register_sigmoids(Table& t) {
  using namespace ops;
  add_unary(t, sigmoid, "sigmoid(Tensor self) -> Tensor", Formula::Sigmoid)
      .doc("1 / (1 + exp(-self)).")
      .derivative([](Grad g, Out<0> y) { return sigmoid_backward(g, y); });
  t.op(ops::sigmoid_backward, "sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor",
       activate_backward<Formula::SigmoidBackward>)
      .internal()
      .doc("Gradient of sigmoid.")
      .family(Family::Gradient)
      .on_devices()
      .batching(Batching::Pointwise)
      .derivative([](Grad g, In<0> grad, In<1> y) {
        // Linear in grad, and a function of y's conjugate.
        return Grads{g * ((Scalar(1) - y) * y), conj_of(g) * grad * conj_of(y * -2 + 1)};
      });
  t.op(ops::tanh_backward, "tanh_backward(Tensor grad_output, Tensor output) -> Tensor",
       activate_backward<Formula::TanhBackward>)
      .internal()
      .doc("Gradient of tanh.")
      .family(Family::Gradient)
      .on_devices()
      .batching(Batching::Pointwise)
      .derivative([](Grad g, In<0> grad, In<1> y) {
        return Grads{g * (Scalar(1) - y * y), conj_of(g) * grad * conj_of(y) * -2};
      });
  t.op(log_sigmoid, "log_sigmoid(Tensor self) -> Tensor", activate_exactly<Formula::LogSigmoid>)
      .internal()
      .family(Family::Pointwise)
      .out()
      .doc("log(sigmoid(self)).")
      .derivative([](Grad g, In<0> x) { return log_sigmoid_backward(g, x); });
  t.op(ops::log_sigmoid_backward, "log_sigmoid_backward(Tensor grad_output, Tensor self) -> Tensor",
       activate_backward<Formula::LogSigmoidBackward>)
      .absent_in_pytorch()
      .internal()
      .doc("Gradient of log_sigmoid.")
      .family(Family::Gradient)
      .on_devices()
      .batching(Batching::Pointwise)
      .derivative([](Grad g, In<0> grad, In<1> x, Needs need) {
        const Tensor s = sigmoid(x);
        return slope_grads(g, grad, Scalar(1) - s, -(s * (Scalar(1) - s)), need);
      });
  pointwise_record(t.op(silu, "silu(Tensor self) -> Tensor", activate<Formula::Silu>),
                   "self * sigmoid(self).")
      .derivative([](Grad g, In<0> x) { return silu_backward(g, x); });
  t.op(ops::silu_backward, "silu_backward(Tensor grad_output, Tensor self) -> Tensor",
       activate_backward<Formula::SiluBackward>)
      .internal()
      .doc("Gradient of silu.")
      .family(Family::Gradient)
      .on_devices()
      .batching(Batching::Pointwise)
      .derivative([](Grad g, In<0> grad, In<1> x, Needs need) { return silu_second(g, grad, x, need); });
  pointwise_record(t.op(mish, "mish(Tensor self) -> Tensor", activate<Formula::Mish>),
                   "self * tanh(softplus(self)).")
      .derivative([](Grad g, In<0> x) { return mish_backward(g, x); });
  t.op(ops::mish_backward, "mish_backward(Tensor grad_output, Tensor self) -> Tensor",
       activate_backward<Formula::MishBackward>)
      .internal()
      .doc("Gradient of mish.")
      .family(Family::Gradient)
      .on_devices()
      .batching(Batching::Pointwise)
      .derivative([](Grad g, In<0> grad, In<1> x, Needs need) { return mish_second(g, grad, x, need); });
  pointwise_record(t.op(gelu, "gelu(Tensor self, *, str approximate='none') -> Tensor", gelu_kernel),
                   "self times the normal distribution function of self.")
      .derivative([](Grad g, In<0> x, Attr<1, std::string_view> approximate) {
        return gelu_backward(g, x, *approximate);
      });
  t.op(ops::gelu_backward,
       "gelu_backward(Tensor grad_output, Tensor self, *, str approximate='none') -> Tensor",
       gelu_backward_kernel)
      .internal()
      .doc("Gradient of gelu.")
      .family(Family::Gradient)
      .on_devices()
      .batching(Batching::Pointwise)
      .derivative([](Grad g, In<0> grad, In<1> x, Attr<2, std::string_view> approximate, Needs need) {
        return gelu_second(g, grad, x, *approximate, need);
      });
  pointwise_record(t.op(softplus, "softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",
                        activate_exactly<Formula::Softplus>)
                       .autocast(Cast::None, Cast::Float),
                   "log(1 + exp(beta * self)) / beta; self above the threshold.")
      .derivative([](Grad g, In<0> x, Attr<1, Scalar> beta, Attr<2, Scalar> threshold) {
        return softplus_backward(g, x, *beta, *threshold);
      });
  t.op(ops::softplus_backward,
       "softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor",
       activate_backward<Formula::SoftplusBackward>)
      .internal()
      .doc("Gradient of softplus.")
      .family(Family::Gradient)
      .on_devices()
      .batching(Batching::Pointwise)
      .derivative([](Grad g, In<0> grad, In<1> x, Attr<2, Scalar> beta, Attr<3, Scalar> threshold) {
        const Tensor s = sigmoid(x * *beta), bend = s * (Scalar(1) - s) * *beta;
        return Grads{softplus_backward(g, x, *beta, *threshold),
                     rushlight::where(x * *beta > *threshold, 0, g * grad * bend)};
      });
}

// Piecewise linear: the second derivative of the input vanishes.
void register_linear_pieces(Table& t) {
  using namespace ops;
  t.op(relu, "relu(Tensor self) -> Tensor", relu_kernel)
      .limits()
      .family(Family::Pointwise)
      .inplace()
      .out()
      .doc("self where positive, else 0.")
      .derivative([](Grad g, Out<0> y) { return threshold_backward(g, y, 0); });
  t.op(threshold, "threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor", threshold_kernel)
      .function_only()
      .family(Family::Pointwise)
      .inplace()
      .out()
      .doc("self where above threshold, else value.")
      .derivative([](Grad g, In<0> x, Attr<1, Scalar> bound) { return threshold_backward(g, x, *bound); });
  t.op(ops::threshold_backward,
       "threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor",
       activate_backward<Formula::ThresholdBackward>)
      .internal()
      .doc("Gradient of relu and threshold.")
      .family(Family::Gradient)
      .on_devices()
      .batching(Batching::Pointwise)
      .derivative([](Grad g, In<1> x, Attr<2, Scalar> bound) {
        return Grads{threshold_backward(g, x, *bound), zeros_like(g)};
      });
  pointwise_record(t.op(leaky_relu, "leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor",
                        activate<Formula::LeakyRelu>),
                   "self where positive, else negative_slope * self.")
      .derivative([](Grad g, In<0> x, Attr<1, Scalar> slope) { return leaky_relu_backward(g, x, *slope); });
  t.op(ops::leaky_relu_backward,
       "leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope) -> Tensor",
       activate_backward<Formula::LeakyReluBackward>)
      .absent_in_pytorch()
      .internal()
      .doc("Gradient of leaky_relu.")
      .family(Family::Gradient)
      .on_devices()
      .batching(Batching::Pointwise)
      .derivative([](Grad g, In<1> x, Attr<2, Scalar> slope) {
        return Grads{leaky_relu_backward(g, x, *slope), zeros_like(g)};
      });
  pointwise_record(
      t.op(hardtanh, "hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor", hardtanh_kernel),
      "self limited to [min_val, max_val].")
      .limits()
      .derivative([](Grad g, In<0> x, Attr<1, Scalar> low, Attr<2, Scalar> high) {
        return hardtanh_backward(g, x, *low, *high);
      })
      .result_serves();  // it lies inside where x did
  t.op(ops::hardtanh_backward,
       "hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) -> Tensor",
       activate_backward<Formula::HardtanhBackward>)
      .internal()
      .doc("Gradient of hardtanh.")
      .family(Family::Gradient)
      .on_devices()
      .batching(Batching::Pointwise)
      .derivative([](Grad g, In<1> x, Attr<2, Scalar> low, Attr<3, Scalar> high) {
        return Grads{hardtanh_backward(g, x, *low, *high), zeros_like(g)};
      });
  pointwise_record(t.op(hardsigmoid, "hardsigmoid(Tensor self) -> Tensor", activate<Formula::Hardsigmoid>),
                   "(self + 3) / 6 limited to [0, 1].")
      .derivative([](Grad g, In<0> x) { return hardsigmoid_backward(g, x); });
  t.op(ops::hardsigmoid_backward, "hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor",
       activate_backward<Formula::HardsigmoidBackward>)
      .internal()
      .doc("Gradient of hardsigmoid.")
      .family(Family::Gradient)
      .on_devices()
      .batching(Batching::Pointwise)
      .derivative([](Grad g, In<1> x) { return Grads{hardsigmoid_backward(g, x), zeros_like(g)}; });
  pointwise_record(t.op(hardswish, "hardswish(Tensor self) -> Tensor", activate<Formula::Hardswish>),
                   "self * hardsigmoid(self).")
      .derivative([](Grad g, In<0> x) { return hardswish_backward(g, x); });
  t.op(ops::hardswish_backward, "hardswish_backward(Tensor grad_output, Tensor self) -> Tensor",
       activate_backward<Formula::HardswishBackward>)
      .internal()
      .doc("Gradient of hardswish.")
      .family(Family::Gradient)
      .on_devices()
      .batching(Batching::Pointwise)
      .derivative([](Grad g, In<0> grad, In<1> x) {
        const Tensor inside = logical_and(x > -3, x < 3);
        return Grads{hardswish_backward(g, x), rushlight::where(inside, g * grad / 3, 0)};
      });
}

void register_shrinks(Table& t) {
  using namespace ops;
  t.op(softshrink, "softshrink(Tensor self, Scalar lambd=0.5) -> Tensor", shrink_bound)
      .internal()
      .out()
      .family(Family::Pointwise)
      .doc("self moved lambd towards zero, zero within.")
      .derivative([](Grad g, In<0> x, Attr<1, Scalar> lambd) { return softshrink_backward(g, x, *lambd); });
  t.op(hardshrink, "hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
       activate_exactly<Formula::Hardshrink>)
      .out()
      .family(Family::Pointwise)
      .doc("Zero within lambd of zero, else self.")
      .derivative([](Grad g, In<0> x, Attr<1, Scalar> lambd) { return hardshrink_backward(g, x, *lambd); });
  t.op(ops::softshrink_backward,
       "softshrink_backward(Tensor grad_output, Tensor self, Scalar lambd) -> Tensor",
       activate_backward<Formula::ShrinkBackward>)
      .internal()
      .doc("Gradient of softshrink.")
      .family(Family::Gradient)
      .on_devices()
      .batching(Batching::Pointwise)
      .derivative([](Grad g, In<1> x, Attr<2, Scalar> lambd) {
        return Grads{softshrink_backward(g, x, *lambd), zeros_like(g)};
      });
  t.op(ops::hardshrink_backward, "hardshrink_backward(Tensor grad_out, Tensor self, Scalar lambd) -> Tensor",
       activate_backward<Formula::ShrinkBackward>)
      .internal()
      .doc("Gradient of hardshrink.")
      .family(Family::Gradient)
      .on_devices()
      .batching(Batching::Pointwise)
      .derivative([](Grad g, In<1> x, Attr<2, Scalar> lambd) {
        return Grads{hardshrink_backward(g, x, *lambd), zeros_like(g)};
      });
}

void register_exponential_units(Table& t) {
  using namespace ops;
  pointwise_record(
      t.op(elu, "elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
           elu_kernel),
      "self where positive, else alpha * (exp(self) - 1).")
      .derivative(
          [](Grad g, In<0> x, Attr<1, Scalar> alpha, Attr<2, Scalar> scale, Attr<3, Scalar> input_scale) {
            return elu_backward(g, *alpha, *scale, *input_scale, x);
          });
  t.op(ops::elu_backward,
       "elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, Tensor self) -> "
       "Tensor",
       elu_backward_kernel)
      .absent_in_pytorch()
      .internal()
      .doc("Gradient of elu.")
      .family(Family::Gradient)
      .on_devices()
      .batching(Batching::Pointwise)
      .derivative([](Grad g, In<0> grad, Attr<1, Scalar> alpha, Attr<2, Scalar> scale,
                     Attr<3, Scalar> input_scale, In<4> x) {
        return elu_second(g, grad, alpha->to_double(), scale->to_double(), input_scale->to_double(), x);
      });
  t.composite(selu, "selu(Tensor self) -> Tensor", selu_body)
      .function_only()
      .inplace()
      .doc("elu with the constants that keep mean 0 and variance 1.")
      .elementwise();
  t.composite(celu, "celu(Tensor self, Scalar alpha=1.0) -> Tensor", celu_body)
      .function_only()
      .inplace()
      .doc("elu, smooth for every alpha.")
      .one_node()
      .elementwise();
  t.op(ops::prelu_kernel, "_prelu_kernel(Tensor self, Tensor weight) -> Tensor", rushlight::prelu_kernel)
      .function_only()
      .family(Family::Pointwise)
      .doc("self where positive, else weight * self.")
      .derivative([](Grad g, In<0> x, In<1> w) {
        return Grads{rushlight::where(x > 0, g, g * w), rushlight::where(x > 0, 0, g * x)};
      });
  t.composite(prelu, "prelu(Tensor self, Tensor weight) -> Tensor", prelu_body)
      .doc("self where positive, else weight of its channel times self.")
      .autocast(Cast::Half);
}

}  // namespace

void register_activation_operators(Table& t) {
  register_sigmoids(t);
  register_linear_pieces(t);
  register_shrinks(t);
  register_exponential_units(t);
}

}  // namespace rushlight
