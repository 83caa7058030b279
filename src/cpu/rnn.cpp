#include "cpu/rnn.h"

#include "cpu/isa_variant.h"

namespace rushlight::cpu {

RL_DECLARE_VARIANTS(void lstm_step(DType dtype, const LstmStep& s);
                    void lstm_step_backward(DType dtype, const LstmStepGradients& s);
                    void gru_step(DType dtype, const GruStep& s);
                    void gru_step_backward(DType dtype, const GruStepGradients& s);)

void lstm_step(DType dtype, const LstmStep& s) { RL_ISA_VARIANT(lstm_step(dtype, s)); }
void lstm_step_backward(DType dtype, const LstmStepGradients& s) {
  RL_ISA_VARIANT(lstm_step_backward(dtype, s));
}
void gru_step(DType dtype, const GruStep& s) { RL_ISA_VARIANT(gru_step(dtype, s)); }
void gru_step_backward(DType dtype, const GruStepGradients& s) {
  RL_ISA_VARIANT(gru_step_backward(dtype, s));
}

}  // namespace rushlight::cpu
