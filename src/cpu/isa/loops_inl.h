// Makes the inner loops of a list of formulas; included by the files of this folder only.
#pragma once
#include <cstring>

#include "cpu/isa/tables.h"
#include "cpu/loops.h"
#include "formulas/activation_math.h"
#include "formulas/math.h"

namespace rushlight::cpu::RL_ISA {
namespace {

// Complex numbers and scalar library functions gain nothing from wide registers: one copy of them will do.
#ifdef __AVX2__
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
  static constexpr bool kPadded = false;
};
template <class... T>
struct Padded {
  using List = Concat<T...>;
  static constexpr bool kPadded = true;
};
// Loops that read and write bfloat16 in one pass; the compiler does not vectorise those of half.
#ifdef RL_BFLOAT16_LOOPS
using Halves = TypeList<BFloat16>;
#else
using Halves = TypeList<>;
#endif
using Numbers = Exact<SmallInts, TypeList<float, double>, Halves, Once<bool, complex64, complex128>>;
using Real = Exact<SmallInts, TypeList<float, double>, Halves, Once<bool, uint64_t>>;
using Comparable = Exact<SmallInts, TypeList<float, double>, Once<complex64, complex128>>;
using Ordered = Exact<SmallInts, TypeList<float, double>, Once<uint64_t>>;
using Integers = Exact<SmallInts, Once<bool>>;
using Shiftable = Exact<SmallInts>;
using Wide = Exact<Once<int64_t>>;
using Divisible = Exact<Once<int64_t, uint64_t>>;
using Boolean = Exact<TypeList<bool>>;
using Floating = Exact<TypeList<float, double>>;
using Fields = Exact<TypeList<float, double>, Halves, Once<complex64, complex128>>;
using ComplexV = Exact<Once<complex64, complex128>>;
using FloatingV = Padded<TypeList<float, double>>;
using FieldsV = Padded<TypeList<float, double>, Once<complex64, complex128>>;
using FloatingS = Exact<Once<float, double>>;
using FieldsS = Exact<Once<float, double, complex64, complex128>>;

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

// One pass over n elements. The pragma says that a result written never changes a later operand: operands are
// equal to the result (in place) or apart.
template <class F, class T, class R>
inline void pass(R* out, const T* x, const T* y, const T* z, unsigned scalars, int64_t n,
                 const compute_type<T>* p) {
  using C = compute_type<T>;
  if constexpr (F::kInputs == 1) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = R(F::template apply<C>(C(x[i]), C{}, C{}, p));
  } else if constexpr (F::kInputs == 2) {
    if (scalars == 0) {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) out[i] = R(F::template apply<C>(C(x[i]), C(y[i]), C{}, p));
    } else if (scalars == 1) {
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

// Vector functions and their scalar cousins differ in the last bit: the tail goes through the vector
// functions too, so that a value does not depend on where in the tensor it stands.
constexpr int64_t kPad = 16;

template <class F, class T>
void loop(char* const* data, unsigned scalars, int64_t n, const void* parameters) {
  using R = typename ResultOf<T, F::kResult>::type;
  using C = compute_type<T>;
  C p[F::kParameters + 1];
  for (int i = 0; i < F::kParameters; ++i) p[i] = static_cast<const C*>(parameters)[i];
  auto* out = reinterpret_cast<R*>(data[0]);
  auto input = [&](int i) { return F::kInputs >= i ? reinterpret_cast<const T*>(data[i]) : nullptr; };
  const T *x = input(1), *y = F::kInputs > 1 ? input(2) : nullptr, *z = F::kInputs > 2 ? input(3) : nullptr;
  if constexpr (!F::Types::kPadded) {
    pass<F, T, R>(out, x, y, z, scalars, n, p);
  } else {
    const int64_t whole = n & -kPad, rest = n - whole;
    if (whole) pass<F, T, R>(out, x, y, z, scalars, whole, p);
    if (!rest) return;
    T pad[3][kPad];
    R result[kPad];
    const T* source[3] = {x, y, z};
    for (int i = 0; i < F::kInputs; ++i) {
      const bool scalar = scalars >> i & 1;
      const T* from = scalar ? source[i] : source[i] + whole;
      for (int64_t j = 0; j < kPad; ++j) pad[i][j] = from[scalar ? 0 : j < rest ? j : rest - 1];
    }
    pass<F, T, R>(result, pad[0], pad[1], pad[2], 0, kPad, p);
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
