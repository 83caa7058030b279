// Single draws, one at a time: what the distributions without a vectorised form are built on.
#pragma once
#include <cmath>
#include <mutex>
#include <numbers>

#include "cpu/random.h"

namespace rushlight::cpu {

constexpr uint64_t kDoubleBits = (uint64_t{1} << 53) - 1;

inline double unit_double(uint64_t bits) {
  return static_cast<double>(static_cast<int64_t>(bits & kDoubleBits)) * 0x1p-53;
}

// Holds the generator's lock while it lives.
struct Draws {
  explicit Draws(Generator& g) : g(g), lock(g.mutex()) {}
  double uniform() { return unit_double(g.random64()); }
  // Box-Muller; the second value of each pair waits in the generator for the next call.
  double normal() {
    if (g.next_double_normal) {
      const double value = *g.next_double_normal;
      g.next_double_normal.reset();
      return value;
    }
    const double angle = 2 * std::numbers::pi * uniform(), radius = std::sqrt(-2 * std::log1p(-uniform()));
    g.next_double_normal = radius * std::sin(angle);
    return radius * std::cos(angle);
  }
  Generator& g;
  std::lock_guard<std::mutex> lock;
};

template <class Types, class F>
void fill_each(RandomOut out, Types types, std::string_view op, F draw) {
  visit_dtype(types, out.dtype, op, [&](auto tag) {
    using T = decltype(tag);
    T* data = static_cast<T*>(out.data);
    for (int64_t i = 0; i < out.n; i++) data[i] = convert<T>(draw());
  });
}

}  // namespace rushlight::cpu
