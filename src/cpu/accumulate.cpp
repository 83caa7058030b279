#include "cpu/accumulate.h"

#include "cpu/isa_variant.h"

namespace rushlight::cpu {

RL_DECLARE_VARIANTS(AddRun add_run_variant(DType dtype);)

AddRun add_run_kernel(DType dtype) { return RL_ISA_VARIANT(add_run_variant(dtype)); }

}  // namespace rushlight::cpu
