#include "cpu/isa/parts_inl.h"
#include "formulas/polynomial_math.h"

namespace rushlight::cpu::RL_ISA {

RL_DEFINE_SPECIAL_LOOPS(polynomial_loops, RL_POLYNOMIAL_FORMULAS)

}  // namespace rushlight::cpu::RL_ISA
