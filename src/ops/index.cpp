// index and index_put. Whole slices are in index_slices.cpp, flat positions in index_flat.cpp, scatter and
// its kin in index_scatter.cpp, masks in index_mask.cpp, repetition in index_repeat.cpp.
#include "ops/index.h"

#include "cpu/index.h"
#include "ops/copy.h"
#include "ops/device_positions.h"
#include "ops/factory.h"
#include "ops/index_common.h"
#include "ops/operators.h"
#include "ops/register.h"
#include "ops/view.h"

namespace rushlight {

using namespace ops;

namespace {

bool is_mask(const Tensor& index) {
  return index.defined() && (index.dtype() == DType::Bool || index.dtype() == DType::UInt8);
}

// A mask covers the dimensions of self from `first` on.
void check_mask(const Tensor& self, const Tensor& mask, size_t first) {
  for (int64_t d = 0; d < mask.dim(); ++d) {
    const size_t at = first + static_cast<size_t>(d);
    RL_CHECK_INDEX(at < self.sizes().size() && mask->sizes[d] == self->sizes[at], "The shape of the mask ",
                   mask.sizes(), " at index ", d, " does not match the shape of the indexed tensor ",
                   self.sizes(), " at index ", at);
  }
}

// Masks become one index tensor per dimension that they cover.
void add_mask(std::vector<Tensor>& indices, const Tensor& self, const Tensor& mask) {
  check_mask(self, mask, indices.size());
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
  cpu::IndexBlocks blocks;          // on the CPU
  loops::IndexedPositions indexed;  // on a device
  Dims result;                      // sizes
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
    if (is_mask(t)) {
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
  loops::Positions& at = plan.indexed.at;
  if (on_device && count != 1)
    at.offsets = new_zeros(self, shape, DType::Int64, std::nullopt, std::nullopt, std::nullopt);
  else if (!on_device)
    plan.blocks.indexed.assign(static_cast<size_t>(checked_numel(shape)), 0);
  for (size_t d = 0; d < indices.size(); ++d) {
    const int64_t size = self->sizes[d], stride = self->strides[d];
    if (indices[d].defined() && on_device && count == 1)
      at.offsets = indices[d], plan.indexed.by = {size, stride, true};
    else if (indices[d].defined() && on_device)
      loops::add_positions(at.offsets, indices[d], size, stride, true);
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
    at.sizes = plan.result;
    at.strides = joined(before_strides, Dims(shape.size(), 0), after_strides);
    const Dims along = joined(Dims(before.size(), 0), at.offsets->strides, Dims(after.size(), 0));
    at.offsets = make_view(at.offsets, plan.result, along, at.offsets.storage_offset(), false);
    return plan;
  }
  plan.blocks.before = cpu::all_offsets(before, before_strides);
  plan_runs(plan.blocks, after, after_strides);
  return plan;
}

// Whether a mask without values says where to write, so that nobody knows how many places there are.
bool has_unknown_mask(const Tensor& self, TensorList indices) {
  bool found = false;
  size_t at = 0;
  for (const Tensor& t : indices) {
    if (is_mask(t)) check_mask(self, t, at);
    found = found || (is_mask(t) && t.device().is_meta());
    at += is_mask(t) ? static_cast<size_t>(t.dim()) : 1;
  }
  return found;
}

bool is_plain_mask(const Tensor& self, TensorList indices) {
  return indices.size() == 1 && indices[0].defined() && indices[0].dtype() == DType::Bool &&
         indices[0].sizes() == self.sizes() && indices[0].device() == self.device();
}

Tensor index_kernel(const Call&, const Tensor& self, TensorList indices) {
  if (is_plain_mask(self, indices) && self.dim() > 0 && !self.device().is_meta())
    return select_under_mask(self, indices[0]);
  if (indices.size() == 1 && indices[0].defined())
    if (const Tensor out = taken_from_vector(self, indices[0]); out.defined()) return out;
  const IndexPlan plan = plan_index(self, indices);
  const Tensor out = empty_tensor(plan.result, self.dtype(), self.device());
  if (out.numel() > 0 && out.is_cpu())
    cpu::index_read(plan.blocks, self.data_ptr(), out.data_ptr(), self.itemsize());
  if (out.device().is_cuda()) loops::take(out, self, plan.indexed);
  return out;
}

Tensor index_put_kernel_(const Call&, const Tensor& self, TensorList indices, const Tensor& given,
                         bool accumulate) {
  const bool fills = given.numel() == 1 && !accumulate && is_plain_mask(self, indices);
  require_data_beside(self, given, "index_put_");
  warn_of_expanded(self, "index_put_", "tensor[indices] = tensor");
  if (fills && given.dim() == 0) {
    ops::masked_fill.inplace(self, indices[0], to_dtype(given, self.dtype()));
    return self;
  }
  RL_CHECK(given->storage.get() != self->storage.get() || !is_non_overlapping_and_dense(self) ||
               !is_non_overlapping_and_dense(given) || memory_overlap(self, given) == Overlap::No,
           "unsupported operation: some elements of the input tensor and the written-to tensor refer to a "
           "single memory location. Please clone() the tensor before performing the operation.");
  check_apart_from(self, indices);
  if (self.device().is_meta() && has_unknown_mask(self, indices)) return self;
  const IndexPlan plan = plan_index(self, indices);
  bool fits = given.dim() <= static_cast<int64_t>(plan.result.size());
  for (int64_t i = 0; fits && i < given.dim(); ++i) {
    const int64_t size = given->sizes[i];
    fits = size == 1 || size == plan.result[plan.result.size() - static_cast<size_t>(given.dim() - i)];
  }
  RL_CHECK(fits, "shape mismatch: value tensor of shape ", given.sizes(),
           " cannot be broadcast to indexing result of shape ", plan.result);
  RL_CHECK(given.dtype() == self.dtype() || given.is_wrapped_number() || fills,
           "Index put requires the source and destination dtypes match, got ", legacy_name(self.dtype()),
           " for the destination and ", legacy_name(given.dtype()), " for the source.");
  Tensor values = to_dtype(given, self.dtype());
  if (self.device().is_cuda()) {
    loops::put(accumulate ? cpu::ScatterOp::Add : cpu::ScatterOp::Assign, self, plan.indexed,
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

// A gradient's elements added where they were read, to zeros that nobody has taken note of.
Tensor added_at(IntList sizes, const Tensor& g, TensorList at) {
  const Tensor whole = zeros_of(sizes, g);
  const bool noted = takes_note(detail::flags_of(g) | detail::flags_of(at));
  return noted ? index_put(whole, at, g, true) : index_put_(whole, at, g, true);
}

Tensor index_put_body(const Call&, const Tensor& self, TensorList indices, const Tensor& values,
                      bool accumulate) {
  return index_put_(clone(self, MemoryFormat::Preserve), indices, values, accumulate);
}

}  // namespace

void register_index_operators(Table& t) {
  t.op(index, "index.Tensor(Tensor self, Tensor?[] indices) -> Tensor", index_kernel)
      .doc("Elements at the positions that index tensors or masks name.")
      .family(Family::Index)
      .internal()
      .on_devices()
      .linear()
      .any_device(kSecond)
      .derivative([](Grad g, Shape<0> x, InList<1> at) { return added_at(x.sizes(), g, at); });
  t.op(index_put_,
       "index_put_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor(a!)",
       index_put_kernel_)
      .doc("Writes values at the positions that index tensors or masks name.")
      .family(Family::Index)
      .on_devices()
      .linear()
      .any_device(kSecond)
      .derivative([](Grad g, InList<1> at, Attr<3, bool> accumulate, Needs need) {
        Grads grads;
        grads.push_back(*accumulate || !need[0] ? Tensor(g) : index_put(g, at, zeros_of({}, g), false));
        for (size_t i = 0; i < at.size(); ++i) grads.push_back(Tensor());
        grads.push_back(need[2] ? index(g, at) : Tensor());
        return grads;
      })
      .op()
      .is_function = true;
  t.composite(index_put,
              "index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
              index_put_body)
      .doc("A copy of self with values written at the positions that index tensors or masks name.")
      .autocast(Cast::None, Cast::Widest)
      .any_device(kSecond);
  register_slice_operators(t);
  register_flat_position_operators(t);
  register_scatter_operators(t);
  register_mask_operators(t);
  register_repeat_operators(t);
}

}  // namespace rushlight
