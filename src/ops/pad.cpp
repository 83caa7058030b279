#include "ops/pad.h"

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

// Where elements first, ... last - 1 of a padded dimension of size n come from.
Tensor source_positions(std::string_view mode, int64_t n, int64_t before, int64_t after, int64_t first,
                        int64_t last, Device device) {
  Tensor t = empty_tensor(IntList{last - first}, DType::Int64);
  // What negative amounts crop is gone before the rest wraps around.
  const int64_t cropped = std::max<int64_t>(-before, 0), left = n - cropped - std::max<int64_t>(-after, 0);
  for (int64_t i = first; i < last; ++i) {
    int64_t at = i - before;
    if (mode == "reflect")
      at = at < 0 ? -at : at >= n ? 2 * (n - 1) - at : at;
    else if (mode == "replicate")
      at = std::clamp<int64_t>(at, 0, n - 1);
    else
      at = ((at - cropped) % left + left) % left + cropped;
    t.data<int64_t>()[i - first] = at;
  }
  return device.is_cpu() ? t : to(t, std::nullopt, device, false, false, std::nullopt);
}

// Most elements are copied in one piece; only those at the borders are looked up.
Tensor pad_dimension(const Tensor& input, int64_t d, int64_t before, int64_t after, std::string_view mode) {
  const int64_t n = input->sizes[d], first = std::max<int64_t>(-before, 0);
  const int64_t last = n - std::max<int64_t>(-after, 0), total = n + before + after;
  auto border = [&](int64_t from, int64_t to) {
    return index_select(input, d, source_positions(mode, n, before, after, from, to, input.device()));
  };
  if (first >= last) return border(0, total);
  std::vector<Tensor> pieces;
  if (before > 0) pieces.push_back(border(0, before));
  pieces.push_back(slice(input, d, first, last, 1));
  if (after > 0) pieces.push_back(border(total - after, total));
  return pieces.size() == 1 ? clone(pieces[0], std::nullopt) : cat(pieces, d);
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
  Tensor result = input;
  for (int64_t i = padded - 1; i >= 0; --i) {
    const int64_t d = n - 1 - i;
    if (pad[2 * i] == 0 && pad[2 * i + 1] == 0) continue;
    result = pad_dimension(result, d, pad[2 * i], pad[2 * i + 1], mode);
  }
  return result.is_same(input) ? clone(input, std::nullopt) : result;
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
  t.composite(ops::pad, "nn::pad(Tensor input, int[] pad, str mode='constant', float? value=None) -> Tensor",
              pad_body)
      .doc(
          "Adds elements around: a constant, or the input's own by mode 'reflect', 'replicate' or "
          "'circular'.");
}

}  // namespace rushlight
