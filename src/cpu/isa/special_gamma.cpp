#include "cpu/isa/lanes_double_inl.h"
#include "cpu/isa/parts_inl.h"
#include "formulas/incomplete_gamma.h"
#include "formulas/special_float.h"

namespace rushlight::cpu::RL_ISA {

RL_GAMMA_FORMULAS(RL_FORMULA)

namespace {

#if defined(__AVX2__)
// As formulas::erf_inverse of floats. What lies beyond the first polynomial is computed one by one.
struct ErfinvOfFloat {
  using T = float;
  using V = Lane<float>;
  static constexpr float kLeast = 0.0045165809f;  // exp(-5.4)
  struct Doubt {
    V largest{};
    [[gnu::always_inline]] void add(V y) { largest = larger(magnitude(y), largest); }
    // Earlier than kLeast tells.
    [[gnu::always_inline]] bool any() const { return any_from(largest, 0.9977f); }
  };
  [[gnu::always_inline]] static V product_of(V y) {  // what loses least
    return magnitude(y) < 0.5f ? 1.0f - y * y : (1.0f - y) * (1.0f + y);
  }
  // -log(x) - 1, see formulas::negative_log_less_one.
  [[gnu::always_inline]] static V negative_log_less_one(V x) {
    constexpr float kHigh = 0.693359375f, kLow = -2.1219444e-4f;
    const Lane<int32_t> bits = bits_of(x), power = (bits - 0x3f2aaaab) >> 23;
    const V f = number_of(bits - (power << 23)) - 1.0f, square = f * f, e = __builtin_convertvector(power, V);
    V even = square * -0.15629059f - 0.16365291f;
    even = even * square - 0.25011015f;
    even = even * square - 0.4999988f;
    V odd = square * 0.14584535f + 0.13867141f;
    odd = odd * square + 0.2002044f;
    odd = odd * square + 0.33332995f;
    return (e * -kHigh - 1.0f) - ((odd * f + even) * square + (e * kLow + f));
  }
  [[gnu::always_inline]] static V near(V y) {
    const V s = negative_log_less_one(at_least(product_of(y), kLeast)), square = s * s;
    V even = square * 7.168573684e-11f - 7.530280485e-9f;
    even = even * square - 5.867655857e-7f;
    even = even * square + 3.827576969e-5f;
    even = even * square - 0.002376418875f;
    even = even * square + 0.2478328788f;
    V odd = square * -7.52792015e-10f + 1.545594048e-7f;
    odd = odd * square - 4.319548286e-6f;
    odd = odd * square + 0.0001001239746f;
    odd = odd * square + 0.004250717114f;
    return with_sign_of(y * ((odd * s + even) * s + 0.127374393f) + y,
                        y);  // of -0 the two have different signs
  }
  static V far(V y) {
    const V product = product_of(y);
    V value = near(y);
    for (int l = 0; l < Lanes<float>::count; ++l) {
      const float size = std::fabs(y[l]);
      if (!(size < 1))
        value[l] = size == 1 ? y[l] * kInfinity<float> : std::numeric_limits<float>::quiet_NaN();
      else if (product[l] <= kLeast)
        value[l] = static_cast<float>(formulas::ErfInverseFloat{y[l], product[l], 0, 1}.far());
    }
    return value;
  }
};
template <>
struct InLanes<Erfinv, float> {
  using Function = ErfinvOfFloat;
};
#endif
#if defined(__AVX512F__)
// As formulas::erf_inverse, with a logarithm that stays in registers.
struct ErfinvOfDouble {
  using T = double;
  using V = Lane<double>;
  struct Doubt {
    V largest{};
    [[gnu::always_inline]] void add(V y) { largest = larger(magnitude(y), largest); }
    // Earlier than kFarFrom tells.
    [[gnu::always_inline]] bool any() const { return any_from(largest, 0.99903); }
  };
  // In four sums, none of which waits for the others.
  template <size_t N>
  [[gnu::always_inline]] static V polynomial(const double (&terms)[N], V x) {
    constexpr size_t kMissing = (4 - N % 4) % 4;  // of the first four
    const V square = x * x, fourth = square * square;
    V sum[4] = {};
#pragma GCC unroll 32
    for (size_t k = 0; k < N + kMissing; ++k) {
      const double term = k < kMissing ? 0.0 : terms[k - kMissing];
      sum[k % 4] = k < 4 ? V{} + term : sum[k % 4] * fourth + term;
    }
    return (sum[0] * x + sum[1]) * square + (sum[2] * x + sum[3]);
  }
  [[gnu::always_inline]] static V product_of(V y) {
    return magnitude(y) < 0.5 ? 1.0 - y * y : (1.0 - y) * (1.0 + y);
  }
  [[gnu::always_inline]] static V minus_log(V product) { return -LogOfDouble::finite(split(product)); }
  [[gnu::always_inline]] static V near(V y) {
    const V less = polynomial(formulas::kErfinvNear, minus_log(product_of(y)) - 0.5);
    return with_sign_of(y * 0x1.013c1p+0 + V(_mm512_maskz_mul_pd(kAllLanes<double>, y, less)), y);
  }
  static V far(V y) {
    constexpr double kFarFrom = 0.0019304541362277094;  // exp(-6.25)
    const V product = product_of(y), w = minus_log(product), root = square_root(w), inverse = 1.0 / root;
    const V middle = polynomial(formulas::kErfinvFar, inverse - 0.2788);
    const V farther = polynomial(formulas::kErfinvFarther, inverse - 0.097);
    const V size = with_sign_of(root * (w <= 40.0 ? middle : farther), y);
    const V edge =
        magnitude(y) == 1.0 ? y * kInfinity<double> : V{} + std::numeric_limits<double>::quiet_NaN();
    return magnitude(y) < 1.0 ? (product < kFarFrom ? size : near(y)) : edge;
  }
};
template <>
struct InLanes<Erfinv, double> {
  using Function = ErfinvOfDouble;
};
#endif

// Apart: beside other loops the compiler makes less of it.
template <class F, class T>
[[gnu::noinline, gnu::noclone]] void guess_all(T* out, const T* x, int64_t n) {
  pass_guesses<F>(out, x, static_cast<const T*>(nullptr), 0, n, nullptr);
}

// Where only negative arguments leave a guess in doubt: both kinds are gathered first, so that none goes both
// ways.
template <class F, class T>
void loop_by_sign(char* const* data, unsigned, int64_t n, const void*) {
  constexpr int64_t kBlock = 256;
  auto* out = reinterpret_cast<T*>(data[0]);
  const auto* x = reinterpret_cast<const T*>(data[1]);
  for (int64_t first = 0; first < n; first += kBlock) {
    const int64_t count = std::min(kBlock, n - first);
    using Bits = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
    Bits signs = 0;
    for (int64_t i = 0; i < count; ++i) signs |= std::bit_cast<Bits>(x[first + i]);
    if (signs >= 0) {
      guess_all<F>(out + first, x + first, count);
      continue;
    }
    T numbers[2][kBlock], values[kBlock];
    int32_t at[2][kBlock];
    int64_t found[2] = {};
    for (int64_t i = 0; i < count; ++i) {  // without a branch that would be guessed wrong
      const T number = x[first + i];
      const bool negative = number < 0;
      numbers[0][found[0]] = numbers[1][found[1]] = number;
      at[0][found[0]] = at[1][found[1]] = static_cast<int32_t>(i);
      found[0] += !negative, found[1] += negative;
    }
    guess_all<F>(values, numbers[0], found[0]);
    for (int64_t i = 0; i < found[0]; ++i) out[first + at[0][i]] = values[i];
    const int64_t padded = (found[1] + kPad - 1) & -kPad;
    for (int64_t i = found[1]; i < padded; ++i) numbers[1][i] = numbers[1][found[1] - 1];
    for (int64_t i = 0; i < padded; ++i)
      values[i] = T(F::template apply<T>(numbers[1][i], T{}, T{}, nullptr));
    for (int64_t i = 0; i < found[1]; ++i) out[first + at[1][i]] = values[i];
  }
}

template <class F>
constexpr FormulaLoops make_gamma_row() {
  FormulaLoops row = make_special_row<F>();
  if constexpr (std::is_same_v<F, Lgamma>) {
    row[static_cast<int>(DType::Float32)] = &loop_by_sign<F, float>;
    row[static_cast<int>(DType::Float64)] = &loop_by_sign<F, double>;
  }
  put_in_lanes<F, float>(row);
  put_in_lanes<F, double>(row);
  return row;
}

}  // namespace

#define RL_GAMMA_ROW(name, ...) make_gamma_row<name>(),
const FormulaLoops gamma_loops[] = {RL_GAMMA_FORMULAS(RL_GAMMA_ROW)};

}  // namespace rushlight::cpu::RL_ISA
