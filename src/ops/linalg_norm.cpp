// Norms of matrices, condition numbers, slices of bounded norm.
#include "dispatch/warning.h"
#include "ops/index.h"
#include "ops/linalg_common.h"
#include "ops/plain.h"

namespace rushlight {
namespace {

using namespace ops;
using namespace linalg;

const double kInfinity = std::numeric_limits<double>::infinity();

Dims wrapped_pair(const Tensor& a, IntList dim) {
  RL_CHECK(dim.size() == 2, "linalg.matrix_norm: dim must be a 2-tuple. Got ", dim);
  const Dims dims{wrap_dim(dim[0], a.dim()), wrap_dim(dim[1], a.dim())};
  RL_CHECK(dims[0] != dims[1], "linalg.matrix_norm: dims must be different. Got (", dim[0], ", ", dim[1],
           ")");
  return dims;
}
void check_norm(const Tensor& a, OptDType dtype, bool low_precision) {
  const char* who = "linalg.matrix_norm";
  check_matrix(who, a);
  check_floating(who, a, low_precision);
  if (!dtype) return;
  const bool complex = is_complex(a.dtype());
  RL_CHECK(is_differentiable(*dtype), who, ": dtype should be floating point or complex. Got ",
           legacy_name(*dtype));
  RL_CHECK(complex == is_complex(*dtype), who, ": dtype should be ", complex ? "complex" : "real", " for ",
           complex ? "complex" : "real", " inputs, but got ", legacy_name(*dtype));
  RL_CHECK(promote_types(a.dtype(), *dtype) == *dtype, who, ": the dtype of the input (",
           legacy_name(a.dtype()), ") should be convertible without narrowing to the specified dtype (",
           legacy_name(*dtype), ")");
}
// A norm of the singular values of the matrices in `dims`.
template <class F>
Tensor of_singular_values(const Tensor& a, const Dims& dims, bool keepdim, OptDType dtype, F&& norm) {
  const Tensor moved = movedim(dtype ? to_dtype(a, *dtype) : a, dims, IntList{-2, -1});
  const Tensor result = norm(linalg_svdvals(moved, std::nullopt));
  if (!keepdim) return result;
  return unsqueeze(unsqueeze(result, std::min(dims[0], dims[1])), std::max(dims[0], dims[1]));
}

Tensor matrix_norm_body(const Call&, const Tensor& a, const Scalar& ord, IntList dim, bool keepdim,
                        OptDType dtype) {
  RL_CHECK(!ord.is_complex(), "linalg.matrix_norm: Expected a non-complex scalar as the order of norm.");
  const double p = ord.to_double(), size = std::abs(p);
  RL_CHECK(size == 2 || size == 1 || size == kInfinity, "linalg.matrix_norm: Order ", p, " not supported.");
  check_norm(a, dtype, size != 2);
  Dims dims = wrapped_pair(a, dim);
  auto extreme = [&](const Tensor& t, int64_t d, bool keep) {
    if (p > 0 && t.size(d) == 0) return sum_dim(t, IntList{d}, keep, std::nullopt);  // of no values: 0
    return p > 0 ? amax(t, IntList{d}, keep) : amin(t, IntList{d}, keep);
  };
  if (size == 2)
    return of_singular_values(a, dims, keepdim, dtype,
                              [&](const Tensor& s) { return extreme(s, -1, false); });
  if (size == kInfinity) std::swap(dims[0], dims[1]);
  if (!keepdim && dims[0] < dims[1]) --dims[1];
  return extreme(vector_norm(a, Scalar(1.0), IntList{dims[0]}, keepdim, dtype), dims[1], keepdim);
}
Tensor matrix_norm_name_body(const Call&, const Tensor& a, std::string_view ord, IntList dim, bool keepdim,
                             OptDType dtype) {
  RL_CHECK(ord == "fro" || ord == "nuc", "linalg.matrix_norm: Order ", ord, " not supported.");
  check_norm(a, dtype, ord == "fro");
  const Dims dims = wrapped_pair(a, dim);
  if (ord == "fro") return vector_norm(a, Scalar(2.0), dims, keepdim, dtype);
  return of_singular_values(a, dims, keepdim, dtype,
                            [](const Tensor& s) { return sum_dim(s, IntList{-1}, false, std::nullopt); });
}

Tensor norm_body(const Call&, const Tensor& a, const OptScalar& ord, const OptIntList& dim, bool keepdim,
                 OptDType dtype) {
  if (dim)
    RL_CHECK(dim->size() == 1 || dim->size() == 2,
             "linalg.norm: If dim is specified, it must be of length 1 or 2. Got ", *dim);
  else if (ord)
    RL_CHECK(a.dim() == 1 || a.dim() == 2,
             "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got ", a.dim(),
             "D.");
  if (ord && (dim ? dim->size() == 2 : a.dim() == 2))
    return linalg_matrix_norm(a, *ord, dim ? *dim : IntList{0, 1}, keepdim, dtype);
  return vector_norm(a, ord ? *ord : Scalar(2.0), dim, keepdim, dtype);
}
Tensor norm_name_body(const Call&, const Tensor& a, std::string_view ord, const OptIntList& dim, bool keepdim,
                      OptDType dtype) {
  RL_CHECK(!dim || dim->size() == 1 || dim->size() == 2,
           "linalg.norm: If dim is specified, it must be of length 1 or 2. Got ", dim ? *dim : IntList());
  RL_CHECK(dim || a.dim() == 1 || a.dim() == 2,
           "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got ", a.dim(),
           "D.");
  return linalg_matrix_norm_name(a, ord, dim ? *dim : IntList{0, 1}, keepdim, dtype);
}

void tell_of_old_nuclear_norm() {
  static OnceWarning deprecated(
      "at::nuclear_norm is deprecated and it is just left for JIT compatibility. It will be removed in a "
      "future PyTorch release. Please use `linalg.matrix_norm(A, 'nuc', dim, keepdim)` instead");
  deprecated.show();
}
Tensor old_frobenius_body(const Call&, const Tensor& a, IntList dim, bool keepdim) {
  static OnceWarning deprecated(
      "at::frobenius_norm is deprecated and it is just left for JIT compatibility. It will be removed in a "
      "future PyTorch release. Please use `linalg.vector_norm(A, 2., dim, keepdim)` instead");
  deprecated.show();
  RL_CHECK(dim.size() <= 2, "Expected at most 2 dimensions, but got ", dim.size(), " dimensions instead.");
  return vector_norm(a, Scalar(2.0), dim, keepdim, std::nullopt);
}
Tensor old_nuclear_body(const Call&, const Tensor& a, bool keepdim) {
  tell_of_old_nuclear_norm();
  return linalg_matrix_norm_name(a, "nuc", IntList{-2, -1}, keepdim, std::nullopt);
}
Tensor old_nuclear_dim_body(const Call&, const Tensor& a, IntList dim, bool keepdim) {
  tell_of_old_nuclear_norm();
  RL_CHECK(dim.size() == 2, "nuclear norm requires a 'dim' argument of size 2");
  return linalg_matrix_norm_name(a, "nuc", dim, keepdim, std::nullopt);
}

// --- condition numbers

// |A| |A^-1|, infinite for singular matrices; `norm` is one of matrix_norm's.
template <class F>
Tensor condition(const Tensor& a, std::string_view ord, F&& norm) {
  check_square(str("linalg.cond(ord=", ord, ")"), a, RefusedBy::Check);
  const auto [inverse, info] = linalg_inv_ex(a, false);
  const Tensor singular = as_column(as_column(info > Scalar(int64_t{0})));
  const Tensor product = norm(a) * norm(rushlight::masked_fill(inverse, singular, Scalar(kInfinity)));
  return nan_to_num(product, kInfinity, kInfinity, -kInfinity);
}
Tensor empty_condition(const Tensor& a) {
  return zeros(batch_of(a), real_dtype(a.dtype()), std::nullopt, a.device(), std::nullopt);
}
Tensor cond_body(const Call&, const Tensor& a, const OptScalar& p) {
  RL_CHECK(a.dim() >= 2, "linalg.cond: The input tensor must have at least 2 dimensions.");
  const double ord = p ? p->to_double() : 2, size = std::abs(ord);
  RL_CHECK(size == 2 || size == 1 || size == kInfinity, "linalg.cond got an invalid norm type: ", ord);
  if (a.numel() == 0) return empty_condition(a);
  if (size != 2)
    return condition(a, str(ord), [&](const Tensor& t) {
      return linalg_matrix_norm(t, Scalar(ord), IntList{-2, -1}, false, std::nullopt);
    });
  const Tensor s = linalg_svdvals(a, std::nullopt), most = select(s, -1, 0), least = select(s, -1, -1);
  return ord > 0 ? most / least : least / most;
}
Tensor cond_name_body(const Call&, const Tensor& a, std::string_view p) {
  RL_CHECK(a.dim() >= 2, "linalg.cond: The input tensor must have at least 2 dimensions.");
  RL_CHECK(p == "fro" || p == "nuc", "linalg.cond got an invalid norm type: ", p);
  if (a.numel() == 0) return empty_condition(a);
  if (p == "fro")
    return condition(a, p, [&](const Tensor& t) {
      return linalg_matrix_norm_name(t, p, IntList{-2, -1}, false, std::nullopt);
    });
  check_square("linalg.cond(ord=nuc)", a, RefusedBy::KernelIfHalf);
  auto total = [](const Tensor& t) { return sum_dim(t, IntList{-1}, false, std::nullopt); };
  const Tensor s = linalg_svdvals(a, std::nullopt);
  return total(s) * total(reciprocal(s));
}

// --- slices of bounded norm

// Sums of powers of magnitudes: what is left of a norm whose parts lie on several machines.
Tensor powsum_body(const Call&, const Tensor& self, const Scalar& ord, const OptIntList& dim, bool keepdim,
                   OptDType dtype) {
  if (is_integral_or_bool(self.dtype()))
    RL_NOT_IMPLEMENTED("\"powsum_cpu\" not implemented for '", legacy_name(self.dtype()), "'");
  const bool squares = ord.to_double() == 2 && !is_complex(self.dtype());  // whose signs do not matter
  const Tensor sizes = squares ? self : ops::abs(self);
  const DType result = dtype.value_or(sizes.dtype());
  const bool half = result == DType::Float16 || result == DType::BFloat16;  // summed in float
  const bool at_once = squares && !dim && !keepdim;
  if (at_once && half && sizes.dtype() == result && is_plain(sizes) && sizes.is_contiguous()) {
    const Tensor flat = ops::view(sizes, IntList{-1});
    return ops::dot(flat, flat);  // reads halves once, and rounds once
  }
  const Tensor wide = to_dtype(sizes, half ? DType::Float32 : result);
  if (at_once && wide.is_contiguous() && (wide.dtype() == DType::Float32 || wide.dtype() == DType::Float64)) {
    const Tensor flat = ops::view(wide, IntList{-1});  // in one pass
    return to_dtype(ops::dot(flat, flat), result);
  }
  const Tensor powers = ops::pow(wide, wrapped_number(ord));
  return to_dtype(ops::sum_dim(powers, dim, keepdim, std::nullopt), result);
}

Tensor renorm_body(const Call&, const Tensor& self, const Scalar& p, int64_t dim, const Scalar& most) {
  RL_CHECK(!p.is_complex(), "renorm: p must be real-valued");
  RL_CHECK(p.to_double() > 0, "renorm: non-positive-norm not supported");
  RL_CHECK(!most.is_complex(), "renorm: maxnorm must be real-valued");
  RL_CHECK(most.to_double() >= 0, "renorm: expected maxnorm to be >= 0 but got ", most.to_double());
  RL_CHECK(self.dim() > 1, "renorm: input needs at least 2 dimensions, got ", self.dim(), " dimensions");
  check_floating("renorm", self, true);
  const int64_t kept = wrap_dim(dim, self.dim());
  Dims others;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (d != kept) others.push_back(d);
  const bool narrow = is_reduced_float(self.dtype());
  const Tensor norm = vector_norm(self, p, others, true, narrow ? OptDType(DType::Float32) : std::nullopt);
  const Tensor factor = rushlight::where(norm > most, most / (norm + Scalar(1e-7)), Scalar(int64_t{1}));
  if (is_plain(self))  // in one pass
    return mul.out(empty_tensor(self.sizes(), self.dtype(), self.device()), self, factor);
  const Tensor wide = narrow ? to_dtype(self, DType::Float32) : self;
  return as_contiguous(to_dtype(wide * factor, self.dtype()));
}

}  // namespace

void register_linalg_norm_operators(Table& t) {
  t.composite(linalg_matrix_norm,
              "linalg::matrix_norm(Tensor self, Scalar ord, int[] dim=[-2,-1], bool keepdim=False, *, "
              "ScalarType? dtype=None) -> Tensor",
              matrix_norm_body)
      .out(OutRule::SameType)
      .doc("The matrix norm of order 1, -1, 2, -2, inf or -inf.")
      .autocast(Cast::None, Cast::Float);
  t.composite(
       linalg_matrix_norm_name,
       "linalg::matrix_norm.str_ord(Tensor self, str ord='fro', int[] dim=[-2,-1], bool keepdim=False, "
       "*, ScalarType? dtype=None) -> Tensor",
       matrix_norm_name_body)
      .out(OutRule::SameType)
      .doc("The Frobenius ('fro') or the nuclear ('nuc') norm.")
      .autocast(Cast::None, Cast::Float);
  const char* doc = "A vector norm; a matrix norm when dim names two dimensions or ord a matrix norm.";
  t.composite(
       "linalg::norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? "
       "dtype=None) -> Tensor",
       norm_body)
      .out(OutRule::SameType)
      .doc(doc);
  t.composite(
       "linalg::norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, ScalarType? "
       "dtype=None) -> Tensor",
       norm_name_body)
      .out(OutRule::SameType)
      .doc(doc);
  t.composite("frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", old_frobenius_body)
      .out()
      .out_overload("out")
      .function_only()
      .doc("The Frobenius norm.")
      .autocast(Cast::None, Cast::Float);
  t.composite("nuclear_norm(Tensor self, bool keepdim=False) -> Tensor", old_nuclear_body)
      .out()
      .function_only()
      .doc("The sum of the singular values.")
      .autocast(Cast::None, Cast::Float);
  t.composite("nuclear_norm.dim(Tensor self, int[2] dim, bool keepdim=False) -> Tensor", old_nuclear_dim_body)
      .out()
      .function_only()
      .doc("The sum of the singular values.")
      .autocast(Cast::None, Cast::Float);
  t.composite(
       linalg_powsum,
       "linalg::_powsum(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? "
       "dtype=None) -> Tensor",
       powsum_body)
      .function_only()
      .doc("The sum of powers of magnitudes: a norm without its root.");
  t.composite("linalg::cond(Tensor self, Scalar? p=None) -> Tensor", cond_body)
      .out()
      .doc("The condition number in the norm of order p.")
      .autocast(Cast::Float, Cast::None);
  t.composite("linalg::cond.p_str(Tensor self, str p) -> Tensor", cond_name_body)
      .out()
      .doc("The condition number in the norm of name p.")
      .autocast(Cast::Float, Cast::None);
  t.composite("renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor", renorm_body)
      .inplace()
      .out(OutRule::SameType)
      .doc("Slices along dim, scaled so that no norm exceeds maxnorm.")
      .autocast(Cast::None, Cast::Float)
      .out_apart(kFirst)
      .one_node();
}

}  // namespace rushlight
