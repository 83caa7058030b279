#include "cpu/isa/parts_inl.h"
#include "formulas/bessel_math.h"
#include "formulas/special_float.h"

namespace rushlight::cpu::RL_ISA {

RL_DEFINE_SPECIAL_LOOPS(bessel_loops, RL_BESSEL_FORMULAS)

}  // namespace rushlight::cpu::RL_ISA
