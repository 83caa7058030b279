#include "cpu/accumulate.h"

#include "cpu/isa_variant.h"

namespace rushlight::cpu {

RL_DECLARE_VARIANTS(AddRun add_run_variant(DType dtype);
                    CombineRun combine_run_variant(RunOp op, DType dtype);)

AddRun add_run_kernel(DType dtype) { return RL_ISA_VARIANT(add_run_variant(dtype)); }
CombineRun combine_run_kernel(RunOp op, DType dtype) {
  return RL_ISA_VARIANT(combine_run_variant(op, dtype));
}

}  // namespace rushlight::cpu
