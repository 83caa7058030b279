// Tensors made from nothing: constant fills, ranges, triangles.
#pragma once
#include "dispatch/op.h"

namespace rushlight::ops {

inline Fn<Tensor(IntList size, OptDType dtype, std::optional<Layout> layout, OptDevice device,
                 std::optional<bool> pin_memory, std::optional<MemoryFormat> memory_format)>
    empty;
inline Fn<Tensor(IntList size, IntList stride, OptDType dtype, std::optional<Layout> layout, OptDevice device,
                 std::optional<bool> pin_memory)>
    empty_strided, empty_permuted;
inline Fn<Tensor(IntList size, OptDType dtype, std::optional<Layout> layout, OptDevice device,
                 std::optional<bool> pin_memory)>
    zeros, ones;
inline Fn<Tensor(IntList size, const Scalar& fill_value, OptDType dtype, std::optional<Layout> layout,
                 OptDevice device, std::optional<bool> pin_memory)>
    full;
inline Fn<Tensor(const Tensor& self, OptDType dtype, std::optional<Layout> layout, OptDevice device,
                 std::optional<bool> pin_memory, std::optional<MemoryFormat> memory_format)>
    empty_like, zeros_like, ones_like;
inline Fn<Tensor(const Tensor& self, const Scalar& fill_value, OptDType dtype, std::optional<Layout> layout,
                 OptDevice device, std::optional<bool> pin_memory, std::optional<MemoryFormat> memory_format)>
    full_like;
inline Fn<Tensor(const Tensor& self, IntList size, OptDType dtype, std::optional<Layout> layout,
                 OptDevice device, std::optional<bool> pin_memory)>
    new_empty, new_zeros, new_ones;
inline Fn<Tensor(const Tensor& self, IntList size, const Scalar& fill_value, OptDType dtype,
                 std::optional<Layout> layout, OptDevice device, std::optional<bool> pin_memory)>
    new_full;
inline Fn<Tensor(const Tensor& self, IntList size, IntList stride, OptDType dtype,
                 std::optional<Layout> layout, OptDevice device, std::optional<bool> pin_memory)>
    new_empty_strided;
inline Fn<Tensor(const Scalar& start, const Scalar& end, const Scalar& step, OptDType dtype,
                 std::optional<Layout> layout, OptDevice device, std::optional<bool> pin_memory)>
    arange, range;
inline Fn<Tensor(const Scalar& start, const Scalar& end, int64_t steps, OptDType dtype,
                 std::optional<Layout> layout, OptDevice device, std::optional<bool> pin_memory)>
    linspace;
inline Fn<Tensor(const Scalar& start, const Scalar& end, int64_t steps, double base, OptDType dtype,
                 std::optional<Layout> layout, OptDevice device, std::optional<bool> pin_memory)>
    logspace;
inline Fn<Tensor(int64_t n, int64_t m, OptDType dtype, std::optional<Layout> layout, OptDevice device,
                 std::optional<bool> pin_memory)>
    eye;
inline Fn<Tensor(const Scalar& s, OptDType dtype, std::optional<Layout> layout, OptDevice device,
                 std::optional<bool> pin_memory)>
    scalar_tensor;
inline Fn<Tensor(const Tensor& self, int64_t diagonal)> tril, triu;
inline Fn<Tensor(int64_t row, int64_t col, int64_t offset, OptDType dtype, std::optional<Layout> layout,
                 OptDevice device, std::optional<bool> pin_memory)>
    tril_indices, triu_indices;

}  // namespace rushlight::ops
