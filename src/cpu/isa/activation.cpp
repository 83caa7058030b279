#include "cpu/isa/loops_inl.h"

namespace rushlight::cpu::RL_ISA {

RL_DEFINE_LOOPS(activation_loops, RL_ACTIVATION_FORMULAS)

}  // namespace rushlight::cpu::RL_ISA
