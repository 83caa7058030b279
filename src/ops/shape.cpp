// Shape operators written over the views, and the in-place changes of geometry.

#include "core/long_work.h"
#include "core/sparse.h"
#include "dispatch/table.h"
#include "dispatch/warning.h"
#include "ops/complex.h"
#include "ops/copy.h"
#include "ops/register.h"
#include "ops/uninitialized.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

Tensor dense_clone(const Tensor& t) { return clone(t, MemoryFormat::Contiguous); }

Tensor reshape_body(const Call&, const Tensor& self, IntList shape) {
  RL_CHECK(!is_sparse(self), "reshape is not implemented for sparse tensors; use .to_dense()");
  const Dims sizes = infer_shape(shape, self.numel());
  // As written: a graph that was captured keeps -1 and so fits tensors of other sizes.
  if (view_strides(self, sizes)) return view(self, shape);
  return unsafe_view(dense_clone(self), shape);
}

Tensor view_as_body(const Call&, const Tensor& self, const Tensor& other) {
  return view(self, other.sizes());
}
Tensor reshape_as_body(const Call&, const Tensor& self, const Tensor& other) {
  return reshape(self, other.sizes());
}
Tensor expand_as_body(const Call&, const Tensor& self, const Tensor& other) {
  return expand(self, other.sizes());
}
Tensor broadcast_to_body(const Call&, const Tensor& self, IntList size) { return expand(self, size); }
Tensor swap_body(const Call&, const Tensor& self, int64_t a, int64_t b) { return transpose(self, a, b); }

Tensor numpy_t_body(const Call&, const Tensor& self) {
  static OnceWarning other_dimensions(
      "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it "
      "will "
      "throw an error in a future release. Consider `x.mT` to transpose batches of matrices or "
      "`x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor.");
  static OnceWarning no_dimensions(
      "Tensor.T is deprecated on 0-D tensors. This function is the identity in these cases.");
  if (self.dim() != 2) (self.dim() ? other_dimensions : no_dimensions).show();
  Dims order;
  for (int64_t d = self.dim(); d-- > 0;) order.push_back(d);
  return permute(self, order);
}

Tensor matrix_transpose(const char* name, const Tensor& self, OnceWarning& no_dimensions) {
  RL_CHECK(self.dim() >= 2 || self.dim() == 0, "tensor.", name,
           " is only supported on matrices or batches of matrices. Got ", self.dim(), "-D tensor.");
  if (self.dim()) return transpose(self, -2, -1);
  no_dimensions.show();
  return self;
}
Tensor mt_body(const Call&, const Tensor& self) {
  static OnceWarning no_dimensions(
      "Tensor.mT is deprecated on 0-D tensors. This function is the identity in these cases.");
  return matrix_transpose("mT", self, no_dimensions);
}
Tensor mh_body(const Call&, const Tensor& self) {
  static OnceWarning no_dimensions("Tensor.mH is deprecated on 0-D tensors. Consider using x.conj().");
  return ops::conj(matrix_transpose("mH", self, no_dimensions));
}
Tensor adjoint_body(const Call&, const Tensor& self) {
  static OnceWarning no_dimensions("adjoint() is deprecated on 0-D tensors. Consider using x.conj().");
  return ops::conj(matrix_transpose("adjoint()", self, no_dimensions));
}
Tensor matrix_h_body(const Call&, const Tensor& self) {
  static OnceWarning no_dimensions("Tensor.H is deprecated on 0-D tensors. Consider using x.conj().");
  RL_CHECK(self.dim() == 2 || self.dim() == 0, "tensor.H is only supported on matrices (2-D tensors). Got ",
           self.dim(), "-D tensor.",
           self.dim() > 2 ? " For batches of matrices, consider using tensor.mH" : "");
  if (self.dim()) return ops::conj(ops::t(self));
  no_dimensions.show();
  return ops::conj(self);
}

Tensor movedim_body(const Call&, const Tensor& self, IntList source, IntList destination) {
  RL_CHECK(source.size() == destination.size(), "movedim: Invalid source or destination dims: source (",
           source, " dims) should contain the same number of dims as destination (", destination, " dims)");
  const int64_t n = std::max<int64_t>(self.dim(), 1);  // a tensor of no dimensions counts as one of one
  Dims order(n, -1);
  std::vector<bool> taken(n, false);
  for (size_t i = 0; i < source.size(); ++i) {
    const int64_t from = wrap_dim(source[i], n), to = wrap_dim(destination[i], n);
    RL_CHECK(!taken[from], "movedim: repeated dim in `source` (", source, ")");
    RL_CHECK(order[to] < 0, "movedim: repeated dim in `destination` (", destination, ")");
    taken[from] = true;
    order[to] = from;
  }
  int64_t next = 0;
  for (int64_t& d : order) {
    if (d >= 0) continue;
    while (taken[next]) ++next;
    d = next++;
  }
  return self.dim() ? permute(self, order) : permute(self, IntList{});
}
Tensor movedim_int_body(const Call& call, const Tensor& self, int64_t source, int64_t destination) {
  return movedim_body(call, self, IntList{source}, IntList{destination});
}

Tensor narrow_body(const Call&, const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  RL_CHECK(self.dim() > 0, "narrow() cannot be applied to a 0-dim tensor.");
  RL_CHECK(length >= 0, "narrow(): length must be non-negative.");
  const int64_t n = self.size(dim);
  RL_CHECK_INDEX(start >= -n && start <= n, "start out of range (expected to be in range of [", -n, ", ", n,
                 "], but got ", start, ")");
  if (start < 0) start += n;
  RL_CHECK(start <= n - length, "start (", start, ") + length (", length, ") exceeds dimension size (", n,
           ").");
  return slice(self, dim, start, start + length, 1);
}
Tensor narrow_tensor_body(const Call& call, const Tensor& self, int64_t dim, const Tensor& start,
                          int64_t length) {
  RL_CHECK(start.dim() == 0 && is_integral(start.dtype()), "start must be an 0-dim integral Tensor.");
  return narrow_body(call, self, dim, read_scalar(start).to_int(), length);
}

Tensor flatten_body(const Call&, const Tensor& self, int64_t start_dim, int64_t end_dim) {
  const int64_t first = wrap_dim(start_dim, self.dim()), last = wrap_dim(end_dim, self.dim());
  RL_CHECK(first <= last, "flatten() has invalid args: start_dim cannot come after end_dim");
  if (self.dim() == 0) return reshape(self, IntList{1});
  if (first == last) return self;
  Dims sizes;
  int64_t merged = 1;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (d < first || d > last)
      sizes.push_back(self->sizes[d]);
    else
      merged *= self->sizes[d];
    if (d == last) sizes.push_back(merged);
  }
  return reshape(self, sizes);
}

Tensor unflatten_body(const Call&, const Tensor& self, int64_t dim, IntList sizes) {
  dim = wrap_dim(dim, self.dim(), false);
  RL_CHECK(!sizes.empty(), "unflatten: sizes must be non-empty");
  Dims pieces = sizes.dims(), shape = self->sizes;
  int64_t product = 1, inferred = -1;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i] == -1) {
      RL_CHECK(inferred < 0, "only one dimension can be inferred");
      inferred = static_cast<int64_t>(i);
    } else {
      product *= pieces[i];
    }
  }
  const bool fits = inferred >= 0 ? product != 0 && shape[dim] % product == 0 : product == shape[dim];
  RL_CHECK(fits, "unflatten: Provided sizes ", sizes, " don't multiply up to the size of dim ", dim, " (",
           shape[dim], ") in the input tensor");
  if (inferred >= 0) pieces[inferred] = shape[dim] / product;
  shape.erase(dim);
  for (size_t i = 0; i < pieces.size(); ++i) shape.insert(dim + i, pieces[i]);
  return view(self, shape);
}

std::vector<Tensor> chunk_body(const Call&, const Tensor& self, int64_t chunks, int64_t dim) {
  RL_CHECK(self.dim() > 0, "chunk expects at least a 1-dimensional tensor");
  RL_CHECK(chunks > 0, "chunk expects `chunks` to be greater than 0, got: ", chunks);
  const int64_t n = self.size(dim), piece = n == 0 ? 0 : (n - 1) / chunks + 1;
  if (n == 0) check_memory_for_tensors(chunks);
  if (n == 0) return split_with_sizes(self, Dims(chunks, 0), dim);
  return split(self, piece, dim);
}

std::vector<Tensor> tensor_split_body(const Call&, const Tensor& self, int64_t sections, int64_t dim) {
  RL_CHECK(self.dim() > 0, "tensor_split expected at least a 1-dimensional tensor, but got a tensor with ",
           self.dim(), " dims");
  RL_CHECK(sections > 0, "number of sections must be larger than 0, got ", sections);
  dim = wrap_dim(dim, self.dim());
  const int64_t n = self->sizes[dim];
  check_memory_for_tensors(sections);
  std::vector<Tensor> pieces;
  InterruptPoll poll;
  int64_t start = 0;
  for (int64_t i = 0; i < sections; ++i) {
    poll();
    const int64_t length = n / sections + (i < n % sections);
    pieces.push_back(slice(self, dim, start, start + length, 1));
    start += length;
  }
  return pieces;
}

std::vector<Tensor> tensor_split_indices_body(const Call&, const Tensor& self, IntList indices, int64_t dim) {
  RL_CHECK(self.dim() > 0, "tensor_split expected at least a 1-dimensional tensor, but got a tensor with ",
           self.dim(), " dims");
  std::vector<Tensor> pieces;
  int64_t start = 0;
  for (int64_t end : indices) {
    pieces.push_back(slice(self, dim, start, end, 1));
    start = end;
  }
  pieces.push_back(slice(self, dim, start, std::nullopt, 1));
  return pieces;
}

Tensor reversed(const Tensor& self, IntList dims) {
  Dims strides = self->strides;
  int64_t offset = self.storage_offset();
  std::vector<bool> seen(self.dim() + 1, false);
  for (int64_t given : dims) {
    const int64_t d = wrap_dim(given, self.dim());
    RL_CHECK(!seen[d], "dim ", d, " appears multiple times in the list of dims");
    seen[d] = true;
    if (self.dim() == 0 || self->sizes[d] == 0) continue;
    offset += (self->sizes[d] - 1) * strides[d];
    strides[d] = -strides[d];
  }
  return make_view(self, self.sizes(), strides, offset, false);
}

// A copy, as PyTorch's flip; x[::-1] is the view.
Tensor flip_kernel(const Call&, const Tensor& self, IntList dims) {
  Tensor result = empty_like_tensor(self, self.dtype());
  copy_result(result, reversed(self, dims), false);
  return result;
}
Tensor fliplr_body(const Call&, const Tensor& self) {
  RL_CHECK(self.dim() >= 2, "Input must be >= 2-d.");
  return flip(self, IntList{1});
}
Tensor flipud_body(const Call&, const Tensor& self) {
  RL_CHECK(self.dim() >= 1, "Input must be >= 1-d.");
  return flip(self, IntList{0});
}

Tensor rot90_body(const Call&, const Tensor& self, int64_t k, IntList dims) {
  RL_CHECK(dims.size() == 2, "expected total rotation dims == 2, but got dims = ", dims.size());
  RL_CHECK(self.dim() >= 2, "expected total dims >= 2, but got total dims = ", self.dim());
  RL_CHECK(wrap_dim(dims[0], self.dim()) != wrap_dim(dims[1], self.dim()),
           "expected rotation dims to be different, but got dim0 = ", dims[0], " and dim1 = ", dims[1]);
  switch ((k % 4 + 4) % 4) {
    case 1:
      return transpose(flip(self, IntList{dims[1]}), dims[0], dims[1]);
    case 2:
      return flip(self, dims);
    case 3:
      return transpose(flip(self, IntList{dims[0]}), dims[0], dims[1]);
    default:
      return dense_clone(self);
  }
}

Tensor diag_embed_kernel(const Call&, const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  const int64_t n = self.dim() + 1;
  RL_CHECK(self.dim() >= 1, "diag_embed: expects at least a 1-dimensional tensor");
  const int64_t a = wrap_dim(dim1, n), b = wrap_dim(dim2, n);
  RL_CHECK(a != b, "diagonal dimensions cannot be identical ", dim1, ", ", dim2);
  const int64_t side = self->sizes.back() + std::abs(offset);
  Dims sizes = self.sizes().slice(0, self.dim() - 1).dims();
  sizes.insert(std::min(a, b), side);
  sizes.insert(std::max(a, b), side);
  return diagonal_backward(self, sizes, offset, a, b);
}

Tensor diag_body(const Call&, const Tensor& self, int64_t offset) {
  RL_CHECK(self.dim() == 1 || self.dim() == 2, "diag(): Supports 1D or 2D tensors. Got ", self.dim(), "D");
  return self.dim() == 1 ? diag_embed(self, offset, 0, 1) : dense_clone(diagonal(self, offset, 0, 1));
}

// --- in-place changes of geometry: the tensor takes the layout of the view that the functional form would
// give ---------

Tensor adopt_layout(const Tensor& self, const Tensor& view) {
  self->offset = view.storage_offset();
  self->set_layout(view.sizes(), view.strides());
  return self;
}
Tensor squeeze_inplace(const Call&, const Tensor& self) { return adopt_layout(self, squeeze(self)); }
Tensor squeeze_dim_inplace(const Call&, const Tensor& self, int64_t dim) {
  return adopt_layout(self, squeeze_dim(self, dim));
}
Tensor squeeze_dims_inplace(const Call&, const Tensor& self, IntList dims) {
  return adopt_layout(self, squeeze_dims(self, dims));
}
Tensor unsqueeze_inplace(const Call&, const Tensor& self, int64_t dim) {
  return adopt_layout(self, unsqueeze(self, dim));
}
Tensor t_inplace(const Call&, const Tensor& self) { return adopt_layout(self, ops::t(self)); }
Tensor transpose_inplace(const Call&, const Tensor& self, int64_t a, int64_t b) {
  return adopt_layout(self, transpose(self, a, b));
}
Fn<Tensor(const Tensor& self, IntList size, IntList stride, int64_t shift, IntList old_stride)> set_strides_;

Tensor as_strided_inplace(const Call&, const Tensor& self, IntList size, IntList stride, OptInt offset) {
  const int64_t shift = offset ? *offset - self.storage_offset() : 0;
  const Dims old_strides = self.strides().dims();
  return set_strides_(self, size, stride, shift, old_strides);
}
// As as_strided_, for autograd, which needs the strides that there were.
Tensor set_strides_inplace(const Call&, const Tensor& self, IntList size, IntList stride, int64_t shift,
                           IntList) {
  return adopt_layout(self, as_strided(self, size, stride, self.storage_offset() + shift));
}

Tensor resize_inplace(const Call&, const Tensor& self, IntList size, std::optional<MemoryFormat> format) {
  RL_CHECK(!(self->flags & kAutograd) || dispatch_state.inference,
           "cannot resize variables that require grad");
  const size_t before = self->storage->nbytes();
  resize_tensor(self, size);
  const size_t after = self->storage->nbytes();
  if (after > before && fills_uninitialized()) {
    const auto first = static_cast<int64_t>(before / self.itemsize());
    fill_uninitialized(
        make_view(self, {static_cast<int64_t>(after / self.itemsize()) - first}, {1}, first, false));
  }
  if (format.value_or(MemoryFormat::Contiguous) != MemoryFormat::Contiguous &&
      *format != MemoryFormat::Preserve)
    self->set_layout(size, channels_last_strides(size));
  return self;
}

void register_inplace_geometry(Table& t) {
  t.op(squeeze_, "squeeze_(Tensor(a!) self) -> Tensor(a!)", squeeze_inplace)
      .doc("Takes all dimensions of size 1 out of the tensor's own shape.")
      .family(Family::View)
      .same_elements()
      .derivative([](Grad g, Shape<0> self) { return reshape(g, self); });
  t.op(squeeze_dim_, "squeeze_.dim(Tensor(a!) self, int dim) -> Tensor(a!)", squeeze_dim_inplace)
      .doc("Takes the dimension dim out of the tensor's own shape, if its size is 1.")
      .family(Family::View)
      .same_elements()
      .derivative([](Grad g, Shape<0> self) { return reshape(g, self); });
  t.op(squeeze_dims_, "squeeze_.dims(Tensor(a!) self, int[] dim) -> Tensor(a!)", squeeze_dims_inplace)
      .doc("Takes those of the named dimensions whose size is 1 out of the tensor's own shape.")
      .family(Family::View)
      .same_elements()
      .derivative([](Grad g, Shape<0> self) { return reshape(g, self); });
  t.op(unsqueeze_, "unsqueeze_(Tensor(a!) self, int dim) -> Tensor(a!)", unsqueeze_inplace)
      .doc("Puts a dimension of size 1 into the tensor's own shape.")
      .family(Family::View)
      .same_elements()
      .derivative([](Grad g, Shape<0> self) { return reshape(g, self); });
  t.op(t_, "t_(Tensor(a!) self) -> Tensor(a!)", t_inplace)
      .doc("Transposes a matrix in its own shape and strides; vectors stay.")
      .family(Family::View)
      .derivative([](Grad g) { return ops::t(g); });
  for (auto [handle, schema] :
       {std::pair{&transpose_, "transpose_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)"},
        {&swapaxes_, "swapaxes_(Tensor(a!) self, int axis0, int axis1) -> Tensor(a!)"},
        {&swapdims_, "swapdims_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)"}})
    t.op(*handle, schema, transpose_inplace)
        .doc("Exchanges two dimensions in the tensor's own shape and strides.")
        .family(Family::View)
        .derivative([](Grad g, Attr<1, int64_t> a, Attr<2, int64_t> b) { return transpose(g, a, b); });
  t.composite(
       as_strided_,
       "as_strided_(Tensor(a!) self, int[] size, int[] stride, int? storage_offset=None) -> Tensor(a!)",
       as_strided_inplace)
      .reshapes(Reshaping::Geometry)
      .doc("Gives the tensor itself another size, stride and offset in its storage.")
      .op()
      .is_function = true;  // as in PyTorch, which has few names with an underscore as functions
  t.op(set_strides_,
       "_set_strides_(Tensor(a!) self, int[] size, int[] stride, int shift, int[] old_stride) -> Tensor(a!)",
       set_strides_inplace)
      .absent_in_pytorch()
      .doc("as_strided_, told the strides that there were.")
      .internal()
      .family(Family::View)
      .derivative([](Grad g, Shape<0> self, Attr<1, IntList> size, Attr<2, IntList> stride,
                     Attr<3, int64_t> shift, Attr<4, IntList> old_stride) {
        return as_strided_backward(g, self, old_stride, size, stride, shift);
      });
  t.op(resize_, "resize_(Tensor(a!) self, int[1] size, *, MemoryFormat? memory_format=None) -> Tensor(a!)",
       resize_inplace)
      .doc(
          "Gives the tensor itself another size; its storage grows as needed, new elements are not "
          "initialized.")
      .family(Family::Copy)
      .reshapes(Reshaping::Storage)
      .not_differentiable("changes the number of elements");
}

}  // namespace

void register_shape_operators(Table& t) {
  t.composite(
       "_shape_as_tensor(Tensor self) -> Tensor",
       +[](const Call&, const Tensor& self) {
         const Tensor sizes = empty_tensor({self.dim()}, DType::Int64);
         std::ranges::copy(self.sizes(), sizes.data<int64_t>());
         return sizes;
       })
      .function_only()
      .doc("The sizes as an int64 tensor.");
  t.composite(
       "slice_inverse(Tensor(a) self, Tensor src, int dim=0, int? start=None, int? end=None, int step=1) -> "
       "Tensor(a)",
       +[](const Call&, const Tensor& self, const Tensor& src, int64_t, OptInt, OptInt, int64_t) {
         return as_strided(self, src.sizes(), src.strides(), src.storage_offset());
       })
      .doc("The tensor seen through the geometry of `src`, of which it was a slice.");
  t.composite(reshape, "reshape(Tensor(a) self, int[1] shape) -> Tensor(a)", reshape_body)
      .same_elements()
      .doc("The same elements in another shape: a view where possible, else a copy. One size may be -1.");
  t.composite(view_as, "view_as(Tensor(a) self, Tensor other) -> Tensor(a)", view_as_body)
      .same_elements()
      .doc("A view in the shape of other.")
      .method_only();
  t.composite(reshape_as, "reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)", reshape_as_body)
      .same_elements()
      .doc("The same elements in the shape of other; see reshape.")
      .method_only();
  t.composite(expand_as, "expand_as(Tensor(a) self, Tensor other) -> Tensor(a)", expand_as_body)
      .doc("A view broadcast to the shape of other.")
      .method_only();
  t.composite(broadcast_to, "broadcast_to(Tensor(a) self, int[1] size) -> Tensor(a)", broadcast_to_body)
      .doc("A view broadcast to size.");
  t.composite(swapaxes, "swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)", swap_body)
      .doc("A view with two dimensions exchanged; transpose by NumPy's name.");
  t.composite(swapdims, "swapdims(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", swap_body)
      .doc("A view with two dimensions exchanged; another name of transpose.");
  t.composite(numpy_T, "numpy_T(Tensor(a) self) -> Tensor(a)", numpy_t_body)
      .doc("A view with all dimensions reversed.")
      .method_only();
  t.composite(matrix_H, "matrix_H(Tensor(a) self) -> Tensor(a)", matrix_h_body)
      .doc("The conjugate transpose of a matrix.")
      .method_only();
  t.composite(mT, "mT(Tensor(a) self) -> Tensor(a)", mt_body)
      .doc("A view with the last two dimensions exchanged.")
      .method_only();
  t.composite(mH, "mH(Tensor(a) self) -> Tensor(a)", mh_body)
      .doc("The conjugate transpose of the last two dimensions.")
      .method_only();
  t.composite(adjoint, "adjoint(Tensor(a) self) -> Tensor(a)", adjoint_body)
      .doc("The conjugate transpose of the last two dimensions.");
  t.composite(movedim, "movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",
              movedim_body)
      .doc("A view with the dimensions source moved to the places destination; the others keep their order.");
  t.composite(movedim_int, "movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)",
              movedim_int_body)
      .doc("A view with the dimension source moved to the place destination; the others keep their order.");
  t.composite(moveaxis, "moveaxis.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",
              movedim_body)
      .doc("Another name of movedim, NumPy's.");
  t.composite(moveaxis_int, "moveaxis.int(Tensor(a) self, int source, int destination) -> Tensor(a)",
              movedim_int_body)
      .doc("Another name of movedim, NumPy's.");
  t.composite(narrow, "narrow(Tensor(a) self, int dim, int start, int length) -> Tensor(a)", narrow_body)
      .doc("A view of length elements along dim, from start on.");
  t.composite(narrow_tensor, "narrow.Tensor(Tensor(a) self, int dim, Tensor start, int length) -> Tensor(a)",
              narrow_tensor_body)
      .doc("As narrow, with start in a 0-dimensional integer tensor.");
  t.composite(flatten, "flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)",
              flatten_body)
      .same_elements()
      .doc("Merges the dimensions start_dim to end_dim into one.");
  t.composite(ravel, "ravel(Tensor(a) self) -> Tensor(a)",
              [](const Call&, const Tensor& self) {
                const Tensor x = self.is_contiguous() ? self : clone(self, MemoryFormat::Contiguous);
                return view(x, IntList{-1});
              })
      .same_elements()
      .doc("All elements as a vector: a view of a contiguous tensor, else a copy.");
  t.composite(unflatten, "unflatten.int(Tensor(a) self, int dim, int[] sizes) -> Tensor(a)", unflatten_body)
      .same_elements()
      .doc("Splits the dimension dim into sizes, one of which may be -1.");
  t.composite(chunk, "chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor[]", chunk_body)
      .doc("At most that many views along dim, of equal size but for the last one.");
  t.composite(split_sizes, "split.sizes(Tensor(a -> *) self, int[] split_size, int dim=0) -> Tensor[]",
              [](const Call&, const Tensor& self, IntList sizes, int64_t dim) {
                return split_with_sizes(self, sizes, dim);
              })
      .doc("Views of the given sizes along dim, which must add up to its length.");
  t.composite(tensor_split, "tensor_split.sections(Tensor(a -> *) self, int sections, int dim=0) -> Tensor[]",
              tensor_split_body)
      .doc("That many views along dim, whose sizes differ by at most one.");
  t.composite(tensor_split_indices,
              "tensor_split.indices(Tensor(a -> *) self, int[] indices, int dim=0) -> Tensor[]",
              tensor_split_indices_body)
      .doc("The views along dim between the given indices.");
  t.op(flip, "flip(Tensor self, int[1] dims) -> Tensor", flip_kernel)
      .doc("A copy with the order of elements reversed along the dims.")
      .family(Family::Copy)
      .on_devices()
      .linear()
      .batching(Batching::Dims)
      .derivative([](Grad g, Attr<1, IntList> dims) { return flip(g, dims); });
  t.composite(fliplr, "fliplr(Tensor self) -> Tensor", fliplr_body)
      .doc("A copy with the second dimension reversed.");
  t.composite(flipud, "flipud(Tensor self) -> Tensor", flipud_body)
      .doc("A copy with the first dimension reversed.");
  t.composite(rot90, "rot90(Tensor self, int k=1, int[] dims=[0,1]) -> Tensor", rot90_body)
      .doc(
          "A copy rotated k times by 90 degrees in the plane of two dimensions, from the first to the "
          "second.")
      .one_node();
  t.op(diag_embed, "diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
       diag_embed_kernel)
      .doc("Matrices with the last dimension of the input on a diagonal.")
      .family(Family::Copy)
      .on_devices()
      .linear()
      .derivative([](Grad g, Attr<1, int64_t> offset, Attr<2, int64_t> a, Attr<3, int64_t> b) {
        return diagonal(g, offset, a, b);
      });
  t.composite(diag, "diag(Tensor self, int diagonal=0) -> Tensor", diag_body)
      .doc("The diagonal of a matrix as a vector, or a square matrix with a vector on its diagonal.")
      .out(OutRule::SameType);
  register_inplace_geometry(t);
}

}  // namespace rushlight
