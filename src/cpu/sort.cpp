#include "cpu/sort.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "cpu/copy.h"
#include "cpu/line_order.h"
#include "cpu/line_sorter.h"
#include "cpu/repeated_lines.h"
#include "cpu/truth.h"

namespace rushlight::cpu {
namespace {

// Keys alone, for sorts that ask for no positions.
template <class K>
struct KeyTraits {
  using Item = K;
  static K key(K item) { return item; }
};

}  // namespace

const uint32_t* order_of_equals(int64_t n) {
  auto& order = thread_sorter<uint32_t>().order_of_equals;
  if (static_cast<int64_t>(order.size()) != n) {
    order.resize(static_cast<size_t>(n));
    std::iota(order.begin(), order.end(), uint32_t{0});
    std::sort(order.begin(), order.end(), [](uint32_t, uint32_t) { return false; });
  }
  return order.data();
}

void sort(const Tensor& in, int64_t dim, bool descending, bool stable, const Tensor& values,
          const Tensor& indices) {
  if (run_without_repeats(in, dim, values, indices,
                          [&](const Tensor& once, const Tensor& v, const Tensor& i) {
                            sort(once, dim, descending, stable, v, i);
                          }))
    return;
  if (sort_short_lines(in, dim, descending, values, indices)) return;
  const int64_t n = line_length(in, dim);
  check_sorted_length(n);
  // PyTorch sorts long integer vectors digit by digit, which is stable.
  // Nor does it move anything in a line that is one element, expanded.
  stable |= in.dim() > 0 && in->strides[dim] == 0;
  stable |=
      is_integral(in.dtype()) && in.dtype() != DType::Bool && in.dim() == 1 && !descending && n >= 32768;
  stable |= n >= kVeryLong;
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
      if (sort_line_in_order(x, n, descending, stable, to, positions)) return;
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

}  // namespace rushlight::cpu
