// Runs of elements that meet others: what scatter, index_add, accumulating index_put and embeddings'
// gradients share.
#pragma once
#include "core/dtype.h"

namespace rushlight::cpu {

// to[i] += from[i] * scale on adjacent elements, halves through float; whole numbers with a scale of 1 alone.
// Null for types that are rarer.
using AddRun = void (*)(void* to, const void* from, double scale, int64_t n);
AddRun add_run_kernel(DType dtype);

enum class RunOp : uint8_t { Multiply, Max, Min };
// to[i] = op(to[i], from[i]), as in cpu/combine.h. Null for types that are rarer.
using CombineRun = void (*)(void* to, const void* from, int64_t n);
CombineRun combine_run_kernel(RunOp op, DType dtype);

}  // namespace rushlight::cpu
