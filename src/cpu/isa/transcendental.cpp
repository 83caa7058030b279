#include "cpu/isa/loops_inl.h"

namespace rushlight::cpu::RL_ISA {

RL_DEFINE_LOOPS(transcendental_loops, RL_TRANSCENDENTAL_FORMULAS)

}  // namespace rushlight::cpu::RL_ISA
