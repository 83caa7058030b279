// gather and scatter: an index tensor names one position along a dimension for each of its elements.
#include "cpu/index.h"
#include "dispatch/warning.h"
#include "ops/copy.h"
#include "ops/device_loops.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/index_common.h"
#include "ops/join.h"
#include "ops/operators.h"
#include "ops/reduction.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;
using cpu::ScatterOp;

void check_positions(const Tensor& index, int64_t dim, int64_t size) {
  if (!index.is_cpu()) return;  // on a device the kernel looks
  Dims sizes = index->sizes;    // an expanded index repeats itself: look at each number once
  for (size_t d = 0; d < sizes.size(); ++d)
    if (index->strides[d] == 0 && sizes[d] > 1) sizes[d] = 1;
  const Tensor positions = dense(make_view(index, sizes, index.strides(), index.storage_offset(), false));
  const int64_t* p = positions.data<int64_t>();
  const int64_t count = positions.numel();
  const bool outside = !cpu::all_within(p, count, size);
  for (int64_t i = 0; outside && i < count; ++i)
    RL_CHECK(p[i] >= 0 && p[i] < size, "index ", p[i], " is out of bounds for dimension ", dim, " with size ",
             size);
}

Tensor line_positions(const Tensor& index, const char* who) {
  RL_CHECK(index.dtype() == DType::Int64 || index.dtype() == DType::Int32, who,
           "(): Expected dtype int32/int64 for index, got ", dtype_name(index.dtype()));
  return to_dtype(at_least_vector(index), DType::Int64);
}

Tensor gather_kernel(const Call&, const Tensor& given, int64_t given_dim, const Tensor& given_index, bool) {
  const int64_t dim = wrap_dim(given_dim, given.dim());
  const Tensor out = empty_tensor(given_index.sizes(), given.dtype(), given.device());
  if (given_index.numel() == 0) return out;
  require_data_beside(given, given_index, "gather");
  const Tensor index = line_positions(given_index, "gather"), self = at_least_vector(given);
  RL_CHECK(index.dim() == self.dim(), "Index tensor must have the same number of dimensions as input tensor");
  for (int64_t d = 0; d < index.dim(); ++d)
    RL_CHECK(d == dim || index->sizes[d] <= self->sizes[d], "Size does not match at dimension ", d,
             " expected index ", index.sizes(), " to be no larger than self ", self.sizes(),
             " apart from dimension ", dim);
  if (!loops::gather(self, dim, index, at_least_vector(out))) check_positions(index, dim, self->sizes[dim]);
  return out;
}

// Shape checks shared by all scatters; `src` may be undefined.
void check_scatter(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  RL_CHECK(index.dim() == self.dim(), "Index tensor must have the same number of dimensions as self tensor");
  RL_CHECK(!src.defined() || index.dim() == src.dim(),
           "Index tensor must have the same number of dimensions as src tensor");
  bool fits = true;
  for (int64_t d = 0; d < index.dim(); ++d) {
    fits = fits && (d == dim || index->sizes[d] <= self->sizes[d]);
    fits = fits && (!src.defined() || index->sizes[d] <= src->sizes[d]);
  }
  if (src.defined()) {
    RL_CHECK(fits, "Expected index ", index.sizes(), " to be no larger than self ", self.sizes(),
             " apart from dimension ", dim, " and to be no larger size than src ", src.sizes());
  } else {
    RL_CHECK(fits, "Expected index ", index.sizes(), " to be no larger than self ", self.sizes(),
             " apart from dimension ", dim);
  }
}

// Works on self's copy or in place. A 0-dim src stands for one value everywhere.
Tensor scatter_into(const Call& call, ScatterOp op, const Tensor& self, int64_t given_dim,
                    const Tensor& given_index, const Tensor& given_src, bool one_value, const char* who) {
  const int64_t dim = wrap_dim(given_dim, self.dim());
  RL_CHECK(given_src.dtype() == self.dtype(), who, "(): Expected self.dtype to be equal to src.dtype");
  check_written_alone(call, {given_index, given_src});
  if (given_index.numel() == 0) return working_copy(call, self);
  require_data_beside(self, given_index, who), require_data_beside(self, given_src, who);
  const Tensor index = line_positions(given_index, who);
  Tensor src = one_value ? expand(given_src, index.sizes()) : at_least_vector(given_src);
  check_scatter(at_least_vector(self), dim, index, one_value ? Tensor() : src);
  // In place, nothing is written where one position is wrong; a copy can be thrown away.
  const bool check = !call.inplace;
  const int64_t size = at_least_vector(self)->sizes[dim];
  if (!check) check_positions(index, dim, size);
  const Tensor result = working_copy(call, self);
  src = apart_from(result, src);
  if (!loops::scatter(op, at_least_vector(result), dim, apart_from(result, index), src, check))
    check_positions(index, dim, size);
  return result;
}

Tensor scatter_src_kernel(const Call& call, const Tensor& self, int64_t dim, const Tensor& index,
                          const Tensor& src) {
  return scatter_into(call, ScatterOp::Assign, self, dim, index, src, false, "scatter");
}
Tensor scatter_value_kernel(const Call& call, const Tensor& self, int64_t dim, const Tensor& index,
                            const Scalar& value) {
  value.check_fits(self.dtype());
  return scatter_into(call, ScatterOp::Assign, self, dim, index, scalar_tensor_of(value, self.dtype()), true,
                      "scatter");
}
Tensor scatter_add_kernel(const Call& call, const Tensor& self, int64_t dim, const Tensor& index,
                          const Tensor& src) {
  return scatter_into(call, ScatterOp::Add, self, dim, index, src, false, "scatter_add");
}

ScatterOp old_reduce_of(std::string_view reduce) {
  RL_CHECK(reduce == "add" || reduce == "multiply", "reduce argument must be either add or multiply.");
  return reduce == "add" ? ScatterOp::Add : ScatterOp::Multiply;
}
Tensor scatter_src_reduce_kernel(const Call& call, const Tensor& self, int64_t dim, const Tensor& index,
                                 const Tensor& src, std::string_view reduce) {
  static OnceWarning deprecated(
      "The reduce argument of torch.scatter with Tensor src is deprecated and will be removed in a future "
      "PyTorch release. Use torch.scatter_reduce instead for more reduction options.");
  deprecated.show();
  return scatter_into(call, old_reduce_of(reduce), self, dim, index, src, false, "scatter");
}
Tensor scatter_value_reduce_kernel(const Call& call, const Tensor& self, int64_t dim, const Tensor& index,
                                   const Scalar& value, std::string_view reduce) {
  return scatter_into(call, old_reduce_of(reduce), self, dim, index, scalar_tensor_of(value, self.dtype()),
                      true, "scatter");
}

ScatterOp reduce_of(std::string_view reduce) {
  if (reduce == "sum" || reduce == "mean") return ScatterOp::Add;
  if (reduce == "prod") return ScatterOp::Multiply;
  if (reduce == "amax" || reduce == "max") return ScatterOp::Max;
  RL_CHECK(reduce == "amin" || reduce == "min",
           "reduce argument must be either sum, prod, mean, amax or amin, got ", reduce);
  return ScatterOp::Min;
}

// The value that leaves the other operand unchanged.
Scalar identity_of(ScatterOp op, DType dtype) {
  if (op == ScatterOp::Add || op == ScatterOp::Multiply) return Scalar(int64_t{op == ScatterOp::Multiply});
  const bool lowest = op == ScatterOp::Max;
  if (is_floating(dtype))
    return Scalar(lowest ? -std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::infinity());
  return visit_dtype(Concat<TypeList<bool>, IntegralTypes>{}, dtype, "scatter_reduce", [&]<class T>(T) {
    return lowest ? Scalar(static_cast<int64_t>(std::numeric_limits<T>::lowest()))
                  : Scalar(static_cast<uint64_t>(std::numeric_limits<T>::max()));
  });
}

// How many elements met in each place, at least one: counted once where an expanded index repeats itself.
Tensor meeting_count(Tensor self, int64_t dim, Tensor index, Tensor src, bool include_self) {
  for (int64_t d = 0; d < index.dim() && !dispatch_state.level; ++d)
    if (d != wrap_dim(dim, index.dim()) && index->strides[d] == 0 && index->sizes[d] == self->sizes[d]) {
      for (Tensor* t : {&self, &index, &src}) *t = narrow(*t, d, 0, std::min<int64_t>(1, self->sizes[d]));
    }
  const Tensor start = include_self ? ones_like(self) : zeros_like(self);
  const Tensor n = scatter_add(start, dim, index, ones_like(src));
  return rushlight::masked_fill(n, rushlight::eq(n, Scalar(int64_t{0})), Scalar(int64_t{1}));
}

Tensor scatter_reduce_kernel(const Call& call, const Tensor& self, int64_t dim, const Tensor& index,
                             const Tensor& src, std::string_view reduce, bool include_self) {
  check_written_alone(call, {index, src});
  RL_CHECK(src.dtype() == self.dtype(), "scatter(): Expected self.dtype to be equal to src.dtype, but got ",
           dtype_name(self.dtype()), " and ", dtype_name(src.dtype()));
  const ScatterOp op = reduce_of(reduce);
  Tensor start = self;
  if (!include_self) start = scatter_value(self, dim, index, identity_of(op, self.dtype()));
  Call own{scatter_reduce.op()};
  if (!include_self) own.out = &start, own.inplace = true;
  const Tensor result = scatter_into(own, op, start, dim, index, src, false, "scatter_reduce");
  if (reduce != "mean") return result;
  const Tensor n = meeting_count(self, dim, index, src, include_self);
  return is_differentiable(self.dtype()) ? result / n : div_mode(result, n, "floor");
}

// --- derivatives ---

// The part of a src-shaped gradient that `index` reaches, with zeros elsewhere.
Tensor gather_to(const Tensor& grad, int64_t dim, const Tensor& index, IntList sizes) {
  const Tensor part = gather(grad, dim, index);
  if (part.sizes() == sizes) return part;
  Tensor whole = zeros_of(sizes, grad);
  Dims reach = part.sizes().dims();
  std::vector<Tensor> unused;
  for (size_t d = 0; d < reach.size(); ++d) {
    if (reach[d] == sizes[d]) continue;
    Dims pad = reach;
    pad[d] = sizes[d] - reach[d];
    unused.push_back(zeros_of(pad, grad));
    reach[d] = sizes[d];
  }
  // Append the zeros dimension by dimension.
  Tensor grown = part;
  size_t next = 0;
  for (size_t d = 0; d < reach.size(); ++d)
    if (part->sizes[d] != sizes[d]) grown = cat({grown, unused[next++]}, static_cast<int64_t>(d));
  return grown;
}

Grads extreme_backward(const Tensor& g, const Tensor& self, int64_t dim, const Tensor& index,
                       const Tensor& src, const Tensor& result) {
  const Tensor self_hit = to_dtype(ops::eq(self, result), g.dtype());
  const Tensor src_hit = to_dtype(ops::eq(src, gather(result, dim, index)), g.dtype());
  const Tensor share = g / scatter_add(self_hit, dim, index, src_hit);
  return Grads{self_hit * share, Tensor(), src_hit * gather(share, dim, index)};
}

Grads product_backward(const Tensor& g, const Tensor& self, int64_t dim, const Tensor& index,
                       const Tensor& src, bool include_self, const Tensor& result) {
  const Scalar zero(int64_t{0}), one(int64_t{1});
  const Tensor self_or_one = rushlight::masked_fill(self, rushlight::eq(self, zero), one);
  const Tensor grad_self =
      g * scatter_reduce(self_or_one, dim, index, src, "prod", include_self) / self_or_one;
  const Tensor is_zero = rushlight::eq(src, zero);
  const Tensor zeros_met =
      gather(scatter_add(zeros_like(self), dim, index, to_dtype(is_zero, self.dtype())), dim, index);
  const Tensor only_zero = is_zero & rushlight::eq(zeros_met, one);
  RL_CHECK(
      !GradMode::enabled() || !src.has_data() || src.device().is_meta() ||
          !read_scalar(ops::any((zeros_met > one) & is_zero)).to<bool>(),
      "scatter_reduce(): Double backward is unsupported for src when >1 zeros in src are scattered to the "
      "same position in self");
  const Tensor others =
      scatter_reduce(self, dim, index, rushlight::masked_fill(src, only_zero, one), "prod", include_self);
  const Tensor grad_src =
      ops::where(only_zero, gather(g * others, dim, index),
                 gather(g * result, dim, index) / rushlight::masked_fill(src, is_zero, one));
  return Grads{grad_self, Tensor(), grad_src};
}

Grads scatter_reduce_backward(const Tensor& g, const Tensor& self, int64_t dim, const Tensor& index,
                              const Tensor& src, std::string_view reduce, bool include_self,
                              const Tensor& result) {
  if (index.numel() == 0) return Grads{g, Tensor(), gather_to(g, dim, index, src.sizes())};
  Grads grads;
  if (reduce == "sum") {
    grads = Grads{g, Tensor(), gather_to(g, dim, index, src.sizes())};
  } else if (reduce == "mean") {
    const Tensor n = meeting_count(g, dim, index, to_dtype(src, g.dtype()), include_self);
    grads = Grads{g / n, Tensor(), gather_to(g / n, dim, index, src.sizes())};
  } else if (reduce == "prod") {
    grads = product_backward(g, self, dim, index, src, include_self, result);
  } else {
    grads = extreme_backward(g, self, dim, index, src, result);
  }
  if (!include_self) grads[0] = scatter_value(grads[0], dim, index, Scalar(int64_t{0}));
  return grads;
}

// --- composites ---

void check_reduced_positions(const Tensor& index, int64_t size) {
  if (!index.is_cpu() || !index.has_data()) return;
  const Tensor positions = dense(to_dtype(index, DType::Int64));
  const int64_t* p = positions.data<int64_t>();
  for (int64_t i = 0; i < positions.numel(); ++i)
    RL_CHECK_INDEX(p[i] >= 0 && p[i] < size, "index out of range in self (index_reduce() got index ", p[i],
                   " for a dimension of size ", size, ")");
}

Tensor index_reduce_body(const Call& call, const Tensor& given, int64_t given_dim, const Tensor& index,
                         const Tensor& source, std::string_view reduce, bool include_self) {
  const Tensor self =
      call.inplace ? clone(given) : given;  // the derivative wants the values before the write
  RL_CHECK(reduce == "prod" || reduce == "mean" || reduce == "amax" || reduce == "amin",
           "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got ", reduce, ".");
  RL_CHECK_INDEX(index.dim() <= 1,
                 "index_reduce(): Index is supposed to be a vector, but got dim: ", index.dim(),
                 " with type: ", legacy_name(index.dtype()), " and size: ", index.sizes());
  RL_CHECK(self.dtype() == source.dtype(),
           "index_reduce(): self and source expected to have the same dtype, but got (self) ",
           legacy_name(self.dtype()), " and (source) ", legacy_name(source.dtype()));
  const int64_t dim = wrap_dim(given_dim, self.dim());
  const Tensor src = source.dim() == 0 && self.dim() > 0 ? reshape(source, {1}) : source;
  RL_CHECK(src.dim() == self.dim(), "index_reduce(): source must have as many dimensions as self, got ",
           source.sizes(), " and ", self.sizes());
  RL_CHECK(src.dim() == 0 || src.size(dim) == index.numel(), "index_reduce(): Number of indices (",
           index.numel(), ") should be equal to source.size(dim)");
  Dims want = self->sizes, have = src->sizes;
  if (!want.empty()) want[dim] = have[dim] = 0;
  RL_CHECK(want == have && source.dim() == self.dim(),
           "source tensor shape must match self tensor shape, excluding the specified dimension. Got "
           "self.shape = ",
           self.sizes(), " source.shape = ", source.sizes());
  check_reduced_positions(index, self.dim() ? self.size(dim) : 1);
  Dims shape(static_cast<size_t>(src.dim()), 1);
  if (!shape.empty()) shape[dim] = index.numel();
  return scatter_reduce(self, dim, expand(reshape(index, shape), src.sizes()), src, reduce, include_self);
}

// Negative positions along a dimension count from the end; among all elements they are errors, as in PyTorch.
Tensor counted_from_start(const Tensor& positions, int64_t size) {
  return ops::where(positions < Scalar(int64_t{0}), positions + Scalar(size), positions);
}

Tensor take_along_dim_body(const Call&, const Tensor& self, const Tensor& indices, OptInt dim) {
  RL_CHECK(!dim || indices.dtype() == DType::Int64,
           "torch.take_along_dim(): dtype of indices should be Long but got ", legacy_name(indices.dtype()));
  if (!dim) return gather(reshape(self, {-1}), 0, reshape(indices, {-1}));
  RL_CHECK(self.dim() == indices.dim(),
           "torch.take_along_dim(): input and indices should have the same number of dimensions, but got ",
           self.dim(), " dimensions for input, and ", indices.dim(), " dimensions for indices");
  const int64_t d = wrap_dim(*dim, self.dim());
  if (self.dim() == 0) return gather(self, 0, counted_from_start(indices, 1));
  Dims a = self->sizes, b = indices->sizes;
  a[d] = b[d] = 1;
  Dims self_sizes = broadcast_shapes(a, b), index_sizes = self_sizes;
  self_sizes[d] = self->sizes[d];
  index_sizes[d] = indices->sizes[d];
  return gather(broadcast_to(self, self_sizes), d,
                broadcast_to(counted_from_start(indices, self->sizes[d]), index_sizes));
}

}  // namespace

void register_scatter_operators(Table& t) {
  t.op(gather, "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
       gather_kernel)
      .doc("Elements at the positions along `dim` that index names.")
      .family(Family::Index)
      .out(OutRule::Disjoint)
      .on_devices()
      .linear()
      .batching(Batching::Dims)
      .derivative([](Grad g, Shape<0> x, Attr<1, int64_t> dim, In<2> at) {
        return into_zeros(scatter_add, x.sizes(), g, dim, at, g);
      });
  t.op(scatter_src, "scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
       scatter_src_kernel)
      .doc("Writes src at the positions along `dim` that index names.")
      .family(Family::Index)
      .inplace()
      .out(OutRule::Disjoint)
      .on_devices()
      .linear()
      .batching(Batching::Dims)
      .out_accumulates()
      .derivative([](Grad g, Attr<1, int64_t> dim, In<2> at, Shape<3> src) {
        return Grads{scatter_value(g, dim, at, Scalar(int64_t{0})), Tensor(),
                     gather_to(g, dim, at, src.sizes())};
      });
  t.op(scatter_value, "scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
       scatter_value_kernel)
      .doc("Writes a number at the positions along `dim` that index names.")
      .family(Family::Index)
      .inplace()
      .out(OutRule::Disjoint)
      .on_devices()
      .batching(Batching::Dims)
      .out_accumulates()
      .node("ScatterBackward1")
      .derivative([](Grad g, Attr<1, int64_t> dim, In<2> at) {
        return scatter_value(g, dim, at, Scalar(int64_t{0}));
      });
  t.op(scatter_src_reduce,
       "scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor",
       scatter_src_reduce_kernel)
      .doc("Adds or multiplies src at the positions that index names.")
      .family(Family::Index)
      .inplace()
      .out(OutRule::Disjoint)
      .on_devices()
      .batching(Batching::Dims)
      .out_accumulates()
      .refused_derivative<
          "derivative for aten::scatter is not implemented: use scatter_reduce, which has one">();
  t.op(scatter_value_reduce,
       "scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor",
       scatter_value_reduce_kernel)
      .doc("Adds or multiplies a number at the positions that index names.")
      .family(Family::Index)
      .inplace()
      .out(OutRule::Disjoint)
      .on_devices()
      .batching(Batching::Dims)
      .out_accumulates()
      .refused_derivative<
          "derivative for aten::scatter is not implemented: use scatter_reduce, which has one">();
  t.op(scatter_add, "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
       scatter_add_kernel)
      .doc("Adds src at the positions along `dim` that index names.")
      .family(Family::Index)
      .inplace()
      .out(OutRule::Disjoint)
      .on_devices()
      .linear()
      .batching(Batching::Dims)
      .autocast(Cast::None, Cast::Widest)
      .out_accumulates()
      .derivative([](Grad g, Attr<1, int64_t> dim, In<2> at, Shape<3> src) {
        return Grads{g, Tensor(), gather_to(g, dim, at, src.sizes())};
      });
  t.op(scatter_reduce,
       "scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool "
       "include_self=True) -> Tensor",
       scatter_reduce_kernel)
      .doc("Reduces src into the positions along `dim` that index names.")
      .family(Family::Index)
      .on_devices()
      .inplace()
      .out(OutRule::Disjoint)
      .batching(Batching::Dims)
      .out_accumulates()
      .derivative([](Grad g, In<0> x, Attr<1, int64_t> dim, In<2> at, In<3> src,
                     Attr<4, std::string_view> reduce, Attr<5, bool> include_self, Out<0> y) {
        return scatter_reduce_backward(g, x, dim, at, src, reduce, include_self, y);
      });
  t.composite(index_reduce,
              "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool "
              "include_self=True) -> Tensor",
              index_reduce_body)
      .doc("Reduces slices of source into the given positions along a dimension.")
      .inplace()
      .out(OutRule::Disjoint)
      .out_accumulates()
      .one_node();
  t.composite(take_along_dim, "take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor",
              take_along_dim_body)
      .doc("gather with broadcasting; over the flattened tensor without dim.")
      .out(OutRule::Disjoint);
}

}  // namespace rushlight
