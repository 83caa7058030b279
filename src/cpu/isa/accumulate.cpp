#include "cpu/accumulate.h"

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

template <class... T>
AddRun pick(TypeList<T...>, DType dtype) {
  AddRun found = nullptr;
  ((dtype == dtype_of<T> && (found = &add_run<T>, true)) || ...);
  return found;
}

}  // namespace

AddRun add_run_variant(DType dtype) { return pick(FloatTypes{}, dtype); }

}  // namespace rushlight::cpu::RL_ISA
