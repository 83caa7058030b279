// torch::, at:: and c10::, and the macros that programs for PyTorch use.
#pragma once
#include <ranges>
#include <sstream>

#include "rushlight/rushlight.h"

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

#include "torch/macros.h"
