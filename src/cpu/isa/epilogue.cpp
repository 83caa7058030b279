#include "cpu/epilogue.h"

#include <cstddef>

#include "cpu/isa/tile_inl.h"

namespace rushlight::cpu::RL_ISA {
namespace {

using Vector = Lanes<float>::type;
constexpr int64_t kLanes = Lanes<float>::count;

template <class T>
[[gnu::always_inline]] inline Vector read(const T* from, int64_t n) {
  alignas(kRegisterBytes) float lanes[kLanes];
  read_lanes(from, n, lanes);
  Vector v;
  load(v, lanes);
  return v;
}
template <class T>
[[gnu::always_inline]] inline void write(const Vector& v, int64_t n, T* to) {
  alignas(kRegisterBytes) float lanes[kLanes];
  __builtin_memcpy(lanes, &v, sizeof(v));
  write_lanes(lanes, n, to);
}
// As an operator that stores its result rounds it.
template <class T>
[[gnu::always_inline]] inline Vector rounded(const Vector& v) {
  if constexpr (std::is_same_v<T, float>) return v;
  alignas(kRegisterBytes) std::byte memory[kLanes * sizeof(T)];
  T* stored = reinterpret_cast<T*>(memory);
  write(v, kLanes, stored);
  return read(stored, kLanes);
}

// Of n channels, at most a vector of them.
template <class T, bool kResidual, bool kBounded>
[[gnu::always_inline]] inline void finish(const EpilogueArguments& a, int64_t at, int64_t channel,
                                          int64_t n) {
  const Vector scale = read(a.scale + channel, n), shift = read(a.shift + channel, n),
               x = read(static_cast<const T*>(a.x) + at, n);
  Vector v = x * scale + shift;  // no branch between them, so that all forms multiply and add as one
  if constexpr (kResidual) v = rounded<T>(v) + read(static_cast<const T*>(a.residual) + at, n);
  if constexpr (kBounded) {
    const Vector low = Vector{} + a.low, high = Vector{} + a.high;
    v = v < low ? low : v;
    v = v > high ? high : v;
  }
  write(v, n, static_cast<T*>(a.y) + at);
}

template <class T, bool kResidual, bool kBounded>
void rows(const EpilogueArguments& a, int64_t begin, int64_t end) {
  const int64_t whole = a.channels / kLanes * kLanes;
  for (int64_t row = begin; row < end; ++row) {
    const int64_t at = row * a.channels;
    for (int64_t c = 0; c < whole; c += kLanes) finish<T, kResidual, kBounded>(a, at + c, c, kLanes);
    if (whole < a.channels) finish<T, kResidual, kBounded>(a, at + whole, whole, a.channels - whole);
  }
}

template <class T>
void rows(const EpilogueArguments& a, int64_t begin, int64_t end) {
  if (a.residual)
    a.bounded ? rows<T, true, true>(a, begin, end) : rows<T, true, false>(a, begin, end);
  else
    a.bounded ? rows<T, false, true>(a, begin, end) : rows<T, false, false>(a, begin, end);
}

}  // namespace

void epilogue_rows(const EpilogueArguments& a, int64_t begin, int64_t end) {
  if (a.dtype == DType::Float32)
    rows<float>(a, begin, end);
  else
    rows<BFloat16>(a, begin, end);
}

}  // namespace rushlight::cpu::RL_ISA
