#include "cpu/sparse.h"

#include <algorithm>
#include <memory>

#include "core/parallel.h"

namespace rushlight::cpu {
namespace {

template <class T>
struct Sum {
  using type = T;
};
template <>
struct Sum<Half> {
  using type = float;
};
template <>
struct Sum<BFloat16> {
  using type = float;
};

// One row of the result, summed in `sums` when T itself is too narrow to sum in.
template <class T>
void row_product(int64_t begin, int64_t end, int64_t width, const int64_t* columns, const T* values,
                 const T* dense, T* out, typename Sum<T>::type* sums) {
  using S = typename Sum<T>::type;
  S* to;
  if constexpr (std::is_same_v<S, T>)
    to = out;
  else
    to = sums;
  std::fill(to, to + width, S(0));
  for (int64_t i = begin; i < end; ++i) {
    const S value = static_cast<S>(values[i]);
    const T* row = dense + columns[i] * width;
    for (int64_t j = 0; j < width; ++j) to[j] += value * static_cast<S>(row[j]);
  }
  if constexpr (!std::is_same_v<S, T>)
    std::transform(to, to + width, out, [](S s) { return static_cast<T>(s); });
}

}  // namespace

void sparse_times_dense(DType dtype, int64_t rows, int64_t width, const int64_t* starts,
                        const int64_t* columns, const void* values, const void* dense, void* out) {
  visit_dtype(NumberTypes{}, dtype, "sparse_mm", [&](auto tag) {
    using T = decltype(tag);
    using S = typename Sum<T>::type;
    const int64_t work = rows == 0 ? 1 : (starts[rows] * width) / rows + 1;
    parallel_for(0, rows, std::max<int64_t>(1, 16384 / work), [&](int64_t first, int64_t last) {
      auto sums = std::make_unique<S[]>(std::is_same_v<S, T> ? 0 : static_cast<size_t>(width));
      for (int64_t r = first; r < last; ++r)
        row_product<T>(starts[r], starts[r + 1], width, columns, static_cast<const T*>(values),
                       static_cast<const T*>(dense), static_cast<T*>(out) + r * width, sums.get());
    });
  });
}

}  // namespace rushlight::cpu
