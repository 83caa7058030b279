// The loops of this library.
#pragma once
#include "cuda/piece.h"

namespace rushlight {
struct DeviceKernels;
}

namespace rushlight::cuda {

// All of them, as the operators find them.
const DeviceKernels& kernels();

// Runs one piece of a formula. `parameters`: of the compute type.
using FormulaKernel = void (*)(const Piece& piece, const void* parameters, int device);
// By formula of the family in order, then by compute type: int32, int64, float, double, bool. Null: not here.
using FormulaKernels = FormulaKernel[5];
extern const FormulaKernels arithmetic_kernels[], comparison_kernels[], transcendental_kernels[],
    special_kernels[], activation_kernels[];

void run_copy(const Piece& piece, int device);
void run_where(const Piece& piece, int device);

}  // namespace rushlight::cuda
