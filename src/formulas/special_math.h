// Special functions in double precision: series near the origin, asymptotic expansions and continued
// fractions far out.
#pragma once
#include <initializer_list>

#include "formulas/math.h"

namespace rushlight::formulas {

// Formulas of half types are computed in float. Where the spacing of the numbers matters, `kind` tells it: 0
// that of T, 1 that of float16, 2 that of bfloat16. Quotients are rounded to it before they are cut; which
// numbers below 1 the type has is of no account then.
template <Real T>
RL_HD [[gnu::always_inline]] inline T trunc_divide(T x, T y, T kind) {
  const T quotient = x / y;
  if constexpr (sizeof(T) == 4) {
    const uint32_t bits = std::bit_cast<uint32_t>(quotient), unit = kind == 1 ? 0x2000 : 0x10000;
    const uint32_t odd = bits & unit ? 1 : 0, up = bits + (unit / 2 - 1 + odd);
    const T rounded = std::bit_cast<T>(up & (0u - unit));
    return trunc(kind == 0 || quotient != quotient ? quotient : rounded);
  }
  return trunc(quotient);
}
template <Real T>
RL_HD [[gnu::always_inline]] inline T next_after(T x, T y) {
  using Bits =
      std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;  // at the ends of their range they wrap
  const Bits bits = std::bit_cast<Bits>(x), step = (x < y) == (x > 0) ? Bits{1} : ~Bits{0};
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
    const uint32_t spacing = kind == 0 ? 1 : half ? 0x2000 : 0x10000;
    const uint32_t bits = std::bit_cast<uint32_t>(x) + (away ? spacing : 0u - spacing);
    const float size = std::fabs(x), least = half ? 0x1p-24f : std::bit_cast<float>(spacing);
    const bool fixed = half & ((size < 0x1p-14f) | ((size == 0x1p-14f) & !away));
    const float moved = std::copysign(x + (up ? least : -least), x), next = std::bit_cast<float>(bits);
    const float finite = fixed ? moved : half & (size > 65504.0f) ? std::copysign(65504.0f, x) : next;
    return x != x || y != y ? x + y : x == y ? y : x == 0 ? std::copysign(least, y) : finite;
  }
}
inline constexpr double kSqrtPi = 1.77245385090551602730;

// (I0(x) - 1) / z and (2 / x I1(x) - 1) / z over z = (x/2)^2 in [0, 16].
RL_TABLE double kBesselI0Near[] = {
    9.3209579826573943462e-25, 1.1140578626577648911e-22,  2.6460556344031165012e-20,
    4.3438267385385564038e-18, 6.2782656962334053019e-16,  7.5938254578686943064e-14,
    7.5940762781425419395e-12, 6.1511863472134667977e-10,  3.9367599270566223624e-8,
    1.9290123446740302035e-6,  0.000069444444446181295711, 0.0017361111111093048345,
    0.027777777777778760944,   0.24999999999999978888,     1.0000000000000000075};
RL_TABLE double kBesselI1Near[] = {
    1.3956682215544948987e-23,  1.5632748655413950911e-21, 3.4377010253661685512e-19,
    5.2133295115299407135e-17,  6.9059340246360404212e-15, 7.5938481330648419932e-13,
    6.8346664261677156439e-11,  4.9209492278333927977e-9,  2.7557319420576013287e-7,
    0.000011574074070126549843, 0.00034722222222696658857, 0.0069444444444414708298,
    0.083333333333334067077,    0.49999999999999996999};
// The same as exactly as single precision takes.
RL_TABLE double kBesselI0NearFloat[] = {1.4616693555402433e-13, 4.9552535634753846e-12, 6.672989395832219e-10,
                                        3.8756239095465276e-8,  1.9334022889509687e-6,  6.9425361624069445e-5,
                                        0.0017361585886152789,  0.027777717934019589,   0.25000002920996808,
                                        0.99999999765033623};
RL_TABLE double kBesselI1NearFloat[] = {
    1.2603087319993433e-14, 5.4674958657939516e-13, 7.2537291946417387e-11, 4.871949916057271e-9,
    2.7592455984294732e-7,  1.1572548206911863e-5,  0.00034722601570690709, 0.0069444396656765914,
    0.083333335664773584,   0.49999999981253022};
// sqrt(x) e^-x I(x) over 8/x in [0, 1].
RL_TABLE double kBesselI0Large[] = {
    0.402245205507054415804,      0.0033691164782556940899,    0.0000688975834691682398426,
    0.00000289137052083475648297, 2.04891858946906374183e-7,   2.26666899049817806459e-8,
    3.39623202570838634515e-9,    4.9406023882249695891e-10,   1.18891471078464383424e-11,
    -3.14991652796324136454e-11,  -1.32158118404477131188e-11, -1.79417853150680611778e-12,
    7.18012445138366623367e-13,   3.85277838274214270114e-13,  1.54008621752140982691e-14,
    -4.15056934728722208663e-14,  -9.5548466988283076487e-15,  3.81168066935262242075e-15,
    1.7725601330565263836e-15,    -3.42548561967721913462e-16, -2.82762398051658348494e-16,
    3.4612228676974610931e-17,    4.46562142029675999901e-17};
RL_TABLE double kBesselI1Large[] = {
    0.389288117509140060237,       -0.00976109749136146840777,  -0.000110588938762623716291,
    -0.00000388256480887769039346, -2.51223623787020892529e-7,  -2.63146884688951950684e-8,
    -3.83538038596423702205e-9,    -5.58974346219658380687e-10, -1.8974958123505412345e-11,
    3.25260358301548823856e-11,    1.41258074366137813316e-11,  2.03562854414708950722e-12,
    -7.19855177624590851209e-13,   -4.08355111109219731823e-13, -2.10154184277266431302e-14,
    4.2724400167119513543e-14,     1.04202769841288027642e-14,  -3.81440307243700780477e-15,
    -1.88035477551078244851e-15,   3.30820231092092828273e-16,  2.96262899764595013907e-16,
    -3.20952592199342395878e-17,   -4.65030536848935832557e-17};
// (1 + sqrt(pi) x) e^(x^2) erfc(x) over 4 / (4 + x) in [0, 1].
RL_TABLE double kErfcx[] = {
    1.07743327418115152011,       0.0552531971333554430544,    -0.0515091762573332432665,
    -0.0458329881399714482837,    -0.0231652665231464519344,   -0.00877020277671632873183,
    -0.00264033298713995930341,   -0.000635250032515716910099, -0.000117895016223019122793,
    -0.0000149650949275936069367, -6.51036678079424488473e-7,  2.07129048570030239197e-7,
    4.86379605094493447697e-8,    1.94423623530900602995e-9,   -1.01048985686811045856e-9,
    -1.68365639612874061969e-10,  1.18157463734310677426e-11,  6.03779466239922124706e-12,
    9.55279968162651302252e-14,   -1.86923529750622037163e-13, -1.33383950833814184978e-14,
    5.793342498813899624e-15,     6.7159511992251903138e-16,   -1.92549122377880209375e-16,
    -2.82766490552523617167e-17};

// Sum of the first c[k] T_k(2 u - 1) for u in [0, 1], by Clenshaw's recurrence; written so that a step waits
// for one product and one sum.
template <size_t N, size_t First = N>
RL_HD [[gnu::always_inline]] inline double chebyshev_sum(const double (&c)[N], double u) {
  const double t = 2 * (2 * u - 1);
  double b1 = 0, b2 = 0;
#pragma GCC unroll 32
  for (size_t k = First - 1; k > 0; --k) {
    const double b = t * b1 + (c[k] - b2);
    b2 = b1;
    b1 = b;
  }
  return 0.5 * t * b1 + (c[0] - b2);
}
// A polynomial, the highest coefficient first.
template <size_t N>
RL_HD [[gnu::always_inline]] inline double horner(const double (&c)[N], double x) {
  double sum = c[0];
#pragma GCC unroll 32
  for (size_t k = 1; k < N; ++k) sum = sum * x + c[k];
  return sum;
}
// The same in two halves, by even and odd powers: loops that wait for sums wait half as long.
template <size_t N>
RL_HD [[gnu::always_inline]] inline double horner_by_halves(const double (&c)[N], double x) {
  const double square = x * x;
  double even = c[(N - 1) % 2], odd = c[N % 2];
#pragma GCC unroll 32
  for (size_t k = (N - 1) % 2 + 2; k < N; k += 2) even = even * square + c[k];
#pragma GCC unroll 32
  for (size_t k = N % 2 + 2; k < N; k += 2) odd = odd * square + c[k];
  return even + x * odd;
}

// log Gamma(z) / ((z - 1) (z - 2)) over z - 1.75 for z in [1, 2.5].
RL_TABLE double kLgamma[] = {
    9.1331537051170343622e-8,   -1.5812326268686458254e-7,   -3.4055420585841759785e-8,
    3.5175919292314886568e-8,   4.3563120177338298334e-7,    -7.5785045705265084751e-7,
    9.4164012622737694589e-7,   -1.7663730867731052485e-6,   3.5168938756152912002e-6,
    -6.4884975438006916209e-6,  0.000011945816117960493252,  -0.000022268005883145952475,
    0.000041706285795913802505, -0.000078464095105728008792, 0.00014851663517558285884,
    -0.00028319035422703874622, 0.0005448970031374375352,    -0.001060566094315156104,
    0.0020955338792023143616,   -0.0042261941251653196512,   0.0087763704252789112001,
    -0.019053957830261351322,   0.044520447198509393068,     -0.11948158662524266877,
    0.45013931210925629893};

// sin(pi x) for |x| <= 1/2.
RL_HD [[gnu::always_inline]] inline double sine_of_half_turn(double x) {
  const double size = abs(x);
  const bool steep = size > 0.25;
  const double angle = kPi<double> * (steep ? 0.5 - size : size);
  return copysign(steep ? cosine_polynomial(angle, 0) : sine_polynomial(angle, 0), x);
}

// log |Gamma(x)|: from 8 on Stirling's series; what lies below is shifted into [1, 2.5), where the polynomial
// keeps both zeros exact, and the factors go through one logarithm. Negative numbers are reflected, at the
// price of a second one.
struct LgammaGuessDouble {
  double positive, x, size, value;
  unsigned in_doubt;
  RL_HD [[gnu::always_inline]] operator double() const {  // no call may depend on a condition
    // The edges go by, where the logarithm would take a call: near 0, and the whole numbers.
    const double rest = size - nearbyint(size), sine = abs(sine_of_half_turn(rest));
    const bool mirrored = (x < -1e-100) & (rest != 0);
    const double moved = log(mirrored ? kPi<double> / (size * sine) : 1.0);
    const double reflected = moved + (mirrored ? -positive : positive);
    return (size == kInf<double>) | ((x <= 0) & (rest == 0)) ? kInf<double> : reflected;
  }
};
RL_HD [[gnu::always_inline]] inline LgammaGuessDouble lgamma_guess(double x) {
  constexpr double kSeries[] = {-3617.0 / 122400, 1.0 / 156,  -691.0 / 360360, 1.0 / 1188,
                                -1.0 / 1680,      1.0 / 1260, -1.0 / 360,      1.0 / 12};
  constexpr double kConstant = 0.41893853320467274178;  // (log(2 pi) - 1) / 2
  const double size = abs(x), z = size != 0 ? size : 5e-324;
  double product = 1, near_two = z;
#pragma GCC unroll 8
  for (int k = 1; k < 7; ++k) {
    const double lower = z - k;
    product = lower >= 1.5 ? product * lower : product;
    near_two = lower >= 1.5 ? lower : near_two;
  }
  // Both differences are exact.
  const bool low = z < 1;
  const double above_one = low ? z : near_two - 1, above_two = low ? z - 1 : near_two - 2;
  const double l = log(low || z >= 8 ? z : product), inverse = 1 / z;
  const double far = (z - 0.5) * (l - 1) + (kConstant + inverse * horner(kSeries, inverse * inverse));
  const double near = above_one * above_two * horner(kLgamma, above_one - 0.75) + (low ? -l : l);
  const double value = z < 8 ? near : z == kInf<double> ? z : far;
  const bool reflected = x <= 0, pole = reflected & (x == nearbyint(x));
  return {value, x, size, pole ? kInf<double> : value, reflected && !pole};
}

// The derivative of log Gamma: eight terms of its sum as one fraction, then its asymptotic series; by
// reflection for negative x.
RL_HD [[gnu::always_inline]] inline double digamma(double x) {
  constexpr double kSeries[] = {-174611.0 / 6600, 43867.0 / 14364, -3617.0 / 8160, 1.0 / 12,   -691.0 / 32760,
                                1.0 / 132,        -1.0 / 240,      1.0 / 252,      -1.0 / 120, 1.0 / 12};
  const double z = x < 0 ? 1 - x : x;
  double over = 1, under = z;
#pragma GCC unroll 8
  for (int k = 1; k < 8; ++k) {
    over = over * (z + k) + under;
    under *= z + k;
  }
  const double w = z < 8 ? z + 8 : z, inverse = 1 / w, square = inverse * inverse;
  const double main =
      (log(w) - 0.5 * inverse) - square * horner(kSeries, square) - (z < 8 ? over / under : 0.0);
  const double rest = x - nearbyint(x), size = abs(rest);
  const bool steep = size > 0.25;
  const double angle = kPi<double> * (steep ? 0.5 - size : size);
  const double s = sine_polynomial(angle, 0), c = cosine_polynomial(angle, 0), ratio = steep ? s / c : c / s;
  const double reflected = main - copysign(kPi<double> * ratio, rest);
  const double value = x < 0 ? (rest == 0 ? kNan<double> : reflected) : main;
  return x == 0 ? copysign(kInf<double>, -x) : value;
}

// The derivative of digamma: eight terms of its sum, then its asymptotic series; by reflection for negative
// x.
RL_HD [[gnu::always_inline]] inline double trigamma(double x) {
  constexpr double kSeries[] = {-174611.0 / 330, 43867.0 / 798, -3617.0 / 510, 7.0 / 6,   -691.0 / 2730,
                                5.0 / 66,        -1.0 / 30,     1.0 / 42,      -1.0 / 30, 1.0 / 6};
  const double z = x < 0 ? 1 - x : x;
  double sum = 0;
#pragma GCC unroll 8
  for (int k = 7; k >= 0; --k) sum += 1 / ((z + k) * (z + k));
  const double w = z < 8 ? z + 8 : z, inverse = 1 / w, square = inverse * inverse;
  const double main =
      (inverse + square / 2 + inverse * square * horner(kSeries, square)) + (z < 8 ? sum : 0.0);
  const double rest = x - nearbyint(x), over_sine = kPi<double> / sine_of_half_turn(rest);
  return x < 0 ? (rest == 0 ? kInf<double> : over_sine * over_sine - main) : main;
}

// erfinv(y) / y less its first digits, over w - 0.5, w = -log(1 - y^2) in [0, 6.25]; erfinv(y) / sqrt(w)
// over 1 / sqrt(w), less 0.2788 from w = 6.25 to 40 and less 0.097 from there to 750.
RL_TABLE double kErfinvNear[] = {
    3.1905586173417537752e-21,  -1.9369263756796875722e-19, 5.2764061707169736009e-18,
    -8.3612623271296318023e-17, 8.239766996689387767e-16,   -4.7999786146237008859e-15,
    1.0932776573472913544e-14,  4.60934530811023649e-14,    -2.7773883659441030552e-13,
    -9.220046091949879753e-13,  6.1804525052961959734e-12,  5.7871086638381847979e-11,
    -3.9292334928190888649e-10, -1.9618430134465727084e-9,  1.9458946082874134572e-8,
    6.2942260501609096101e-8,   -9.5616051395268607927e-7,  -1.5434219152801921658e-6,
    0.000047276046970803028624, -8.4419679103681042984e-6,  -0.0024718596040133914526,
    0.0079141083554331356443,   0.24176249324891611276,     -4.7040936394822416733e-8};
RL_TABLE double kErfinvFar[] = {
    969869925256.93326674,  -125782360567.55432399, -102214350274.96450882, 17166848921.81595462,
    4588854573.8302106687,  -1134953277.4857971371, -93562239.828290190209, 49211956.315612859994,
    -935560.23703464172202, -1634450.6773667896902, 156591.78807485439749,  47773.841931386433274,
    -7446.93255116823758,   -1597.1086885885294806, 270.0226489633846732,   59.75647272620260262,
    -1.1157117286547859747, -4.0674076906965511701, 0.2654598007364892158,  -0.78897463101460580526,
    0.45866104651089817036, 0.12388956096863515316, -0.1922781483330749635, 0.95431703247569277772};
RL_TABLE double kErfinvFarther[] = {
    16115374348168093.732,   -1623445511141699.378,  -144223305884690.18926, 12699609719097.794307,
    1442135321112.883966,    -136955281634.84978233, 1643168139.3205749612,  -355279987.81695195243,
    90245138.744961119865,   -10924050.397759552628, 1318011.6826670617198,  -176703.33300665574067,
    24622.851538891874914,   -3583.5274690945683469, 556.39239182252421084,  -94.029756970347736086,
    17.887110301120601765,   -4.4594242522083671903, 1.6899685820048210725,  -0.36478213495071613257,
    -0.16694348550522377852, 0.98956498147760939161};

// exp(x^2) erfc(x) for x >= 0, by quarters that do not overflow.
template <Real T>
RL_HD [[gnu::always_inline]] inline double erfcx_right(T x) {
  const double size = x;
  return 0.25 * chebyshev_sum(kErfcx, 4 / (4 + size)) / (0.25 + 0.25 * kSqrtPi * size);
}
// The square of a float is exact. That of a double is split, as its rounding error would count 2 x^2 times.
template <Real T>
RL_HD [[gnu::always_inline]] inline T erfcx(T x) {
  const double number = x, size = abs(number), right = erfcx_right(size), bounded = size > 27 ? 27 : size;
  const double high = static_cast<float>(bounded), low = (bounded - high) * (bounded + high);
  const double grown = exp(high * high) * (1 + low * (1 + low * (0.5 + low / 6)));
  return number != number ? x : static_cast<T>(number < 0 ? 2 * grown - right : right);
}

// erfinv(y) by minimax polynomials in w = -log(product), where the product is 1 - y^2. Only one number in 500
// lies beyond the first polynomial.
struct ErfInverse {
  double y, w, near;
  unsigned is_far;
  RL_HD [[gnu::always_inline]] double far() const {
    const double root = std::sqrt(w), inverse = 1 / root;
    const double middle = horner(kErfinvFar, inverse - 0.2788),
                 farther = horner(kErfinvFarther, inverse - 0.097);
    return copysign(root * (w <= 40 ? middle : farther), y);
  }
};
RL_HD [[gnu::always_inline]] inline ErfInverse erf_inverse(double y, double product) {
  constexpr double kFirst = 0x1.013c1p+0, kFarFrom = 0.0019304541362277094;  // exp(-6.25)
  const double w = -log(product > 0 ? product : 1);                          // elsewhere 0
  const double rest = horner(kErfinvNear, w - 0.5);
  const double near = copysign(y * kFirst + y * rest, y);  // of -0 the two have different signs
  return {y, w, near, product > 0 && product < kFarFrom};
}
// log of the normal distribution: of erfc(t) by its scaled form, whose exponential counts left of -1 as -t^2.
RL_HD [[gnu::always_inline]] inline double log_ndtr(double x) {
  const double t = x * 0.70710678118654752440, square = 0.5 * x * x, scaled = erfcx_right(abs(t));
  const double small = scaled * exp(-square), tail = scaled > 1e-12 ? scaled : 1e-12;
  const double part = x < -1 ? tail / 2 - 1 : x < 0 ? small / 2 - 1 : -small / 2;
  return x != x ? x : log1p(part) - (x < -1 ? square : 0.0);
}

// The modified Bessel functions of order 0 or 1, times exp(-|x|) if Scaled: by a series in x^2 up to 8. Of a
// float both its square and shorter sums are exact enough.
template <int Order, bool Scaled, Real T>
struct BesselI {
  static constexpr bool kShort = sizeof(T) == 4;
  struct Near {
    RL_HD static double value(double number, double) {
      const double x = min(abs(number), 8.0);
      double sum;
      if constexpr (kShort) {
        const double z = 0.25 * x * x;
        sum = z * (Order ? horner(kBesselI1NearFloat, z) : horner(kBesselI0NearFloat, z));
      } else {
        // z = x^2 / 4, and what its rounding loses: the logarithm of the series grows by up to 4 / (4 + z).
        const double rounded = static_cast<float>(x), exact = 0.25 * rounded * rounded;
        const double rest = 0.25 * (x - rounded) * (x + rounded), z = exact + rest, lost = (exact - z) + rest;
        const double series = z * (Order ? horner(kBesselI1Near, z) : horner(kBesselI0Near, z));
        sum = series + (1 + series) * (lost * 4 / (4 + z));
      }
      const double near = Order ? 0.5 * x + 0.5 * x * sum : 1 + sum;
      const double size = Scaled ? near * exp(-x) : near;
      return Order && number < 0 ? -size : size;
    }
  };
  struct Far {
    RL_HD static double value(double number, double) {
      const double x = abs(number), high = max(x, 8.0), u = 8 / high, root = std::sqrt(high);
      const double over = Scaled ? 1.0 : exp(x);
      const double sum =
          kShort ? (Order ? chebyshev_sum<23, 8>(kBesselI1Large, u) : chebyshev_sum<23, 8>(kBesselI0Large, u))
                 : (Order ? chebyshev_sum(kBesselI1Large, u) : chebyshev_sum(kBesselI0Large, u));
      const double size = x != x ? x : Scaled || x < kInf<double> ? sum / root * over : x;
      return Order && number < 0 ? -size : size;
    }
  };
  using Parts = TypeList<Near, Far>;
  RL_HD static unsigned part(double x, double) { return abs(x) <= 8 ? 1 : 2; }
};

}  // namespace rushlight::formulas
