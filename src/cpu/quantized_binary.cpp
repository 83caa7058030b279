#include "cpu/quantized_binary.h"

#include "core/parallel.h"
#include "cpu/isa_variant.h"

namespace rushlight::cpu {

RL_DECLARE_VARIANTS(void quantized_binary_range(const QuantizedBinary& q, int64_t begin, int64_t end);
                    void map_bytes_range(const uint8_t* table, const uint8_t* from, uint8_t* to, int64_t n);)

void quantized_binary(const QuantizedBinary& q) {
  parallel_for(0, q.n, kGrainSize,
               [&](int64_t begin, int64_t end) { RL_ISA_VARIANT(quantized_binary_range(q, begin, end)); });
}
void map_bytes(const uint8_t* table, const uint8_t* from, uint8_t* to, int64_t n) {
  parallel_for(0, n, kGrainSize, [&](int64_t begin, int64_t end) {
    RL_ISA_VARIANT(map_bytes_range(table, from + begin, to + begin, end - begin));
  });
}

}  // namespace rushlight::cpu
