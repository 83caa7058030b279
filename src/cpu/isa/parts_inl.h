// The loop of formulas in parts, see formulas/parts.h, and of functions that few numbers lie inside of the
// domain of. Included by files of this folder only.
#pragma once
#include <algorithm>

#include "cpu/isa/loops_inl.h"
#include "formulas/parts.h"

namespace rushlight::cpu::RL_ISA {
namespace {

constexpr int64_t kPartsBlock = 64;  // what a part in steps carries stays in the first cache

// A block of arguments, filled up to whole registers, and the bit of the part of each.
struct PartsBlock {
  alignas(64) double x[kPartsBlock], y[kPartsBlock], values[kPartsBlock];
  alignas(64) int64_t part[kPartsBlock];
  int64_t count;
  bool one_y;
};

template <formulas::Stepwise P>
inline void part_in_steps(PartsBlock& block, int64_t bit, int64_t needed) {
  constexpr int kChecked = 4;  // steps from one look at what is left to the next
  constexpr int N = P::kNumbers;
  alignas(64) double numbers[N][kPartsBlock];
  for (int64_t i = 0; i < block.count; ++i) {
    double own[N];
    P::start(block.x[i], block.y[i], own);
    for (int j = 0; j < N; ++j) numbers[j][i] = own[j];
  }
  if constexpr (requires { P::steps(0.0); }) {
    constexpr double kMany = 256;  // beyond it pays to see that numbers have overflowed
    const double steps = P::steps(block.y[0]);
    if (block.one_y && needed == bit && steps < kMany) {
      for (double k = 1; k <= steps; ++k)
        for (int64_t i = 0; i < block.count; ++i) {
          double own[N];
          for (int j = 0; j < N; ++j) own[j] = numbers[j][i];
          P::step(block.x[i], block.y[i], k, own);
          for (int j = 0; j < N; ++j) numbers[j][i] = own[j];
        }
      for (int64_t i = 0; i < block.count; ++i) {
        double own[N];
        for (int j = 0; j < N; ++j) own[j] = numbers[j][i];
        block.values[i] = P::end(block.x[i], block.y[i], own);
      }
      return;
    }
  }
  for (double k = 1;;) {
    int64_t left = 0;
    for (int64_t i = 0; i < block.count; ++i) {
      double own[N];
      for (int j = 0; j < N; ++j) own[j] = numbers[j][i];
      left |= (block.part[i] == bit) & P::more(block.x[i], block.y[i], k, own) ? 1 : 0;
    }
    if (!left) break;
    for (int step = 0; step < kChecked; ++step, ++k)
      for (int64_t i = 0; i < block.count; ++i) {
        double own[N], next[N];
        for (int j = 0; j < N; ++j) next[j] = own[j] = numbers[j][i];
        const bool more = P::more(block.x[i], block.y[i], k, own);
        P::step(block.x[i], block.y[i], k, next);
        for (int j = 0; j < N; ++j) numbers[j][i] = more ? next[j] : own[j];
      }
  }
  for (int64_t i = 0; i < block.count; ++i) {
    double own[N];
    for (int j = 0; j < N; ++j) own[j] = numbers[j][i];
    const double value = P::end(block.x[i], block.y[i], own);
    block.values[i] = block.part[i] == bit ? value : block.values[i];
  }
}

template <class P>
[[gnu::noinline]] void compute_part(PartsBlock& block, int64_t bit, int64_t needed) {
  if constexpr (formulas::Stepwise<P>) {
    part_in_steps<P>(block, bit, needed);
  } else if constexpr (formulas::Alone<P>) {
    for (int64_t i = 0; i < block.count; ++i)
      if (block.part[i] == bit) block.values[i] = P::value(block.x[i], block.y[i]);
  } else {
    for (int64_t i = 0; i < block.count; ++i) {
      const double value = P::value(block.x[i], block.y[i]);
      block.values[i] = block.part[i] == bit ? value : block.values[i];
    }
  }
}

template <class... P>
inline void compute_parts(PartsBlock& block, int64_t needed, TypeList<P...>) {
  int64_t bit = 1;
  ((needed & bit ? compute_part<P>(block, bit, needed) : void(), bit *= 2), ...);
}

template <class F, int kInputs, class T>
inline void pass_parts(T* out, const T* x, const T* y, unsigned scalars, int64_t n) {
  constexpr int64_t kWhole = 16;  // the tail goes through the vector functions too
  PartsBlock block;
  block.one_y = kInputs == 1 || (scalars & 2);
  for (double& value : block.y) value = 0;
  if (scalars & 1)
    for (double& value : block.x) value = *x;
  if (kInputs > 1 && scalars & 2)
    for (double& value : block.y) value = *y;
  for (int64_t first = 0; first < n; first += kPartsBlock) {
    const int64_t count = std::min(kPartsBlock, n - first);
    block.count = (count + kWhole - 1) & -kWhole;
    if (!(scalars & 1)) {
      for (int64_t i = 0; i < count; ++i) block.x[i] = x[first + i];
      for (int64_t i = count; i < block.count; ++i) block.x[i] = block.x[count - 1];
    }
    if (kInputs > 1 && !(scalars & 2)) {
      for (int64_t i = 0; i < count; ++i) block.y[i] = y[first + i];
      for (int64_t i = count; i < block.count; ++i) block.y[i] = block.y[count - 1];
    }
    int64_t needed = 0;
    for (int64_t i = 0; i < block.count; ++i) {
      block.part[i] = F::part(block.x[i], block.y[i]);
      needed |= block.part[i];
    }
    compute_parts(block, needed, typename F::Parts{});
    for (int64_t i = 0; i < count; ++i) out[first + i] = static_cast<T>(block.values[i]);
  }
}

struct FloatingParts : Exact<TypeList<float, double>> {};
struct GuessedInside : Exact<TypeList<float, double>> {};
template <class F, class T>
using ValueOf = decltype(F::template apply<T>(T{}, T{}, T{}, static_cast<const T*>(nullptr)));

template <class F, class T>
void parts_loop(char* const* data, unsigned scalars, int64_t n, const void*) {
  const auto* x = reinterpret_cast<const T*>(data[1]);
  const auto* y = F::kInputs > 1 ? reinterpret_cast<const T*>(data[2]) : nullptr;
  pass_parts<typename ValueOf<F, T>::Function, F::kInputs>(reinterpret_cast<T*>(data[0]), x, y, scalars, n);
}

// Guesses of functions that few numbers lie inside of the domain of, whole numbers for instance: blocks
// without such a number are done with at once.
template <class F, class T>
void inside_loop(char* const* data, unsigned, int64_t n, const void*) {
  constexpr int64_t kBlock = 256;
  auto* out = reinterpret_cast<T*>(data[0]);
  const auto* x = reinterpret_cast<const T*>(data[1]);
  for (int64_t first = 0; first < n; first += kBlock) {
    const int64_t count = std::min(kBlock, n - first);
    T edges[kBlock];
    unsigned inside = 0;
    for (int64_t i = 0; i < count; ++i) {
      const auto guess = F::template apply<T>(x[first + i], T{}, T{}, nullptr);
      edges[i] = guess.edge;
      inside |= guess.is_inside;
    }
    if (inside)
      pass_guesses<F>(out + first, x + first, x, 0, count, nullptr);
    else
      std::copy_n(edges, count, out + first);
  }
}

template <class F>
constexpr FormulaLoops make_special_row() {
  constexpr int kFloat = static_cast<int>(DType::Float32), kDouble = static_cast<int>(DType::Float64);
  FormulaLoops row{};
  if constexpr (std::is_same_v<typename F::Types, FloatingParts>) {
    row[kFloat] = &parts_loop<F, float>, row[kDouble] = &parts_loop<F, double>;
  } else if constexpr (std::is_same_v<typename F::Types, GuessedInside>) {
    row[kFloat] = &inside_loop<F, float>, row[kDouble] = &inside_loop<F, double>;
  } else {
    row = make_row<F>();
  }
  return row;
}

}  // namespace

#define RL_SPECIAL_ROW(name, ...) make_special_row<name>(),
#define RL_DEFINE_SPECIAL_LOOPS(table, list) \
  list(RL_FORMULA) const FormulaLoops table[] = {list(RL_SPECIAL_ROW)};

}  // namespace rushlight::cpu::RL_ISA
