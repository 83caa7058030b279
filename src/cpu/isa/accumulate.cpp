#include "cpu/accumulate.h"

#include "cpu/combine.h"

namespace rushlight::cpu::RL_ISA {
namespace {

template <class T>
void add_run(void* to_data, const void* from_data, double by, int64_t n) {
  using C = compute_type<T>;
  T* to = static_cast<T*>(to_data);
  const T* from = static_cast<const T*>(from_data);
  if (by == 1) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) to[i] = T(static_cast<C>(to[i]) + static_cast<C>(from[i]));
    return;
  }
  const C scale = static_cast<C>(by);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) to[i] = T(static_cast<C>(to[i]) + static_cast<C>(from[i]) * scale);
}

template <class T, RunOp op>
void combine_run(void* to_data, const void* from_data, int64_t n) {
  T* to = static_cast<T*>(to_data);
  const T* from = static_cast<const T*>(from_data);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i)
    to[i] = op == RunOp::Multiply ? times(to[i], from[i])
            : op == RunOp::Max    ? larger(to[i], from[i])
                                  : smaller(to[i], from[i]);
}

template <class Run, class F>
Run pick(DType dtype, F&& kernel_of) {
  Run found = nullptr;
  [&]<class... T>(TypeList<T...>) {
    ((dtype == dtype_of<T> && (found = kernel_of(T()), true)) || ...);
  }(FloatTypes{});
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
