// What the files of the reduction family share.
#pragma once
#include "cpu/reduce.h"
#include "dispatch/table.h"

namespace rushlight {

Dims reduced_sizes(const Tensor& self, uint64_t dims, bool keepdim);
// The result of one reduction formula over some dimensions, or over all of them.
Tensor reduce_dims(cpu::ReduceOp op, const Tensor& self, uint64_t dims, bool keepdim, const char* who,
                   const cpu::ReduceParams& params);
Tensor reduce_all(cpu::ReduceOp op, const Tensor& self, const char* who, const cpu::ReduceParams& params);
// Sums and products: integers accumulate in int64, a dtype= converts before and after. No `dims`: all of
// them.
Tensor accumulate(cpu::ReduceOp op, const Tensor& self, std::optional<uint64_t> dims, bool keepdim,
                  OptDType dtype, const char* who, const cpu::ReduceParams& params = {});
// The gradient of a reduction of `dims`, spread over the input's shape.
Tensor expand_grad(const Tensor& grad, uint64_t dims, bool keepdim, IntList sizes);
// The gradient of picking one element per line along `dim`, at positions `at`.
Tensor selected_backward(const Tensor& g, IntList sizes, const Tensor& at, int64_t dim, bool keepdim);

void register_product_operators(Table& t);
void register_extreme_operators(Table& t);
void register_moment_operators(Table& t);

}  // namespace rushlight
