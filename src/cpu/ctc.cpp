#include "cpu/ctc.h"

#include "cpu/isa_variant.h"

namespace rushlight::cpu {

RL_DECLARE_VARIANTS(double ctc_forward(DType dtype, const CtcSample& sample);
                    void ctc_backward(DType dtype, const CtcSample& sample, double loss, double grad_out,
                                      void* grad);)

double ctc_forward(DType dtype, const CtcSample& sample) {
  return RL_ISA_VARIANT(ctc_forward(dtype, sample));
}
void ctc_backward(DType dtype, const CtcSample& sample, double loss, double grad_out, void* grad) {
  RL_ISA_VARIANT(ctc_backward(dtype, sample, loss, grad_out, grad));
}

}  // namespace rushlight::cpu
