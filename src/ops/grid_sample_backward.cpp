// The gradients of grid sampling as an operator, which the small runtime does without.
#include <cstring>

#include "core/device_math.h"
#include "cpu/grid_sample.h"
#include "device/layers.h"
#include "dispatch/table.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/grid_sample.h"

namespace rushlight {
namespace {

using namespace ops;

std::tuple<Tensor, Tensor> backward_on_device(const DeviceLayers& layers, const Tensor& grad,
                                              const Tensor& input, const Tensor& grid,
                                              const cpu::SamplePlan& plan, int64_t wanted) {
  const Device device = input.device();
  if (wanted & 1 && device_math().deterministic_algorithms) {
    // Devices add to the input's gradient in any order.
    const auto here = [](const Tensor& t) {
      return to(t, std::nullopt, Device{}, false, false, std::nullopt);
    };
    auto [x, g] = grid_sampler_backward(here(grad), here(input), here(grid), static_cast<int64_t>(plan.mode),
                                        static_cast<int64_t>(plan.padding), plan.align_corners, wanted);
    for (Tensor* t : {&x, &g})
      if (t->defined()) *t = to(*t, std::nullopt, device, false, false, std::nullopt);
    return {x, g};
  }
  Tensor gx, gg;
  if (wanted & 1) gx = zeros(input.sizes(), compute_dtype(input.dtype()), std::nullopt, device);
  if (wanted & 2)
    gg = grad.numel() == 0 ? zeros(grid.sizes(), grid.dtype(), std::nullopt, device)
                           : empty_tensor(grid.sizes(), grid.dtype(), device);
  if (grad.numel() != 0) {
    const Tensor g = contiguous(grad), x = contiguous(input), where = contiguous(grid);
    layers.grid_sample_backward(device.index(), plan, g.data_ptr(), x.data_ptr(), where.data_ptr(),
                                gx.defined() ? gx.data_ptr() : nullptr,
                                gg.defined() ? gg.data_ptr() : nullptr);
  }
  return {gx.defined() ? to_dtype(gx, input.dtype()) : gx, gg};
}

std::tuple<Tensor, Tensor> sampler_backward_kernel(const Call&, const Tensor& grad, const Tensor& input,
                                                   const Tensor& grid, int64_t mode, int64_t padding,
                                                   bool align, int64_t wanted) {
  check_grid(input, grid, mode);
  bool fits = grad.dim() == input.dim() && grad.dtype() == input.dtype();
  for (int64_t d = 0; fits && d < grad.dim(); ++d)
    fits = grad->sizes[d] == (d < 2 ? input->sizes[d] : grid->sizes[d - 1]);
  RL_CHECK(fits, "_grid_sampler_backward: a gradient ", describe(grad), " does not fit an input ",
           describe(input), " sampled at a grid ", describe(grid));
  if (const DeviceLayers* layers = device_layers(input))
    return backward_on_device(*layers, grad, input, grid, sample_plan(input, grid, mode, padding, align),
                              wanted);
  Tensor gx, gg;
  if (wanted & 1) gx = empty_tensor(input.sizes(), input.dtype(), input.device());
  if (wanted & 2) gg = empty_tensor(grid.sizes(), grid.dtype(), grid.device());
  if (!input.is_cpu()) return {gx, gg};
  for (const Tensor& t : {gx, gg})
    if (t.defined() && t.numel()) std::memset(t.data_ptr(), 0, t.nbytes());
  if (grad.numel() == 0) return {gx, gg};
  const Tensor g = contiguous(grad), x = contiguous(input), where = contiguous(grid);
  cpu::grid_sample_backward(sample_plan(input, grid, mode, padding, align), g.data_ptr(), x.data_ptr(),
                            where.data_ptr(), gx.defined() ? gx.data_ptr() : nullptr,
                            gg.defined() ? gg.data_ptr() : nullptr);
  return {gx, gg};
}

}  // namespace

void register_grid_sample_backward_operators(Table& t) {
  t.op(grid_sampler_backward,
       "_grid_sampler_backward(Tensor grad_output, Tensor input, Tensor grid, int interpolation_mode, int "
       "padding_mode, bool align_corners, int wanted) -> (Tensor, Tensor)",
       sampler_backward_kernel)
      .absent_in_pytorch()
      .doc("Gradients of input and grid, as far as wanted.")
      .internal()
      .family(Family::Gradient)
      .on_devices()
      .batching(Batching::Batch)
      .not_differentiable(
          "the rule of grid_sampler uses its reference implementation when gradients are recorded");
}

}  // namespace rushlight
