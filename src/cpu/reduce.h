// Reductions on the CPU: one nest of loops for every formula and element type. isa/reduce_*.cpp instantiate
// it per instruction set; reduce.cpp lays out the nest, splits the work and picks the loops.
#pragma once
#include "core/tensor.h"

namespace rushlight::cpu {

enum class ReduceOp : uint8_t {
  Sum,  // integers to int64
  NanSum,
  Prod,  // integers to int64
  Max,   // NaN wins
  Min,
  All,  // to bool (uint8 of uint8)
  Any,
  Norm0,  // count of non-zeros, in the input's type
  Norm1,
  Norm2,
  MaxAbs,
  MinAbs,
  Deviation,  // sum of |x - centre|^2
};
constexpr int kReduceOpCount = 13;

struct ReduceParams {
  double divisor = 1;            // Sum, NanSum and Deviation divide by it
  const void* centre = nullptr;  // Deviation: one accumulator-typed value per output, in the output's order
};

// The loops: kept dimensions with strides of input and output, then reduced ones; innermost last; in
// elements.
struct ReduceNest {
  const void* in = nullptr;
  void* out = nullptr;
  Dims kept, kept_in, kept_out;
  Dims reduced, reduced_in;
  int64_t outputs = 1, inputs_per_output = 1;
};

// One formula for one element type, compiled for one instruction set.
struct ReduceKernel {
  // Reduces outputs [begin, end), counted in the nest's order. With `partial` the accumulators go there
  // instead.
  void (*run)(const ReduceNest&, int64_t begin, int64_t end, const ReduceParams&, void* partial) = nullptr;
  // Combines `pieces` rows of accumulators and writes the outputs.
  void (*finish)(const ReduceNest&, const void* partial, int64_t pieces, const ReduceParams&) = nullptr;
  // All of `n` adjacent elements to one output.
  void (*flat)(const void* in, int64_t n, void* out, const ReduceParams&) = nullptr;
  size_t accumulator_size = 0;
};

// The type that `op` writes for elements of type `in`; null kernel when PyTorch has none.
DType reduced_dtype(ReduceOp op, DType in);
// Fails with PyTorch's "not implemented for" text under the name `who`.
const ReduceKernel& reduce_kernel(ReduceOp op, DType in, const char* who);

// Reduces the dimensions of `in` whose bit is set into `out`: contiguous, kept dimensions in order, dtype
// reduced_dtype.
void reduce(ReduceOp op, const Tensor& in, uint64_t dims, const Tensor& out, const ReduceParams& params,
            const char* who);

}  // namespace rushlight::cpu
