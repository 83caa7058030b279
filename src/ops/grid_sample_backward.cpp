// The gradients of grid sampling as an operator, which the small runtime does without.
#include <cstring>

#include "cpu/grid_sample.h"
#include "dispatch/table.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/grid_sample.h"

namespace rushlight {
namespace {

using namespace ops;

std::tuple<Tensor, Tensor> sampler_backward_kernel(const Call&, const Tensor& grad, const Tensor& input,
                                                   const Tensor& grid, int64_t mode, int64_t padding,
                                                   bool align, int64_t wanted) {
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
      .doc("Gradients of input and grid, as far as wanted.")
      .internal()
      .family(Family::Gradient)
      .batching(Batching::Batch)
      .not_differentiable(
          "the rule of grid_sampler uses its reference implementation when gradients are recorded");
}

}  // namespace rushlight
