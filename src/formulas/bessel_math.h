// Bessel and Airy functions in double precision. Between the closed forms they are Chebyshev series, whose
// coefficients were computed with 60 digits from the definitions.
#pragma once
#include <math.h>

#include "formulas/parts.h"
#include "formulas/special_math.h"

namespace rushlight::formulas {

// I0(x) and its terms times harmonic numbers, 2 I1(x) / x and its terms times two harmonic numbers, over x^2
// / 4: with l = log(x/2) + Euler's constant, K0 = the second - l I0, K1 = 1/x + l I1 - x/4 times the second.
RL_TABLE double kBesselI0Terms[] = {7.5940584281266233059e-12,
                                    6.1511873267825648778e-10,
                                    3.9367598891408415218e-8,
                                    1.9290123456790123457e-6,
                                    0.000069444444444444444444,
                                    0.0017361111111111111111,
                                    0.027777777777777777778,
                                    0.25,
                                    1.0,
                                    1.0};
RL_TABLE double kBesselK0Terms[] = {2.1483350211950276805e-11,
                                    1.6718048413148328114e-9,
                                    1.0207455998272324803e-7,
                                    4.7260802469135802469e-6,
                                    0.00015856481481481481481,
                                    0.0036168981481481481481,
                                    0.050925925925925925926,
                                    0.375,
                                    1.0};
RL_TABLE double kBesselI1Terms[] = {7.5940584281266233059e-13,
                                    6.8346525853139609753e-11,
                                    4.9209498614260519022e-9,
                                    2.7557319223985890653e-7,
                                    0.000011574074074074074074,
                                    0.00034722222222222222222,
                                    0.0069444444444444444444,
                                    0.083333333333333333333,
                                    0.5,
                                    1.0};
RL_TABLE double kBesselK1Terms[] = {4.372610626671321594e-12,
                                    3.7910624538697835918e-10,
                                    2.6133758728359068495e-8,
                                    1.3896762408667170572e-6,
                                    0.000054783950617283950617,
                                    0.0015162037037037037037,
                                    0.027199074074074074074,
                                    0.27777777777777777778,
                                    1.25,
                                    1.0};
// sqrt(x) e^x K(x) over 1/x in [0, 1], as quotients; of fewer terms as exactly as single precision takes.
RL_TABLE double kBesselK0Over[] = {0.017287636930648037592, 2.1555177862513555767, 43.030535840646347317,
                                   298.17231643111653868,   934.29390404212296405, 1502.2578262861274198,
                                   1320.3622333192607823,   648.30347232214552963, 174.51338643323480611,
                                   23.707593761091317484,   1.2533141373155002272};
RL_TABLE double kBesselK0Under[] = {0.050255381797084158168,
                                    3.2090040961494892732,
                                    49.395050912213719153,
                                    297.66206988794070451,
                                    857.83252515801825149,
                                    1308.5040652627761552,
                                    1111.5387183353878681,
                                    533.69967601306144742,
                                    141.55133956797531066,
                                    19.040923035761079277,
                                    1.0};
RL_TABLE double kBesselK0OverFloat[] = {0.026746795850034139675, 1.4340716687583028783, 11.309356153914248654,
                                        27.746083853931299735,   26.367995350445525779, 10.020357146871856803,
                                        1.253314137312108988};
RL_TABLE double kBesselK0UnderFloat[] = {0.05972365634339514652,
                                         1.7316916257363378892,
                                         11.009019096982236084,
                                         24.388382969806317763,
                                         21.983314984178771567,
                                         8.12008826027337258,
                                         1.0};
RL_TABLE double kBesselK1Over[] = {0.1227425980377434176, 5.962082121081808721,  76.651667641987709251,
                                   409.70914569737557859, 1095.6449446925278827, 1603.9577382142569193,
                                   1339.3086952874999734, 642.27569234694842278, 171.84297569521898608,
                                   23.452595476510425766, 1.2533141373155002857};
RL_TABLE double kBesselK1Under[] = {0.0068691765877150783942,
                                    1.0569534037009250687,
                                    23.255519422801614528,
                                    173.4509493396354406,
                                    578.55973262518316706,
                                    983.0104696475411959,
                                    907.54327386572746999,
                                    465.62643027841562265,
                                    130.35149574908456921,
                                    18.337463841462812746,
                                    1.0};
RL_TABLE double kBesselK1OverFloat[] = {0.13688522557249253909, 2.8704279951536985261, 15.18446648813675749,
                                        30.729427430843544942,  26.876124654164121111, 9.9674995821508925664,
                                        1.2533141373207348779};
RL_TABLE double kBesselK1UnderFloat[] = {0.011491552196063307932,
                                         0.77176812775277006138,
                                         6.8196793310759398954,
                                         18.284218226068217648,
                                         18.719514560225689784,
                                         7.5779140278653240077,
                                         1.0};
// 2 sqrt(pi) x^(1/4) e^z Ai(x), z = 2/3 x^(3/2), over zeta(2)/z in [0, 1].
RL_TABLE double kAiryLarge[] = {
    0.984405304917155195984L,      -0.0147927848501041986668L,    0.000732717746542671433589L,
    -0.0000612595423417824993164L, 0.00000683476697557269029027L, -9.23722973540398155192e-7L,
    1.4362253404380518953e-7L,     -2.48931942232209598037e-8L,   4.7097934400543278009e-9L,
    -9.58386370811273207611e-10L,  2.07458554836775917083e-10L,   -4.73726733219227695506e-11L,
    1.13360998082242347996e-11L,   -2.82770678231935084639e-12L,  7.32071209512559756799e-13L,
    -1.95997939110897221294e-13L,  5.41011625706839221185e-14L,   -1.53564668022238355978e-14L,
    4.47234039330002478366e-15L,   -1.33380946747566824957e-15L,  4.06658204645623098993e-16L,
    -1.26558322564528898996e-16L,  4.01512633401587109861e-17L};
// e^x Ai(x) on [0, 2].
RL_TABLE double kAirySmall[] = {
    0.336700191674825078826L,     -0.0523689858828180300238L,    -0.0306099379199731511391L,
    0.00398447272276213147162L,   0.000452437986380209974187L,   -0.00010262369086492432716L,
    -4.18258040869594163219e-7L,  0.00000129765176867155139788L, -6.80605150255076591592e-8L,
    -8.30450658265504716863e-9L,  9.801176929925504882e-10L,     1.14706869969673615899e-11L,
    -6.93885389145665231995e-12L, 2.54332377912699190355e-13L,   2.60668648418454069208e-14L,
    -2.40488366705219945065e-15L, -1.7427461635678699735e-17L,   1.09834492616682925427e-17L};
// Ai(x) on [-4.5, 0].
RL_TABLE double kAiryMiddle[] = {
    0.171502866715590282534L,     0.266231374247258418856L,      0.153319449302274881358L,
    -0.302665171298741047506L,    0.0177128069497163718676L,     0.072533055148891829436L,
    -0.0221408501444420062545L,   -0.00437546713685558174684L,   0.00337912095300959019009L,
    -0.000340698922137096634195L, -0.000183205639873711333097L,  0.0000573248040558667213929L,
    -2.33307380879908515132e-7L,  -0.0000028173981902244304787L, 4.85454913810847962814e-7L,
    3.47583738104579379734e-8L,   -2.31929091676973905004e-8L,   2.33047637295422364182e-9L,
    3.7498664624161469538e-10L,   -1.19298618868177497437e-10L,  6.41301529266674377464e-12L,
    2.08875787505978237668e-12L,  -4.1806806118055008507e-13L,   7.43298697853232999559e-15L,
    7.60499239684423805243e-15L,  -1.05370451876237828313e-15L,  -1.50611926724570966081e-17L,
    1.98875186882488309914e-17L};
// Ai(-x) sqrt(pi) x^(1/4) = sine(w) sin(z + pi/4) - cosine(w) cos(z + pi/4) / z over w = (zeta(4.5) / z)^2.
RL_TABLE double kAirySine[] = {
    0.999553601659285732104L,     -0.000442556002490222149411L, 0.0000037464948785574587364L,
    -9.14792678710657663749e-8L,  4.068502322843072185e-9L,     -2.68972453594475251871e-10L,
    2.36344961867509188717e-11L,  -2.5761958868264857979e-12L,  3.32748501575826032938e-13L,
    -4.93220916880662746483e-14L, 8.19620373315218326998e-15L,  -1.50035420156885624021e-15L,
    2.98455882898879067214e-16L,  -6.38268614617752573929e-17L};
RL_TABLE double kAiryCosine[] = {
    0.0689986813746521001486L,    -0.000438474153058769525529L, 0.00000702851312582044986288L,
    -2.45310754704830365113e-7L,  1.38718756168062557224e-8L,   -1.09474469125949739078e-9L,
    1.10468448589832915118e-10L,  -1.34757258425081346963e-11L, 1.91274415642518057655e-12L,
    -3.07403753724346081844e-13L, 5.48207832967844741416e-14L,  -1.06828139525070891243e-14L,
    2.24757127803665019377e-15L,  -5.05672194994570373229e-16L, 1.2071941989372258566e-16L,
    -3.03848375185535203759e-17L, 8.02023489757371390291e-18L,  -2.21007649480164913899e-18L};

// The modified Bessel functions of the second kind, of order 0 or 1, times exp(x) if Scaled: up to 1 and
// beyond.
template <int Order, bool Scaled>
struct BesselKNear {
  RL_HD [[gnu::always_inline]] static double value(double x, double) {
    constexpr double kEuler = 0.57721566490153286061;
    const bool tiny = x < 0x1p-900;  // the logarithm of a subnormal number would take a call
    const double z = 0.25 * x * x, in = tiny ? 0x1p-900 : x > 1 ? 1.0 : x;
    const double scaled = tiny & (x > 0) ? x * 0x1p100 : in;
    const double l = log(0.5 * scaled) + (kEuler - (tiny & (x > 0) ? 69.314718055994530942 : 0.0));
    double value;
    if constexpr (Order == 0)
      value = z * horner(kBesselK0Terms, z) - l * horner(kBesselI0Terms, z);
    else
      value = 1 / x + (0.5 * x * horner(kBesselI1Terms, z) * l - 0.25 * x * horner(kBesselK1Terms, z));
    if constexpr (Scaled) value *= exp(in);
    return x > 0 ? value : x == 0 ? kInf<double> : kNan<double>;
  }
};
template <int Order, bool Scaled, Real T>
struct BesselKFar {
  RL_HD [[gnu::always_inline]] static double value(double x, double) {
    const double u = 1 / x;
    double ratio;
    if constexpr (sizeof(T) == 4)
      ratio = Order ? horner(kBesselK1OverFloat, u) / horner(kBesselK1UnderFloat, u)
                    : horner(kBesselK0OverFloat, u) / horner(kBesselK0UnderFloat, u);
    else
      ratio = Order ? horner(kBesselK1Over, u) / horner(kBesselK1Under, u)
                    : horner(kBesselK0Over, u) / horner(kBesselK0Under, u);
    const double scaled = ratio / std::sqrt(x);
    return Scaled ? scaled : scaled * exp(-x);
  }
};
template <int Order, bool Scaled, Real T>
struct BesselK {
  using Parts = TypeList<BesselKNear<Order, Scaled>, BesselKFar<Order, Scaled, T>>;
  RL_HD [[gnu::always_inline]] static int64_t part(double x, double) { return x <= 1 ? 1 : 2; }
};

// J(x) less its zeros, and Y(x) - 2/pi log(x) J(x), over x^2 - 32 for x in [0, 8]; those of order 1 over x.
RL_TABLE double kBesselJ0[] = {
    -3.3835149967019057491e-34,  2.9545411477747190217e-31,  -2.2269610050288539688e-28,
    1.4456255446043971021e-25,   -7.9434783169543630082e-23, 3.6369233175252819991e-20,
    -1.3612234095637526638e-17,  4.0670226553273543243e-15,  -9.4096140272126920378e-13,
    1.6190720285420906356e-10,   -1.9578218525409311352e-8,  1.5269952779230091921e-6,
    -0.000066243571546240374906, 0.0011434937743762546118};
RL_TABLE double kBesselJ1[] = {
    -1.059922246166602392e-35,  9.8744498195052656169e-33,  -7.9812014457360302221e-30,
    5.581914473090500225e-27,   -3.3244681736117272101e-24, 1.6615147690467907242e-21,
    -6.8457804578876008928e-19, 2.2747761203128796004e-16,  -5.927960622055103615e-14,
    1.1675046589868421398e-11,  -1.6503916134904497352e-9,  1.5488297655634627365e-7,
    -8.4297585834886501983e-6,  0.00019498936985895623704};
RL_TABLE double kBesselY0[] = {
    -7.3123693386671768718e-37, 7.1275011565179653338e-34,  -6.0397357902937810879e-31,
    4.4427555748002739983e-28,  -2.7916105578160090495e-25, 1.4769626661691776316e-22,
    -6.4655320052989707876e-20, 2.2912405653461177568e-17,  -6.3898742676164783653e-15,
    1.3494586944980292551e-12,  -2.0392003558735948617e-10, 2.0032437990402217968e-8,
    -1.0276295984474177536e-6,  4.398386343170921006e-6,    0.0016084926551509244854,
    -0.025888621573764336876,   -0.38225065445942501625};
RL_TABLE double kBesselY1[] = {
    -2.2293666945116332566e-38, 2.3187529959170635938e-35,  -2.1080540863278115622e-32,
    1.6722972911680533118e-29,  -1.140868870826779029e-26,  6.6071954631136625644e-24,
    -3.1983303777474738126e-21, 1.269720829852293758e-18,   -4.0364952247864379275e-16,
    9.9607590234339286568e-14,  -1.8280704350303321993e-11, 2.3409089214332495609e-9,
    -1.8730010852747368813e-7,  7.1738309346526350366e-6,   0.000022819894258782797442,
    -0.0076055447122478480599,  0.070759858821180053319};
// Beyond, J + i Y = sqrt(2 / (pi x)) (P + i Q / x) e^(i (x - pi/4 - order pi/2)), over (8/x)^2 - 1/2.
RL_TABLE double kBesselP0[] = {
    -2.0995665926302427595e-10, 3.5379332832952939898e-10, -5.2006323371540939316e-10,
    1.1966180628951338795e-9,   -3.1886675652604420413e-9, 9.92410210434715906e-9,
    -3.8787514172658337968e-8,  2.0485996390126239732e-7,  -1.6421958608936535009e-6,
    0.000024549664325134094709, -0.0010727346384259345056, 0.99945727578825193817};
RL_TABLE double kBesselQ0[] = {
    8.3436290252176696184e-10, -1.119782879656015193e-9,  9.4311638886971290918e-10,
    -1.7186589752494012678e-9, 3.559314387566789604e-9,   -7.3831282749335291819e-9,
    1.7438076951003355754e-8,  -4.8485532996885897142e-8, 1.6467941128656775563e-7,
    -7.2559577823631811422e-7, 4.5479775054030249947e-6,  -0.0000472684426428623679,
    0.0010933038558950533289,  -0.1244409110361081542};
RL_TABLE double kBesselP1[] = {
    2.2371765453401179647e-10,   -3.7859784587315212968e-10, 5.6088711641467408272e-10,
    -1.298302795850391933e-9,    3.4860176232480916718e-9,   -1.0967858935009138642e-8,
    4.3529501612424215407e-8,    -2.3533597518291680131e-7,  1.9629413066933537493e-6,
    -0.000031838778798739148133, 0.0017976098833410365467,   1.0009070262780821832};
RL_TABLE double kBesselQ1[] = {
    -8.8139492510023509567e-10, 1.1862401348529977728e-9,  -1.0067436857309473509e-9,
    1.8400916230570780577e-9,   -3.8221334912142074337e-9, 7.972849206337028922e-9,
    -1.89652338136791826e-8,    5.3219752458238189024e-8,  -1.8306850844289518164e-7,
    8.2177709047230741401e-7,   -5.3068548488406515011e-6, 0.000058278459237359695297,
    -0.0015394334115287412799,  0.37421499221959182623};

// Of first (J) or second kind, up to 8; zeros are given in two parts.
RL_HD [[gnu::always_inline]] inline double without_zero(double x, double high, double low) {
  return ((x - high) - low) * (x + high);
}
template <int Order>
RL_HD [[gnu::always_inline]] inline double bessel_j_near(double x) {
  if constexpr (Order == 0) {
    const double zeros = without_zero(x, 2.4048255576957728863, -1.1766916515308941e-16) *
                         without_zero(x, 5.5200781102863105687, 8.0885971461467223e-17);
    return zeros * horner_by_halves(kBesselJ0, x * x - 32);
  } else {
    const double zeros = without_zero(x, 3.8317059702075124683, -1.5269184090088068e-16) *
                         without_zero(x, 7.0155866698156188477, -9.4141656534103891e-17);
    return x * (zeros * horner_by_halves(kBesselJ1, x * x - 32));
  }
}
template <int Order>
RL_HD [[gnu::always_inline]] inline double bessel_y_near(double x) {
  constexpr double kOverPi = 0.63661977236758134308;
  const double j = bessel_j_near<Order>(x), l = kOverPi * log(x), z = x * x - 32;
  return Order == 0 ? l * j + horner_by_halves(kBesselY0, z)
                    : (l * j - kOverPi / x) + x * horner_by_halves(kBesselY1, z);
}
// With the sum and the difference of sine and cosine; the smaller one by the product of both, which is
// -cos(2 x). The library's functions of one angle would become a call for each element.
template <int Order, bool Second>
RL_HD [[gnu::always_inline]] inline double bessel_far(double x) {
  const double u = 64 / (x * x) - 0.5, library = ::sin(x);
  const bool reachable = x < 0x1p19;
  const Quarter turned = quarter_turn(x);
  const double s = reachable ? sine_of(turned, 0) : library;
  const double c = reachable ? sine_of(turned, 1) : library / ::tan(x);
  const double twice = reachable ? -sine_of(quarter_turn(2 * x), 1) : (s - c) * (s + c);
  const double sum = s + c, difference = s - c;
  const double plus = s * c < 0 ? twice / difference : sum, minus = s * c < 0 ? difference : twice / sum;
  const double p = horner(Order ? kBesselP1 : kBesselP0, u);
  const double q = horner(Order ? kBesselQ1 : kBesselQ0, u) / x;
  // cos and sin of the phase, times sqrt(2)
  const double real = Order ? minus : plus, imaginary = Order ? -plus : minus;
  const double value = Second ? p * imaginary + q * real : p * real - q * imaginary;
  return x == kInf<double> ? 0.0 : value / (kSqrtPi * std::sqrt(x));
}

// Up to 8; beyond where in doubt.
template <Real T, int Order, bool Second>
struct BesselGuess {
  double x;
  T value;
  unsigned in_doubt;
  RL_HD [[gnu::always_inline]] operator T() const {
    const double size = abs(x), far = bessel_far<Order, Second>(size > 8 ? size : 8.0);
    const T rounded = static_cast<T>(Order && !Second && x < 0 ? -far : far);
    return in_doubt ? rounded : value;
  }
};
template <int Order, bool Second, Real T>
RL_HD [[gnu::always_inline]] inline BesselGuess<T, Order, Second> bessel_guess(T number) {
  const double x = number, size = abs(x), bounded = size > 8 ? 8.0 : size;
  if constexpr (Second) {
    const double near = bessel_y_near<Order>(bounded > 0 ? bounded : 1.0);  // else the logarithm takes a call
    const double value = x < 0 ? kNan<double> : x == 0 ? -kInf<double> : x != x ? x : near;
    return {x, static_cast<T>(value), x > 8};
  } else {
    const double near = bessel_j_near<Order>(bounded);
    return {x, static_cast<T>(Order ? near * copysign(1.0, x) : near), size > 8};  // odd: -0 gives -0
  }
}
#ifdef __CUDACC__
#define RL_BESSEL(name, order, second, device)                          \
  RL_HD inline float name(float x) { return float(device(double(x))); } \
  RL_HD inline double name(double x) { return device(x); }
#else
#define RL_BESSEL(name, order, second, device)   \
  template <Real T>                              \
  [[gnu::always_inline]] inline auto name(T x) { \
    return bessel_guess<order, second>(x);       \
  }
#endif
RL_BESSEL(bessel_j0, 0, false, ::j0)
RL_BESSEL(bessel_j1, 1, false, ::j1)
RL_BESSEL(bessel_y0, 0, true, ::y0)
RL_BESSEL(bessel_y1, 1, true, ::y1)
#undef RL_BESSEL

template <Real T>
RL_HD [[gnu::always_inline]] inline T spherical_bessel_j0(T number) {
  const double x = number, value = x == 0 ? 1.0 : sin(x) / x;
  return static_cast<T>(abs(x) == kInf<double> ? 0.0 : value);
}

// 2/3 x^(3/2), and what its rounding loses.
struct AiryPhase {
  double root, value, lost;
};
RL_HD [[gnu::always_inline]] inline AiryPhase airy_phase(double x) {
  const double root = std::sqrt(x), power = x * root, value = power * 2 / 3;
  const double root_lost = std::fma(-root, root, x) / (2 * root);
  const double power_lost = std::fma(x, root, -power) + x * root_lost;
  return {root, value, (std::fma(-3.0, value, 2 * power) + 2 * power_lost) / 3};
}
// Airy's function left and right of -4.5, 0 and 2.
struct AiryLeft {
  RL_HD [[gnu::always_inline]] static double value(double x, double) {
    const AiryPhase phase = airy_phase(abs(x));
    const double scale = 0.70710678118654752440 / (kSqrtPi * std::sqrt(phase.root));
    // Of a large phase what is lost is no small angle: from 2^53 on it has whole turns.
    const bool small = phase.value < 0x1p25;
    const double s = sin(phase.value), c = cos(phase.value);
    const double ls = small ? phase.lost : sin(phase.lost), lc = small ? 1.0 : cos(phase.lost);
    const double sine = s * lc + ls * c, cosine = c * lc - ls * s, u = 6.3639610306789277197 / phase.value;
    const double value = scale * (chebyshev_sum(kAirySine, u * u) * (cosine + sine) -
                                  chebyshev_sum(kAiryCosine, u * u) / phase.value * (cosine - sine));
    return x == -kInf<double> ? kNan<double> : value;
  }
};
struct AiryMiddle {
  RL_HD [[gnu::always_inline]] static double value(double x, double) {
    return chebyshev_sum(kAiryMiddle, 1 + x / 4.5);
  }
};
struct AirySmall {
  RL_HD [[gnu::always_inline]] static double value(double x, double) {
    return chebyshev_sum(kAirySmall, x / 2) * exp(-x);
  }
};
struct AiryRight {
  RL_HD [[gnu::always_inline]] static double value(double x, double) {
    const AiryPhase phase = airy_phase(x);
    const double scale = 0.5 / (kSqrtPi * std::sqrt(phase.root)), shrunk = exp(-phase.value);
    const double sum = chebyshev_sum(kAiryLarge, 1.8856180831641267317 / phase.value);
    const double value = sum * (shrunk - shrunk * phase.lost) * scale;
    return x == kInf<double> ? kNan<double> : x > 104 ? 0.0 : value;  // NaN at infinity, as PyTorch
  }
};
struct Airy {
  using Parts = TypeList<AiryLeft, AiryMiddle, AirySmall, AiryRight>;
  RL_HD [[gnu::always_inline]] static int64_t part(double x, double) {
    return x < -4.5 ? 1 : x < 0 ? 2 : x <= 2 ? 4 : 8;
  }
};

}  // namespace rushlight::formulas
