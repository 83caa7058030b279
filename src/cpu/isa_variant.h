// Chooses among the variants of a kernel that isa/*.cpp compile once per instruction set.
#pragma once
#include "core/host/processor.h"

#if defined(RUSHLIGHT_WITH_AVX512)
#define RL_IF_AVX512(expression)        \
  case ::rushlight::host::Isa::kAvx512: \
    return expression;
#else
#define RL_IF_AVX512(expression)
#endif
#if defined(RUSHLIGHT_WITH_AVX2)
#define RL_IF_AVX2(expression)        \
  case ::rushlight::host::Isa::kAvx2: \
    return expression;
#else
#define RL_IF_AVX2(expression)
#endif
#if defined(RUSHLIGHT_WITH_NEON)
#define RL_IF_NEON(expression)        \
  case ::rushlight::host::Isa::kNeon: \
    return expression;
#else
#define RL_IF_NEON(expression)
#endif

// RL_ISA_VARIANT(f(x)): f(x) of the namespace for this processor.
#define RL_ISA_VARIANT(expression)      \
  [&]() -> decltype(auto) {             \
    switch (::rushlight::host::isa()) { \
      RL_IF_AVX512(avx512::expression)  \
      RL_IF_AVX2(avx2::expression)      \
      RL_IF_NEON(neon::expression)      \
      default:                          \
        return baseline::expression;    \
    }                                   \
  }()
// Declares the variants: RL_DECLARE_VARIANTS(Kernels f(DType t);)
#define RL_DECLARE_VARIANTS(declaration) \
  namespace baseline {                   \
  declaration                            \
  }                                      \
  namespace avx2 {                       \
  declaration                            \
  }                                      \
  namespace avx512 {                     \
  declaration                            \
  }                                      \
  namespace neon {                       \
  declaration                            \
  }
