// What reductions, positions of extremes and running sums share.
#pragma once
#include <cmath>
#include <limits>

#include "cuda/kernels.h"
#include "cuda/launch.h"
#include "cuda/memory.h"

namespace rushlight::cuda {

template <class A>
RL_BOTH inline bool is_nan(A x) {
  return x != x;
}
template <class A>
RL_BOTH inline A lowest() {
  if constexpr (std::is_integral_v<A>)
    return INT64_MIN;
  else
    return -static_cast<A>(INFINITY);
}
template <class A>
RL_BOTH inline A highest() {
  if constexpr (std::is_integral_v<A>)
    return INT64_MAX;
  else
    return static_cast<A>(INFINITY);
}
template <class A>
RL_BOTH inline A magnitude(A x) {
  return x < A(0) ? -x : x;
}

struct Complex {
  double real, imaginary;
  Complex() = default;
  RL_BOTH explicit Complex(double r, double i = 0) : real(r), imaginary(i) {}
};
RL_BOTH inline Complex operator*(Complex a, Complex b) {
  return Complex(a.real * b.real - a.imaginary * b.imaginary, a.real * b.imaginary + a.imaginary * b.real);
}

template <class A>
RL_BOTH inline A read(DType dtype, const void* address) {
  if constexpr (std::is_same_v<A, Complex>) {
    const auto* single = static_cast<const float*>(address);
    const auto* wide = static_cast<const double*>(address);
    return dtype == DType::Complex64 ? Complex(single[0], single[1]) : Complex(wide[0], wide[1]);
  } else {
    return load<A>(dtype, address);
  }
}
template <class A>
RL_BOTH inline void write(DType dtype, void* address, A value) {
  if constexpr (!std::is_same_v<A, Complex>) {
    store(dtype, address, value);
  } else if (dtype == DType::Complex64) {
    auto* to = static_cast<float*>(address);
    to[0] = static_cast<float>(value.real), to[1] = static_cast<float>(value.imaginary);
  } else {
    auto* to = static_cast<double*>(address);
    to[0] = value.real, to[1] = value.imaginary;
  }
}
// That of what parts of a reduction are kept in.
template <class A>
constexpr DType kept_in() {
  if constexpr (std::is_same_v<A, Complex>)
    return DType::Complex128;
  else
    return dtype_of<A>;
}

struct Added {
  template <class A>
  RL_BOTH A operator()(A a, A b) const {
    return a + b;
  }
};
struct Multiplied {
  template <class A>
  RL_BOTH A operator()(A a, A b) const {
    return a * b;
  }
};

// The lines of `in` along `dim`, innermost dimension first.
inline LongGeometry<1> lines_of(const View& in, int64_t dim) {
  LongGeometry<1> g;
  for (int d = in.rank - 1; d >= 0; --d) {
    if (d == dim) continue;
    g.sizes[g.rank] = in.sizes[d];
    g.strides[g.rank++][0] = in.strides[d];
  }
  return g;
}

// Calls f(Tag<S>{}) for the stored types that reductions in A have quick loops for.
template <class A>
inline bool has_loops(DType dtype) {
  if constexpr (std::is_same_v<A, float>)
    return dtype == DType::Float32 || dtype == DType::Float16 || dtype == DType::BFloat16;
  else if constexpr (std::is_same_v<A, double>)
    return dtype == DType::Float64;
  else
    return dtype == DType::Bool || dtype == DType::UInt8 || dtype == DType::Int32 || dtype == DType::Int64;
}
template <class A, class F>
RL_BOTH inline void visit_loops(DType dtype, F&& f) {
  if constexpr (std::is_same_v<A, float>) {
    if (dtype == DType::Float32) return f(Tag<float>{});
    if (dtype == DType::Float16) return f(Tag<StoredHalf>{});
    return f(Tag<StoredBFloat16>{});
  } else if constexpr (std::is_same_v<A, double>) {
    return f(Tag<double>{});
  } else {
    if (dtype == DType::Int64) return f(Tag<int64_t>{});
    if (dtype == DType::Int32) return f(Tag<int32_t>{});
    return f(Tag<uint8_t>{});  // of bool too
  }
}

}  // namespace rushlight::cuda
