// Special functions in double precision: series near the origin, asymptotic expansions and continued
// fractions far out.
#pragma once
#include <initializer_list>

#include "formulas/math.h"

namespace rushlight::formulas {

// The bits of halves, on a device by its own instructions.
#if defined(__CUDA_ARCH__) && !defined(__CUDACC_RTC__)
RL_HD [[gnu::always_inline]] inline uint16_t half_bits(float x) {
  return __half_as_ushort(__float2half_rn(x));
}
RL_HD [[gnu::always_inline]] inline float half_value(uint16_t bits) {
  return __half2float(__ushort_as_half(bits));
}
RL_HD [[gnu::always_inline]] inline uint16_t bfloat16_bits(float x) {
  return __bfloat16_as_ushort(__float2bfloat16_rn(x));
}
#else
RL_HD [[gnu::always_inline]] inline uint16_t half_bits(float x) { return Half::from_float(x); }
RL_HD [[gnu::always_inline]] inline float half_value(uint16_t bits) { return Half::to_float(bits); }
RL_HD [[gnu::always_inline]] inline uint16_t bfloat16_bits(float x) { return BFloat16::from_float(x); }
#endif

// Formulas of half types are computed in float. Where the spacing of the numbers matters, `kind` tells it: 0
// that of T, 1 that of float16, 2 that of bfloat16.
template <Real T>
RL_HD T rounded_to(T x, T kind) {
  if (sizeof(T) != 4 || kind == 0) return x;
  const auto value = static_cast<float>(x);
  return kind == 1 ? T(half_value(half_bits(value)))
                   : T(std::bit_cast<float>(uint32_t{bfloat16_bits(value)} << 16));
}
template <Real T>
RL_HD T trunc_divide(T x, T y, T kind) {
  return trunc(rounded_to(T(x / y), kind));
}
template <Real T>
RL_HD [[gnu::always_inline]] inline T next_after(T x, T y) {
  using Bits = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  const Bits bits = std::bit_cast<Bits>(x), step = (x < y) == (x > 0) ? 1 : -1;
  const T least = std::copysign(std::bit_cast<T>(Bits{1}), y), next = std::bit_cast<T>(Bits(bits + step));
  return x != x || y != y ? x + y : x == y ? y : x == 0 ? least : next;
}
// The numbers of halves lie a fixed count of float's bits apart; float16 has the distance of its subnormal
// ones up to 2^-14. All of it without branches.
template <Real T>
RL_HD [[gnu::always_inline]] inline T step_after(T x, T y, T kind) {
  if constexpr (sizeof(T) != 4) {
    return next_after(x, y);
  } else {
    const bool half = kind == 1, up = x < y, away = up == (x > 0);
    const int32_t spacing = kind == 0 ? 1 : half ? 0x2000 : 0x10000;
    const int32_t bits = std::bit_cast<int32_t>(x) + (away ? spacing : -spacing);
    const float size = std::fabs(x), least = half ? 0x1p-24f : std::bit_cast<float>(spacing);
    const bool fixed = half & ((size < 0x1p-14f) | ((size == 0x1p-14f) & !away));
    const float moved = std::copysign(x + (up ? least : -least), x), next = std::bit_cast<float>(bits);
    const float finite = fixed ? moved : half & (size > 65504.0f) ? std::copysign(65504.0f, x) : next;
    return x != x || y != y ? x + y : x == y ? y : x == 0 ? std::copysign(least, y) : finite;
  }
}
RL_HD inline double lgamma(double x) { return std::lgamma(x); }

inline constexpr double kSqrtPi = 1.77245385090551602730;

// B(2j)/(2j) and B(2j)/(2j)!, the coefficients of the Euler-Maclaurin expansions below.
RL_TABLE double kBernoulliRatio[] = {1.0 / 12,  -1.0 / 120,     1.0 / 252, -1.0 / 240,
                                     1.0 / 132, -691.0 / 32760, 1.0 / 12};
RL_TABLE double kBernoulliFactorial[] = {1.0 / 12,
                                         -1.0 / 720,
                                         1.0 / 30240,
                                         -1.0 / 1209600,
                                         1.0 / 47900160,
                                         -691.0 / 1307674368000.0,
                                         1.0 / 74724249600.0,
                                         -3617.0 / 10670622842880000.0};

// e^-x I0(x) and e^-x I1(x) / x on [0, 8].
RL_TABLE long double kBesselI0Small[] = {
    0.338397637204738042498L,     -0.304682672343198398683L,      0.171620901522208775349L,
    -0.094901097048047644421L,    0.0493052842396707084878L,      -0.0237374148058994688156L,
    0.0105464603945949983183L,    -0.0043243099950505759443L,     0.00163947561694133579842L,
    -0.000576375574538582365885L, 0.000188502885095841655729L,    -0.0000575419501008210370398L,
    0.0000164484480707288970893L, -0.00000441673835845875056359L, 0.00000111738753912010371815L,
    -2.67079385394061173391e-7L,  6.04699502254191894932e-8L,     -1.30002500998624804212e-8L,
    2.65982372468238665035e-9L,   -5.18979560163526290666e-10L,   9.67580903537323691224e-11L,
    -1.72682629144155570723e-11L, 2.95505266312963983461e-12L,    -4.8564467831119294609e-13L,
    7.67618549860493561688e-14L,  -1.16853328779934516808e-14L,   1.71539128555513303061e-15L,
    -2.43127984654795469359e-16L, 3.33079451882223809783e-17L};
RL_TABLE long double kBesselI1Small[] = {
    0.126293593221816827412L,      -0.176416518357834055153L,    0.102643658689847095384L,
    -0.0529459812080949914269L,    0.0247264490306265168283L,    -0.0105640848946261981558L,
    0.00415642294431288815669L,    -0.00151357245063125314899L,  0.000512285956168575772895L,
    -0.000161760815825896745588L,  0.0000478156510755005422638L, -0.0000132731636560394358279L,
    0.00000347025130813767847674L, -8.56872026469545474066e-7L,  2.00329475355213526229e-7L,
    -4.44505912879632808065e-8L,   9.38153738649577178388e-9L,   -1.8872497517228292879e-9L,
    3.62559028155211703701e-10L,   -6.66348972350202774223e-11L, 1.17361862988909016308e-11L,
    -1.9839743977649437152e-12L,   3.22379336594557470981e-13L,  -5.04218550472791168711e-14L,
    7.60068429473540693407e-15L,   -1.10559694773538630803e-15L, 1.55363195773620046892e-16L,
    -2.11142121435816607824e-17L};
// sqrt(x) e^-x I(x) over 8/x in [0, 1].
RL_TABLE long double kBesselI0Large[] = {
    0.402245205507054415804L,      0.0033691164782556940899L,    0.0000688975834691682398426L,
    0.00000289137052083475648297L, 2.04891858946906374183e-7L,   2.26666899049817806459e-8L,
    3.39623202570838634515e-9L,    4.9406023882249695891e-10L,   1.18891471078464383424e-11L,
    -3.14991652796324136454e-11L,  -1.32158118404477131188e-11L, -1.79417853150680611778e-12L,
    7.18012445138366623367e-13L,   3.85277838274214270114e-13L,  1.54008621752140982691e-14L,
    -4.15056934728722208663e-14L,  -9.5548466988283076487e-15L,  3.81168066935262242075e-15L,
    1.7725601330565263836e-15L,    -3.42548561967721913462e-16L, -2.82762398051658348494e-16L,
    3.4612228676974610931e-17L,    4.46562142029675999901e-17L};
RL_TABLE long double kBesselI1Large[] = {
    0.389288117509140060237L,       -0.00976109749136146840777L,  -0.000110588938762623716291L,
    -0.00000388256480887769039346L, -2.51223623787020892529e-7L,  -2.63146884688951950684e-8L,
    -3.83538038596423702205e-9L,    -5.58974346219658380687e-10L, -1.8974958123505412345e-11L,
    3.25260358301548823856e-11L,    1.41258074366137813316e-11L,  2.03562854414708950722e-12L,
    -7.19855177624590851209e-13L,   -4.08355111109219731823e-13L, -2.10154184277266431302e-14L,
    4.2724400167119513543e-14L,     1.04202769841288027642e-14L,  -3.81440307243700780477e-15L,
    -1.88035477551078244851e-15L,   3.30820231092092828273e-16L,  2.96262899764595013907e-16L,
    -3.20952592199342395878e-17L,   -4.65030536848935832557e-17L};
// (1 + sqrt(pi) x) e^(x^2) erfc(x) over 4 / (4 + x) in [0, 1].
RL_TABLE long double kErfcx[] = {
    1.07743327418115152011L,       0.0552531971333554430544L,    -0.0515091762573332432665L,
    -0.0458329881399714482837L,    -0.0231652665231464519344L,   -0.00877020277671632873183L,
    -0.00264033298713995930341L,   -0.000635250032515716910099L, -0.000117895016223019122793L,
    -0.0000149650949275936069367L, -6.51036678079424488473e-7L,  2.07129048570030239197e-7L,
    4.86379605094493447697e-8L,    1.94423623530900602995e-9L,   -1.01048985686811045856e-9L,
    -1.68365639612874061969e-10L,  1.18157463734310677426e-11L,  6.03779466239922124706e-12L,
    9.55279968162651302252e-14L,   -1.86923529750622037163e-13L, -1.33383950833814184978e-14L,
    5.793342498813899624e-15L,     6.7159511992251903138e-16L,   -1.92549122377880209375e-16L,
    -2.82766490552523617167e-17L};

// Sum of c[k] T_k(2 u - 1) for u in [0, 1], by Clenshaw's recurrence.
// In extended precision, as the terms of small sums are larger than the sum.
template <size_t N>
RL_HD inline double chebyshev_sum(const long double (&c)[N], double u) {
  const long double t = 2 * (2 * static_cast<long double>(u) - 1);
  long double b1 = 0, b2 = 0;
  for (size_t k = N - 1; k > 0; --k) {
    const long double b = t * b1 - b2 + c[k];
    b2 = b1;
    b1 = b;
  }
  return static_cast<double>(t / 2 * b1 - b2 + c[0]);
}

RL_HD inline double digamma(double x) {
  if (x == 0) return copysign(kInf<double>, -x);
  double result = 0;
  if (x < 0) {
    if (x == floor(x)) return kNan<double>;
    // tan has period pi: the nearest zero is at most half of one away, and the difference is exact.
    const double fraction = x - nearbyint(x);
    result = -kPi<double> / tan(kPi<double> * fraction);
    x = 1 - x;
  }
  for (; x < 10; x += 1) result -= 1 / x;
  const double inverse_square = 1 / (x * x);
  double power = inverse_square, tail = 0;
  for (double b : kBernoulliRatio) tail += b * power, power *= inverse_square;
  return result + log(x) - 0.5 / x - tail;
}

// The derivative of digamma: a sum, then its asymptotic series; by reflection for negative x.
RL_HD inline double trigamma(double x) {
  if (x < 0) {
    const double fraction = x - nearbyint(x), over_sine = kPi<double> / sin(kPi<double> * fraction);
    return fraction == 0 ? kInf<double> : over_sine * over_sine - trigamma(1 - x);
  }
  double sum = 0;
  for (; x < 15; x += 1) sum += 1 / (x * x);
  const double inverse = 1 / x, square = inverse * inverse;
  double power = inverse * square, tail = 0;
  for (int j = 0; j < 7; ++j) tail += kBernoulliRatio[j] * (2 * j + 2) * power, power *= square;
  return sum + inverse + square / 2 + tail;
}

// Hurwitz's zeta function: sum of (q + k)^-s.
RL_HD inline double zeta(double s, double q) {
  if (s == 1) return kInf<double>;
  if (!(s > 1)) return kNan<double>;
  if (q <= 0) {
    if (q == floor(q)) return kInf<double>;
    if (s != floor(s)) return kNan<double>;
  }
  double sum = 0;
  int k = 0;
  for (; k < 9 || q + k <= 9; ++k) {
    const double term = pow(q + k, -s);
    sum += term;
    if (q + k > 0 && abs(term) < 1e-17 * abs(sum)) return sum;
  }
  const double w = q + k;
  sum += pow(w, 1 - s) / (s - 1) + 0.5 * pow(w, -s);
  double factor = s, power = pow(w, -s - 1);
  for (int j = 0; j < 8; ++j) {
    sum += kBernoulliFactorial[j] * factor * power;
    factor *= (s + 2 * j + 1) * (s + 2 * j + 2);
    power /= w * w;
  }
  return sum;
}

// m - log(1 + m) without cancellation for small m.
RL_HD inline double log1p_defect(double m) {
  if (abs(m) > 0.4) return m - log1p(m);
  const double s = m / (2 + m), z = s * s;
  double tail = 0;
  for (int k = 25; k >= 3; k -= 2) tail = tail * z + 1.0 / k;
  return s * (m - 2 * z * tail);
}
// x^a e^-x / Gamma(a). The exponents of x^a and Gamma(a) cancel; by Stirling's series they need not be
// computed.
RL_HD inline double gamma_weight(double a, double x) {
  if (a < 20 && x < 700) return pow(x, a) * exp(-x) / std::tgamma(a);
  if (a < 20) return exp(a * log(x) - x - std::lgamma(a));
  const double r = 1 / (a * a);
  const double correction = (1.0 / 12 - r * (1.0 / 360 - r * (1.0 / 1260 - r / 1680))) / a;
  return sqrt(a / (2 * kPi<double>)) * exp(-a * log1p_defect((x - a) / a)) * exp(-correction);
}

RL_HD inline double igamma_series(double a, double x) {
  double term = 1 / a, sum = term;
  for (int n = 1; n < 100000 && term > sum * 1e-17; ++n) sum += term *= x / (a + n);
  return sum * gamma_weight(a, x);
}
// Lentz's evaluation of the continued fraction of the upper function.
RL_HD inline double igammac_fraction(double a, double x) {
  double b = x + 1 - a, c = 1e300, d = 1 / b, h = d;
  for (int n = 1; n < 100000; ++n) {
    const double an = -n * (n - a);
    b += 2;
    d = an * d + b;
    c = b + an / c;
    d = 1 / (d == 0 ? 1e-300 : d);
    if (c == 0) c = 1e-300;
    h *= d * c;
    if (abs(d * c - 1) < 1e-16) break;
  }
  return h * gamma_weight(a, x);
}
// The regularised incomplete gamma functions: lower and upper share of the integral.
RL_HD inline double igamma(double a, double x) {
  if (a != a || x != x || a < 0 || x < 0) return kNan<double>;
  if (a == 0) return x > 0 ? 1 : kNan<double>;
  if (x == 0) return 0;
  if (std::isinf(a)) return std::isinf(x) ? kNan<double> : 0;
  if (std::isinf(x)) return 1;
  return x < a + 1 ? igamma_series(a, x) : 1 - igammac_fraction(a, x);
}
RL_HD inline double igammac(double a, double x) {
  if (a != a || x != x || a < 0 || x < 0) return kNan<double>;
  if (a == 0) return x > 0 ? 0 : kNan<double>;
  if (x == 0) return 1;
  if (std::isinf(a)) return std::isinf(x) ? kNan<double> : 1;
  if (std::isinf(x)) return 0;
  return x < a + 1 ? 1 - igamma_series(a, x) : igammac_fraction(a, x);
}

// exp(x^2) erfc(x). Squares are split, as their rounding error would be multiplied by 2 x^2.
RL_HD inline double erfcx(double x) {
  if (x != x) return x;
  const double size = abs(x);
  const double right = chebyshev_sum(kErfcx, 4 / (4 + size)) / (1 + kSqrtPi * size);
  if (x >= 0) return size > 1e300 ? 1 / (size * kSqrtPi) : right;
  if (size > 26.7) return kInf<double>;
  const double high = static_cast<float>(size), low = (size - high) * (size + high);
  return 2 * exp(high * high) * exp(low) - right;
}
// The x >= 0 with erfc(x) = q for q in (0, 1]: Newton's method on the logarithm, which is nearly a parabola.
RL_HD inline double erfc_inverse(double q) {
#ifdef __CUDA_ARCH__
  return ::erfcinv(q);  // without the extended precision of the last step
#else
  const double target = log(q);
  double x = sqrt(-target);
  for (int i = 0; i < 12; ++i) {
    const double e = erfcx(x), step = (log(e) - x * x - target) * e * kSqrtPi / 2;
    x += step;
    if (abs(step) < 1e-15 * (1 + abs(x))) break;
  }
  // A last step in extended precision, where erfc does not underflow.
  if (x > 26) return x;
  const long double wide = x, slope = std::exp(-wide * wide) * 2 / kSqrtPi;
  return static_cast<double>(wide + (std::erfc(wide) - q) / slope);
#endif
}
// A polynomial by Horner's scheme, the highest coefficient first.
RL_HD inline double polynomial(double x, std::initializer_list<double> coefficients) {
  double sum = 0;
  for (double c : coefficients) sum = sum * x + c;
  return sum;
}
// The inverse of erf to seven digits for y up to 1 - 5e-8, by Mike Giles' polynomials in the logarithm of 1 -
// y^2.
RL_HD inline double erfinv_estimate(double y) {
  const double w = -log((1 - y) * (1 + y));
  if (w < 5) {
    return y * polynomial(w - 2.5, {2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06,
                                    0.00021858087, -0.00125372503, -0.00417768164, 0.246640727, 1.50140941});
  }
  return y * polynomial(sqrt(w) - 3, {-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844,
                                      0.00573950773, -0.0076224613, 0.00943887047, 1.00167406, 2.83297682});
}
// Exact enough for float after one step of Halley's method; double takes a last one in extended precision.
template <Real T>
RL_HD T erfinv(T number) {
  const double y = abs(double(number));
  if (!(y < 1)) return y == 1 ? number * kInf<T> : kNan<T>;
  if (1 - y < 5e-8) return T(copysign(erfc_inverse(1 - y), double(number)));
  double x = erfinv_estimate(y);
  const double residual = y > 0.5 ? (1 - y) - ::erfc(x) : erf(x) - y;
  const double newton = residual * exp(x * x) * kSqrtPi / 2;
  x -= newton / (1 + x * newton);
#ifdef __CUDA_ARCH__
  if constexpr (sizeof(T) == 8) return ::erfinv(number);  // has no extended precision
#else
  if constexpr (sizeof(T) == 8) {
    const long double wide = x, rest = y > 0.5 ? (1 - y) - std::erfc(wide) : std::erf(wide) - y;
    x = static_cast<double>(wide - rest * std::exp(wide * wide) * kSqrtPi / 2);
  }
#endif
  return T(copysign(x, double(number)));
}
RL_HD inline double ndtri(double p) {
  if (!(p >= 0 && p <= 1)) return kNan<double>;
  if (p == 0) return -kInf<double>;
  if (p == 1) return kInf<double>;
  constexpr double kSqrt2 = 1.41421356237309504880;
  return p <= 0.5 ? -kSqrt2 * erfc_inverse(2 * p) : kSqrt2 * erfc_inverse(2 * (1 - p));
}
RL_HD inline double log_ndtr(double x) {
  const double t = x * 0.70710678118654752440;
  return x < -1 ? log(erfcx(-t) / 2) - t * t : log1p(-erfc(t) / 2);
}

// exp(-|x|) times the modified Bessel function of order 0 or 1, for x >= 0.
RL_HD inline double bessel_scaled(double x, int order) {
  if (std::isinf(x)) return 0;
  if (x <= 8) return order ? x * chebyshev_sum(kBesselI1Small, x / 8) : chebyshev_sum(kBesselI0Small, x / 8);
  return (order ? chebyshev_sum(kBesselI1Large, 8 / x) : chebyshev_sum(kBesselI0Large, 8 / x)) / sqrt(x);
}
RL_HD inline double bessel_i0e(double x) { return x != x ? x : bessel_scaled(abs(x), 0); }
RL_HD inline double bessel_i1e(double x) { return x != x ? x : copysign(bessel_scaled(abs(x), 1), x); }
RL_HD inline double bessel_i0(double x) { return std::isinf(x) ? kInf<double> : bessel_i0e(x) * exp(abs(x)); }
RL_HD inline double bessel_i1(double x) { return std::isinf(x) ? x : bessel_i1e(x) * exp(abs(x)); }

}  // namespace rushlight::formulas
