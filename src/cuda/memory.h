// Elements of any dtype as numbers of a compute type, on the device.
#pragma once
#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

#include <cstring>
#include <type_traits>

#include "core/dtype.h"
#include "cuda/piece.h"

namespace rushlight::cuda {

// The types of what memory holds that are not C++'s own.
#ifdef __CUDACC__
using StoredHalf = __half;
using StoredBFloat16 = __nv_bfloat16;
RL_BOTH inline float widened(StoredHalf value) { return __half2float(value); }
RL_BOTH inline float widened(StoredBFloat16 value) { return __bfloat162float(value); }
RL_BOTH inline void narrow(float value, StoredHalf* out) { *out = __float2half(value); }
RL_BOTH inline void narrow(float value, StoredBFloat16* out) { *out = __float2bfloat16(value); }
#else
using StoredHalf = Half;
using StoredBFloat16 = BFloat16;
inline float widened(StoredHalf value) { return static_cast<float>(value); }
inline float widened(StoredBFloat16 value) { return static_cast<float>(value); }
inline void narrow(float value, StoredHalf* out) { *out = StoredHalf(value); }
inline void narrow(float value, StoredBFloat16* out) { *out = StoredBFloat16(value); }
#endif
template <class T>
constexpr bool is_stored_half = std::is_same_v<T, StoredHalf> || std::is_same_v<T, StoredBFloat16>;

template <class To, class From>
RL_BOTH inline To number(From value) {
  if constexpr (is_stored_half<From>) {
    return number<To>(widened(value));
  } else if constexpr (is_stored_half<To>) {
    To result;
    narrow(static_cast<float>(value), &result);
    return result;
  } else if constexpr (std::is_same_v<To, bool>)
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
RL_BOTH inline void visit_stored(DType dtype, F&& f) {
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
      return f(Tag<StoredHalf>{});
    case DType::BFloat16:
      return f(Tag<StoredBFloat16>{});
    case DType::Float32:
      return f(Tag<float>{});
    case DType::Float64:
      return f(Tag<double>{});
    default:
      return;
  }
}

// What is moved as it is, by its size alone.
struct alignas(16) SixteenBytes {
  uint64_t half[2];
};
template <class F>
void visit_word(size_t size, F&& f) {
  switch (size) {
    case 1:
      return f(Tag<uint8_t>{});
    case 2:
      return f(Tag<uint16_t>{});
    case 4:
      return f(Tag<uint32_t>{});
    case 8:
      return f(Tag<uint64_t>{});
    default:
      return f(Tag<SixteenBytes>{});
  }
}

// element_size for the device, which has none of the host's tables.
RL_BOTH inline int64_t stored_size(DType dtype) {
  int64_t size = 0;
  visit_stored(dtype, [&](auto tag) { size = sizeof(typename decltype(tag)::type); });
  return size;
}

template <class T>
RL_BOTH inline T load(DType dtype, const void* address) {
  T result{};
  visit_stored(dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    result = number<T>(*static_cast<const S*>(address));
  });
  return result;
}
template <class T>
RL_BOTH inline void store(DType dtype, void* address, T value) {
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
  RL_BOTH T operator()(int64_t offset) const { return data ? load<T>(dtype, data + offset) : value; }
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

}  // namespace rushlight::cuda
