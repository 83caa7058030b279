// What depends on how many elements are true, on devices: they are counted, and only their number is waited
// for before they are written.
#include "device/layers.h"
#include "ops/comparison.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/index_common.h"
#include "ops/join.h"
#include "ops/pointwise.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

// The flags of a vector and where the parts of them begin.
struct Flags {
  const DeviceLayers& layers;
  Tensor flags, starts;
  DeviceFlags plan;
  int64_t count = 0;

  explicit Flags(const Tensor& given)
      : layers(*device_layers(given)),
        flags(given),
        starts(empty_tensor({flag_parts(given.numel()) + 1}, DType::Int64, given.device())),
        plan{given.device().index(), given.dtype(), given.data_ptr(), given.numel(), starts.data<int64_t>()} {
    if (plan.n == 0) return;
    layers.order.count_flags(plan, false);
    count = read_scalar(starts, starts.numel() - 1).to_int();
  }
};

}  // namespace

Tensor nonzero_on_device(const Tensor& self) {
  const bool readable = !is_complex(self.dtype()) && self.dtype() <= DType::Float64;
  const Flags flags(contiguous(readable ? self : ops::ne(self, wrapped_number(Scalar(0)))));
  const bool many = self.dim() > kMostCoordinates;
  const Dims one{self.numel()};
  const IntList sizes = many ? IntList(one) : self.sizes();
  const Tensor out =
      empty_tensor({flags.count, static_cast<int64_t>(sizes.size())}, DType::Int64, self.device());
  if (out.numel() > 0)
    flags.layers.order.places(flags.plan, sizes.data(), static_cast<int>(sizes.size()), out.data<int64_t>());
  if (!many) return out;
  std::vector<Tensor> columns(static_cast<size_t>(self.dim()));
  Tensor rest = select(out, 1, 0);
  for (int64_t d = self.dim() - 1; d >= 0; --d) {
    const Tensor size = wrapped_number(Scalar(std::max<int64_t>(self.size(d), 1)));
    columns[static_cast<size_t>(d)] = remainder(rest, size);
    if (d > 0) rest = floor_divide(rest, size);
  }
  return stack(columns, 1);
}

Tensor select_on_device(const Tensor& self, const Tensor& mask) {
  const Tensor values = contiguous(self);
  const Flags flags(contiguous(mask));
  const Tensor out = empty_tensor({flags.count}, self.dtype(), self.device());
  if (flags.count > 0)
    flags.layers.order.pick(flags.plan, values.data_ptr(), element_size(self.dtype()), out.data_ptr());
  return out;
}

void scatter_on_device(const Tensor& result, const Tensor& mask, const Tensor& source) {
  const Flags flags(contiguous(mask));
  RL_CHECK(flags.count <= source.numel(),
           "masked_scatter: Number of elements of source < number of ones in mask");
  if (flags.count > 0)
    flags.layers.order.spread(flags.plan, source.data_ptr(), element_size(result.dtype()), result.data_ptr());
}

}  // namespace rushlight
