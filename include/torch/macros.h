// The macros that programs for PyTorch use: checks, dispatch by the type of elements, attributes, versions.
#pragma once
#include "rushlight/rushlight.h"

#define TORCH_VERSION_MAJOR 2
#define TORCH_VERSION_MINOR 13
#define TORCH_VERSION_PATCH 0
#define TORCH_VERSION "2.13.0"

#define C10_ALWAYS_INLINE inline __attribute__((always_inline))
#define C10_NOINLINE __attribute__((noinline))
#define C10_LIKELY(condition) (__builtin_expect(static_cast<bool>(condition), 1))
#define C10_UNLIKELY(condition) (__builtin_expect(static_cast<bool>(condition), 0))
#define C10_UNUSED [[maybe_unused]]
#define C10_NODISCARD [[nodiscard]]
#define C10_RESTRICT __restrict
#define C10_HOST
#define C10_DEVICE
#define C10_HOST_DEVICE
#define C10_EXPORT __attribute__((visibility("default")))
#define C10_IMPORT C10_EXPORT
#define C10_API C10_EXPORT
#define TORCH_API C10_EXPORT

// --- checks

#ifndef TORCH_CHECK
#define TORCH_CHECK(condition, ...) RL_CHECK(condition, ::c10::str(__VA_ARGS__))
#define TORCH_CHECK_VALUE(condition, ...) RL_CHECK_VALUE(condition, ::c10::str(__VA_ARGS__))
#define TORCH_CHECK_INDEX(condition, ...) RL_CHECK_INDEX(condition, ::c10::str(__VA_ARGS__))
#define TORCH_CHECK_TYPE(condition, ...) RL_CHECK_TYPE(condition, ::c10::str(__VA_ARGS__))
#define TORCH_CHECK_NOT_IMPLEMENTED(condition, ...) \
  RL_CHECK_AS(NotImplemented, condition, ::c10::str(__VA_ARGS__))
#define TORCH_CHECK_LINALG(condition, ...) RL_CHECK_AS(Linalg, condition, ::c10::str(__VA_ARGS__))
#define TORCH_CHECK_ARG(condition, number, ...) \
  TORCH_CHECK(condition, "invalid argument ", number, ": ", ::c10::str(__VA_ARGS__))
#define RL_CHECK_PAIR(a, b, by) \
  TORCH_CHECK((a)by(b), "Check failed: " #a " " #by " " #b " (", (a), " vs. ", (b), "). ")
#define TORCH_CHECK_EQ(a, b) RL_CHECK_PAIR(a, b, ==)
#define TORCH_CHECK_NE(a, b) RL_CHECK_PAIR(a, b, !=)
#define TORCH_CHECK_LE(a, b) RL_CHECK_PAIR(a, b, <=)
#define TORCH_CHECK_LT(a, b) RL_CHECK_PAIR(a, b, <)
#define TORCH_CHECK_GE(a, b) RL_CHECK_PAIR(a, b, >=)
#define TORCH_CHECK_GT(a, b) RL_CHECK_PAIR(a, b, >)
#define TORCH_INTERNAL_ASSERT(condition, ...) RL_ASSERT(condition __VA_OPT__(, ::c10::str(__VA_ARGS__)))
#ifdef NDEBUG
#define TORCH_INTERNAL_ASSERT_DEBUG_ONLY(condition, ...) static_cast<void>(sizeof(bool(condition)))
#else
#define TORCH_INTERNAL_ASSERT_DEBUG_ONLY TORCH_INTERNAL_ASSERT
#endif
#define AT_ASSERT TORCH_INTERNAL_ASSERT
#define AT_ASSERTM TORCH_CHECK
#define AT_ERROR(...) RL_FAIL(::c10::str(__VA_ARGS__))
#define TORCH_WARN(...) ::rushlight::warn(::c10::str(__VA_ARGS__))
#define TORCH_WARN_ONCE(...)                                       \
  do {                                                             \
    static const bool rl_warned = (TORCH_WARN(__VA_ARGS__), true); \
    static_cast<void>(rl_warned);                                  \
  } while (false)
#endif

// --- AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "name", [&] { ... scalar_t ... });

namespace rushlight::dispatch {
using Floating = TypeList<float, double>;
using Integral = TypeList<uint8_t, int8_t, int16_t, int32_t, int64_t>;
using All = Concat<Integral, Floating>;
using FloatingAndComplex = Concat<Floating, ComplexTypes>;
using AllAndComplex = Concat<All, ComplexTypes>;

// The C++ type of the elements of a dtype that is a constant.
template <DType dtype, class... Ts>
auto element_among(TypeList<Ts...>) {
  return Concat<TypeList<>, std::conditional_t<dtype_of<Ts> == dtype, TypeList<Ts>, TypeList<>>...>{};
}
template <DType... dtypes>
using Elements = Concat<TypeList<>, decltype(element_among<dtypes>(StorageTypes{}))...>;
template <class T>
T only(TypeList<T>);
template <DType dtype>
using Element = decltype(only(Elements<dtype>{}));
}  // namespace rushlight::dispatch

#ifndef AT_DISPATCH_FLOATING_TYPES
#define RL_DISPATCH_AS(element, types, dtype, name, ...)                                                  \
  [&] {                                                                                                   \
    return ::rushlight::visit_dtype(types{}, ::rushlight::ScalarType(dtype), name, [&](auto rl_element) { \
      using element [[maybe_unused]] = decltype(rl_element);                                              \
      return __VA_ARGS__();                                                                               \
    });                                                                                                   \
  }()
#define RL_DISPATCH(types, dtype, name, ...) \
  RL_DISPATCH_AS(scalar_t, ::rushlight::dispatch::types, dtype, name, __VA_ARGS__)
#define RL_ELEMENTS(...) ::rushlight::dispatch::Elements<__VA_ARGS__>
#define RL_MORE(types, ...) ::rushlight::Concat<::rushlight::dispatch::types, RL_ELEMENTS(__VA_ARGS__)>
#define RL_DISPATCH_1(types, A, dtype, name, ...) \
  RL_DISPATCH_AS(scalar_t, RL_MORE(types, A), dtype, name, __VA_ARGS__)
#define RL_DISPATCH_2(types, A, B, dtype, name, ...) \
  RL_DISPATCH_AS(scalar_t, RL_MORE(types, A, B), dtype, name, __VA_ARGS__)
#define RL_DISPATCH_3(types, A, B, C, dtype, name, ...) \
  RL_DISPATCH_AS(scalar_t, RL_MORE(types, A, B, C), dtype, name, __VA_ARGS__)
#define RL_DISPATCH_4(types, A, B, C, D, dtype, name, ...) \
  RL_DISPATCH_AS(scalar_t, RL_MORE(types, A, B, C, D), dtype, name, __VA_ARGS__)

#define AT_DISPATCH_FLOATING_TYPES(...) RL_DISPATCH(Floating, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND(...) RL_DISPATCH_1(Floating, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND2(...) RL_DISPATCH_2(Floating, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND3(...) RL_DISPATCH_3(Floating, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND4(...) RL_DISPATCH_4(Floating, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(...) RL_DISPATCH_1(Floating, ::rushlight::kHalf, __VA_ARGS__)
#define AT_DISPATCH_REDUCED_FLOATING_TYPES(...) \
  RL_DISPATCH_AS(scalar_t, RL_ELEMENTS(::rushlight::kHalf, ::rushlight::kBFloat16), __VA_ARGS__)
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES(...) RL_DISPATCH(FloatingAndComplex, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND(...) RL_DISPATCH_1(FloatingAndComplex, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND1(...) RL_DISPATCH_1(FloatingAndComplex, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND2(...) RL_DISPATCH_2(FloatingAndComplex, __VA_ARGS__)
#define AT_DISPATCH_COMPLEX_TYPES(...) RL_DISPATCH_AS(scalar_t, ::rushlight::ComplexTypes, __VA_ARGS__)
#define AT_DISPATCH_INTEGRAL_TYPES(...) RL_DISPATCH(Integral, __VA_ARGS__)
#define AT_DISPATCH_INTEGRAL_TYPES_AND(...) RL_DISPATCH_1(Integral, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES(...) RL_DISPATCH(All, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND(...) RL_DISPATCH_1(All, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND2(...) RL_DISPATCH_2(All, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND3(...) RL_DISPATCH_3(All, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND4(...) RL_DISPATCH_4(All, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX(...) RL_DISPATCH(AllAndComplex, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND(...) RL_DISPATCH_1(AllAndComplex, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND2(...) RL_DISPATCH_2(AllAndComplex, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND3(...) RL_DISPATCH_3(AllAndComplex, __VA_ARGS__)
#define AT_DISPATCH_INDEX_TYPES(...) \
  RL_DISPATCH_AS(index_t, RL_ELEMENTS(::rushlight::kInt, ::rushlight::kLong), __VA_ARGS__)

// AT_DISPATCH_SWITCH(x.scalar_type(), "name", AT_DISPATCH_CASE(at::kFloat, [&] { ... }) ...);
#define AT_DISPATCH_CASE(dtype, ...)                                         \
  case dtype: {                                                              \
    using scalar_t [[maybe_unused]] = ::rushlight::dispatch::Element<dtype>; \
    return __VA_ARGS__();                                                    \
  }
#define AT_DISPATCH_CASE_FLOATING_TYPES(...)          \
  AT_DISPATCH_CASE(::rushlight::kDouble, __VA_ARGS__) \
  AT_DISPATCH_CASE(::rushlight::kFloat, __VA_ARGS__)
#define AT_DISPATCH_CASE_INTEGRAL_TYPES(...)        \
  AT_DISPATCH_CASE(::rushlight::kByte, __VA_ARGS__) \
  AT_DISPATCH_CASE(::rushlight::kChar, __VA_ARGS__) \
  AT_DISPATCH_CASE(::rushlight::kInt, __VA_ARGS__)  \
  AT_DISPATCH_CASE(::rushlight::kLong, __VA_ARGS__) \
  AT_DISPATCH_CASE(::rushlight::kShort, __VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES(...)        \
  AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__) \
  AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)
#define AT_DISPATCH_SWITCH(dtype, name, ...)                                                                 \
  [&] {                                                                                                      \
    const ::rushlight::ScalarType rl_dtype = dtype;                                                          \
    switch (rl_dtype) {                                                                                      \
      __VA_ARGS__                                                                                            \
      default:                                                                                               \
        TORCH_CHECK_NOT_IMPLEMENTED(false, '"', name, "\" not implemented for '", ::c10::toString(rl_dtype), \
                                    "'");                                                                    \
    }                                                                                                        \
  }()

// AT_DISPATCH_V2(x.scalar_type(), "name", AT_WRAP([&] { ... }), AT_EXPAND(AT_FLOATING_TYPES), at::kHalf);
#define AT_EXPAND(...) __VA_ARGS__
#define AT_WRAP(...) __VA_ARGS__
#define AT_FLOATING_TYPES ::rushlight::kDouble, ::rushlight::kFloat
#define AT_INTEGRAL_TYPES \
  ::rushlight::kByte, ::rushlight::kChar, ::rushlight::kInt, ::rushlight::kLong, ::rushlight::kShort
#define AT_ALL_TYPES AT_INTEGRAL_TYPES, AT_FLOATING_TYPES
#define AT_COMPLEX_TYPES ::rushlight::kComplexDouble, ::rushlight::kComplexFloat
#define AT_ALL_TYPES_AND_COMPLEX AT_ALL_TYPES, AT_COMPLEX_TYPES
#define AT_DISPATCH_V2(dtype, name, body, ...) \
  RL_DISPATCH_AS(scalar_t, RL_ELEMENTS(__VA_ARGS__), dtype, name, body)
#endif
