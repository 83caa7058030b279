// Blocks of a line without any of its first k elements, passed over at a comparison an element.
#include "cpu/topk.h"

#include "cpu/isa/half_inl.h"

namespace rushlight::cpu::RL_ISA {
namespace {

constexpr int64_t kBlock = 64;

// NaN, the greatest of all, never compares: it always may come before.
template <bool kLargest, class C>
[[gnu::always_inline]] inline bool may_precede(const C* x, int64_t n, C bound) {
  unsigned found = 0;
  for (int64_t i = 0; i < n; ++i) found |= static_cast<unsigned>(!(kLargest ? x[i] <= bound : x[i] >= bound));
  return found != 0;
}

template <class T, bool kLargest>
int64_t skip(const void* data, int64_t begin, int64_t n, int64_t bound_at) {
  using C = compute_type<T>;
  const T* x = static_cast<const T*>(data);
  const C bound = static_cast<C>(x[bound_at]);
  for (; begin < n; begin += kBlock) {
    const int64_t count = n - begin < kBlock ? n - begin : kBlock;
    if constexpr (std::is_same_v<T, C>) {
      if (count < kBlock ? may_precede<kLargest>(x + begin, count, bound)
                         : may_precede<kLargest>(x + begin, kBlock, bound))
        return begin;
    } else {
      C wide[kBlock];
      widen(x + begin, wide, count);
      if (may_precede<kLargest>(wide, count, bound)) return begin;
    }
  }
  return n;
}

template <class... T>
SkipOrdered pick(TypeList<T...>, DType dtype, bool largest) {
  SkipOrdered found = nullptr;
  (void)((dtype == dtype_of<T> && (found = largest ? &skip<T, true> : &skip<T, false>, true)) || ...);
  return found;
}

}  // namespace

SkipOrdered skip_ordered_variant(DType dtype, bool largest) {
  return pick(Concat<FloatTypes, TypeList<uint8_t, int32_t, int64_t>>{}, dtype, largest);
}

}  // namespace rushlight::cpu::RL_ISA
