// Padding.
#pragma once
#include "dispatch/op.h"

namespace rushlight::ops {

// `pad` lists amounts before and after, the last dimension first; negative amounts crop.
inline Fn<Tensor(const Tensor& input, IntList pad, std::string_view mode, std::optional<double> value)> pad;
inline Fn<Tensor(const Tensor& self, IntList pad, const Scalar& value)> constant_pad_nd;

}  // namespace rushlight::ops
