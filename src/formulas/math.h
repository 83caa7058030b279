// Arithmetic of numbers, integers and complex numbers for formulas: products, quotients, remainders, powers.
#pragma once
#include "formulas/library_math.h"

namespace rushlight::formulas {

template <class T>
inline constexpr T kPi = T(3.14159265358979323846);
template <class T>
inline constexpr T kNan = std::numeric_limits<T>::quiet_NaN();
template <class T>
inline constexpr T kInf = std::numeric_limits<T>::infinity();

// Without the standard's recovery of infinities, which would cost a branch an element (PyTorch has none
// either).
template <class T>
RL_HD inline T mul(T x, T y) {
  if constexpr (is_complex_v<T>)
    return T(x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real());
  else if constexpr (std::is_same_v<T, bool>)
    return x && y;
  else if constexpr (std::is_integral_v<T>)
    return T(std::make_unsigned_t<decltype(x * y)>(x) * std::make_unsigned_t<decltype(x * y)>(y));
  else
    return x * y;
}
// Integers wrap around.
template <class T>
RL_HD inline T add(T x, T y) {
  if constexpr (std::is_same_v<T, bool>)
    return x || y;
  else if constexpr (std::is_integral_v<T>)
    return T(std::make_unsigned_t<T>(x) + std::make_unsigned_t<T>(y));
  else
    return x + y;
}
template <class T>
RL_HD inline T sub(T x, T y) {
  if constexpr (std::is_same_v<T, bool>)
    return x != y;
  else if constexpr (std::is_integral_v<T>)
    return T(std::make_unsigned_t<T>(x) - std::make_unsigned_t<T>(y));
  else
    return x - y;
}
template <class T>
RL_HD inline T neg(T x) {
  if constexpr (std::is_integral_v<T>)
    return sub(T(0), x);
  else
    return -x;
}
template <class T>
RL_HD inline T div(T x, T y) {
  if constexpr (is_complex_v<T>) {  // Smith's scaling, as PyTorch's complex division; without branches
    using P = typename T::value_type;
    const P a = x.real(), b = x.imag(), c = y.real(), d = y.imag();
    const bool wide = std::abs(c) >= std::abs(d), zero = (c == 0) & (d == 0);
    const P large = wide ? c : d, small = wide ? d : c, r = small / large, s = P(1) / (large + small * r);
    const P first = wide ? a : b, second = wide ? b : a, product = first * r;
    const P real = (first + second * r) * s;
    const P imag = ((wide ? second : product) - (wide ? product : second)) * s;
    return T(zero ? a / std::abs(c) : real, zero ? b / std::abs(d) : imag);
  } else {
    return x / y;
  }
}

template <class T>
RL_HD inline bool is_nan(T x) {
  if constexpr (is_complex_v<T>)
    return is_nan(x.real()) || is_nan(x.imag());
  else
    return x != x;
}
template <class T>
RL_HD inline bool is_inf(T x) {
  if constexpr (is_complex_v<T>)
    return is_inf(x.real()) || is_inf(x.imag());
  else
    return std::abs(x) == kInf<T>;
}
template <class T>
RL_HD inline bool is_finite(T x) {
  if constexpr (is_complex_v<T>)
    return is_finite(x.real()) && is_finite(x.imag());
  else
    return std::abs(x) < kInf<T>;
}

// NaN in either operand gives NaN.
template <class T>
RL_HD inline T max(T x, T y) {
  if constexpr (std::is_floating_point_v<T>)
    return (x > y) | (x != x) ? x : y;
  else
    return x > y ? x : y;
}
template <class T>
RL_HD inline T min(T x, T y) {
  if constexpr (std::is_floating_point_v<T>)
    return (x < y) | (x != x) ? x : y;
  else
    return x < y ? x : y;
}
// Between two bounds; NaN in any of the three gives NaN. (Of min(max(...)) the compiler makes no vectors.)
template <class T>
RL_HD inline T clamp_between(T x, T low, T high) {
  const T raised = max(x, low), bounded = raised < high ? raised : high;
  if constexpr (std::is_floating_point_v<T>) return raised != raised ? raised : bounded;
  return bounded;
}
// The same against a bound, of which only the whole loop asks whether it is NaN: one instruction for each
// element.
template <class T>
RL_HD inline T at_least(T x, T low) {
  const T bounded = x < low ? low : x;
  return low == low ? bounded : low;
}
template <class T>
RL_HD inline T at_most(T x, T high) {
  const T bounded = x > high ? high : x;
  return high == high ? bounded : high;
}

template <class T>
RL_HD inline auto abs(T x) {
  if constexpr (is_complex_v<T>)
    return hypot(x.real(), x.imag());
  else if constexpr (std::is_floating_point_v<T>)
    return std::abs(x);
  else if constexpr (std::is_unsigned_v<T>)
    return x;
  else
    return x < 0 ? sub(T(0), x) : x;
}
template <class T>
RL_HD inline T sign(T x) {
  if constexpr (is_complex_v<T>) {
    const auto m = abs(x);
    return m == 0 ? T(0) : T(x.real() / m, x.imag() / m);
  } else if constexpr (std::is_unsigned_v<T>) {
    return T(x != 0);
  } else if constexpr (std::is_floating_point_v<T>) {  // of numbers: differences of truths would be converted
    return (x > T(0) ? T(1) : T(0)) - (x < T(0) ? T(1) : T(0));
  } else {
    return T((T(0) < x) - (x < T(0)));
  }
}
template <class T>
RL_HD inline auto angle(T x) {
  if constexpr (is_complex_v<T>)
    return atan2(x.imag(), x.real());
  else
    return x != x ? x : x < 0 ? kPi<T> : T(0);
}
template <class T>
RL_HD inline T conj(T x) {
  if constexpr (is_complex_v<T>)
    return T(x.real(), -x.imag());
  else
    return x;
}
template <class T>
RL_HD inline T log2(T x)
  requires Complex<T>
{
  return log(x) * typename T::value_type(1.44269504088896340736);
}
template <class T>
RL_HD inline T log10(T x)
  requires Complex<T>
{
  return log(x) * typename T::value_type(0.43429448190325182765);
}
template <class T>
RL_HD inline T exp2(T x)
  requires Complex<T>
{
  return exp(x * typename T::value_type(0.69314718055994530942));
}
template <class T>
RL_HD inline T log1p(T z)
  requires Complex<T>
{  // accurate near zero: |1+z| from the parts
  using P = typename T::value_type;
  const P x = z.real(), y = z.imag(), magnitude = abs(z), theta = atan2(y, x + P(1));
  if (magnitude < P(0.5)) {
    const P r = x * (P(2) + x) + y * y;
    return r == 0 ? T(x, theta) : T(P(0.5) * log1p(r), theta);
  }
  return T(log(hypot(x + P(1), y)), theta);
}
template <class T>
RL_HD inline T expm1(T z)
  requires Complex<T>
{
  using P = typename T::value_type;
  const P x = z.real(), y = z.imag(), a = sin(y / 2), er = expm1(x);
  return T(er * cos(y) - P(2) * a * a, (er + P(1)) * sin(y));
}

template <class T>
RL_HD inline T power(T x, T y) {
  if constexpr (is_complex_v<T>)
    return RL_COMPLEX_STD::pow(x, y);  // 0j ** 0j is not a number, as in PyTorch
  else {
#ifdef __CUDA_ARCH__
    return pow(x, y);
#else  // by the magnitude, as the vector versions take a call for each negative base
    const T value = pow(std::abs(x), y), half = y * T(0.5);
    const bool whole = std::floor(y) == y, odd = whole && std::floor(half) != half;
    const T signed_value = odd ? std::copysign(value, x) : value;
    return x < 0 && std::abs(x) != kInf<T> && !whole ? kNan<T> : signed_value;
#endif
  }
}
// Integer power by squaring; a negative exponent leaves only the powers of 1 and -1.
template <class T>
RL_HD inline T integer_power(T base, T exponent) {
  if constexpr (std::is_signed_v<T>) {
    if (exponent < 0) return base == 1 ? T(1) : base == -1 ? (exponent % 2 ? T(-1) : T(1)) : T(0);
  }
  T result = 1;
  for (; exponent > 0; exponent /= 2, base = mul(base, base))
    if (exponent % 2) result = mul(result, base);
  return result;
}

// x / y of integers of at most 32 bits, towards zero: by floats that hold them, for which there are vector
// instructions. The nearest quotient that is no integer is further off than they round.
template <class T>
inline constexpr bool is_narrow = std::is_integral_v<T> && sizeof(T) <= 4;
template <class T>
RL_HD inline T narrow_quotient(T x, T y) {
  using F = std::conditional_t<sizeof(T) == 4, double, float>;
  const bool negated = std::is_signed_v<T> && y == T(-1);
  const T q = static_cast<T>(static_cast<F>(x) / static_cast<F>(y == 0 || negated ? T(1) : y));
  return negated ? sub(T(0), x) : y == 0 ? T(0) : q;
}

// What fmod leaves, with the sign of the divisor: y or -0 is added, which changes nothing; chosen by bits, as
// a branch would be taken at random.
template <Real T>
RL_HD inline T with_sign_of_divisor(T m, T y) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  const Bits chosen = Bits(0) - Bits((m != 0) & ((y < 0) != (m < 0)));
  return m + std::bit_cast<T>((std::bit_cast<Bits>(y) & chosen) | (std::bit_cast<Bits>(T(-0.0)) & ~chosen));
}
// Python's modulo: the sign of the divisor.
template <class T>
RL_HD inline T remainder(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    return with_sign_of_divisor(fmod(x, y), y);
  } else if constexpr (is_narrow<T>) {
    const T m = y == 0 ? T(0) : sub(x, mul(narrow_quotient(x, y), y));
    return (m != 0) & ((y < 0) != (m < 0)) ? add(m, y) : m;
  } else if constexpr (std::is_unsigned_v<T>) {
    return y == 0 ? T(0) : x % y;  // the operator refuses zero divisors beforehand
  } else {
    if (y == -1 || y == 0) return 0;
    const T m = x % y;
    return m + (y & -T((m != 0) & ((y ^ m) < 0)));  // without a branch that would be guessed wrong
  }
}
// PyTorch's floor division of floats, by what is left of x: exact where the quotient is near an integer.
template <Real T>
RL_HD inline T floor_quotient(T x, T y, T rest) {
  T q = (x - rest) / y;
  q -= rest != 0 && (y < 0) != (rest < 0) ? T(1) : T(0);
  const T f = floor(q), whole = q - f > T(0.5) ? f + T(1) : f;
  return q == 0 ? copysign(T(0), x / y) : whole;
}
template <class T>
RL_HD inline T floor_divide(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    return y == 0 ? x / y : floor_quotient(x, y, fmod(x, y));
  } else if constexpr (is_narrow<T>) {
    const T q = narrow_quotient(x, y), rest = sub(x, mul(q, y));
    return (y != 0) & (rest != 0) & ((x < 0) != (y < 0)) ? sub(q, T(1)) : q;
  } else if constexpr (std::is_unsigned_v<T>) {
    return y == 0 ? T(0) : x / y;
  } else {
    if (y == -1 || y == 0) return y == 0 ? T(0) : sub(T(0), x);
    const T q = x / y;
    return q - T((x - q * y != 0) & ((x ^ y) < 0));
  }
}
template <class T>
RL_HD inline T trunc_divide(T x, T y) {
  if constexpr (std::is_floating_point_v<T>)
    return trunc(x / y);
  else if constexpr (is_narrow<T>)
    return narrow_quotient(x, y);
  else if constexpr (std::is_unsigned_v<T>)
    return y == 0 ? T(0) : x / y;
  else
    return y == 0 ? T(0) : y == -1 ? sub(T(0), x) : T(x / y);
}
// A value without branches, and whether it is in doubt: a loop computes values, and calls the exact function
// where one is. (A bool would keep the compiler from vectors.)
template <class T, T (*Exact)(T, T)>
struct Guess {
  T value;
  unsigned in_doubt;
  T x, y;
  RL_HD operator T() const { return in_doubt ? Exact(x, y) : value; }
};
// Functions of doubles near 0, where they need no library; complex numbers and floats have one form.
#ifdef __CUDACC__
#define RL_GUESSED(name, reach, near_value) \
  template <class T>                        \
  RL_HD inline T guessed_##name(T x) {      \
    return name(x);                         \
  }
#else
template <double (*Library)(double)>
struct LibraryGuess {
  double value, x;
  unsigned in_doubt;
  [[gnu::always_inline]] operator double() const {
    const double far = Library(x);
    return in_doubt ? far : value;
  }
};
#define RL_GUESSED(name, reach, near_value)                                                    \
  template <class T>                                                                           \
  [[gnu::always_inline]] inline auto guessed_##name(T x) {                                     \
    if constexpr (std::is_same_v<T, double>)                                                   \
      return LibraryGuess<static_cast<double (*)(double)>(::name)>{near_value, x,              \
                                                                   !(std::fabs(x) < (reach))}; \
    else                                                                                       \
      return name(x);                                                                          \
  }
#endif
RL_GUESSED(sin, 0x1p20, x == 0 ? x : near_sin(x))
RL_GUESSED(cos, 0x1p20, near_cos(x))
RL_GUESSED(tan, 0x1p20, x == 0 ? x : near_tan(x))
RL_GUESSED(cosh, 700, near_cosh(x))
#undef RL_GUESSED
#ifdef __CUDACC__
template <class T>
RL_HD inline T guessed_fmod(T x, T y) {
  return fmod(x, y);
}
template <class T>
RL_HD inline T guessed_remainder(T x, T y) {
  return remainder(x, y);
}
template <class T>
RL_HD inline T guessed_floor_divide(T x, T y) {
  return floor_divide(x, y);
}
template <class T>
RL_HD inline T guessed_trunc_divide(T x, T y) {
  return trunc_divide(x, y);
}
#else
template <Real T>
[[gnu::always_inline]] inline Guess<T, fmod<T> > guessed_fmod(T x, T y) {
  T value;
  const bool holds = near_fmod(x, y, value);
  return {value, !holds, x, y};
}
template <Real T>
[[gnu::always_inline]] inline Guess<T, remainder<T> > guessed_remainder(T x, T y) {
  T value;
  const bool holds = near_fmod(x, y, value);
  return {with_sign_of_divisor(value, y), !holds, x, y};
}
// Integers of 64 bits as doubles, which hold both them and the quotient up to 2^51: there are vector
// instructions for those. Narrower ones need no guess.
struct NearQuotient {
  double x, y, quotient, rest;  // x = quotient y + rest, cut towards zero
  unsigned in_doubt;
};
[[gnu::always_inline]] inline double near_double(int64_t x) {
  constexpr double kRound = 0x1.8p52;
  return std::bit_cast<double>(std::bit_cast<uint64_t>(kRound) + static_cast<uint64_t>(x)) - kRound;
}
[[gnu::always_inline]] inline int64_t near_integer(double x) {
  constexpr double kRound = 0x1.8p52;
  return static_cast<int64_t>(std::bit_cast<uint64_t>(x + kRound) - std::bit_cast<uint64_t>(kRound));
}
[[gnu::always_inline]] inline NearQuotient near_quotient(int64_t a, int64_t b) {
  constexpr uint64_t kReach = uint64_t{1} << 51;
  const bool far = ((uint64_t(a) + kReach) | (uint64_t(b) + kReach)) >> 52 | (b == 0);
  const double x = near_double(a), y = near_double(b), quotient = std::trunc(x / y);
  return {x, y, quotient, x - quotient * y, far};
}
template <std::signed_integral T>
  requires(sizeof(T) == 8)
[[gnu::always_inline]] inline auto guessed_trunc_divide(T x, T y) {
  const NearQuotient q = near_quotient(x, y);
  return Guess<T, trunc_divide<T> >{near_integer(q.quotient), q.in_doubt, x, y};
}
template <std::signed_integral T>
  requires(sizeof(T) == 8)
[[gnu::always_inline]] inline auto guessed_floor_divide(T x, T y) {
  const NearQuotient q = near_quotient(x, y);
  const double below = (q.rest < 0) != (q.y < 0) && q.rest != 0 ? 1.0 : 0.0;
  return Guess<T, floor_divide<T> >{near_integer(q.quotient - below), q.in_doubt, x, y};
}
template <std::signed_integral T>
  requires(sizeof(T) == 8)
[[gnu::always_inline]] inline auto guessed_remainder(T x, T y) {
  const NearQuotient q = near_quotient(x, y);
  const double moved = (q.rest < 0) != (q.y < 0) && q.rest != 0 ? q.y : 0.0;
  return Guess<T, remainder<T> >{near_integer(q.rest + moved), q.in_doubt, x, y};
}
template <std::integral T>
[[gnu::always_inline]] inline T guessed_trunc_divide(T x, T y) {
  return trunc_divide(x, y);
}
template <std::integral T>
[[gnu::always_inline]] inline T guessed_floor_divide(T x, T y) {
  return floor_divide(x, y);
}
template <std::integral T>
[[gnu::always_inline]] inline T guessed_remainder(T x, T y) {
  return remainder(x, y);
}
[[gnu::always_inline]] inline Guess<double, floor_divide<double> > guessed_floor_divide(double x, double y) {
  double rest;
  const bool holds = near_fmod(x, y, rest);
  return {floor_quotient(x, y, rest), !holds, x, y};
}
#endif
template <class T>
RL_HD inline T gcd(T x, T y) {
  using U = std::make_unsigned_t<T>;  // the least number has no opposite among signed ones
  U a = x < 0 ? U(0) - U(x) : U(x), b = y < 0 ? U(0) - U(y) : U(y);
  while (a != 0) {
    const U c = a;
    a = U(b % a);
    b = c;
  }
  return T(b);
}
template <class T>
RL_HD inline T lcm(T a, T b) {
  const T g = gcd(a, b);
  return g == 0 ? T(0) : abs(mul(T(a / g), b));
}
// Shifts by the width or more, or by a negative count, shift everything out.
template <class T>
RL_HD inline T shift_left(T x, T n) {
  using U = std::make_unsigned_t<T>;
  return n < 0 || n >= T(8 * sizeof(T)) ? T(0) : T(U(x) << n);
}
template <class T>
RL_HD inline T shift_right(T x, T n) {
  if (n < 0 || n >= T(8 * sizeof(T))) return x < 0 ? T(-1) : T(0);
  return T(x >> n);
}

}  // namespace rushlight::formulas
