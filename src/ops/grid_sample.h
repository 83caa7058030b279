// Sampling images and volumes at the points of a grid.
#pragma once
#include "dispatch/op.h"

namespace rushlight::ops {

inline Fn<Tensor(const Tensor& input, const Tensor& grid, int64_t interpolation_mode, int64_t padding_mode,
                 bool align_corners)>
    grid_sampler, grid_sampler_2d, grid_sampler_3d;
inline Fn<std::tuple<Tensor, Tensor>(const Tensor& grad_output, const Tensor& input, const Tensor& grid,
                                     int64_t interpolation_mode, int64_t padding_mode, bool align_corners,
                                     int64_t wanted)>
    grid_sampler_backward;
inline Fn<Tensor(const Tensor& theta, IntList size, bool align_corners)> affine_grid_generator;

}  // namespace rushlight::ops
