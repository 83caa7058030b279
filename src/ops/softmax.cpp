#include "ops/softmax.h"

#include "cpu/softmax.h"
#include "device/layers.h"
#include "ops/copy.h"
#include "ops/index_common.h"
#include "ops/operators.h"
#include "ops/reduction.h"
#include "ops/register.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

cpu::SoftmaxShape shape_around(const Tensor& t, int64_t dim) {
  cpu::SoftmaxShape s{1, 1, 1};
  for (int64_t d = 0; d < t.dim(); ++d) (d < dim ? s.outer : d == dim ? s.n : s.inner) *= t->sizes[d];
  return s;
}

Tensor computable(const Tensor& t, const char* who) {
  RL_CHECK_AS(NotImplemented, is_floating(t.dtype()) && !is_float8(t.dtype()), "\"", who,
              "_lastdim_kernel_impl\" not implemented for '", legacy_name(t.dtype()), "'");
  return dense(t);
}

template <bool logarithm>
Tensor forward_kernel(const Call&, const Tensor& self, int64_t given_dim, bool half_to_float) {
  RL_CHECK(!half_to_float, "softmax with half to float conversion is not supported on CPU");
  const int64_t dim = wrap_dim(given_dim, self.dim());
  const Tensor x = computable(self, logarithm ? "log_softmax" : "softmax");
  const Tensor out = empty_tensor(x.sizes(), x.dtype(), x.device());
  if (x.numel() > 0 && x.is_cpu())
    cpu::softmax(x.data_ptr(), out.data_ptr(), shape_around(x, dim), logarithm, x.dtype());
  if (const DeviceLayers* layers = device_layers(x); layers && x.numel() > 0)
    layers->softmax(x.device().index(), x.data_ptr(), out.data_ptr(), shape_around(x, dim), logarithm,
                    x.dtype());
  return out;
}

template <bool logarithm>
Tensor backward_kernel(const Call&, const Tensor& grad, const Tensor& output, int64_t given_dim,
                       DType input_dtype) {
  RL_CHECK(grad.sizes() == output.sizes(), "softmax backward: grad_output has shape ", grad.sizes(),
           " and output ", output.sizes());
  const int64_t dim = wrap_dim(given_dim, output.dim());
  const DType common = grad.dtype() == output.dtype() ? output.dtype() : compute_dtype(output.dtype());
  const Tensor y = to_dtype(computable(output, "softmax"), common), g = to_dtype(dense(grad), common);
  const Tensor out = empty_tensor(y.sizes(), y.dtype(), y.device());
  if (y.numel() > 0 && y.is_cpu())
    cpu::softmax_backward(g.data_ptr(), y.data_ptr(), out.data_ptr(), shape_around(y, dim), logarithm,
                          y.dtype());
  if (const DeviceLayers* layers = device_layers(y); layers && y.numel() > 0)
    layers->softmax_backward(y.device().index(), g.data_ptr(), y.data_ptr(), out.data_ptr(),
                             shape_around(y, dim), logarithm, y.dtype());
  return to_dtype(out, input_dtype);
}

template <const auto& raw>
Tensor softmax_body(const Call&, const Tensor& self, int64_t dim, OptDType dtype) {
  return raw(dtype ? to_dtype(self, *dtype) : self, dim, false);
}

int64_t implicit_dim(const Tensor& t, OptInt dim, const char* who) {
  if (dim) return *dim;
  show_warning(str("Implicit dimension choice for ", who,
                   " has been deprecated. Change the call to include dim=X as an argument."));
  return t.dim() == 0 || t.dim() == 1 || t.dim() == 3 ? 0 : 1;
}
Tensor nn_softmax_body(const Call&, const Tensor& input, OptInt dim, int64_t, OptDType dtype) {
  return softmax(input, implicit_dim(input, dim, "softmax"), dtype);
}
Tensor nn_log_softmax_body(const Call&, const Tensor& input, OptInt dim, int64_t, OptDType dtype) {
  return log_softmax(input, implicit_dim(input, dim, "log_softmax"), dtype);
}
Tensor nn_softmin_body(const Call&, const Tensor& input, OptInt dim, int64_t, OptDType dtype) {
  return softmax(-input, implicit_dim(input, dim, "softmin"), dtype);
}

Tensor sum_along(const Tensor& t, int64_t dim) {
  return t.dim() == 0 ? t : sum_dim(t, OptIntList(IntList(&dim, 1)), true);
}

}  // namespace

void register_softmax_operators(Table& t) {
  t.op(softmax_raw, "_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", forward_kernel<false>)
      .doc("softmax without conversion of types.")
      .out()
      .family(Family::Normalization)
      .on_devices()
      .batching(Batching::Dims)
      .derivative([](Grad g, Out<0> y, Attr<1, int64_t> dim, Shape<0> x) {
        return softmax_backward_data(g, y, dim, x.dtype());
      });
  t.op(log_softmax_raw, "_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
       forward_kernel<true>)
      .doc("log_softmax without conversion of types.")
      .out()
      .family(Family::Normalization)
      .on_devices()
      .batching(Batching::Dims)
      .derivative([](Grad g, Out<0> y, Attr<1, int64_t> dim, Shape<0> x) {
        return log_softmax_backward_data(g, y, dim, x.dtype());
      });
  t.op(softmax_backward_data,
       "_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
       backward_kernel<false>)
      .doc("Gradient of softmax.")
      .function_only()
      .out()
      .out_overload("out(grad_input)")
      .family(Family::Gradient)
      .on_devices()
      .batching(Batching::Dims)
      .derivative([](Grad g, In<0> grad, In<1> y, Attr<2, int64_t> dim) {
        const Tensor gy = g * y;
        return Grads{gy - y * sum_along(gy, dim),
                     g * grad - sum_along(gy, dim) * grad - g * sum_along(grad * y, dim)};
      });
  t.op(log_softmax_backward_data,
       "_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> "
       "Tensor",
       backward_kernel<true>)
      .doc("Gradient of log_softmax.")
      .function_only()
      .out()
      .family(Family::Gradient)
      .on_devices()
      .batching(Batching::Dims)
      .derivative([](Grad g, In<0> grad, In<1> y, Attr<2, int64_t> dim) {
        const Tensor p = exp(y);
        return Grads{g - sum_along(g * p, dim), -(g * p) * sum_along(grad, dim)};
      });
  t.composite(softmax, "softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
              softmax_body<softmax_raw>)
      .doc("Exponentials along a dimension, scaled to sum 1.")
      .out(OutRule::SameType)
      .autocast(Cast::None, Cast::Float);
  t.composite(log_softmax, "log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
              softmax_body<log_softmax_raw>)
      .doc("Logarithm of softmax, computed without overflow.")
      .out(OutRule::SameType)
      .autocast(Cast::None, Cast::Float);
  t.composite("special::softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
              softmax_body<softmax_raw>)
      .doc("Exponentials along a dimension, scaled to sum 1.")
      .function_only();
  t.composite("special::log_softmax(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
              softmax_body<log_softmax_raw>)
      .doc("Logarithm of softmax.")
      .function_only();
  t.composite(nn_softmax,
              "nn::softmax(Tensor input, int? dim=None, int _stacklevel=3, ScalarType? dtype=None) -> Tensor",
              nn_softmax_body)
      .spelling(Spelling::Python)
      .doc("Exponentials along a dimension, scaled to sum 1.")
      .autocast(Cast::None, Cast::Float);
  t.composite(
       nn_log_softmax,
       "nn::log_softmax(Tensor input, int? dim=None, int _stacklevel=3, ScalarType? dtype=None) -> Tensor",
       nn_log_softmax_body)
      .spelling(Spelling::Python)
      .doc("Logarithm of softmax, computed without overflow.")
      .autocast(Cast::None, Cast::Float);
  t.composite(nn_softmin,
              "nn::softmin(Tensor input, int? dim=None, int _stacklevel=3, ScalarType? dtype=None) -> Tensor",
              nn_softmin_body)
      .doc("softmax of the negated input.");
}

}  // namespace rushlight
