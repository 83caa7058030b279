#include "cpu/isa/loops_inl.h"

namespace rushlight::cpu::RL_ISA {

RL_DEFINE_LOOPS(comparison_loops, RL_COMPARISON_FORMULAS)

}  // namespace rushlight::cpu::RL_ISA
