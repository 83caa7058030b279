#include "cpu/isa/parts_inl.h"
#include "formulas/bessel_math.h"
#include "formulas/incomplete_gamma.h"
#include "formulas/polynomial_math.h"
#include "formulas/special_float.h"

namespace rushlight::cpu::RL_ISA {

#define RL_SPECIAL_ROW(name, ...) make_special_row<name>(),
RL_SPECIAL_FORMULAS(RL_FORMULA)
const FormulaLoops special_loops[] = {RL_SPECIAL_FORMULAS(RL_SPECIAL_ROW)};
#undef RL_SPECIAL_ROW

}  // namespace rushlight::cpu::RL_ISA
