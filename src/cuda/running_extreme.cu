// Running maxima and minima of lines with their places: a block goes through a line in tiles.
#include "cuda/launch.h"
#include "cuda/memory.h"
#include "cuda/order.h"

namespace rushlight::cuda {
namespace {

constexpr int kEach = 8;  // consecutive elements of a thread

template <class S>
using Compared = std::conditional_t<is_stored_half<S>, float, S>;

template <class S>
struct Best {
  S value;
  int64_t at;  // -1: none
};
// NaN is ahead of numbers, a later place of an earlier one.
template <class S>
struct Ahead {
  bool largest;
  RL_BOTH Best<S> operator()(const Best<S>& a, const Best<S>& b) const {
    using C = Compared<S>;
    if (a.at < 0 || b.at < 0) return a.at < 0 ? b : a;
    const C x = number<C>(a.value), y = number<C>(b.value);
    const bool x_nan = x != x, y_nan = y != y;
    if (x_nan != y_nan) return x_nan ? a : b;
    if (!x_nan && x != y) return (x > y) == largest ? a : b;
    return a.at > b.at ? a : b;
  }
};

template <class S>
struct RunningExtreme {
  const S* in;
  S* values;
  int64_t* places;
  int64_t n;
  Ahead<S> ahead;
  RL_DEVICE void operator()(const Block& block) const {
    const int64_t begin = block.index * n;
    const Best<S> none{in[begin], -1};
    Best<S> before = none;
    for (int64_t tile = 0; tile < n; tile += int64_t{block.threads} * kEach) {
      const int64_t first = tile + int64_t{block.thread} * kEach;
      const int64_t end = first + kEach < n ? first + kEach : n;
      Best<S> own = none;
      for (int64_t i = first; i < end; ++i) own = ahead(own, Best<S>{in[begin + i], i});
      Best<S> after = before, best = block_scan(block, own, before, ahead, &after);
      before = after;
      for (int64_t i = first; i < end; ++i) {
        best = ahead(best, Best<S>{in[begin + i], i});
        values[begin + i] = best.value, places[begin + i] = best.at;
      }
    }
  }
};

}  // namespace

void running_extreme(const DeviceLines& a, bool largest, void* values, int64_t* places) {
  visit_stored(a.dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    for_each_block({a.device, "running_extreme"}, a.lines,
                   RunningExtreme<S>{static_cast<const S*>(a.in), static_cast<S*>(values), places, a.n,
                                     Ahead<S>{largest}});
  });
}

}  // namespace rushlight::cuda
