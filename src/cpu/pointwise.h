// Runs a formula over tensors: whole iteration with casts on chunks that stay in the first-level cache.
#pragma once
#include <span>

#include "core/tensor.h"
#include "cpu/loops.h"

namespace rushlight::cpu {

// out = formula(inputs), broadcast to out's shape, computed in `compute`. Any dtypes in memory.
void run_formula(Formula f, DType compute, const Tensor& out, std::span<const Tensor* const> inputs,
                 std::span<const Scalar> parameters = {});
// The same on contiguous memory of the compute type, n elements each.
void run_linear(Formula f, DType compute, char* const* data, unsigned scalars, int64_t n,
                const void* parameters);
// out = condition ? a : b; condition bool, the others of any dtype.
void run_where(const Tensor& out, const Tensor& condition, const Tensor& a, const Tensor& b);

// Whether every element of a bool tensor is set.
bool all_true(const Tensor& t);
// Whether any element is zero.
bool contains_zero(const Tensor& t);

// Parameters of a formula as numbers of the compute type; those of halves are float.
class PackedParameters {
 public:
  PackedParameters(std::span<const Scalar> scalars, DType compute);
  const void* data() const { return bytes_; }

 private:
  alignas(16) std::byte bytes_[4 * 16];
};

}  // namespace rushlight::cpu
