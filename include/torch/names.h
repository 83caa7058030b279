// torch::, at:: and c10::, and the macros that programs for PyTorch use.
#pragma once
#include <ranges>
#include <sstream>

#include "rushlight/rushlight.h"

namespace rushlight::dispatch {
using Floating = TypeList<float, double>;
using Integral = TypeList<uint8_t, int8_t, int16_t, int32_t, int64_t>;
using All = Concat<Integral, Floating>;
using FloatingAndComplex = Concat<Floating, ComplexTypes>;
}  // namespace rushlight::dispatch

namespace rushlight {
// Elements' types have one form here, where PyTorch's library has two.
inline ScalarType typeMetaToScalarType(ScalarType t) { return t; }
inline ScalarType scalarTypeToTypeMeta(ScalarType t) { return t; }
}  // namespace rushlight

namespace rushlight::autograd {
using tensor_list = variable_list;
}  // namespace rushlight::autograd

// Name spaces of their own rather than aliases, so that programs may add to them.
namespace torch {
using namespace rushlight;
}
namespace at {
using namespace rushlight;

// As torch::tensor, but in the type of the C++ elements: at::tensor({1, 2}) is int32.
template <detail::Number T>
Tensor tensor(ArrayRef<T> values, const TensorOptions& options = detail::dtype_of_number<T>()) {
  return detail::TensorData(values).make(options.dtype(options.dtype()));
}
template <detail::Number T>
Tensor tensor(std::initializer_list<T> values, const TensorOptions& options = detail::dtype_of_number<T>()) {
  return at::tensor(ArrayRef<T>(values.begin(), values.size()), options);
}
template <detail::Number T>
Tensor tensor(const std::vector<T>& values, const TensorOptions& options = detail::dtype_of_number<T>()) {
  return detail::TensorData(values).make(options.dtype(options.dtype()));
}
template <detail::Number T>
Tensor tensor(T value, const TensorOptions& options = detail::dtype_of_number<T>()) {
  return at::tensor(ArrayRef<T>(value), options);  // of one dimension, unlike torch::tensor(value)
}
inline Tensor tensor(IntArrayRef values, const TensorOptions& options = kLong) {
  return detail::TensorData(values).make(options.dtype(options.dtype()));
}
}  // namespace at
namespace c10 {
using namespace rushlight;
template <class T>
using complex = std::complex<T>;

// Joins what can be written to a stream.
template <class... Parts>
std::string str(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

// Joins the parts of a list.
template <class Container>
std::string Join(const std::string& delimiter, const Container& parts) {
  std::ostringstream out;
  const char* between = "";
  for (const auto& part : parts) out << std::exchange(between, delimiter.c_str()) << part;
  return out.str();
}

// The integers from begin (or 0) up to end.
template <std::integral T>
auto irange(T end) {
  return std::views::iota(T(0), std::max(T(0), end));
}
template <std::integral A, std::integral B>
auto irange(A begin, B end) {
  return std::views::iota(static_cast<B>(begin), std::max(static_cast<B>(begin), end));
}
}  // namespace c10

#ifndef TORCH_CHECK
#define TORCH_CHECK(condition, ...) RL_CHECK(condition, ::c10::str(__VA_ARGS__))
#define TORCH_CHECK_VALUE(condition, ...) RL_CHECK_VALUE(condition, ::c10::str(__VA_ARGS__))
#define TORCH_CHECK_INDEX(condition, ...) RL_CHECK_INDEX(condition, ::c10::str(__VA_ARGS__))
#define TORCH_CHECK_TYPE(condition, ...) RL_CHECK_TYPE(condition, ::c10::str(__VA_ARGS__))
#define TORCH_INTERNAL_ASSERT(condition, ...) RL_ASSERT(condition)
#define AT_ASSERT(condition, ...) RL_ASSERT(condition)
#define AT_ERROR(...) RL_FAIL(::c10::str(__VA_ARGS__))
#define TORCH_WARN(...) ::rushlight::warn(::c10::str(__VA_ARGS__))
#define TORCH_WARN_ONCE(...)                                       \
  do {                                                             \
    static const bool rl_warned = (TORCH_WARN(__VA_ARGS__), true); \
    static_cast<void>(rl_warned);                                  \
  } while (false)
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
