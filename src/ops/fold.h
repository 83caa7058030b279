// Blocks of images as columns (unfold), and back (fold).
#pragma once
#include "dispatch/op.h"

namespace rushlight::ops {

inline Fn<Tensor(const Tensor& self, IntList kernel_size, IntList dilation, IntList padding, IntList stride)>
    im2col;
inline Fn<Tensor(const Tensor& self, IntList output_size, IntList kernel_size, IntList dilation,
                 IntList padding, IntList stride)>
    col2im;

}  // namespace rushlight::ops
