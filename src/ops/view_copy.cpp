// Views as copies (`x_copy`), writes through a view into a copy (`x_scatter`), and the other ways to split.
#include "core/sparse.h"
#include "dispatch/table.h"
#include "ops/comparison.h"
#include "ops/complex.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/read_element.h"
#include "ops/register.h"
#include "ops/sparse.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

Tensor dense(const Tensor& t) { return clone(t, MemoryFormat::Contiguous); }
std::vector<Tensor> dense(std::vector<Tensor> list) {
  for (Tensor& t : list) t = dense(t);
  return list;
}

// The copying form of a view operator, made from its handle.
template <auto& View, class = std::remove_cvref_t<decltype(View)>>
struct Copying;
template <auto& View, class R, class... A>
struct Copying<View, Fn<R(A...)>> {
  using Result = R;
  static R body(const Call&, A... args) { return dense(View(args...)); }
};
template <auto& View>
OpBuilder copying(Table& t, const char* schema) {
  OpBuilder record =
      t.composite(schema, &Copying<View>::body).doc("What the view of that name shows, copied.");
  if constexpr (std::is_same_v<typename Copying<View>::Result, Tensor>) record.out(OutRule::SameType);
  return record;
}

// Lists have no out= of their own in the gate: each view goes to its target, which may take its shape.
void copy_to(const Call& call, const std::vector<Tensor>& views, TensorList out) {
  const auto name = call.op.name();
  RL_CHECK(out.size() == views.size(), name, "(): expected out to have ", views.size(), " tensors but got ",
           out.size());
  for (size_t i = 0; i < views.size(); ++i) {
    RL_CHECK(out[i].dtype() == views[i].dtype(), name, "(): expected out tensors of dtype ",
             dtype_name(views[i].dtype()), " but got ", dtype_name(out[i].dtype()), " at index ", i);
    if (out[i].sizes() != views[i].sizes())
      prepare_output(call.op, out[i], views[i].sizes(), views[i].dtype(), false);
    copy_(out[i], views[i], false);
  }
}

void check_source(const char* op, const Tensor& part, const Tensor& src) {
  RL_CHECK(part.sizes() == src.sizes(), op,
           ": expected src to have a size equal to the slice of self. src size = ", src.sizes(),
           ", slice size = ", part.sizes());
}

// A copy of `self` to write `src` to: inside a function transform it must belong to the level of `src` too.
Tensor copy_to_write(const Tensor& self, const Tensor& src) {
  if (!src->wrapping) return clone(self, std::nullopt);
  return ops::where(ops::new_zeros(src, IntList{}, DType::Bool, std::nullopt, std::nullopt, std::nullopt),
                    self, self);
}

// A copy of `self` in which the part that `view` shows holds `src`.
template <class View>
Tensor scattered(const char* op, const Tensor& self, const Tensor& src, View&& view) {
  const Tensor result = copy_to_write(self, src), part = view(result);
  check_source(op, part, src);
  copy_(part, src, false);
  return result;
}
Tensor select_scatter_body(const Call&, const Tensor& self, const Tensor& src, int64_t dim, int64_t index) {
  return scattered("select_scatter", self, src, [&](const Tensor& t) { return select(t, dim, index); });
}
Tensor slice_scatter_body(const Call&, const Tensor& self, const Tensor& src, int64_t dim, OptInt start,
                          OptInt end, int64_t step) {
  return scattered("slice_scatter", self, src,
                   [&](const Tensor& t) { return slice(t, dim, start, end, step); });
}
Tensor diagonal_scatter_body(const Call&, const Tensor& self, const Tensor& src, int64_t offset, int64_t dim1,
                             int64_t dim2) {
  return scattered("diagonal_scatter", self, src,
                   [&](const Tensor& t) { return diagonal(t, offset, dim1, dim2); });
}
// A copy in which the same sizes, strides and offset name the same elements.
Tensor clone_with_strides(const Tensor& self) {
  int64_t extent = self.storage_offset() + 1;
  bool plain = self.numel() > 0 && !has_internal_overlap(self);
  for (int64_t d = 0; d < self.dim(); ++d) {
    plain &= self.strides()[d] >= 0;
    extent += (self.sizes()[d] - 1) * self.strides()[d];
  }
  if (!plain) return dense(self);
  const Tensor memory = dense(as_strided(self, {extent}, {1}, 0));
  return as_strided(memory, self.sizes(), self.strides(), self.storage_offset());
}
Tensor as_strided_scatter_body(const Call&, const Tensor& self, const Tensor& src, IntList size,
                               IntList stride, OptInt offset) {
  const Tensor result = clone_with_strides(self), part = as_strided(result, size, stride, offset);
  check_source("as_strided_scatter", part, src);
  copy_(part, src, false);
  return result;
}

// hsplit, vsplit, dsplit: tensor_split along a fixed dimension with checks of their own.
struct FixedSplit {
  const char* name;
  int64_t least, dim;
};
constexpr FixedSplit kHorizontal{"hsplit", 1, 1}, kVertical{"vsplit", 2, 0}, kDepth{"dsplit", 3, 2};

int64_t checked_dim(const FixedSplit& f, const Tensor& self) {
  RL_CHECK(self.dim() >= f.least, "torch.", f.name, " requires a tensor with at least ", f.least,
           " dimension, but got a tensor with ", self.dim(), " dimensions!");
  return self.dim() == 1 ? 0 : f.dim;
}
template <const FixedSplit& F>
std::vector<Tensor> fixed_sections(const Call&, const Tensor& self, int64_t sections) {
  const int64_t dim = checked_dim(F, self);
  RL_CHECK(sections > 0 && self->sizes[dim] % sections == 0, "torch.", F.name,
           " attempted to split along dimension ", dim, ", but the size of the dimension ", self->sizes[dim],
           " is not divisible by the split_size ", sections, "!");
  return tensor_split(self, sections, dim);
}
template <const FixedSplit& F>
std::vector<Tensor> fixed_indices(const Call&, const Tensor& self, IntList indices) {
  return tensor_split_indices(self, indices, checked_dim(F, self));
}

std::vector<Tensor> tensor_split_tensor_body(const Call&, const Tensor& self, const Tensor& spec,
                                             int64_t dim) {
  RL_CHECK(spec.dtype() == DType::Int64,
           "tensor_split expected tensor_indices_or_sections to have dtype of long, but got ",
           legacy_name(spec.dtype()));
  RL_CHECK(spec.dim() <= 1,
           "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional "
           "tensor, but got a tensor with ",
           spec.dim(), " dims");
  if (spec.dim() == 0) return tensor_split(self, read_scalar(spec).to_int(), dim);
  Dims indices;
  for (int64_t i = 0; i < spec.numel(); ++i) indices.push_back(read_element(spec, i).to_int());
  return tensor_split_indices(self, indices, dim);
}

Tensor diagflat_body(const Call&, const Tensor& self, int64_t offset) {
  return diag_embed(reshape(self, IntList{-1}), offset, 0, 1);
}

// The parts of the "unsafe" splits may be written to: each counts its writes for itself and is no view for
// autograd.
inline Fn<std::vector<Tensor>(const Tensor& self, IntList sizes, int64_t dim)> unsafe_split_with_sizes;
std::vector<Tensor> unsafe_split_sizes_kernel(const Call&, const Tensor& self, IntList sizes, int64_t dim) {
  std::vector<Tensor> parts = split_with_sizes(self, sizes, dim);
  for (Tensor& part : parts) {
    part = make_view(part, part.sizes(), part.strides(), part.storage_offset(), false);
    if (!(part->flags & kInference)) part->version = make_ref<VersionCounter>();
  }
  return parts;
}
std::vector<Tensor> apart(const Tensor& self, int64_t dim, const std::vector<Tensor>& parts) {
  Dims sizes;
  for (const Tensor& part : parts) sizes.push_back(part->sizes[wrap_dim(dim, self.dim())]);
  return unsafe_split_with_sizes(self, sizes, dim);
}
std::vector<Tensor> unsafe_split_body(const Call&, const Tensor& self, int64_t size, int64_t dim) {
  return apart(self, dim, split(detach(self), size, dim));
}
std::vector<Tensor> unsafe_chunk_body(const Call&, const Tensor& self, int64_t chunks, int64_t dim) {
  return apart(self, dim, chunk(detach(self), chunks, dim));
}

// Sparse tensors have no views of a part.
Tensor narrow_copy_body(const Call&, const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  if (layout_of(self) != Layout::SparseCoo) return dense(narrow(self, dim, start, length));
  const int64_t n = self.size(wrap_dim(dim, self.dim(), false)), first = start < 0 ? start + n : start;
  RL_CHECK(first >= 0 && length >= 0 && first + length <= n,
           "Invalid range to narrow. range(start, start+length) must be a subset of range(0, ", n, ").");
  const Tensor wanted = arange(Scalar(first), Scalar(first + length), Scalar(int64_t{1}), DType::Int64,
                               std::nullopt, std::nullopt, std::nullopt);
  return index_select(self, dim, wanted);
}

Tensor view_copy_body(const Call&, const Tensor& self, IntList size) { return dense(reshape(self, size)); }

void register_copies(Table& t) {
  copying<alias>(t, "alias_copy(Tensor self) -> Tensor").one_node().node("AliasBackward0_copy");
  copying<detach>(t, "detach_copy(Tensor self) -> Tensor");
  copying<sparse_indices>(t, "indices_copy(Tensor self) -> Tensor").function_only();
  copying<sparse_indices_raw>(t, "_indices_copy(Tensor self) -> Tensor").function_only();
  copying<sparse_values>(t, "values_copy(Tensor self) -> Tensor").function_only();
  copying<sparse_values_raw>(t, "_values_copy(Tensor self) -> Tensor").function_only();
  copying<crow_indices>(t, "crow_indices_copy(Tensor self) -> Tensor").function_only();
  copying<col_indices>(t, "col_indices_copy(Tensor self) -> Tensor").function_only();
  copying<ccol_indices>(t, "ccol_indices_copy(Tensor self) -> Tensor").function_only();
  copying<row_indices>(t, "row_indices_copy(Tensor self) -> Tensor").function_only();
  copying<view_as_complex>(t, "view_as_complex_copy(Tensor self) -> Tensor");
  copying<view_as_real>(t, "view_as_real_copy(Tensor self) -> Tensor");
  copying<as_strided>(
      t, "as_strided_copy(Tensor self, int[] size, int[] stride, int? storage_offset=None) -> Tensor")
      .one_node()
      .node("AsStridedBackward0_copy");
  copying<diagonal>(t, "diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor")
      .one_node()
      .node("DiagonalBackward0_copy");
  copying<expand>(t, "expand_copy(Tensor self, int[] size, *, bool implicit=False) -> Tensor")
      .one_node()
      .node("ExpandBackward0_copy");
  t.composite("narrow_copy(Tensor self, int dim, int start, int length) -> Tensor", narrow_copy_body)
      .doc("What the view of that name shows, copied.")
      .out(OutRule::SameType)
      .one_node();
  copying<permute>(t, "permute_copy(Tensor self, int[] dims) -> Tensor")
      .one_node()
      .node("PermuteBackward0_copy");
  copying<select>(t, "select_copy.int(Tensor self, int dim, int index) -> Tensor")
      .one_node()
      .node("SelectBackward0_copy");
  copying<slice>(
      t, "slice_copy.Tensor(Tensor self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor")
      .one_node()
      .node("SliceBackward0_copy");
  copying<split>(t, "split_copy.Tensor(Tensor self, int split_size, int dim=0) -> Tensor[]");
  t.composite(
       "split_copy.Tensor_out(Tensor self, int split_size, int dim=0, *, Tensor[] out) -> ()",
       +[](const Call& call, const Tensor& self, int64_t size, int64_t dim, TensorList out) {
         copy_to(call, split(self, size, dim), out);
       })
      .doc("Copies the views of split to the tensors in out.")
      .function_only();
  copying<split_with_sizes>(t, "split_with_sizes_copy(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]")
      .one_node()
      .node("SplitWithSizesBackward0_copy");
  t.composite(
       "split_with_sizes_copy.out(Tensor self, int[] split_sizes, int dim=0, *, Tensor[] out) -> ()",
       +[](const Call& call, const Tensor& self, IntList sizes, int64_t dim, TensorList out) {
         copy_to(call, split_with_sizes(self, sizes, dim), out);
       })
      .doc("Copies the views of split_with_sizes to the tensors in out.")
      .function_only()
      .one_node()
      .node("SplitWithSizesBackward0_copy");
  copying<squeeze>(t, "squeeze_copy(Tensor self) -> Tensor").one_node().node("SqueezeBackward0_copy");
  copying<squeeze_dim>(t, "squeeze_copy.dim(Tensor self, int dim) -> Tensor")
      .one_node()
      .node("SqueezeBackward1_copy");
  copying<squeeze_dims>(t, "squeeze_copy.dims(Tensor self, int[] dim) -> Tensor")
      .one_node()
      .node("SqueezeBackward2_copy");
  copying<ops::t>(t, "t_copy(Tensor self) -> Tensor").one_node().node("TBackward0_copy");
  copying<transpose>(t, "transpose_copy.int(Tensor self, int dim0, int dim1) -> Tensor")
      .one_node()
      .node("TransposeBackward0_copy");
  copying<unbind>(t, "unbind_copy.int(Tensor self, int dim=0) -> Tensor[]")
      .one_node()
      .node("UnbindBackward0_copy");
  t.composite(
       "unbind_copy.int_out(Tensor self, int dim=0, *, Tensor[] out) -> ()",
       +[](const Call& call, const Tensor& self, int64_t dim, TensorList out) {
         copy_to(call, unbind(self, dim), out);
       })
      .doc("Copies the views of unbind to the tensors in out.")
      .function_only()
      .one_node()
      .node("UnbindBackward0_copy");
  copying<unfold>(t, "unfold_copy(Tensor self, int dimension, int size, int step) -> Tensor")
      .one_node()
      .node("UnfoldBackward0_copy");
  copying<unsqueeze>(t, "unsqueeze_copy(Tensor self, int dim) -> Tensor")
      .one_node()
      .node("UnsqueezeBackward0_copy");
  t.composite("view_copy(Tensor self, int[] size) -> Tensor", view_copy_body)
      .doc("The elements in another shape, copied whether or not a view could show them.")
      .out(OutRule::SameType)
      .one_node()
      .node("ViewBackward0_copy");
}

}  // namespace

void register_view_copy_operators(Table& t) {
  register_copies(t);
  t.composite("select_scatter(Tensor self, Tensor src, int dim, int index) -> Tensor", select_scatter_body)
      .doc("A copy of self with src at one index of dim.")
      .out(OutRule::SameType)
      .one_node();
  t.composite(
       "slice_scatter(Tensor self, Tensor src, int dim=0, int? start=None, int? end=None, int step=1) -> "
       "Tensor",
       slice_scatter_body)
      .doc("A copy of self with src in a slice of dim.")
      .out(OutRule::SameType)
      .one_node();
  t.composite("diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor",
              diagonal_scatter_body)
      .doc("A copy of self with src on a diagonal.")
      .out(OutRule::SameType)
      .one_node();
  t.composite(
       "as_strided_scatter(Tensor self, Tensor src, int[] size, int[] stride, int? storage_offset=None) -> "
       "Tensor",
       as_strided_scatter_body)
      .doc("A copy of self with src at the elements that size and stride name.")
      .out(OutRule::SameType)
      .one_node();
  t.composite("hsplit.int(Tensor(a -> *) self, int sections) -> Tensor[]", fixed_sections<kHorizontal>)
      .doc("Equal views along the second dimension, or along the first one of a vector.");
  t.composite("hsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor[]", fixed_indices<kHorizontal>)
      .doc("Views between the indices along the second dimension, or along the first one of a vector.");
  t.composite("vsplit.int(Tensor(a -> *) self, int sections) -> Tensor[]", fixed_sections<kVertical>)
      .doc("Equal views along the first dimension.");
  t.composite("vsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor[]", fixed_indices<kVertical>)
      .doc("Views between the indices along the first dimension.");
  t.composite("dsplit.int(Tensor(a -> *) self, int sections) -> Tensor[]", fixed_sections<kDepth>)
      .doc("Equal views along the third dimension.");
  t.composite("dsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor[]", fixed_indices<kDepth>)
      .doc("Views between the indices along the third dimension.");
  t.composite(
       "tensor_split.tensor_indices_or_sections(Tensor(a -> *) self, Tensor tensor_indices_or_sections, int "
       "dim=0) -> Tensor[]",
       tensor_split_tensor_body)
      .doc("As tensor_split, with the number of views or the indices in an integer tensor on the CPU.");
  t.composite(
       "resize_as_(Tensor(a!) self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor(a!)",
       +[](const Call&, const Tensor& self, const Tensor& other, std::optional<MemoryFormat> format) {
         if (format == MemoryFormat::Preserve)
           format = !is_channels_last(other) ? MemoryFormat::Contiguous
                    : other.dim() == 4       ? MemoryFormat::ChannelsLast
                                             : MemoryFormat::ChannelsLast3d;
         return resize_(self, other.sizes(), format);
       })
      .reshapes(Reshaping::Storage)
      .doc("Gives the tensor itself the size of another; see resize_.")
      .op()
      .is_function = true;
  t.composite("diagflat(Tensor self, int offset=0) -> Tensor", diagflat_body)
      .doc("A square matrix with all elements of self on a diagonal.");
  t.composite("unsafe_split.Tensor(Tensor self, int split_size, int dim=0) -> Tensor[]", unsafe_split_body)
      .doc("As split; the parts count writes for themselves and are no views for autograd.")
      .one_node();
  t.op(unsafe_split_with_sizes,
       "unsafe_split_with_sizes(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]",
       unsafe_split_sizes_kernel)
      .on_devices()
      .doc("As split_with_sizes; the parts count writes for themselves and are no views for autograd.")
      .derivative([](GradList g, Shape<0> self, Attr<1, IntList> sizes, Attr<2, int64_t> dim) {
        return split_backward(g, self, sizes, dim);
      });
  t.composite("unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]", unsafe_chunk_body)
      .doc("As chunk; the parts count writes for themselves and are no views for autograd.")
      .one_node()
      .node("UnsafeSplitBackward0");
}

}  // namespace rushlight
