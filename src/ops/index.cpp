// index, index_put and the operators that address whole slices. Scatter and its kin are in index_scatter.cpp,
// masks in index_mask.cpp, repetition in index_repeat.cpp.
#include "ops/index.h"

#include <cstring>

#include "cpu/index.h"
#include "cpu/moves.h"
#include "dispatch/exact_out.h"
#include "ops/copy.h"
#include "ops/device_loops.h"
#include "ops/factory.h"
#include "ops/index_common.h"
#include "ops/operators.h"
#include "ops/reduction.h"
#include "ops/register.h"
#include "ops/view.h"

namespace rushlight {

using namespace ops;

namespace {
Tensor contiguous_copy(const Tensor& t) {
  const Tensor copy = empty_tensor(t.sizes(), t.dtype(), t.device());
  if (!t.is_contiguous() || t.device().is_cuda())
    copy_result(copy, t, false);
  else if (t.numel() > 0 && t.is_cpu())
    std::memcpy(copy.data_ptr(), t.data_ptr(), t.nbytes());
  return copy;
}
}  // namespace

Tensor dense(const Tensor& t) { return t.is_contiguous() ? t : contiguous_copy(t); }

Tensor working_copy(const Call& call, const Tensor& self) {
  const bool in_place =
      call.inplace && call.out && call.out[0].dtype() == self.dtype() && call.out[0].sizes() == self.sizes();
  return in_place ? call.out[0] : contiguous_copy(self);
}

Tensor as_positions(const Tensor& index, const char* who) {
  RL_CHECK(is_integral(index.dtype()) && index.dtype() != DType::UInt8, who,
           "(): Expected dtype int32/int64 for index, got ", dtype_name(index.dtype()));
  return to_dtype(index, DType::Int64);
}

Tensor apart_from(const Tensor& target, const Tensor& t) {
  return target->storage != t->storage ? t : contiguous_copy(t);
}

void require_data(const Tensor& t, const char* who) {
  RL_CHECK_AS(NotImplemented, !t.device().is_meta(), who,
              "(): the result depends on the values of a tensor on the meta device, which has none");
}

Tensor zeros_of(IntList sizes, const Tensor& like) {
  return new_zeros(like, sizes, std::nullopt, std::nullopt, std::nullopt, std::nullopt);
}

Tensor at_least_vector(const Tensor& t) {
  return t.dim() > 0 ? t : make_view(t, {1}, {1}, t.storage_offset(), false);
}

namespace {

// Masks become one index tensor per dimension that they cover.
void add_mask(std::vector<Tensor>& indices, const Tensor& self, const Tensor& mask) {
  for (int64_t d = 0; d < mask.dim(); ++d) {
    const size_t at = indices.size() + static_cast<size_t>(d);
    RL_CHECK_INDEX(at < self.sizes().size() && mask->sizes[d] == self->sizes[at], "The shape of the mask ",
                   mask.sizes(), " at index ", d, " does not match the shape of the indexed tensor ",
                   self.sizes(), " at index ", at);
  }
  require_data(mask, "index");
  const Tensor found = nonzero(mask);
  if (mask.dim() == 1) {
    indices.push_back(view(found, IntList{found.numel()}));
    return;
  }
  for (int64_t d = 0; d < mask.dim(); ++d) indices.push_back(dense(select(found, 1, d)));
}

// The indices by dimension of self, undefined where a dimension is taken whole; all of them int64 and of one
// shape.
struct IndexPlan {
  cpu::IndexBlocks blocks;  // on the CPU
  loops::Positions at;      // on a device
  Dims result;              // sizes
};

std::vector<Tensor> expand_indices(const Tensor& self, TensorList given) {
  std::vector<Tensor> indices;
  for (size_t i = 0; i < given.size(); ++i) {
    const Tensor& t = given[i];
    if (!t.defined()) {
      indices.emplace_back();
      continue;
    }
    RL_CHECK_INDEX(is_integral_or_bool(t.dtype()),
                   "tensors used as indices must be long, int, byte or bool tensors");
    if (t.dtype() == DType::Bool || t.dtype() == DType::UInt8) {
      if (t.dtype() == DType::UInt8)
        show_warning(
            "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.");
      add_mask(indices, self, t);
    } else {
      indices.push_back(to_dtype(t, DType::Int64));
    }
  }
  RL_CHECK_INDEX(indices.size() <= self.sizes().size(), "too many indices for tensor of dimension ",
                 self.dim());
  indices.resize(self.sizes().size());
  return indices;
}

Dims common_shape(const std::vector<Tensor>& indices) {
  Dims shape;
  bool first = true;
  for (const Tensor& t : indices) {
    if (!t.defined()) continue;
    if (first) {
      shape = t->sizes;
      first = false;
      continue;
    }
    try {
      shape = broadcast_shapes(shape, t.sizes());
    } catch (const Error&) {
      std::string shapes;
      for (const Tensor& u : indices)
        if (u.defined()) shapes += (shapes.empty() ? "" : ", ") + to_string(u.sizes());
      RL_FAIL_AS(Index, "shape mismatch: indexing tensors could not be broadcast together with shapes ",
                 shapes);
    }
  }
  return shape;
}

// Adds stride * position to each offset, checking and wrapping the positions.
void add_positions(std::vector<int64_t>& offsets, const Tensor& index, const Dims& shape, int64_t dim,
                   int64_t size, int64_t stride) {
  const Tensor positions = dense(index.sizes() == IntList(shape) ? index : expand(index, shape));
  if (positions.device().is_meta()) return;
  const int64_t* p = positions.data<int64_t>();
  RL_CHECK_INDEX(size > 0 || offsets.empty(), "index is out of bounds for dimension with size 0");
  for (size_t i = 0; i < offsets.size(); ++i) {
    RL_CHECK_INDEX(p[i] >= -size && p[i] < size, "index ", p[i], " is out of bounds for dimension ", dim,
                   " with size ", size);
    offsets[i] += (p[i] < 0 ? p[i] + size : p[i]) * stride;
  }
}

// Dimensions from `first` on as runs of adjacent elements, and where the runs start.
void plan_runs(cpu::IndexBlocks& blocks, IntList sizes, IntList strides) {
  size_t n = sizes.size();
  blocks.run = 1;
  while (n > 0 && (sizes[n - 1] == 1 || strides[n - 1] == blocks.run)) blocks.run *= sizes[--n];
  blocks.after = cpu::all_offsets(sizes.slice(0, n), strides.slice(0, n));
}

Dims joined(const Dims& a, const Dims& b, const Dims& c) {
  Dims all = a;
  for (int64_t x : b) all.push_back(x);
  for (int64_t x : c) all.push_back(x);
  return all;
}

// Indices on the CPU serve tensors of all devices.
void move_beside(const Tensor& self, Tensor& index) {
  if (!index.defined() || index.device() == self.device() || self.device().is_meta()) return;
  RL_CHECK(index.is_cpu(), "indices should be either on cpu or on the same device as the indexed tensor (",
           self.device(), ")");
  const Tensor moved = empty_tensor(index.sizes(), index.dtype(), self.device());
  loops::copy(moved, index);
  index = moved;
}

IndexPlan plan_index(const Tensor& self, TensorList given) {
  std::vector<Tensor> indices = expand_indices(self, given);
  for (Tensor& index : indices) move_beside(self, index);
  const Dims shape = common_shape(indices);
  size_t first = indices.size(), last = 0, count = 0;
  for (size_t d = 0; d < indices.size(); ++d)
    if (indices[d].defined()) first = std::min(first, d), last = d, ++count;
  const bool adjacent =
      count == 0 || last - first + 1 == count;  // else the indexed dimensions come first in the result
  IndexPlan plan;
  Dims before, before_strides, after, after_strides;
  const bool on_device = self.device().is_cuda();
  if (on_device)
    plan.at.offsets = new_zeros(self, shape, DType::Int64, std::nullopt, std::nullopt, std::nullopt);
  else
    plan.blocks.indexed.assign(static_cast<size_t>(checked_numel(shape)), 0);
  for (size_t d = 0; d < indices.size(); ++d) {
    const int64_t size = self->sizes[d], stride = self->strides[d];
    if (indices[d].defined() && on_device)
      loops::add_positions(plan.at.offsets, indices[d], size, stride, true);
    else if (indices[d].defined())
      add_positions(plan.blocks.indexed, indices[d], shape, static_cast<int64_t>(d), size, stride);
    else if (adjacent && d < first)
      before.push_back(size), before_strides.push_back(stride);
    else
      after.push_back(size), after_strides.push_back(stride);
  }
  plan.result = before;
  for (int64_t s : shape) plan.result.push_back(s);
  for (int64_t s : after) plan.result.push_back(s);
  checked_numel(plan.result);
  if (on_device) {
    plan.at.sizes = plan.result;
    plan.at.strides = joined(before_strides, Dims(shape.size(), 0), after_strides);
    const Dims along = joined(Dims(before.size(), 0), plan.at.offsets->strides, Dims(after.size(), 0));
    plan.at.offsets = make_view(plan.at.offsets, plan.result, along, 0, false);
    return plan;
  }
  plan.blocks.before = cpu::all_offsets(before, before_strides);
  plan_runs(plan.blocks, after, after_strides);
  return plan;
}

bool is_plain_mask(const Tensor& self, TensorList indices) {
  return indices.size() == 1 && indices[0].defined() && indices[0].dtype() == DType::Bool &&
         indices[0].sizes() == self.sizes() && indices[0].device() == self.device();
}

Tensor index_kernel(const Call&, const Tensor& self, TensorList indices) {
  if (is_plain_mask(self, indices) && self.dim() > 0 && self.is_cpu())
    return select_under_mask(self, indices[0]);
  const IndexPlan plan = plan_index(self, indices);
  const Tensor out = empty_tensor(plan.result, self.dtype(), self.device());
  if (out.numel() > 0 && out.is_cpu())
    cpu::index_read(plan.blocks, self.data_ptr(), out.data_ptr(), self.itemsize());
  if (out.device().is_cuda()) loops::take(out, self, plan.at);
  return out;
}

Tensor index_put_kernel_(const Call&, const Tensor& self, TensorList indices, const Tensor& given,
                         bool accumulate) {
  const bool fills = given.numel() == 1 && !accumulate && is_plain_mask(self, indices);
  RL_CHECK(given.dtype() == self.dtype() || given.is_wrapped_number() || fills,
           "Index put requires the source and destination dtypes match, got ", legacy_name(self.dtype()),
           " for the destination and ", legacy_name(given.dtype()), " for the source.");
  require_data_beside(self, given, "index_put_");
  warn_of_expanded(self, "index_put_", "tensor[indices] = tensor");
  Tensor values = to_dtype(given, self.dtype());
  if (fills && values.dim() == 0) {
    ops::masked_fill.inplace(self, indices[0], values);
    return self;
  }
  const IndexPlan plan = plan_index(self, indices);
  bool fits = values.dim() <= static_cast<int64_t>(plan.result.size());
  for (int64_t i = 0; fits && i < values.dim(); ++i) {
    const int64_t size = values->sizes[i];
    fits = size == 1 || size == plan.result[plan.result.size() - static_cast<size_t>(values.dim() - i)];
  }
  RL_CHECK(fits, "shape mismatch: value tensor of shape ", values.sizes(),
           " cannot be broadcast to indexing result of shape ", plan.result);
  if (self.device().is_cuda()) {
    loops::put(accumulate ? cpu::ScatterOp::Add : cpu::ScatterOp::Assign, self, plan.at,
               apart_from(self, values));
    return self;
  }
  const int64_t count = plan.blocks.numel();
  if (count == 0 || !self.is_cpu()) return self;
  const bool single = values.numel() == 1;
  if (!single) values = dense(values.sizes() == IntList(plan.result) ? values : expand(values, plan.result));
  values = apart_from(self, values);
  if (accumulate)
    cpu::index_accumulate(plan.blocks, self.data_ptr(), values.data_ptr(), single, self.dtype());
  else
    cpu::index_write(plan.blocks, self.data_ptr(), values.data_ptr(), single, self.itemsize());
  return self;
}

Tensor index_put_body(const Call&, const Tensor& self, TensorList indices, const Tensor& values,
                      bool accumulate) {
  return index_put_(clone(self, MemoryFormat::Preserve), indices, values, accumulate);
}

// --- whole slices along one dimension ---

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

Tensor index_select_kernel(const Call&, const Tensor& self, int64_t given_dim, const Tensor& given) {
  const int64_t dim = wrap_dim(given_dim, self.dim());
  const Tensor index = slice_positions(given, "index_select");
  const Tensor source = at_least_vector(self);
  RL_CHECK(self.dim() > 0 || index.numel() == 1,
           "index_select(): Index to scalar can have only 1 value, got ", index.numel(), " value(s)");
  Dims sizes = source->sizes;
  sizes[dim] = index.numel();
  checked_numel(sizes);
  const Tensor out = empty_tensor(self.dim() > 0 ? IntList(sizes) : IntList(), self.dtype(), self.device());
  const cpu::IndexBlocks blocks = plan_slices(source, dim, index, "index out of range in self", false);
  if (out.numel() > 0 && out.is_cpu())
    cpu::index_read(blocks, source.data_ptr(), out.data_ptr(), self.itemsize());
  if (out.device().is_cuda())
    loops::take(at_least_vector(out), source, loops::slices(source, dim, index, false));
  return out;
}

// Writes slices on a device.
Tensor put_slices(cpu::ScatterOp op, const Tensor& result, int64_t dim, const Tensor& index,
                  const Tensor& values, bool wraps = false) {
  const Tensor target = at_least_vector(result);
  loops::put(op, target, loops::slices(target, dim, index, wraps), values);
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
  const int64_t* p = positions.data<int64_t>();
  for (int64_t i = 0; i < index.numel(); ++i) {
    if (p[i] >= 0 && p[i] < size) continue;
    RL_CHECK_INDEX(self.dim() > 1, "index out of range in self");
    RL_FAIL("index ", p[i], " is out of bounds for dimension ", dim, " with size ", size);
  }
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
  if (call.inplace) warn_of_expanded(self, "index_fill_", "tensor[mask] = scalar");
  const Tensor number = to_dtype(value, self.dtype());
  const Tensor result = working_copy(call, self);
  if (result.device().is_cuda()) return write_slices(result, dim, index, number);
  const cpu::IndexBlocks blocks = plan_slices(at_least_vector(result), dim, index, nullptr, true);
  if (blocks.numel() > 0 && result.is_cpu())
    cpu::index_write(blocks, result.data_ptr(), number.data_ptr(), true, self.itemsize());
  return result;
}

// --- flat positions ---

Tensor flat_positions(const Tensor& self, const Tensor& index, const char* who) {
  RL_CHECK(index.dtype() == DType::Int64, who, "(): Expected a long tensor for index, but got ",
           legacy_name(index.dtype()));
  const int64_t n = self.numel();
  require_data_beside(self, index, who);
  const Tensor given = dense(index);
  if (given.device().is_meta()) return given;
  RL_CHECK_INDEX(n > 0 || index.numel() == 0, who, "(): tried to take from an empty tensor");
  const int64_t* p = given.data<int64_t>();
  const int64_t count = given.numel();
  struct Found {
    bool outside = false, negative = false;
  };
  const auto [outside, negative] = parallel_reduce(
      0, count, kGrainSize, Found{},
      [&](int64_t begin, int64_t end) {
        Found found;
        for (int64_t i = begin; i < end; ++i) {
          found.outside |=
              static_cast<uint64_t>(p[i]) + static_cast<uint64_t>(n) >= 2 * static_cast<uint64_t>(n);
          found.negative |= p[i] < 0;
        }
        return found;
      },
      [](Found a, Found b) { return Found{a.outside || b.outside, a.negative || b.negative}; });
  for (int64_t i = 0; outside && i < count; ++i)
    RL_CHECK_INDEX(p[i] >= -n && p[i] < n, "out of range: tried to access index ", p[i], " on a tensor of ",
                   n, " elements.");
  if (!negative) return given;
  const Tensor positions = contiguous_copy(given);
  int64_t* at = positions.data<int64_t>();
  for (int64_t i = 0; i < count; ++i) at[i] += at[i] < 0 ? n : 0;
  return positions;
}

Tensor take_kernel(const Call&, const Tensor& self, const Tensor& index) {
  const Tensor positions = flat_positions(self, index, "take"), source = dense(self);
  const Tensor out = empty_tensor(index.sizes(), self.dtype(), self.device());
  if (out.is_cpu() && out.numel())
    cpu::take(source.data_ptr(), positions.data<int64_t>(), out.numel(), self.itemsize(), out.data_ptr());
  return out;
}

Tensor put_kernel(const Call& call, const Tensor& self, const Tensor& index, const Tensor& source,
                  bool accumulate) {
  RL_CHECK(self.dtype() == source.dtype(),
           "put_(): self and source expected to have the same dtype, but got self.dtype = ",
           legacy_name(self.dtype()), " and source.dtype = ", legacy_name(source.dtype()));
  RL_CHECK_INDEX(
      index.numel() == source.numel(),
      "put_(): Expected source and index to have the same number of elements, but got source.numel() = ",
      source.numel(), ", index.numel() = ", index.numel());
  check_written_alone(call, {index, source});
  cpu::IndexBlocks blocks;
  const Tensor positions = flat_positions(self, index, "put_"), values = dense(source);
  const Tensor result = contiguous_copy(self);
  if (!result.is_cpu()) return result;
  blocks.before = blocks.after = {0};
  blocks.indexed.assign(positions.data<int64_t>(), positions.data<int64_t>() + positions.numel());
  if (accumulate)
    cpu::index_accumulate(blocks, result.data_ptr(), values.data_ptr(), false, self.dtype());
  else
    cpu::index_write(blocks, result.data_ptr(), values.data_ptr(), false, self.itemsize());
  return result;
}

// Of the fill value: every position counts once, however often it is named.
Tensor filled_gradient(const Tensor& g, int64_t dim, const Tensor& at) {
  if (g.dim() == 0) return g;
  const Tensor filled = index_fill(zeros_of(g.sizes(), g), dim, at, wrapped_number(Scalar(int64_t{1})));
  return sum(g * filled);
}

}  // namespace

void register_index_operators(Table& t) {
  t.op(index, "index.Tensor(Tensor self, Tensor?[] indices) -> Tensor", index_kernel)
      .doc("Elements at the positions that index tensors or masks name.")
      .family(Family::Index)
      .internal()
      .derivative(
          [](Grad g, Shape<0> x, InList<1> at) { return index_put(zeros_of(x.sizes(), g), at, g, true); });
  t.op(index_put_,
       "index_put_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor(a!)",
       index_put_kernel_)
      .doc("Writes values at the positions that index tensors or masks name.")
      .family(Family::Index)
      .derivative([](Grad g, InList<1> at, Attr<3, bool> accumulate, Needs need) {
        Grads grads;
        grads.push_back(*accumulate || !need[0] ? Tensor(g) : index_put(g, at, zeros_of({}, g), false));
        for (size_t i = 0; i < at.size(); ++i) grads.push_back(Tensor());
        grads.push_back(need[2] ? index(g, at) : Tensor());
        return grads;
      });
  t.composite(index_put,
              "index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
              index_put_body)
      .doc("A copy of self with values written at the positions that index tensors or masks name.");
  t.op(index_select, "index_select(Tensor self, int dim, Tensor index) -> Tensor", index_select_kernel)
      .doc("Slices at the given positions along a dimension.")
      .family(Family::Index)
      .out()
      .data(&exact_out)
      .derivative([](Grad g, Shape<0> x, Attr<1, int64_t> dim, In<2> at) {
        return index_add(zeros_of(x.sizes(), g), dim, at, g);
      });
  t.op(index_add, "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
       index_add_kernel)
      .doc("Adds slices of source at the given positions along a dimension.")
      .family(Family::Index)
      .inplace()
      .out()
      .data(&exact_out)
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
      .out()
      .data(&exact_out)
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
      .derivative([](Grad g, Attr<1, int64_t> dim, In<2> at, Needs need) {
        return Grads{index_fill(g, dim, at, wrapped_number(Scalar(int64_t{0}))), Tensor(),
                     need[3] ? filled_gradient(g, dim, at) : Tensor()};
      });
  t.op(take, "take(Tensor self, Tensor index) -> Tensor", take_kernel)
      .doc("Elements at positions counted in row-major order.")
      .family(Family::Index)
      .out()
      .data(&exact_out)
      .derivative([](Grad g, Shape<0> x, In<1> at) { return put(zeros_of(x.sizes(), g), at, g, true); });
  t.op(put, "put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor", put_kernel)
      .doc("Writes elements at positions counted in row-major order.")
      .family(Family::Index)
      .inplace()
      .derivative([](Grad g, In<1> at, Shape<2> source, Attr<3, bool> accumulate, Needs need) {
        return Grads{*accumulate ? Tensor(g) : put(g, at, zeros_of(source.sizes(), g), false), Tensor(),
                     need[2] ? reshape(take(g, at), source.sizes()) : Tensor()};
      });
  register_scatter_operators(t);
  register_mask_operators(t);
  register_repeat_operators(t);
}

}  // namespace rushlight
