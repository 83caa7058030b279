// Sampling images and volumes at the points of a grid.
#pragma once
#include "cpu/grid_sample.h"
#include "dispatch/op.h"

namespace rushlight {

// That an image, a grid and a mode fit each other.
void check_grid(const Tensor& input, const Tensor& grid, int64_t mode);
// What kernels need to know of valid operands.
cpu::SamplePlan sample_plan(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding,
                            bool align);

namespace ops {

inline Fn<Tensor(const Tensor& input, const Tensor& grid, int64_t interpolation_mode, int64_t padding_mode,
                 bool align_corners)>
    grid_sampler, grid_sampler_2d, grid_sampler_3d;
inline Fn<std::tuple<Tensor, Tensor>(const Tensor& grad_output, const Tensor& input, const Tensor& grid,
                                     int64_t interpolation_mode, int64_t padding_mode, bool align_corners,
                                     int64_t wanted)>
    grid_sampler_backward;
inline Fn<Tensor(const Tensor& theta, IntList size, bool align_corners)> affine_grid_generator;

}  // namespace ops
}  // namespace rushlight
