// Reductions of a table's rows over bags of indices: a thread has one column of a bag.
#include "cpu/embedding_bag.h"
#include "cuda/channels.h"
#include "cuda/layers.h"

namespace rushlight::cuda {
namespace {

using cpu::BagMode;

template <class S>
struct ReduceBag {
  cpu::BagPlan p;
  const S *table, *factors;
  S* out;
  int64_t *counts, *largest;
  RL_BOTH void operator()(int64_t i) const {
    using C = ComputeOf<S>;
    const int64_t bag = i / p.width, column = i - bag * p.width;
    C sum = 0, best = 0;
    int64_t count = 0, place = -1;
    for (int64_t k = p.starts[bag]; k < p.starts[bag + 1]; ++k) {
      const int64_t row = p.indices[k];
      device_assert(row >= 0 && row < p.rows, "embedding_bag: index out of range");
      if (row == p.skipped) continue;
      ++count;
      const C value = number<C>(table[row * p.width + column]);
      if (p.mode == BagMode::Max) {
        if (place < 0 || value > best) best = value, place = row;
      } else {
        sum += factors ? value * number<C>(factors[k]) : value;
      }
    }
    if (p.mode == BagMode::Mean && count > 0) sum /= static_cast<C>(count);
    out[i] = number<S>(p.mode == BagMode::Max ? best : sum);
    if (largest) largest[i] = place;
    if (column == 0) counts[bag] = count;
  }
};

}  // namespace

void embedding_bag(int device, const cpu::BagPlan& p, const void* table, void* out, int64_t* counts,
                   int64_t* largest) {
  visit_floating(p.dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    for_each_index({device, "embedding_bag"}, p.bags * p.width,
                   ReduceBag<S>{p, static_cast<const S*>(table), static_cast<const S*>(p.factors),
                                static_cast<S*>(out), counts, largest});
  });
}

}  // namespace rushlight::cuda
