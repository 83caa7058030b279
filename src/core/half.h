// 16- and 8-bit floating types, and complex numbers of such: storage formats that compute in float.
#pragma once
#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>

namespace rushlight {

// IEEE binary16.
struct Half {
  uint16_t bits = 0;
  Half() = default;
  Half(float value) : bits(from_float(value)) {}
  operator float() const { return to_float(bits); }

  // Where the processor converts, no call may be left: the linker keeps one copy of an inline function, and
  // baseline code must not meet the one of a kernel that was compiled for AVX2.
#if defined(__F16C__) || defined(__AVX512F__)
  [[gnu::always_inline]] static uint16_t from_float(float value) {
    return __builtin_bit_cast(uint16_t, static_cast<_Float16>(value));
  }
  [[gnu::always_inline]] static float to_float(uint16_t h) {
    return static_cast<float>(__builtin_bit_cast(_Float16, h));
  }
#else
  static uint16_t from_float(float value) {
    const uint32_t f = std::bit_cast<uint32_t>(value), sign = (f >> 16) & 0x8000u,
                   magnitude = f & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);   // NaN
    if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // rounds to infinity
    if (magnitude < 0x38800000u) {  // subnormal: let float addition do the rounding
      const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
      return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
    }
    const uint32_t rounded = magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u);
    return static_cast<uint16_t>(sign | (rounded >> 13));
  }
  static float to_float(uint16_t h) {
    const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16, magnitude = h & 0x7fffu;
    if (magnitude >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
    if (magnitude < 0x400u) {  // subnormal or zero
      const float value = static_cast<float>(magnitude) * 0x1p-24f;
      return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
    }
    return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000u));
  }
#endif
};

// The upper half of an IEEE binary32, rounded to nearest even.
struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  BFloat16(float value) : bits(from_float(value)) {}
  operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

  static uint16_t from_float(float value) {
    const uint32_t f = std::bit_cast<uint32_t>(value);
    const uint32_t rounded = (f + 0x7fffu + ((f >> 16) & 1u)) >> 16;
    return value != value ? uint16_t{0x7fc0} : static_cast<uint16_t>(rounded);
  }
};

namespace detail {
// Rounds a float to a format with `exponent_bits` and `mantissa_bits`; `finite_only` formats (e4m3fn, *fnuz)
// have no infinity: e4m3fn saturates, the others turn overflow into NaN.
struct Float8Format {
  int mantissa_bits, bias;
  bool finite_only;    // no infinity
  bool unsigned_zero;  // fnuz: the code 0x80 is NaN and there is no negative zero
};
uint8_t float8_from_float(float value, Float8Format format);
float float8_to_float(uint8_t bits, Float8Format format);
}  // namespace detail

template <int Mantissa, int Bias, bool FiniteOnly, bool UnsignedZero>
struct Float8 {
  static constexpr detail::Float8Format format{Mantissa, Bias, FiniteOnly, UnsignedZero};
  uint8_t bits = 0;
  Float8() = default;
  Float8(float value) : bits(detail::float8_from_float(value, format)) {}
  operator float() const { return detail::float8_to_float(bits, format); }
};
using Float8_e5m2 = Float8<2, 15, false, false>;
using Float8_e4m3fn = Float8<3, 7, true, false>;
using Float8_e5m2fnuz = Float8<2, 16, true, true>;
using Float8_e4m3fnuz = Float8<3, 8, true, true>;

// A power of two, as scales of blocks: an exponent without sign and mantissa. No zero; 0xff is NaN.
struct Float8_e8m0fnu {
  uint8_t bits = 0;
  Float8_e8m0fnu() = default;
  Float8_e8m0fnu(float value) : bits(from_float(value)) {}
  operator float() const {
    if (bits == 0xff) return std::numeric_limits<float>::quiet_NaN();
    return std::bit_cast<float>(bits ? static_cast<uint32_t>(bits) << 23 : 0x00400000u);
  }

  // To nearest; half way to the even neighbour, which for normal numbers is the next power.
  static uint8_t from_float(float value) {
    const uint32_t f = std::bit_cast<uint32_t>(value), exponent = (f >> 23) & 0xffu, mantissa = f & 0x7fffffu;
    if (exponent == 0xff) return 0xff;
    return static_cast<uint8_t>(exponent + (exponent ? mantissa >= 0x400000u : mantissa > 0x400000u));
  }
};

// A complex number of two halves.
struct complex32 {
  using value_type = Half;
  complex32() = default;
  complex32(float re, float im = 0) : re_(re), im_(im) {}
  complex32(std::complex<float> z) : re_(z.real()), im_(z.imag()) {}
  operator std::complex<float>() const { return {re_, im_}; }
  Half real() const { return re_; }
  Half imag() const { return im_; }

 private:
  Half re_, im_;
};

}  // namespace rushlight
