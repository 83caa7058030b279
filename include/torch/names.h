// torch::, at:: and c10::, and the macros that programs for PyTorch use.
#pragma once
#include "rushlight/rushlight.h"

namespace rushlight::dispatch {
using Floating = TypeList<float, double>;
using Integral = TypeList<uint8_t, int8_t, int16_t, int32_t, int64_t>;
using All = Concat<Integral, Floating>;
using FloatingAndComplex = Concat<Floating, ComplexTypes>;
}  // namespace rushlight::dispatch

namespace rushlight::autograd {
using tensor_list = variable_list;
}  // namespace rushlight::autograd

namespace torch = rushlight;
namespace at = rushlight;
namespace c10 = rushlight;

#ifndef TORCH_CHECK
#define TORCH_CHECK(condition, ...) RL_CHECK(condition, ::rushlight::str(__VA_ARGS__))
#define TORCH_CHECK_VALUE(condition, ...) RL_CHECK_VALUE(condition, ::rushlight::str(__VA_ARGS__))
#define TORCH_CHECK_INDEX(condition, ...) RL_CHECK_INDEX(condition, ::rushlight::str(__VA_ARGS__))
#define TORCH_CHECK_TYPE(condition, ...) RL_CHECK_TYPE(condition, ::rushlight::str(__VA_ARGS__))
#define TORCH_INTERNAL_ASSERT(condition, ...) RL_ASSERT(condition)
#define AT_ASSERT(condition, ...) RL_ASSERT(condition)
#define AT_ERROR(...) RL_FAIL(__VA_ARGS__)
#endif

// AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "name", [&] { ... scalar_t ... });
#ifndef AT_DISPATCH_FLOATING_TYPES
#define RL_DISPATCH(types, dtype, name, ...)                                                  \
  [&] {                                                                                       \
    return ::rushlight::visit_dtype(::rushlight::types{}, dtype, name, [&](auto rl_element) { \
      using scalar_t [[maybe_unused]] = decltype(rl_element);                                 \
      return __VA_ARGS__();                                                                   \
    });                                                                                       \
  }()
#define AT_DISPATCH_FLOATING_TYPES(dtype, name, ...) RL_DISPATCH(dispatch::Floating, dtype, name, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(dtype, name, ...) \
  RL_DISPATCH(FloatTypes, dtype, name, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES(dtype, name, ...) \
  RL_DISPATCH(dispatch::FloatingAndComplex, dtype, name, __VA_ARGS__)
#define AT_DISPATCH_INTEGRAL_TYPES(dtype, name, ...) RL_DISPATCH(dispatch::Integral, dtype, name, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES(dtype, name, ...) RL_DISPATCH(dispatch::All, dtype, name, __VA_ARGS__)
#endif
