// Copies, conversions and fills.
#pragma once
#include "dispatch/op.h"

namespace rushlight::ops {

inline Fn<Tensor(const Tensor& self, const Tensor& src, bool non_blocking)> copy_;
inline Fn<Tensor(const Tensor& self, const Tensor& value)> fill_;  // value is 0-dim
inline Fn<Tensor(const Tensor& self)> zero_;
inline Fn<Tensor(const Tensor& self, std::optional<MemoryFormat> memory_format)> clone;
inline Fn<Tensor(const Tensor& self, MemoryFormat memory_format)> contiguous;
// A copy in another dtype, device or layout; always copies.
inline Fn<Tensor(const Tensor& self, OptDType dtype, OptDevice device,
                 std::optional<MemoryFormat> memory_format)>
    to_copy;
// The tensor itself when nothing changes, else to_copy.
inline Fn<Tensor(const Tensor& self, OptDType dtype, OptDevice device, bool non_blocking, bool copy,
                 std::optional<MemoryFormat> memory_format)>
    to;

}  // namespace rushlight::ops

namespace rushlight {
// Channels last for images that lie so, else contiguous: the layout that results of operators on images take.
inline MemoryFormat image_format(const Tensor& t) {
  if (!is_channels_last(t)) return MemoryFormat::Contiguous;
  return t.dim() == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
}
// The tensor itself where it is contiguous, else a contiguous copy; undefined stays undefined.
inline Tensor as_contiguous(const Tensor& t) {
  return !t.defined() || t.is_contiguous() ? t : ops::contiguous(t, MemoryFormat::Contiguous);
}
inline Tensor to_dtype(const Tensor& t, DType dtype) {
  return t.dtype() == dtype ? t : ops::to_copy(t, dtype, std::nullopt, std::nullopt);
}
inline Tensor to_device(const Tensor& t, Device device) {
  return t.device() == device ? t : ops::to_copy(t, std::nullopt, device, std::nullopt);
}
// What the host is to read, wherever it lies; a meta tensor stays one.
inline Tensor on_cpu(const Tensor& t) { return t.device().is_meta() ? t : to_device(t, Device{}); }
}  // namespace rushlight
