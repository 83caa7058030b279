#include "cuda/formula.cuh"

namespace rushlight::cuda {

RL_DEFINE_KERNELS(transcendental_kernels, RL_TRANSCENDENTAL_FORMULAS)

}  // namespace rushlight::cuda
