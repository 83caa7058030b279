// Formula: the names of all pointwise formulas, and what is known of each.
#pragma once
#include <cstdint>

#include "core/dtype.h"
#include "formulas/activation.h"
#include "formulas/arithmetic.h"
#include "formulas/comparison.h"
#include "formulas/special.h"
#include "formulas/transcendental.h"

namespace rushlight {

#define RL_FORALL_FORMULAS(_)   \
  RL_ARITHMETIC_FORMULAS(_)     \
  RL_COMPARISON_FORMULAS(_)     \
  RL_TRANSCENDENTAL_FORMULAS(_) \
  RL_SPECIAL_FORMULAS(_)        \
  RL_ACTIVATION_FORMULAS(_)

enum class Formula : uint16_t {
#define RL_NAME(name, ...) name,
  RL_FORALL_FORMULAS(RL_NAME)
#undef RL_NAME
      kCount
};
constexpr int kFormulaCount = static_cast<int>(Formula::kCount);

enum class FormulaResult : uint8_t { Same, Bool, Part };

struct FormulaInfo {
  uint8_t inputs, parameters;
  FormulaResult result;
};
inline constexpr FormulaInfo kFormulaInfo[] = {
#define RL_INFO(name, inputs, parameters, types, result, ...) {inputs, parameters, FormulaResult::result},
    RL_FORALL_FORMULAS(RL_INFO)
#undef RL_INFO
};

// The dtype a formula computed in `compute` gives.
inline DType result_type_of(Formula f, DType compute) {
  switch (kFormulaInfo[static_cast<int>(f)].result) {
    case FormulaResult::Bool:
      return DType::Bool;
    case FormulaResult::Part:
      return real_dtype(compute);
    default:
      return compute;
  }
}

}  // namespace rushlight
