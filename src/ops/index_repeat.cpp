// Moving and repeating slices: roll, repeat, repeat_interleave, and one_hot.
#include "cpu/moves.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/index_common.h"
#include "ops/operators.h"
#include "ops/reduction.h"
#include "ops/scan.h"
#include "ops/sort.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

Tensor roll_once(const Tensor& self, int64_t shift, int64_t dim) {
  if (is_channels_last(self)) {  // as it lies in memory
    const Tensor rolled = roll_once(movedim_int(self, 1, -1), shift,
                                    dim == 0   ? 0
                                    : dim == 1 ? self.dim() - 1
                                               : dim - 1);
    return movedim_int(rolled, -1, 1);
  }
  const Tensor out = empty_tensor(self.sizes(), self.dtype(), self.device());
  const int64_t n = self.size(dim);
  if (self.numel() == 0 || self.device().is_meta()) return out;
  const int64_t start = ((shift % n) + n) % n;
  if (!out.is_cpu()) {
    copy_result(narrow(out, dim, start, n - start), narrow(self, dim, 0, n - start), false);
    copy_result(narrow(out, dim, 0, start), narrow(self, dim, n - start, start), false);
    return out;
  }
  int64_t row = static_cast<int64_t>(self.itemsize());
  for (int64_t d = dim + 1; d < self.dim(); ++d) row *= self->sizes[d];
  const Tensor source = dense(self);
  cpu::roll(source.data_ptr(), self.numel() / n / (row / static_cast<int64_t>(self.itemsize())), n * row,
            start * row, out.data_ptr());
  return out;
}

Tensor roll_kernel(const Call&, const Tensor& self, IntList shifts, IntList dims) {
  RL_CHECK(!shifts.empty(), "`shifts` required");
  if (dims.empty()) {
    RL_CHECK(shifts.size() == 1, "shifts and dimensions must align. shifts: ", shifts.size(), ", dims:0");
    return reshape(roll_once(dense(reshape(self, {-1})), shifts[0], 0), self.sizes());
  }
  RL_CHECK(shifts.size() == dims.size(), "shifts and dimensions must align. shifts: ", shifts.size(),
           ", dims:", dims.size());
  RL_CHECK_INDEX(self.dim() > 0, "Dimension specified as ", dims[0], " but tensor has no dimensions");
  Tensor result = self;
  for (size_t i = 0; i < dims.size(); ++i)
    result = roll_once(result, shifts[i], wrap_dim(dims[i], self.dim()));
  return result;
}

Tensor repeat_kernel(const Call&, const Tensor& self, IntList repeats) {
  const auto n = static_cast<int64_t>(repeats.size()), lead = n - self.dim();
  RL_CHECK(lead >= 0,
           "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
  Dims sizes, split_sizes, source_strides;
  for (int64_t d = 0; d < n; ++d) {
    const int64_t own = d >= lead ? self->sizes[d - lead] : 1;
    RL_CHECK(repeats[d] >= 0, "Trying to create tensor with negative dimension ", repeats[d], ": repeat got ",
             repeats);
    sizes.push_back(checked_numel({repeats[d], own}));
    split_sizes.push_back(repeats[d]), split_sizes.push_back(own);
    source_strides.push_back(0), source_strides.push_back(d >= lead ? self->strides[d - lead] : 0);
  }
  checked_numel(sizes);
  const Tensor out = empty_tensor(sizes, self.dtype(), self.device());
  if (out.numel() == 0) return out;
  copy_result(make_view(out, split_sizes, contiguous_strides(split_sizes), 0, false),
              make_view(self, split_sizes, source_strides, self.storage_offset(), false), false);
  return out;
}

Tensor repeat_backward(const Tensor& grad, IntList sizes, IntList repeats) {
  const size_t lead = repeats.size() - sizes.size();
  Dims split_sizes, repeated;
  for (size_t d = 0; d < repeats.size(); ++d) {
    repeated.push_back(static_cast<int64_t>(split_sizes.size()));
    split_sizes.push_back(repeats[d]);
    if (d >= lead) split_sizes.push_back(sizes[d - lead]);
  }
  return repeats.empty() ? Tensor(grad) : sum_dim(reshape(grad, split_sizes), OptIntList(repeated));
}

Tensor tile_body(const Call&, const Tensor& self, IntList dims) {
  Dims repeats = dims.dims();
  while (static_cast<int64_t>(repeats.size()) < self.dim()) repeats.insert(0, 1);
  return repeat(self, repeats);
}

Tensor repeat_interleave_counts_kernel(const Call&, const Tensor& repeats, OptInt output_size) {
  RL_CHECK(repeats.dim() == 1, "repeat_interleave only accept 1D vector as repeat");
  if (repeats.dtype() != DType::Int64 && repeats.dtype() != DType::Int32)
    RL_NOT_IMPLEMENTED("\"repeat_interleave\" not implemented for '", legacy_name(repeats.dtype()),
                       "': repeats has to be Long or Int tensor");
  if (output_size && repeats.device().is_meta())
    return empty_tensor({*output_size}, repeats.dtype(), repeats.device());
  const Tensor counts = dense(to_dtype(repeats, DType::Int64));
  require_data(counts, "repeat_interleave");
  if (counts.device().is_cuda()) {
    // As many of the sums have been reached. Nothing is waited for where the caller knows the last of them.
    const Tensor sums = cumsum(counts, 0, DType::Int64);
    const int64_t all = output_size    ? *output_size
                        : sums.numel() ? read_scalar(sums, sums.numel() - 1).to_int()
                                       : 0;
    const Tensor places = arange(Scalar(int64_t{0}), Scalar(all), Scalar(int64_t{1}), DType::Int64,
                                 std::nullopt, counts.device(), std::nullopt);
    return to_dtype(searchsorted(sums, places, false, true, std::nullopt, Tensor()), repeats.dtype());
  }
  const int64_t* n = counts.data<int64_t>();
  int64_t total = 0;
  for (int64_t i = 0; i < counts.numel(); ++i) {
    RL_CHECK(n[i] >= 0, "repeats can not be negative");
    RL_CHECK(!__builtin_add_overflow(total, n[i], &total), "repeat_interleave: the sum of repeats overflows");
  }
  RL_CHECK(!output_size || *output_size == total,
           "allocated size does not match required size: output_size is ", output_size.value_or(0),
           ", repeats sum up to ", total);
  const Tensor out = empty_tensor({total}, DType::Int64, repeats.device());
  int64_t* to = out.data<int64_t>();
  for (int64_t i = 0; i < counts.numel(); ++i) to = std::fill_n(to, n[i], i);
  return to_dtype(out, repeats.dtype());
}

Tensor repeat_interleave_tensor_body(const Call&, const Tensor& self, const Tensor& repeats, OptInt dim,
                                     OptInt output_size) {
  const Tensor x = dim ? self : reshape(self, {-1});
  const int64_t d = wrap_dim(dim.value_or(0), x.dim());
  RL_CHECK(repeats.dim() <= 1, "repeats must be 0-dim or 1-dim tensor");
  const int64_t length = x.dim() ? x.size(d) : 1;
  Tensor counts = repeats;
  if (repeats.dim() == 0 || (repeats.dim() == 1 && repeats.numel() == 1))
    counts = expand(reshape(repeats, {1}), {length});
  RL_CHECK(counts.numel() == length,
           "repeats must have the same size as input along dim, but got repeats.size(0) = ", counts.numel(),
           " and input.size(", d, ") = ", length);
  return index_select(x, d, repeat_interleave_counts(counts, output_size));
}

Tensor repeat_interleave_body(const Call&, const Tensor& self, int64_t repeats, OptInt dim,
                              OptInt output_size) {
  const Tensor x = dim ? self : reshape(self, {-1});
  const Tensor v = x.dim() ? x : reshape(x, {1});
  const int64_t d = wrap_dim(dim.value_or(0), v.dim());
  RL_CHECK(repeats >= 0, "Repeats must be non-negative");
  Dims sizes = v->sizes, result = v->sizes;
  sizes.insert(d + 1, repeats);
  result[d] = checked_numel({repeats, v->sizes[d]});
  RL_CHECK(!output_size || *output_size == result[d], "repeat_interleave: Invalid output_size, expected ",
           result[d], " but got ", output_size.value_or(0));
  return reshape(clone(expand(unsqueeze(v, d + 1), sizes), MemoryFormat::Contiguous), result);
}

// Without a number of classes the largest one is read; classes out of range stop the kernel.
Tensor one_hot_on_device(const Tensor& self, int64_t num_classes) {
  RL_CHECK(self.numel() > 0 || num_classes > 0,
           num_classes == -1 ? "Can not infer total number of classes from empty tensor."
                             : "num_classes should be positive");
  RL_CHECK(num_classes == -1 || num_classes > 0, "num_classes should be positive");
  if (num_classes == -1) {
    RL_CHECK(read_scalar(ops::amin(self, IntList{}, false)).to_int() >= 0,
             "Class values must be non-negative.");
    num_classes = read_scalar(ops::amax(self, IntList{}, false)).to_int() + 1;
  }
  Dims sizes = self->sizes;
  sizes.push_back(num_classes);
  const Tensor out = zeros(sizes, DType::Int64, std::nullopt, self.device());
  scatter_value.inplace(out, -1, unsqueeze(self, -1), Scalar(1));
  return out;
}

Tensor one_hot_kernel(const Call&, const Tensor& self, int64_t num_classes) {
  RL_CHECK(self.dtype() == DType::Int64, "one_hot is only applicable to index tensor of type LongTensor.");
  if (self.device().is_meta() && num_classes > 0) {
    Dims sizes = self->sizes;
    sizes.push_back(num_classes);
    return zeros(sizes, DType::Int64, std::nullopt, self.device());
  }
  if (self.device().is_cuda()) return one_hot_on_device(self, num_classes);
  require_data(self, "one_hot");
  const Tensor at = dense(self);
  const int64_t* p = at.data<int64_t>();
  int64_t highest = -1;
  RL_CHECK(self.numel() > 0 || num_classes > 0,
           num_classes == -1 ? "Can not infer total number of classes from empty tensor."
                             : "num_classes should be positive");
  for (int64_t i = 0; i < at.numel(); ++i) {
    RL_CHECK(p[i] >= 0, "Class values must be non-negative.");
    highest = std::max(highest, p[i]);
  }
  RL_CHECK(num_classes == -1 || num_classes > 0, "num_classes should be positive");
  RL_CHECK(num_classes == -1 || highest < num_classes, "Class values must be smaller than num_classes.");
  const int64_t classes = num_classes == -1 ? highest + 1 : num_classes;
  Dims sizes = self->sizes;
  sizes.push_back(classes);
  const Tensor out = zeros(sizes, DType::Int64, std::nullopt, self.device());
  for (int64_t i = 0; i < at.numel(); ++i) out.data<int64_t>()[i * classes + p[i]] = 1;
  return out;
}

}  // namespace

void register_repeat_operators(Table& t) {
  t.op(roll, "roll(Tensor self, int[1] shifts, int[1] dims=[]) -> Tensor", roll_kernel)
      .doc("Shifts elements along dimensions; what leaves one end enters at the other.")
      .family(Family::Index)
      .on_devices()
      .linear()
      .derivative([](Grad g, Attr<1, IntList> shifts, Attr<2, IntList> dims) {
        Dims back;
        for (int64_t s : *shifts) back.push_back(-s);
        return roll(g, back, dims);
      });
  t.op(repeat, "repeat(Tensor self, int[] repeats) -> Tensor", repeat_kernel)
      .doc("Repeats the tensor along each dimension.")
      .family(Family::Index)
      .method_only()
      .on_devices()
      .linear()
      .derivative([](Grad g, Shape<0> x, Attr<1, IntList> repeats) {
        return repeat_backward(g, x.sizes(), repeats);
      });
  t.composite(tile, "tile(Tensor self, int[] dims) -> Tensor", tile_body)
      .doc("Repeats the tensor; missing dimensions count as one.");
  t.composite(repeat_interleave,
              "repeat_interleave.self_int(Tensor self, int repeats, int? dim=None, *, int? output_size=None) "
              "-> Tensor",
              repeat_interleave_body)
      .doc("Repeats each slice.");
  t.composite(repeat_interleave_tensor,
              "repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, int? "
              "output_size=None) -> Tensor",
              repeat_interleave_tensor_body)
      .doc("Repeats each slice as often as `repeats` says.");
  t.op(repeat_interleave_counts,
       "repeat_interleave.Tensor(Tensor repeats, *, int? output_size=None) -> Tensor",
       repeat_interleave_counts_kernel)
      .doc("Each position as often as `repeats` says.")
      .function_only()
      .family(Family::Copy)
      .on_devices()
      .data_dependent_shape()
      .batching(Batching::Loop)
      .not_differentiable("integer output");
  t.op(one_hot, "nn::one_hot(Tensor self, int num_classes=-1) -> Tensor", one_hot_kernel)
      .doc("Class numbers as rows with a single one.")
      .family(Family::Copy)
      .on_devices()
      .not_differentiable("integer output");
}

}  // namespace rushlight
