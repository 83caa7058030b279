#include "cpu/small_products.h"

#include "cpu/isa_variant.h"

namespace rushlight::cpu {

RL_DECLARE_VARIANTS(void small_products(const SmallProducts& p, int64_t begin, int64_t end);)

void small_products(const SmallProducts& p, int64_t begin, int64_t end) {
  RL_ISA_VARIANT(small_products(p, begin, end));
}

}  // namespace rushlight::cpu
