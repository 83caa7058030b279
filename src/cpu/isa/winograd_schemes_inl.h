// The transforms of Winograd's F(2, 3) and F(4, 3) along one axis; included by winograd.cpp.
#pragma once
#include <cstdint>

namespace rushlight::cpu::RL_ISA {
namespace {

// A tile has kPoints = kResults + 2 points along an axis. All functions read elements `from_step` apart and
// write them `to_step` apart. With g a filter, d an image and m the product of both transformed,
//   image:   B' d           points of an image from its pixels
//   filter:  G g            points of a filter from its taps
//   results: A' m           results from points
//   spread:  A y            the adjoint of `results`: points from gradients of results
//   collect: G' m           the adjoint of `filter`: gradients of taps from points
template <int Results>
struct Scheme;

// Polynomials are evaluated at 0, 1, -1 and infinity.
template <>
struct Scheme<2> {
  static constexpr int kResults = 2, kPoints = 4;

  template <class V>
  [[gnu::always_inline]] static void image(const V* d, int64_t from_step, V* to, int64_t to_step) {
    const V a = d[0], b = d[from_step], c = d[2 * from_step], e = d[3 * from_step];
    to[0] = a - c;
    to[to_step] = b + c;
    to[2 * to_step] = c - b;
    to[3 * to_step] = b - e;
  }
  template <class V>
  [[gnu::always_inline]] static void filter(const V& a, const V& b, const V& c, V* to, int64_t to_step) {
    const V ends = (a + c) * 0.5f, middle = b * 0.5f;
    to[0] = a;
    to[to_step] = ends + middle;
    to[2 * to_step] = ends - middle;
    to[3 * to_step] = c;
  }
  template <class V>
  [[gnu::always_inline]] static void results(const V* m, int64_t from_step, V* to, int64_t to_step) {
    const V b = m[from_step], c = m[2 * from_step];
    to[0] = m[0] + b + c;
    to[to_step] = b - c - m[3 * from_step];
  }
  template <class V>
  [[gnu::always_inline]] static void spread(const V* y, int64_t from_step, V* to, int64_t to_step) {
    const V a = y[0], b = y[from_step];
    to[0] = a;
    to[to_step] = a + b;
    to[2 * to_step] = a - b;
    to[3 * to_step] = -b;
  }
  template <class V>
  [[gnu::always_inline]] static void collect(const V* m, int64_t from_step, V* to, int64_t to_step) {
    const V sum = (m[from_step] + m[2 * from_step]) * 0.5f;
    to[0] = m[0] + sum;
    to[to_step] = (m[from_step] - m[2 * from_step]) * 0.5f;
    to[2 * to_step] = sum + m[3 * from_step];
  }
};

// At 0, 3/4, -3/4, 3/2, -3/2 and infinity, which loses a fifth as much as the usual 0, 1, -1, 2, -2. Pairs of
// opposite points share their even and odd parts.
template <>
struct Scheme<4> {
  static constexpr int kResults = 4, kPoints = 6;
  static constexpr float kP = 0.75f, kQ = 1.5f, kP2 = kP * kP, kQ2 = kQ * kQ, kP3 = kP2 * kP, kQ3 = kQ2 * kQ;
  // What the filter is divided by at each point.
  static constexpr float kAtZero = 1 / (kP2 * kQ2), kAtP = 1 / (2 * kP2 * (kP2 - kQ2)),
                         kAtQ = 1 / (2 * kQ2 * (kQ2 - kP2));

  template <class V>
  [[gnu::always_inline]] static void image(const V* d, int64_t from_step, V* to, int64_t to_step) {
    const V d0 = d[0], d1 = d[from_step], d2 = d[2 * from_step], d3 = d[3 * from_step], d4 = d[4 * from_step],
            d5 = d[5 * from_step];
    const V even_p = d4 - d2 * kQ2, odd_p = (d3 - d1 * kQ2) * kP, even_q = d4 - d2 * kP2,
            odd_q = (d3 - d1 * kP2) * kQ;
    to[0] = d0 * (kP2 * kQ2) + (d4 - d2 * (kP2 + kQ2));
    to[to_step] = even_p + odd_p;
    to[2 * to_step] = even_p - odd_p;
    to[3 * to_step] = even_q + odd_q;
    to[4 * to_step] = even_q - odd_q;
    to[5 * to_step] = d1 * (kP2 * kQ2) + (d5 - d3 * (kP2 + kQ2));
  }
  template <class V>
  [[gnu::always_inline]] static void filter(const V& a, const V& b, const V& c, V* to, int64_t to_step) {
    const V even_p = a * kAtP + c * (kP2 * kAtP), odd_p = b * (kP * kAtP),
            even_q = a * kAtQ + c * (kQ2 * kAtQ), odd_q = b * (kQ * kAtQ);
    to[0] = a * kAtZero;
    to[to_step] = even_p + odd_p;
    to[2 * to_step] = even_p - odd_p;
    to[3 * to_step] = even_q + odd_q;
    to[4 * to_step] = even_q - odd_q;
    to[5 * to_step] = c;
  }
  template <class V>
  [[gnu::always_inline]] static void results(const V* m, int64_t from_step, V* to, int64_t to_step) {
    const V sum_p = m[from_step] + m[2 * from_step], difference_p = m[from_step] - m[2 * from_step],
            sum_q = m[3 * from_step] + m[4 * from_step], difference_q = m[3 * from_step] - m[4 * from_step];
    to[0] = m[0] + sum_p + sum_q;
    to[to_step] = difference_p * kP + difference_q * kQ;
    to[2 * to_step] = sum_p * kP2 + sum_q * kQ2;
    to[3 * to_step] = difference_p * kP3 + difference_q * kQ3 + m[5 * from_step];
  }
  template <class V>
  [[gnu::always_inline]] static void spread(const V* y, int64_t from_step, V* to, int64_t to_step) {
    const V a = y[0], b = y[from_step], c = y[2 * from_step], e = y[3 * from_step];
    const V even_p = a + c * kP2, odd_p = b * kP + e * kP3, even_q = a + c * kQ2, odd_q = b * kQ + e * kQ3;
    to[0] = a;
    to[to_step] = even_p + odd_p;
    to[2 * to_step] = even_p - odd_p;
    to[3 * to_step] = even_q + odd_q;
    to[4 * to_step] = even_q - odd_q;
    to[5 * to_step] = e;
  }
  template <class V>
  [[gnu::always_inline]] static void collect(const V* m, int64_t from_step, V* to, int64_t to_step) {
    const V sum_p = (m[from_step] + m[2 * from_step]) * kAtP,
            difference_p = (m[from_step] - m[2 * from_step]) * (kP * kAtP),
            sum_q = (m[3 * from_step] + m[4 * from_step]) * kAtQ,
            difference_q = (m[3 * from_step] - m[4 * from_step]) * (kQ * kAtQ);
    to[0] = m[0] * kAtZero + sum_p + sum_q;
    to[to_step] = difference_p + difference_q;
    to[2 * to_step] = sum_p * kP2 + sum_q * kQ2 + m[5 * from_step];
  }
};

}  // namespace
}  // namespace rushlight::cpu::RL_ISA
