#include "ops/scan.h"

#include <limits>

#include "cpu/scan.h"
#include "device/layers.h"
#include "ops/copy.h"
#include "ops/device_loops.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/index_common.h"
#include "ops/join.h"
#include "ops/operators.h"
#include "ops/reduction.h"
#include "ops/register.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

template <bool product>
Tensor accumulate_kernel(const Call& call, const Tensor& self, int64_t dim, OptDType dtype) {
  if (!dtype && call.out) dtype = call.out->dtype();  // out= and in-place decide what is computed
  const DType target = dtype.value_or(is_integral_or_bool(self.dtype()) ? DType::Int64 : self.dtype());
  if (target == DType::Bool && self.is_cpu() && self.dim() > 0 && self.numel() > 0)
    RL_NOT_IMPLEMENTED("\"", product ? "cumprod" : "cumsum", "_out_cpu\" not implemented for 'Bool'");
  // The bits of sums and products are those of int64, cut to size.
  const bool wide = target == DType::UInt16 || target == DType::UInt32 || target == DType::UInt64;
  const DType computed = wide || target == DType::Bool ? DType::Int64 : target;
  const Tensor x = to_dtype(self, computed);
  const Tensor out = empty_tensor(x.sizes(), computed, x.device());
  const int64_t d = wrap_dim(dim, x.dim());
  if (x.numel() > 0) loops::cumulate(product, x, d, out);
  return to_dtype(out, target);
}

// `out` number `i` must have this dtype: results of scans are not converted.
void check_out_dtype(const Call& call, int i, DType wanted) {
  if (!call.out) return;
  const DType found = call.out[i].dtype();
  RL_CHECK(found == wanted, "expected scalar_type ", legacy_name(wanted), " but found ", legacy_name(found));
}

Tensor logcumsumexp_kernel(const Call& call, const Tensor& self, int64_t dim) {
  const Tensor x = is_integral_or_bool(self.dtype()) ? to_dtype(self, get_default_dtype()) : self;
  check_out_dtype(call, 0, x.dtype());
  const Tensor out = empty_tensor(x.sizes(), x.dtype(), x.device());
  const int64_t d = wrap_dim(dim, x.dim());
  if (x.numel() > 0) cpu::logcumsumexp(x, d, out);
  return out;
}

template <bool largest>
std::tuple<Tensor, Tensor> extreme_kernel(const Call& call, const Tensor& self, int64_t dim) {
  check_out_dtype(call, 0, self.dtype());
  check_out_dtype(call, 1, DType::Int64);
  const Tensor values = empty_tensor(self.sizes(), self.dtype(), self.device());
  const Tensor indices = empty_tensor(self.sizes(), DType::Int64, self.device());
  const int64_t d = wrap_dim(dim, self.dim());
  if (const DeviceLayers* layers = device_layers(self); layers && self.numel() > 0) {
    RL_CHECK_AS(NotImplemented, !is_complex(self.dtype()) && self.dtype() <= DType::Float64, "\"",
                largest ? "cummax" : "cummin", "_cuda\" not implemented for '", legacy_name(self.dtype()),
                "'");
    const auto along = [&](const Tensor& t, int64_t from, int64_t to) {
      return t.dim() ? movedim_int(t, from, to) : t;
    };
    const Tensor x = contiguous(along(self, d, -1));
    const Tensor v = empty_tensor(x.sizes(), x.dtype(), x.device()),
                 at = empty_tensor(x.sizes(), DType::Int64, x.device());
    const int64_t n = x.dim() ? x.size(-1) : 1;
    layers->order.running_extreme({x.device().index(), x.dtype(), x.data_ptr(), x.numel() / n, n}, largest,
                                  v.data_ptr(), at.data<int64_t>());
    return {contiguous(along(v, -1, d)), contiguous(along(at, -1, d))};
  }
  if (self.numel() > 0) cpu::cumulative_extreme(self, d, largest, values, indices);
  return {values, indices};
}

Tensor diff_once(const Tensor& x, int64_t dim) {
  const int64_t n = x.size(dim);
  const Tensor later = narrow(x, dim, std::min<int64_t>(1, n), std::max<int64_t>(0, n - 1));
  const Tensor earlier = narrow(x, dim, 0, std::max<int64_t>(0, n - 1));
  return x.dtype() == DType::Bool ? logical_xor(later, earlier) : later - earlier;
}

Tensor diff_body(const Call&, const Tensor& self, int64_t n, int64_t given_dim, const Tensor& prepend,
                 const Tensor& append) {
  RL_CHECK(self.dim() > 0, "diff expects input to be at least one-dimensional");
  RL_CHECK(n >= 0, "order must be non-negative but got ", n);
  const int64_t dim = wrap_dim(given_dim, self.dim());
  std::vector<Tensor> parts;
  for (const Tensor& part : {prepend, self, append}) {
    if (!part.defined()) continue;
    RL_CHECK(part.dim() == self.dim(), "diff expects prepend or append to be the same dimension as input");
    for (int64_t d = 0; d < self.dim(); ++d)
      RL_CHECK(
          d == dim || part.size(d) == self.size(d),
          "diff expects the shape of tensor to prepend or append to match that of input except along the "
          "differencing dimension; input.size(",
          d, ") = ", self.size(d), ", but got tensor.size(", d, ") = ", part.size(d));
    parts.push_back(part);
  }
  if (n == 0) return clone(self);
  Tensor x = parts.size() > 1 ? cat(parts, dim) : self;
  for (int64_t i = 0; i < n && (i == 0 || x.size(dim) > 0); ++i) x = diff_once(x, dim);
  return x;
}

// --- derivatives ---

Tensor reversed(const Tensor& t, int64_t dim) { return t.dim() == 0 ? t : flip(t, IntList(&dim, 1)); }
Tensor sum_from_the_end(const Tensor& t, int64_t dim) { return reversed(cumsum(reversed(t, dim), dim), dim); }

// Each element's factor is left out of the products that contain it: right to every order of derivatives.
Tensor cumprod_backward_by_products(const Tensor& grad, const Tensor& x, int64_t dim) {
  const int64_t n = x.size(dim);
  std::vector<Tensor> parts;
  Tensor before = ones_like(narrow(x, dim, 0, 1));
  for (int64_t k = 0; k < n; ++k) {
    Tensor without = before;
    if (k + 1 < n)
      without = before *
                cat({ones_like(narrow(x, dim, 0, 1)), cumprod(narrow(x, dim, k + 1, n - k - 1), dim)}, dim);
    parts.push_back(sum_dim(narrow(grad, dim, k, n - k) * conj_of(without), IntList(&dim, 1), true));
    before = before * narrow(x, dim, k, 1);
  }
  return cat(parts, dim);
}

// Only before the first zero can be divided; later products contain it, and of its own it is left out.
Tensor cumprod_backward_with_zeros(const Tensor& grad, const Tensor& x, const Tensor& y, int64_t dim) {
  const Scalar zero(int64_t{0}), one(int64_t{1});
  const Tensor is_zero = rushlight::eq(detach(x), zero), met = cumsum(to_dtype(is_zero, DType::Int64), dim);
  const Tensor first = is_zero & rushlight::eq(met, one), before = rushlight::eq(met, zero);
  const Tensor without = cumprod(rushlight::masked_fill(x, first, one), dim);
  const Tensor at_first = sum_from_the_end(grad * conj_of(without), dim);
  const Tensor quotient =
      sum_from_the_end(grad * conj_of(y), dim) / conj_of(rushlight::masked_fill(x, is_zero, one));
  return rushlight::where(before, quotient, rushlight::where(first, at_first, zero));
}

Tensor cumprod_backward(const Tensor& grad, const Tensor& x, const Tensor& y, int64_t given_dim) {
  if (x.dim() == 0) return grad;
  if (x.numel() == 0) return grad;
  const int64_t dim = wrap_dim(given_dim, x.dim());
  if (!may_have_zeros(x)) return sum_from_the_end(grad * conj_of(y), dim) / conj_of(x);
  const bool again = GradMode::enabled() && x->flags & (kAutograd | kWrapped);  // derivatives of this one
  return again ? cumprod_backward_by_products(grad, x, dim) : cumprod_backward_with_zeros(grad, x, y, dim);
}

// Sums of exp run in the logarithm, for positive and negative gradients apart. The logarithm of no gradient
// is the lowest number, not minus infinity, which would turn into NaN in second derivatives.
Tensor logcumsumexp_backward(const Tensor& grad, const Tensor& x, const Tensor& y, int64_t dim) {
  if (is_complex(grad.dtype())) {
    const Tensor magnitude = log(conj_of(grad));
    return conj_of(exp(reversed(logcumsumexp(reversed(magnitude - y, dim), dim), dim) + x));
  }
  const double lowest = grad.dtype() == DType::Float64   ? std::numeric_limits<double>::lowest()
                        : grad.dtype() == DType::Float16 ? -65504.0
                                                         : std::numeric_limits<float>::lowest();
  const auto part = [&](const Tensor& g) {
    const Tensor flows = g > Scalar(0.0);
    const Tensor magnitude =
        rushlight::where(flows, log(rushlight::where(flows, g, Scalar(1.0))), Scalar(lowest));
    return exp(reversed(logcumsumexp(reversed(magnitude - y, dim), dim), dim) + x);
  };
  return part(grad) - part(-grad);
}

}  // namespace

bool may_have_zeros(const Tensor& x) {
  return !x.has_data() || read_scalar(any(rushlight::eq(detach(x), Scalar(int64_t{0})))).to<bool>();
}

Tensor first_powers(const Tensor& x, int64_t n) {
  const Tensor column = unsqueeze(x, -1);
  Dims sizes = column.sizes().dims();
  sizes.back() = std::min<int64_t>(n, 1);
  const Tensor first = ones_like(expand(column, sizes));
  if (n <= 1) return first;
  sizes.back() = n - 1;
  // Laid out: lines that follow each other run several at a time.
  const Tensor repeated = contiguous(expand(column, sizes), MemoryFormat::Contiguous);
  return cat({first, cumprod(repeated, -1, std::nullopt)}, -1);
}

void register_scan_operators(Table& t) {
  t.op(cumsum, "cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", accumulate_kernel<false>)
      .doc("Running sum along a dimension.")
      .inplace()
      .out()
      .family(Family::Scan)
      .on_devices()
      .linear()
      .batching(Batching::Dims)
      .autocast(Cast::None, Cast::Float)
      .out_apart(kFirst)
      .derivative([](Grad g, Attr<1, int64_t> dim) { return sum_from_the_end(g, dim); });
  t.op(cumprod, "cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", accumulate_kernel<true>)
      .doc("Running product along a dimension.")
      .inplace()
      .out()
      .family(Family::Scan)
      .on_devices()
      .batching(Batching::Dims)
      .autocast(Cast::None, Cast::Float)
      .out_apart(kFirst)
      .derivative([](Grad g, In<0> x, Out<0> y, Attr<1, int64_t> dim) {
        return cumprod_backward(g, to_dtype(x, g.dtype()), y, dim);
      });
  t.op(cummax, "cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)", extreme_kernel<true>)
      .doc("Running maximum along a dimension, and where it was found.")
      .out(OutRule::Disjoint)
      .family(Family::Scan)
      .on_devices()
      .batching(Batching::Dims)
      .derivative([](Grad g, Shape<0> x, Out<1> at, Attr<1, int64_t> dim) {
        return into_zeros(scatter_add, x.sizes(), g, dim, at, g);
      });
  t.op(cummin, "cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)", extreme_kernel<false>)
      .doc("Running minimum along a dimension, and where it was found.")
      .out(OutRule::Disjoint)
      .family(Family::Scan)
      .on_devices()
      .batching(Batching::Dims)
      .derivative([](Grad g, Shape<0> x, Out<1> at, Attr<1, int64_t> dim) {
        return into_zeros(scatter_add, x.sizes(), g, dim, at, g);
      });
  t.op(logcumsumexp, "logcumsumexp(Tensor self, int dim) -> Tensor", logcumsumexp_kernel)
      .doc("Logarithm of the running sum of exponentials along a dimension.")
      .out(OutRule::SameType)
      .family(Family::Scan)
      .batching(Batching::Dims)
      .out_apart(kFirst)
      .derivative([](Grad g, In<0> x, Out<0> y, Attr<1, int64_t> dim) {
        return logcumsumexp_backward(g, x, y, dim);
      });
  t.composite(diff,
              "diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor",
              diff_body)
      .doc("Differences of neighbours along a dimension, n times over.")
      .out(OutRule::SameType)
      .out_apart(kFirst);
}

}  // namespace rushlight
