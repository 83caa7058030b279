#include "distributed/gloo/reduce.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "core/half.h"

namespace rushlight::distributed {

namespace {

template <class T>
constexpr bool is_half = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
template <class T>
using Computed = std::conditional_t<is_half<T>, float, T>;

struct Sum {
  template <class T>
  T operator()(T a, T b) const {
    return a + b;
  }
  bool operator()(bool a, bool b) const { return a || b; }
};
struct Product {
  template <class T>
  T operator()(T a, T b) const {
    return a * b;
  }
  bool operator()(bool a, bool b) const { return a && b; }
};
// NaN wins, wherever it stands.
struct Min {
  template <class T>
  T operator()(T a, T b) const {
    return a != a || a < b ? a : b;
  }
};
struct Max {
  template <class T>
  T operator()(T a, T b) const {
    return a != a || a > b ? a : b;
  }
};
struct And {
  template <class T>
  T operator()(T a, T b) const {
    return a & b;
  }
};
struct Or {
  template <class T>
  T operator()(T a, T b) const {
    return a | b;
  }
};
struct Xor {
  template <class T>
  T operator()(T a, T b) const {
    return a ^ b;
  }
};

template <class T, class Operation>
void loop(void* out, const void* a, const void* b, size_t count) {
  auto* o = static_cast<T*>(out);
  auto *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
  for (size_t i = 0; i < count; ++i)
    o[i] = static_cast<T>(Operation{}(static_cast<Computed<T>>(x[i]), static_cast<Computed<T>>(y[i])));
}

template <class T>
Reduction reduction_of(std::string_view operation) {
  auto with = [](auto f) { return Reduction{&loop<T, decltype(f)>, sizeof(T)}; };
  if (operation == "SUM") return with(Sum{});
  if (operation == "PRODUCT") return with(Product{});
  if (operation == "MIN") return with(Min{});
  if (operation == "MAX") return with(Max{});
  if constexpr (std::is_integral_v<T>) {
    if (operation == "BAND") return with(And{});
    if (operation == "BOR") return with(Or{});
    if (operation == "BXOR") return with(Xor{});
  }
  return {nullptr, sizeof(T)};
}

}  // namespace

Reduction find_reduction(std::string_view dtype, std::string_view operation) {
  if (dtype == "float32") return reduction_of<float>(operation);
  if (dtype == "float64") return reduction_of<double>(operation);
  if (dtype == "float16") return reduction_of<Half>(operation);
  if (dtype == "bfloat16") return reduction_of<BFloat16>(operation);
  if (dtype == "int8") return reduction_of<int8_t>(operation);
  if (dtype == "int16") return reduction_of<int16_t>(operation);
  if (dtype == "int32") return reduction_of<int32_t>(operation);
  if (dtype == "int64") return reduction_of<int64_t>(operation);
  if (dtype == "uint8") return reduction_of<uint8_t>(operation);
  if (dtype == "uint16") return reduction_of<uint16_t>(operation);
  if (dtype == "uint32") return reduction_of<uint32_t>(operation);
  if (dtype == "uint64") return reduction_of<uint64_t>(operation);
  if (dtype == "bool") return reduction_of<bool>(operation);
  return {nullptr, 0};
}

}  // namespace rushlight::distributed
