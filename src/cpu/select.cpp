// The first elements of lines, and elements of a rank.
#include <algorithm>
#include <array>

#include "cpu/has_vectors.h"
#include "cpu/line_sorter.h"
#include "cpu/rank.h"
#include "cpu/repeated_lines.h"
#include "cpu/scan.h"
#include "cpu/sort.h"

namespace rushlight::cpu {
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

// The k first of short lines, in order, by how many elements come before each; false where equal ones among
// them, or behind the last, make the order a matter of the algorithm.
template <class T>
bool count_first(Line<const T> x, int64_t n, int64_t k, bool largest, const RankKernels& kernels,
                 Line<T> values, Line<int64_t> positions) {
  using Rank = std::make_signed_t<KeyOf<T>>;
  alignas(64) Rank keys[kMostCounted], before[kMostCounted];
  constexpr int64_t kLanes = 64 / sizeof(Rank);
  for (int64_t i = n; i < (n + kLanes - 1) / kLanes * kLanes; ++i) keys[i] = 0;
  for (int64_t i = 0; i < n; ++i) keys[i] = signed_key(x[i], largest);
  if constexpr (sizeof(Rank) == sizeof(int32_t))
    kernels.narrow(keys, static_cast<int>(n), before);
  else
    kernels.wide(keys, static_cast<int>(n), before);
  // Of equal elements the last is found where they begin, and nothing behind it.
  int8_t place[kMostCounted + 1];
  std::fill_n(place, k + 1, int8_t{-1});
  for (int64_t i = 0; i < n; ++i) place[before[i]] = static_cast<int8_t>(i);
  for (int64_t i = 0; i < std::min(k + 1, n); ++i)
    if (place[i] < 0) return false;
  for (int64_t i = 0; i < k; ++i) values[i] = x[place[i]], positions[i] = place[i];
  return true;
}

// As PyTorch's calls leave them.
template <class T>
void select_first(Line<const T> x, int64_t n, int64_t k, bool largest, bool sorted, Line<T> values,
                  Line<int64_t> positions) {
  using Traits = typename LineSorter<T>::Traits;
  typename Traits::Item items[kMostCounted];
  LineSorter<T>::load_part(x, 0, n, largest ? ~KeyOf<T>{0} : KeyOf<T>{0}, items);
  LineSorter<T>::select_first(items, n, k, sorted);
  for (int64_t i = 0; i < k; ++i) {
    const int64_t from = Traits::position(items[i]);
    values[i] = x[from], positions[i] = from;
  }
}

// A line that has equal elements is followed by more of them more often than not: the next ones are not
// counted.
template <class T>
void take_first(Line<const T> x, int64_t n, int64_t k, bool largest, bool sorted, const RankKernels& kernels,
                Line<T> values, Line<int64_t> positions) {
  constexpr int kPassed = 32;
  int& passed = thread_sorter<T>().uncounted;
  if (sorted && passed == 0) {
    if (count_first(x, n, k, largest, kernels, values, positions)) return;
    passed = kPassed;
  }
  passed -= passed > 0;
  select_first(x, n, k, largest, sorted, values, positions);
}

// How long the lines are whose elements are counted rather than compared one by one.
template <class T>
int64_t longest_counted() {
  if (!has_vectors()) return sizeof(KeyOf<T>) == sizeof(int32_t) ? kMostRanked : 0;
  return sizeof(KeyOf<T>) == sizeof(int32_t) ? kMostCounted : kMostCounted / 2;
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
  check_sorted_length(n);
  if (k == 1 && take_lines_of_one(in, dim, values, indices)) return;
  if (k == 1 && largest) return arg_extreme(in, dim, true, values, indices);  // of equal elements, the first
  visit_dtype(OrderedTypes{}, in.dtype(), "topk", [&]<class T>(T) {
    const bool counted = k > 0 && n <= longest_counted<T>();
    const RankKernels kernels = RL_ISA_VARIANT(count_kernels());
    for_each_line<3>({&in, &values, &indices}, dim, [&](const auto& at) {
      const auto x = line_of<const T>(in, dim, at[0]);
      const auto to = line_of<T>(values, dim, at[1]);
      const auto positions = line_of<int64_t>(indices, dim, at[2]);
      if (counted) return take_first(x, n, k, largest, sorted, kernels, to, positions);
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

// The element of a rank of a long line that no other one equals, so that every way of selecting ends on it;
// -1 where there may be equal ones.
template <class T>
int64_t position_of_lone_rank(LineSorter<T>& sorter, Line<const T> x, int64_t n, int64_t rank) {
  using Traits = typename LineSorter<T>::Traits;
  if (n < 2048) return -1;
  constexpr int64_t kSample = 128;
  std::array<KeyOf<T>, kSample> sample;
  for (int64_t i = 0; i < kSample; ++i) sample[static_cast<size_t>(i)] = order_key(x[n * i / kSample]);
  const auto middle = sample.begin() + rank * kSample / n;
  std::nth_element(sample.begin(), middle, sample.end());
  if (std::ranges::count(sample, *middle) > 1 || !load_around_rank(sorter, x, n, rank)) return -1;
  auto& items = sorter.items;
  std::nth_element(items.begin(), items.begin() + rank, items.end());
  const auto key = Traits::key(items[rank]);
  const auto equal = std::ranges::count_if(items, [&](const auto& item) { return Traits::key(item) == key; });
  return equal == 1 ? Traits::position(items[rank]) : -1;
}

// Quickselect with the median of three as pivot; which of equal elements it ends on is what kthvalue reports.
template <class T>
int64_t quickselect(LineSorter<T>& sorter, int64_t rank) {
  using Traits = typename LineSorter<T>::Traits;
  auto* const items = sorter.items.data();
  const auto greater = [=](int64_t a, int64_t b) { return Traits::key(items[a]) > Traits::key(items[b]); };
  int64_t left = 0, right = static_cast<int64_t>(sorter.items.size()) - 1;
  while (right > left + 1) {
    std::swap(items[(left + right) / 2], items[left + 1]);
    if (greater(left + 1, right)) std::swap(items[left + 1], items[right]);
    if (greater(left, right)) std::swap(items[left], items[right]);
    if (greater(left + 1, left)) std::swap(items[left + 1], items[left]);
    const auto pivot = Traits::key(items[left]);
    int64_t i = left + 1, j = right;
    for (;;) {
      do ++i;
      while (pivot > Traits::key(items[i]));
      do --j;
      while (Traits::key(items[j]) > pivot);
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
  check_sorted_length(n);
  visit_dtype(OrderedTypes{}, in.dtype(),
              what == Select::Kth    ? "kthvalue_cpu"
              : what == Select::Mode ? "mode"
                                     : "median_out",
              [&]<class T>(T) {
                for_each_line<3>({&in, &values, &indices}, dim, [&](const auto& at) {
                  LineSorter<T>& sorter = thread_sorter<T>();
                  const auto x = line_of<const T>(in, dim, at[0]);
                  const int64_t lone = what == Select::Kth ? position_of_lone_rank(sorter, x, n, k - 1) : -1;
                  if (lone < 0 && (what == Select::Kth || what == Select::Mode)) sorter.load(x, n, false);
                  const int64_t found = lone >= 0             ? lone
                                        : what == Select::Kth ? quickselect(sorter, k - 1)
                                        : what == Select::Mode
                                            ? position_of_mode(sorter, n)
                                            : position_of_median(sorter, x, n, what == Select::NanMedian);
                  static_cast<T*>(values.data_ptr())[at[1]] = x[found];
                  indices.data<int64_t>()[at[2]] = found;
                });
              });
}

}  // namespace rushlight::cpu
