// The loops of this library.
#pragma once
#include <span>

#include "cuda/piece.h"
#include "formulas/table.h"

namespace rushlight {
struct DeviceKernels;
class Scalar;
class Tensor;  // nvcc does not read its header
}  // namespace rushlight

namespace rushlight::cuda {

// All of them but the formulas, as the operators find them.
DeviceKernels kernels();
bool run_formula(Formula f, DType compute, const Tensor& out, std::span<const Tensor* const> inputs,
                 std::span<const Scalar> parameters);

// Dtypes that kernels read and write one by one.
inline bool loads(DType t) { return !is_complex(t) && t <= DType::Float64; }

// Runs one piece of a formula. `parameters`: of the compute type.
using FormulaKernel = void (*)(const Piece& piece, const void* parameters, int device);
// By formula of the family in order, then by compute type: int32, int64, float, double, bool. Null: not here.
using FormulaKernels = FormulaKernel[5];
extern const FormulaKernels arithmetic_kernels[], comparison_kernels[], transcendental_kernels[],
    special_kernels[], activation_kernels[];

void run_copy(const Piece& piece, int device);
void run_where(const Piece& piece, int device);

}  // namespace rushlight::cuda
