// sort, topk and single order statistics. Searching and counting are in sort_search.cpp, distinct values in
// sort_unique.cpp.
#include "ops/sort.h"

#include <cmath>
#include <limits>

#include "autograd/lone_base.h"
#include "cpu/sort.h"
#include "device/layers.h"
#include "ops/copy.h"
#include "ops/device_loops.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/index_common.h"
#include "ops/operators.h"
#include "ops/read_element.h"
#include "ops/reduction.h"
#include "ops/reduction_common.h"
#include "ops/register.h"
#include "ops/sort_common.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;
using cpu::Select;
static_assert(static_cast<int>(LineSelect::Kth) == static_cast<int>(Select::Kth) &&
              static_cast<int>(LineSelect::Median) == static_cast<int>(Select::Median) &&
              static_cast<int>(LineSelect::NanMedian) == static_cast<int>(Select::NanMedian) &&
              static_cast<int>(LineSelect::Mode) == static_cast<int>(Select::Mode));

// What devices order.
bool is_real_number(DType t) { return !is_complex(t) && t <= DType::Float64; }

// A dimension as lines that a device's loops take; `in` keeps their memory.
struct Lines {
  Tensor in;
  DeviceLines plan;
  Lines(const Tensor& self, int64_t dim, const char* who)
      : in(contiguous(self.dim() ? movedim_int(self, dim, -1) : self)) {
    RL_CHECK_AS(NotImplemented, is_real_number(self.dtype()), "\"", who, "\" not implemented for '",
                legacy_name(self.dtype()), "'");
    const int64_t n = self.dim() ? in.size(-1) : 1;
    plan = {self.device().index(), self.dtype(), in.data_ptr(), in.numel() / n, n};
  }
};
// run(values, indices) writes lines of n elements into the two, which lie along `dim` of what it gets.
template <class Run>
void run_along(const Tensor& values, const Tensor& indices, int64_t dim, Run&& run) {
  if (values.dim() == 0 || (dim == values.dim() - 1 && values.is_contiguous() && indices.is_contiguous()))
    return run(values.data_ptr(), indices.data<int64_t>());
  const auto lines = [&](const Tensor& t) {
    return empty_tensor(movedim_int(t, dim, -1).sizes(), t.dtype(), t.device());
  };
  const Tensor v = lines(values), i = lines(indices);
  run(v.data_ptr(), i.data<int64_t>());
  loops::copy(values, movedim_int(v, -1, dim));
  loops::copy(indices, movedim_int(i, -1, dim));
}

std::tuple<Tensor, Tensor> sorted(const Tensor& self, int64_t dim, bool descending, bool stable) {
  const Tensor values = empty_like_tensor(self, self.dtype()),
               indices = empty_like_tensor(self, DType::Int64);
  const int64_t d = wrap_dim(dim, self.dim());
  RL_CHECK(!is_complex(self.dtype()), self.device().is_cuda()
                                          ? "Sort currently does not support complex dtypes on CUDA."
                                          : " Sort does not support complex dtypes on CPU");
  if (self.numel() == 0) return {values, indices};
  if (const DeviceLayers* layers = device_layers(self)) {
    const Lines lines(self, d, "sort");
    run_along(values, indices, d,
              [&](void* v, int64_t* i) { layers->order.sort(lines.plan, descending, v, i); });
  } else {
    cpu::sort(self, d, descending, stable, values, indices);
  }
  return {values, indices};
}
// As the positions of `sorted`; on a device nothing else is written.
Tensor positions_sorted(const Tensor& self, int64_t dim, bool descending, bool stable) {
  const DeviceLayers* layers = device_layers(self);
  if (!layers || self.numel() == 0 || is_complex(self.dtype()))
    return std::get<1>(sorted(self, dim, descending, stable));
  const int64_t d = wrap_dim(dim, self.dim());
  const Lines lines(self, d, "sort");
  const Tensor order = empty_tensor(lines.in.sizes(), DType::Int64, self.device());
  layers->order.sort(lines.plan, descending, nullptr, order.data<int64_t>());
  return self.dim() ? contiguous(movedim_int(order, -1, d)) : order;
}
std::tuple<Tensor, Tensor> sort_kernel(const Call&, const Tensor& self, int64_t dim, bool descending) {
  return sorted(self, dim, descending, false);
}
std::tuple<Tensor, Tensor> sort_stable_kernel(const Call&, const Tensor& self, std::optional<bool> stable,
                                              int64_t dim, bool descending) {
  return sorted(self, dim, descending, stable.value_or(false));
}
Tensor argsort_kernel(const Call&, const Tensor& self, int64_t dim, bool descending) {
  return positions_sorted(self, dim, descending, false);
}
Tensor argsort_stable_kernel(const Call&, const Tensor& self, bool stable, int64_t dim, bool descending) {
  return positions_sorted(self, dim, descending, stable);
}
Tensor msort_body(const Call&, const Tensor& self) { return std::get<0>(sort(self, 0)); }

std::tuple<Tensor, Tensor> topk_kernel(const Call&, const Tensor& self, int64_t k, int64_t given_dim,
                                       bool largest, bool in_order) {
  const int64_t dim = wrap_dim(given_dim, self.dim()), n = self.dim() ? self->sizes[dim] : 1;
  RL_CHECK(!is_complex(self.dtype()), "topk does not support complex dtypes, got ", describe(self));
  RL_CHECK(k >= 0 && k <= n, "selected index k out of range");
  Dims sizes = self->sizes;
  if (!sizes.empty()) sizes[dim] = k;
  const Tensor values = empty_tensor(sizes, self.dtype(), self.device()),
               indices = empty_tensor(sizes, DType::Int64, self.device());
  if (const DeviceLayers* layers = device_layers(self); layers && values.numel() > 0 && k > 0) {
    const Lines lines(self, dim, "topk");
    run_along(values, indices, dim,
              [&](void* v, int64_t* i) { layers->order.top(lines.plan, k, largest, v, i); });
    return {values, indices};
  }
  if (self.dim() == 0) k = 1;  // a tensor of no dimensions has its one element kept, also for k = 0
  if (values.numel() > 0 && k > 0) cpu::topk(self, dim, k, largest, in_order, values, indices);
  return {values, indices};
}

std::tuple<Tensor, Tensor> select_along(Select what, const Tensor& self, int64_t given_dim, int64_t k,
                                        bool keepdim, const char* who) {
  const int64_t dim = wrap_dim(given_dim, self.dim());
  const uint64_t dims = dim_mask(IntList(&dim, 1), self.dim());
  if (self.dim() > 0)
    RL_CHECK_INDEX(self->sizes[dim] > 0 || self.numel() > 0, who, "(): Expected reduction dim ", dim,
                   " to have non-zero size.");
  const Dims kept = reduced_sizes(self, dims, true);
  const Tensor values = empty_tensor(kept, self.dtype(), self.device()),
               indices = empty_tensor(kept, DType::Int64, self.device());
  if (const DeviceLayers* layers = device_layers(self); layers && values.numel() > 0) {
    const Lines lines(self, dim, who);
    layers->order.select(lines.plan, static_cast<LineSelect>(what), k - 1, values.data_ptr(),
                         indices.data<int64_t>());
  } else if (values.numel() > 0 && self.is_cpu()) {
    cpu::select(what, self, dim, k, values, indices);
  }
  if (!keepdim) {
    const Dims sizes = reduced_sizes(self, dims, false);
    values->set_contiguous(sizes), indices->set_contiguous(sizes);
  }
  return {values, indices};
}

std::tuple<Tensor, Tensor> kthvalue_kernel(const Call&, const Tensor& self, int64_t k, int64_t given_dim,
                                           bool keepdim) {
  const int64_t dim = wrap_dim(given_dim, self.dim()), n = self.dim() ? self->sizes[dim] : 1;
  RL_CHECK_INDEX(n > 0, "kthvalue(): Expected reduction dim ", dim, " to have non-zero size.");
  RL_CHECK(k >= 1 && k <= n, "kthvalue(): selected number k out of range for dimension ", dim);
  return select_along(Select::Kth, self, dim, k, keepdim, "kthvalue");
}
template <Select what>
std::tuple<Tensor, Tensor> select_dim_kernel(const Call&, const Tensor& self, int64_t dim, bool keepdim) {
  return select_along(what, self, dim, 0, keepdim, what == Select::Mode ? "mode" : "median");
}
template <Select what>
Tensor median_all_kernel(const Call&, const Tensor& self) {
  if (self.device().is_meta()) return empty_tensor({}, self.dtype(), self.device());
  const Tensor x = contiguous(self);
  if (x.numel() == 0) {
    // What NaN becomes as an integer: the least one, of 32 bits at least.
    const int64_t least = self.dtype() == DType::Int32 ? INT32_MIN : INT64_MIN;
    const bool has_nan = is_floating(self.dtype()) || is_complex(self.dtype());
    return scalar_tensor_of(has_nan ? Scalar(std::nan("")) : Scalar(least), self.dtype(), self.device());
  }
  const Tensor line = make_view(x, {x.numel()}, {1}, x.storage_offset(), false);
  return std::get<0>(select_along(what, line, 0, 0, false, "median"));
}

// The gradient goes to the elements that equal the median, in equal shares.
Tensor median_backward(const Tensor& g, const Tensor& x, const Tensor& y) {
  const Tensor hits = ops::eq(x, y) | (isnan(x) & isnan(y));
  return hits * (g / sum(hits));
}

// --- quantiles: composites on sort, so that derivatives follow ---

Tensor interpolated(const Tensor& below, const Tensor& above, const Tensor& fraction, std::string_view how) {
  if (how == "midpoint") return (below + above) / Scalar(2.0);
  return lerp(below, above, fraction);
}

void check_fractions(const Tensor& given, const char* who) {
  for (int64_t i = 0; i < given.numel() && given.is_cpu(); ++i) {
    const double f = read_element(given, i).to_double();
    RL_CHECK(f >= 0 && f <= 1, who, "() q must be in the range [0, 1] but got ", f);
  }
}

// Whether two selections can stand for a sort: of one rank on long lines, where nobody takes note of calls.
bool selects(const Tensor& x, const Tensor& fractions) {
  constexpr int64_t kLong = 256;
  return fractions.numel() == 1 && x.is_cpu() && fractions.is_cpu() && x.numel() > 0 && x.size(-1) >= kLong &&
         !dispatch_state.always && !dispatch_state.level &&
         !((detail::flags_of(x) | detail::flags_of(fractions)) & dispatch_state.consider);
}

// The quantile of each line [..., 1] at `rank`, which is NaN where the line has one.
Tensor selected_quantile(const Tensor& x, const Tensor& rank, std::string_view how) {
  const double at = read_scalar(dense(rank), 0).to_double();
  const auto low = static_cast<int64_t>(at), high = static_cast<int64_t>(std::ceil(at));
  Tensor result = std::get<0>(kthvalue(x, low + 1, -1, true));
  if (high > low && (how == "linear" || how == "midpoint"))
    result = interpolated(result, std::get<0>(kthvalue(x, high + 1, -1, true)), rank - floor(rank), how);
  return rushlight::masked_fill(result, isnan(amax(x, IntList{-1}, true)),
                                Scalar(std::numeric_limits<double>::quiet_NaN()));
}

Tensor quantile_of(const Tensor& self, const Tensor& q, OptInt given_dim, bool keepdim, std::string_view how,
                   bool skip_nan, bool in_range = false) {
  const char* who = skip_nan ? "nanquantile" : "quantile";
  RL_CHECK(self.numel() > 0, who, "() input tensor must be non-empty");
  RL_CHECK(q.dim() <= 1, who, "() q must be a scalar or 1D tensor");
  RL_CHECK(self.dtype() == DType::Float32 || self.dtype() == DType::Float64, who,
           "() input tensor must be either float or double dtype");
  RL_CHECK(q.dtype() == self.dtype() || q.is_wrapped_number(), who,
           "() q tensor must be same dtype as the input tensor");
  RL_CHECK(how == "linear" || how == "lower" || how == "higher" || how == "midpoint" || how == "nearest", who,
           "() interpolation must be one of linear, lower, higher, midpoint or nearest, but got ", how);
  Tensor fractions = to_dtype(q, self.dtype());
  // A number is looked at as it came: in a graph the tensor made of it has no value.
  if (!in_range) check_fractions(q.is_wrapped_number() ? q : dense(ops::detach(fractions)), who);
  if (q.dim() == 0) fractions = to(fractions, std::nullopt, self.device(), false, false, std::nullopt);
  const int64_t dim = given_dim ? wrap_dim(*given_dim, self.dim()) : 0;
  Tensor x = given_dim ? (self.dim() ? movedim_int(self, dim, -1) : reshape(self, {1})) : reshape(self, {-1});
  const bool selecting = !skip_nan && selects(x, fractions);
  if (!selecting) x = std::get<0>(sort(x, -1));
  // Ranks: one row of lines per q, [..., q].
  const int64_t n = x.size(-1);
  Tensor last = skip_nan
                    ? to_dtype(sum_dim(logical_not(isnan(ops::detach(x))), OptIntList(IntList{-1}), true),
                               self.dtype()) -
                          Scalar(1.0)
                    : full({1}, Scalar(n - 1), self.dtype(), std::nullopt, self.device());
  last = clamp_min(last, Scalar(0.0));
  Tensor rank = reshape(fractions, {-1}) * last;
  if (how == "lower") rank = floor(rank);
  if (how == "higher") rank = ceil(rank);
  if (how == "nearest") rank = round(rank, 0);
  Tensor result;
  if (selecting) {
    result = selected_quantile(x, rank, how);
  } else {
    Dims wanted = x->sizes;
    wanted.back() = fractions.numel();
    rank = expand(rank, wanted);
    // NaN sorts last: one in a line makes its quantiles NaN.
    if (!skip_nan)
      rank = rushlight::masked_fill(rank, isnan(narrow(ops::detach(x), -1, n - 1, 1)), Scalar(n - 1));
    const Tensor low = to_dtype(rank, DType::Int64), high = to_dtype(ceil(rank), DType::Int64);
    result = gather(x, -1, low);
    if (how == "linear" || how == "midpoint")
      result = interpolated(result, gather(x, -1, high), rank - floor(rank), how);
  }
  // [..., q] without `dim`, to q first.
  Dims sizes;
  if (given_dim && self.dim() > 0) {
    result = movedim_int(result, -1, 0);
    if (keepdim) result = unsqueeze(result, dim + 1);
  } else {
    sizes.push_back(fractions.numel());
    if (keepdim) sizes.resize(static_cast<size_t>(self.dim()) + 1, 1);
    result = reshape(result, sizes);
  }
  if (q.dim() == 0) result = squeeze_dim(result, 0);
  if (has_lone_base(result)) leave_base(result);  // no view of anything, to the program
  return result;
}
Tensor quantile_body(const Call&, const Tensor& self, const Tensor& q, OptInt dim, bool keepdim,
                     std::string_view how) {
  return quantile_of(self, q, dim, keepdim, how, false);
}
Tensor nanquantile_body(const Call&, const Tensor& self, const Tensor& q, OptInt dim, bool keepdim,
                        std::string_view how) {
  return quantile_of(self, q, dim, keepdim, how, true);
}

// On the device of self, so that a meta result has its shape.
Tensor fraction_of(double q, const Tensor& self) {
  RL_CHECK(q >= 0 && q <= 1, "quantile() q must be in the range [0, 1] but got ", q);
  return scalar_tensor_of(Scalar(q), self.dtype(), self.device());
}
Tensor quantile_scalar_body(const Call&, const Tensor& self, double q, OptInt dim, bool keepdim,
                            std::string_view how) {
  return quantile_of(self, fraction_of(q, self), dim, keepdim, how, false, true);
}
Tensor nanquantile_scalar_body(const Call&, const Tensor& self, double q, OptInt dim, bool keepdim,
                               std::string_view how) {
  return quantile_of(self, fraction_of(q, self), dim, keepdim, how, true, true);
}

Tensor sort_backward(const Tensor& g, const Tensor& at, IntList sizes, int64_t dim) {
  return sizes.size() == 0 ? g : into_zeros(scatter_src, sizes, g, dim, at, g);
}

}  // namespace

void register_sort_operators(Table& t) {
  t.op(sort_stable,
       "sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, "
       "Tensor indices)",
       sort_stable_kernel)
      .doc("Sorts along a dimension; equal elements keep their order.")
      .out(OutRule::SameType)
      .out_overload("values_stable")
      .family(Family::Scan)
      .on_devices()
      .batching(Batching::Dims)
      .node("SortBackward1")
      .derivative([](Grad g, Out<1> at, Shape<0> x, Attr<2, int64_t> dim) {
        return sort_backward(g, at, x.sizes(), dim);
      });
  t.op(sort, "sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
       sort_kernel)
      .doc("Sorts along a dimension; NaN counts as the greatest.")
      .out(OutRule::SameType)
      .out_overload("values")
      .family(Family::Scan)
      .on_devices()
      .batching(Batching::Dims)
      .derivative([](Grad g, Out<1> at, Shape<0> x, Attr<1, int64_t> dim) {
        return sort_backward(g, at, x.sizes(), dim);
      });
  t.op(argsort_stable,
       "argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor",
       argsort_stable_kernel)
      .doc("The positions that sort a dimension.")
      .out()
      .family(Family::Scan)
      .on_devices()
      .batching(Batching::Dims)
      .not_differentiable("integer output");
  t.op(argsort, "argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor", argsort_kernel)
      .doc("The positions that sort a dimension.")
      .family(Family::Scan)
      .on_devices()
      .batching(Batching::Dims)
      .not_differentiable("integer output");
  t.composite(msort, "msort(Tensor self) -> Tensor", msort_body)
      .doc("Sorts along the first dimension.")
      .out(OutRule::Disjoint)
      .out_accumulates();
  t.op(topk,
       "topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor "
       "indices)",
       topk_kernel)
      .doc("The k greatest (or smallest) elements along a dimension.")
      .out(OutRule::Disjoint)
      .out_overload("values")
      .family(Family::Scan)
      .on_devices()
      .batching(Batching::Dims)
      .derivative([](Grad g, Out<1> at, Shape<0> x, Attr<2, int64_t> dim) {
        return sort_backward(g, at, x.sizes(), dim);
      });
  t.op(kthvalue,
       "kthvalue(Tensor self, int k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
       kthvalue_kernel)
      .doc("The k-th smallest element along a dimension.")
      .out(OutRule::Disjoint)
      .out_overload("values")
      .family(Family::Scan)
      .on_devices()
      .batching(Batching::Dims)
      .derivative([](Grad g, Out<1> at, Shape<0> x, Attr<2, int64_t> dim, Attr<3, bool> keepdim) {
        return selected_backward(g, x.sizes(), at, dim, keepdim);
      });
  t.op(median, "median(Tensor self) -> Tensor", median_all_kernel<Select::Median>)
      .doc("The lower median of all elements.")
      .family(Family::Scan)
      .on_devices()
      .derivative([](Grad g, In<0> x, Out<0> y) { return median_backward(g, x, y); });
  t.op(median_dim, "median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
       select_dim_kernel<Select::Median>)
      .doc("The lower median along a dimension.")
      .out(OutRule::Disjoint)
      .out_overload("dim_values")
      .family(Family::Scan)
      .on_devices()
      .batching(Batching::Dims)
      .node("MedianBackward1")
      .derivative([](Grad g, Out<1> at, Shape<0> x, Attr<1, int64_t> dim, Attr<2, bool> keepdim) {
        return selected_backward(g, x.sizes(), at, dim, keepdim);
      });
  t.op(nanmedian, "nanmedian(Tensor self) -> Tensor", median_all_kernel<Select::NanMedian>)
      .doc("The lower median of the elements that are not NaN.")
      .family(Family::Scan)
      .on_devices()
      .derivative([](Grad g, In<0> x, Out<0> y) { return median_backward(g, x, y); });
  t.op(nanmedian_dim,
       "nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
       select_dim_kernel<Select::NanMedian>)
      .doc("The lower median along a dimension without NaN.")
      .out(OutRule::Disjoint)
      .out_overload("dim_values")
      .family(Family::Scan)
      .on_devices()
      .batching(Batching::Dims)
      .node("NanmedianBackward1")
      .derivative([](Grad g, Out<1> at, Shape<0> x, Attr<1, int64_t> dim, Attr<2, bool> keepdim) {
        return selected_backward(g, x.sizes(), at, dim, keepdim);
      });
  t.op(mode, "mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
       select_dim_kernel<Select::Mode>)
      .doc("The most frequent element along a dimension.")
      .out(OutRule::Disjoint)
      .out_overload("values")
      .family(Family::Scan)
      .on_devices()
      .batching(Batching::Dims)
      .derivative([](Grad g, Out<1> at, Shape<0> x, Attr<1, int64_t> dim, Attr<2, bool> keepdim) {
        return selected_backward(g, x.sizes(), at, dim, keepdim);
      });
  t.composite(quantile,
              "quantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str "
              "interpolation='linear') -> Tensor",
              quantile_body)
      .doc("The q-th quantiles of all elements or along a dimension.")
      .out(OutRule::SameType)
      .autocast(Cast::Float, Cast::None)
      .numbers(Numbers::Mixed);
  t.composite(nanquantile,
              "nanquantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str "
              "interpolation='linear') -> Tensor",
              nanquantile_body)
      .doc("Quantiles that ignore NaN.")
      .out(OutRule::SameType)
      .autocast(Cast::Float, Cast::None)
      .numbers(Numbers::Mixed);
  t.composite(
       "quantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str "
       "interpolation='linear') -> Tensor",
       quantile_scalar_body)
      .doc("The q-th quantile of all elements or along a dimension.")
      .out(OutRule::SameType)
      .autocast(Cast::Float, Cast::None)
      .numbers(Numbers::Mixed);
  t.composite(
       "nanquantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str "
       "interpolation='linear') -> Tensor",
       nanquantile_scalar_body)
      .doc("The q-th quantile without NaN.")
      .out(OutRule::SameType)
      .autocast(Cast::Float, Cast::None)
      .numbers(Numbers::Mixed);
  register_search_operators(t);
  register_histogram_operators(t);
  register_unique_operators(t);
}

}  // namespace rushlight
