// From tensors to what kernels take.
#pragma once
#include <functional>
#include <span>

#include "core/tensor.h"
#include "cuda/piece.h"

namespace rushlight::cuda {

// Calls `run` for each piece of out = f(inputs...), broadcast to out's shape. Inputs of no dimensions that
// lie on the CPU become values.
void for_each_piece(const Tensor& out, std::span<const Tensor* const> inputs,
                    const std::function<void(const Piece&)>& run);

// A parameter of a formula in its compute type T. Integers wrap to `type`, for which T stands where it is
// narrower.
template <class T>
T number_from(const Scalar& s, DType type) {
  if constexpr (std::is_same_v<T, int32_t>) {
    const auto value = s.to<int64_t>();
    switch (type) {
      case DType::UInt8:
        return static_cast<uint8_t>(value);
      case DType::Int8:
        return static_cast<int8_t>(value);
      case DType::Int16:
        return static_cast<int16_t>(value);
      default:
        return static_cast<int32_t>(value);
    }
  } else {
    return s.to<T>();
  }
}

// The tensor may have no more than kMaxRank dimensions.
View view_of(const Tensor& t);

}  // namespace rushlight::cuda
