// What the formulas take of the standard library and of core/dtype.h, for NVRTC, which has neither: every
// header that they include is this file there (cmake/RtcHeaders.cmake).
#ifndef RUSHLIGHT_RTC_STANDARD
#define RUSHLIGHT_RTC_STANDARD

using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned;
using int64_t = long long;
using uint64_t = unsigned long long;

namespace std {

template <class A, class B>
inline constexpr bool is_same_v = false;
template <class A>
inline constexpr bool is_same_v<A, A> = true;
template <class T>
inline constexpr bool is_floating_point_v = is_same_v<T, float> || is_same_v<T, double>;
template <class T>
inline constexpr bool is_unsigned_v = is_same_v<T, bool> || is_same_v<T, uint8_t> || is_same_v<T, uint16_t> ||
                                      is_same_v<T, uint32_t> || is_same_v<T, uint64_t>;
template <class T>
inline constexpr bool is_integral_v = is_unsigned_v<T> || is_same_v<T, int8_t> || is_same_v<T, int16_t> ||
                                      is_same_v<T, int32_t> || is_same_v<T, int64_t>;
template <class T>
concept integral = is_integral_v<T>;
template <class T>
inline constexpr bool is_signed_v = is_floating_point_v<T> || (is_integral_v<T> && !is_unsigned_v<T>);

template <bool which, class A, class B>
struct conditional {
  using type = A;
};
template <class A, class B>
struct conditional<false, A, B> {
  using type = B;
};
template <bool which, class A, class B>
using conditional_t = typename conditional<which, A, B>::type;

template <class T>
using make_unsigned_t =
    conditional_t<sizeof(T) == 1, uint8_t,
                  conditional_t<sizeof(T) == 2, uint16_t, conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;

template <class To, class From>
constexpr To bit_cast(const From& from) {
  return __builtin_bit_cast(To, from);
}

template <class T>
struct numeric_limits;
template <>
struct numeric_limits<float> {
  static constexpr float min() { return 0x1p-126f; }
  static constexpr float max() { return 0x1.fffffep127f; }
  static constexpr float infinity() { return bit_cast<float>(0x7f800000u); }
  static constexpr float quiet_NaN() { return bit_cast<float>(0x7fc00000u); }
};
template <>
struct numeric_limits<double> {
  static constexpr double min() { return 0x1p-1022; }
  static constexpr double max() { return 0x1.fffffffffffffp1023; }
  static constexpr double infinity() { return bit_cast<double>(0x7ff0000000000000ull); }
  static constexpr double quiet_NaN() { return bit_cast<double>(0x7ff8000000000000ull); }
};

// A device has no long double.
#define RL_STANDARD(name)                             \
  inline float name(float x) { return ::name##f(x); } \
  inline double name(double x) { return ::name(x); }  \
  inline double name(long double x) { return ::name(static_cast<double>(x)); }
#define RL_STANDARD2(name)                                        \
  inline float name(float x, float y) { return ::name##f(x, y); } \
  inline double name(double x, double y) { return ::name(x, y); }
RL_STANDARD(exp)
RL_STANDARD(log)
RL_STANDARD(sin)
RL_STANDARD(cos)
RL_STANDARD(tan)
RL_STANDARD(asin)
RL_STANDARD(acos)
RL_STANDARD(atan)
RL_STANDARD(sinh)
RL_STANDARD(cosh)
RL_STANDARD(tanh)
RL_STANDARD(asinh)
RL_STANDARD(acosh)
RL_STANDARD(atanh)
RL_STANDARD(sqrt)
RL_STANDARD(fabs)
RL_STANDARD(floor)
RL_STANDARD(trunc)
RL_STANDARD(erf)
RL_STANDARD(erfc)
RL_STANDARD(lgamma)
RL_STANDARD(tgamma)
RL_STANDARD2(copysign)
RL_STANDARD2(fmod)
RL_STANDARD2(pow)
#undef RL_STANDARD
#undef RL_STANDARD2
inline float fma(float x, float y, float z) { return ::fmaf(x, y, z); }
inline double fma(double x, double y, double z) { return ::fma(x, y, z); }
inline float abs(float x) { return ::fabsf(x); }
inline double abs(double x) { return ::fabs(x); }
inline int32_t abs(int32_t x) { return x < 0 ? -x : x; }
inline int64_t abs(int64_t x) { return x < 0 ? -x : x; }
template <class T>
bool isinf(T x) {
  return x == numeric_limits<T>::infinity() || x == -numeric_limits<T>::infinity();
}
template <class T>
bool isfinite(T x) {
  return x - x == T(0);
}

}  // namespace std

namespace rushlight {

template <class... T>
struct TypeList {};

struct Half {
  uint16_t bits = 0;
  Half() = default;
  Half(float value) : bits(from_float(value)) {}
  operator float() const { return to_float(bits); }
  static uint16_t from_float(float value) {
    uint16_t h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(value));
    return h;
  }
  static float to_float(uint16_t h) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(h));
    return value;
  }
};

struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  BFloat16(float value) : bits(from_float(value)) {}
  operator float() const { return std::bit_cast<float>(uint32_t{bits} << 16); }
  static uint16_t from_float(float value) {
    uint16_t b;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(b) : "f"(value));
    return b;
  }
};

template <class T>
inline constexpr bool is_complex_v = false;

}  // namespace rushlight

#endif
