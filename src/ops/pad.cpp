#include "ops/pad.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "cpu/pad.h"
#include "dispatch/table.h"
#include "ops/copy.h"
#include "ops/device_loops.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/join.h"
#include "ops/operators.h"
#include "ops/register.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

// `block` in the middle of `result`, whose memory has its dimensions in the given order.
void frame(const Tensor& result, const Tensor& block, IntList start, IntList order, const Scalar& value) {
  cpu::FramedBlock f;
  for (int64_t d : order) {
    f.sizes.push_back(result->sizes[d]);
    f.start.push_back(start[d]);
    f.block.push_back(block->sizes[d]);
    f.strides.push_back(block->strides[d]);
  }
  visit_dtype(StorageTypes{}, result.dtype(), "constant_pad_nd", [&]<class T>(T) {
    const T constant = value.to<T>();
    cpu::fill_around(f, block.data_ptr(), &constant, sizeof(T), result.data_ptr());
  });
}

Tensor constant_pad_kernel(const Call&, const Tensor& self, IntList pad, const Scalar& value) {
  const int64_t n = self.dim(), padded = static_cast<int64_t>(pad.size()) / 2;
  RL_CHECK(pad.size() % 2 == 0, "Length of pad must be even but instead it equals ", pad.size());
  RL_CHECK(n >= padded,
           "Length of pad should be no more than twice the number of dimensions of the input. Pad length is ",
           pad.size(), " while the input has ", n, " dimensions.");
  Dims sizes = self->sizes;
  for (int64_t i = 0; i < padded; ++i) {
    const int64_t d = n - 1 - i, size = sizes[d];
    RL_CHECK(!__builtin_add_overflow(sizes[d], pad[2 * i], &sizes[d]) &&
                 !__builtin_add_overflow(sizes[d], pad[2 * i + 1], &sizes[d]) && sizes[d] >= 0,
             "The input size ", size, ", plus negative padding ", pad[2 * i], " and ", pad[2 * i + 1],
             " resulted in a negative output size, which is invalid. Check dimension ", d, " of your input.");
  }
  const MemoryFormat format = is_channels_last(self)
                                  ? n == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d
                                  : MemoryFormat::Contiguous;
  Tensor result = empty_tensor(sizes, self.dtype(), self.device(), format);
  if (n == 0) copy_result(result, self, false);
  if (n == 0 || result.device().is_meta() || result.numel() == 0) return result;
  Tensor block = self;
  Dims start(n), order(n);
  std::iota(order.begin(), order.end(), 0);
  if (format != MemoryFormat::Contiguous) std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  for (int64_t i = 0; i < padded; ++i) {
    const int64_t d = n - 1 - i, before = pad[2 * i], after = pad[2 * i + 1];
    const int64_t first = std::max<int64_t>(-before, 0), last = self->sizes[d] + std::min<int64_t>(after, 0);
    RL_CHECK(first <= last, "narrow(): length must be non-negative.");
    start[d] = std::max<int64_t>(before, 0);
    block = slice(block, d, first, last, 1);
  }
  if (result.is_cpu()) {
    frame(result, block, start, order, value);
    return result;
  }
  loops::copy(result, scalar_tensor_of(value, result.dtype()));
  Tensor middle = result;
  for (int64_t d = 0; d < n; ++d) middle = slice(middle, d, start[d], start[d] + block->sizes[d], 1);
  if (middle.numel()) loops::copy(middle, block);
  return result;
}

// --- reflect, replicate and circular: one dimension after the other
// --------------------------------------------------------

// Amounts of one dimension: before and after.
struct Amounts {
  int64_t before, after;
  Amounts(IntList pad, int64_t i) : before(pad[2 * i]), after(pad[2 * i + 1]) {}
  bool none() const { return before == 0 && after == 0; }
};

// Where the elements [first, last) of a padded dimension of size n come from.
void append_sources(std::string_view mode, int64_t n, Amounts pad, int64_t first, int64_t last, Dims& to) {
  // What negative amounts crop is gone before the rest wraps around.
  const int64_t cropped = std::max<int64_t>(-pad.before, 0),
                left = n - cropped - std::max<int64_t>(-pad.after, 0);
  for (int64_t i = first; i < last; ++i) {
    int64_t at = i - pad.before;
    if (mode == "reflect")
      at = at < 0 ? -at : at >= n ? 2 * (n - 1) - at : at;
    else if (mode == "replicate")
      at = std::clamp<int64_t>(at, 0, n - 1);
    else
      at = ((at - cropped) % left + left) % left + cropped;
    to.push_back(at);
  }
}

Tensor positions_on(const Dims& positions, Device device) {
  Tensor t = empty_tensor(IntList{static_cast<int64_t>(positions.size())}, DType::Int64);
  std::ranges::copy(positions, t.data<int64_t>());
  return device.is_cpu() ? t : to(t, std::nullopt, device, false, false, std::nullopt);
}

// Element by element, as dimensions that are cropped, too, need it.
Tensor pad_dimension(const Tensor& input, int64_t d, Amounts pad, std::string_view mode) {
  Dims positions;
  append_sources(mode, input->sizes[d], pad, 0, input->sizes[d] + pad.before + pad.after, positions);
  return index_select(input, d, positions_on(positions, input.device()));
}

// Copies what the positions [first, last) of a padded dimension repeat; `part` has the borders of dimensions
// after it, and only the middle of those before it.
void fill_border(const Tensor& part, int64_t d, const Dims& sources, int64_t first) {
  const auto count = static_cast<int64_t>(sources.size());
  if (count == 0 || part.numel() == 0) return;
  if (!part.is_cpu()) {
    const Tensor border = index_select(part, d, positions_on(sources, part.device()));
    return loops::copy(narrow(part, d, first, count), border);
  }
  cpu::Repetition r;
  r.step = part->strides[d];
  for (int64_t i = 0; i < count; ++i) r.moves.emplace_back(first + i, sources[i]);
  Dims order;
  for (int64_t k = 0; k < part.dim(); ++k)
    if (k != d) order.push_back(k);
  std::ranges::sort(order, std::greater(), [&](int64_t k) { return part->strides[k]; });
  for (const int64_t k : order) r.sizes.push_back(part->sizes[k]), r.strides.push_back(part->strides[k]);
  cpu::repeat_positions(r, element_size(part.dtype()), part.data_ptr());
}

// The input in the middle in one piece; then the borders, from the last dimension on.
Tensor pad_inside_kernel(const Call& call, const Tensor& self, IntList pad, std::string_view mode) {
  for (const int64_t amount : pad) RL_CHECK(amount >= 0, "_pad_inside: negative padding ", pad);
  const Tensor result = constant_pad_kernel(call, self, pad, Scalar(0));
  if (result.device().is_meta() || result.numel() == 0) return result;
  const int64_t n = self.dim(), padded = static_cast<int64_t>(pad.size()) / 2;
  for (int64_t i = 0; i < padded; ++i) {
    Tensor part = result;
    for (int64_t k = i + 1; k < padded; ++k)
      part = narrow(part, n - 1 - k, pad[2 * k], self->sizes[n - 1 - k]);
    const Amounts amounts(pad, i);
    const int64_t d = n - 1 - i, total = result->sizes[d];
    auto fill = [&](int64_t first, int64_t last) {
      Dims sources;
      append_sources(mode, self->sizes[d], amounts, first, last, sources);
      for (int64_t& at : sources) at += amounts.before;
      fill_border(part, d, sources, first);
    };
    fill(0, amounts.before);
    fill(total - amounts.after, total);
  }
  return result;
}

// Gradients of the borders are added to those of the elements that they repeat.
Tensor pad_inside_backward(Tensor grad, IntList sizes, IntList pad, std::string_view mode) {
  const int64_t n = grad.dim(), padded = static_cast<int64_t>(pad.size()) / 2;
  for (int64_t i = padded - 1; i >= 0; --i) {
    const Amounts amounts(pad, i);
    if (amounts.none()) continue;
    const int64_t d = n - 1 - i, size = sizes[d], total = grad->sizes[d];
    Dims positions;
    append_sources(mode, size, amounts, 0, amounts.before, positions);
    append_sources(mode, size, amounts, total - amounts.after, total, positions);
    const Tensor border =
        cat({narrow(grad, d, 0, amounts.before), narrow(grad, d, total - amounts.after, amounts.after)}, d);
    grad = index_add(narrow(grad, d, amounts.before, size), d, positions_on(positions, grad.device()), border,
                     Scalar(1));
  }
  return grad;
}

Tensor pad_from_inside(const Tensor& input, IntList pad, std::string_view mode) {
  const int64_t n = input.dim(), padded = static_cast<int64_t>(pad.size()) / 2;
  RL_CHECK(pad.size() % 2 == 0 && padded >= 1 && padded <= 3 && (n == padded + 1 || n == padded + 2),
           "Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now (got mode '", mode,
           "', pad of length ", pad.size(), " and an input of ", n, " dimensions)");
  for (int64_t d = n - padded - 1; d < n; ++d)
    RL_CHECK(
        input->sizes[d] > 0, "Expected ", padded + 1, "D or ", padded + 2,
        "D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: ",
        input.sizes());
  for (int64_t i = 0; i < padded; ++i) {
    const int64_t d = n - 1 - i, size = input->sizes[d], before = pad[2 * i], after = pad[2 * i + 1];
    if (mode == "reflect")
      RL_CHECK(before < size && after < size,
               "Argument #4: Padding size should be less than the corresponding input dimension, but got: "
               "padding (",
               before, ", ", after, ") at dimension ", d, " of input ", input.sizes());
    if (mode == "circular")
      RL_CHECK(before <= size && after <= size &&
                   size + std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0) > 0,
               "Padding value causes wrapping around more than once.");
    RL_CHECK((mode == "replicate" || (before > -size && after > -size)) && size + before + after > 0,
             "input (", mode, " pad of dimension ", d, " of size ", size, " by ", before, ", ", after,
             ") is too small: calculated output size ", size + before + after);
  }
  if (std::ranges::all_of(pad, [](int64_t amount) { return amount >= 0; }))
    return pad_inside(input, pad, mode);
  Tensor result = input;
  for (int64_t i = padded - 1; i >= 0; --i)
    if (const Amounts amounts(pad, i); !amounts.none())
      result = pad_dimension(result, n - 1 - i, amounts, mode);
  return result;
}

Tensor pad_body(const Call&, const Tensor& input, IntList amounts, std::string_view mode,
                std::optional<double> value) {
  if (mode == "constant") return constant_pad_nd(input, amounts, value ? Scalar(*value) : Scalar(0));
  RL_CHECK(!value || *value == 0, "Padding mode \"", mode, "\" doesn't take in value argument");
  if (mode == "reflect" || mode == "replicate" || mode == "circular")
    return pad_from_inside(input, amounts, mode);
  RL_NOT_IMPLEMENTED("Unrecognised padding mode ", mode);
}

}  // namespace

void register_pad_operators(Table& t) {
  t.op(constant_pad_nd, "constant_pad_nd(Tensor self, int[] pad, Scalar value=0) -> Tensor",
       constant_pad_kernel)
      .function_only()
      .doc(
          "Adds elements of one value around; pad lists before and after, last dimension first. Negative "
          "amounts crop.")
      .derivative([](Grad g, Attr<1, IntList> amounts) {
        Dims opposite = amounts->dims();
        for (int64_t& a : opposite) a = -a;
        return constant_pad_nd(g, opposite, Scalar(0));
      });
  t.op(pad_inside, "_pad_inside(Tensor self, int[] pad, str mode) -> Tensor", pad_inside_kernel)
      .function_only()
      .doc(
          "Adds elements of the input's own around, as pad does for all modes but 'constant'; none is "
          "cropped.")
      .derivative([](Grad g, Shape<0> x, Attr<1, IntList> pad, Attr<2, std::string_view> mode) {
        return pad_inside_backward(g, x.sizes(), pad, mode);
      });
  t.composite(ops::pad, "nn::pad(Tensor input, int[] pad, str mode='constant', float? value=None) -> Tensor",
              pad_body)
      .doc(
          "Adds elements around: a constant, or the input's own by mode 'reflect', 'replicate' or "
          "'circular'.");
}

}  // namespace rushlight
