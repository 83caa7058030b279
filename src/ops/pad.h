// Padding.
#pragma once
#include "dispatch/op.h"

namespace rushlight::ops {

// `pad` lists amounts before and after, the last dimension first; negative amounts crop.
inline Fn<Tensor(const Tensor& input, IntList pad, std::string_view mode, std::optional<double> value)> pad;
inline Fn<Tensor(const Tensor& self, IntList pad, const Scalar& value)> constant_pad_nd;
// The adjoint of the seven below; `input_size` is the unpadded one.
inline Fn<Tensor(const Tensor& grad_output, IntList input_size, IntList padding, std::string_view mode)>
    pad_with_mode_backward;
inline Fn<Tensor(const Tensor& input, IntList padding)> reflection_pad1d, reflection_pad2d, reflection_pad3d,
    replication_pad1d, replication_pad2d, replication_pad3d;
inline Fn<Tensor(const Tensor& self, IntList pad)> pad_circular;

// By mode 'reflect', 'replicate' or 'circular', along the last one, two or three dimensions.
Tensor pad_with_mode(const Tensor& input, IntList pad, std::string_view mode);

}  // namespace rushlight::ops
