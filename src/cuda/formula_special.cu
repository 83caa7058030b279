#define RL_STRIDED_KERNELS_ALONE
#include "cuda/formula.cuh"

namespace rushlight::cuda {

RL_DEFINE_KERNELS(special_kernels, RL_SPECIAL_FORMULAS)

}  // namespace rushlight::cuda
