#include "cpu/norm.h"

#include "cpu/isa_variant.h"

namespace rushlight::cpu {

RL_DECLARE_VARIANTS(const NormKernels* find_norm_kernels(DType dtype);)

const NormKernels& norm_kernels(DType dtype, const char* who) {
  const NormKernels* kernels = RL_ISA_VARIANT(find_norm_kernels(dtype));
  if (!kernels) RL_NOT_IMPLEMENTED("\"", who, "\" not implemented for '", legacy_name(dtype), "'");
  return *kernels;
}

}  // namespace rushlight::cpu
