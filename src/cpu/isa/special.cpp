#include "cpu/isa/loops_inl.h"
#include "formulas/bessel_math.h"
#include "formulas/polynomial_math.h"
#include "formulas/special_float.h"

namespace rushlight::cpu::RL_ISA {

RL_DEFINE_LOOPS(special_loops, RL_SPECIAL_FORMULAS)

}  // namespace rushlight::cpu::RL_ISA
