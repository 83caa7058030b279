// Searching in sorted sequences. One that serves all values is read into the memory of each team.
#include <algorithm>

#include "cuda/memory.h"
#include "cuda/order.h"
#include "cuda/team.h"

namespace rushlight::cuda {
namespace {

template <class S>
using Compared = std::conditional_t<is_stored_half<S>, float, S>;

// Halves its range as PyTorch does, which lines out of order show.
template <class S, class I>
RL_BOTH inline int64_t place_in(const S* line, const int64_t* sorter, I n, S stored, bool right) {
  using C = Compared<S>;
  const C value = number<C>(stored);
  I begin = 0, end = n;
  while (begin < end) {
    const I middle = begin + (end - begin) / 2;
    const C x = number<C>(line[sorter ? sorter[middle] : middle]);
    if (right ? !(x > value) : !(x >= value))
      begin = middle + 1;
    else
      end = middle;
  }
  return static_cast<int64_t>(begin);
}

template <class S, class Out>
struct Search {
  const S *boundaries, *values;
  const int64_t* sorter;
  Out* out;
  int64_t n, values_per_line;
  bool shared, right;
  RL_BOTH void operator()(int64_t i) const {
    const int64_t offset = shared ? 0 : i / values_per_line * n;
    const int64_t* order = sorter ? sorter + offset : nullptr;
    const S* line = boundaries + offset;
    out[i] = static_cast<Out>(
        n < INT32_MAX ? place_in<S, uint32_t>(line, order, static_cast<uint32_t>(n), values[i], right)
                      : place_in<S, int64_t>(line, order, n, values[i], right));
  }
};

template <class S, class Out>
struct SearchTogether {
  const S *boundaries, *values;
  Out* out;
  int64_t n, total, teams;
  bool right;
  RL_DEVICE void operator()(const Team& team) const {
    S* line = reinterpret_cast<S*>(team.memory);
    team.each([&](uint32_t t) {
      for (int64_t i = t; i < n; i += kTeamThreads) line[i] = boundaries[i];
    });
    team.each([&](uint32_t t) {
      for (int64_t i = team.index * kTeamThreads + t; i < total; i += teams * kTeamThreads)
        out[i] = static_cast<Out>(
            place_in<S, uint32_t>(line, nullptr, static_cast<uint32_t>(n), values[i], right));
    });
  }
};

template <class S, class Out>
void search_as(const Launch& at, const DeviceSearch& a) {
  constexpr int64_t kMostBytes = 32 << 10, kMostTeams = 1024, kRepaid = 16;
  const S *boundaries = static_cast<const S*>(a.boundaries), *values = static_cast<const S*>(a.values);
  auto* out = static_cast<Out*>(a.out);
  const int64_t n = a.boundaries_per_line, total = a.lines * a.values_per_line;
  const int64_t bytes = n * static_cast<int64_t>(sizeof(S));
  const int64_t teams = std::min(kMostTeams, (total + kTeamThreads - 1) / kTeamThreads);
  if (a.shared && !a.sorter && bytes <= kMostBytes && total > kRepaid * n)
    return for_each_team(at, teams, static_cast<size_t>(bytes),
                         SearchTogether<S, Out>{boundaries, values, out, n, total, teams, a.right});
  for_each_index(at, total,
                 Search<S, Out>{boundaries, values, a.sorter, out, n, a.values_per_line, a.shared, a.right});
}

}  // namespace

void search_sorted(const DeviceSearch& a) {
  const Launch at{a.device, "searchsorted"};
  visit_stored(a.dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    a.narrow ? search_as<S, int32_t>(at, a) : search_as<S, int64_t>(at, a);
  });
}

}  // namespace rushlight::cuda
