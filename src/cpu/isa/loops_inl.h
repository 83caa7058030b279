// Makes the inner loops of a list of formulas; included by the files of this folder only.
#pragma once
#include <algorithm>
#include <cstring>

#include "cpu/isa/half_inl.h"
#include "cpu/isa/pairs_inl.h"
#include "cpu/isa/tables.h"
#include "cpu/loops.h"
#include "cpu/truth.h"
#include "formulas/activation_math.h"
#include "formulas/math.h"

namespace rushlight::cpu::RL_ISA {
namespace {

// Scalar library functions, and most of what is done with complex numbers, gain nothing from wide registers:
// one copy of them will do.
#if defined(__AVX2__) || defined(RL_NEON)
template <class...>
using Once = TypeList<>;
#else
template <class... T>
using Once = TypeList<T...>;
#endif
using SmallInts = TypeList<uint8_t, int8_t, int16_t, int32_t, int64_t>;
template <class... T>
struct Exact {
  using List = Concat<T...>;
  static constexpr bool kPadded = false, kSpaced = false;
};
template <class... T>
struct Padded : Exact<T...> {
  static constexpr bool kPadded = true;
};
// Formulas whose parameter tells the spacing of numbers, see formulas/special_math.h.
template <class... T>
struct Spaced : Exact<T...> {
  static constexpr bool kSpaced = true;
};
// Read and written in one pass where the formula is cheap; expensive ones meet chunks converted to float.
using Halves = TypeList<Half, BFloat16>;
using Products = Exact<SmallInts, TypeList<float, double, complex64, complex128>, Halves, Once<bool>>;
using Quotients = Exact<TypeList<float, double, complex64, complex128>, Halves>;
using Numbers = Exact<SmallInts, TypeList<float, double>, Halves, Once<bool, complex64, complex128>>;
using Real = Exact<SmallInts, TypeList<float, double>, Halves, Once<bool, uint64_t>>;
// Halves and truth values have loops in bits.cpp.
using RealB = Exact<SmallInts, TypeList<float, double>, Once<uint64_t>>;
using FloatingB = Exact<TypeList<float, double>>;
using Comparable = Exact<SmallInts, TypeList<float, double>, Halves, Once<complex64, complex128>>;
using Ordered = Exact<SmallInts, TypeList<float, double>, Halves, Once<uint64_t>>;
using Integers = Exact<SmallInts, Once<bool>>;
using Shiftable = Exact<SmallInts>;
using Wide = Exact<Once<int64_t>>;
using Divisible = Exact<TypeList<uint8_t, int8_t, int16_t, int32_t>, Once<int64_t, uint64_t>>;
using WideDivisible = Exact<SmallInts, Once<uint64_t>>;
using Boolean = Exact<TypeList<bool>>;
using Floating = Exact<TypeList<float, double>, Halves>;
using FloatingP = Spaced<TypeList<float, double>, Halves>;
using Guessed = Exact<TypeList<float, double>, Halves>;
// Where a formula is so long that halves are not worth loops of their own.
using GuessedV = Exact<TypeList<float, double>>;
using Fields = Exact<TypeList<float, double>, Halves, Once<complex64, complex128>>;
using ComplexV = Exact<Once<complex64, complex128>>;
using FloatingV = Padded<TypeList<float, double>>;
using FieldsV = Padded<TypeList<float, double>, Once<complex64, complex128>>;
using SingleV = Padded<TypeList<float>, Once<double>>;
// Where float has no library function that the compiler would have to call for halves.
using FloatingH = Padded<TypeList<float, double>, Halves>;
using FieldsH = Padded<TypeList<float, double>, Halves, Once<complex64, complex128>>;
using SingleH = Padded<TypeList<float>, Halves>;
using FloatingS = Exact<Once<float, double>>;

template <class T, FormulaResult R>
struct ResultOf {
  using type = T;
};
template <class T>
struct ResultOf<T, FormulaResult::Bool> {
  using type = bool;
};
template <class T>
struct ResultOf<std::complex<T>, FormulaResult::Part> {
  using type = T;
};

// One pass over bfloat16 by pairs, see pairs_inl.h. Results are rounded in a loop of their own: in that of
// the formula the compiler would round each outcome of a choice in its branch.
template <class F, unsigned Scalars>
inline void pass_pairs(BFloat16* out, const BFloat16* const* inputs, int64_t n, const float* parameters) {
  constexpr bool kX = !(Scalars & 1), kY = F::kInputs > 1 && !(Scalars & 2), kZ = F::kInputs > 2;
  constexpr int64_t kBlock = 128;
  float p[F::kParameters + 1] = {}, values[2 * kBlock];
  std::copy_n(parameters, F::kParameters, p);
  const BFloat16 *x = inputs[0], *y = kY ? inputs[1] : x, *z = kZ ? inputs[2] : x;
  const float same_x = kX ? 0.0f : static_cast<float>(*x),
              same_y = F::kInputs > 1 && !kY ? static_cast<float>(*inputs[1]) : 0.0f;
  const auto value = [&](float a, float b, float c) {
    return static_cast<float>(F::template apply<float>(kX ? a : same_x, kY ? b : same_y, kZ ? c : 0.0f, p));
  };
  const Pair *xs = reinterpret_cast<const Pair*>(x), *ys = reinterpret_cast<const Pair*>(y),
             *zs = reinterpret_cast<const Pair*>(z);
  const int64_t pairs = n / 2;
  for (int64_t first = 0; first < pairs; first += kBlock) {
    const int64_t count = std::min(kBlock, pairs - first);
    float* second = values + count;
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) {
      const uint32_t a = kX ? xs[first + i] : 0u, b = kY ? ys[first + i] : 0u, c = kZ ? zs[first + i] : 0u;
      values[i] = value(lower_number(a), lower_number(b), lower_number(c));
      second[i] = value(upper_number(a), upper_number(b), upper_number(c));
    }
    join_pairs(values, out + 2 * first, 2 * count);
  }
  if (n % 2 == 0) return;
  const auto last = [n](const BFloat16* from, bool read) {
    return read ? static_cast<float>(from[n - 1]) : 0.0f;
  };
  out[n - 1] = BFloat16(value(last(x, kX), last(y, kY), last(z, kZ)));
}
template <class F>
inline void pass_pairs(BFloat16* out, const BFloat16* x, const BFloat16* y, const BFloat16* z,
                       unsigned scalars, int64_t n, const float* p) {
  const BFloat16* const inputs[3] = {x, y, z};
  if constexpr (F::kInputs == 2) {
    if (scalars == 1) return pass_pairs<F, 1>(out, inputs, n, p);
    if (scalars == 2) return pass_pairs<F, 2>(out, inputs, n, p);
  }
  pass_pairs<F, 0>(out, inputs, n, p);
}

// One pass over n elements. The pragma says that a result written never changes a later operand: operands are
// equal to the result (in place) or apart.
template <class F, class T, class R>
[[gnu::always_inline]] inline void pass(R* out, const Stored<T>* x, const Stored<T>* y, const Stored<T>* z,
                                        unsigned scalars, int64_t n, const compute_type<T>* p) {
  using C = compute_type<T>;
  if constexpr (std::is_same_v<T, BFloat16> && std::is_same_v<R, BFloat16>) {
    pass_pairs<F>(out, x, y, z, scalars, n, p);
  } else if constexpr (F::kInputs == 1) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = R(F::template apply<C>(C(x[i]), C{}, C{}, p));
  } else if constexpr (F::kInputs == 2) {
    if (scalars == 0) {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) out[i] = R(F::template apply<C>(C(x[i]), C(y[i]), C{}, p));
    } else if (!F::Types::kPadded && scalars == 1) {
      const C value = C(*x);
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) out[i] = R(F::template apply<C>(value, C(y[i]), C{}, p));
    } else {
      const C value = C(*y);
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) out[i] = R(F::template apply<C>(C(x[i]), value, C{}, p));
    }
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = R(F::template apply<C>(C(x[i]), C(y[i]), C(z[i]), p));
  }
}

// The same for halves, of blocks; Scalars has the bits of `scalars`. The last block is padded.
template <class F, class R, unsigned Scalars>
inline void pass_halves(R* out, const Half* const* inputs, int64_t n, const float* parameters) {
  float p[F::kParameters + 1] = {};  // in reach: a choice between two of them needs no branch
  std::copy_n(parameters, F::kParameters, p);
  float wide[3][kHalfBlock] = {};
  for (int i = 0; i < F::kInputs; ++i)
    if (Scalars >> i & 1)
      for (float& value : wide[i]) value = *inputs[i];
  auto block = [&](const Half* x, const Half* y, const Half* z, R* to) {
    float a[kHalfBlock], b[kHalfBlock], c[kHalfBlock];
    if constexpr (!(Scalars & 1)) widen_block(x, a);
    if constexpr (F::kInputs > 1 && !(Scalars & 2)) widen_block(y, b);
    if constexpr (F::kInputs > 2) widen_block(z, c);
    auto value = [&](int i) {
      return F::template apply<float>(Scalars & 1 ? wide[0][i] : a[i],
                                      F::kInputs < 2 ? 0.0f
                                      : Scalars & 2  ? wide[1][i]
                                                     : b[i],
                                      F::kInputs < 3 ? 0.0f : c[i], p);
    };
    if constexpr (std::is_same_v<R, Half>) {
      float result[kHalfBlock];
      for (int i = 0; i < kHalfBlock; ++i) result[i] = value(i);
      narrow_block(result, to);
    } else {
      for (int i = 0; i < kHalfBlock; ++i) to[i] = R(value(i));
    }
  };
  const Half *x = inputs[0], *y = F::kInputs > 1 ? inputs[1] : x, *z = F::kInputs > 2 ? inputs[2] : x;
  int64_t i = 0;
  for (; i + kHalfBlock <= n; i += kHalfBlock) block(x + i, y + i, z + i, out + i);
  if (i == n) return;
  Half pad[3][kHalfBlock];
  R result[kHalfBlock];
  const Half* from[3] = {x, y, z};
  for (int k = 0; k < F::kInputs; ++k)
    if (!(Scalars >> k & 1)) std::memcpy(pad[k], from[k] + i, static_cast<size_t>(n - i) * sizeof(Half));
  block(pad[0], pad[1], pad[2], result);
  std::memcpy(out + i, result, static_cast<size_t>(n - i) * sizeof(R));
}
template <class F, class R>
inline void pass_halves(R* out, const Half* x, const Half* y, const Half* z, unsigned scalars, int64_t n,
                        const float* p) {
  const Half* const inputs[3] = {x, y, z};
  if constexpr (F::kInputs == 2) {
    if (scalars == 1) return pass_halves<F, R, 1>(out, inputs, n, p);
    if (scalars == 2) return pass_halves<F, R, 2>(out, inputs, n, p);
  }
  pass_halves<F, R, 0>(out, inputs, n, p);
}

// Vector functions and their scalar cousins differ in the last bit: the tail goes through the vector
// functions too, so that a value does not depend on where in the tensor it stands.
constexpr int64_t kPad = 16;

// One copy for the whole part and for the padded rest: of two, the compiler may give one the vector functions
// and the other, whose length it knows, scalar ones.
template <class F, class T, class R>
[[gnu::noinline]] void pass_padded(R* out, const T* x, const T* y, const T* z, unsigned scalars, int64_t n,
                                   const compute_type<T>* p) {
  pass<F, T, R>(out, x, y, z, scalars, n & -kPad, p);
}

// A first operand that is the same for all, as the gradient of a sum is, by copies of it: the compiler would
// not inline a formula that is long into three loops, and then computes one number at a time.
template <class F, class T, class R>
void pass_repeated(R* out, const T* x, const T* y, int64_t n, const compute_type<T>* p) {
  constexpr int64_t kBlock = 512;
  T same[kBlock];
  std::fill_n(same, std::min(n, kBlock), *x);
  for (int64_t first = 0; first < n; first += kBlock)
    pass_padded<F, T, R>(out + first, same, y + first, nullptr, 0, std::min(kBlock, n - first), p);
}

// Formulas that give a guess, such as formulas::Guess: values by blocks, and once more, gathered, where they
// are in doubt. Blocks of functions are padded, see kPad.
template <class F, class T>
inline void pass_guesses(T* out, const T* x, const T* y, unsigned scalars, int64_t n,
                         const compute_type<T>* p) {
  using C = compute_type<T>;
  constexpr int64_t kBlock = 256;
  C a[kBlock], b[kBlock], values[kBlock], marks[kBlock];
  if (scalars & 1) std::fill_n(a, kBlock, C(*x));
  if (scalars & 2) std::fill_n(b, kBlock, C(*y));
  for (int64_t first = 0; first < n; first += kBlock) {
    const int64_t count = std::min(kBlock, n - first), padded = (count + kPad - 1) & -kPad;
    if (!(scalars & 1)) widen(x + first, a, count);
    if (F::kInputs > 1 && !(scalars & 2)) widen(y + first, b, count);
    for (int64_t i = count; i < padded; ++i) a[i] = a[count - 1], b[i] = b[count - 1];
    unsigned doubts = 0;
    for (int64_t i = 0; i < padded; ++i) {
      const auto guess = F::template apply<C>(a[i], b[i], C{}, p);
      values[i] = guess.value;
      marks[i] = guess.in_doubt ? C(1) : C(0);
      doubts += guess.in_doubt;
    }
    if (doubts) {
      C again[2][kBlock], sure[kBlock];
      int64_t at[kBlock], found = 0;
      for (int64_t i = 0; i < padded; ++i) {  // without a branch that would be guessed wrong
        again[0][found] = a[i], again[1][found] = b[i], at[found] = i;
        found += marks[i] != C(0);
      }
      const int64_t whole = (found + kPad - 1) & -kPad;
      for (int64_t k = found; k < whole; ++k)
        again[0][k] = again[0][found - 1], again[1][k] = again[1][found - 1];
      for (int64_t k = 0; k < whole; ++k) sure[k] = C(F::template apply<C>(again[0][k], again[1][k], C{}, p));
      for (int64_t k = 0; k < found; ++k) values[at[k]] = sure[k];
    }
    narrow(values, out + first, count);
  }
}

template <class F, class T>
void loop(char* const* data, unsigned scalars, int64_t n, const void* parameters) {
  using R = typename ResultOf<T, F::kResult>::type;
  using C = compute_type<T>;
  C p[F::kParameters + 1] = {};
  for (int i = 0; i < F::kParameters; ++i) p[i] = static_cast<const C*>(parameters)[i];
  auto* out = reinterpret_cast<R*>(data[0]);
  using In = Stored<T>;
  auto input = [&](int i) { return F::kInputs >= i ? reinterpret_cast<const In*>(data[i]) : nullptr; };
  const In *x = input(1), *y = F::kInputs > 1 ? input(2) : nullptr, *z = F::kInputs > 2 ? input(3) : nullptr;
  if constexpr (requires { F::template apply<C>(C{}, C{}, C{}, p).in_doubt; }) {
    pass_guesses<F>(out, x, y, scalars, n, p);
  } else if constexpr (std::is_same_v<T, Half>) {
    pass_halves<F, R>(out, x, y, z, scalars, n, p);
  } else if constexpr (F::Types::kSpaced) {  // that of T is the rule, and worth a loop of its own
    constexpr C kOwn[1] = {};
    if (p[0] == 0)
      pass<F, T, R>(out, x, y, z, scalars, n, kOwn);
    else
      pass<F, T, R>(out, x, y, z, scalars, n, p);
  } else if constexpr (!F::Types::kPadded) {
    pass<F, T, R>(out, x, y, z, scalars, n, p);
  } else {
    const int64_t whole = n & -kPad, rest = n - whole;
    const bool repeated = F::kInputs == 2 && scalars == 1;
    if (repeated)
      pass_repeated<F, T, R>(out, x, y, whole, p);
    else if (whole)
      pass_padded<F, T, R>(out, x, y, z, scalars, whole, p);
    if (!rest) return;
    T pad[3][kPad];
    R result[kPad];
    const T* source[3] = {x, y, z};
    for (int i = 0; i < F::kInputs; ++i) {
      const bool scalar = scalars >> i & 1;
      const T* from = scalar ? source[i] : source[i] + whole;
      for (int64_t j = 0; j < kPad; ++j) pad[i][j] = from[scalar ? 0 : j < rest ? j : rest - 1];
    }
    pass_padded<F, T, R>(result, pad[0], pad[1], pad[2], repeated ? 0 : scalars, kPad, p);
    std::memcpy(out + whole, result, static_cast<size_t>(rest) * sizeof(R));
  }
}

template <class F, class... T>
constexpr void fill_row(FormulaLoops& row, TypeList<T...>) {
  ((row[static_cast<int>(dtype_of<T>)] = &loop<F, T>), ...);
}
template <class F>
constexpr FormulaLoops make_row() {
  FormulaLoops row{};
  fill_row<F>(row, typename F::Types::List{});
  return row;
}

}  // namespace

#define RL_FORMULA(name, inputs, parameters, types, result, ...)                        \
  namespace {                                                                           \
  struct name {                                                                         \
    static constexpr int kInputs = inputs, kParameters = parameters;                    \
    static constexpr FormulaResult kResult = FormulaResult::result;                     \
    using Types = types;                                                                \
    template <class T>                                                                  \
    static auto apply([[maybe_unused]] T x, [[maybe_unused]] T y, [[maybe_unused]] T z, \
                      [[maybe_unused]] const T* p) {                                    \
      using namespace formulas;                                                         \
      return __VA_ARGS__;                                                               \
    }                                                                                   \
  };                                                                                    \
  }
#define RL_FORMULA_ROW(name, ...) make_row<name>(),

// Defines `table`, the loops of the formulas in `list`.
#define RL_DEFINE_LOOPS(table, list) list(RL_FORMULA) const FormulaLoops table[] = {list(RL_FORMULA_ROW)};

}  // namespace rushlight::cpu::RL_ISA
