// Functions of doubles by vectors, see lanes_inl.h. Included by the files of this folder only.
#pragma once
#include "cpu/isa/lanes_inl.h"

#if defined(__AVX2__)
namespace rushlight::cpu::RL_ISA {
namespace {

#if defined(__AVX512F__)
// 2^(j / 16), and what it lacks of the exact number.
alignas(64) constexpr double kExpHi[] = {1.0,
                                         0x1.0b5586cf9890fp0,
                                         0x1.172b83c7d517bp0,
                                         0x1.2387a6e756238p0,
                                         0x1.306fe0a31b715p0,
                                         0x1.3dea64c123422p0,
                                         0x1.4bfdad5362a27p0,
                                         0x1.5ab07dd485429p0,
                                         0x1.6a09e667f3bcdp0,
                                         0x1.7a11473eb0187p0,
                                         0x1.8ace5422aa0dbp0,
                                         0x1.9c49182a3f09p0,
                                         0x1.ae89f995ad3adp0,
                                         0x1.c199bdd85529cp0,
                                         0x1.d5818dcfba487p0,
                                         0x1.ea4afa2a490dap0};
alignas(64) constexpr double kExpLo[] = {0.0,
                                         0x1.8a62e4adc610bp-54,
                                         -0x1.19041b9d78a76p-55,
                                         0x1.9b07eb6c70573p-54,
                                         0x1.6f46ad23182e4p-55,
                                         0x1.ada0911f09ebcp-55,
                                         0x1.d4397afec42e2p-56,
                                         0x1.6324c054647adp-54,
                                         -0x1.bdd3413b26456p-54,
                                         -0x1.41577ee04992fp-55,
                                         0x1.6e9f156864b27p-54,
                                         0x1.c7c46b071f2bep-56,
                                         0x1.7a1cd345dcc81p-54,
                                         0x1.11065895048ddp-55,
                                         0x1.2ed02d75b3707p-55,
                                         -0x1.e9c23179c2893p-54};
#endif
struct ExpOfDouble {
  using T = double;
  using V = Lane<double>;
  static constexpr double kNormal = 708.0;  // above -kNormal results are normal numbers
#if defined(__AVX512F__)
  // x = n log 2 / 16 + r. The processor scales by the floor of n / 16; the rest of n picks from the table.
  template <bool Whole>
  [[gnu::always_inline]] static V value(V x) {
    constexpr double kRound = 0x1.8p52;
    const auto gone = x <= -746.0;  // to 0, which steps on the way to would cost dearly
    const V from = Whole ? (gone ? V{} : x) : at_least(x, -kNormal), bounded = at_most(from, 710.0);
    const V shifted = bounded * 0x1.71547652b82fep4 + kRound, n = shifted - kRound;
    const V r = (bounded - n * 0x1.62e42fefap-5) - n * 0x1.cf79abc9e3b3ap-44;
    V p = V{} + 0.0013889034639665864;
    p = p * r + 0.0083334499341071854;
    p = p * r + 0.041666666664953618;
    p = p * r + 0.16666666665296223;
    p = p * r + 0.5;
    const V more = r * r * p + r, power = pick(kExpHi, shifted);
    const V value = power + (power * more + pick(kExpLo, shifted)), whole = n * 0.0625;
    if constexpr (!Whole) return scaled(value, whole);
    const V rest = scaled(V{} + 1.0, at_most(whole + 1000.0, 0.0));
    return gone ? V{} : scaled(value, at_least(whole, -1000.0)) * rest;
  }
  struct Doubt {  // see ExpOfFloat
    V least{};
    [[gnu::always_inline]] void add(V x) { least = smaller(x, least); }
    [[gnu::always_inline]] bool any() const { return any_below(least, -kNormal); }
  };
#else
  template <bool Whole>
  [[gnu::always_inline]] static V value(V x) {
    constexpr double kRound = 0x1.8p52;
    const auto gone = x <= -746.0;  // to 0, which steps on the way to would cost dearly
    const V from = Whole ? (gone ? V{} : x) : at_least(x, -kNormal),
            bounded = at_most(from, Whole ? 710.0 : kNormal);
    const V shifted = bounded * 1.4426950408889634 + kRound, n = shifted - kRound;
    const V r = (bounded - n * 0x1.62e42feep-1) - n * 0x1.a39ef35793c76p-33;
    V p = V{} + 2.5100472505694996e-08;
    p = p * r + 2.7620201591031547e-07;
    p = p * r + 2.7557268276905696e-06;
    p = p * r + 2.4801521057868204e-05;
    p = p * r + 0.00019841269863171557;
    p = p * r + 0.0013888888917367081;
    p = p * r + 0.008333333333330039;
    p = p * r + 0.041666666666623824;
    p = p * r + 0.16666666666666669;
    p = p * r + 0.50000000000000011;
    p = (r * r * p + r) + 1.0;
    const Lane<int64_t> whole = bits_of(shifted) - std::bit_cast<int64_t>(kRound);
    if constexpr (!Whole) return p * number_of((whole + 1023) << 52);
    const Lane<int64_t> half = whole >> 1;  // in two factors, which are normal numbers
    const V power = p * number_of((half + 1023) << 52) * number_of((whole - half + 1023) << 52);
    return gone ? V{} : power;
  }
  struct Doubt {
    V largest{};
    [[gnu::always_inline]] void add(V x) { largest = larger(magnitude(x), largest); }
    [[gnu::always_inline]] bool any() const { return any_from(largest, kNormal); }
  };
#endif
  [[gnu::always_inline]] static V near(V x) { return value<false>(x); }
  static V far(V x) { return value<true>(x); }
};

#if defined(__AVX512F__)
// -log(c) and -log2(c) of c = j / 16, or 1 + j / 16 for j < 8: the first parts of so few bits that sums with
// whole multiples of log 2 are exact.
alignas(64) constexpr double kLogHi[] = {0.0,
                                         -0x1.f0a30c0118p-5,
                                         -0x1.e27076e2bp-4,
                                         -0x1.5ff3070a7ap-3,
                                         -0x1.c8ff7c79aap-3,
                                         -0x1.1675cababap-2,
                                         -0x1.4618bc21c6p-2,
                                         -0x1.739d7f6bbdp-2,
                                         0x1.62e42fefa38p-1,
                                         0x1.269621134d8p-1,
                                         0x1.e148a1a272p-2,
                                         0x1.7fafa3bd81p-2,
                                         0x1.269621134ep-2,
                                         0x1.a93ed3c8aep-3,
                                         0x1.1178e8227ep-3,
                                         0x1.08598b59e4p-4};
alignas(64) constexpr double kLogLo[] = {0.0,
                                         0x1.d599e83368e91p-45,
                                         0x1.a342c2af0003cp-45,
                                         0x1.8586f183bebf2p-44,
                                         0x1.7794f689f8434p-45,
                                         -0x1.8380e731f55c4p-44,
                                         0x1.3d82f484c84ccp-46,
                                         -0x1.a7389314feb5p-52,
                                         0x1.ef35793c7673p-45,
                                         0x1.c93c1df5bb3b6p-44,
                                         0x1.b36537e3375b2p-44,
                                         0x1.46fb79bf6d4cbp-44,
                                         -0x1.1b61f10522625p-44,
                                         -0x1.8724350562169p-45,
                                         0x1.1ef78ce2d07f2p-45,
                                         -0x1.7e5dd7009902cp-46};
alignas(64) constexpr double kLog2Hi[] = {0.0,
                                          -0x1.663f6fac9p-4,
                                          -0x1.5c01a39fbcp-3,
                                          -0x1.fbc16b9028p-3,
                                          -0x1.49a784bcd2p-2,
                                          -0x1.91bba891f2p-2,
                                          -0x1.d6753e032ep-2,
                                          -0x1.0c10500d64p-1,
                                          1.0,
                                          0x1.a8ff971811p-1,
                                          0x1.5b2c3da197p-1,
                                          0x1.14c560fe69p-1,
                                          0x1.a8ff97181p-2,
                                          0x1.32bfee370ep-2,
                                          0x1.8a8980abfcp-3,
                                          0x1.7d60496cf8p-4};
alignas(64) constexpr double kLog2Lo[] = {0.0,
                                          -0x1.3167ccc538261p-44,
                                          -0x1.6879fa00b120ap-43,
                                          0x1.7f5dc57266758p-43,
                                          0x1.1d406db502403p-44,
                                          0x1.1ee969a95f529p-43,
                                          -0x1.41dfc7d7c3321p-43,
                                          0x1.5669df6a2b592p-43,
                                          0.0,
                                          -0x1.6879fa00b120ap-43,
                                          0x1.1d406db502403p-44,
                                          -0x1.41dfc7d7c3321p-43,
                                          0x1.4bc302ffa76fbp-43,
                                          0x1.cd0cb4492f1bcp-43,
                                          -0x1.66cccab240e9p-46,
                                          0x1.da6339da288fcp-43};
// x = 2^e m with m in [3/4, 3/2), and m c = 1 + r with c near 1 / m; `index` picks the logarithm of c.
struct SplitDouble {
  Lane<double> e, index, r;
};
[[gnu::always_inline]] inline SplitDouble split(Lane<double> x) {
  constexpr double kRound = 0x1.8p48;
  const __m512d m = _mm512_maskz_getmant_pd(kAllLanes<double>, x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_nan);
  const __m512d e = _mm512_maskz_getexp_pd(kAllLanes<double>, x), one = _mm512_set1_pd(1.0);
  const __m512d whole = _mm512_mask_add_pd(e, _mm512_cmp_pd_mask(m, one, _CMP_LT_OQ), e, one);
  const Lane<double> index = _mm512_maskz_rcp14_pd(kAllLanes<double>, m) + kRound, c = index - kRound;
  return {whole, index, m * c - 1.0};
}
// log(1 + r) - r for |r| < 0.0475.
[[gnu::always_inline]] inline Lane<double> bend_of_log(Lane<double> r) {
  Lane<double> p = Lane<double>{} + 0.091300744004934944;
  p = p * r - 0.10042427715789488;
  p = p * r + 0.11111044774819723;
  p = p * r - 0.12499928138733055;
  p = p * r + 0.14285714327306126;
  p = p * r - 0.16666666711722386;
  p = p * r + 0.1999999999999296;
  p = p * r - 0.24999999999992376;
  p = p * r + 0.33333333333333331;
  return (p * r - 0.5) * (r * r);
}
// Of 0 and of infinity the exponent is the logarithm.
[[gnu::always_inline]] inline Lane<double> log_or_exponent(Lane<double> value, Lane<double> x,
                                                           Lane<double> e) {
  return _mm512_mask_mov_pd(value, _mm512_fpclass_pd_mask(x, kZeros | kPlusInfinity), e);
}
struct LogOfDouble {
  using T = double;
  using V = Lane<double>;
  [[gnu::always_inline]] static V finite(const SplitDouble& x) {
    const auto [e, index, r] = x;
    const V first = e * 0x1.62e42fefa38p-1 + pick(kLogHi, index), sum = first + r;
    const V low = ((first - sum) + r) + (e * 0x1.ef35793c7673p-45 + pick(kLogLo, index));
    return sum + (low + bend_of_log(r));
  }
  [[gnu::always_inline]] static V near(V x) {
    const SplitDouble parts = split(x);
    return log_or_exponent(finite(parts), x, parts.e);
  }
};
struct Log2OfDouble {
  using T = double;
  using V = Lane<double>;
  [[gnu::always_inline]] static V near(V x) {
    constexpr double kFactor = 0x1.71547652b82fep0, kFactorLow = 0x1.777d0ffda0d24p-56;  // 1 / log 2
    const auto [e, index, r] = split(x);
    const V first = e + pick(kLog2Hi, index), sum = r * kFactor + first, lost = r * kFactor + (first - sum);
    const V low = r * kFactorLow + (bend_of_log(r) * kFactor + pick(kLog2Lo, index));
    return log_or_exponent(sum + (lost + low), x, e);
  }
};
#else
// As formulas::log2, but that only numbers beyond the normal ones pay for what they need.
struct Log2OfDouble {
  using T = double;
  using V = Lane<double>;
  using Bits = Lane<uint64_t>;
  template <bool Whole>
  [[gnu::always_inline]] static V value(V x) {
    constexpr double kHigh = 0x1.71547652p0, kLow = 0x1.705fc2eefa2p-33, kTwo52 = 0x1p52;
    constexpr uint64_t kRootHalf = 0x3fe6a09e667f3bcd, kUpper = 0xffffffff00000000;
    const auto small = x < 0x1p-1022;
    const Bits bits =
        __builtin_bit_cast(Bits, Whole ? small ? x * 0x1p54 : x : x) + (0x3ff0000000000000 - kRootHalf);
    const V e = number_of((bits >> 52) | std::bit_cast<uint64_t>(kTwo52)) - (kTwo52 + 1023);
    const V k = Whole ? small ? e - 54.0 : e : e, f = number_of((bits & 0xfffffffffffff) + kRootHalf) - 1.0;
    const V s = f / (2.0 + f), z = s * s, half_square = 0.5 * f * f;
    V p = V{} + 2.0 / 21;
#pragma GCC unroll 9
    for (int odd = 19; odd > 1; odd -= 2) p = p * z + 2.0 / odd;
    const V high = number_of(__builtin_bit_cast(Bits, f - half_square) & kUpper);
    const V low = (f - high) - half_square + s * (half_square + z * p);
    const V first = high * kHigh, sum = k + first;
    const V finite = sum + (((k - sum) + first) + ((low + high) * kLow + low * kHigh));
    if constexpr (!Whole) return finite;
    const V infinite = x == 0.0 ? V{} - kInfinity<double> : x;
    const V known = (x == 0.0) | (x == kInfinity<double>) ? infinite : finite;
    return x >= 0.0 ? known : V{} + std::numeric_limits<double>::quiet_NaN();
  }
  struct Doubt {  // the sign of what lies outside of the normal numbers
    Bits outside{};
    [[gnu::always_inline]] void add(V x) {
      const Bits bits = __builtin_bit_cast(Bits, x);
      outside |= (bits - 0x0010000000000000u) | (0x7fefffffffffffffu - bits);
    }
    [[gnu::always_inline]] bool any() const {
      return _mm256_movemask_pd(__builtin_bit_cast(__m256d, outside));
    }
  };
  [[gnu::always_inline]] static V near(V x) { return value<false>(x); }
  static V far(V x) { return value<true>(x); }
};
#endif

// Sines. From 2^20 on the library computes them.
struct SineDoubt {
  Lane<double> largest{};
  [[gnu::always_inline]] void add(Lane<double> x) { largest = larger(largest, magnitude(x)); }
  [[gnu::always_inline]] bool any() const { return any_from(largest, 0x1p20); }
};
template <double (*Library)(double)>
Lane<double> beyond(Lane<double> value, Lane<double> x) {
  for (int l = 0; l < Lanes<double>::count; ++l)
    if (!(std::fabs(x[l]) < 0x1p20)) value[l] = Library(x[l]);
  return value;
}
// What is left of x after whole multiples of pi / Parts, exactly enough; `shifted` counts them in its low
// bits.
struct Remainder {
  Lane<double> shifted, rest, lost;
};
template <int Parts>
[[gnu::always_inline]] inline Remainder remainder_of(Lane<double> x) {
  constexpr double kUnit = 2.0 / Parts, kRound = 0x1.8p52;
  constexpr double kFirst = 0x1.921fb54p0 * kUnit, kSecond = 0x1.10b4611p-30 * kUnit,
                   kThird = 0x1.4c4c6628b80dcp-59 * kUnit;
  const Lane<double> shifted = x * (0.63661977236758134308 / kUnit) + kRound, n = shifted - kRound;
  const Lane<double> high = x - n * kFirst, middle = high - n * kSecond;
  const Lane<double> tail = ((high - middle) - n * kSecond) - n * kThird, rest = middle + tail;
  return {shifted, rest, (middle - rest) + tail};
}
#if defined(__AVX512F__)
// sin(j pi / 16) and cos(j pi / 16), and what they lack of the exact numbers.
alignas(64) constexpr double kSinHi[] = {0.0,
                                         0x1.8f8b83c69a60bp-3,
                                         0x1.87de2a6aea963p-2,
                                         0x1.1c73b39ae68c8p-1,
                                         0x1.6a09e667f3bcdp-1,
                                         0x1.a9b66290ea1a3p-1,
                                         0x1.d906bcf328d46p-1,
                                         0x1.f6297cff75cbp-1,
                                         1.0,
                                         0x1.f6297cff75cbp-1,
                                         0x1.d906bcf328d46p-1,
                                         0x1.a9b66290ea1a3p-1,
                                         0x1.6a09e667f3bcdp-1,
                                         0x1.1c73b39ae68c8p-1,
                                         0x1.87de2a6aea963p-2,
                                         0x1.8f8b83c69a60bp-3};
alignas(64) constexpr double kSinLo[] = {0.0,
                                         -0x1.26d19b9ff8d82p-57,
                                         -0x1.72cedd3d5a61p-57,
                                         0x1.b25dd267f66p-55,
                                         -0x1.bdd3413b26456p-55,
                                         0x1.9f630e8b6dac8p-60,
                                         0x1.457e610231ac2p-56,
                                         0x1.562172a361fd3p-56,
                                         0.0,
                                         0x1.562172a361fd3p-56,
                                         0x1.457e610231ac2p-56,
                                         0x1.9f630e8b6dac8p-60,
                                         -0x1.bdd3413b26456p-55,
                                         0x1.b25dd267f66p-55,
                                         -0x1.72cedd3d5a61p-57,
                                         -0x1.26d19b9ff8d82p-57};
alignas(64) constexpr double kCosHi[] = {1.0,
                                         0x1.f6297cff75cbp-1,
                                         0x1.d906bcf328d46p-1,
                                         0x1.a9b66290ea1a3p-1,
                                         0x1.6a09e667f3bcdp-1,
                                         0x1.1c73b39ae68c8p-1,
                                         0x1.87de2a6aea963p-2,
                                         0x1.8f8b83c69a60bp-3,
                                         0.0,
                                         -0x1.8f8b83c69a60bp-3,
                                         -0x1.87de2a6aea963p-2,
                                         -0x1.1c73b39ae68c8p-1,
                                         -0x1.6a09e667f3bcdp-1,
                                         -0x1.a9b66290ea1a3p-1,
                                         -0x1.d906bcf328d46p-1,
                                         -0x1.f6297cff75cbp-1};
alignas(64) constexpr double kCosLo[] = {0.0,
                                         0x1.562172a361fd3p-56,
                                         0x1.457e610231ac2p-56,
                                         0x1.9f630e8b6dac8p-60,
                                         -0x1.bdd3413b26456p-55,
                                         0x1.b25dd267f6600p-55,
                                         -0x1.72cedd3d5a610p-57,
                                         -0x1.26d19b9ff8d82p-57,
                                         0.0,
                                         0x1.26d19b9ff8d82p-57,
                                         0x1.72cedd3d5a610p-57,
                                         -0x1.b25dd267f6600p-55,
                                         0x1.bdd3413b26456p-55,
                                         -0x1.9f630e8b6dac8p-60,
                                         -0x1.457e610231ac2p-56,
                                         -0x1.562172a361fd3p-56};
// sin(r) - r and cos(r) - 1 of a small remainder.
struct SmallTurn {
  Lane<double> shifted, r, sine, cosine;
};
[[gnu::always_inline]] inline SmallTurn small_turn(Lane<double> x) {
  const auto [shifted, r, lost] = remainder_of<16>(x);
  const Lane<double> z = r * r;
  Lane<double> s = Lane<double>{} + 2.7552480785172068e-06;
  s = s * z - 0.00019841269549230212;
  s = s * z + 0.0083333333333276919;
  s = s * z - 0.16666666666666666;
  Lane<double> c = Lane<double>{} + 2.4796265101262473e-05;
  c = c * z - 0.0013888888567651805;
  c = c * z + 0.041666666666604617;
  c = c * z - 0.5;
  return {shifted, r, r * z * s + lost, z * c};
}
template <int Quarters>
[[gnu::always_inline]] inline Lane<double> sine_of_turn(const SmallTurn& turn) {
  const Lane<int64_t> count = bits_of(turn.shifted) + 8 * Quarters;
  const Lane<double> index = number_of(count), sine = pick(kSinHi, index), cosine = pick(kCosHi, index);
  const Lane<double> sum = sine + cosine * turn.r, low = cosine * turn.r + (sine - sum);
  const Lane<double> value = sum + (low + (cosine * turn.sine + (sine * turn.cosine + pick(kSinLo, index))));
  return number_of(bits_of(value) ^ ((count << 59) & std::numeric_limits<int64_t>::min()));
}
#else
// sin(r) and cos(r) for |r| up to pi / 4: of odd powers from the third on, and of even ones from the fourth
// on.
constexpr double kSineTerms[] = {1.5917848524808262e-10,  -2.5051127944014188e-08, 2.7557316083816358e-06,
                                 -0.00019841269836722418, 0.0083333333333309254,   -0.16666666666666666};
constexpr double kCosineTerms[] = {-1.1382456778061306e-11, 2.0876143827993133e-09, -2.7557317260008837e-07,
                                   2.480158729874307e-05,   -0.0013888888888887382, 0.041666666666666664};
// The polynomial of one or the other, by lane.
[[gnu::always_inline]] inline Lane<double> either(double even, double odd, Lane<double> index) {
  return _mm256_permutevar_pd(_mm256_setr_pd(even, odd, even, odd), __builtin_bit_cast(__m256i, index));
}
#endif
template <int Quarters>
struct SineOfDouble {
  using T = double;
  using V = Lane<double>;
  using Doubt = SineDoubt;
  [[gnu::always_inline]] static V value(V x) {
#if defined(__AVX512F__)
    return sine_of_turn<Quarters>(small_turn(x));
#else
    const auto [shifted, r, lost] = remainder_of<2>(x);
    const Lane<int64_t> count = bits_of(shifted) + Quarters;
    const V index = number_of(count << 1), z = r * r, y = _mm256_blendv_pd(r, z, number_of(count << 63));
    V p = either(kSineTerms[0], kCosineTerms[0], index);
#pragma GCC unroll 8
    for (int k = 1; k < 6; ++k) p = p * z + either(kSineTerms[k], kCosineTerms[k], index);
    // r, or 1 - z / 2 and what its rounding loses.
    const V one = either(0, 1, index), factor = either(1, -0.5, index), first = y * factor + one;
    const V low = lost * (either(1, 0, index) - r * one) + (y * factor + (one - first));
    const V v = first + (z * y * p + low);
    return number_of(bits_of(v) ^ ((count << 62) & std::numeric_limits<int64_t>::min()));
#endif
  }
  [[gnu::always_inline]] static V near(V x) {
    if constexpr (Quarters == 1) return value(x);
    return x == 0.0 ? x : value(x);  // with its sign
  }
  static V far(V x) {
    constexpr auto library = static_cast<double (*)(double)>(Quarters == 1 ? ::cos : ::sin);
    return beyond<library>(near(x), x);
  }
};

struct TanOfDouble {
  using T = double;
  using V = Lane<double>;
  using Doubt = SineDoubt;
  [[gnu::always_inline]] static V near(V x) {
#if defined(__AVX512F__)
    const auto [index, r, less_sine, less_cosine] = small_turn(x);
    const V sine = pick(kSinHi, index), cosine = pick(kCosHi, index);
    const V top = sine + cosine * r, top_low = cosine * r + (sine - top);
    const V bottom = cosine - sine * r, bottom_low = (cosine - bottom) - sine * r;
    const V s = top + (top_low + (cosine * less_sine + (sine * less_cosine + pick(kSinLo, index))));
    const V c = bottom + (bottom_low + ((cosine * less_cosine + pick(kCosLo, index)) - sine * less_sine));
    const V value = s / c;
#else
    const auto [shifted, r, lost] = remainder_of<2>(x);
    const V z = r * r, w = 1.0 - 0.5 * z;
    V p = V{} + kSineTerms[0], q = V{} + kCosineTerms[0];
#pragma GCC unroll 8
    for (int k = 1; k < 6; ++k) p = p * z + kSineTerms[k], q = q * z + kCosineTerms[k];
    const V s = r + (r * z * p + lost), c = w + ((1.0 - w) - 0.5 * z + (z * z * q - r * lost));
    const V odd = number_of(bits_of(shifted) << 63);
    const V quotient = _mm256_blendv_pd(s, c, odd) / _mm256_blendv_pd(c, s, odd);
    const V value = number_of(bits_of(quotient) ^ bits_of(odd));
#endif
    return x == 0.0 ? x : value;  // with its sign
  }
  static V far(V x) { return beyond<static_cast<double (*)(double)>(::tan)>(near(x), x); }
};

// asin(x) up to 1/2 by a polynomial, and beyond by pi / 2 - 2 asin(sqrt((1 - x) / 2)).
template <bool Cosine>
struct ArcOfDouble {
  using T = double;
  using V = Lane<double>;
  [[gnu::always_inline]] static V near(V x) {
    constexpr double kHigh = 0x1.921fb54442d18p0, kLow = 0x1.1a62633145c07p-54;  // pi / 2
    const V size = magnitude(x), half = 0.5 - 0.5 * size;
    const auto steep = size > 0.5;
    const V z = steep ? half : size * size, s = steep ? square_root(half) : size;
    V p = V{} + 0.028819675111149086;
    p = p * z - 0.014940561085973305;
    p = p * z + 0.017456404149471055;
    p = p * z + 0.0054375812066758547;
    p = p * z + 0.01032733702586309;
    p = p * z + 0.011478501348204903;
    p = p * z + 0.013971280171043687;
    p = p * z + 0.017352388340246931;
    p = p * z + 0.022372173122436372;
    p = p * z + 0.030381944134174034;
    p = p * z + 0.044642857146409545;
    p = p * z + 0.074999999999984066;
    p = p * z + 0.16666666666666669;
    const V bent = s * z * p;  // asin(s) - s; beyond 1 the root is NaN
    if constexpr (Cosine) {
      // Of numbers near 1 that is twice the arc of s; else it is what a right angle, or two, has beyond it.
      const V end = x < 0.0 ? V{} + 2 * kHigh : V{}, whole = steep ? end : V{} + kHigh;
      const V times = steep ? V{} + 2.0 : V{} - 1.0, arc = flipped_by(s, x);
      const V sum = times * arc + whole, lost = times * arc + (whole - sum);
      return sum + (lost + (times * flipped_by(bent, x) + whole * (kLow / kHigh)));
    } else {
      const V far = kHigh - (s + s), lost = (kHigh - far) - (s + s);
      return with_sign_of(steep ? far + (lost + (kLow - (bent + bent))) : s + bent, x);
    }
  }
};

#if defined(__AVX512F__)
// As SqrtOfFloat, refined twice.
struct SqrtOfDouble {
  using T = double;
  using V = Lane<double>;
  static constexpr uint64_t kFrom = 0x0630000000000000;  // 2^-924
  struct Doubt {
    Lane<uint64_t> largest{};
    [[gnu::always_inline]] void add(V x) {
      largest = larger(largest, __builtin_bit_cast(Lane<uint64_t>, x) - kFrom);
    }
    [[gnu::always_inline]] bool any() const { return any_from(largest, 0x7ff0000000000000 - kFrom); }
  };
  [[gnu::always_inline]] static V near(V x) {
    const V guess = _mm512_maskz_rsqrt14_pd(kAllLanes<double>, x), g = x * guess, h = guess * 0.5;
    const V less = 0.5 - g * h, root = g + g * less, half_inverse = h + h * less;
    const V closer = root + (x - root * root) * half_inverse;
    return closer + (x - closer * closer) * half_inverse;
  }
  static V far(V x) { return square_root(x); }
};
#endif

}  // namespace
}  // namespace rushlight::cpu::RL_ISA
#endif
