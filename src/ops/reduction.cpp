// Sums, means, logic and what autograd needs to undo broadcasting. Products are in reduction_product.cpp,
// extremes in reduction_extreme.cpp, moments and norms in reduction_moment.cpp.
#include "ops/reduction.h"

#include "core/deferred_layout.h"
#include "cpu/reduce.h"
#include "ops/copy.h"
#include "ops/device_loops.h"
#include "ops/factory.h"
#include "ops/operators.h"
#include "ops/reduction_common.h"
#include "ops/register.h"
#include "ops/view.h"

namespace rushlight {

using cpu::ReduceOp;

uint64_t dim_mask(const OptIntList& dim, int64_t ndim, bool empty_means_nothing) {
  RL_CHECK(ndim <= 64, "only tensors with up to 64 dims are supported, got ", ndim);
  const uint64_t everything = ndim == 64 ? ~uint64_t{0} : (uint64_t{1} << ndim) - 1;
  if (!dim || (dim->empty() && !empty_means_nothing)) return everything;
  uint64_t mask = 0;
  for (int64_t d : *dim) {
    const int64_t wrapped = wrap_dim(d, ndim);
    RL_CHECK(!(mask >> wrapped & 1), "dim ", wrapped, " appears multiple times in the list of dims");
    mask |= uint64_t{1} << wrapped;
  }
  return mask & everything;
}

Tensor restore_dims(const Tensor& reduced, uint64_t dims, int64_t ndim, bool keepdim) {
  if (keepdim || !reduced.defined() || ndim == 0 || reduced.dim() == ndim) return reduced;
  Tensor t = reduced;
  for (int64_t d = 0; d < ndim; ++d)
    if (dims >> d & 1) t = ops::unsqueeze(t, d);
  return t;
}

Tensor expand_grad(const Tensor& grad, uint64_t dims, bool keepdim, IntList sizes) {
  return ops::expand(restore_dims(grad, dims, static_cast<int64_t>(sizes.size()), keepdim), sizes);
}

Dims reduced_sizes(const Tensor& self, uint64_t dims, bool keepdim) {
  Dims sizes;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (!(dims >> d & 1))
      sizes.push_back(self->sizes[d]);
    else if (keepdim)
      sizes.push_back(1);
  }
  return sizes;
}

Tensor reduce_dims(ReduceOp op, const Tensor& self, uint64_t dims, bool keepdim, const char* who,
                   const cpu::ReduceParams& params) {
  const Tensor out =
      empty_tensor(reduced_sizes(self, dims, keepdim), cpu::reduced_dtype(op, self.dtype()), self.device());
  loops::reduce(op, self, dims, out, params, who);
  return out;
}

Tensor reduce_all(ReduceOp op, const Tensor& self, const char* who, const cpu::ReduceParams& params) {
  if (self.is_contiguous() && self.numel() <= 8192 &&
      self.is_cpu()) {  // what a scalar loss costs: no nest, no splitting
    const cpu::ReduceKernel& kernel = cpu::reduce_kernel(op, self.dtype(), who);
    const Tensor out = empty_tensor({}, cpu::reduced_dtype(op, self.dtype()), self.device());
    kernel.flat(self.data_ptr(), self.numel(), out.data_ptr(), params);
    return out;
  }
  return reduce_dims(op, self, dim_mask(std::nullopt, self.dim()), false, who, params);
}

Tensor sum_to(const Tensor& t, IntList sizes) {
  if (t.sizes() == sizes) return t;
  const int64_t lead = t.dim() - static_cast<int64_t>(sizes.size());
  Dims dims;
  for (int64_t d = 0; d < t.dim(); ++d)
    if (d < lead || (sizes[d - lead] == 1 && t->sizes[d] != 1)) dims.push_back(d);
  Tensor result = dims.empty() ? t : ops::sum_dim(t, OptIntList(dims), true);
  return lead > 0 ? ops::reshape(result, sizes) : result;
}

Tensor accumulate(ReduceOp op, const Tensor& self, std::optional<uint64_t> dims, bool keepdim, OptDType dtype,
                  const char* who, const cpu::ReduceParams& params) {
  const DType target = dtype.value_or(cpu::reduced_dtype(ReduceOp::Sum, self.dtype()));
  const DType inner = target == DType::Complex32 ? DType::Complex64 : target;
  // Note [Deferred layout conversion]: sums take the elements as they lie.
  const Tensor image = self.has_data() ? self : image_of(self);
  const Tensor x = cpu::reduced_dtype(op, self.dtype()) == inner ? image : to_dtype(image, inner);
  return to_dtype(dims ? reduce_dims(op, x, *dims, keepdim, who, params) : reduce_all(op, x, who, params),
                  target);
}

namespace {

using namespace ops;

Tensor sum_kernel(const Call&, const Tensor& self, OptDType dtype) {
  return accumulate(ReduceOp::Sum, self, std::nullopt, false, dtype, "sum_cpu");
}
Tensor sum_dim_kernel(const Call&, const Tensor& self, const OptIntList& dim, bool keepdim, OptDType dtype) {
  return accumulate(ReduceOp::Sum, self, dim_mask(dim, self.dim()), keepdim, dtype, "sum_cpu");
}

int64_t reduced_count(IntList sizes, uint64_t dims) {
  int64_t n = 1;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (dims >> d & 1) n *= sizes[d];
  return n;
}

Tensor mean_over(const Tensor& self, std::optional<uint64_t> dims, bool keepdim, OptDType dtype) {
  const DType target = dtype.value_or(self.dtype());
  RL_CHECK(is_differentiable(target), "mean(): could not infer output dtype. ",
           dtype ? "Optional dtype must be either a floating point or complex dtype. Got: "
                 : "Input dtype must be either a floating point or complex dtype. Got: ",
           legacy_name(target));
  cpu::ReduceParams params;
  params.divisor = static_cast<double>(dims ? reduced_count(self.sizes(), *dims) : self.numel());
  return accumulate(ReduceOp::Sum, self, dims, keepdim, target, "mean_cpu", params);
}
Tensor mean_kernel(const Call&, const Tensor& self, OptDType dtype) {
  return mean_over(self, std::nullopt, false, dtype);
}
Tensor mean_dim_kernel(const Call&, const Tensor& self, const OptIntList& dim, bool keepdim, OptDType dtype) {
  return mean_over(self, dim_mask(dim, self.dim()), keepdim, dtype);
}

Tensor nansum_kernel(const Call&, const Tensor& self, const OptIntList& dim, bool keepdim, OptDType dtype) {
  RL_CHECK(!is_complex(self.dtype()), "nansum does not support complex inputs");
  const bool has_nan = is_differentiable(dtype.value_or(self.dtype())) && is_differentiable(self.dtype());
  return accumulate(has_nan ? ReduceOp::NanSum : ReduceOp::Sum, self, dim_mask(dim, self.dim()), keepdim,
                    dtype, "nansum_cpu");
}

Tensor nanmean_body(const Call&, const Tensor& self, const OptIntList& dim, bool keepdim, OptDType dtype) {
  RL_CHECK(is_differentiable(self.dtype()),
           "nanmean(): expected input to have floating point or complex dtype but got ",
           legacy_name(self.dtype()));
  const Tensor count = sum_dim(logical_not(isnan(detach(self))), dim, keepdim);
  return nansum(self, dim, keepdim, dtype) / count;
}

Tensor sum_to_size_body(const Call&, const Tensor& self, IntList size) {
  bool fits = static_cast<int64_t>(size.size()) <= self.dim();
  const int64_t lead = self.dim() - static_cast<int64_t>(size.size());
  for (size_t d = 0; fits && d < size.size(); ++d) fits = size[d] == 1 || size[d] == self->sizes[lead + d];
  RL_CHECK(fits, "size {", size, "} is not expandable to size {", self.sizes(), "}.");
  return size.empty() ? sum(self) : sum_to(self, size);
}

Tensor logic(ReduceOp op, const Tensor& self, uint64_t dims, bool keepdim, const char* who) {
  const bool bytes = self.dtype() == DType::UInt8, alone = reduced_count(self.sizes(), dims) == 1;
  // The kernel leaves a single byte as it is, and the result is 0 or 1.
  const bool as_it_is = self.dtype() == DType::Bool || (bytes && !alone);
  const Tensor x = as_it_is ? self : ops::ne(self, wrapped_number(Scalar(int64_t{0})));
  const Tensor result = reduce_dims(op, x, dims, keepdim, who, {});
  return bytes ? to_dtype(result, DType::UInt8) : result;
}
void check_logic_out(const Call& call) {
  RL_CHECK(!call.out || is_bool(call.out->dtype()) || call.out->dtype() == DType::UInt8, call.op.name(),
           " only supports bool tensor for result, got: ", legacy_name(call.out->dtype()));
}
template <ReduceOp op>
Tensor logic_kernel(const Call& call, const Tensor& self) {
  check_logic_out(call);
  return logic(op, self, dim_mask(std::nullopt, self.dim()), false, op == ReduceOp::All ? "all" : "any");
}
template <ReduceOp op>
Tensor logic_dim_kernel(const Call& call, const Tensor& self, int64_t dim, bool keepdim) {
  check_logic_out(call);
  return logic(op, self, dim_mask(IntList(&dim, 1), self.dim()), keepdim,
               op == ReduceOp::All ? "all" : "any");
}
template <ReduceOp op>
Tensor logic_dims_kernel(const Call& call, const Tensor& self, const OptIntList& dim, bool keepdim) {
  check_logic_out(call);
  return logic(op, self, dim_mask(dim, self.dim(), true), keepdim, op == ReduceOp::All ? "all" : "any");
}

Tensor nonzero_marks(const Tensor& self) {
  return is_bool(self.dtype()) ? self : ops::ne(self, wrapped_number(Scalar(int64_t{0})));
}
Tensor count_nonzero_dims_kernel(const Call&, const Tensor& self, IntList dim) {
  return sum_dim(nonzero_marks(self), OptIntList(dim));
}
Tensor count_nonzero_kernel(const Call&, const Tensor& self, OptInt dim) {
  const Tensor marks = nonzero_marks(self);
  return dim ? sum_dim(marks, OptIntList(IntList(&*dim, 1))) : sum(marks);
}

Tensor trace_body(const Call&, const Tensor& self) {
  RL_CHECK(self.dim() == 2, "trace: expected a matrix, but got tensor with dim ", self.dim());
  return sum(diagonal(self, 0, 0, 1));
}

}  // namespace

void register_reduction_operators(Table& t) {
  t.op(sum, "sum(Tensor self, *, ScalarType? dtype=None) -> Tensor", sum_kernel)
      .doc("Sum of all elements. Integers are summed in int64.")
      .family(Family::Reduction)
      .out()
      .on_devices()
      .linear()
      .autocast(Cast::None, Cast::Float)
      .derivative([](Grad g, Shape<0> x) { return expand(g, x.sizes()); });
  t.op(sum_dim,
       "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
       sum_dim_kernel)
      .doc("Sum over the given dimensions; all of them for None or an empty list.")
      .family(Family::Reduction)
      .out()
      .out_overload("IntList_out")
      .on_devices()
      .linear()
      .batching(Batching::Reduction)
      .autocast(Cast::None, Cast::Float)
      .node("SumBackward1")
      .derivative([](Grad g, Shape<0> x, Attr<1, OptIntList> dim, Attr<2, bool> keepdim) {
        return expand_grad(g, dim_mask(dim, x.dim()), keepdim, x.sizes());
      });
  t.op(mean, "mean(Tensor self, *, ScalarType? dtype=None) -> Tensor", mean_kernel)
      .doc("Mean of all elements; the input or dtype= must be floating or complex.")
      .family(Family::Reduction)
      .out()
      .out_overload("dtype_out")
      .on_devices()
      .linear()
      .derivative([](Grad g, Shape<0> x) {
        return expand(g, x.sizes()) / Scalar(static_cast<double>(checked_numel(x.sizes())));
      });
  t.op(mean_dim,
       "mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
       mean_dim_kernel)
      .doc("Mean over the given dimensions.")
      .family(Family::Reduction)
      .out()
      .out_overload("out")
      .on_devices()
      .linear()
      .batching(Batching::Reduction)
      .node("MeanBackward1")
      .derivative([](Grad g, Shape<0> x, Attr<1, OptIntList> dim, Attr<2, bool> keepdim) {
        const uint64_t dims = dim_mask(dim, x.dim());
        return expand_grad(g, dims, keepdim, x.sizes()) /
               Scalar(static_cast<double>(reduced_count(x.sizes(), dims)));
      });
  t.op(nansum,
       "nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
       nansum_kernel)
      .doc("Sum in which NaN counts as zero.")
      .family(Family::Reduction)
      .out()
      .on_devices()
      .batching(Batching::Reduction)
      .derivative([](Grad g, In<0> x, Attr<1, OptIntList> dim, Attr<2, bool> keepdim) {
        return expand_grad(g, dim_mask(dim, x.dim()), keepdim, x.sizes()) * logical_not(isnan(x));
      });
  t.composite(
       nanmean,
       "nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
       nanmean_body)
      .doc("Mean of the elements that are not NaN.")
      .out();
  t.composite(sum_to_size, "sum_to_size(Tensor self, int[] size) -> Tensor", sum_to_size_body)
      .doc("Sum over broadcast dimensions, so that the result has the given size.")
      .method_only();

  const char* logic_reason = "the result is not a floating-point number";
  t.op(all, "all(Tensor self) -> Tensor", logic_kernel<ReduceOp::All>)
      .doc("Whether all elements are true (not zero).")
      .family(Family::Reduction)
      .out()
      .out_overload("all_out")
      .on_devices()
      .not_differentiable(logic_reason);
  t.op(all_dim, "all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
       logic_dim_kernel<ReduceOp::All>)
      .doc("Whether all elements along a dimension are true.")
      .family(Family::Reduction)
      .out()
      .out_overload("out")
      .on_devices()
      .batching(Batching::Dims)
      .not_differentiable(logic_reason);
  t.op(all_dims, "all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
       logic_dims_kernel<ReduceOp::All>)
      .doc("Whether all elements along dimensions are true.")
      .family(Family::Reduction)
      .out()
      .on_devices()
      .batching(Batching::Reduction)
      .not_differentiable(logic_reason);
  t.op(any, "any(Tensor self) -> Tensor", logic_kernel<ReduceOp::Any>)
      .doc("Whether some element is true (not zero).")
      .family(Family::Reduction)
      .out()
      .out_overload("all_out")
      .on_devices()
      .not_differentiable(logic_reason);
  t.op(any_dim, "any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
       logic_dim_kernel<ReduceOp::Any>)
      .doc("Whether some element along a dimension is true.")
      .family(Family::Reduction)
      .out()
      .out_overload("out")
      .on_devices()
      .batching(Batching::Dims)
      .not_differentiable(logic_reason);
  t.op(any_dims, "any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
       logic_dims_kernel<ReduceOp::Any>)
      .doc("Whether some element along dimensions is true.")
      .family(Family::Reduction)
      .out()
      .on_devices()
      .batching(Batching::Reduction)
      .not_differentiable(logic_reason);
  t.op(count_nonzero_dims, "count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor",
       count_nonzero_dims_kernel)
      .doc("Number of elements that are not zero, over dimensions.")
      .family(Family::Reduction)
      .on_devices()
      .batching(Batching::Reduction)
      .not_differentiable("integer output");
  t.op(count_nonzero, "count_nonzero(Tensor self, int? dim=None) -> Tensor", count_nonzero_kernel)
      .doc("Number of elements that are not zero.")
      .family(Family::Reduction)
      .on_devices()
      .not_differentiable("integer output");
  t.composite(trace, "trace(Tensor self) -> Tensor", trace_body)
      .doc("Sum of a matrix's diagonal.")
      .autocast(Cast::Float, Cast::None)
      .one_node();

  register_product_operators(t);
  register_extreme_operators(t);
  register_moment_operators(t);
}

}  // namespace rushlight
