#include "cpu/topk.h"

#include "cpu/isa_variant.h"

namespace rushlight::cpu {

RL_DECLARE_VARIANTS(SkipOrdered skip_ordered_variant(DType dtype, bool largest);
                    bool count_from_least_variant(const void* x, int64_t n, bool is_signed, uint32_t* to,
                                                  uint64_t* least);)

SkipOrdered skip_ordered(DType dtype, bool largest) {
  return RL_ISA_VARIANT(skip_ordered_variant(dtype, largest));
}
bool count_from_least(const void* x, int64_t n, bool is_signed, uint32_t* to, uint64_t* least) {
  return RL_ISA_VARIANT(count_from_least_variant(x, n, is_signed, to, least));
}

}  // namespace rushlight::cpu
