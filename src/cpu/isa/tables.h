// What each instruction set offers: loops of every formula, casts and selections.
#pragma once
#include <array>
#include <span>

#include "cpu/loops.h"

namespace rushlight::cpu {

using FormulaLoops = std::array<Loop, kDTypeCount>;

// A loop that takes the place of the formula's for one dtype.
struct BitLoop {
  Formula formula;
  DType dtype;
  Loop loop;
};
using BitLoops = std::array<std::span<const BitLoop>, 4>;

#define RL_DECLARE_TABLES(isa)                                                                 \
  namespace isa {                                                                              \
  extern const FormulaLoops arithmetic_loops[], comparison_loops[], transcendental_loops[],    \
      division_loops[], gamma_loops[], bessel_loops[], polynomial_loops[], activation_loops[]; \
  extern const std::array<std::array<CastLoop, kDTypeCount>, kDTypeCount> cast_table;          \
  extern const std::array<WhereLoop, 5> where_table;                                           \
  extern const BitLoops bit_loops;                                                             \
  }
RL_DECLARE_TABLES(baseline)
RL_DECLARE_TABLES(avx2)
RL_DECLARE_TABLES(avx512)
RL_DECLARE_TABLES(neon)
#undef RL_DECLARE_TABLES

}  // namespace rushlight::cpu
