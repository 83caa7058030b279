#include "cpu/factory.h"

#include <cmath>
#include <cstring>

#include "core/parallel.h"

namespace rushlight::cpu {

void fill_range(const Tensor& out, const Scalar& start, const Scalar& step) {
  visit_dtype(RealTypes{}, out.dtype(), "arange", [&](auto tag) {
    using T = decltype(tag);
    using Step = std::conditional_t<std::is_integral_v<T>, int64_t, double>;
    const Step first = start.to<Step>(), by = step.to<Step>();
    T* data = out.data<T>();
    parallel_for(0, out.numel(), kGrainSize, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i)
        data[i] = convert<T>(static_cast<Step>(first + by * static_cast<Step>(i)));
    });
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
    parallel_for(0, n, kGrainSize / 8, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) {  // from the nearer end, so that both ends are exact
        Step value = i < n / 2 || n == 1 ? first + by * Step(static_cast<double>(i))
                                         : last - by * Step(static_cast<double>(n - 1 - i));
        if (base) value = std::pow(Step(*base), value);
        data[i] = convert<T>(value);
      }
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
        for (int64_t r = b; r < e; ++r) {
          const int64_t edge = std::clamp<int64_t>(r % rows + diagonal + (upper ? 0 : 1), 0, columns);
          const int64_t from = upper ? 0 : edge, to = upper ? edge : columns;
          std::memset(data + (r * columns + from) * item, 0, static_cast<size_t>((to - from) * item));
        }
      });
}

}  // namespace rushlight::cpu
