#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

// Note [Threads]
// One pool of workers serves the whole process: ours, oneDNN's and MKL's. Every thread that asks for parallel
// work joins it as an equal, takes part itself, and while it waits runs only chunks of its own call. Work
// that is small, or asked for inside a parallel region, stays on the caller. In a child forked after the pool
// had started, its threads are gone and everything runs on the caller.

namespace rushlight {

/// Elements of cheap pointwise work that are worth a task.
inline constexpr int64_t kGrainSize = 32768;

/// Threads one call may use. At first min(affinity, cgroup quota, cores), or RUSHLIGHT_NUM_THREADS or
/// OMP_NUM_THREADS.
int get_num_threads();
void set_num_threads(int threads);
bool in_parallel_region();
/// Number of the calling thread in the running parallel region, below get_num_threads(); 0 outside.
int get_thread_num();

namespace detail {

/// A callable by reference: two words, nothing allocated.
template <class Signature>
class FunctionRef;

template <class R, class... Args>
class FunctionRef<R(Args...)> {
 public:
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef>)
  FunctionRef(F&& f)  // NOLINT: implicit on purpose
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))),
        call_([](void* object, Args... args) -> R {
          return (*static_cast<std::remove_reference_t<F>*>(object))(std::forward<Args>(args)...);
        }) {}
  R operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_;
  R (*call_)(void*, Args...);
};

using RangeFunction = FunctionRef<void(int64_t, int64_t)>;
void parallel_for_slowly(int64_t begin, int64_t end, int64_t grain, RangeFunction f);
/// Runs f(0) ... f(count - 1) in any order, each once.
void parallel_tasks(int64_t count, FunctionRef<void(int64_t)> f);
/// Elements in each piece of a reduction; depends on the problem only, never on the number of threads.
int64_t reduction_piece(int64_t size, int64_t grain);

}  // namespace detail

/// Calls f(b, e) on pieces of at least `grain` elements that cover [begin, end). The first exception is
/// rethrown.
template <class F>
inline void parallel_for(int64_t begin, int64_t end, int64_t grain, F&& f) {
  if (end - begin <= grain) [[likely]] {
    if (begin < end) f(begin, end);
    return;
  }
  detail::parallel_for_slowly(begin, end, grain, f);
}

/// combine(...combine(f(piece 0), f(piece 1))...), in order and over pieces that do not depend on the number
/// of threads: the result is the same to the last bit on every machine. `f(b, e)` reduces one piece.
template <class T, class F, class Combine>
T parallel_reduce(int64_t begin, int64_t end, int64_t grain, T identity, F&& f, Combine&& combine) {
  if (begin >= end) return identity;
  const int64_t piece = detail::reduction_piece(end - begin, grain);
  const int64_t pieces = (end - begin + piece - 1) / piece;
  if (pieces == 1) return combine(std::move(identity), f(begin, end));
  std::vector<T> partial(static_cast<size_t>(pieces), identity);
  detail::parallel_tasks(pieces, [&](int64_t i) {
    const int64_t b = begin + i * piece;
    partial[static_cast<size_t>(i)] = f(b, std::min(end, b + piece));
  });
  T result = std::move(identity);
  for (T& p : partial) result = combine(std::move(result), std::move(p));
  return result;
}

/// Runs f() so that libraries that use the same pool (oneDNN, MKL) see our number of threads.
void run_in_pool(detail::FunctionRef<void()> f);
/// Runs f() so that they see one thread: for work that is too small to share, or a share itself.
void run_alone(detail::FunctionRef<void()> f);

}  // namespace rushlight
