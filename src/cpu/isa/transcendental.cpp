#include "cpu/isa/lanes_double_inl.h"
#include "cpu/isa/lanes_float_inl.h"
#include "cpu/isa/loops_inl.h"

namespace rushlight::cpu::RL_ISA {

RL_TRANSCENDENTAL_FORMULAS(RL_FORMULA)

namespace {

#if defined(__AVX2__)
#define RL_IN_LANES(Formula, T, L) \
  template <>                      \
  struct InLanes<Formula, T> {     \
    using Function = L;            \
  };
RL_IN_LANES(Exp, float, ExpOfFloat)
RL_IN_LANES(Exp, double, ExpOfDouble)
RL_IN_LANES(Log, float, LogOfFloat<false>)
RL_IN_LANES(Log10, float, LogOfFloat<true>)
RL_IN_LANES(Log2, double, Log2OfDouble)
RL_IN_LANES(Logit, float, LogitOfFloat)
RL_IN_LANES(Sin, double, SineOfDouble<0>)
RL_IN_LANES(Cos, double, SineOfDouble<1>)
RL_IN_LANES(Tan, double, TanOfDouble)
RL_IN_LANES(Asin, float, AsinOfFloat)
RL_IN_LANES(Asin, double, ArcOfDouble<false>)
RL_IN_LANES(Acos, double, ArcOfDouble<true>)
RL_IN_LANES(Erf, float, ErfOfFloat)
#if defined(__AVX512F__)
RL_IN_LANES(Log, double, LogOfDouble)
RL_IN_LANES(Sqrt, float, SqrtOfFloat)
RL_IN_LANES(Sqrt, double, SqrtOfDouble)
#endif
#undef RL_IN_LANES
#endif

// Where vector functions of the library take a call for each argument, overflow for instance, and what they
// give there. 1/2 lies inside.
template <class F, class T>
struct Edges {};
template <class T>
struct Edges<Log1p, T> {
  static bool inside(T x) { return (x > T(-1)) & (x < formulas::kInf<T>); }
  static T outside(T x) { return x > 0 ? x : x == T(-1) ? -formulas::kInf<T> : formulas::kNan<T>; }
};
// Results below the least normal number are made of ones 2^kUp as large: added to 2^(kUp + kLeast) these are
// rounded as the result is, and the bits that they change are its own.
template <class T>
struct Edges<Exp2, T> {
  using Bits = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  static constexpr T kHigh = std::numeric_limits<T>::max_exponent, kLow = sizeof(T) == 4 ? -150 : -1075,
                     kLeast = std::numeric_limits<T>::min_exponent - 1, kUp = sizeof(T) == 4 ? 32 : 64,
                     kUnit = sizeof(T) == 4 ? T(0x1p-94) : T(0x1p-958);
  static bool inside(T x) { return (x >= kLeast) & (x < kHigh); }
  static T bounded(T x) { return (x > kLow) & (x < kLeast) ? x + kUp : T(0.5); }
  static T outside(T x, T found) {
    const T small = std::bit_cast<T>(std::bit_cast<Bits>(found + kUnit) - std::bit_cast<Bits>(kUnit));
    const T low = x < kLeast ? small : x, lower = x <= kLow ? T(0) : low;
    return x >= kHigh ? formulas::kInf<T> : lower;
  }
};
template <class T>
struct Edges<Expm1, T> {
  static constexpr T kHigh = sizeof(T) == 4 ? T(88.8) : T(709.9), kLow = sizeof(T) == 4 ? -20 : -40;
  static bool inside(T x) { return (x > kLow) & (x < kHigh); }
  static T outside(T x) { return x >= kHigh ? formulas::kInf<T> : x <= kLow ? T(-1) : x; }
};
template <class T>
struct Edges<Atanh, T> {
  static bool inside(T x) { return std::abs(x) < T(1); }
  static T outside(T x) { return std::abs(x) == T(1) ? x * formulas::kInf<T> : formulas::kNan<T>; }
};
template <class T>
struct Edges<Entr, T> {
  static bool inside(T x) { return (x > T(0)) & (x < formulas::kInf<T>); }
  static T outside(T x) { return x == T(0) ? T(0) : x == x ? -formulas::kInf<T> : x; }
};

// What stands in for an argument outside, and the result there: 1/2 and a constant, or, where an edge has
// `bounded`, a number whose result the other is made of.
template <class E, class T>
[[gnu::always_inline]] inline T bounded_by([[maybe_unused]] T x) {
  if constexpr (requires { E::bounded(x); })
    return E::bounded(x);
  else
    return T(0.5);
}
template <class E, class T>
[[gnu::always_inline]] inline T found_outside(T x, [[maybe_unused]] T found) {
  if constexpr (requires { E::bounded(x); })
    return E::outside(x, found);
  else
    return E::outside(x);
}

template <class F, class T>
void loop_inside(char* const* data, unsigned scalars, int64_t n, const void* parameters) {
  using E = Edges<F, T>;
  constexpr int64_t kBlock = 512;
  for (int64_t first = 0; first < n; first += kBlock) {
    const int64_t count = std::min(kBlock, n - first);
    T* out = reinterpret_cast<T*>(data[0]) + first;
    const T* x = reinterpret_cast<const T*>(data[1]) + first;
    char* block[] = {reinterpret_cast<char*>(out), data[1] + first * static_cast<int64_t>(sizeof(T))};
    std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t> outside = 0;  // of the size of T: a vector a step
    for (int64_t i = 0; i < count; ++i) outside |= E::inside(x[i]) ? 0 : 1;
    if (!outside) {
      loop<F, T>(block, scalars, count, parameters);
      continue;
    }
    T own[kBlock], bounded[kBlock];
    std::copy_n(x, count, own);  // the result may take its place
    for (int64_t i = 0; i < count; ++i) bounded[i] = E::inside(own[i]) ? own[i] : bounded_by<E>(own[i]);
    block[1] = reinterpret_cast<char*>(bounded);
    loop<F, T>(block, scalars, count, parameters);
    for (int64_t i = 0; i < count; ++i) {  // both are computed: branches would keep vectors away
      const T found = out[i], other = found_outside<E>(own[i], found);
      out[i] = E::inside(own[i]) ? found : other;
    }
  }
}

// Powers: vector functions of the library take a call for each base that is zero, as rectified numbers are.
template <class T>
void powers(char* const* data, unsigned scalars, int64_t n, const void* parameters) {
  constexpr int64_t kBlock = 512;
  for (int64_t first = 0; first < n; first += kBlock) {
    const int64_t count = std::min(kBlock, n - first), bases = scalars & 1 ? 1 : count;
    char* block[3] = {data[0] + first * static_cast<int64_t>(sizeof(T)), data[1], data[2]};
    for (int i : {1, 2})
      if (!(scalars >> (i - 1) & 1)) block[i] += first * static_cast<int64_t>(sizeof(T));
    const T* x = reinterpret_cast<const T*>(block[1]);
    std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t> zeros = 0;
    for (int64_t i = 0; i < bases; ++i) zeros |= x[i] == 0 ? 1 : 0;
    if (!zeros || bases == 1) {
      loop<Pow, T>(block, scalars, count, parameters);
      continue;
    }
    T own[kBlock], base[kBlock], exponent[kBlock];
    std::copy_n(x, count, own);  // the result may take the place of either
    for (int64_t i = 0; i < count; ++i) base[i] = own[i] == 0 ? T(1) : own[i];
    const T* y = reinterpret_cast<const T*>(block[2]);
    for (int64_t i = 0; i < count; ++i) exponent[i] = y[scalars & 2 ? 0 : i];
    block[1] = reinterpret_cast<char*>(base), block[2] = reinterpret_cast<char*>(exponent);
    loop<Pow, T>(block, 0, count, parameters);
    T* out = reinterpret_cast<T*>(block[0]);
    for (int64_t i = 0; i < count; ++i) {
      const T e = exponent[i], half = e * T(0.5);
      const bool odd = (std::floor(e) == e) & (std::floor(half) != half);
      const T low = e > 0 ? T(0) : e == 0 ? T(1) : e, value = e < 0 ? formulas::kInf<T> : low;
      const T power = odd ? std::copysign(value, own[i]) : value;
      out[i] = own[i] == 0 ? power : out[i];
    }
  }
}

template <class F, class T>
constexpr void put_faster([[maybe_unused]] FormulaLoops& row) {
#if defined(__AVX2__)
  if constexpr (requires { Edges<F, T>::inside(T{}); })
    row[static_cast<int>(dtype_of<T>)] = &loop_inside<F, T>;
  if constexpr (std::is_same_v<F, Pow>) row[static_cast<int>(dtype_of<T>)] = &powers<T>;
  put_in_lanes<F, T>(row);
#endif
}
template <class F>
constexpr FormulaLoops make_faster_row() {
  FormulaLoops row = make_row<F>();
  put_faster<F, float>(row);
  put_faster<F, double>(row);
  return row;
}

}  // namespace

#define RL_FASTER_ROW(name, ...) make_faster_row<name>(),
const FormulaLoops transcendental_loops[] = {RL_TRANSCENDENTAL_FORMULAS(RL_FASTER_ROW)};

}  // namespace rushlight::cpu::RL_ISA
