// A formula of the lists in src/formulas as a type that kernels are instantiated with.
#pragma once
#include "formulas/table.h"

// The columns are those of formulas/arithmetic.h; `types` is what the file at hand makes of a list's name.
#define RL_FORMULA_AS_STRUCT(name, inputs, parameters, types, result, ...)                         \
  struct name {                                                                                    \
    static constexpr int kInputs = inputs, kParameters = parameters;                               \
    static constexpr FormulaResult kResult = FormulaResult::result;                                \
    static constexpr const char* kName = #name;                                                    \
    using Types = types;                                                                           \
    template <class T>                                                                             \
    __device__ static auto apply([[maybe_unused]] T x, [[maybe_unused]] T y, [[maybe_unused]] T z, \
                                 [[maybe_unused]] const T* p) {                                    \
      using namespace formulas;                                                                    \
      return __VA_ARGS__;                                                                          \
    }                                                                                              \
  }
