#include "cpu/grid_sample.h"

#include "cpu/isa_variant.h"

namespace rushlight::cpu {

RL_DECLARE_VARIANTS(void grid_sample(const SamplePlan& plan, const void* input, const void* grid, void* out);
                    void grid_sample_backward(const SamplePlan& plan, const void* grad, const void* input,
                                              const void* grid, void* grad_input, void* grad_grid);)

void grid_sample(const SamplePlan& plan, const void* input, const void* grid, void* out) {
  RL_ISA_VARIANT(grid_sample(plan, input, grid, out));
}
void grid_sample_backward(const SamplePlan& plan, const void* grad, const void* input, const void* grid,
                          void* grad_input, void* grad_grid) {
  RL_ISA_VARIANT(grid_sample_backward(plan, grad, input, grid, grad_input, grad_grid));
}

}  // namespace rushlight::cpu
