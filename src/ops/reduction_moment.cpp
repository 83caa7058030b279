// Variances, norms and logsumexp.
#include <cmath>
#include <limits>

#include "ops/copy.h"
#include "ops/device_moments.h"
#include "ops/factory.h"
#include "ops/operators.h"
#include "ops/reduction.h"
#include "ops/reduction_common.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;
using cpu::ReduceOp;

int64_t count_of(IntList sizes, uint64_t dims) {
  int64_t n = 1;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (dims >> d & 1) n *= sizes[d];
  return n;
}
Dims listed(uint64_t dims, int64_t ndim) {
  Dims list;
  for (int64_t d = 0; d < ndim; ++d)
    if (dims >> d & 1) list.push_back(d);
  return list;
}
// Reduces all given dimensions, also when there are none.
Tensor sum_kept(const Tensor& t, uint64_t dims) {
  const Dims list = listed(dims, t.dim());
  return list.empty() ? t : sum_dim(t, OptIntList(list), true);
}
Tensor drop_dims(const Tensor& t, uint64_t dims, bool keepdim) {
  if (keepdim) return t;
  const Dims list = listed(dims, t.dim());
  return list.empty() ? t : squeeze_dims(t, list);
}

// --- variance ---

struct Moments {
  Tensor variance, mean;  // reduced dimensions kept
};

Moments moments_of(const Tensor& self, uint64_t dims, double correction, const char* who) {
  RL_CHECK(is_differentiable(self.dtype()),
           "std and var only support floating point and complex dtypes, got ", dtype_name(self.dtype()));
  if (is_complex(self.dtype())) {
    const Moments re = moments_of(real(self), dims, correction, who),
                  im = moments_of(imag(self), dims, correction, who);
    return {re.variance + im.variance, complex(re.mean, im.mean)};
  }
  const int64_t count = count_of(self.sizes(), dims);
  const double freedom = static_cast<double>(count) - correction;
  if (freedom <= 0)
    show_warning(str(who,
                     "(): degrees of freedom is <= 0. Correction should be strictly less than the reduction "
                     "factor (input numel "
                     "divided by output numel)."));
  if (!self.is_cpu()) {
    const DType compute = is_reduced_float(self.dtype()) ? DType::Float32 : self.dtype();
    const Dims sizes = reduced_sizes(self, dims, true);
    const Tensor mean = empty_tensor(sizes, compute, self.device()),
                 variance = empty_tensor(sizes, compute, self.device());
    if (loops::moments(self, dims, mean, variance))
      return {to_dtype(variance * Scalar(static_cast<double>(count) / std::max(0.0, freedom)), self.dtype()),
              to_dtype(mean, self.dtype())};
  }
  const Tensor x = is_reduced_float(self.dtype()) ? to_dtype(self, DType::Float32) : self;
  cpu::ReduceParams params;
  params.divisor = static_cast<double>(count);
  const Tensor mean = reduce_dims(ReduceOp::Sum, x, dims, true, "mean", params);
  params.divisor = count ? std::max(0.0, freedom) : 0;  // of nothing: 0 / 0
  params.centre = mean.has_data() ? mean.data_ptr() : nullptr;
  const Tensor variance = reduce_dims(ReduceOp::Deviation, x, dims, true, "std", params);
  return {to_dtype(variance, self.dtype()), to_dtype(mean, self.dtype())};
}

double correction_of(const OptScalar& correction) { return correction ? correction->to_double() : 1.0; }

template <bool root>
Tensor spread_kernel(const Call&, const Tensor& self, const OptIntList& dim, const OptScalar& correction,
                     bool keepdim) {
  const uint64_t dims = dim_mask(dim, self.dim());
  const Tensor v = drop_dims(moments_of(self, dims, correction_of(correction), root ? "std" : "var").variance,
                             dims, keepdim);
  return root ? sqrt(v) : v;
}
template <bool root>
std::tuple<Tensor, Tensor> spread_mean_kernel(const Call&, const Tensor& self, const OptIntList& dim,
                                              const OptScalar& correction, bool keepdim) {
  const uint64_t dims = dim_mask(dim, self.dim());
  const Moments m = moments_of(self, dims, correction_of(correction), root ? "std_mean" : "var_mean");
  const Tensor v = drop_dims(m.variance, dims, keepdim);
  return {root ? sqrt(v) : v, drop_dims(m.mean, dims, keepdim)};
}

template <const auto& target>
auto spread_all_body(const Call&, const Tensor& self, bool unbiased) {
  return target(self, std::nullopt, Scalar(int64_t{unbiased}), false);
}
template <const auto& target>
auto spread_dim_body(const Call&, const Tensor& self, const OptIntList& dim, bool unbiased, bool keepdim) {
  return target(self, dim, Scalar(int64_t{unbiased}), keepdim);
}

Tensor var_backward(const Tensor& given, const Tensor& x, uint64_t dims, double correction, bool keepdim) {
  const Tensor g = restore_dims(given, dims, x.dim(), keepdim);
  const double count = static_cast<double>(count_of(x.sizes(), dims));
  const Tensor mean = sum_kept(x, dims) / Scalar(count);
  if (count <= correction) {  // a division by zero that says nothing of how x changes it
    const double infinity = std::numeric_limits<double>::infinity(), nan = std::nan("");
    return g * to_dtype(rushlight::where(ops::eq(x, mean), Scalar(nan), Scalar(infinity)), g.dtype());
  }
  return g * Scalar(2.0 / (count - correction)) * (x - mean);
}
Tensor std_backward(const Tensor& g, const Tensor& x, const Tensor& y, uint64_t dims, double correction,
                    bool keepdim) {
  // No 0 is divided by, not even where the quotient is dropped: its own gradient would be NaN.
  const Tensor still = rushlight::eq(y, Scalar(int64_t{0}));
  const Tensor twice = rushlight::masked_fill(y * Scalar(2.0), still, Scalar(int64_t{1}));
  const Tensor scaled = rushlight::masked_fill(g / twice, still, Scalar(int64_t{0}));
  return var_backward(scaled, x, dims, correction, keepdim);
}
Tensor mean_part(const Tensor& g, const Tensor& x, uint64_t dims, bool keepdim) {
  return expand_grad(g, dims, keepdim, x.sizes()) / Scalar(static_cast<double>(count_of(x.sizes(), dims)));
}
Tensor sum_of(const Tensor& a, const Tensor& b) { return !a.defined() ? b : !b.defined() ? a : a + b; }

void register_variances(Table& t) {
  t.composite(var_dim, "var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor",
              spread_dim_body<var_correction>)
      .doc("Variance over dimensions.")
      .out()
      .out_overload("out");
  t.composite(var, "var(Tensor self, bool unbiased=True) -> Tensor", spread_all_body<var_correction>)
      .doc("Variance of all elements.");
  t.op(var_correction,
       "var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> "
       "Tensor",
       spread_kernel<false>)
      .doc("Variance; the divisor is the number of elements less `correction` (1).")
      .family(Family::Reduction)
      .out()
      .on_devices()
      .batching(Batching::Reduction)
      .derivative(
          [](Grad g, In<0> x, Attr<1, OptIntList> dim, Attr<2, OptScalar> correction, Attr<3, bool> keepdim) {
            return var_backward(g, x, dim_mask(dim, x.dim()), correction_of(correction), keepdim);
          });
  t.composite(std, "std(Tensor self, bool unbiased=True) -> Tensor", spread_all_body<std_correction>)
      .doc("Standard deviation of all elements.");
  t.composite(std_dim, "std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor",
              spread_dim_body<std_correction>)
      .doc("Standard deviation over dimensions.")
      .out()
      .out_overload("out");
  t.op(std_correction,
       "std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> "
       "Tensor",
       spread_kernel<true>)
      .doc("Standard deviation; the divisor is the number of elements less `correction` (1).")
      .family(Family::Reduction)
      .out()
      .on_devices()
      .batching(Batching::Reduction)
      .derivative([](Grad g, In<0> x, Attr<1, OptIntList> dim, Attr<2, OptScalar> correction,
                     Attr<3, bool> keepdim, Out<0> y) {
        return std_backward(g, x, y, dim_mask(dim, x.dim()), correction_of(correction), keepdim);
      });
  t.composite(var_mean, "var_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)",
              spread_all_body<var_mean_correction>)
      .doc("Variance and mean of all elements.")
      .function_only();
  t.composite(
       var_mean_dim,
       "var_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)",
       spread_dim_body<var_mean_correction>)
      .doc("Variance and mean over dimensions.")
      .function_only();
  t.op(var_mean_correction,
       "var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) "
       "-> (Tensor, Tensor)",
       spread_mean_kernel<false>)
      .doc("Variance and mean.")
      .family(Family::Reduction)
      .function_only()
      .on_devices()
      .batching(Batching::Reduction)
      .derivative([](GradOf<0> g, GradOf<1> gm, In<0> x, Attr<1, OptIntList> dim,
                     Attr<2, OptScalar> correction, Attr<3, bool> keepdim) {
        const uint64_t dims = dim_mask(dim, x.dim());
        return sum_of(g.defined() ? var_backward(g, x, dims, correction_of(correction), keepdim) : Tensor(),
                      gm.defined() ? mean_part(gm, x, dims, keepdim) : Tensor());
      });
  t.composite(std_mean, "std_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)",
              spread_all_body<std_mean_correction>)
      .doc("Standard deviation and mean of all elements.")
      .function_only();
  t.composite(
       std_mean_dim,
       "std_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)",
       spread_dim_body<std_mean_correction>)
      .doc("Standard deviation and mean over dimensions.")
      .function_only();
  t.op(std_mean_correction,
       "std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) "
       "-> (Tensor, Tensor)",
       spread_mean_kernel<true>)
      .doc("Standard deviation and mean.")
      .family(Family::Reduction)
      .function_only()
      .on_devices()
      .batching(Batching::Reduction)
      .derivative([](GradOf<0> g, GradOf<1> gm, In<0> x, Attr<1, OptIntList> dim,
                     Attr<2, OptScalar> correction, Attr<3, bool> keepdim, Out<0> y) {
        const uint64_t dims = dim_mask(dim, x.dim());
        return sum_of(
            g.defined() ? std_backward(g, x, y, dims, correction_of(correction), keepdim) : Tensor(),
            gm.defined() ? mean_part(gm, x, dims, keepdim) : Tensor());
      });
}

// --- norms ---

void check_norm_of_empty(const Tensor& self, uint64_t dims, double p, const OptIntList& dim) {
  if (self.numel() > 0 || (p >= 0 && !std::isinf(p))) return;
  RL_CHECK(dim && !dim->empty(), "linalg.vector_norm cannot compute the ", p,
           " norm on an empty tensor because the operation does not have an identity");
  for (int64_t d = 0; d < self.dim(); ++d)
    RL_CHECK(!(dims >> d & 1) || self->sizes[d] > 0, "linalg.vector_norm cannot compute the ", p,
             " norm on the dimension ", d,
             " because this dimension is empty and the operation does not have an identity");
}

Tensor vector_norm_kernel(const Call&, const Tensor& self, const Scalar& ord, const OptIntList& dim,
                          bool keepdim, OptDType dtype) {
  RL_CHECK(is_differentiable(self.dtype()),
           "linalg.vector_norm: Expected a floating point or complex tensor as input. Got ",
           legacy_name(self.dtype()));
  RL_CHECK(!dtype || (is_differentiable(*dtype) && (is_complex(*dtype) || !is_complex(self.dtype()))),
           "linalg.vector_norm: the desired output dtype should be ",
           is_complex(self.dtype()) ? "complex" : "either floating point or complex", ", but got ",
           dtype ? dtype_name(*dtype) : "", " instead");
  RL_CHECK(!ord.is_complex(), "linalg.vector_norm: Expected a non-complex scalar as the order of norm.");
  Tensor x = dtype ? to_dtype(self, *dtype) : self;
  if (is_complex(x.dtype())) x = abs(x);
  const double p = ord.to_double();
  const uint64_t dims = dim_mask(dim, x.dim());
  check_norm_of_empty(self, dims, p, dim);
  const char* who = "linalg_vector_norm_cpu";
  if (p == 0) return reduce_dims(ReduceOp::Norm0, x, dims, keepdim, who, {});
  if (p == 1) return reduce_dims(ReduceOp::Norm1, x, dims, keepdim, who, {});
  if (p == 2) return reduce_dims(ReduceOp::Norm2, x, dims, keepdim, who, {});
  if (std::isinf(p))
    return reduce_dims(p > 0 ? ReduceOp::MaxAbs : ReduceOp::MinAbs, x, dims, keepdim, who, {});
  const Tensor wide = is_reduced_float(x.dtype()) ? to_dtype(x, DType::Float32) : x;
  const Tensor total =
      reduce_dims(ReduceOp::Sum, rushlight::pow(abs(wide), Scalar(p)), dims, keepdim, who, {});
  return to_dtype(rushlight::pow(total, Scalar(1.0 / p)), x.dtype());
}

Tensor safe_division(const Tensor& a, const Tensor& b) {  // 0 where b is
  const Tensor none = rushlight::eq(b, Scalar(int64_t{0}));
  return rushlight::masked_fill(a / rushlight::masked_fill(b, none, Scalar(int64_t{1})), none,
                                Scalar(int64_t{0}));
}

Tensor norm_backward(const Tensor& given_g, const Tensor& self, const Tensor& given_y, double p,
                     uint64_t dims, bool keepdim) {
  const Tensor g = restore_dims(given_g, dims, self.dim(), keepdim),
               y = restore_dims(given_y, dims, self.dim(), keepdim);
  const Tensor x = real_dtype(self.dtype()) == y.dtype()
                       ? self
                       : to_dtype(self, is_complex(self.dtype()) ? complex_dtype(y.dtype()) : y.dtype());
  if (p == 0) return zeros_like(x);
  if (p == 1) return sgn(x) * g;
  // In halves g / y may pass the largest number where x / y does not.
  if (p == 2 && is_reduced_float(y.dtype())) return safe_division(x, y) * g;
  if (p == 2) return x * safe_division(g, y);
  const Tensor magnitude = abs(x);
  if (std::isinf(p)) {
    const Tensor hits = ops::eq(magnitude, y) | (isnan(magnitude) & isnan(y));
    return sgn(x) * (to_dtype(hits, y.dtype()) / sum_kept(to_dtype(hits, y.dtype()), dims) * g);
  }
  const Tensor at_zero = rushlight::eq(magnitude, Scalar(int64_t{0}));
  if (p < 1) {
    const Tensor scaled = rushlight::masked_fill(sgn(x) * rushlight::pow(magnitude, Scalar(p - 1)), at_zero,
                                                 Scalar(int64_t{0}));
    return scaled * g * rushlight::pow(y, Scalar(1 - p));
  }
  const Tensor scale = safe_division(g, rushlight::pow(y, Scalar(p - 1)));
  if (p < 2) return sgn(x) * rushlight::pow(magnitude, Scalar(p - 1)) * scale;
  return x * rushlight::pow(magnitude, Scalar(p - 2)) * scale;
}

Scalar order_of(const OptScalar& p) { return p ? *p : Scalar(2.0); }
Tensor norm_dtype_body(const Call&, const Tensor& self, const OptScalar& p, OptDType dtype) {
  return vector_norm(self, order_of(p), std::nullopt, false, dtype);
}
Tensor norm_body(const Call&, const Tensor& self, const Scalar& p) {
  return vector_norm(self, p, std::nullopt, false, std::nullopt);
}
Tensor norm_dim_dtype_body(const Call&, const Tensor& self, const OptScalar& p, IntList dim, bool keepdim,
                           OptDType dtype) {
  return vector_norm(self, order_of(p), dim, keepdim, dtype);
}
Tensor norm_dim_body(const Call&, const Tensor& self, const OptScalar& p, IntList dim, bool keepdim) {
  return vector_norm(self, order_of(p), dim, keepdim, std::nullopt);
}

// --- logsumexp ---

Tensor logsumexp_kernel(const Call&, const Tensor& self, IntList dim, bool keepdim) {
  const Tensor x = is_integral_or_bool(self.dtype()) ? to_dtype(self, get_default_dtype()) : self;
  const uint64_t dims = dim_mask(OptIntList(dim), x.dim());
  if (count_of(x.sizes(), dims) == 0 || x.numel() == 0)
    return log(drop_dims(sum_kept(exp(x), dims), dims, keepdim));
  const Tensor top =
      reduce_dims(ReduceOp::Max, is_complex(x.dtype()) ? real(x) : x, dims, true, "logsumexp", {});
  const Tensor shift = rushlight::masked_fill(top, isinf(top), Scalar(int64_t{0}));
  return drop_dims(log(sum_kept(exp(x - shift), dims)) + shift, dims, keepdim);
}

Tensor special_logsumexp_body(const Call&, const Tensor& self, IntList dim, bool keepdim) {
  return logsumexp(self, dim, keepdim);
}

}  // namespace

void register_moment_operators(Table& t) {
  register_variances(t);
  t.op(vector_norm,
       "linalg::vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? "
       "dtype=None) -> Tensor",
       vector_norm_kernel)
      .doc("The norm of order `ord` of vectors.")
      .family(Family::Reduction)
      .out(OutRule::SameType)
      .function_only()
      .on_devices()
      .batching(Batching::Reduction)
      .autocast(Cast::None, Cast::Float)
      .derivative(
          [](Grad g, In<0> x, Attr<1, Scalar> ord, Attr<2, OptIntList> dim, Attr<3, bool> keepdim, Out<0> y) {
            return norm_backward(g, x, y, ord->to_double(), dim_mask(dim, x.dim()), keepdim);
          });
  t.composite(norm_dtype, "norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor",
              norm_dtype_body)
      .doc("The norm of all elements.")
      .out(OutRule::SameType)
      .autocast(Cast::None, Cast::Float);
  t.composite(norm, "norm.Scalar(Tensor self, Scalar p=2) -> Tensor", norm_body)
      .doc("The norm of all elements.")
      .out(OutRule::SameType)
      .autocast(Cast::None, Cast::Float);
  t.composite(norm_dim_dtype,
              "norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType "
              "dtype) -> Tensor",
              norm_dim_dtype_body)
      .doc("The norm over dimensions.")
      .out(OutRule::SameType)
      .out_overload("dtype_out")
      .autocast(Cast::None, Cast::Float);
  t.composite(norm_dim,
              "norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor",
              norm_dim_body)
      .doc("The norm over dimensions.")
      .out(OutRule::SameType)
      .out_overload("out")
      .autocast(Cast::None, Cast::Float);
  t.op(logsumexp, "logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", logsumexp_kernel)
      .doc("Logarithm of the sum of exponentials, without overflow.")
      .family(Family::Reduction)
      .out()
      .on_devices()
      .batching(Batching::Reduction)
      .autocast(Cast::None, Cast::Float)
      .derivative([](Grad g, In<0> x, Attr<1, IntList> dim, Attr<2, bool> keepdim, Out<0> y) {
        const uint64_t dims = dim_mask(OptIntList(*dim), x.dim());
        return restore_dims(g, dims, x.dim(), keepdim) *
               conj_of(exp(x - restore_dims(y, dims, x.dim(), keepdim)));
      });
  t.composite("special::logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
              special_logsumexp_body)
      .doc("Logarithm of the sum of exponentials, without overflow.")
      .out()
      .function_only();
}

}  // namespace rushlight
