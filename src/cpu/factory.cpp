#include "cpu/factory.h"

#include <cmath>
#include <cstring>

#include "core/parallel.h"

namespace rushlight::cpu {

namespace {

constexpr int kLanes = 16;  // elements side by side: loops of known length are compiled to vectors

// first + by * i for i in [begin, end); integers wrap.
template <class T, class Step>
void fill_line(T* to, int64_t begin, int64_t end, Step first, Step by) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    const auto start = static_cast<U>(first), step = static_cast<U>(by);
    U ahead[kLanes];
    for (int i = 0; i < kLanes; ++i) ahead[i] = static_cast<U>(step * static_cast<U>(i));
    for (; begin + kLanes <= end; begin += kLanes) {
      const U base = static_cast<U>(start + static_cast<U>(step * static_cast<U>(begin)));
      for (int i = 0; i < kLanes; ++i) to[begin + i] = static_cast<T>(base + ahead[i]);
    }
    for (; begin < end; ++begin)
      to[begin] = static_cast<T>(start + static_cast<U>(step * static_cast<U>(begin)));
  } else {
    for (; begin + kLanes <= end; begin += kLanes) {
      const auto base = static_cast<Step>(begin);
      for (int i = 0; i < kLanes; ++i) to[begin + i] = convert<T>(first + by * (base + static_cast<Step>(i)));
    }
    for (; begin < end; ++begin) to[begin] = convert<T>(first + by * static_cast<Step>(begin));
  }
}

// start + by * |i - from| for the next elements i of [begin, end); the answer is where they end.
template <class T, class Step>
int64_t fill_spaced_block(T* to, int64_t begin, int64_t end, Step start, Step by, int64_t from) {
  const auto distance = static_cast<double>(from > 0 ? from - begin : begin);
  const double forward = from > 0 ? -1 : 1;
  if (end - begin < kLanes) {
    for (int64_t i = 0; begin < end; ++begin, ++i)
      to[begin] = convert<T>(start + by * Step(distance + forward * static_cast<double>(i)));
    return end;
  }
  for (int i = 0; i < kLanes; ++i) to[begin + i] = convert<T>(start + by * Step(distance + forward * i));
  return begin + kLanes;
}

}  // namespace

void fill_range(const Tensor& out, const Scalar& start, const Scalar& step) {
  visit_dtype(RealTypes{}, out.dtype(), "arange", [&](auto tag) {
    using T = decltype(tag);
    using Step = std::conditional_t<std::is_integral_v<T>, int64_t, double>;
    const Step first = start.to<Step>(), by = step.to<Step>();
    parallel_for(0, out.numel(), kGrainSize,
                 [&](int64_t begin, int64_t end) { fill_line(out.data<T>(), begin, end, first, by); });
  });
}

void fill_spaced(const Tensor& out, const Scalar& start, const Scalar& end, std::optional<double> base) {
  const int64_t n = out.numel();
  visit_dtype(NumberTypes{}, out.dtype(), "linspace", [&](auto tag) {
    using T = decltype(tag);
    using Step = std::conditional_t<std::is_integral_v<T>, double, compute_type<T>>;
    const Step first = convert<Step>(start.to<T>()), last = convert<Step>(end.to<T>());
    const Step by = n > 1 ? (last - first) / Step(static_cast<double>(n - 1)) : Step(0);
    T* data = out.data<T>();
    // From the nearer end, so that both ends are exact.
    const auto value = [=](int64_t i) {
      return i < n / 2 || n == 1 ? first + by * Step(static_cast<double>(i))
                                 : last - by * Step(static_cast<double>(n - 1 - i));
    };
    parallel_for(0, n, kGrainSize / 8, [&](int64_t b, int64_t e) {
      if (base) {
        const Step power = Step(*base);
        for (int64_t i = b; i < e; ++i) data[i] = convert<T>(std::pow(power, value(i)));
        return;
      }
      for (; b < e && b < n / 2 && n > 1; b = fill_spaced_block(data, b, std::min(e, n / 2), first, by, 0)) {
      }
      for (; b < e && n > 1; b = fill_spaced_block(data, b, e, last, -by, n - 1)) {
      }
      for (; b < e; ++b) data[b] = convert<T>(value(b));
    });
  });
}

void clear_triangle(const Tensor& out, int64_t diagonal, bool upper) {
  const int64_t columns = out.size(-1), rows = out.size(-2);
  const auto item = static_cast<int64_t>(out.itemsize());
  if (out.numel() == 0) return;
  diagonal = std::clamp(diagonal, -rows - 1, columns + 1);
  char* data = out.data<char>();
  parallel_for(
      0, out.numel() / columns, std::max<int64_t>(1, kGrainSize / columns), [&](int64_t b, int64_t e) {
        int64_t line = b % rows;
        for (int64_t r = b; r < e; ++r) {
          const int64_t edge = std::clamp<int64_t>(line + diagonal + (upper ? 0 : 1), 0, columns);
          const int64_t from = upper ? 0 : edge, to = upper ? edge : columns;
          if (++line == rows) line = 0;
          if (from == to) continue;
          std::memset(data + (r * columns + from) * item, 0, static_cast<size_t>((to - from) * item));
        }
      });
}

}  // namespace rushlight::cpu
