// Bessel and Airy functions in double precision. Between the closed forms they are Chebyshev series, whose
// coefficients were computed with 60 digits from the definitions.
#pragma once
#include <math.h>

#include "formulas/special_math.h"

namespace rushlight::formulas {

// K0(x) + log(x/2) I0(x) over x^2 in [0, 4].
inline constexpr double kBesselK0Small[] = {
    -0.267663696616951384,    0.344289899924628487,   0.0359799365153615016,  0.00126461541144692592,
    0.0000228621210311945179, 2.53479107902614946e-7, 1.90451637722020886e-9, 1.03496952576336246e-11,
    4.25981614279108258e-14,  1.3744654358807509e-16};
// x (K1(x) - log(x/2) I1(x)) over x^2 in [0, 4].
inline constexpr double kBesselK1Small[] = {
    0.762650113669473885,     -0.353155960776544876,   -0.122611180822657148,   -0.00697572385963986435,
    -0.000173028895751305206, -2.43340614156596823e-6, -2.21338763073472586e-8, -1.41148839263352776e-10,
    -6.66690169419932901e-13, -2.42744985051936593e-15};
// sqrt(x) e^x K(x) over 2/x in [0, 1].
inline constexpr double kBesselK0Large[] = {
    1.22015154103297773,      -0.0314481013119645005,   0.00156988388573005337,  -0.000128495495816278026,
    0.0000139498137188764994, -1.83175552271911948e-6,  2.76681363944501508e-7,  -4.66048989768794767e-8,
    8.57403401741422609e-9,   -1.69753450938906152e-9,  3.57739728140032845e-10, -7.95748924447739704e-11,
    1.85594911495492655e-11,  -4.51459788337451918e-12, 1.14034058820734423e-12, -2.98009692314817835e-13,
    8.03289077506837437e-14,  -2.22751332674629636e-14, 6.34007647627664597e-15, -1.84859337792090717e-15,
    5.51205599940433336e-16,  -1.67823112575490064e-16, 5.21039177764355411e-17};
inline constexpr double kBesselK1Large[] = {
    1.36031309524222133,       0.103923736576817238,    -0.00285781685962277939,  0.000195215518471351631,
    -0.0000193619797416608296, 2.40648494783721712e-6,  -3.50196060308781254e-7,  5.74108412545004929e-8,
    -1.0345762465678097e-8,    2.01504975519703462e-9,  -4.19035475934192558e-10, 9.21831518760531413e-11,
    -2.12996783842779102e-11,  5.13963967348234354e-12, -1.28917396094982294e-12, 3.34841966605224312e-13,
    -8.97670518201014607e-14,  2.47715442421959868e-14, -7.01983708921476885e-15, 2.03870316623986088e-15,
    -6.05704727064301782e-16,  1.83809357524304543e-16, -5.68946284919364837e-17};
// 2 sqrt(pi) x^(1/4) e^z Ai(x), z = 2/3 x^(3/2), over zeta(2)/z in [0, 1].
inline constexpr double kAiryLarge[] = {
    0.984405304917155196,    -0.0147927848501041987,   0.000732717746542671434, -0.0000612595423417824993,
    6.83476697557269029e-6,  -9.23722973540398155e-7,  1.4362253404380519e-7,   -2.48931942232209598e-8,
    4.7097934400543278e-9,   -9.58386370811273208e-10, 2.07458554836775917e-10, -4.73726733219227696e-11,
    1.13360998082242348e-11, -2.82770678231935085e-12, 7.32071209512559757e-13, -1.95997939110897221e-13,
    5.41011625706839221e-14, -1.53564668022238356e-14, 4.47234039330002478e-15, -1.33380946747566825e-15,
    4.06658204645623099e-16, -1.26558322564528899e-16, 4.0151263340158711e-17};
// e^x Ai(x) on [0, 2].
inline constexpr double kAirySmall[] = {
    0.336700191674825079,     -0.05236898588281803,     -0.0306099379199731511,  0.00398447272276213147,
    0.000452437986380209974,  -0.000102623690864924327, -4.18258040869594163e-7, 1.2976517686715514e-6,
    -6.80605150255076592e-8,  -8.30450658265504717e-9,  9.80117692992550488e-10, 1.14706869969673616e-11,
    -6.93885389145665232e-12, 2.5433237791269919e-13,   2.60668648418454069e-14, -2.40488366705219945e-15,
    -1.74274616356786997e-17, 1.09834492616682925e-17};
// Ai(x) on [-4.5, 0].
inline constexpr double kAiryMiddle[] = {
    0.171502866715590283,    0.266231374247258419,     0.153319449302274881,     -0.302665171298741048,
    0.0177128069497163719,   0.0725330551488918294,    -0.0221408501444420063,   -0.00437546713685558175,
    0.00337912095300959019,  -0.000340698922137096634, -0.000183205639873711333, 0.0000573248040558667214,
    -2.33307380879908515e-7, -2.81739819022443048e-6,  4.85454913810847963e-7,   3.4758373810457938e-8,
    -2.31929091676973905e-8, 2.33047637295422364e-9,   3.74986646241614695e-10,  -1.19298618868177497e-10,
    6.41301529266674377e-12, 2.08875787505978238e-12,  -4.18068061180550085e-13, 7.43298697853233e-15,
    7.60499239684423805e-15, -1.05370451876237828e-15, -1.50611926724570966e-17, 1.9887518688248831e-17};
// Ai(-x) sqrt(pi) x^(1/4) = sine(w) sin(z + pi/4) - cosine(w) cos(z + pi/4) / z over w = (zeta(4.5) / z)^2.
inline constexpr double kAirySine[] = {
    0.999553601659285732,    -0.000442556002490222149, 3.74649487855745874e-6,  -9.14792678710657664e-8,
    4.06850232284307218e-9,  -2.68972453594475252e-10, 2.36344961867509189e-11, -2.5761958868264858e-12,
    3.32748501575826033e-13, -4.93220916880662746e-14, 8.19620373315218327e-15, -1.50035420156885624e-15,
    2.98455882898879067e-16, -6.38268614617752574e-17};
inline constexpr double kAiryCosine[] = {
    0.0689986813746521001,   -0.000438474153058769526, 7.02851312582044986e-6,  -2.45310754704830365e-7,
    1.38718756168062557e-8,  -1.09474469125949739e-9,  1.10468448589832915e-10, -1.34757258425081347e-11,
    1.91274415642518058e-12, -3.07403753724346082e-13, 5.48207832967844741e-14, -1.06828139525070891e-14,
    2.24757127803665019e-15, -5.05672194994570373e-16, 1.20719419893722586e-16, -3.03848375185535204e-17,
    8.0202348975737139e-18,  -2.21007649480164914e-18};

// Sum of c[k] T_k(2 u - 1) for u in [0, 1], by Clenshaw's recurrence.
template <size_t N>
inline double chebyshev_sum(const double (&c)[N], double u) {
  const double t = 2 * (2 * u - 1);
  double b1 = 0, b2 = 0;
  for (size_t k = N - 1; k > 0; --k) {
    const double b = t * b1 - b2 + c[k];
    b2 = b1;
    b1 = b;
  }
  return t / 2 * b1 - b2 + c[0];
}

inline double bessel_k0e(double x) {
  if (!(x > 0)) return x == 0 ? kInf<double> : kNan<double>;
  if (x > 2) return chebyshev_sum(kBesselK0Large, 2 / x) / sqrt(x);
  return (chebyshev_sum(kBesselK0Small, x * x / 4) - log(x / 2) * bessel_i0(x)) * exp(x);
}
inline double bessel_k1e(double x) {
  if (!(x > 0)) return x == 0 ? kInf<double> : kNan<double>;
  if (x > 2) return chebyshev_sum(kBesselK1Large, 2 / x) / sqrt(x);
  return (chebyshev_sum(kBesselK1Small, x * x / 4) / x + log(x / 2) * bessel_i1(x)) * exp(x);
}
inline double bessel_k0(double x) {
  if (!(x > 0)) return x == 0 ? kInf<double> : kNan<double>;
  if (x > 2) return chebyshev_sum(kBesselK0Large, 2 / x) / sqrt(x) * exp(-x);
  return chebyshev_sum(kBesselK0Small, x * x / 4) - log(x / 2) * bessel_i0(x);
}
inline double bessel_k1(double x) {
  if (!(x > 0)) return x == 0 ? kInf<double> : kNan<double>;
  if (x > 2) return chebyshev_sum(kBesselK1Large, 2 / x) / sqrt(x) * exp(-x);
  return chebyshev_sum(kBesselK1Small, x * x / 4) / x + log(x / 2) * bessel_i1(x);
}

inline double bessel_y0(double x) { return x < 0 ? kNan<double> : x == 0 ? -kInf<double> : ::y0(x); }
inline double bessel_y1(double x) { return x < 0 ? kNan<double> : x == 0 ? -kInf<double> : ::y1(x); }

inline double spherical_bessel_j0(double x) {
  if (std::isinf(x)) return 0;
  if (abs(x) >= 0.5) return sin(x) / x;
  const double t = x * x;
  return 1 +
         t * (-1.0 / 6 + t * (1.0 / 120 + t * (-1.0 / 5040 + t * (1.0 / 362880 + t * (-1.0 / 39916800)))));
}

inline double airy_ai(double x) {
  if (x != x || std::isinf(x)) return kNan<double>;  // as PyTorch, also for +inf
  if (x > 104) return 0;
  if (x >= -4.5 && x < 0) return chebyshev_sum(kAiryMiddle, 1 + x / 4.5);
  if (x >= 0 && x <= 2) return chebyshev_sum(kAirySmall, x / 2) * exp(-x);
  const double zeta = abs(x) * sqrt(abs(x)) * 2 / 3, scale = 1 / (kSqrtPi * sqrt(sqrt(abs(x))));
  if (x > 0) return chebyshev_sum(kAiryLarge, 1.8856180831641267317 / zeta) * exp(-zeta) * scale / 2;
  const double u = 6.3639610306789277197 / zeta;
  return scale * (chebyshev_sum(kAirySine, u * u) * sin(zeta + kPi<double> / 4) -
                  chebyshev_sum(kAiryCosine, u * u) / zeta * cos(zeta + kPi<double> / 4));
}

}  // namespace rushlight::formulas
