#define RL_WITHOUT_LINEAR_KERNELS
#include "cuda/formula.cuh"

namespace rushlight::cuda {

RL_DEFINE_KERNELS(special_kernels, RL_SPECIAL_FORMULAS)

}  // namespace rushlight::cuda
