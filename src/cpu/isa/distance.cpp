// Distances between rows, and their gradients: the loops over coordinates.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cpu/isa/register_inl.h"
#include "cpu/linalg_distance.h"
#include "formulas/math.h"

// Vectors passed between functions of this file alone.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace rushlight::cpu::RL_ISA {
namespace {

// Sums that run side by side: 64 bytes, in as many registers as that takes.
template <class T>
struct Lanes {
  static constexpr int kCount = 64 / sizeof(T), kParts = 64 / kRegisterBytes;
  typedef T part __attribute__((vector_size(kRegisterBytes)));
  part parts[kParts];

  static part load(const T* x) {
    part v;
    std::memcpy(&v, x, sizeof v);
    return v;
  }
  // All lanes combined, in halves.
  template <class Combine>
  T total(Combine combine) const {
    part sums[kParts];
    std::copy_n(parts, kParts, sums);
    for (int half = kParts / 2; half; half /= 2)
      for (int k = 0; k < half; ++k) sums[k] = combine(sums[k], sums[k + half]);
    return of_vector(sums[0], combine);
  }
  template <class V, class Combine>
  static T of_vector(V v, Combine combine) {
    if constexpr (sizeof(V) == 2 * sizeof(T)) {
      return combine(v[0], v[1]);
    } else {
      typedef T half_part __attribute__((vector_size(sizeof(V) / 2)));
      half_part halves[2];
      std::memcpy(halves, &v, sizeof v);
      return of_vector(combine(halves[0], halves[1]), combine);
    }
  }
};

// The sign is a bit.
template <class V>
[[gnu::always_inline]] inline V magnitude(V d) {
  using Bits = decltype(d < 0);
  using T = std::remove_reference_t<decltype(d[0])>;
  constexpr auto kRest = std::bit_cast<std::conditional_t<sizeof(T) == 4, int32_t, int64_t>>(T(-0.0));
  return V(Bits(d) & ~kRest);
}

// Combines term(|x[k] - y[k]|) over k; both are written for numbers and for vectors of them.
template <class T, class Term, class Combine>
T fold(int64_t n, const T* x, const T* y, Term term, Combine combine) {
  using Lane = Lanes<T>;
  constexpr int kStep = Lane::kCount / Lane::kParts;
  Lane lanes = {};
  T rest = 0;
  int64_t k = 0;
  for (; k + Lane::kCount <= n; k += Lane::kCount)
    for (int i = 0; i < Lane::kParts; ++i) {
      const auto d = Lane::load(x + k + i * kStep) - Lane::load(y + k + i * kStep);
      lanes.parts[i] = combine(lanes.parts[i], term(magnitude(d)));
    }
  for (; k < n; ++k) rest = combine(rest, term(std::abs(x[k] - y[k])));
  return combine(rest, lanes.total(combine));
}

// The sum of terms that are 0 where nothing differs: by blocks, in which functions have vector versions, but
// for a few coordinates.
template <class T, class Term>
T sum_of(int64_t n, const T* x, const T* y, Term term) {
  constexpr int kCount = Lanes<T>::kCount, kFew = 3;
  T sum = 0;
  if (n <= kFew) {
    for (int64_t k = 0; k < n; ++k) sum += term(std::abs(x[k] - y[k]));
    return sum;
  }
  T sums[kCount] = {}, sizes[kCount];
  for (int64_t first = 0; first < n; first += kCount) {
    const int64_t count = std::min<int64_t>(kCount, n - first);
    for (int64_t i = 0; i < count; ++i) sizes[i] = std::abs(x[first + i] - y[first + i]);
    for (int64_t i = count; i < kCount; ++i) sizes[i] = 0;
    for (int i = 0; i < kCount; ++i) sums[i] += term(sizes[i]);
  }
  for (int half = kCount / 2; half; half /= 2)
    for (int k = 0; k < half; ++k) sums[k] += sums[k + half];
  return sums[0];
}

// Calls run(norm), a function of two rows, for the norm of order p.
template <class T, class Run>
void with_norm(double p, int64_t columns, Run run) {
  auto sum = [](const auto& s, const auto& t) { return s + t; };
  auto largest = [](const auto& s, const auto& t) { return t > s ? t : s; };
  auto size = [](const auto& d) { return d; };
  auto square = [](const auto& d) { return d * d; };
  if (p == 0)
    run([=](const T* x, const T* y) {
      return sum_of(columns, x, y, [](T d) { return d != d ? d : T(d != 0); });
    });
  else if (p == 1)
    run([=](const T* x, const T* y) { return fold(columns, x, y, size, sum); });
  else if (p == 2)
    run([=](const T* x, const T* y) { return std::sqrt(fold(columns, x, y, square, sum)); });
  else if (p == 0.5)
    run([=](const T* x, const T* y) {
      const T roots = sum_of(columns, x, y, [](T d) { return std::sqrt(d); });
      return roots * roots;
    });
  else if (p == 3)
    run([=](const T* x, const T* y) {
      return std::cbrt(sum_of(columns, x, y, [](T d) { return d * d * d; }));
    });
  else if (std::isinf(p))  // a NaN, which the maximum passes over, stays in the sum
    run([=](const T* x, const T* y) {
      const T all = fold(columns, x, y, size, sum);
      return all != all ? all : fold(columns, x, y, size, largest);
    });
  else
    run([=, order = static_cast<T>(p)](const T* x, const T* y) {
      return std::pow(sum_of(columns, x, y, [order](T d) { return formulas::pow(d, order); }), 1 / order);
    });
}

// Calls run(slope): slope(y, g) of the distance y and its gradient g gives what a coordinate's difference
// gives.
template <class T, class Run>
void with_slope(double p, Run run) {
  auto sign = [](T d) { return T(d > 0) - T(d < 0); };
  if (p == 1)
    run([=](T, T g) { return [=](T d) { return sign(d) * g; }; });
  else if (p == 2)
    run([](T y, T g) { return [share = y == 0 ? T(0) : g / y](T d) { return d * share; }; });
  else if (std::isinf(p))
    run([=](T y, T g) { return [=](T d) { return std::abs(d) == y ? sign(d) * g : T(0); }; });
  else
    run([=, power = static_cast<T>(p - 1)](T y, T g) {
      return [=, under = y == 0 ? T(1) : y](T d) {  // no call may depend on a condition
        const bool none = (y == 0) | (d == 0);
        const T value = sign(d) * g * formulas::pow(none ? T(1) : std::abs(d) / under, power);
        return none ? T(0) : value;
      };
    });
}

template <class T>
void distances(const void* from, const void* to, int64_t count, int64_t columns, double p, void* out) {
  with_norm<T>(p, columns, [&](auto norm) {
    for (int64_t j = 0; j < count; ++j)
      static_cast<T*>(out)[j] = norm(static_cast<const T*>(from), static_cast<const T*>(to) + j * columns);
  });
}

template <class T>
void gradient(const PairGradients& a, int64_t row) {
  const T *x = static_cast<const T*>(a.points), *from = x + row * a.columns;
  T* __restrict result = static_cast<T*>(a.out) + row * a.columns;
  with_slope<T>(a.p, [&](auto slope) {
    for (int64_t j = 0; j < a.rows; ++j) {
      if (j == row) continue;
      const int64_t pair = a.pair(j, row);
      const T* to = x + j * a.columns;
      const auto share =
          slope(static_cast<const T*>(a.distances)[pair], static_cast<const T*>(a.grads)[pair]);
      for (int64_t k = 0; k < a.columns; ++k) result[k] += share(from[k] - to[k]);
    }
  });
}

}  // namespace

const DistanceLoops& distance_loops(bool double_precision) {
  static constexpr DistanceLoops single{distances<float>, gradient<float>};
  static constexpr DistanceLoops twice{distances<double>, gradient<double>};
  return double_precision ? twice : single;
}

}  // namespace rushlight::cpu::RL_ISA
