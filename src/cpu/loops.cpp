#include "cpu/loops.h"

#include <algorithm>
#include <cstring>

#include "core/host/processor.h"
#include "cpu/isa/tables.h"

namespace rushlight::cpu {

LoopRow rows[kFormulaCount];
CastLoop cast_loops[kDTypeCount][kDTypeCount];
WhereLoop where_loops[5];

namespace {

struct Tables {
  const FormulaLoops *arithmetic, *comparison, *transcendental, *division, *gamma, *bessel, *polynomial,
      *activation;
  const std::array<std::array<CastLoop, kDTypeCount>, kDTypeCount>& casts;
  const std::array<WhereLoop, 5>& wheres;
  const BitLoops& bits;
};

// Loops that `tables` lacks keep what an earlier, more general set put there.
void adopt(const Tables& tables) {
  int next = 0;
  auto adopt_rows = [&](const FormulaLoops* table, int count) {
    for (int i = 0; i < count; ++i, ++next)
      for (int t = 0; t < kDTypeCount; ++t)
        if (table[i][t]) rows[next].loop[t] = table[i][t];
  };
#define RL_ONE(...) +1
  adopt_rows(tables.arithmetic, 0 RL_ARITHMETIC_FORMULAS(RL_ONE));
  adopt_rows(tables.comparison, 0 RL_COMPARISON_FORMULAS(RL_ONE));
  adopt_rows(tables.transcendental, 0 RL_TRANSCENDENTAL_FORMULAS(RL_ONE));
  adopt_rows(tables.division, 0 RL_DIVISION_FORMULAS(RL_ONE));
  adopt_rows(tables.gamma, 0 RL_GAMMA_FORMULAS(RL_ONE));
  adopt_rows(tables.bessel, 0 RL_BESSEL_FORMULAS(RL_ONE));
  adopt_rows(tables.polynomial, 0 RL_POLYNOMIAL_FORMULAS(RL_ONE));
  adopt_rows(tables.activation, 0 RL_ACTIVATION_FORMULAS(RL_ONE));
#undef RL_ONE
  for (int to = 0; to < kDTypeCount; ++to)
    for (int from = 0; from < kDTypeCount; ++from)
      if (tables.casts[to][from]) cast_loops[to][from] = tables.casts[to][from];
  for (int i = 0; i < 5; ++i) where_loops[i] = tables.wheres[i];
  for (const auto& loops : tables.bits)
    for (const BitLoop& bit : loops)
      rows[static_cast<int>(bit.formula)].loop[static_cast<int>(bit.dtype)] = bit.loop;
}

#define RL_TABLES(isa)                                                                                      \
  Tables {                                                                                                  \
    isa::arithmetic_loops, isa::comparison_loops, isa::transcendental_loops, isa::division_loops,           \
        isa::gamma_loops, isa::bessel_loops, isa::polynomial_loops, isa::activation_loops, isa::cast_table, \
        isa::where_table, isa::bit_loops                                                                    \
  }

// The types to try, in order, for elements of a dtype that has no loop of its own. Wrapping 64-bit arithmetic
// gives every integer type the bits that its own arithmetic would.
std::array<DType, 3> substitutes(DType t) {
  switch (t) {
    case DType::Bool:
      return {DType::Bool, DType::UInt8, DType::Int64};
    case DType::UInt16:
      return {t, DType::Int32, DType::Int64};
    case DType::Float16:
    case DType::BFloat16:
      return {DType::Float32, t, t};
    case DType::Complex32:
      return {DType::Complex64, t, t};
    default:
      return {t, is_integral(t) ? DType::Int64 : t, t};
  }
}

void choose_compute_types(LoopRow& row) {
  for (int t = 0; t < kDTypeCount; ++t)
    for (DType c : substitutes(static_cast<DType>(t)))
      if (!row.supported[t] && row.loop[static_cast<int>(c)]) {
        row.supported[t] = true;
        row.compute[t] = c;
      }
}

// A few units in the last place of float are nothing in halves.
void compute_halves(Formula formula, Formula of_halves) {
  for (DType t : {DType::Float16, DType::BFloat16})
    rows[static_cast<int>(formula)].loop[static_cast<int>(t)] = row(of_halves).loop[static_cast<int>(t)];
}

// Logarithms of halves by the natural one of floats, which is faster than the others.
template <DType T, auto kFactor>
void logarithm_loop(char* const* data, unsigned, int64_t n, const void*) {
  constexpr int64_t kPart = 256, kLanes = 16, kHalf = 2;
  alignas(64) float part[kPart] = {};
  char* const at = reinterpret_cast<char*>(part);
  char* const both[] = {at, at};
  for (int64_t i = 0; i < n; i += kPart) {
    const int64_t count = std::min(kPart, n - i);
    cast_loop(DType::Float32, T)(at, sizeof(float), data[1] + i * kHalf, kHalf, count);
    row(Formula::Log).loop[static_cast<int>(DType::Float32)](both, 0, count, nullptr);
    for (int64_t j = 0; j < kPart; j += kLanes)
      for (int64_t k = j; k < j + kLanes; ++k) part[k] *= kFactor;
    cast_loop(T, DType::Float32)(data[0] + i * kHalf, kHalf, at, sizeof(float), count);
  }
}
template <auto kFactor>
void compute_logarithm(Formula f) {
  FormulaLoops& loops = rows[static_cast<int>(f)].loop;
  loops[static_cast<int>(DType::Float16)] = logarithm_loop<DType::Float16, kFactor>;
  loops[static_cast<int>(DType::BFloat16)] = logarithm_loop<DType::BFloat16, kFactor>;
}

template <Formula F, DType Complex>
Loop complex_loops;  // as compiled for whole numbers

// Sums of complex numbers are sums of their parts, where no operand is a single number.
template <Formula F, DType Complex, DType Part>
void loop_by_parts(char* const* data, unsigned scalars, int64_t n, const void* parameters) {
  if (scalars)
    complex_loops<F, Complex>(data, scalars, n, parameters);
  else
    row(F).loop[static_cast<int>(Part)](data, 0, 2 * n, parameters);
}
template <Formula F, DType Complex, DType Part>
void split_in_parts() {
  Loop& loop = rows[static_cast<int>(F)].loop[static_cast<int>(Complex)];
  complex_loops<F, Complex> = loop;
  loop = loop_by_parts<F, Complex, Part>;
}
template <Formula... F>
void compute_complex_by_parts() {
  (split_in_parts<F, DType::Complex64, DType::Float32>(), ...);
  (split_in_parts<F, DType::Complex128, DType::Float64>(), ...);
}

// The little that PyTorch computes with eight bits: comparing, multiplying, magnitudes.
void compute_float8(Formula formula) {
  LoopRow& row = rows[static_cast<int>(formula)];
  for (int t = 0; t < kDTypeCount; ++t)
    if (is_float8(static_cast<DType>(t))) {
      row.supported[t] = true;
      row.compute[t] = DType::Float32;
    }
}

}  // namespace

void choose_loops() {
  adopt(RL_TABLES(baseline));
  [[maybe_unused]] const host::Isa isa = host::isa();
#if RUSHLIGHT_WITH_NEON
  if (isa == host::Isa::kNeon) adopt(RL_TABLES(neon));
#endif
#if RUSHLIGHT_WITH_AVX2
  if (isa >= host::Isa::kAvx2) adopt(RL_TABLES(avx2));
#endif
#if RUSHLIGHT_WITH_AVX512
  if (isa >= host::Isa::kAvx512) adopt(RL_TABLES(avx512));
#endif
  compute_halves(Formula::Erf, Formula::ErfHalf);
  compute_logarithm<1.44269504f>(Formula::Log2);
  compute_logarithm<0.434294482f>(Formula::Log10);
  // No compiler here makes vectors of these blocks: halves go through chunks of floats instead.
  for (Formula f : {Formula::Hardshrink, Formula::Lerp})
    rows[static_cast<int>(f)].loop[static_cast<int>(DType::Float16)] = nullptr;
  LoopRow& negation = rows[static_cast<int>(Formula::LogicalNot)];
  negation.loop[static_cast<int>(DType::Bool)] = negation.loop[static_cast<int>(DType::UInt8)];
  compute_complex_by_parts<Formula::Add, Formula::Sub, Formula::Neg>();
  for (LoopRow& row : rows) choose_compute_types(row);
  for (Formula f : {Formula::Eq, Formula::Ne, Formula::Mul, Formula::Abs, Formula::IsNan}) compute_float8(f);
}

}  // namespace rushlight::cpu
