#include "cpu/isa/loops_inl.h"

namespace rushlight::cpu::RL_ISA {

RL_DEFINE_LOOPS(arithmetic_loops, RL_ARITHMETIC_FORMULAS)

}  // namespace rushlight::cpu::RL_ISA
