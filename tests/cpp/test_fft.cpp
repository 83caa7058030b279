// The own Fourier transforms against the definition in long double; where MKL is built in, it goes the same
// way. One set of cases serves both.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>

#include "cpu/fft.h"
#include "cpu/fft_plan.h"

namespace rushlight::cpu {
namespace {

using Complex = std::complex<double>;

// One way to transform, and how far from the definition it may be in doubles, relative to all values. MKL's
// AVX-512 code on Intel's processors (no other) loses digits where a length is a product with a prime of 19
// or more: 1.14e-14 at 106 points.
struct Way {
  void (*run)(const Fft&, const void*, void*);
  double error;
};

std::vector<Complex> noise(int64_t n) {
  std::mt19937 generator(7);
  std::normal_distribution<double> normal;
  std::vector<Complex> x(static_cast<size_t>(n));
  for (Complex& z : x) z = {normal(generator), normal(generator)};
  return x;
}

std::vector<Complex> by_definition(const std::vector<Complex>& x, bool forward) {
  const auto n = static_cast<int64_t>(x.size());
  std::vector<std::complex<long double>> roots;
  for (int64_t k = 0; k < n; ++k)
    roots.push_back(std::polar(1.0L, (forward ? -2 : 2) * std::numbers::pi_v<long double> * k / n));
  std::vector<Complex> y;
  for (int64_t k = 0; k < n; ++k) {
    std::complex<long double> sum = 0;
    for (int64_t j = 0; j < n; ++j)
      sum += std::complex<long double>(x[static_cast<size_t>(j)]) * roots[static_cast<size_t>(j * k % n)];
    y.emplace_back(sum);
  }
  return y;
}

double distance(const std::vector<Complex>& a, const std::vector<Complex>& b) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < a.size(); ++i) difference += std::norm(a[i] - b[i]), size += std::norm(b[i]);
  return std::sqrt(difference / std::max(size, 1e-300));
}

Fft along_one(FftKind kind, int64_t n, bool forward) {
  Fft f;
  f.kind = kind;
  f.double_precision = true;
  f.forward = forward;
  f.axes = {{n, 1, 1}};
  return f;
}

class FftTest : public testing::TestWithParam<Way> {};

// Lengths with every small radix, prime lengths up to Bluestein's, and long ones of both.
std::vector<int64_t> lengths() {
  std::vector<int64_t> all;
  for (int64_t n = 1; n <= 130; ++n) all.push_back(n);
  for (int64_t n : {243, 625, 997, 1024, 1155, 2048, 2197}) all.push_back(n);
  return all;
}

TEST_P(FftTest, ComplexIsTheDefinition) {
  for (int64_t n : lengths())
    for (bool forward : {true, false}) {
      const auto x = noise(n);
      std::vector<Complex> y(x.size());
      GetParam().run(along_one(FftKind::Complex, n, forward), x.data(), y.data());
      EXPECT_LT(distance(y, by_definition(x, forward)), GetParam().error) << n;
    }
}

TEST_P(FftTest, RealHalvesAreTheDefinition) {
  for (int64_t n : lengths()) {
    auto x = noise(n);
    std::vector<double> real;
    for (Complex& z : x) z = z.real(), real.push_back(z.real());
    auto expected = by_definition(x, true);
    expected.resize(static_cast<size_t>(n / 2 + 1));
    std::vector<Complex> half(expected.size());
    GetParam().run(along_one(FftKind::RealToComplex, n, true), real.data(), half.data());
    EXPECT_LT(distance(half, expected), GetParam().error) << n;
    std::vector<double> back(real.size());
    Fft inverse = along_one(FftKind::ComplexToReal, n, false);
    inverse.scale = 1.0 / static_cast<double>(n);
    GetParam().run(inverse, half.data(), back.data());
    for (size_t i = 0; i < back.size(); ++i) EXPECT_NEAR(back[i], real[i], 1e-13) << n;
  }
}

TEST_P(FftTest, SinglePrecisionKeepsItsDigits) {
  for (int64_t n : {64, 210, 1021, 4096}) {
    const auto x = noise(n);
    std::vector<Complex> rounded;
    std::vector<std::complex<float>> in, out(x.size());
    for (Complex z : x) in.emplace_back(z), rounded.emplace_back(in.back());
    Fft f = along_one(FftKind::Complex, n, true);
    f.double_precision = false;
    GetParam().run(f, in.data(), out.data());
    EXPECT_LT(distance({out.begin(), out.end()}, by_definition(rounded, true)), 2e-6) << n;
  }
}

// x[i, j, k] along i and k, in memory order (k, j, i) on one side and (i, j, k) on the other.
TEST_P(FftTest, StridesAndBatches) {
  const int64_t a = 6, b = 5, c = 7;
  const auto x = noise(a * b * c);
  std::vector<Complex> y(x.size());
  Fft f = along_one(FftKind::Complex, a, true);
  f.axes = {{a, 1, b * c}, {c, a * b, 1}};
  f.batch = {{b, a, c}};
  f.scale = 0.5;
  GetParam().run(f, x.data(), y.data());
  for (int64_t j = 0; j < b; ++j) {
    std::vector<Complex> expected(static_cast<size_t>(a * c)), got;
    for (int64_t i = 0; i < a; ++i) {
      std::vector<Complex> row;
      for (int64_t k = 0; k < c; ++k) row.push_back(0.5 * x[static_cast<size_t>(i + j * a + k * a * b)]);
      std::ranges::copy(by_definition(row, true), expected.begin() + i * c);
    }
    for (int64_t k = 0; k < c; ++k) {
      std::vector<Complex> column;
      for (int64_t i = 0; i < a; ++i) column.push_back(expected[static_cast<size_t>(i * c + k)]);
      column = by_definition(column, true);
      for (int64_t i = 0; i < a; ++i)
        expected[static_cast<size_t>(i * c + k)] = column[static_cast<size_t>(i)];
    }
    for (int64_t i = 0; i < a; ++i)
      for (int64_t k = 0; k < c; ++k) got.push_back(y[static_cast<size_t>(i * b * c + j * c + k)]);
    EXPECT_LT(distance(got, expected), 1e-15) << j;
  }
}

TEST_P(FftTest, TheOtherHalfOfARealSpectrum) {
  const int64_t a = 4, b = 6;
  const auto x = noise(a * b);
  std::vector<double> real;
  std::vector<Complex> copy, one(x.size()), other(x.size());
  for (Complex z : x) real.push_back(z.real()), copy.emplace_back(z.real());
  Fft f = along_one(FftKind::RealToComplex, b, true);
  f.axes = {{a, b, b}, {b, 1, 1}};
  GetParam().run(f, real.data(), one.data());
  fft_fill_conjugate(f, one.data());
  f.kind = FftKind::Complex;
  GetParam().run(f, copy.data(), other.data());
  EXPECT_LT(distance(one, other), 1e-15);
}

TEST_P(FftTest, LongTransformsComeBack) {
  for (int64_t n : {int64_t{1} << 17, int64_t{100003}, int64_t{3 * 5 * 7 * 11 * 101}}) {
    const auto x = noise(n);
    std::vector<Complex> y(x.size()), back(x.size());
    GetParam().run(along_one(FftKind::Complex, n, true), x.data(), y.data());
    Fft inverse = along_one(FftKind::Complex, n, false);
    inverse.scale = 1.0 / static_cast<double>(n);
    GetParam().run(inverse, y.data(), back.data());
    EXPECT_LT(distance(back, x), 2e-15) << n;
  }
}

INSTANTIATE_TEST_SUITE_P(Own, FftTest, testing::Values(Way{&fft_loops, 4e-15}));
INSTANTIATE_TEST_SUITE_P(BuiltIn, FftTest, testing::Values(Way{&fft, 2e-14}));

TEST(FftRoots, AreExactToTheLastBitOrNearlySo) {
  for (int64_t n : {8, 12, 1000, 1 << 20, 999983})
    for (int64_t k = 0; k < n; k += std::max<int64_t>(1, n / 1000)) {
      const Complex z = unit_root(k, n);
      const long double angle = 2 * std::numbers::pi_v<long double> * k / n;
      EXPECT_NEAR(z.real(), static_cast<double>(std::cos(angle)), 1.2e-16) << k << " of " << n;
      EXPECT_NEAR(z.imag(), static_cast<double>(-std::sin(angle)), 1.2e-16) << k << " of " << n;
    }
}

}  // namespace
}  // namespace rushlight::cpu
