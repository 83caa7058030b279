#include <algorithm>

#include "core/parallel.h"
#include "cpu/lines.h"
#include "cpu/sort.h"

namespace rushlight::cpu {
namespace {

constexpr int64_t kSearches = 16;

// The searches of several values go step by step together, so that they wait for memory together too; each
// halves its range as PyTorch's does, which lines out of order show. `element(l, i)` is the i-th of the line
// of the l-th value.
template <class T, class Element>
void search_together(const Element& element, const T* values, int64_t count, int64_t length, bool right,
                     int64_t* out) {
  using A = compute_type<T>;
  int64_t left[kSearches] = {};  // in each range
  std::fill_n(left, count, length);
  std::fill_n(out, count, 0);
  for (int64_t rest = length; rest > 0; rest /= 2)
    for (int64_t l = 0; l < count; ++l) {
      const int64_t half = left[l] / 2, middle = left[l] > 0 ? out[l] + half : 0;
      const A x = static_cast<A>(element(l, middle));
      const A value = static_cast<A>(values[l]);
      // All bits of the condition: compilers make branches of other forms, which go wrong half of the time.
      const int64_t above = -static_cast<int64_t>((right ? !(x > value) : !(x >= value)) & (left[l] > 0));
      out[l] += (half + 1) & above;
      left[l] = half ^ ((half ^ (left[l] - half - 1)) & above);
    }
}

// In a line that is in order the way of the search shows in nothing: all searches halve one length, without
// branches, by as many steps as there are.
template <bool Right, class T>
void search_ordered(const T* line, const T* values, int64_t count, int64_t length, int64_t* out) {
  using A = compute_type<T>;
  constexpr int64_t kTogether = 8;
  for (int64_t first = 0; first < count; first += kTogether) {
    A wanted[kTogether];
    const T* at[kTogether];
    for (int64_t l = 0; l < kTogether; ++l)
      wanted[l] = static_cast<A>(values[std::min(first + l, count - 1)]), at[l] = line;
    const auto passes = [&](const T* x, int64_t l) {
      return Right ? !(static_cast<A>(*x) > wanted[l]) : !(static_cast<A>(*x) >= wanted[l]);
    };
    int64_t rest = length;
    for (; rest > 1; rest -= rest / 2)
#pragma GCC unroll 8
      for (int64_t l = 0; l < kTogether; ++l)
        at[l] += (rest / 2) & -static_cast<int64_t>(passes(at[l] + (rest / 2 - 1), l));
    for (int64_t l = 0; l < std::min(kTogether, count - first); ++l)
      out[first + l] = at[l] - line + (length > 0 && passes(at[l], l));
  }
}
template <class T>
bool is_in_order(const T* line, int64_t length) {
  using A = compute_type<T>;
  constexpr int64_t kBlock = 256;
  for (int64_t first = 0; first + 1 < length; first += kBlock) {
    unsigned wrong = 0;
    for (int64_t i = first; i < std::min(first + kBlock, length - 1); ++i)
      wrong |= !(static_cast<A>(line[i]) <= static_cast<A>(line[i + 1]));
    if (wrong) return false;
  }
  return true;
}

}  // namespace

void search_sorted(const Tensor& boundaries, const Tensor& values, const Tensor* sorter, SearchLines lines,
                   bool right, int64_t* out) {
  visit_dtype(RealTypes{}, boundaries.dtype(), "searchsorted_out_cpu", [&]<class T>(T) {
    const auto total = lines.lines * lines.values_per_line;
    const int64_t length = lines.boundaries_per_line;
    const bool in_order = lines.shared && !sorter && length / 8 <= total && length > 0 &&
                          is_in_order(boundaries.data<T>(), length);
    parallel_for(0, total, kGrainSize / 16, [&](int64_t begin, int64_t end) {
      const T* data = boundaries.data<T>();
      const int64_t* order = sorter ? sorter->data<int64_t>() : nullptr;
      if (in_order) {
        const auto search = right ? search_ordered<true, T> : search_ordered<false, T>;
        return search(data, values.data<T>() + begin, end - begin, lines.boundaries_per_line, out + begin);
      }
      for (int64_t i = begin; i < end; i += kSearches) {
        const int64_t count = std::min(kSearches, end - i);
        const auto find = [&](const auto& element) {
          search_together<T>(element, values.data<T>() + i, count, lines.boundaries_per_line, right, out + i);
        };
        int64_t start[kSearches] = {};
        for (int64_t l = 0; l < count && !lines.shared; ++l)
          start[l] = (i + l) / lines.values_per_line * lines.boundaries_per_line;
        if (order)
          find([&](int64_t l, int64_t at) { return data[start[l] + order[start[l] + at]]; });
        else if (lines.shared)
          find([&](int64_t, int64_t at) { return data[at]; });
        else
          find([&](int64_t l, int64_t at) { return data[start[l] + at]; });
      }
    });
  });
}

}  // namespace rushlight::cpu
