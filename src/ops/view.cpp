// Views proper: each kernel computes sizes, strides and offset. Composites over them are in shape.cpp.
#include "ops/view.h"

#include <cstring>

#include "core/long_work.h"
#include "core/pending.h"
#include "dispatch/table.h"
#include "ops/register.h"

namespace rushlight {

Dims infer_shape(IntList shape, int64_t numel) {
  Dims result = shape.dims();
  int64_t inferred = -1, product = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == -1) {
      RL_CHECK(inferred < 0, "only one dimension can be inferred");
      inferred = static_cast<int64_t>(i);
      continue;
    }
    RL_CHECK(shape[i] >= 0, "invalid shape dimension ", shape[i], " at index ", i, " of shape ", shape);
    RL_CHECK(!__builtin_mul_overflow(product, shape[i], &product), "shape '", shape,
             "' is invalid for input of size ", numel);
  }
  if (inferred >= 0) {
    RL_CHECK(product != 0 || numel == 0, "shape '", shape, "' is invalid for input of size ", numel);
    RL_CHECK(product != 0, "cannot reshape tensor of 0 elements into shape ", shape,
             " because the unspecified dimension size -1 can be any value and is ambiguous");
    RL_CHECK(numel % product == 0, "shape '", shape, "' is invalid for input of size ", numel);
    result[inferred] = numel / product;
  } else {
    RL_CHECK(product == numel, "shape '", shape, "' is invalid for input of size ", numel);
  }
  return result;
}

// Walks both shapes from the end: a run of input dimensions that is contiguous in itself may be cut anew.
std::optional<Dims> view_strides(const Tensor& t, IntList sizes) {
  if (t.numel() == 0) return t.sizes() == sizes ? t.strides().dims() : contiguous_strides(sizes);
  if (t.is_contiguous()) return contiguous_strides(sizes);
  Dims strides(sizes.size());
  int64_t d = static_cast<int64_t>(sizes.size()) - 1;
  int64_t run_stride = t.dim() ? t->strides.back() : 1, run = 1, taken = 1;
  for (int64_t i = t.dim() - 1; i >= 0; --i) {
    run *= t->sizes[i];
    const bool ends = i == 0 || (t->sizes[i - 1] != 1 && t->strides[i - 1] != run * run_stride);
    if (!ends) continue;
    while (d >= 0 && (taken < run || sizes[d] == 1)) {
      strides[d] = taken * run_stride;
      taken *= sizes[d--];
    }
    if (taken != run) return std::nullopt;
    if (i > 0) run_stride = t->strides[i - 1], run = taken = 1;
  }
  if (d != -1) return std::nullopt;
  return strides;
}

namespace {

using namespace ops;

Tensor alias_kernel(const Call&, const Tensor& self) {
  return make_view(self, self.sizes(), self.strides(), self.storage_offset());
}

Tensor detach_kernel(const Call&, const Tensor& self) {
  return make_view(self, self.sizes(), self.strides(), self.storage_offset(), false);
}

Dims checked_view_strides(const Tensor& self, IntList shape, IntList asked) {
  const auto strides = view_strides(self, shape);
  RL_CHECK(strides,
           "view size is not compatible with input tensor's size and stride (at least one dimension spans "
           "across two "
           "contiguous subspaces). Use .reshape(...) instead. Input has shape ",
           self.sizes(), " and strides ", self.strides(), ", asked for ", asked);
  return *strides;
}

Tensor view_kernel(const Call&, const Tensor& self, IntList size) {
  const Dims shape = infer_shape(size, self.numel());
  return make_view(self, shape, checked_view_strides(self, shape, size), self.storage_offset());
}

Tensor unsafe_view_kernel(const Call&, const Tensor& self, IntList size) {
  const Dims shape = infer_shape(size, self.numel());
  const Dims strides =
      self.is_contiguous() ? contiguous_strides(shape) : checked_view_strides(self, shape, size);
  return make_view(self, shape, strides, self.storage_offset(), false);
}

Tensor view_dtype_kernel(const Call&, const Tensor& self, DType dtype) {
  RL_CHECK(!is_quantized(dtype) && !is_quantized(self.dtype()),
           "view: integers of a quantized tensor are read by .int_repr(), and get a scale by "
           "torch._make_per_tensor_quantized_tensor");
  RL_CHECK(!is_pending(self) || dtype == self.dtype(), "torch.Tensor.view is not supported for ",
           self->flags & kPendingConj ? "conjugate" : "negative",
           " view tensors when converting to a different dtype.");
  const auto from = static_cast<int64_t>(self.itemsize()), to = static_cast<int64_t>(element_size(dtype));
  Dims sizes = self->sizes, strides = self->strides;
  int64_t offset = self.storage_offset();
  if (from != to) {
    RL_CHECK(self.dim() > 0, "self.dim() cannot be 0 to view ", legacy_name(self.dtype()), " as ",
             legacy_name(dtype), " (different element sizes)");
    RL_CHECK(strides.back() == 1, "self.stride(-1) must be 1 to view ", legacy_name(self.dtype()), " as ",
             legacy_name(dtype), " (different element sizes), but got ", strides.back());
    auto rescale = [&](int64_t elements, const std::string& what) {
      RL_CHECK(elements * from % to == 0, "self.", what, " must be divisible by ",
               to / std::max<int64_t>(from, 1), " to view ", legacy_name(self.dtype()), " as ",
               legacy_name(dtype), " (different element sizes), but got ", elements);
      return elements * from / to;
    };
    sizes.back() = rescale(sizes.back(), "size(-1)");
    offset = rescale(offset, "storage_offset()");
    for (size_t i = 0; i + 1 < strides.size(); ++i) strides[i] = rescale(strides[i], str("stride(", i, ")"));
  }
  auto impl = Ref<TensorImpl>::adopt(new TensorImpl(self->storage, offset, dtype, self.device()));
  impl->set_layout(sizes, strides);
  impl->version = self->version;
  if (self->flags & kInference) impl->flags |= kInference;
  return Tensor(std::move(impl));
}

Tensor expand_kernel(const Call&, const Tensor& self, IntList size, bool) {
  const auto n = static_cast<int64_t>(size.size()), own = self.dim();
  RL_CHECK(n >= own, "expand(torch.", legacy_name(self.dtype()), "Tensor{", self.sizes(), "}, size=", size,
           "): the number of sizes provided (", n,
           ") must be greater or equal to the number of dimensions in the tensor (", own, ")");
  Dims sizes = size.dims(), strides(n, 0);
  for (int64_t i = n - 1; i >= 0; --i) {
    const int64_t d = i - (n - own), have = d >= 0 ? self->sizes[d] : 1;
    if (size[i] == -1) {
      RL_CHECK(d >= 0, "expand(torch.", legacy_name(self.dtype()), "Tensor{", self.sizes(), "}, size=", size,
               "): The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension ",
               i);
      sizes[i] = have;
    }
    RL_CHECK(sizes[i] >= 0, "expand: negative size ", size[i], " in ", size);
    if (have == sizes[i]) {
      if (d >= 0)
        strides[i] = self->strides[d];
      else if (i + 1 < n)
        strides[i] = sizes[i + 1] * strides[i + 1];  // a new dimension of size 1 lies as unsqueeze lays it
      else
        strides[i] = 1;
      continue;
    }
    RL_CHECK(have == 1, "The expanded size of the tensor (", sizes[i], ") must match the existing size (",
             have, ") at non-singleton dimension ", i, ".  Target sizes: ", size,
             ".  Tensor sizes: ", self.sizes());
  }
  return make_view(self, sizes, strides, self.storage_offset());
}

Tensor transpose_kernel(const Call&, const Tensor& self, int64_t dim0, int64_t dim1) {
  dim0 = wrap_dim(dim0, self.dim());
  dim1 = wrap_dim(dim1, self.dim());
  Dims sizes = self->sizes, strides = self->strides;
  if (dim0 != dim1) {
    std::swap(sizes[dim0], sizes[dim1]);
    std::swap(strides[dim0], strides[dim1]);
  }
  return make_view(self, sizes, strides, self.storage_offset());
}

Tensor t_kernel(const Call& call, const Tensor& self) {
  RL_CHECK(self.dim() <= 2, "t() expects a tensor with <= 2 dimensions, but self is ", self.dim(), "D");
  return self.dim() < 2 ? alias_kernel(call, self) : transpose_kernel(call, self, 0, 1);
}

Dims checked_permutation(const Tensor& self, IntList dims) {
  RL_CHECK(static_cast<int64_t>(dims.size()) == self.dim(),
           "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the "
           "desired ordering of "
           "dimensions i.e. input.dim() = ",
           self.dim(), " is not equal to len(dims) = ", dims.size());
  Dims order;
  for (int64_t d : dims) order.push_back(wrap_dim(d, self.dim()));
  Dims sorted = order;
  std::sort(sorted.begin(), sorted.end());
  RL_CHECK(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end(),
           "permute(): duplicate dims are not allowed.");
  return order;
}

Tensor permute_kernel(const Call&, const Tensor& self, IntList dims) {
  const Dims order = checked_permutation(self, dims);
  Dims sizes, strides;
  for (int64_t d : order) {
    sizes.push_back(self->sizes[d]);
    strides.push_back(self->strides[d]);
  }
  return make_view(self, sizes, strides, self.storage_offset());
}

Tensor permute_back(const Tensor& grad, IntList dims) {
  Dims inverse(dims.size());
  for (size_t i = 0; i < dims.size(); ++i)
    inverse[wrap_dim(dims[i], static_cast<int64_t>(dims.size()))] = static_cast<int64_t>(i);
  return permute(grad, inverse);
}

template <class Keep>
Tensor keep_dims(const Tensor& self, Keep&& keep) {
  Dims sizes, strides;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (self->sizes[d] != 1 || keep(d)) {
      sizes.push_back(self->sizes[d]);
      strides.push_back(self->strides[d]);
    }
  return make_view(self, sizes, strides, self.storage_offset());
}

Tensor squeeze_kernel(const Call&, const Tensor& self) {
  return keep_dims(self, [](int64_t) { return false; });
}

Tensor squeeze_dim_kernel(const Call&, const Tensor& self, int64_t dim) {
  dim = wrap_dim(dim, self.dim());
  return keep_dims(self, [&](int64_t d) { return d != dim; });
}

Tensor squeeze_dims_kernel(const Call&, const Tensor& self, IntList dims) {
  uint64_t mask = 0;
  for (int64_t d : dims) {
    const uint64_t bit = 1ull << wrap_dim(d, self.dim());
    RL_CHECK(!(mask & bit), "dim ", d, " appears multiple times in the list of dims");
    mask |= bit;
  }
  return keep_dims(self, [&](int64_t d) { return !(mask >> d & 1); });
}

Tensor unsqueeze_kernel(const Call&, const Tensor& self, int64_t dim) {
  dim = wrap_dim(dim, self.dim() + 1);
  Dims sizes = self->sizes, strides = self->strides;
  strides.insert(dim, dim < self.dim() ? sizes[dim] * strides[dim] : 1);
  sizes.insert(dim, 1);
  return make_view(self, sizes, strides, self.storage_offset());
}

Tensor select_kernel(const Call&, const Tensor& self, int64_t dim, int64_t index) {
  RL_CHECK_INDEX(self.dim() > 0, "select() cannot be applied to a 0-dim tensor.");
  dim = wrap_dim(dim, self.dim());
  const int64_t n = self->sizes[dim];
  RL_CHECK_INDEX(index >= -n && index < n, "select(): index ", index, " out of range for tensor of size ",
                 self.sizes(), " at dimension ", dim);
  if (index < 0) index += n;
  Dims sizes = self->sizes, strides = self->strides;
  const int64_t offset = self.storage_offset() + index * strides[dim];
  sizes.erase(dim);
  strides.erase(dim);
  return make_view(self, sizes, strides, offset);
}

// Python's slice rules; a negative step walks backwards (NumPy's view, which PyTorch's users ask for).
struct Range {
  int64_t start, length;
};
Range resolve_slice(int64_t n, OptInt start, OptInt end, int64_t step) {
  RL_CHECK_VALUE(step != 0, "slice step cannot be zero");
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
  auto clamp = [&](OptInt v, int64_t missing) {
    if (!v) return missing;
    return std::clamp(*v < 0 ? *v + n : *v, low, high);
  };
  const int64_t first = clamp(start, step > 0 ? low : high), last = clamp(end, step > 0 ? high : low);
  // The distance fits: both lie within [-1, n]. A step beyond it takes one element.
  const int64_t span = step > 0 ? last - first : first - last;
  const uint64_t width = step > 0 ? static_cast<uint64_t>(step) : 0 - static_cast<uint64_t>(step);
  const int64_t length =
      span <= 0 ? 0 : static_cast<int64_t>((static_cast<uint64_t>(span) + width - 1) / width);
  return {length ? first : std::clamp<int64_t>(first, 0, n), length};
}

Tensor slice_kernel(const Call&, const Tensor& self, int64_t dim, OptInt start, OptInt end, int64_t step) {
  RL_CHECK_INDEX(self.dim() > 0, "slice() cannot be applied to a 0-dim tensor.");
  dim = wrap_dim(dim, self.dim());
  const Range range = resolve_slice(self->sizes[dim], start, end, step);
  Dims sizes = self->sizes, strides = self->strides;
  const int64_t offset = self.storage_offset() + range.start * strides[dim];
  sizes[dim] = range.length;
  strides[dim] = range.length > 1 ? strides[dim] * step : strides[dim];
  return make_view(self, sizes, strides, offset);
}

void check_strided_bounds(const Tensor& self, IntList size, IntList stride, int64_t offset) {
  RL_CHECK(size.size() == stride.size(), "mismatch in length of strides and shape");
  RL_CHECK(offset >= 0, "Tensor: invalid storage offset ", offset);
  if (checked_numel(size) == 0) return;
  int64_t low = offset, high = offset, reach = 0;
  for (size_t i = 0; i < size.size(); ++i) {
    RL_CHECK(!__builtin_mul_overflow(size[i] - 1, stride[i], &reach) &&
                 !__builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high),
             "as_strided: sizes ", size, " and strides ", stride, " overflow");
  }
  const auto have = static_cast<int64_t>(self->storage->nbytes() / self.itemsize());
  RL_CHECK(low >= 0 && high < have, "setStorage: sizes ", size, ", strides ", stride, ", storage offset ",
           offset, ", and itemsize ", self.itemsize(), " requiring a storage size of ",
           (high + 1) * static_cast<int64_t>(self.itemsize()), " are out of bounds for storage of size ",
           self->storage->nbytes());
}

Tensor as_strided_kernel(const Call&, const Tensor& self, IntList size, IntList stride,
                         OptInt storage_offset) {
  const int64_t offset = storage_offset.value_or(self.storage_offset());
  check_strided_bounds(self, size, stride, offset);
  return make_view(self, size, stride, offset);
}

Tensor diagonal_kernel(const Call&, const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  const int64_t a = wrap_dim(dim1, self.dim(), false), b = wrap_dim(dim2, self.dim(), false);
  RL_CHECK(a != b, "diagonal dimensions cannot be identical ", dim1, ", ", dim2);
  const int64_t rows = self->sizes[a], columns = self->sizes[b];
  const int64_t length =
      std::max<int64_t>(0, offset >= 0 ? std::min(rows, columns - std::min(offset, columns))
                                       : std::min(rows + std::max(offset, -rows), columns));
  int64_t start = self.storage_offset();
  if (length) start += offset >= 0 ? offset * self->strides[b] : -offset * self->strides[a];
  Dims sizes = self->sizes, strides = self->strides;
  const int64_t step = strides[a] + strides[b];
  for (int64_t d : {std::max(a, b), std::min(a, b)}) sizes.erase(d), strides.erase(d);
  sizes.push_back(length);
  strides.push_back(step);
  return make_view(self, sizes, strides, start);
}

Tensor unfold_kernel(const Call&, const Tensor& self, int64_t dimension, int64_t size, int64_t step) {
  const int64_t d = wrap_dim(dimension, self.dim());
  const int64_t n = self.dim() ? self->sizes[d] : 1;
  RL_CHECK(size >= 0, "size is ", size, " but must be >= 0");
  RL_CHECK(size <= n, "maximum size for tensor at dimension ", d, " is ", n, " but size is ", size);
  RL_CHECK(step > 0, "step is ", step, " but must be > 0");
  Dims sizes = self->sizes, strides = self->strides;
  const int64_t stride = self.dim() ? strides[d] : 1;
  if (self.dim()) {
    sizes[d] = (n - size) / step + 1;
    strides[d] = stride * step;
  }
  sizes.push_back(size);
  strides.push_back(stride);
  return make_view(self, sizes, strides, self.storage_offset());
}

std::vector<Tensor> mark_multi(std::vector<Tensor> views) {
  for (Tensor& v : views) v->flags |= kMultiView;
  return views;
}

std::vector<Tensor> unbind_kernel(const Call& call, const Tensor& self, int64_t dim) {
  RL_CHECK_INDEX(self.dim() > 0, "Dimension specified as ", dim, " but tensor has no dimensions");
  dim = wrap_dim(dim, self.dim());
  check_memory_for_tensors(self->sizes[dim]);
  std::vector<Tensor> views;
  InterruptPoll poll;
  for (int64_t i = 0; i < self->sizes[dim]; ++i) poll(), views.push_back(select_kernel(call, self, dim, i));
  return mark_multi(std::move(views));
}

std::vector<Tensor> split_with_sizes_kernel(const Call& call, const Tensor& self, IntList sizes,
                                            int64_t dim) {
  RL_CHECK(self.dim() != 0, "split expects at least a 1-dimensional tensor");
  dim = wrap_dim(dim, self.dim());
  std::vector<Tensor> views;
  int64_t start = 0;
  for (int64_t n : sizes) {
    RL_CHECK(
        n >= 0,
        "split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes=", sizes);
    RL_CHECK(n <= self->sizes[dim] - start, "split_with_sizes expects split_sizes to sum exactly to ",
             self->sizes[dim], " (input tensor's size at dimension ", dim, "), but got split_sizes=", sizes);
    views.push_back(slice_kernel(call, self, dim, start, start + n, 1));
    start += n;
  }
  RL_CHECK(start == self->sizes[dim], "split_with_sizes expects split_sizes to sum exactly to ",
           self->sizes[dim], " (input tensor's size at dimension ", dim, "), but got split_sizes=", sizes);
  return mark_multi(std::move(views));
}

std::vector<Tensor> split_kernel(const Call& call, const Tensor& self, int64_t split_size, int64_t dim) {
  RL_CHECK(self.dim() != 0, "split expects at least a 1-dimensional tensor");
  RL_CHECK(split_size >= 0, "split expects split_size be non-negative, but got split_size=", split_size);
  dim = wrap_dim(dim, self.dim());
  const int64_t n = self->sizes[dim];
  RL_CHECK(split_size > 0 || n == 0,
           "split_size can only be 0 if dimension size is 0, but got dimension size of ", n);
  if (n > 0) check_memory_for_tensors((n - 1) / split_size + 1);
  std::vector<Tensor> views;
  InterruptPoll poll;
  int64_t start = 0;
  do {  // a dimension of size 0 gives one empty piece
    poll();
    const int64_t length = std::min(split_size, n - start);
    views.push_back(slice_kernel(call, self, dim, start, start + length, 1));
    start += length;
  } while (start < n);
  return mark_multi(std::move(views));
}

}  // namespace

Dims piece_sizes(int64_t n, int64_t piece) {
  Dims sizes;
  do {
    sizes.push_back(std::min(piece, n));
    n -= sizes.back();
  } while (n > 0);
  return sizes;
}

void register_view_operators(Table& t) {
  t.op(alias, "alias(Tensor(a) self) -> Tensor(a)", alias_kernel)
      .internal()
      .family(Family::View)
      .same_elements()
      .doc("A view of the whole tensor.")
      .derivative([](Grad g) { return Tensor(g); });
  t.op(detach, "detach(Tensor(a) self) -> Tensor(a)", detach_kernel)
      .family(Family::View)
      .same_elements()
      .doc("The same data outside the graph: no gradient flows back through the result.")
      .not_differentiable("cuts the graph on purpose");
  t.op(view, "view(Tensor(a) self, int[1] size) -> Tensor(a)", view_kernel)
      .method_only()
      .family(Family::View)
      .same_elements()
      .doc(
          "The same data in another shape, without copying. One size may be -1. RuntimeError where only a "
          "copy could do it.")
      .derivative([](Grad g, Shape<0> self) { return reshape(g, self); });
  t.op(view_dtype, "view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)", view_dtype_kernel)
      .method_only()
      .family(Family::View)
      .special_dtypes()
      .doc("The same bytes read as another dtype.")
      .not_differentiable("reinterprets bits");
  t.quantized(view_dtype, view_dtype_kernel);
  t.op(unsafe_view, "_unsafe_view(Tensor self, int[] size) -> Tensor", unsafe_view_kernel)
      .internal()
      .family(Family::View)
      .same_elements()
      .doc("view of a fresh contiguous tensor that nobody else sees.")
      .derivative([](Grad g, Shape<0> self) { return reshape(g, self); });
  t.op(expand, "expand(Tensor(a) self, int[1] size, *, bool implicit=False) -> Tensor(a)", expand_kernel)
      .method_only()
      .family(Family::View)
      .overlapping()
      .doc("Repeats dimensions of size 1 without copying; -1 keeps a size, new dimensions go in front.")
      .derivative([](Grad g) { return Tensor(g); });  // the engine sums to the input's shape
  t.op(transpose, "transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", transpose_kernel)
      .family(Family::View)
      .doc("Swaps two dimensions.")
      .batching(Batching::Dims)
      .derivative([](Grad g, Attr<1, int64_t> a, Attr<2, int64_t> b) { return transpose(g, a, b); });
  t.op(ops::t, "t(Tensor(a) self) -> Tensor(a)", t_kernel)
      .family(Family::View)
      .doc("Transpose of a tensor of at most two dimensions.")
      .derivative([](Grad g) { return ops::t(g); });
  t.op(permute, "permute(Tensor(a) self, int[1] dims) -> Tensor(a)", permute_kernel)
      .family(Family::View)
      .doc("Reorders the dimensions.")
      .derivative([](Grad g, Attr<1, IntList> dims) { return permute_back(g, dims); });
  t.op(squeeze, "squeeze(Tensor(a) self) -> Tensor(a)", squeeze_kernel)
      .family(Family::View)
      .same_elements()
      .doc("Drops dimensions of size 1.")
      .derivative([](Grad g, Shape<0> self) { return reshape(g, self); });
  t.op(squeeze_dim, "squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)", squeeze_dim_kernel)
      .doc("A view without the dimension dim, if its size is 1.")
      .family(Family::View)
      .same_elements()
      .node("SqueezeBackward1")
      .derivative([](Grad g, Shape<0> self) { return reshape(g, self); });
  t.op(squeeze_dims, "squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)", squeeze_dims_kernel)
      .doc("A view without those of the named dimensions whose size is 1.")
      .family(Family::View)
      .same_elements()
      .node("SqueezeBackward2")
      .derivative([](Grad g, Shape<0> self) { return reshape(g, self); });
  t.op(unsqueeze, "unsqueeze(Tensor(a) self, int dim) -> Tensor(a)", unsqueeze_kernel)
      .family(Family::View)
      .same_elements()
      .doc("Inserts a dimension of size 1.")
      .derivative([](Grad g, Shape<0> self) { return reshape(g, self); });
  t.op(select, "select.int(Tensor(a) self, int dim, int index) -> Tensor(a)", select_kernel)
      .family(Family::View)
      .doc("One slice along a dimension; the dimension goes away.")
      .batching(Batching::Dims)
      .derivative([](Grad g, Shape<0> self, Attr<1, int64_t> dim, Attr<2, int64_t> i) {
        return select_backward(g, self, dim, i);
      });
  t.op(slice,
       "slice.Tensor(Tensor(a) self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor(a)",
       slice_kernel)
      .internal()
      .family(Family::View)
      .doc("self[start:end:step] along a dimension.")
      .batching(Batching::Dims)
      .derivative([](Grad g, Shape<0> self, Attr<1, int64_t> dim, Attr<2, OptInt> start, Attr<3, OptInt> end,
                     Attr<4, int64_t> step) { return slice_backward(g, self, dim, start, end, step); });
  t.op(as_strided,
       "as_strided(Tensor(a) self, int[] size, int[] stride, int? storage_offset=None) -> Tensor(a)",
       as_strided_kernel)
      .family(Family::View)
      .overlapping()
      .doc("A view with the given sizes, strides and offset into the storage, all in elements.")
      .derivative(
          [](Grad g, In<0> self, Attr<1, IntList> size, Attr<2, IntList> stride, Attr<3, OptInt> offset) {
            return as_strided_backward(g, self.sizes(), self.strides(), size, stride,
                                       offset.value.value_or(self.storage_offset()) - self.storage_offset());
          });
  t.op(diagonal, "diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)",
       diagonal_kernel)
      .family(Family::View)
      .doc("A diagonal of two dimensions, as the last dimension of the result.")
      .batching(Batching::Dims)
      .derivative([](Grad g, Shape<0> self, Attr<1, int64_t> offset, Attr<2, int64_t> a, Attr<3, int64_t> b) {
        return diagonal_backward(g, self, offset, a, b);
      });
  t.op(unfold, "unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)", unfold_kernel)
      .method_only()
      .family(Family::View)
      .overlapping()
      .doc("Windows of `size` elements every `step` along a dimension, in a new last dimension.")
      .batching(Batching::Dims)
      .derivative([](Grad g, Shape<0> self, Attr<1, int64_t> dim, Attr<2, int64_t> size,
                     Attr<3, int64_t> step) { return unfold_backward(g, self, dim, size, step); });
  t.op(unbind, "unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor[]", unbind_kernel)
      .family(Family::View)
      .doc("All slices along a dimension.")
      .batching(Batching::Dims)
      .derivative(
          [](GradList g, Shape<0> self, Attr<1, int64_t> dim) { return unbind_backward(g, self, dim); });
  t.op(split_with_sizes, "split_with_sizes(Tensor(a -> *) self, int[] split_sizes, int dim=0) -> Tensor[]",
       split_with_sizes_kernel)
      .family(Family::View)
      .doc("Consecutive pieces of the given sizes.")
      .batching(Batching::Dims)
      .derivative([](GradList g, Shape<0> self, Attr<1, IntList> sizes, Attr<2, int64_t> dim) {
        return split_backward(g, self, sizes, dim);
      });
  t.op(split, "split.Tensor(Tensor(a -> *) self, int split_size, int dim=0) -> Tensor[]", split_kernel)
      .family(Family::View)
      .doc("Consecutive pieces of `split_size`; the last may be smaller.")
      .batching(Batching::Dims)
      .derivative([](GradList g, Shape<0> self, Attr<1, int64_t> size, Attr<2, int64_t> dim) {
        return split_backward(g, self, piece_sizes(self.size(dim), size), dim);
      });
}

}  // namespace rushlight
