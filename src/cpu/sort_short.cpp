// Lines of few elements, without branches on their order.
#include <array>
#include <cstring>

#include "cpu/line_order.h"
#include "cpu/lines.h"
#include "cpu/order_key.h"
#include "cpu/scan.h"
#include "cpu/sort.h"

namespace rushlight::cpu {
namespace {

constexpr int64_t kFew = 8;     // which are ranked before their order is known
constexpr int64_t kShort = 16;  // up to as many std::sort leaves equal elements as they were

// How many come before each of n keys; of equal ones the first stays first.
template <class K>
void rank_keys(const std::array<K, kShort>& keys, int64_t n, std::array<int32_t, kShort>& rank) {
  if constexpr (sizeof(K) == sizeof(int32_t)) {
    constexpr int64_t kLanes = 4;
    typedef int32_t Lanes __attribute__((vector_size(kLanes * sizeof(int32_t))));
    constexpr K kSign = K{1} << 31;  // registers compare numbers with a sign
    const auto load = [&](int64_t at) {
      Lanes lanes;
      std::memcpy(&lanes, keys.data() + at, sizeof(lanes));
      return lanes ^ static_cast<int32_t>(kSign);
    };
    for (int64_t first = 0; first < n; first += 2 * kLanes) {
      const Lanes low = load(first), high = load(first + kLanes);
      Lanes low_rank{}, high_rank{}, ahead = {0, 1, 2, 3};  // places from key i to the lane's own
      ahead += static_cast<int32_t>(first);
      for (int64_t i = 0; i < n; ++i, ahead -= 1) {
        const Lanes key = Lanes{} + static_cast<int32_t>(keys[static_cast<size_t>(i)] ^ kSign);
        low_rank -= (key < low) | ((key == low) & (ahead > 0));
        high_rank -= (key < high) | ((key == high) & (ahead > -static_cast<int32_t>(kLanes)));
      }
      std::memcpy(rank.data() + first, &low_rank, sizeof(low_rank));
      std::memcpy(rank.data() + first + kLanes, &high_rank, sizeof(high_rank));
    }
  } else {
    for (int64_t i = 0; i < n; ++i) {
      const K own = keys[static_cast<size_t>(i)];
      int32_t before = 0;
      for (int64_t j = 0; j < i; ++j) before += keys[static_cast<size_t>(j)] <= own;
      for (int64_t j = i + 1; j < n; ++j) before += keys[static_cast<size_t>(j)] < own;
      rank[static_cast<size_t>(i)] = before;
    }
  }
}

}  // namespace

bool sort_short_lines(const Tensor& in, int64_t dim, bool descending, const Tensor& values,
                      const Tensor& indices) {
  const int64_t n = line_length(in, dim);
  // Keys of 64 bits are not compared four at once.
  if (n > (element_size(in.dtype()) == 8 ? kFew : kShort) || in.numel() == 0) return false;
  if (take_lines_of_one(in, dim, values, indices)) return true;
  visit_dtype(Concat<TypeList<bool>, RealTypes>{}, in.dtype(), "sort", [&]<class T>(T) {
    for_each_line<3>({&in, &values, &indices}, dim, [&](const auto& at) {
      const auto x = line_of<const T>(in, dim, at[0]);
      const auto to = line_of<T>(values, dim, at[1]);
      const auto positions = line_of<int64_t>(indices, dim, at[2]);
      if (n > kFew && sort_line_in_order(x, n, descending, true, to, positions)) return;
      std::array<T, kShort> own;
      std::array<KeyOf<T>, kShort> keys{};
      std::array<int32_t, kShort> rank;
      for (int64_t i = 0; i < n; ++i) {
        own[i] = x[i];
        keys[i] = descending ? ~order_key(own[i]) : order_key(own[i]);
      }
      rank_keys(keys, n, rank);
      for (int64_t i = 0; i < n; ++i) to[rank[i]] = own[i], positions[rank[i]] = i;
    });
  });
  return true;
}

}  // namespace rushlight::cpu
