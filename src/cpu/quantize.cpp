#include "cpu/quantize.h"

#include "core/parallel.h"
#include "cpu/isa_variant.h"

namespace rushlight::cpu {

RL_DECLARE_VARIANTS(void quantize_range(const Quantization& q, const float* from, void* to, int64_t begin,
                                        int64_t end);
                    void dequantize_range(const Quantization& q, const void* from, float* to, int64_t begin,
                                          int64_t end);)

void quantize(const Quantization& q, const float* from, void* to) {
  parallel_for(0, q.n, kGrainSize,
               [&](int64_t begin, int64_t end) { RL_ISA_VARIANT(quantize_range(q, from, to, begin, end)); });
}
void dequantize(const Quantization& q, const void* from, float* to) {
  parallel_for(0, q.n, kGrainSize, [&](int64_t begin, int64_t end) {
    RL_ISA_VARIANT(dequantize_range(q, from, to, begin, end));
  });
}

}  // namespace rushlight::cpu
