// Operators that read and write whole slices along one dimension: index_select, index_add, index_copy,
// index_fill.
#include <algorithm>

#include "cpu/index.h"
#include "ops/copy.h"
#include "ops/device_positions.h"
#include "ops/index.h"
#include "ops/index_common.h"
#include "ops/operators.h"
#include "ops/reduction.h"
#include "ops/view.h"

namespace rushlight {

using namespace ops;

namespace {

// Offsets of index_select: `index` holds positions along `dim`.
cpu::IndexBlocks plan_slices(const Tensor& self, int64_t dim, const Tensor& index, const char* message,
                             bool wraps) {
  cpu::IndexBlocks blocks;
  if (!index.is_cpu()) return blocks;
  const int64_t size = self->sizes[dim], stride = self->strides[dim];
  blocks.before = cpu::all_offsets(self.sizes().slice(0, dim), self.strides().slice(0, dim));
  plan_runs(blocks, self.sizes().slice(dim + 1), self.strides().slice(dim + 1));
  const Tensor positions = dense(index);
  blocks.indexed.resize(static_cast<size_t>(index.numel()));
  const int64_t* p = positions.data<int64_t>();
  for (size_t i = 0; i < blocks.indexed.size(); ++i) {
    if (p[i] >= size || p[i] < (wraps ? -size : 0)) {
      RL_CHECK_INDEX(!message, message);
      RL_FAIL_AS(Index, "index ", p[i], " is out of bounds for dimension ", dim, " with size ", size);
    }
    blocks.indexed[i] = (p[i] < 0 ? p[i] + size : p[i]) * stride;
  }
  return blocks;
}

Tensor slice_positions(const Tensor& index, const char* who) {
  RL_CHECK_INDEX(index.dim() <= 1, who, "(): Index is supposed to be a vector, but got dim: ", index.dim());
  RL_CHECK(index.dtype() == DType::Int64 || index.dtype() == DType::Int32, who,
           "(): Expected dtype int32/int64 for index but got: ", legacy_name(index.dtype()));
  return to_dtype(index, DType::Int64);
}

// Of a tensor without elements, in PyTorch's words.
void check_for_nothing(const Tensor& index, int64_t size) {
  RL_CHECK(size > 0 || index.numel() == 0, "index_select(): self indexing axis dim should be positive");
  const Tensor dense = ops::contiguous(index, MemoryFormat::Contiguous);
  for (int64_t i = 0; i < dense.numel(); ++i) {
    const int64_t at = dense.data<int64_t>()[i];
    RL_CHECK(at >= 0 && at < size, "INDICES element is out of DATA bounds, id=", at, " axis_dim=", size);
  }
}

Tensor index_select_kernel(const Call&, const Tensor& self, int64_t given_dim, const Tensor& given) {
  const int64_t dim = wrap_dim(given_dim, self.dim());
  const Tensor index = slice_positions(given, "index_select");
  if (const Tensor out = taken_from_vector(self, index); out.defined() && index.dim() == 1) return out;
  const Tensor source = at_least_vector(self);
  RL_CHECK(self.dim() > 0 || index.numel() == 1,
           "index_select(): Index to scalar can have only 1 value, got ", index.numel(), " value(s)");
  Dims sizes = source->sizes;
  sizes[dim] = index.numel();
  checked_numel(sizes);
  if (self.is_cpu() && self.numel() == 0) check_for_nothing(index, source->sizes[dim]);
  const Tensor out = empty_tensor(self.dim() > 0 ? IntList(sizes) : IntList(), self.dtype(), self.device());
  const cpu::IndexBlocks blocks = plan_slices(source, dim, index, "index out of range in self", false);
  if (out.numel() > 0 && out.is_cpu())
    cpu::index_read(blocks, source.data_ptr(), out.data_ptr(), self.itemsize());
  if (out.device().is_cuda())
    loops::take(at_least_vector(out), source, loops::indexed_slices(source, dim, index, false));
  return out;
}

// Writes slices on a device.
Tensor put_slices(cpu::ScatterOp op, const Tensor& result, int64_t dim, const Tensor& index,
                  const Tensor& values, bool wraps = false) {
  const Tensor target = at_least_vector(result);
  loops::put(op, target, loops::indexed_slices(target, dim, index, wraps), values);
  return result;
}

// Checks `source` against self with `index` along `dim` and returns it dense.
Tensor slice_values(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                    const char* who) {
  RL_CHECK(self.dtype() == source.dtype(), who,
           "(): self and source expected to have the same dtype, but got (self) ", legacy_name(self.dtype()),
           " and (source) ", legacy_name(source.dtype()));
  require_data_beside(self, source, who), require_data_beside(self, index, who);
  const Tensor values = at_least_vector(source);
  const int64_t count = index.numel();
  RL_CHECK_INDEX(values.dim() > dim && values->sizes[dim] == count, who, "(): Number of indices (", count,
                 ") should be equal to source.size(dim): (", values.dim() > dim ? values->sizes[dim] : 0,
                 "), for dim: ", dim);
  Dims want = self->sizes, have = values->sizes;
  if (want.size() == have.size()) want[dim] = count;
  RL_CHECK(want == have, who, "(): source/destination must have same slice shapes except at dimension ", dim,
           ". Destination slice shape: ", want, " and source slice shape: ", have);
  return values;
}

// Of index_add, which has words of its own.
void check_added_slices(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  const int64_t length = source.dim() > dim ? source->sizes[dim] : 1;
  RL_CHECK(index.numel() == length, "index_add_(): Number of indices (", index.numel(),
           ") should be equal to source.size(dim): (", length, "), for dim: ", dim);
  Dims want = self->sizes, have = source->sizes;
  if (self.dim() > 0 && source.dim() == self.dim()) want[dim] = have[dim] = 0;
  RL_CHECK(want == have,
           "source tensor shape must match self tensor shape, excluding the specified dimension. Got "
           "self.shape = ",
           self.sizes(), " source.shape = ", source.sizes());
}

// Before anything is written. A position outside is an IndexError for vectors alone, as in PyTorch.
void check_added_positions(const Tensor& self, int64_t dim, const Tensor& index) {
  if (!index.is_cpu()) return;
  const int64_t size = self.dim() == 0 ? 1 : self->sizes[dim];
  const Tensor positions = dense(index);
  const auto* p = positions.data<int64_t>();
  if (cpu::all_within(p, index.numel(), size)) return;
  RL_CHECK_INDEX(self.dim() > 1, "index out of range in self");
  const auto outside = std::find_if(p, p + index.numel(), [&](int64_t i) { return i < 0 || i >= size; });
  RL_FAIL("index ", *outside, " is out of bounds for dimension ", dim, " with size ", size);
}

Tensor index_add_kernel(const Call& call, const Tensor& self, int64_t given_dim, const Tensor& given,
                        const Tensor& source, const Scalar& alpha) {
  const int64_t dim = wrap_dim(given_dim, self.dim());
  const Tensor index = slice_positions(given, "index_add_");
  check_written_alone(call, {given, source});
  check_added_slices(self, dim, index, source);
  RL_CHECK(self.dtype() == source.dtype(), "index_add_(): self (", legacy_name(self.dtype()),
           ") and source (", legacy_name(source.dtype()), ") must have the same scalar type");
  Tensor values = slice_values(at_least_vector(self), dim, index, source, "index_add_");
  if (!(alpha == Scalar(int64_t{1}))) values = to_dtype(values * alpha, self.dtype());
  check_added_positions(self, dim, index);
  const Tensor result = working_copy(call, self);
  if (result.is_cpu() && self.dim() == 1 && self.dtype() != DType::Complex32) {
    cpu::scatter(cpu::ScatterOp::Add, result, 0, at_least_vector(index), apart_from(result, values), false);
    return result;
  }
  const cpu::IndexBlocks blocks = plan_slices(at_least_vector(result), dim, index, nullptr, false);
  values = apart_from(result, dense(values));
  if (result.device().is_cuda()) return put_slices(cpu::ScatterOp::Add, result, dim, index, values);
  if (blocks.numel() > 0 && result.is_cpu())
    cpu::index_accumulate(blocks, result.data_ptr(), values.data_ptr(), false, self.dtype());
  return result;
}

// On devices, where negative positions count from the end: slices are what an index alone names.
Tensor write_slices(const Tensor& result, int64_t dim, const Tensor& index, const Tensor& values) {
  std::vector<Tensor> indices(static_cast<size_t>(dim) + 1);
  indices.back() = index;
  if (index.numel() > 0) ops::index_put_(at_least_vector(result), indices, values, false);
  return result;
}

Tensor index_copy_kernel(const Call& call, const Tensor& self, int64_t given_dim, const Tensor& given,
                         const Tensor& source) {
  const int64_t dim = wrap_dim(given_dim, self.dim());
  const Tensor index = slice_positions(given, "index_copy_");
  RL_CHECK(given.dtype() == DType::Int64, "index_copy_(): Expected a long tensor for index, but got ",
           legacy_name(given.dtype()));
  RL_CHECK_INDEX(!self.dim() || !source.dim() || self.dim() == source.dim(),
                 "index_copy_(): When source and destination are not scalars, their dimensionality must "
                 "match, but got ",
                 describe(source), " and ", describe(self));
  check_written_alone(call, {given, source});
  Tensor values = slice_values(at_least_vector(self), dim, index, source, "index_copy_");
  plan_slices(at_least_vector(self), dim, index, nullptr, false);
  const Tensor result = working_copy(call, self);
  if (result.device().is_cuda())
    return put_slices(cpu::ScatterOp::Assign, result, dim, index, apart_from(result, values));
  const cpu::IndexBlocks blocks = plan_slices(at_least_vector(result), dim, index, nullptr, false);
  values = apart_from(result, dense(values));
  if (blocks.numel() > 0 && result.is_cpu())
    cpu::index_write(blocks, result.data_ptr(), values.data_ptr(), false, self.itemsize());
  return result;
}

Tensor index_fill_kernel(const Call& call, const Tensor& self, int64_t given_dim, const Tensor& given,
                         const Tensor& value) {
  const int64_t dim = wrap_dim(given_dim, self.dim());
  RL_CHECK(value.dim() == 0, "index_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
           value.dim(), " dimension(s).");
  RL_CHECK_INDEX(given.dtype() == DType::Int64, "index_fill_(): Expected dtype int64 for index, but got ",
                 dtype_name(given.dtype()));
  RL_CHECK(value.is_wrapped_number() ? !is_complex(value.dtype()) || is_complex(self.dtype())
                                     : can_cast(value.dtype(), self.dtype()),
           "index_fill_(): Converting complex Scalar to non-complex type is not supported");
  if (value.is_wrapped_number() && value.is_cpu()) read_scalar(value).check_fits(self.dtype());
  RL_CHECK(given.dim() <= 1, "Index has to be a vector/scalar, but index_fill_() got ", describe(given));
  const Tensor index = slice_positions(given, "index_fill_");
  plan_slices(at_least_vector(self), dim, index, nullptr, true);
  if (call.inplace) {
    warn_of_expanded(self, "index_fill_", "tensor[mask] = scalar");
    check_apart_from(self, TensorList(&given, 1));
  }
  const Tensor number = to_dtype(value, self.dtype());
  const Tensor result = call.inplace ? working_copy(call, self) : clone(self, MemoryFormat::Preserve);
  if (result.device().is_cuda()) return write_slices(result, dim, index, number);
  const cpu::IndexBlocks blocks = plan_slices(at_least_vector(result), dim, index, nullptr, true);
  if (blocks.numel() > 0 && result.is_cpu())
    cpu::index_write(blocks, result.data_ptr(), number.data_ptr(), true, self.itemsize());
  return result;
}

// Of the fill value: every position counts once, however often it is named.
Tensor filled_gradient(const Tensor& g, int64_t dim, const Tensor& at) {
  if (g.dim() == 0) return g;
  const Tensor filled = index_fill(zeros_of(g.sizes(), g), dim, at, wrapped_number(Scalar(int64_t{1})));
  return sum(g * filled);
}

}  // namespace

void register_slice_operators(Table& t) {
  t.op(index_select, "index_select(Tensor self, int dim, Tensor index) -> Tensor", index_select_kernel)
      .doc("Slices at the given positions along a dimension.")
      .family(Family::Index)
      .out(OutRule::Disjoint)
      .on_devices()
      .linear()
      .derivative([](Grad g, Shape<0> x, Attr<1, int64_t> dim, In<2> at) {
        return into_zeros(index_add, x.sizes(), g, dim, at, g);
      });
  t.op(index_add, "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
       index_add_kernel)
      .doc("Adds slices of source at the given positions along a dimension.")
      .family(Family::Index)
      .inplace()
      .out(OutRule::Disjoint)
      .on_devices()
      .linear()
      .out_accumulates()
      .derivative([](Grad g, Attr<1, int64_t> dim, In<2> at, Shape<3> source, Attr<4, Scalar> alpha,
                     Needs need) {
        return Grads{g, Tensor(),
                     need[3] ? reshape(index_select(g, dim, at) * Scalar(alpha), source.sizes()) : Tensor()};
      });
  t.op(index_copy, "index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
       index_copy_kernel)
      .doc("Replaces the slices at the given positions along a dimension.")
      .family(Family::Index)
      .inplace()
      .out(OutRule::Disjoint)
      .on_devices()
      .linear()
      .autocast(Cast::Widest, Cast::None)
      .out_accumulates()
      .derivative([](Grad g, Attr<1, int64_t> dim, In<2> at, Shape<3> source) {
        return Grads{index_fill(g, dim, at, wrapped_number(Scalar(int64_t{0}))), Tensor(),
                     reshape(index_select(g, dim, at), source.sizes())};
      });
  t.op(index_fill, "index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor",
       index_fill_kernel)
      .doc("Fills the slices at the given positions along a dimension.")
      .family(Family::Index)
      .inplace()
      .out()
      .on_devices()
      .numbers(Numbers::Mixed)
      .node_of_number(3, "IndexFillBackward0")
      .number_overload(1 << 3, {"int_Scalar"})
      .node("IndexFillBackward1")
      .derivative([](Grad g, Attr<1, int64_t> dim, In<2> at, Needs need) {
        return Grads{index_fill(g, dim, at, wrapped_number(Scalar(int64_t{0}))), Tensor(),
                     need[3] ? filled_gradient(g, dim, at) : Tensor()};
      });
}

}  // namespace rushlight
