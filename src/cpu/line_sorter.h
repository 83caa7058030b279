// The elements of a line as keys with positions, in order: what sorts and selections share.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <vector>

#include "cpu/buffer.h"
#include "cpu/lines.h"
#include "cpu/order_key.h"
#include "cpu/radix_sort.h"
#include "cpu/topk.h"

namespace rushlight::cpu {

using OrderedTypes = Concat<TypeList<bool>, RealTypes>;

// A key with its position: one machine word for keys of 32 bits.
struct WideItem {
  uint64_t key, position;
  bool operator<(const WideItem& o) const { return key != o.key ? key < o.key : position < o.position; }
};
template <class K>
struct ItemTraits;
template <>
struct ItemTraits<uint32_t> {
  using Item = uint64_t;
  static Item make(uint32_t key, uint64_t position) { return uint64_t{key} << 32 | position; }
  static uint32_t key(Item item) { return static_cast<uint32_t>(item >> 32); }
  static int64_t position(Item item) { return static_cast<int64_t>(item & 0xffffffffu); }
};
template <>
struct ItemTraits<uint64_t> {
  using Item = WideItem;
  static Item make(uint64_t key, uint64_t position) { return {key, position}; }
  static uint64_t key(Item item) { return item.key; }
  static int64_t position(Item item) { return static_cast<int64_t>(item.position); }
};

// An object, because a pointer to a function would be called at each comparison.
template <class Traits>
struct LessByKey {
  bool operator()(const typename Traits::Item& a, const typename Traits::Item& b) const {
    return Traits::key(a) < Traits::key(b);
  }
};

constexpr int64_t kVeryLong =
    1 << 16;  // elements of lines of which nobody asks for PyTorch's order of equal ones

template <class T>
struct LineSorter {
  using K = KeyOf<T>;
  using Traits = ItemTraits<K>;
  static constexpr size_t kLong = 24 * sizeof(K);  // items, from which digits are faster than comparisons
  CachedVector<typename Traits::Item> items, scratch, loaded;
  CachedVector<uint32_t> narrow;  // what a narrowed line of another type holds
  std::vector<uint32_t> order_of_equals;
  int uncounted = 0;  // short lines that are selected from without counting

  using Item = typename Traits::Item;

  void load(Line<const T> x, int64_t n, bool descending) {
    items.resize(static_cast<size_t>(n));
    Item* to = items.data();
    const K flip = descending ? ~K{0} : K{0};
    parallel_for(0, n, kGrainSize, [=](int64_t begin, int64_t end) {
      x.stride == 1 ? load_part({x.data, 1}, begin, end, flip, to) : load_part(x, begin, end, flip, to);
    });
  }
  [[gnu::always_inline]] static void load_part(Line<const T> x, int64_t begin, int64_t end, K flip,
                                               Item* to) {
    for (int64_t i = begin; i < end; ++i)
      to[i] = Traits::make(order_key(x[i]) ^ flip, static_cast<uint64_t>(i));
  }
  // The first k in order, by a buffer that is cut back whenever it is full; most elements fail the first
  // comparison.
  void load_first(Line<const T> x, int64_t n, int64_t k, bool descending) {
    const auto capacity = static_cast<size_t>(std::max<int64_t>(4 * k, 64));
    items.clear();
    K bound = ~K{0};
    for (int64_t i = 0; i < n; ++i) {
      const K key = descending ? ~order_key(x[i]) : order_key(x[i]);
      if (key > bound) continue;
      items.push_back(Traits::make(key, static_cast<uint64_t>(i)));
      if (items.size() < capacity) continue;
      std::nth_element(items.begin(), items.begin() + (k - 1), items.end());
      bound = Traits::key(items[k - 1]);
      items.resize(static_cast<size_t>(k));
    }
    std::nth_element(items.begin(), items.begin() + (k - 1), items.end());
  }
  // Whether the first k, in order, could be others by key alone.
  bool tied(Line<const T> x, int64_t n, int64_t k, bool descending) const {
    const auto same = [](const auto& a, const auto& b) { return Traits::key(a) == Traits::key(b); };
    if (std::adjacent_find(items.begin(), items.begin() + k, same) != items.begin() + k) return true;
    const K last = Traits::key(items[k - 1]);
    int64_t count = 0;
    for (int64_t i = 0; i < n; ++i) count += (descending ? ~order_key(x[i]) : order_key(x[i])) == last;
    return count > 1;
  }
  // What std::partial_sort by key alone makes of the first k, without loading the rest: an element that does
  // not come before the last of the k leaves no trace.
  void partial_sort(Line<const T> x, int64_t n, int64_t k, bool descending) {
    constexpr int64_t kBlock = 64;
    const auto key_at = [&](int64_t i) { return descending ? ~order_key(x[i]) : order_key(x[i]); };
    items.resize(static_cast<size_t>(k));
    for (int64_t i = 0; i < k; ++i) items[i] = Traits::make(key_at(i), static_cast<uint64_t>(i));
    std::make_heap(items.begin(), items.end(), less_by_key);
    const SkipOrdered skip = x.stride == 1 ? skip_ordered(dtype_of<T>, descending) : nullptr;
    for (int64_t first = k; first < n; first += kBlock) {
      if (skip) first = skip(x.data, first, n, Traits::position(items[0]));
      if (first == n) break;
      // A list of the few first: branches on all of them would be foretold wrongly.
      int64_t few[kBlock], count = 0;
      const auto bound = static_cast<compute_type<T>>(x[Traits::position(items[0])]);
      for (int64_t i = first; i < std::min(n, first + kBlock); ++i) {
        const auto value = static_cast<compute_type<T>>(x[i]);
        few[count] = i;
        count += !(descending ? value <= bound : value >= bound);  // NaN may come first
      }
      for (int64_t j = 0; j < count; ++j)
        if (const K key = key_at(few[j]); key < Traits::key(items[0]))
          replace_top(Traits::make(key, static_cast<uint64_t>(few[j])));
    }
    std::sort_heap(items.begin(), items.end(), less_by_key);
  }
  // The top's hole sinks to the bottom along the greater children, and the new item rises from there: so the
  // standard library does it, which the order of equal keys shows.
  void replace_top(typename Traits::Item item) {
    const auto n = static_cast<int64_t>(items.size());
    int64_t hole = 0;
    while (hole < (n - 1) / 2) {
      int64_t child = 2 * hole + 2;
      if (less_by_key(items[child], items[child - 1])) --child;
      items[hole] = items[child], hole = child;
    }
    if (n % 2 == 0 && hole == (n - 2) / 2) items[hole] = items[2 * hole + 1], hole = 2 * hole + 1;
    for (int64_t parent = (hole - 1) / 2; hole > 0 && less_by_key(items[parent], item);
         parent = (hole - 1) / 2)
      items[hole] = items[parent], hole = parent;
    items[hole] = item;
  }
  // The first k by key alone. Of equal elements this picks, and leaves in front, those that PyTorch's calls
  // do.
  void select_first(int64_t k, bool in_order) {
    select_first(items.data(), static_cast<int64_t>(items.size()), k, in_order);
  }
  static void select_first(Item* of, int64_t n, int64_t k, bool in_order) {
    if (k * 64 <= n) return std::partial_sort(of, of + k, of + n, less_by_key);
    std::nth_element(of, of + (k - 1), of + n, less_by_key);
    if (in_order) std::sort(of, of + (k - 1), less_by_key);
  }
  // The k first of few elements by insertion, which most of them fail; false where equal keys make the order
  // a matter of the algorithm. One more than k shows that. Whole numbers that are equal on the way seldom are
  // without equals at the end.
  static constexpr int64_t kFewFirst = 8;
  bool insert_first(Line<const T> x, int64_t n, int64_t k, bool descending) {
    typename Traits::Item best[kFewFirst + 1];
    int64_t kept = 0;
    K bound = ~K{0};
    for (int64_t i = 0; i < n; ++i) {
      const K key = descending ? ~order_key(x[i]) : order_key(x[i]);
      if (kept > k && key >= bound) [[likely]]
        continue;
      int64_t at = kept <= k ? kept++ : k;
      for (; at > 0 && key < Traits::key(best[at - 1]); --at) best[at] = best[at - 1];
      if (std::is_integral_v<T> && at > 0 && key == Traits::key(best[at - 1])) return false;
      best[at] = Traits::make(key, static_cast<uint64_t>(i));
      bound = Traits::key(best[kept - 1]);
    }
    for (int64_t i = 1; i < kept; ++i)
      if (Traits::key(best[i - 1]) == Traits::key(best[i])) return false;
    items.assign(best, best + k);
    return true;
  }
  // Whether the digits that differ take less time than comparisons.
  bool pays_by_digits() const {
    const size_t n = items.size();
    if (n >= kLong || n < 16) return n >= kLong;
    K any = 0, all = ~K{0};
    for (const auto& item : items) any |= Traits::key(item), all &= Traits::key(item);
    size_t passes = 0;
    for (K varying = any ^ all; varying; varying >>= 8) passes += (varying & 0xff) != 0;
    return passes * (256 + 4 * n) < n * static_cast<size_t>(std::bit_width(n)) * 5 / 2;
  }
  void sort() {
    if (pays_by_digits())
      radix_sort<Traits>(items, scratch);
    else
      std::sort(items.begin(), items.end());
  }
  // Whether so few bits tell the keys apart that n of them seldom are without equal ones: n * n / 2 pairs.
  bool surely_tied() const {
    K any = 0, all = ~K{0}, least = ~K{0}, most = 0;
    for (const auto& item : items) {
      const K key = Traits::key(item);
      any |= key, all &= key, least = std::min(least, key), most = std::max(most, key);
    }
    const int bits = std::min<int>(std::popcount(any ^ all), std::bit_width(static_cast<K>(most - least)));
    return bits + 3 <= 2 * (static_cast<int>(std::bit_width(items.size())) - 1);
  }
  // Whether two of the first items are equal: of lines with few different keys, which they then are of.
  bool starts_with_ties() const {
    constexpr size_t kFirst = 64, kSlots = 512;
    constexpr int kSlotBits = 9, kWord = 64;
    K held[kSlots];
    uint64_t taken[kSlots / kWord] = {};
    for (size_t i = 0; i < std::min(kFirst, items.size()); ++i) {
      const K key = Traits::key(items[i]);
      const auto slot = static_cast<size_t>((key * 0x9e3779b97f4a7c15u) >> (64 - kSlotBits));
      if (taken[slot / kWord] >> slot % kWord & 1 && held[slot] == key) return true;
      taken[slot / kWord] |= uint64_t{1} << slot % kWord, held[slot] = key;
    }
    return false;
  }
  static constexpr LessByKey<Traits> less_by_key{};
  // As std::sort by key alone orders the items as loaded: only equal ones can tell it from sort(), which is
  // faster on long lines. In very long ones, which seldom are without equal elements, nobody asks for that.
  void sort_unstable() {
    if (static_cast<int64_t>(items.size()) >= kVeryLong) return sort();
    if (items.size() < kLong || surely_tied() || starts_with_ties())
      return std::sort(items.begin(), items.end(), less_by_key);
    loaded = items;
    sort();
    const auto equal = [](const auto& a, const auto& b) { return Traits::key(a) == Traits::key(b); };
    if (std::adjacent_find(items.begin(), items.end(), equal) == items.end()) return;
    items.swap(loaded);
    std::sort(items.begin(), items.end(), less_by_key);
  }
  // Values come from the keys: where they were is all over memory.
  void store(Line<const T> x, int64_t n, bool descending, Line<T> values, Line<int64_t> indices) const {
    store_with(n, descending, values, indices, [](K key) { return value_of_key<T>(key); });
    if constexpr (!is_floating_v<T>) return;
    const Item* from = items.data();
    parallel_for(0, n, kGrainSize, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        if (const K key = Traits::key(from[i]); !tells_value<T>(descending ? ~key : key))
          values[i] = x[Traits::position(from[i])];
    });
  }
  // Of a narrowed line.
  template <class Wide>
  void store(Wide least, int64_t n, bool descending, Line<Wide> values, Line<int64_t> indices) const {
    store_with(n, descending, values, indices,
               [=](K key) { return static_cast<Wide>(static_cast<uint64_t>(least) + key); });
  }
  template <class V, class F>
  void store_with(int64_t n, bool descending, Line<V> values, Line<int64_t> indices, F value_of) const {
    const Item* from = items.data();
    const K flip = descending ? ~K{0} : K{0};
    const bool adjacent = values.stride == 1 && indices.stride == 1;
    parallel_for(0, n, kGrainSize, [=](int64_t begin, int64_t end) {
      adjacent ? store_part<V>(from, begin, end, flip, {values.data, 1}, {indices.data, 1}, value_of)
               : store_part(from, begin, end, flip, values, indices, value_of);
    });
  }
  template <class V, class F>
  [[gnu::always_inline]] static void store_part(const Item* from, int64_t begin, int64_t end, K flip,
                                                Line<V> values, Line<int64_t> indices, F value_of) {
    for (int64_t i = begin; i < end; ++i) indices[i] = Traits::position(from[i]);
    for (int64_t i = begin; i < end; ++i) values[i] = value_of(Traits::key(from[i]) ^ flip);
  }
};

// A thread's sorters by type, behind one pointer: a library loaded at run time has little room for
// thread-locals.
using Sorters = std::array<std::shared_ptr<void>, kDTypeCount>;
inline Sorters& thread_sorters() {
  thread_local std::unique_ptr<Sorters> kept;
  if (!kept) kept = std::make_unique<Sorters>();
  return *kept;
}

template <class T>
LineSorter<T>& thread_sorter() {
  std::shared_ptr<void>& sorter = thread_sorters()[static_cast<size_t>(dtype_of<T>)];
  if (!sorter) sorter = std::make_shared<LineSorter<T>>();
  return *static_cast<LineSorter<T>*>(sorter.get());
}

// A line of whole numbers of 64 bits whose range is one of 32 bits, counted from the least: items of half the
// size, in the same order.
template <class T>
struct NarrowedLine {
  T least;
  Line<const uint32_t> line;
  explicit operator bool() const { return line.data; }
};
template <class T>
constexpr bool kNarrows = std::is_integral_v<T> && sizeof(T) == 8;
template <class T>
NarrowedLine<T> narrowed(Line<const T> x, int64_t n) {
  if (n < 64) return {};  // which short lines do not repay
  auto& to = thread_sorter<uint32_t>().narrow;
  to.resize(static_cast<size_t>(n));
  if (x.stride == 1) {
    uint64_t first = 0;
    if (!count_from_least(x.data, n, std::is_signed_v<T>, to.data(), &first)) return {};
    return {static_cast<T>(first), {to.data(), 1}};
  }
  T least = x[0], most = x[0];
  for (int64_t i = 1; i < n; ++i) least = std::min(least, x[i]), most = std::max(most, x[i]);
  if ((static_cast<uint64_t>(most) - static_cast<uint64_t>(least)) >> 32) return {};
  for (int64_t i = 0; i < n; ++i)
    to[i] = static_cast<uint32_t>(static_cast<uint64_t>(x[i]) - static_cast<uint64_t>(least));
  return {least, {to.data(), 1}};
}

inline void check_sorted_length(int64_t n) {
  RL_CHECK(n < (int64_t{1} << 32), "sort: lines of 2^32 elements or more are not supported, got ", n);
}

}  // namespace rushlight::cpu
