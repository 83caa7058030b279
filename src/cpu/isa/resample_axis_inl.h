// What resizing along an axis needs in the type that is summed: shared by resample.cpp and its loops on
// bytes.
#pragma once
#include <algorithm>
#include <cstdint>

#include "cpu/resample.h"
#include "cpu/scratch.h"

namespace rushlight::cpu::RL_ISA {
namespace {

template <class T>
class Scratch {
 public:
  explicit Scratch(int64_t n) : data_(static_cast<T*>(take_scratch(n * static_cast<int64_t>(sizeof(T))))) {}
  ~Scratch() { give_scratch(data_); }
  Scratch(const Scratch&) = delete;
  T& operator[](int64_t i) const { return data_[i]; }
  T* at(int64_t i) const { return data_ + i; }

 private:
  T* data_;
};

// How a type is summed: floats as they are, bytes in fixed point as PyTorch does.
template <class T>
struct Arithmetic {
  using Middle = compute_type<T>;
  using Weight = compute_type<T>;
  using Sum = compute_type<T>;
  static Weight weight(double w, int) { return static_cast<Weight>(w); }
  static Sum start(int) { return 0; }
  template <class To>
  static To finish(Sum sum, int) {
    return To(sum);
  }
};
template <>
struct Arithmetic<uint8_t> {
  using Middle = uint8_t;
  using Weight = int32_t;
  using Sum = int32_t;
  static Weight weight(double w, int precision) {
    return static_cast<int32_t>(w * (1 << precision) + (w < 0 ? -0.5 : 0.5));
  }
  static int precision(double most) {
    int p = 0;
    while (p < 22 && static_cast<int>(0.5 + most * (1 << (p + 1))) < (1 << 15)) ++p;
    return p;
  }
  static Sum start(int precision) { return precision > 0 ? 1 << (precision - 1) : 0; }
  template <class To>
  static To finish(Sum sum, int precision) {
    return static_cast<To>(std::min(std::max(sum >> precision, 0), 255));
  }
};

// An axis with its weights in the type they are used in.
template <class A>
struct Axis {
  const ResampleAxis& axis;
  int precision;
  Scratch<typename A::Weight> weight;
  Scratch<int64_t> used;  // taps of an output up to the last whose weight counts
  explicit Axis(const ResampleAxis& a)
      : axis(a), precision(0), weight(static_cast<int64_t>(a.weight.size())), used(a.out) {
    if constexpr (std::is_integral_v<typename A::Weight>)
      weigh_merged();
    else
      for (size_t i = 0; i < a.weight.size(); ++i)
        weight[static_cast<int64_t>(i)] = A::weight(a.weight[i], precision);
    for (int64_t o = 0; o < a.out; ++o)
      for (used[o] = a.taps; used[o] > 1 && weight[(used[o] - 1) * a.out + o] == 0;) --used[o];
  }
  // Taps on one element count together, so that they are rounded together: they follow each other.
  void weigh_merged() {
    const auto n = static_cast<int64_t>(axis.weight.size());
    Scratch<double> merged(n);
    double most = 0;
    for (int64_t o = 0; o < axis.out; ++o)
      for (int64_t i = o, first = o; i < n; i += axis.out) {
        if (axis.index[static_cast<size_t>(i)] != axis.index[static_cast<size_t>(first)]) first = i;
        merged[i] = 0;
        merged[first] += axis.weight[static_cast<size_t>(i)];
        most = std::max(most, merged[first]);
      }
    precision = A::precision(most);
    for (int64_t i = 0; i < n; ++i) weight[i] = A::weight(merged[i], precision);
  }
};

}  // namespace
}  // namespace rushlight::cpu::RL_ISA
