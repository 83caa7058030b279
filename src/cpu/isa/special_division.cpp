#include "cpu/isa/parts_inl.h"
#include "formulas/special_float.h"

namespace rushlight::cpu::RL_ISA {

RL_DEFINE_SPECIAL_LOOPS(division_loops, RL_DIVISION_FORMULAS)

}  // namespace rushlight::cpu::RL_ISA
