// Derivatives of views: each is an operator of its own, whose derivative is the view again.
#include <algorithm>
#include <cstring>

#include "cpu/strided.h"
#include "dispatch/table.h"
#include "ops/device_loops.h"
#include "ops/factory.h"
#include "ops/operators.h"
#include "ops/register.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

Tensor zeros(IntList sizes, const Tensor& like) {
  Tensor result = empty_tensor(sizes, like.dtype(), like.device());
  if (result.numel()) loops::copy(result, scalar_tensor_of(0, result.dtype()));
  return result;
}

Tensor select_backward_kernel(const Call&, const Tensor& grad, IntList sizes, int64_t dim, int64_t index) {
  Tensor result = zeros(sizes, grad);
  copy_result(select(result, dim, index), grad, false);
  return result;
}

Tensor slice_backward_kernel(const Call&, const Tensor& grad, IntList sizes, int64_t dim, OptInt start,
                             OptInt end, int64_t step) {
  Tensor result = zeros(sizes, grad);
  copy_result(slice(result, dim, start, end, step), grad, false);
  return result;
}

Tensor diagonal_backward_kernel(const Call&, const Tensor& grad, IntList sizes, int64_t offset, int64_t dim1,
                                int64_t dim2) {
  Tensor result = zeros(sizes, grad);
  copy_result(diagonal(result, offset, dim1, dim2), grad, false);
  return result;
}

Tensor dense_copy(const Tensor& t) {
  if (t.is_contiguous()) return t;
  Tensor copy = empty_tensor(t.sizes(), t.dtype(), t.device());
  copy_result(copy, t, false);
  return copy;
}

Tensor unfold_backward_kernel(const Call&, const Tensor& grad, IntList sizes, int64_t dim, int64_t size,
                              int64_t step) {
  Tensor result = zeros(sizes, grad);
  Tensor windows = unfold(result, dim, size, step);  // overlapping: add, do not copy
  // Windows of a number lack its dimension, which vmap gives it.
  if (grad.dim() + 1 == windows.dim() && result.size(dim) == 1) windows = select(windows, dim, 0);
  RL_CHECK(grad.sizes() == windows.sizes(), "unfold_backward: expected a gradient of shape ", windows.sizes(),
           ", got ", grad.sizes());
  const Tensor values = dense_copy(grad);
  if (grad.is_cpu())
    cpu::strided_add(windows.data_ptr(), windows.dtype(), windows.sizes(), windows.strides(),
                     values.data_ptr());
  return result;
}

const Tensor& first_defined(TensorList list) {
  for (const Tensor& t : list)
    if (t.defined()) return t;
  RL_FAIL("a gradient of views needs the gradient of one of them");
}

Tensor split_backward_kernel(const Call&, TensorList grads, IntList sizes, IntList split_sizes, int64_t dim) {
  RL_CHECK(grads.size() == split_sizes.size(), "split_backward: ", grads.size(), " gradients for ",
           split_sizes.size(), " parts");
  Tensor result = zeros(sizes, first_defined(grads));
  int64_t start = 0;
  for (size_t i = 0; i < grads.size(); ++i) {
    if (grads[i].defined())
      copy_result(slice(result, dim, start, start + split_sizes[i], 1), grads[i], false);
    start += split_sizes[i];
  }
  return result;
}

Tensor unbind_backward_kernel(const Call&, TensorList grads, IntList sizes, int64_t dim) {
  Tensor result = zeros(sizes, first_defined(grads));
  for (size_t i = 0; i < grads.size(); ++i)
    if (grads[i].defined()) copy_result(select(result, dim, static_cast<int64_t>(i)), grads[i], false);
  return result;
}

// Lowest and highest element of a geometry, relative to its first one. No memory holds 2^48 elements.
std::pair<int64_t, int64_t> reach(IntList sizes, IntList strides) {
  constexpr int64_t kFarthest = int64_t{1} << 48;
  RL_CHECK(sizes.size() == strides.size(), "as_strided: ", sizes.size(), " sizes, but ", strides.size(),
           " strides");
  int64_t low = 0, high = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    RL_CHECK(sizes[i] >= 0, "as_strided: sizes must not be negative, got ", sizes);
    const int64_t steps = std::max<int64_t>(sizes[i], 1) - 1;
    int64_t distance = 0;
    RL_CHECK(!__builtin_mul_overflow(steps, strides[i], &distance) && distance < kFarthest &&
                 distance > -kFarthest,
             "as_strided: sizes ", sizes, " with strides ", strides, " reach too far");
    (strides[i] < 0 ? low : high) += distance;
  }
  return {low, high};
}

// A zeroed buffer on which both geometries lie; `first` and `second` are the offsets of their first elements.
struct Buffer {
  Tensor data;
  int64_t first, second;
};
Buffer common_buffer(const Tensor& like, IntList sizes1, IntList strides1, IntList sizes2, IntList strides2,
                     int64_t shift) {
  RL_CHECK(std::abs(shift >> 48) <= 1, "as_strided: an offset of ", shift, " is too far");
  const auto [low1, high1] = reach(sizes1, strides1);
  const auto [low2, high2] = reach(sizes2, strides2);
  const int64_t low = std::min(low1, low2 + shift), high = std::max(high1, high2 + shift);
  return {zeros(IntList{high - low + 1}, like), -low, shift - low};
}

// Whether elements of a geometry may share memory, as those of an expanded tensor do.
bool may_overlap(IntList sizes, IntList strides) {
  std::vector<std::pair<int64_t, int64_t>> steps;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return false;
    if (sizes[i] > 1) steps.emplace_back(std::abs(strides[i]), sizes[i]);
  }
  std::sort(steps.begin(), steps.end());
  int64_t reached = 0;
  for (const auto& [step, size] : steps) {
    if (step <= reached) return true;
    reached += (size - 1) * step;
  }
  return false;
}

// How many elements of the geometry lie where each of them lies: they share a gradient evenly.
Tensor sharers(const Buffer& b, IntList sizes, IntList strides) {
  const Tensor counts = zeros(b.data.sizes(), b.data);
  const Tensor one = dense_copy(full(sizes, Scalar(1), b.data.dtype(), {}, b.data.device(), {}));
  const Tensor window = make_view(counts, sizes, strides, b.first, false);
  cpu::strided_add(window.data_ptr(), window.dtype(), sizes, strides, one.data_ptr());
  return dense_copy(window);
}

Tensor as_strided_backward_kernel(const Call&, const Tensor& grad, IntList input_sizes, IntList input_strides,
                                  IntList size, IntList stride, int64_t shift) {
  RL_CHECK(grad.sizes() == size, "as_strided_backward: expected a gradient of shape ", size, ", got ",
           grad.sizes());
  if (grad.device().is_meta()) return empty_tensor(input_sizes, grad.dtype(), grad.device());
  const Buffer b = common_buffer(grad, input_sizes, input_strides, size, stride, shift);
  const Tensor values = dense_copy(grad);
  const Tensor window = make_view(b.data, size, stride, b.second, false);
  if (values.numel()) cpu::strided_add(window.data_ptr(), window.dtype(), size, stride, values.data_ptr());
  const Tensor result = dense_copy(make_view(b.data, input_sizes, input_strides, b.first, false));
  return may_overlap(input_sizes, input_strides) ? result / sharers(b, input_sizes, input_strides) : result;
}

Tensor as_strided_gather_kernel(const Call&, const Tensor& self, IntList input_sizes, IntList input_strides,
                                IntList size, IntList stride, int64_t shift) {
  RL_CHECK(self.sizes() == input_sizes, "as_strided_gather: expected a tensor of shape ", input_sizes,
           ", got ", self.sizes());
  if (self.device().is_meta()) return empty_tensor(size, self.dtype(), self.device());
  const Buffer b = common_buffer(self, input_sizes, input_strides, size, stride, shift);
  const Tensor place = make_view(b.data, input_sizes, input_strides, b.first, false);
  if (may_overlap(input_sizes, input_strides)) {
    const Tensor shares = dense_copy(self / sharers(b, input_sizes, input_strides));
    cpu::strided_add(place.data_ptr(), place.dtype(), input_sizes, input_strides, shares.data_ptr());
  } else {
    copy_result(place, self, false);
  }
  return dense_copy(make_view(b.data, size, stride, b.second, false));
}

}  // namespace

void register_view_backward_operators(Table& t) {
  t.op(select_backward,
       "select_backward(Tensor grad_output, int[] input_sizes, int dim, int index) -> Tensor",
       select_backward_kernel)
      .doc("Gradient of select: zeros of input_sizes with the gradient at one index of dim.")
      .internal()
      .family(Family::Gradient)
      .on_devices()
      .linear()
      .batching(Batching::Dims)
      .derivative([](Grad g, Attr<2, int64_t> dim, Attr<3, int64_t> i) { return select(g, dim, i); });
  t.op(slice_backward,
       "slice_backward(Tensor grad_output, int[] input_sizes, int dim, int? start, int? end, int step) -> "
       "Tensor",
       slice_backward_kernel)
      .doc("Gradient of a slice: zeros of input_sizes with the gradient in the slice.")
      .internal()
      .family(Family::Gradient)
      .on_devices()
      .linear()
      .batching(Batching::Dims)
      .derivative([](Grad g, Attr<2, int64_t> dim, Attr<3, OptInt> start, Attr<4, OptInt> end,
                     Attr<5, int64_t> step) { return slice(g, dim, start, end, step); });
  t.op(diagonal_backward,
       "diagonal_backward(Tensor grad_output, int[] input_sizes, int offset, int dim1, int dim2) -> Tensor",
       diagonal_backward_kernel)
      .doc("Gradient of diagonal: zeros of input_sizes with the gradient on the diagonal.")
      .internal()
      .family(Family::Gradient)
      .on_devices()
      .linear()
      .batching(Batching::Dims)
      .derivative([](Grad g, Attr<2, int64_t> offset, Attr<3, int64_t> a, Attr<4, int64_t> b) {
        return diagonal(g, offset, a, b);
      });
  t.op(unfold_backward,
       "unfold_backward(Tensor grad_in, int[] input_sizes, int dim, int size, int step) -> Tensor",
       unfold_backward_kernel)
      .doc("Gradient of unfold: the windows added up where they overlap.")
      .internal()
      .family(Family::Gradient)
      .linear()
      .batching(Batching::Dims)
      .derivative([](Grad g, Attr<2, int64_t> dim, Attr<3, int64_t> size, Attr<4, int64_t> step) {
        return unfold(g, dim, size, step);
      });
  t.op(split_backward,
       "_split_backward(Tensor?[] grads, int[] input_sizes, int[] split_sizes, int dim) -> Tensor",
       split_backward_kernel)
      .absent_in_pytorch()
      .doc("Gradient of split: the pieces' gradients joined along dim, zeros for those that are undefined.")
      .internal()
      .family(Family::Gradient)
      .on_devices()
      .linear()
      .batching(Batching::Dims)
      .derivative([](Grad g, Attr<2, IntList> sizes, Attr<3, int64_t> dim) {
        return Grads(split_with_sizes(g, sizes, dim));
      });
  t.op(unbind_backward, "_unbind_backward(Tensor?[] grads, int[] input_sizes, int dim) -> Tensor",
       unbind_backward_kernel)
      .absent_in_pytorch()
      .doc("Gradient of unbind: the slices' gradients stacked along dim, zeros for those that are undefined.")
      .internal()
      .family(Family::Gradient)
      .on_devices()
      .linear()
      .batching(Batching::Dims)
      .derivative([](Grad g, Attr<2, int64_t> dim) { return Grads(unbind(g, dim)); });
  t.op(as_strided_backward,
       "_as_strided_backward(Tensor self, int[] input_sizes, int[] input_strides, int[] size, int[] stride, "
       "int shift) -> Tensor",
       as_strided_backward_kernel)
      .absent_in_pytorch()
      .doc("Gradient of as_strided: adds the gradient at the elements that the strides name.")
      .internal()
      .family(Family::Gradient)
      .linear()
      .derivative([](Grad g, Attr<1, IntList> is, Attr<2, IntList> it, Attr<3, IntList> s,
                     Attr<4, IntList> st,
                     Attr<5, int64_t> shift) { return as_strided_gather(g, is, it, s, st, shift); });
  t.op(as_strided_gather,
       "_as_strided_gather(Tensor self, int[] input_sizes, int[] input_strides, int[] size, int[] stride, "
       "int shift) -> Tensor",
       as_strided_gather_kernel)
      .absent_in_pytorch()
      .doc(
          "The elements that the strides name in a tensor of input_sizes: the adjoint of "
          "_as_strided_backward.")
      .internal()
      .family(Family::Gradient)
      .linear()
      .derivative([](Grad g, Attr<1, IntList> is, Attr<2, IntList> it, Attr<3, IntList> s,
                     Attr<4, IntList> st,
                     Attr<5, int64_t> shift) { return as_strided_backward(g, is, it, s, st, shift); });
}

}  // namespace rushlight
