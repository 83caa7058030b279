#include "cpu/isa/parts_inl.h"
#include "formulas/incomplete_gamma.h"
#include "formulas/special_float.h"

namespace rushlight::cpu::RL_ISA {

RL_DEFINE_SPECIAL_LOOPS(gamma_loops, RL_GAMMA_FORMULAS)

}  // namespace rushlight::cpu::RL_ISA
