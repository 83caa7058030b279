// Functions of floats by vectors, see lanes_inl.h: polynomials of the least error, and tables as large as a
// register, from which the processor picks. Included by the files of this folder only.
#pragma once
#include "cpu/isa/lanes_inl.h"

#if defined(__AVX2__)
namespace rushlight::cpu::RL_ISA {
namespace {

// x = n log 2 + r.
struct ExpOfFloat {
  using T = float;
  using V = Lane<float>;
  static constexpr float kNormal = 87.3f;  // above -kNormal results are normal numbers
  template <bool Whole>
  [[gnu::always_inline]] static V value(V x) {
    constexpr float kRound = 0x1.8p23f, kHigh = kScales ? 89.0f : kNormal;
    const auto gone = x <= -104.0f;  // to 0, which steps on the way to would cost dearly
    const V from = Whole ? (gone ? V{} : x) : at_least(x, -kNormal),
            bounded = at_most(from, Whole ? 89.0f : kHigh);
    const V shifted = bounded * 1.44269504f + kRound, n = shifted - kRound;
    const V r = (bounded - n * 0x1.62e4p-1f) - n * 0x1.7f7d1cp-20f;
    V p = V{} + 0.00139269268f;
    p = p * r + 0.00836377405f;
    p = p * r + 0.0416665487f;
    p = p * r + 0.166665733f;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
#if defined(__AVX512F__)
    if constexpr (!Whole) return scaled(p, n);
    const V power = scaled(p, at_least(n, -100.0f)) * scaled(V{} + 1.0f, at_most(n + 100.0f, 0.0f));
    return gone ? V{} : power;
#else
    const Lane<int32_t> whole = bits_of(shifted) - std::bit_cast<int32_t>(kRound);
    if constexpr (!Whole) return p * number_of((whole + 127) << 23);
    const Lane<int32_t> half = whole >> 1;  // in two factors, which are normal numbers
    const V power = p * number_of((half + 127) << 23) * number_of((whole - half + 127) << 23);
    return gone ? V{} : power;
#endif
  }
#if defined(__AVX512F__)
  struct Doubt {  // results below the normal numbers, which slow the processor down where it scales
    V least{};
    [[gnu::always_inline]] void add(V x) { least = smaller(x, least); }
    [[gnu::always_inline]] bool any() const { return any_below(least, -kNormal); }
  };
#else
  struct Doubt {
    V largest{};
    [[gnu::always_inline]] void add(V x) { largest = larger(magnitude(x), largest); }
    [[gnu::always_inline]] bool any() const { return any_from(largest, kNormal); }
  };
#endif
  [[gnu::always_inline]] static V near(V x) { return value<false>(x); }
  static V far(V x) { return value<true>(x); }
};

// x = 2^e (1 + f) with f in [-1/4, 1/2).
struct SplitFloat {
  Lane<float> e, f;
};
template <bool Whole>
[[gnu::always_inline]] inline SplitFloat split(Lane<float> x) {
#if defined(__AVX512F__)
  const __m512 m = _mm512_maskz_getmant_ps(kAllLanes<float>, x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_nan);
  const __m512 e = _mm512_maskz_getexp_ps(kAllLanes<float>, x), one = _mm512_set1_ps(1.0f);
  return {_mm512_mask_add_ps(e, _mm512_cmp_ps_mask(m, one, _CMP_LT_OQ), e, one), m - one};
#else
  const auto small = x < 0x1p-126f;
  const Lane<int32_t> bits = bits_of(Whole ? small ? x * 0x1p25f : x : x), power = (bits - 0x3f400000) >> 23;
  const Lane<float> e = __builtin_convertvector(power, Lane<float>);
  return {Whole ? small ? e - 25.0f : e : e, number_of(bits - (power << 23)) - 1.0f};
#endif
}
// log(1 + f) - f.
[[gnu::always_inline]] inline Lane<float> bend_of_log(Lane<float> f) {
  Lane<float> p = Lane<float>{} - 0.0450744666f;
  p = p * f + 0.104629956f;
  p = p * f - 0.131611958f;
  p = p * f + 0.144784003f;
  p = p * f - 0.16647312f;
  p = p * f + 0.199908614f;
  p = p * f - 0.250000954f;
  p = p * f + 0.333334506f;
  return (p * f - 0.5f) * (f * f);
}
// The logarithm to the base e or 10. Sums are in two parts, as e log 2 and f may cancel.
template <bool Decimal>
struct LogOfFloat {
  using T = float;
  using V = Lane<float>;
  template <bool Whole>
  [[gnu::always_inline]] static V value(V x) {
    const auto [e, f] = split<Whole>(x);
    const V bend = bend_of_log(f);
    V sum, low;
    if constexpr (Decimal) {
      const V factor = V{} + 0x1.bcb7b2p-2f, first = e * 0x1.344p-2f, scaled = product(f, factor);
      sum = first + scaled;
      low = ((first - sum) + scaled) + lost_of_product(f, factor, scaled) +
            (bend * factor + (f * -0x1.5b235ep-27f + e * 0x1.3509f8p-18f));
    } else {
      sum = e * 0x1.62e3p-1f + f;
      low = ((e * 0x1.62e3p-1f - sum) + f) + (bend + e * 0x1.2fefa2p-17f);
    }
    if constexpr (!Whole) return sum + low;
    const V finite = sum + low, infinite = x == 0.0f ? V{} - kInfinity<float> : x;
    const V known = (x == 0.0f) | (x == kInfinity<float>) ? infinite : finite;
    return x >= 0.0f ? known : V{} + std::numeric_limits<float>::quiet_NaN();
  }
#if defined(__AVX512F__)
  [[gnu::always_inline]] static V near(V x) {  // of 0 and of infinity e is the logarithm
    const V v = value<false>(x);
    return _mm512_mask_mov_ps(v, _mm512_fpclass_ps_mask(x, kZeros | kPlusInfinity), split<false>(x).e);
  }
#else
  struct Doubt {
    Lane<uint32_t> largest{};
    [[gnu::always_inline]] void add(V x) {
      largest = larger(largest, __builtin_bit_cast(Lane<uint32_t>, x) - 0x00800000u);
    }
    [[gnu::always_inline]] bool any() const { return any_from(largest, 0x7f000000u); }
  };
  [[gnu::always_inline]] static V near(V x) { return value<false>(x); }
  static V far(V x) { return value<true>(x); }
#endif
};
struct LogitOfFloat : LogOfFloat<false> {
  [[gnu::always_inline]] static V ratio(V x) { return x / (1.0f - x); }
#if defined(__AVX512F__)
  [[gnu::always_inline]] static V near(V x) { return LogOfFloat::near(ratio(x)); }
#else
  struct Doubt : LogOfFloat::Doubt {
    [[gnu::always_inline]] void add(V x) { LogOfFloat::Doubt::add(ratio(x)); }
  };
  [[gnu::always_inline]] static V near(V x) { return LogOfFloat::near(ratio(x)); }
  static V far(V x) { return LogOfFloat::far(ratio(x)); }
#endif
};

// erf(c + t) by intervals of |x|: a row of their middles c, then coefficients, the highest first. The middles
// are numbers whose erf is all but a float, so that the last row is exact; from 4 on erf is 1. In the first
// interval erf(x) - x takes the place of erf.
#if defined(__AVX512F__)
constexpr int kErfTerms = 6;
alignas(64) constexpr float kErf[kErfTerms + 2][16] = {
    {0.0f, 0.250089884f, 0.499986172f, 0.750109434f, 1.00029182f, 1.25009179f, 1.49954939f, 1.75016522f,
     1.99986267f, 2.24951077f, 2.49960423f, 2.74910307f, 3.00112438f, 3.25038433f, 3.50133181f, 3.74856949f},
    {-0.00999826845f, -0.0403095856f, -0.0498087555f, -0.0268111583f, 0.00452568755f, 0.021168638f,
     0.0192871336f, 0.00897530932f, 0.000501077971f, -0.00287826778f, -0.00279401056f, -0.00166368333f,
     -0.000738276634f, -0.000265053677f, -7.80282717e-05f, -1.4578196e-05f},
    {0.114239492f, 0.0796524957f, 0.00745345419f, -0.0528285988f, -0.0688212514f, -0.0470837839f,
     -0.0150291417f, 0.00649120659f, 0.0130092148f, 0.0106501924f, 0.00613662228f, 0.00277991081f,
     0.00102073781f, 0.000317191239f, 8.28630655e-05f, 1.85415774e-05f},
    {-9.07246067e-05f, 0.127015397f, 0.183077842f, 0.150657624f, 0.0690843835f, -0.00618024962f,
     -0.0445650034f, -0.0480968691f, -0.0344542004f, -0.0191096067f, -0.00863452069f, -0.00327047659f,
     -0.00103867613f, -0.000285954622f, -6.71679954e-05f, -1.40836974e-05f},
    {-0.376123726f, -0.30912289f, -0.14647463f, 0.0268522147f, 0.138447776f, 0.167533025f, 0.138833016f,
     0.0901263282f, 0.0482423566f, 0.021762019f, 0.00836367533f, 0.0027720111f, 0.000784362433f,
     0.000195346089f, 4.19281751e-05f, 8.05283526e-06f},
    {-2.84788282e-08f, -0.265086889f, -0.439385206f, -0.482189506f, -0.414986312f, -0.295605272f,
     -0.178583056f, -0.0923115611f, -0.0413538404f, -0.0161021296f, -0.00545563269f, -0.00161970581f,
     -0.000415105344f, -9.46388318e-05f, -1.87297301e-05f, -3.33920138e-06f},
    {0.128379166f, 1.05996644f, 0.87879473f, 0.642825544f, 0.414865255f, 0.236466855f, 0.119091146f,
     0.0527444854f, 0.0206783395f, 0.0071580587f, 0.00218259869f, 0.000589176198f, 0.000138316638f,
     2.91162141e-05f, 5.34932133e-06f, 8.90930096e-07f},
    {0.0f, 0.276421666f, 0.520487726f, 0.711225986f, 0.842821896f, 0.922921836f, 0.966051519f, 0.986680388f,
     0.995319426f, 0.998533785f, 0.999592185f, 0.999898851f, 0.999978065f, 0.999995708f, 0.999999285f,
     0.999999881f},
};
#else
constexpr int kErfTerms = 7;
alignas(32) constexpr float kErf[kErfTerms + 2][8] = {
    {0.0f, 0.499986172f, 1.00029182f, 1.49954939f, 1.99986267f, 2.49960423f, 3.00112438f, 3.50133181f},
    {-0.0244930536f, 0.00516197365f, 0.0149419159f, -0.0045470004f, -0.00338657224f, 0.000513900886f,
     0.000390928297f, 3.65803753e-05f},
    {-0.00107778958f, -0.0489533469f, 0.00412913179f, 0.0190803781f, 0.000634806638f, -0.0027706218f,
     -0.000749607279f, -7.63321223e-05f},
    {0.113042854f, 0.00733529497f, -0.0691703558f, -0.0149245132f, 0.0130889527f, 0.00612487365f,
     0.00101152482f, 8.36614709e-05f},
    {-1.89586426e-05f, 0.183045194f, 0.0690996572f, -0.0445571244f, -0.0344593413f, -0.00863541383f,
     -0.00103823945f, -6.74425901e-05f},
    {-0.376125574f, -0.146473959f, 0.138449818f, 0.138832405f, 0.0482418872f, 0.00836374238f, 0.000784416741f,
     4.1878171e-05f},
    {-1.29251099e-08f, -0.439384937f, -0.414986461f, -0.178583115f, -0.0413537994f, -0.00545562571f,
     -0.000415108894f, -1.87243259e-05f},
    {0.128379166f, 0.87879473f, 0.414865255f, 0.119091146f, 0.0206783414f, 0.00218259869f, 0.000138316595f,
     5.34958326e-06f},
    {0.0f, 0.520487726f, 0.842821896f, 0.966051519f, 0.995319426f, 0.999592185f, 0.999978065f, 0.999999285f},
};
#endif
struct ErfOfFloat {
  using T = float;
  using V = Lane<float>;
  [[gnu::always_inline]] static V near(V x) {
    constexpr int kIntervals = Lanes<float>::count;
    constexpr float kRound = 0x1.8p23f;
    const V size = magnitude(x),
            index = at_most(size * (kIntervals / 4.0f) + kRound, kRound + kIntervals - 1);
    const V t = at_most(size, 4.0f) - pick(kErf[0], index);
    V p = pick(kErf[1], index);
#pragma GCC unroll 8
    for (int k = 2; k <= kErfTerms; ++k) p = p * t + pick(kErf[k], index);
    const V value = p * t + (index == kRound ? size : pick(kErf[kErfTerms + 1], index));
    return with_sign_of(value, x);
  }
};

// As formulas::asin_real, with the right angle in two parts.
struct AsinOfFloat {
  using T = float;
  using V = Lane<float>;
  [[gnu::always_inline]] static V near(V x) {                        // beyond 1 the root is NaN
    constexpr float kHigh = 0x1.921fb6p0f, kLow = -0x1.777a5cp-25f;  // pi / 2
    const V size = magnitude(x), half = 0.5f - 0.5f * size;
    const auto steep = size > 0.5f;
    const V z = steep ? half : size * size, s = steep ? square_root(half) : size;
    V p = V{} + 0.0382064520644f;
    p = p * z + 0.026494276787f;
    p = p * z + 0.0450107000557f;
    p = p * z + 0.0749880917577f;
    p = p * z + 0.166666727647f;
    const V bent = s * z * p, far = kHigh - (s + s), lost = (kHigh - far) - (s + s);
    const V value = steep ? far + (lost + (kLow - (bent + bent))) : s + bent;
    return with_sign_of(value, x);
  }
};

#if defined(__AVX512F__)
// The processor's guess of 1 / sqrt(x), once refined; the last step rounds correctly, where the square's
// remainder is a normal number.
struct SqrtOfFloat {
  using T = float;
  using V = Lane<float>;
  static constexpr uint32_t kFrom = 0x0d800000u;  // 2^-100
  struct Doubt {
    Lane<uint32_t> largest{};
    [[gnu::always_inline]] void add(V x) {
      largest = larger(largest, __builtin_bit_cast(Lane<uint32_t>, x) - kFrom);
    }
    [[gnu::always_inline]] bool any() const { return any_from(largest, 0x7f800000u - kFrom); }
  };
  [[gnu::always_inline]] static V near(V x) {
    const V guess = _mm512_maskz_rsqrt14_ps(kAllLanes<float>, x), g = x * guess, h = guess * 0.5f;
    const V less = 0.5f - g * h, root = g + g * less, half_inverse = h + h * less;
    return root + (x - root * root) * half_inverse;
  }
  static V far(V x) { return square_root(x); }
};
#endif

}  // namespace
}  // namespace rushlight::cpu::RL_ISA
#endif
