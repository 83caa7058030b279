#include "ops/pad.h"

#include <numeric>

#include "cpu/pad.h"
#include "dispatch/table.h"
#include "ops/copy.h"
#include "ops/device_loops.h"
#include "ops/factory.h"
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
  for (int64_t i = 0; i < padded; ++i)  // also where there is nothing to copy
    RL_CHECK(
        std::max<int64_t>(-pad[2 * i], 0) <= self->sizes[n - 1 - i] + std::min<int64_t>(pad[2 * i + 1], 0),
        "narrow(): length must be non-negative.");
  value.check_fits(self.dtype());
  const MemoryFormat format = image_format(self);
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

Tensor pad_body(const Call&, const Tensor& input, IntList amounts, std::string_view mode,
                std::optional<double> value) {
  if (mode == "constant") return constant_pad_nd(input, amounts, value ? Scalar(*value) : Scalar(0));
  RL_CHECK(!value || *value == 0, "Padding mode \"", mode, "\" doesn't take in value argument");
  if (mode == "reflect" || mode == "replicate" || mode == "circular")
    return pad_with_mode(input, amounts, mode);
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
      .family(Family::Window)
      .on_devices()
      .batching(Batching::Dims)
      .derivative([](Grad g, Attr<1, IntList> amounts) {
        Dims opposite = amounts->dims();
        for (int64_t& a : opposite) a = -a;
        return constant_pad_nd(g, opposite, Scalar(0));
      });
  t.composite(ops::pad, "nn::pad(Tensor self, int[] pad, str mode='constant', float? value=None) -> Tensor",
              pad_body)
      .doc(
          "Adds elements around: a constant, or the input's own by mode 'reflect', 'replicate' or "
          "'circular'.");
}

}  // namespace rushlight
