// Elements of any dtype as numbers of a compute type, on the device.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <type_traits>

#include "core/dtype.h"
#include "cuda/piece.h"

namespace rushlight::cuda {

// The device's type for what memory holds.
template <class T>
struct StoredAs {
  using type = T;
};
template <>
struct StoredAs<Half> {
  using type = __half;
};
template <>
struct StoredAs<BFloat16> {
  using type = __nv_bfloat16;
};

template <class To, class From>
__device__ inline To number(From value) {
  if constexpr (std::is_same_v<From, __half>)
    return number<To>(__half2float(value));
  else if constexpr (std::is_same_v<From, __nv_bfloat16>)
    return number<To>(__bfloat162float(value));
  else if constexpr (std::is_same_v<To, __half>)
    return __float2half(static_cast<float>(value));
  else if constexpr (std::is_same_v<To, __nv_bfloat16>)
    return __float2bfloat16(static_cast<float>(value));
  else if constexpr (std::is_same_v<To, bool>)
    return value != From(0);
  else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> && sizeof(To) < 8)
    return static_cast<To>(static_cast<int64_t>(value));  // wraps, as on the CPU
  else
    return static_cast<To>(value);
}

// Calls f(Tag<S>{}) for the stored type of a real dtype.
template <class S>
struct Tag {
  using type = S;
};
template <class F>
__host__ __device__ inline void visit_stored(DType dtype, F&& f) {
  switch (dtype) {
    case DType::Bool:
      return f(Tag<bool>{});
    case DType::UInt8:
      return f(Tag<uint8_t>{});
    case DType::Int8:
      return f(Tag<int8_t>{});
    case DType::Int16:
      return f(Tag<int16_t>{});
    case DType::Int32:
      return f(Tag<int32_t>{});
    case DType::Int64:
      return f(Tag<int64_t>{});
    case DType::UInt16:
      return f(Tag<uint16_t>{});
    case DType::UInt32:
      return f(Tag<uint32_t>{});
    case DType::UInt64:
      return f(Tag<uint64_t>{});
    case DType::Float16:
      return f(Tag<__half>{});
    case DType::BFloat16:
      return f(Tag<__nv_bfloat16>{});
    case DType::Float32:
      return f(Tag<float>{});
    case DType::Float64:
      return f(Tag<double>{});
    default:
      return;
  }
}

template <class T>
__device__ inline T load(DType dtype, const void* address) {
  T result{};
  visit_stored(dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    result = number<T>(*static_cast<const S*>(address));
  });
  return result;
}
template <class T>
__device__ inline void store(DType dtype, void* address, T value) {
  visit_stored(dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    *static_cast<S*>(address) = number<S>(value);
  });
}

// An operand as a kernel takes it: a value is already a number of the compute type.
template <class T>
struct Source {
  const char* data;
  DType dtype;
  T value;
  __device__ T operator()(int64_t offset) const { return data ? load<T>(dtype, data + offset) : value; }
};

// The value of an operand that has one, as a number of the compute type; on the host.
template <class T>
Source<T> source_of(const Operand& operand) {
  Source<T> source{operand.data, operand.dtype, T{}};
  if (!operand.is_value) return source;
  if (operand.dtype == DType::Float16)
    source.value = static_cast<T>(static_cast<float>(*reinterpret_cast<const Half*>(operand.value)));
  else if (operand.dtype == DType::BFloat16)
    source.value = static_cast<T>(static_cast<float>(*reinterpret_cast<const BFloat16*>(operand.value)));
  else
    visit_stored(operand.dtype, [&](auto tag) {
      using S = typename decltype(tag)::type;
      if constexpr (std::is_arithmetic_v<S>)
        source.value = static_cast<T>(*reinterpret_cast<const S*>(operand.value));
    });
  return source;
}

constexpr int kThreads = 256;
constexpr int kPerThread = 4;  // elements
inline unsigned blocks_for(uint32_t numel, int per_thread = kPerThread) {
  const uint64_t per_block = uint64_t{kThreads} * static_cast<unsigned>(per_thread);
  return static_cast<unsigned>((numel + per_block - 1) / per_block);
}

}  // namespace rushlight::cuda
