// Resizing of images, lines and volumes.
#pragma once
#include "dispatch/op.h"

namespace rushlight::ops {

using Factor = std::optional<double>;  // scale_factor along one dimension, if the user gave it

inline Fn<Tensor(const Tensor& input, IntList output_size, Factor scales)> upsample_nearest1d,
    upsample_nearest_exact1d;
inline Fn<Tensor(const Tensor& input, IntList output_size, Factor scales_h, Factor scales_w)>
    upsample_nearest2d, upsample_nearest_exact2d;
inline Fn<Tensor(const Tensor& input, IntList output_size, Factor scales_d, Factor scales_h, Factor scales_w)>
    upsample_nearest3d, upsample_nearest_exact3d;
inline Fn<Tensor(const Tensor& input, IntList output_size, bool align_corners, Factor scales)>
    upsample_linear1d;
inline Fn<Tensor(const Tensor& input, IntList output_size, bool align_corners, Factor scales_h,
                 Factor scales_w)>
    upsample_bilinear2d, upsample_bicubic2d, upsample_bilinear2d_aa, upsample_bicubic2d_aa,
    upsample_lanczos2d_aa;
inline Fn<Tensor(const Tensor& input, IntList output_size, bool align_corners, Factor scales_d,
                 Factor scales_h, Factor scales_w)>
    upsample_trilinear3d;

// Any of the above by its filter (cpu::Filter); a factor of 0 is none. And their adjoint.
inline Fn<Tensor(const Tensor& input, IntList output_size, int64_t filter, bool align_corners,
                 FloatList factors)>
    upsample_by;
inline Fn<Tensor(const Tensor& grad_output, IntList input_size, int64_t filter, bool align_corners,
                 FloatList factors)>
    upsample_by_backward;

}  // namespace rushlight::ops
