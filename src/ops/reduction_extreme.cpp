// Maxima and minima, with and without positions.
#include "cpu/scan.h"
#include "ops/copy.h"
#include "ops/device_loops.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/index_common.h"
#include "ops/operators.h"
#include "ops/reduction.h"
#include "ops/reduction_common.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;
using cpu::ReduceOp;

void check_not_empty(const Tensor& self, uint64_t dims, const char* who, bool whole) {
  if (self.numel() > 0) return;
  RL_CHECK(!whole, who,
           "(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim "
           "with the 'dim' argument.");
  for (int64_t d = 0; d < self.dim(); ++d)
    RL_CHECK_INDEX(!(dims >> d & 1) || self->sizes[d] > 0, who, "(): Expected reduction dim ", d,
                   " to have non-zero size.");
}

template <ReduceOp op>
Tensor extreme_dims_kernel(const Call&, const Tensor& self, IntList dim, bool keepdim) {
  const char* who = op == ReduceOp::Max ? "amax" : "amin";
  const uint64_t dims = dim_mask(OptIntList(dim), self.dim());
  check_not_empty(self, dims, who, dim.empty());
  return reduce_dims(op, self, dims, keepdim, op == ReduceOp::Max ? "max_values_cpu" : "min_values_cpu", {});
}

template <ReduceOp op>
Tensor extreme_all_kernel(const Call&, const Tensor& self) {
  check_not_empty(self, 0, op == ReduceOp::Max ? "max" : "min", true);
  return reduce_all(op, self, op == ReduceOp::Max ? "max_all" : "min_all", {});
}

std::tuple<Tensor, Tensor> extreme_along(const Tensor& self, int64_t given_dim, bool keepdim, bool largest,
                                         const char* who) {
  const int64_t dim = wrap_dim(given_dim, self.dim());
  RL_CHECK(!is_complex(self.dtype()), who, "(): does not support complex input");
  const uint64_t dims = dim_mask(IntList(&dim, 1), self.dim());
  check_not_empty(self, dims, who, false);
  const Dims kept = reduced_sizes(self, dims, true);
  const Tensor values = empty_tensor(kept, self.dtype(), self.device()),
               indices = empty_tensor(kept, DType::Int64, self.device());
  if (values.numel() > 0) loops::arg_extreme(self, dim, largest, values, indices);
  if (!keepdim) {
    const Dims sizes = reduced_sizes(self, dims, false);
    values->set_contiguous(sizes), indices->set_contiguous(sizes);
  }
  return {values, indices};
}
std::tuple<Tensor, Tensor> max_dim_kernel(const Call&, const Tensor& self, int64_t dim, bool keepdim) {
  return extreme_along(self, dim, keepdim, true, "max");
}
std::tuple<Tensor, Tensor> min_dim_kernel(const Call&, const Tensor& self, int64_t dim, bool keepdim) {
  return extreme_along(self, dim, keepdim, false, "min");
}

template <bool largest>
Tensor arg_kernel(const Call&, const Tensor& self, OptInt dim, bool keepdim) {
  const char* who = largest ? "argmax" : "argmin";
  RL_CHECK(self.dtype() != DType::Bool, who, "(): does not support bool input");
  RL_CHECK(!is_complex(self.dtype()), who, "(): does not support complex input");
  if (dim) return std::get<1>(extreme_along(self, *dim, keepdim, largest, who));
  RL_CHECK_INDEX(self.numel() > 0, who, "(): Expected reduction dim to be specified for input.numel() == 0.");
  const Tensor flat = dense(self);
  const Tensor line = make_view(flat, {flat.numel()}, {1}, flat.storage_offset(), false);
  const Tensor position = std::get<1>(extreme_along(line, 0, false, largest, who));
  if (keepdim) position->set_contiguous(Dims(self.sizes().size(), 1));
  return position;
}

std::tuple<Tensor, Tensor> aminmax_kernel(const Call&, const Tensor& self, OptInt dim, bool keepdim) {
  uint64_t dims = dim_mask(std::nullopt, self.dim());
  if (dim) dims = dim_mask(IntList(&*dim, 1), self.dim());
  check_not_empty(self, dims, "aminmax", !dim);
  return {reduce_dims(ReduceOp::Min, self, dims, keepdim, "aminmax_cpu", {}),
          reduce_dims(ReduceOp::Max, self, dims, keepdim, "aminmax_cpu", {})};
}

Tensor max_other_body(const Call&, const Tensor& self, const Tensor& other) { return maximum(self, other); }
Tensor min_other_body(const Call&, const Tensor& self, const Tensor& other) { return minimum(self, other); }

// --- derivatives ---

// The gradient goes to all elements that equal the extreme, in equal shares; `y` and `g` keep the reduced
// dimensions.
Tensor share_gradient(const Tensor& g, const Tensor& hits, uint64_t dims) {
  Dims list;
  for (int64_t d = 0; d < hits.dim(); ++d)
    if (dims >> d & 1) list.push_back(d);
  const Tensor count = list.empty() ? to_dtype(hits, DType::Int64) : sum_dim(hits, OptIntList(list), true);
  return g * hits / count;
}
Tensor extreme_backward(const Tensor& g, const Tensor& x, const Tensor& y, uint64_t dims, bool keepdim) {
  const Tensor hits = ops::eq(x, restore_dims(y, dims, x.dim(), keepdim));
  return share_gradient(restore_dims(g, dims, x.dim(), keepdim), hits, dims);
}
// Of all elements; a NaN that is the result gets the gradient.
Tensor whole_extreme_backward(const Tensor& g, const Tensor& x, const Tensor& y) {
  return share_gradient(g, ops::eq(x, y) | (isnan(x) & isnan(y)), dim_mask(std::nullopt, x.dim()));
}

}  // namespace

Tensor selected_backward(const Tensor& g, IntList sizes, const Tensor& at, int64_t dim, bool keepdim) {
  const auto n = static_cast<int64_t>(sizes.size());
  if (n == 0) return g;
  const int64_t d = wrap_dim(dim, n);
  return into_zeros(scatter_src, sizes, g, d, keepdim ? at : unsqueeze(at, d), keepdim ? g : unsqueeze(g, d));
}

void register_extreme_operators(Table& t) {
  t.op(amax, "amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
       extreme_dims_kernel<ReduceOp::Max>)
      .doc("Maximum over dimensions.")
      .family(Family::Reduction)
      .out(OutRule::Disjoint)
      .on_devices()
      .batching(Batching::Reduction)
      .derivative([](Grad g, In<0> x, Attr<1, IntList> dim, Attr<2, bool> keepdim, Out<0> y) {
        return extreme_backward(g, x, y, dim_mask(OptIntList(*dim), x.dim()), keepdim);
      });
  t.op(amin, "amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
       extreme_dims_kernel<ReduceOp::Min>)
      .doc("Minimum over dimensions.")
      .family(Family::Reduction)
      .out(OutRule::Disjoint)
      .on_devices()
      .batching(Batching::Reduction)
      .derivative([](Grad g, In<0> x, Attr<1, IntList> dim, Attr<2, bool> keepdim, Out<0> y) {
        return extreme_backward(g, x, y, dim_mask(OptIntList(*dim), x.dim()), keepdim);
      });
  t.op(aminmax, "aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
       aminmax_kernel)
      .doc("Minimum and maximum.")
      .family(Family::Reduction)
      .out(OutRule::Disjoint)
      .on_devices()
      .derivative([](GradOf<0> low, GradOf<1> high, In<0> x, Attr<1, OptInt> dim, Attr<2, bool> keepdim,
                     Out<0> y0, Out<1> y1) {
        const uint64_t dims = dim_mask(*dim ? OptIntList(IntList(&**dim, 1)) : std::nullopt, x.dim());
        Tensor total;
        if (low.defined()) total = extreme_backward(low, x, y0, dims, keepdim);
        if (high.defined()) {
          const Tensor part = extreme_backward(high, x, y1, dims, keepdim);
          total = total.defined() ? total + part : part;
        }
        return total;
      });
  t.op(max, "max(Tensor self) -> Tensor", extreme_all_kernel<ReduceOp::Max>)
      .doc("Maximum of all elements.")
      .family(Family::Reduction)
      .out()
      .out_overload("unary_out")
      .on_devices()
      .out_apart(kAllOperands)
      .node("MaxBackward1")
      .derivative([](Grad g, In<0> x, Out<0> y) { return whole_extreme_backward(g, x, y); });
  t.composite(max_other, "max.other(Tensor self, Tensor other) -> Tensor", max_other_body)
      .doc("Element-wise maximum.")
      .out()
      .out_overload("out")
      .out_apart(kAllOperands);
  t.op(max_dim, "max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
       max_dim_kernel)
      .doc("Maximum along a dimension, and where it is.")
      .family(Family::Reduction)
      .out(OutRule::Disjoint)
      .out_overload("dim_max(max, max_values)")
      .on_devices()
      .batching(Batching::Dims)
      .out_apart(kAllOperands)
      .derivative([](Grad g, Shape<0> x, Out<1> at, Attr<1, int64_t> dim, Attr<2, bool> keepdim) {
        return selected_backward(g, x.sizes(), at, dim, keepdim);
      });
  t.op(min, "min(Tensor self) -> Tensor", extreme_all_kernel<ReduceOp::Min>)
      .doc("Minimum of all elements.")
      .family(Family::Reduction)
      .out()
      .out_overload("unary_out")
      .on_devices()
      .out_apart(kAllOperands)
      .node("MinBackward1")
      .derivative([](Grad g, In<0> x, Out<0> y) { return whole_extreme_backward(g, x, y); });
  t.composite(min_other, "min.other(Tensor self, Tensor other) -> Tensor", min_other_body)
      .doc("Element-wise minimum.")
      .out()
      .out_overload("out")
      .out_apart(kAllOperands);
  t.op(min_dim, "min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
       min_dim_kernel)
      .doc("Minimum along a dimension, and where it is.")
      .family(Family::Reduction)
      .out(OutRule::Disjoint)
      .out_overload("dim_min(min, min_indices)")
      .on_devices()
      .batching(Batching::Dims)
      .out_apart(kAllOperands)
      .derivative([](Grad g, Shape<0> x, Out<1> at, Attr<1, int64_t> dim, Attr<2, bool> keepdim) {
        return selected_backward(g, x.sizes(), at, dim, keepdim);
      });
  t.op(argmax, "argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", arg_kernel<true>)
      .doc("Position of the maximum, in the flattened tensor without dim.")
      .family(Family::Reduction)
      .out(OutRule::Disjoint)
      .on_devices()
      .not_differentiable("integer output");
  t.op(argmin, "argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", arg_kernel<false>)
      .doc("Position of the minimum, in the flattened tensor without dim.")
      .family(Family::Reduction)
      .out(OutRule::Disjoint)
      .on_devices()
      .not_differentiable("integer output");
}

}  // namespace rushlight
