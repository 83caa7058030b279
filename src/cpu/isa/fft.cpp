// Passes of the own Fourier transform, compiled for each instruction set.
#include <complex>

#include "cpu/fft_plan.h"

namespace rushlight::cpu::RL_ISA {
namespace {

// std::complex multiplies with a branch for infinities, which keeps loops from vectorising.
template <class T>
struct Z {
  T re, im;
};
template <class T>
inline Z<T> operator+(Z<T> a, Z<T> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class T>
inline Z<T> operator-(Z<T> a, Z<T> b) {
  return {a.re - b.re, a.im - b.im};
}
template <class T>
inline Z<T> operator*(Z<T> a, Z<T> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <class T>
inline Z<T> operator*(T a, Z<T> b) {
  return {a * b.re, a * b.im};
}
template <class T>
inline Z<T> times_minus_i(Z<T> a) {
  return {a.im, -a.re};
}
template <class T>
inline Z<T> conj(Z<T> a) {
  return {a.re, -a.im};
}

// A butterfly reads its inputs `in_step` and writes its outputs `out_step` apart; w are the twiddles of
// outputs 1, 2, ...
template <class T>
inline void butterfly(std::integral_constant<int, 2>, const Z<T>* x, int64_t in_step, Z<T>* y,
                      int64_t out_step, const Z<T>* w) {
  const Z<T> a = x[0], b = x[in_step];
  y[0] = a + b;
  y[out_step] = (a - b) * w[0];
}
template <class T>
inline void butterfly(std::integral_constant<int, 3>, const Z<T>* x, int64_t in_step, Z<T>* y,
                      int64_t out_step, const Z<T>* w) {
  constexpr T kSin = T(0.86602540378443864676);
  const Z<T> a = x[0], sum = x[in_step] + x[2 * in_step];
  const Z<T> turned = kSin * times_minus_i(x[in_step] - x[2 * in_step]);
  const Z<T> middle = a - T(0.5) * sum;
  y[0] = a + sum;
  y[out_step] = (middle + turned) * w[0];
  y[2 * out_step] = (middle - turned) * w[1];
}
template <class T>
inline void butterfly(std::integral_constant<int, 4>, const Z<T>* x, int64_t in_step, Z<T>* y,
                      int64_t out_step, const Z<T>* w) {
  const Z<T> a = x[0] + x[2 * in_step], b = x[0] - x[2 * in_step];
  const Z<T> c = x[in_step] + x[3 * in_step], d = times_minus_i(x[in_step] - x[3 * in_step]);
  y[0] = a + c;
  y[out_step] = (b + d) * w[0];
  y[2 * out_step] = (a - c) * w[1];
  y[3 * out_step] = (b - d) * w[2];
}
template <class T>
inline void butterfly(std::integral_constant<int, 5>, const Z<T>* x, int64_t in_step, Z<T>* y,
                      int64_t out_step, const Z<T>* w) {
  constexpr T kCos1 = T(0.30901699437494742410), kSin1 = T(0.95105651629515357212);
  constexpr T kCos2 = T(-0.80901699437494742410), kSin2 = T(0.58778525229247312917);
  const Z<T> a = x[0];
  const Z<T> sum1 = x[in_step] + x[4 * in_step], difference1 = x[in_step] - x[4 * in_step];
  const Z<T> sum2 = x[2 * in_step] + x[3 * in_step], difference2 = x[2 * in_step] - x[3 * in_step];
  const Z<T> even1 = a + kCos1 * sum1 + kCos2 * sum2, even2 = a + kCos2 * sum1 + kCos1 * sum2;
  const Z<T> odd1 = times_minus_i(kSin1 * difference1 + kSin2 * difference2);
  const Z<T> odd2 = times_minus_i(kSin2 * difference1 - kSin1 * difference2);
  y[0] = a + sum1 + sum2;
  y[out_step] = (even1 + odd1) * w[0];
  y[2 * out_step] = (even2 + odd2) * w[1];
  y[3 * out_step] = (even2 - odd2) * w[2];
  y[4 * out_step] = (even1 - odd1) * w[3];
}

// x[q + stride (p + rest j)] to y[q + stride (radix p + k)], for q below stride and p below rest.
template <int Radix, class T>
void fixed_pass(const typename FftPlan<T>::Pass& pass, int64_t stride, const Z<T>* __restrict x,
                Z<T>* __restrict y) {
  const auto* twiddles = reinterpret_cast<const Z<T>*>(pass.twiddles.data());
  for (int64_t p = 0; p < pass.rest; ++p) {
    Z<T> w[Radix - 1];
    for (int k = 0; k + 1 < Radix; ++k) w[k] = twiddles[p * (Radix - 1) + k];
    const Z<T>* from = x + p * stride;
    Z<T>* to = y + p * stride * Radix;
    for (int64_t q = 0; q < stride; ++q)
      butterfly(std::integral_constant<int, Radix>{}, from + q, stride * pass.rest, to + q, stride, w);
  }
}

template <class T>
void any_pass(const typename FftPlan<T>::Pass& pass, int64_t stride, const Z<T>* __restrict x,
              Z<T>* __restrict y) {
  const int64_t r = pass.radix;
  const auto* twiddles = reinterpret_cast<const Z<T>*>(pass.twiddles.data());
  const auto* roots = reinterpret_cast<const Z<T>*>(pass.roots.data());
  for (int64_t p = 0; p < pass.rest; ++p)
    for (int64_t k = 0; k < r; ++k) {
      Z<T>* to = y + stride * (r * p + k);
      const Z<T>* first = x + p * stride;
      for (int64_t q = 0; q < stride; ++q) to[q] = first[q];
      for (int64_t j = 1; j < r; ++j) {
        const Z<T> w = roots[j * k % r];
        const Z<T>* from = first + j * stride * pass.rest;
        for (int64_t q = 0; q < stride; ++q) to[q] = to[q] + from[q] * w;
      }
      if (k == 0) continue;
      const Z<T> w = twiddles[p * (r - 1) + k - 1];
      for (int64_t q = 0; q < stride; ++q) to[q] = to[q] * w;
    }
}

template <class T>
void run_pass(const typename FftPlan<T>::Pass& pass, int64_t stride, const Z<T>* x, Z<T>* y) {
  switch (pass.radix) {
    case 2:
      return fixed_pass<2, T>(pass, stride, x, y);
    case 3:
      return fixed_pass<3, T>(pass, stride, x, y);
    case 4:
      return fixed_pass<4, T>(pass, stride, x, y);
    case 5:
      return fixed_pass<5, T>(pass, stride, x, y);
    default:
      return any_pass<T>(pass, stride, x, y);
  }
}

template <class T>
Z<T>* transform(const FftPlan<T>& plan, int64_t lines, Z<T>* data);

// X = chirp * (chirp x, convolved with the conjugate chirp). The inverse transform is the conjugate of the
// forward one of the conjugate.
template <class T>
Z<T>* convolve(const FftPlan<T>& plan, int64_t lines, Z<T>* data) {
  const int64_t n = plan.n, length = plan.chirp->plan->n;
  const auto* chirp = reinterpret_cast<const Z<T>*>(plan.chirp->chirp.data());
  const auto* kernel = reinterpret_cast<const Z<T>*>(plan.chirp->transformed.data());
  Z<T>* work = data + n * lines;
  for (int64_t k = 0; k < n; ++k)
    for (int64_t q = 0; q < lines; ++q) work[k * lines + q] = data[k * lines + q] * chirp[k];
  for (int64_t i = n * lines; i < length * lines; ++i) work[i] = {T(0), T(0)};
  Z<T>* spectrum = transform(*plan.chirp->plan, lines, work);
  for (int64_t k = 0; k < length; ++k)
    for (int64_t q = 0; q < lines; ++q) work[k * lines + q] = conj(spectrum[k * lines + q] * kernel[k]);
  const Z<T>* result = transform(*plan.chirp->plan, lines, work);
  for (int64_t k = 0; k < n; ++k)
    for (int64_t q = 0; q < lines; ++q) data[k * lines + q] = conj(result[k * lines + q]) * chirp[k];
  return data;
}

template <class T>
Z<T>* transform(const FftPlan<T>& plan, int64_t lines, Z<T>* data) {
  if (plan.chirp) return convolve(plan, lines, data);
  Z<T>* from = data;
  Z<T>* to = data + plan.n * lines;
  int64_t stride = lines;
  for (const auto& pass : plan.passes) {
    run_pass<T>(pass, stride, from, to);
    std::swap(from, to);
    stride *= pass.radix;
  }
  return from;
}

template <class T>
std::complex<T>* entry(const FftPlan<T>& plan, int64_t lines, std::complex<T>* data) {
  return reinterpret_cast<std::complex<T>*>(transform(plan, lines, reinterpret_cast<Z<T>*>(data)));
}

}  // namespace

std::complex<float>* fft_lines(const FftPlan<float>& plan, int64_t lines, std::complex<float>* data) {
  return entry(plan, lines, data);
}
std::complex<double>* fft_lines(const FftPlan<double>& plan, int64_t lines, std::complex<double>* data) {
  return entry(plan, lines, data);
}

}  // namespace rushlight::cpu::RL_ISA
