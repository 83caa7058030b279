// Blocks of a line without any of its first k elements, passed over at a comparison an element; whole numbers
// in half as many bits.
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

// Numbers near 0 need no search for the least: it is one of those of 32 bits.
bool count_near_zero(const uint64_t* x, int64_t n, uint64_t bias, uint32_t* to, uint64_t* least) {
  uint64_t beyond = 0;
  uint32_t low = UINT32_MAX;
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t biased = x[i] + bias;
    beyond |= biased >> 32;
    to[i] = static_cast<uint32_t>(biased);
    low = low < to[i] ? low : to[i];
  }
  if (beyond) return false;
  for (int64_t i = 0; i < n; ++i) to[i] -= low;
  *least = low - bias;
  return true;
}
template <class T>
bool count_anywhere(const T* x, int64_t n, uint32_t* to, uint64_t* least) {
  T low = x[0], high = x[0];
  for (int64_t i = 1; i < n; ++i) low = low < x[i] ? low : x[i], high = high > x[i] ? high : x[i];
  *least = static_cast<uint64_t>(low);
  if ((static_cast<uint64_t>(high) - *least) >> 32) return false;
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<uint32_t>(static_cast<uint64_t>(x[i]) - *least);
  return true;
}

}  // namespace

bool count_from_least_variant(const void* x, int64_t n, bool is_signed, uint32_t* to, uint64_t* least) {
  const uint64_t bias = is_signed ? uint64_t{1} << 31 : 0;
  return count_near_zero(static_cast<const uint64_t*>(x), n, bias, to, least) ||
         (is_signed ? count_anywhere(static_cast<const int64_t*>(x), n, to, least)
                    : count_anywhere(static_cast<const uint64_t*>(x), n, to, least));
}

SkipOrdered skip_ordered_variant(DType dtype, bool largest) {
  return pick(Concat<FloatTypes, TypeList<uint8_t, int32_t, int64_t>>{}, dtype, largest);
}

}  // namespace rushlight::cpu::RL_ISA
