#include "cpu/topk.h"

#include "cpu/isa_variant.h"

namespace rushlight::cpu {

RL_DECLARE_VARIANTS(SkipOrdered skip_ordered_variant(DType dtype, bool largest);)

SkipOrdered skip_ordered(DType dtype, bool largest) {
  return RL_ISA_VARIANT(skip_ordered_variant(dtype, largest));
}

}  // namespace rushlight::cpu
