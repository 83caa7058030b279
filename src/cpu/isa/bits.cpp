// Loops that take a formula's place for one dtype. On the bits of short elements, which need no conversion:
// halves as whole numbers of 16 bits, truth values as bytes. On complex numbers by parts.
#include <algorithm>
#include <cstring>

#include "core/half.h"
#include "cpu/isa/complex_inl.h"
#include "cpu/isa/register_inl.h"
#include "cpu/isa/tables.h"

// Vectors passed between functions of this file alone.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace rushlight::cpu::RL_ISA {
namespace {

constexpr int64_t kBytes = std::min(kRegisterBytes, 32);
template <class T>
struct Vector {
  using type [[gnu::vector_size(kBytes)]] = T;
};
using Words = Vector<int16_t>::type;
using Bytes = Vector<int8_t>::type;

// f(x, y) of n elements of one or two inputs, each a vector of T.
template <class T, int kInputs, class F>
[[gnu::always_inline]] inline void pass(char* const* data, unsigned scalars, int64_t n, F f) {
  using V = typename Vector<T>::type;
  constexpr int64_t kSize = sizeof(T);
  const char* from[2] = {data[1], kInputs > 1 ? data[2] : data[1]};
  int64_t step[2] = {1, 1};
  V repeated[2];
  for (int k = 0; k < kInputs; ++k)
    if (scalars >> k & 1) {
      T value;
      std::memcpy(&value, from[k], kSize);
      repeated[k] = V{} + value;
      from[k] = reinterpret_cast<const char*>(&repeated[k]);
      step[k] = 0;
    }
  const int64_t size = n * kSize;
  int64_t i = 0;
  for (; i + kBytes <= size; i += kBytes) {
    V x, y;
    std::memcpy(&x, from[0] + i * step[0], kBytes);
    std::memcpy(&y, from[1] + i * step[1], kBytes);
    x = f(x, y);
    std::memcpy(data[0] + i, &x, kBytes);
  }
  if (i == size) return;
  V x{}, y{};
  std::memcpy(&x, from[0] + i * step[0], static_cast<size_t>(size - i));
  std::memcpy(&y, from[1] + i * step[1], static_cast<size_t>(size - i));
  x = f(x, y);
  std::memcpy(data[0] + i, &x, static_cast<size_t>(size - i));
}

template <class V>
[[gnu::always_inline]] inline V choose(V mask, V x, V y) {
  return (mask & x) | (~mask & y);
}

// --- halves: H is Half or BFloat16 ------------------------------------------------------------------------

constexpr int16_t kSign = INT16_MIN;
template <class H>
constexpr int16_t kInfinity = 0x7c00;
template <>
constexpr int16_t kInfinity<BFloat16> = 0x7f80;

[[gnu::always_inline]] inline Words magnitude(Words x) { return x & ~kSign; }
template <class H>
[[gnu::always_inline]] inline Words is_nan(Words x) {
  return magnitude(x) > kInfinity<H>;
}
// In the order of the numbers; both zeros are 0.
[[gnu::always_inline]] inline Words order(Words x) {
  const Words negative = x >> 15;
  return (magnitude(x) ^ negative) - negative;
}
template <class H>
[[gnu::always_inline]] inline Words rounded(const void* parameters, int index) {
  return Words{} + static_cast<int16_t>(H(static_cast<const float*>(parameters)[index]).bits);
}

template <class H>
void absolute(char* const* data, unsigned, int64_t n, const void*) {
  pass<int16_t, 1>(data, 0, n, [](Words x, Words) { return magnitude(x); });
}
template <class H>
void negative(char* const* data, unsigned, int64_t n, const void*) {
  pass<int16_t, 1>(data, 0, n, [](Words x, Words) { return x ^ kSign; });
}
template <class H>
void copy_sign(char* const* data, unsigned scalars, int64_t n, const void*) {
  pass<int16_t, 2>(data, scalars, n, [](Words x, Words y) { return magnitude(x) | (y & kSign); });
}
template <class H>
void nan_to_num(char* const* data, unsigned, int64_t n, const void* parameters) {
  const Words nan = rounded<H>(parameters, 0), high = rounded<H>(parameters, 1),
              low = rounded<H>(parameters, 2);
  constexpr int16_t kLowest = kInfinity<H> | kSign;
  pass<int16_t, 1>(data, 0, n, [=](Words x, Words) {
    const Words finite = choose(x == kInfinity<H>, high, choose(x == kLowest, low, x));
    return choose(is_nan<H>(x), nan, finite);
  });
}
// Below zero lie -infinity and what is between that and -0.
template <class H>
void relu(char* const* data, unsigned, int64_t n, const void*) {
  constexpr int16_t kLowest = kInfinity<H> | kSign;
  pass<int16_t, 1>(data, 0, n, [](Words x, Words) { return x & ~((x > kSign) & (x <= kLowest)); });
}

// The first where it lies beyond the second or is NaN, which goes on: maximum (kUp) and minimum.
template <class H, bool kUp>
void extreme(char* const* data, unsigned scalars, int64_t n, const void*) {
  pass<int16_t, 2>(data, scalars, n, [](Words x, Words y) {
    const Words beyond = kUp ? order(x) > order(y) : order(x) < order(y);
    return choose((beyond & ~is_nan<H>(y)) | is_nan<H>(x), x, y);
  });
}
// The bound where x does not reach it, or where it is NaN; clamp_min (kUp) and clamp_max.
template <class H, bool kUp>
void bound(char* const* data, unsigned, int64_t n, const void* parameters) {
  const Words limit = rounded<H>(parameters, 0), place = order(limit), everywhere = is_nan<H>(limit);
  pass<int16_t, 1>(data, 0, n, [=](Words x, Words) {
    const Words beyond = kUp ? order(x) < place : order(x) > place;
    return choose((beyond & ~is_nan<H>(x)) | everywhere, limit, x);
  });
}

// --- truth values -----------------------------------------------------------------------------------------

[[gnu::always_inline]] inline Bytes is_true(Bytes x) { return x != 0; }  // whichever bit is set

#define RL_TRUTH(name, ...)                                                      \
  void name(char* const* data, unsigned scalars, int64_t n, const void*) {       \
    pass<int8_t, 2>(data, scalars, n, [](Bytes first, Bytes second) {            \
      const Bytes x = is_true(first), y = is_true(second), result = __VA_ARGS__; \
      return result & 1;                                                         \
    });                                                                          \
  }
RL_TRUTH(both, x& y)
RL_TRUTH(either, x | y)
RL_TRUTH(differ, x ^ y)
RL_TRUTH(agree, ~(x ^ y))
RL_TRUTH(less, ~x& y)
RL_TRUTH(less_or_equal, ~x | y)
#undef RL_TRUTH

// One bound for all elements, as in clamp_min and clamp_max.
template <Loop kLoop>
void beside_bound(char* const* data, unsigned, int64_t n, const void* parameters) {
  char value = *static_cast<const char*>(parameters);
  char* const both[] = {data[0], data[1], &value};
  kLoop(both, 2, n, nullptr);
}

template <class H, DType kType>
constexpr BitLoop kOfHalves[] = {{Formula::Abs, kType, absolute<H>},
                                 {Formula::Neg, kType, negative<H>},
                                 {Formula::Copysign, kType, copy_sign<H>},
                                 {Formula::NanToNum, kType, nan_to_num<H>},
                                 {Formula::Relu, kType, relu<H>},
                                 {Formula::Maximum, kType, extreme<H, true>},
                                 {Formula::Minimum, kType, extreme<H, false>},
                                 {Formula::ClampMin, kType, bound<H, true>},
                                 {Formula::ClampMax, kType, bound<H, false>}};
constexpr BitLoop kOfTruths[] = {{Formula::Eq, DType::Bool, agree},
                                 {Formula::Ne, DType::Bool, differ},
                                 {Formula::Lt, DType::Bool, less},
                                 {Formula::Le, DType::Bool, less_or_equal},
                                 {Formula::Maximum, DType::Bool, either},
                                 {Formula::Minimum, DType::Bool, both},
                                 {Formula::ClampMin, DType::Bool, beside_bound<either>},
                                 {Formula::ClampMax, DType::Bool, beside_bound<both>}};

}  // namespace

const BitLoops bit_loops = {kOfHalves<Half, DType::Float16>, kOfHalves<BFloat16, DType::BFloat16>, kOfTruths,
                            kOfComplex};

}  // namespace rushlight::cpu::RL_ISA
