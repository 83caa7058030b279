// The loops that operators share between devices. On the meta device they do nothing.
#pragma once
#include <span>

#include "core/tensor.h"
#include "device/kernels.h"
#include "formulas/table.h"

namespace rushlight::cpu {
enum class ReduceOp : uint8_t;
enum class ScatterOp : uint8_t;
struct ReduceParams;
}  // namespace rushlight::cpu

namespace rushlight::loops {

// out = formula(inputs), broadcast to out's shape, computed in `compute`. Any dtypes in memory.
void formula(Formula f, DType compute, const Tensor& out, std::span<const Tensor* const> inputs,
             std::span<const Scalar> parameters = {});
// out = condition ? a : b; condition bool, the others of any dtype.
void where(const Tensor& out, const Tensor& condition, const Tensor& a, const Tensor& b);
// out = source, broadcast and converted, also from one device to another; the two must not partly overlap.
// `non_blocking`: copies between a device and pinned memory may still be under way on return.
void copy(const Tensor& out, const Tensor& source, bool non_blocking = false);

// As their counterparts in cpu/reduce.h and cpu/scan.h.
void reduce(cpu::ReduceOp op, const Tensor& in, uint64_t dims, const Tensor& out,
            const cpu::ReduceParams& params, const char* who);
void arg_extreme(const Tensor& in, int64_t dim, bool largest, const Tensor& values, const Tensor& indices);
void cumulate(bool product, const Tensor& in, int64_t dim, const Tensor& out);

// As their counterparts in cpu/index.h. On a device, positions out of bounds stop the kernel.
bool gather(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& out);
bool scatter(cpu::ScatterOp op, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
             bool check);

// Positions on a device: an element lies where `strides` lead, and further on by `offsets`, which has strides
// of its own in the same sizes.
struct Positions {
  Dims sizes, strides;  // strides of the indexed tensor; 0 along dimensions that an index replaces
  Tensor offsets;       // int64, on the device
};
// One more index: positions along a dimension of `size` and `stride`, broadcast to the offsets.
void add_positions(const Tensor& offsets, const Tensor& index, int64_t size, int64_t stride, bool wraps);
void take(const Tensor& out, const Tensor& self, const Positions& at);
void put(cpu::ScatterOp op, const Tensor& self, const Positions& at, const Tensor& values);

// out = alpha * a @ b + beta * out on a device: matrices, or batches of them, as cpu::gemm_readable wants
// them.
void product(const Tensor& out, const Tensor& a, const Tensor& b, const Scalar& alpha, const Scalar& beta);
// As DeviceKernels::product_bias; false on the CPU too.
bool product_bias(const Tensor& out, const Tensor& a, const Tensor& b, const Tensor& bias,
                  DeviceKernels::Activation activation);

// Contiguous `out`: start + i * step; matrices of which a triangle stays.
void range(const Tensor& out, const Scalar& start, const Scalar& step);
void triangle(const Tensor& out, int64_t diagonal, bool upper);

}  // namespace rushlight::loops
