// Normalisations of halves: their elements as floats, piece by piece.
#pragma once
#include <type_traits>

#include "core/parallel.h"
#include "cpu/isa/half_inl.h"
#include "cpu/norm.h"
#include "cpu/scratch.h"

// Each instruction set compiles its own.
namespace rushlight::cpu::RL_ISA {
namespace {

inline int64_t row_grain(int64_t n) { return std::max<int64_t>(1, kGrainSize / 2 / std::max<int64_t>(n, 1)); }

// Halves as floats in a buffer, or room for as many: the compiler turns no loop over halves into vectors.
constexpr int64_t kWidened = int64_t{1} << 18;
class Widened {
 public:
  explicit Widened(int64_t n)
      : n_(n), data_(static_cast<float*>(take_scratch(n * static_cast<int64_t>(sizeof(float))))) {}
  Widened(const void* halves, int64_t n) : Widened(n) {
    parallel_for(0, n, kGrainSize, [&](int64_t begin, int64_t end) {
      widen(static_cast<const Half*>(halves) + begin, data_ + begin, end - begin);
    });
  }
  ~Widened() { give_scratch(data_); }
  Widened(const Widened&) = delete;
  float* data() const { return data_; }
  void store(void* halves) const {
    parallel_for(0, n_, kGrainSize, [&](int64_t begin, int64_t end) {
      narrow(data_ + begin, static_cast<Half*>(halves) + begin, end - begin);
    });
  }

 private:
  int64_t n_;
  float* data_;
};
template <class T>
bool widens(int64_t n) {
  return std::is_same_v<T, Half> && n <= kWidened;
}
// Up to `most` elements at a time of larger ones: halves as floats, others where they are.
template <class T>
struct Rows {
  const T* first;
  int64_t step;
  const T* at(int64_t row) const { return first + row * step; }
};
template <class T>
class Lines {
 public:
  using Element = T;
  explicit Lines(int64_t) {}
  Rows<T> read_rows(const T* x, int64_t, int64_t step, int64_t) const { return {x, step}; }
  const T* read(const T* x, int64_t) const { return x; }
  // Calls f with the place of n results.
  template <class F>
  void fill(T* y, int64_t, F&& f) const {
    f(y);
  }
};
template <>
class Lines<Half> {
 public:
  using Element = float;
  explicit Lines(int64_t most) : wide_(most) {}
  const float* read(const Half* x, int64_t n) const {
    widen(x, wide_.data(), n);
    return wide_.data();
  }
  // Of rows that are `step` apart, the first n elements each.
  Rows<float> read_rows(const Half* x, int64_t rows, int64_t step, int64_t n) const {
    if (n == step)
      widen(x, wide_.data(), rows * n);
    else
      for (int64_t r = 0; r < rows; ++r) widen(x + r * step, wide_.data() + r * n, n);
    return {wide_.data(), n};
  }
  template <class F>
  void fill(Half* y, int64_t n, F&& f) const {
    f(wide_.data());
    narrow(wide_.data(), y, n);
  }

 private:
  Widened wide_;
};

template <class T>
auto* after(T* p, int64_t n) {  // n floats or doubles further, where there are any
  using Bytes = std::conditional_t<std::is_const_v<T>, const float, float>;
  return p ? static_cast<Bytes*>(p) + n : nullptr;
}
// Calls f with arguments whose x and gradients are floats instead of halves.
template <class F>
void with_floats(const NormGradients& a, int64_t n, F&& f) {
  const Widened x(a.x, n), grad(a.grad, n), grad_x(a.grad_x ? n : 0);
  NormGradients wide = a;
  wide.x = x.data(), wide.grad = grad.data(), wide.grad_x = a.grad_x ? grad_x.data() : nullptr;
  f(wide);
  if (a.grad_x) grad_x.store(a.grad_x);
}

// Floats for three lines, from which one at a time is computed.
class Room {
 public:
  // Apart by no multiple of a page: reads would wait for writes whose addresses end alike.
  explicit Room(int64_t n) : step_(n + 80), memory_(3 * step_) {}
  template <class F>
  void with_floats(const NormArguments& a, int64_t from, int64_t n, F&& f) const {
    NormArguments wide = a;
    wide.x = read(0, a.x, from, n), wide.y = at(1);
    f(wide);
    narrow(at(1), static_cast<Half*>(a.y) + from, n);
  }
  template <class F>
  void with_floats(const NormGradients& a, int64_t from, int64_t n, F&& f) const {
    NormGradients wide = a;
    wide.x = read(0, a.x, from, n), wide.grad = read(1, a.grad, from, n), wide.grad_x = at(2);
    f(wide);
    narrow(at(2), static_cast<Half*>(a.grad_x) + from, n);
  }

 private:
  float* at(int64_t line) const { return memory_.data() + line * step_; }
  const float* read(int64_t line, const void* halves, int64_t from, int64_t n) const {
    widen(static_cast<const Half*>(halves) + from, at(line), n);
    return at(line);
  }
  int64_t step_;
  Widened memory_;
};
// Calls f(first row, rows, room) for pieces that stay in the first-level cache as floats.
template <class F>
void by_pieces(int64_t rows, int64_t n, F&& f) {
  constexpr int64_t kPiece = 512;
  const int64_t some = std::max<int64_t>(1, kPiece / std::max<int64_t>(n, 1)),
                pieces = (rows + some - 1) / some;
  parallel_for(0, pieces, row_grain(some * n), [&](int64_t begin, int64_t end) {
    const Room room(some * n);
    for (int64_t p = begin; p < end; ++p) f(p * some, std::min(some, rows - p * some), room);
  });
}

// Whether channels of halves are widened one by one.
bool has_long_channels(ChannelShape s) { return s.inner >= 16; }
void widen_channel(ChannelShape s, const Half* from, int64_t channel, float* to) {
  for (int64_t o = 0; o < s.outer; ++o)
    widen(from + (o * s.channels + channel) * s.inner, to + o * s.inner, s.inner);
}
void store_channel(ChannelShape s, const float* from, int64_t channel, Half* to) {
  for (int64_t o = 0; o < s.outer; ++o)
    narrow(from + o * s.inner, to + (o * s.channels + channel) * s.inner, s.inner);
}

}  // namespace
}  // namespace rushlight::cpu::RL_ISA
