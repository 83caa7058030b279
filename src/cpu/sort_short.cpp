// Lines of few elements, without branches on their order.
#include <array>

#include "cpu/lines.h"
#include "cpu/order_key.h"
#include "cpu/scan.h"
#include "cpu/sort.h"

namespace rushlight::cpu {

bool sort_short_lines(const Tensor& in, int64_t dim, bool descending, const Tensor& values,
                      const Tensor& indices) {
  constexpr int64_t kShort = 8;
  const int64_t n = line_length(in, dim);
  if (n > kShort || in.numel() == 0) return false;
  if (take_lines_of_one(in, dim, values, indices)) return true;
  visit_dtype(Concat<TypeList<bool>, RealTypes>{}, in.dtype(), "sort", [&]<class T>(T) {
    for_each_line<3>({&in, &values, &indices}, dim, [&](const auto& at) {
      const auto x = line_of<const T>(in, dim, at[0]);
      const auto to = line_of<T>(values, dim, at[1]);
      const auto positions = line_of<int64_t>(indices, dim, at[2]);
      std::array<T, kShort> own;
      std::array<KeyOf<T>, kShort> keys;
      std::array<int64_t, kShort> rank{};
      for (int64_t i = 0; i < n; ++i) {
        own[i] = x[i];
        keys[i] = descending ? ~order_key(own[i]) : order_key(own[i]);
      }
      for (int64_t i = 1; i < n; ++i)
        for (int64_t j = 0; j < i; ++j) {  // of equal ones the first stays first
          const bool before = keys[i] < keys[j];
          rank[j] += before, rank[i] += !before;
        }
      for (int64_t i = 0; i < n; ++i) to[rank[i]] = own[i], positions[rank[i]] = i;
    });
  });
  return true;
}

}  // namespace rushlight::cpu
