#include "cpu/sort.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>

#include "cpu/buffer.h"
#include "cpu/copy.h"
#include "cpu/lines.h"
#include "cpu/order_key.h"
#include "cpu/repeated_lines.h"
#include "cpu/scan.h"
#include "cpu/topk.h"
#include "cpu/truth.h"

namespace rushlight::cpu {
namespace {

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

// Keys alone, for sorts that ask for no positions.
template <class K>
struct KeyTraits {
  using Item = K;
  static K key(K item) { return item; }
};

// One pass: items ordered by kBits of their keys from `shift` on, in pieces that threads count and move
// apart. False where all keys share the digit.
template <class Traits, int kBits>
bool radix_pass(const CachedVector<typename Traits::Item>& items, CachedVector<typename Traits::Item>& sorted,
                int shift, int64_t pieces, std::vector<int64_t>& counts) {
  constexpr int64_t kDigits = int64_t{1} << kBits;
  const auto n = static_cast<int64_t>(items.size());
  const int64_t piece = (n + pieces - 1) / pieces;
  const auto digit = [&](const auto& item) { return Traits::key(item) >> shift & (kDigits - 1); };
  counts.assign(static_cast<size_t>(pieces * kDigits), 0);
  parallel_for(0, pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p)
      for (int64_t i = p * piece; i < std::min(n, (p + 1) * piece); ++i)
        ++counts[p * kDigits + static_cast<int64_t>(digit(items[i]))];
  });
  int64_t before = 0;
  for (int64_t d = 0; d < kDigits; ++d) {
    const int64_t start = before;
    for (int64_t p = 0; p < pieces; ++p) before += std::exchange(counts[p * kDigits + d], before);
    if (before - start == n) return false;
  }
  parallel_for(0, pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      int64_t* next = counts.data() + p * kDigits;
      for (int64_t i = p * piece; i < std::min(n, (p + 1) * piece); ++i)
        sorted[next[digit(items[i])]++] = items[i];
    }
  });
  return true;
}

// Least significant digit first, which is stable; digits that all keys share are not moved.
template <class Traits>
void radix_sort(CachedVector<typename Traits::Item>& items, CachedVector<typename Traits::Item>& other) {
  using K = decltype(Traits::key(items[0]));
  const auto n = static_cast<int64_t>(items.size());
  K any = 0, all = ~K{0};
  for (const auto& item : items) any |= Traits::key(item), all &= Traits::key(item);
  const K varying = any ^ all;
  other.resize(items.size());
  const bool large = n >= (1 << 16);
  const int64_t pieces = large && !in_parallel_region() ? get_num_threads() : 1;
  std::vector<int64_t> counts;
  for (int shift = 0; shift < static_cast<int>(sizeof(K) * 8); shift += large ? 11 : 8) {
    if ((varying >> shift & (large ? 0x7ff : 0xff)) == 0) continue;
    if (large ? radix_pass<Traits, 11>(items, other, shift, pieces, counts)
              : radix_pass<Traits, 8>(items, other, shift, pieces, counts))
      items.swap(other);
  }
}

template <class T>
struct LineSorter {
  using K = KeyOf<T>;
  using Traits = ItemTraits<K>;
  static constexpr size_t kLong = 24 * sizeof(K);  // items, from which digits are faster than comparisons
  CachedVector<typename Traits::Item> items, scratch, loaded;
  CachedVector<uint32_t> narrow;  // what a narrowed line of another type holds

  void load(Line<const T> x, int64_t n, bool descending) {
    items.resize(static_cast<size_t>(n));
    parallel_for(0, n, kGrainSize, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const K key = order_key(x[i]);
        items[i] = Traits::make(descending ? ~key : key, static_cast<uint64_t>(i));
      }
    });
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
    const auto n = static_cast<int64_t>(items.size());
    if (k * 64 <= n) return std::partial_sort(items.begin(), items.begin() + k, items.end(), less_by_key);
    std::nth_element(items.begin(), items.begin() + (k - 1), items.end(), less_by_key);
    if (in_order) std::sort(items.begin(), items.begin() + (k - 1), less_by_key);
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
    constexpr size_t kVeryLong = 1 << 16;
    if (items.size() >= kVeryLong) return sort();
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
    parallel_for(0, n, kGrainSize, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t at = Traits::position(items[i]);
        const K key = descending ? ~Traits::key(items[i]) : Traits::key(items[i]);
        values[i] = tells_value<T>(key) ? value_of_key<T>(key) : x[at], indices[i] = at;
      }
    });
  }
  // Of a narrowed line.
  template <class Wide>
  void store(Wide least, int64_t n, bool descending, Line<Wide> values, Line<int64_t> indices) const {
    parallel_for(0, n, kGrainSize, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const K key = descending ? ~Traits::key(items[i]) : Traits::key(items[i]);
        values[i] = static_cast<Wide>(static_cast<uint64_t>(least) + key);
        indices[i] = Traits::position(items[i]);
      }
    });
  }
};

// A thread's sorters by type, behind one pointer: a library loaded at run time has little room for
// thread-locals.
using Sorters = std::array<std::shared_ptr<void>, kDTypeCount>;
Sorters& thread_sorters() {
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

void check_length(int64_t n) {
  RL_CHECK(n < (int64_t{1} << 32), "sort: lines of 2^32 elements or more are not supported, got ", n);
}

}  // namespace

void sort(const Tensor& in, int64_t dim, bool descending, bool stable, const Tensor& values,
          const Tensor& indices) {
  if (run_without_repeats(in, dim, values, indices,
                          [&](const Tensor& once, const Tensor& v, const Tensor& i) {
                            sort(once, dim, descending, stable, v, i);
                          }))
    return;
  if (sort_short_lines(in, dim, descending, values, indices)) return;
  const int64_t n = line_length(in, dim);
  check_length(n);
  // PyTorch sorts long integer vectors digit by digit, which is stable.
  // Nor does it move anything in a line that is one element, expanded.
  stable |= in.dim() > 0 && in->strides[dim] == 0;
  stable |=
      is_integral(in.dtype()) && in.dtype() != DType::Bool && in.dim() == 1 && !descending && n >= 32768;
  const bool same = in.dim() > 0 && in->strides[dim] == 0;  // as it is
  if (same && indices.is_contiguous() && !in.device().is_meta() && in.numel() > 0) {
    copy(values, in);
    int64_t width = 1;
    for (int64_t d = dim + 1; d < in.dim(); ++d) width *= in->sizes[d];
    return parallel_for(0, indices.numel() / width, std::max<int64_t>(1, kGrainSize / width),
                        [&](int64_t begin, int64_t end) {
                          int64_t position = begin % n, *to = indices.data<int64_t>() + begin * width;
                          for (int64_t row = begin; row < end; ++row) {
                            for (int64_t i = 0; i < width; ++i) *to++ = position;
                            if (++position == n) position = 0;
                          }
                        });
  }
  visit_dtype(OrderedTypes{}, in.dtype(), "sort", [&]<class T>(T) {
    for_each_line<3>({&in, &values, &indices}, dim, [&](const auto& at) {
      const auto x = line_of<const T>(in, dim, at[0]);
      const auto to = line_of<T>(values, dim, at[1]);
      const auto positions = line_of<int64_t>(indices, dim, at[2]);
      if (same) {
        for (int64_t i = 0; i < n; ++i) to[i] = x[0], positions[i] = i;
        return;
      }
      if constexpr (kNarrows<T>)
        if (const auto narrow = narrowed(x, n)) {
          LineSorter<uint32_t>& sorter = thread_sorter<uint32_t>();
          sorter.load(narrow.line, n, descending);
          stable ? sorter.sort() : sorter.sort_unstable();
          return sorter.store(narrow.least, n, descending, to, positions);
        }
      LineSorter<T>& sorter = thread_sorter<T>();
      sorter.load(x, n, descending);
      stable ? sorter.sort() : sorter.sort_unstable();
      sorter.store(x, n, descending, to, positions);
    });
  });
}

void sort_values(const Tensor& in, const Tensor& out) {
  const int64_t n = in.numel();
  visit_dtype(OrderedTypes{}, in.dtype(), "sort", [&]<class T>(T) {
    using K = KeyOf<T>;
    if constexpr (std::is_same_v<T, bool>) {  // how many there are of each is all
      const int64_t truths = count_truths(reinterpret_cast<const Truth*>(in.data<bool>()), n);
      std::memset(out.data_ptr(), 0, static_cast<size_t>(n - truths));
      std::memset(out.data<bool>() + (n - truths), 1, static_cast<size_t>(truths));
      return;
    }
    CachedVector<K> keys(static_cast<size_t>(n)), scratch;
    const T* x = in.data<T>();
    parallel_for(0, n, kGrainSize, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) keys[i] = order_key(x[i]);
    });
    radix_sort<KeyTraits<K>>(keys, scratch);
    parallel_for(0, n, kGrainSize, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) out.data<T>()[i] = value_of_key<T>(keys[i]);
    });
  });
}

namespace {

template <class T>
void load_topk(LineSorter<T>& sorter, Line<const T> x, int64_t n, int64_t k, bool largest, bool sorted) {
  auto& items = sorter.items;
  if (k > 0 && k * 64 <= n) {
    sorter.partial_sort(x, n, k, largest);
  } else if (sorted && k > 0 && k <= LineSorter<T>::kFewFirst && k < n &&
             sorter.insert_first(x, n, k, largest)) {
  } else if (n >= 4096 && k < n / 16) {
    sorter.load_first(x, n, k, largest);
    std::sort(items.begin(), items.begin() + k);
    if (sorter.tied(x, n, k, largest)) {
      sorter.load(x, n, largest);
      sorter.select_first(k, sorted);
    }
  } else {
    sorter.load(x, n, largest);
    sorter.select_first(k, sorted);
  }
}

}  // namespace

void topk(const Tensor& in, int64_t dim, int64_t k, bool largest, bool sorted, const Tensor& values,
          const Tensor& indices) {
  if (run_without_repeats(in, dim, values, indices,
                          [&](const Tensor& once, const Tensor& v, const Tensor& i) {
                            topk(once, dim, k, largest, sorted, v, i);
                          }))
    return;
  const int64_t n = line_length(in, dim);
  check_length(n);
  if (k == 1 && take_lines_of_one(in, dim, values, indices)) return;
  if (k == 1 && largest) return arg_extreme(in, dim, true, values, indices);  // of equal elements, the first
  visit_dtype(OrderedTypes{}, in.dtype(), "topk", [&]<class T>(T) {
    for_each_line<3>({&in, &values, &indices}, dim, [&](const auto& at) {
      const auto x = line_of<const T>(in, dim, at[0]);
      const auto to = line_of<T>(values, dim, at[1]);
      const auto positions = line_of<int64_t>(indices, dim, at[2]);
      if constexpr (kNarrows<T>)
        if (const auto narrow = narrowed(x, k * 64 <= n || n < 1024 ? 0 : n)) {
          LineSorter<uint32_t>& sorter = thread_sorter<uint32_t>();
          load_topk(sorter, narrow.line, n, k, largest, sorted);
          return sorter.store(narrow.least, k, largest, to, positions);
        }
      LineSorter<T>& sorter = thread_sorter<T>();
      load_topk(sorter, x, n, k, largest, sorted);
      sorter.store(x, k, largest, to, positions);
    });
  });
}

namespace {

// Of long lines only those elements are loaded that a sample says are near the one of this rank, which
// becomes one among them; false where the sample was wrong.
template <class T>
bool load_around_rank(LineSorter<T>& sorter, Line<const T> x, int64_t n, int64_t& rank) {
  using K = KeyOf<T>;
  constexpr int64_t kSample = 256, kMargin = 20;  // five times the deviation of the middle of as many
  std::array<K, kSample> sample;
  for (int64_t i = 0; i < kSample; ++i) sample[static_cast<size_t>(i)] = order_key(x[n * i / kSample]);
  const int64_t middle = rank * kSample / n, low = std::max<int64_t>(middle - kMargin, 0),
                high = std::min(middle + kMargin, kSample - 1);
  std::nth_element(sample.begin(), sample.begin() + low, sample.end());
  std::nth_element(sample.begin() + low + 1, sample.begin() + high, sample.end());
  const K least = low == middle - kMargin ? sample[static_cast<size_t>(low)] : K{0},
          most = high == middle + kMargin ? sample[static_cast<size_t>(high)] : ~K{0};
  sorter.items.resize(static_cast<size_t>(n));
  auto* items = sorter.items.data();
  int64_t below = 0, kept = 0;
  for (int64_t i = 0; i < n; ++i) {
    const K key = order_key(x[i]);
    items[kept] = LineSorter<T>::Traits::make(key, static_cast<uint64_t>(i));
    kept += (key >= least) & (key <= most);
    below += key < least;
  }
  if (rank < below || rank >= below + kept) return false;
  rank -= below;
  sorter.items.resize(static_cast<size_t>(kept));
  return true;
}

template <class T>
int64_t position_of_rank(LineSorter<T>& sorter, Line<const T> x, int64_t n, int64_t rank) {
  using Traits = typename LineSorter<T>::Traits;
  if (n < 2048 || !load_around_rank(sorter, x, n, rank)) sorter.load(x, n, false);
  auto& items = sorter.items;
  std::nth_element(items.begin(), items.begin() + rank, items.end());  // of equal elements, the first
  return Traits::position(items[rank]);
}

// Quickselect with the median of three as pivot; which of equal elements it ends on is what kthvalue reports.
template <class T>
int64_t quickselect(LineSorter<T>& sorter, int64_t rank) {
  using Traits = typename LineSorter<T>::Traits;
  auto& items = sorter.items;
  const auto greater = [&](int64_t a, int64_t b) { return Traits::key(items[a]) > Traits::key(items[b]); };
  int64_t left = 0, right = static_cast<int64_t>(items.size()) - 1;
  while (right > left + 1) {
    std::swap(items[(left + right) / 2], items[left + 1]);
    if (greater(left + 1, right)) std::swap(items[left + 1], items[right]);
    if (greater(left, right)) std::swap(items[left], items[right]);
    if (greater(left + 1, left)) std::swap(items[left + 1], items[left]);
    int64_t i = left + 1, j = right;
    for (;;) {
      do ++i;
      while (greater(left, i));
      do --j;
      while (greater(j, left));
      if (j < i) break;
      std::swap(items[i], items[j]);
    }
    std::swap(items[left], items[j]);
    if (j <= rank) left = i;
    if (j >= rank) right = j - 1;
  }
  if (right == left + 1 && greater(left, right)) std::swap(items[left], items[right]);
  return Traits::position(items[rank]);
}

template <class T>
int64_t position_of_median(LineSorter<T>& sorter, Line<const T> x, int64_t n, bool skip_nan) {
  int64_t nans = 0;
  if constexpr (is_floating_v<T>)
    for (int64_t i = 0; i < n; ++i) nans += is_nan(x[i]);
  if (nans == 0 || (skip_nan && nans < n)) return position_of_rank(sorter, x, n, (n - nans - 1) / 2);
  int64_t first = 0;
  while (!is_nan(x[first])) ++first;
  return first;
}

// The smallest of the most frequent values, where the unstable sort has it last.
template <class T>
int64_t position_of_mode(LineSorter<T>& sorter, int64_t n) {
  using Traits = typename LineSorter<T>::Traits;
  sorter.sort_unstable();
  int64_t best = 0, best_length = 0, length = 0;
  for (int64_t i = 0; i < n; ++i) {
    ++length;
    if (i + 1 < n && Traits::key(sorter.items[i]) == Traits::key(sorter.items[i + 1])) continue;
    if (length > best_length) best_length = length, best = Traits::position(sorter.items[i]);
    length = 0;
  }
  return best;
}

}  // namespace

void select(Select what, const Tensor& in, int64_t dim, int64_t k, const Tensor& values,
            const Tensor& indices) {
  if (run_without_repeats(
          in, dim, values, indices,
          [&](const Tensor& once, const Tensor& v, const Tensor& i) { select(what, once, dim, k, v, i); }))
    return;
  // Complex numbers have no order, which holds for one as well.
  if (!is_complex(in.dtype()) && take_lines_of_one(in, dim, values, indices)) return;
  const int64_t n = line_length(in, dim);
  check_length(n);
  visit_dtype(OrderedTypes{}, in.dtype(),
              what == Select::Kth    ? "kthvalue_cpu"
              : what == Select::Mode ? "mode"
                                     : "median_out",
              [&]<class T>(T) {
                for_each_line<3>({&in, &values, &indices}, dim, [&](const auto& at) {
                  LineSorter<T>& sorter = thread_sorter<T>();
                  const auto x = line_of<const T>(in, dim, at[0]);
                  if (what == Select::Kth || what == Select::Mode) sorter.load(x, n, false);
                  const int64_t found = what == Select::Kth ? quickselect(sorter, k - 1)
                                        : what == Select::Mode
                                            ? position_of_mode(sorter, n)
                                            : position_of_median(sorter, x, n, what == Select::NanMedian);
                  static_cast<T*>(values.data_ptr())[at[1]] = x[found];
                  indices.data<int64_t>()[at[2]] = found;
                });
              });
}

}  // namespace rushlight::cpu
