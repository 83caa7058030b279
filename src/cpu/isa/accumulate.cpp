#include "cpu/accumulate.h"

#include "cpu/combine.h"
#include "cpu/isa/half_inl.h"

namespace rushlight::cpu::RL_ISA {
namespace {

// to[i] = f(to[i], from[i]), computed in C; halves by blocks that the processor converts.
template <class T, class C, class F>
[[gnu::always_inline]] inline void each(void* to_data, const void* from_data, int64_t n, F f) {
  T* to = static_cast<T*>(to_data);
  const T* from = static_cast<const T*>(from_data);
  int64_t i = 0;
  if constexpr (std::is_same_v<T, Half>) {
    constexpr int64_t kBlock = 64;
    for (; i + kBlock <= n; i += kBlock) {
      float a[kBlock], b[kBlock];
      widen(to + i, a, kBlock);
      widen(from + i, b, kBlock);
      for (int64_t j = 0; j < kBlock; ++j) a[j] = f(a[j], b[j]);
      narrow(a, to + i, kBlock);
    }
  }
#pragma GCC ivdep
  for (int64_t j = i; j < n; ++j) to[j] = T(f(static_cast<C>(to[j]), static_cast<C>(from[j])));
}

template <class T>
void add_run(void* to, const void* from, double by, int64_t n) {
  using C = std::conditional_t<std::is_integral_v<T>, uint64_t, compute_type<T>>;  // wraps
  if (by == 1) return each<T, C>(to, from, n, [](C a, C b) { return a + b; });
  const C scale = static_cast<C>(by);
  each<T, C>(to, from, n, [scale](C a, C b) { return a + b * scale; });
}

template <class T, RunOp op>
void combine_run(void* to, const void* from, int64_t n) {
  using C = compute_type<T>;
  each<T, C>(to, from, n, [](C a, C b) {
    return op == RunOp::Multiply ? times(a, b) : op == RunOp::Max ? larger(a, b) : smaller(a, b);
  });
}

template <class Run, class F>
Run pick(DType dtype, F&& kernel_of) {
  Run found = nullptr;
  [&]<class... T>(TypeList<T...>) {
    (void)((dtype == dtype_of<T> && (found = kernel_of(T()), true)) || ...);
  }(Concat<FloatTypes, TypeList<int32_t, int64_t>>{});
  return found;
}

template <RunOp op>
CombineRun pick_combine(DType dtype) {
  return pick<CombineRun>(dtype, []<class T>(T) { return &combine_run<T, op>; });
}

}  // namespace

AddRun add_run_variant(DType dtype) {
  return pick<AddRun>(dtype, []<class T>(T) { return &add_run<T>; });
}
CombineRun combine_run_variant(RunOp op, DType dtype) {
  if (op == RunOp::Multiply) return pick_combine<RunOp::Multiply>(dtype);
  return op == RunOp::Max ? pick_combine<RunOp::Max>(dtype) : pick_combine<RunOp::Min>(dtype);
}

}  // namespace rushlight::cpu::RL_ISA
