// Lines of few elements, without branches on their order.
#include <array>
#include <type_traits>

#include "cpu/has_vectors.h"
#include "cpu/line_order.h"
#include "cpu/lines.h"
#include "cpu/order_key.h"
#include "cpu/rank.h"
#include "cpu/scan.h"
#include "cpu/sort.h"

namespace rushlight::cpu {
namespace {

constexpr int64_t kFew = 8;              // which are ranked before their order is known
constexpr int64_t kShort = kMostRanked;  // up to as many std::sort leaves equal elements as they were

template <class T>
[[gnu::always_inline]] inline void sort_short_line(Line<const T> x, int64_t n, bool descending,
                                                   Line<T> values, Line<int64_t> positions,
                                                   const RankKernels& kernels) {
  std::array<T, kShort> own;
  using Rank = std::make_signed_t<KeyOf<T>>;
  alignas(64) std::array<Rank, kShort> keys, rank;
  for (int64_t i = 0; i < n; ++i) own[i] = x[i], keys[i] = signed_key(own[i], descending);
  if constexpr (sizeof(Rank) == sizeof(int32_t))
    kernels.narrow(keys.data(), static_cast<int>(n), rank.data());
  else
    kernels.wide(keys.data(), static_cast<int>(n), rank.data());
  for (int64_t i = 0; i < n; ++i) values[rank[i]] = own[i];
  for (int64_t i = 0; i < n; ++i) positions[rank[i]] = i;
}

}  // namespace

bool sort_short_lines(const Tensor& in, int64_t dim, bool descending, const Tensor& values,
                      const Tensor& indices) {
  const int64_t n = line_length(in, dim);
  // The baseline compares no numbers of 64 bits in registers.
  if (n > (element_size(in.dtype()) == 8 && !has_vectors() ? kFew : kShort) || in.numel() == 0) return false;
  if (take_lines_of_one(in, dim, values, indices)) return true;
  visit_dtype(Concat<TypeList<bool>, RealTypes>{}, in.dtype(), "sort", [&]<class T>(T) {
    const RankKernels kernels = RL_ISA_VARIANT(rank_kernels());
    for_each_line<3>({&in, &values, &indices}, dim, [&](const auto& at) {
      const auto x = line_of<const T>(in, dim, at[0]);
      const auto to = line_of<T>(values, dim, at[1]);
      const auto positions = line_of<int64_t>(indices, dim, at[2]);
      if (n > kFew && sort_line_in_order(x, n, descending, true, to, positions)) return;
      if (x.stride == 1 && to.stride == 1 && positions.stride == 1)
        sort_short_line<T>({x.data, 1}, n, descending, {to.data, 1}, {positions.data, 1}, kernels);
      else
        sort_short_line<T>(x, n, descending, to, positions, kernels);
    });
  });
  return true;
}

}  // namespace rushlight::cpu
