// Distances between rows, and their gradients: the loops over coordinates.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "cpu/linalg_distance.h"

// Vectors passed between functions of this file alone.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace rushlight::cpu::RL_ISA {
namespace {

// Sums that run side by side.
template <class T>
struct Lanes {
  static constexpr int kCount = 64 / sizeof(T);
  typedef T type __attribute__((vector_size(64)));
  typedef T half __attribute__((vector_size(32)));
  typedef T quarter __attribute__((vector_size(16)));

  static type load(const T* x) {
    type v;
    std::memcpy(&v, x, sizeof v);
    return v;
  }
  // All lanes combined, in halves.
  template <class Combine>
  static T total(const type& v, Combine combine) {
    half h[2];
    quarter q[2];
    T rest[16 / sizeof(T)];
    std::memcpy(h, &v, sizeof v);
    const half both = combine(h[0], h[1]);
    std::memcpy(q, &both, sizeof both);
    const quarter last = combine(q[0], q[1]);
    std::memcpy(rest, &last, sizeof last);
    T result = rest[0];
    for (size_t k = 1; k < std::size(rest); ++k) result = combine(result, rest[k]);
    return result;
  }
};

// Combines term(|x[k] - y[k]|) over k; both are written for numbers and for vectors of them.
template <class T, class Term, class Combine>
T fold(int64_t n, const T* x, const T* y, Term term, Combine combine) {
  using Lane = Lanes<T>;
  typename Lane::type lanes = {};
  T rest = 0;
  int64_t k = 0;
  for (; k + Lane::kCount <= n; k += Lane::kCount) {
    const auto d = Lane::load(x + k) - Lane::load(y + k);
    lanes = combine(lanes, term(d < 0 ? -d : d));
  }
  for (; k < n; ++k) rest = combine(rest, term(std::abs(x[k] - y[k])));
  return combine(rest, Lane::total(lanes, combine));
}

// The same for terms of single numbers.
template <class T, class Term>
T sum_of(int64_t n, const T* x, const T* y, Term term) {
  T sum = 0;
  for (int64_t k = 0; k < n; ++k) sum += term(std::abs(x[k] - y[k]));
  return sum;
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
  else if (std::isinf(p))  // a NaN, which the maximum passes over, stays in the sum
    run([=](const T* x, const T* y) {
      const T all = fold(columns, x, y, size, sum);
      return all != all ? all : fold(columns, x, y, size, largest);
    });
  else
    run([=, order = static_cast<T>(p)](const T* x, const T* y) {
      return std::pow(sum_of(columns, x, y, [order](T d) { return std::pow(d, order); }), 1 / order);
    });
}

// Calls run(slope): what a coordinate's difference d, the distance y and its gradient g give.
template <class T, class Run>
void with_slope(double p, Run run) {
  auto sign = [](T d) { return T((d > 0) - (d < 0)); };
  if (p == 1)
    run([=](T d, T, T g) { return sign(d) * g; });
  else if (p == 2)
    run([](T d, T y, T g) { return y == 0 ? T(0) : d * g / y; });
  else if (std::isinf(p))
    run([=](T d, T y, T g) { return std::abs(d) == y ? sign(d) * g : T(0); });
  else
    run([=, power = static_cast<T>(p - 1)](T d, T y, T g) {
      return y == 0 || d == 0 ? T(0) : sign(d) * g * std::pow(std::abs(d) / y, power);
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
      const T y = static_cast<const T*>(a.distances)[pair], g = static_cast<const T*>(a.grads)[pair];
      for (int64_t k = 0; k < a.columns; ++k) result[k] += slope(from[k] - to[k], y, g);
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
