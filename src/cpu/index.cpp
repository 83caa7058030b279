#include "cpu/index.h"

#include <cstring>

#include "core/parallel.h"
#include "cpu/accumulate.h"
#include "cpu/combine.h"
#include "cpu/copy_run.h"
#include "cpu/odometer.h"
#include "cpu/truth.h"
#include "cpu/width.h"

namespace rushlight::cpu {
namespace {

template <class T>
void add_run(T* __restrict to, const T* __restrict from, int64_t n) {
  for (int64_t r = 0; r < n; ++r) to[r] = plus(to[r], from[r]);
}

// Visits the runs in order: f(position of the run in self, position among the values).
template <class F>
void for_each_run(const IndexBlocks& at, int64_t first, int64_t last, F&& f) {
  const auto indexed = static_cast<int64_t>(at.indexed.size()), after = static_cast<int64_t>(at.after.size());
  while (first < last) {
    const int64_t base = at.before[first / indexed], begin = first % indexed,
                  end = std::min(indexed, begin + last - first), shift = first - begin;
    if (after == 1) {
      const int64_t start = base + at.after[0];
      for (int64_t k = begin; k < end; ++k) f(start + at.indexed[k], (shift + k) * at.run);
    } else {
      for (int64_t k = begin; k < end; ++k)
        for (int64_t a = 0; a < after; ++a)
          f(base + at.indexed[k] + at.after[a], ((shift + k) * after + a) * at.run);
    }
    first += end - begin;
  }
}

// The same for writing, and f is told how many elements: several threads each visit a part of all runs, or
// the runs that start in their part of self where these are short. So what meets in one element meets in
// order.
template <class F>
void for_each_target(const IndexBlocks& at, F&& f) {
  const auto indexed = static_cast<int64_t>(at.indexed.size()), after = static_cast<int64_t>(at.after.size()),
             before = static_cast<int64_t>(at.before.size());
  const int64_t threads = get_num_threads(), width = after * at.run;
  constexpr int64_t kPart = 32;  // elements of a run that are worth a visit
  const auto whole_runs = [&](int64_t first, int64_t last) {
    for_each_run(at, first, last, [&](int64_t to, int64_t from) { f(to, from, at.run); });
  };
  if (threads == 1 || in_parallel_region() || before * indexed * width < 2 * kGrainSize || width < 16)
    return whole_runs(0, before * indexed);
  if (before >= 2 * threads)  // outer slices never meet
    return parallel_for(0, before, std::max<int64_t>(1, kGrainSize / (indexed * width)),
                        [&](int64_t b, int64_t e) { whole_runs(b * indexed, e * indexed); });
  if (at.run >= kPart * threads)
    return parallel_for(0, at.run, std::max(kPart, (at.run / threads + kPart - 1) / kPart * kPart),
                        [&](int64_t b, int64_t e) {
                          for_each_run(at, 0, before * indexed,
                                       [&](int64_t to, int64_t from) { f(to + b, from + b, e - b); });
                        });
  const auto [low, high] = std::minmax_element(at.indexed.begin(), at.indexed.end());
  const int64_t parts = 2 * threads, span = (*high - *low) / parts + 1, start = *low;
  parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
    // Lists first: a branch that nobody can foretell at each run would keep the next ones from starting.
    constexpr int64_t kList = 1024;
    int64_t mine[kList];
    const int64_t from = start + begin * span;
    const auto extent = static_cast<uint64_t>((end - begin) * span);
    for (int64_t b = 0; b < before; ++b)
      for (int64_t first = 0; first < indexed; first += kList) {
        int64_t count = 0;
        for (int64_t k = first; k < std::min(indexed, first + kList); ++k) {
          mine[count] = k;
          count += static_cast<uint64_t>(at.indexed[k] - from) < extent;
        }
        for (int64_t i = 0; i < count; ++i)
          for (int64_t a = 0; a < after; ++a)
            f(at.before[b] + at.indexed[mine[i]] + at.after[a],
              ((b * indexed + mine[i]) * after + a) * at.run, at.run);
      }
  });
}

}  // namespace

std::vector<int64_t> all_offsets(IntList sizes, IntList strides) {
  std::vector<int64_t> offsets{0};
  for (size_t d = 0; d < sizes.size(); ++d) {
    std::vector<int64_t> grown;
    grown.reserve(offsets.size() * static_cast<size_t>(sizes[d]));
    for (int64_t base : offsets)
      for (int64_t i = 0; i < sizes[d]; ++i) grown.push_back(base + i * strides[d]);
    offsets = std::move(grown);
  }
  return offsets;
}

namespace {

template <class T>
void read_runs(const IndexBlocks& at, int64_t begin, int64_t end, const T* source, T* target) {
  const auto size = static_cast<size_t>(at.run) * sizeof(T);
  if (at.before.size() > 1 || at.after.size() > 1)
    return for_each_run(at, begin, end,
                        [&](int64_t from, int64_t to) { copy_run(target + to, source + from, size); });
  const T* const start = source + at.before[0] + at.after[0];
  for (int64_t k = begin; k < end; ++k) {
    if (k + kRunsAhead < end) expect_run(start + at.indexed[k + kRunsAhead], size);
    copy_run(target + k * at.run, start + at.indexed[k], size);
  }
}

}  // namespace

void index_read(const IndexBlocks& at, const void* in, void* out, size_t itemsize) {
  const auto blocks = static_cast<int64_t>(at.before.size() * at.indexed.size());
  const int64_t grain =
      std::max<int64_t>(1, kGrainSize / std::max<int64_t>(1, at.run * static_cast<int64_t>(at.after.size())));
  parallel_for(0, blocks, grain, [&](int64_t begin, int64_t end) {
    visit_width(itemsize, [&]<class T>(T) {
      const T* source = static_cast<const T*>(in);
      T* target = static_cast<T*>(out);
      if (at.run == 1)
        for_each_run(at, begin, end, [&](int64_t from, int64_t to) { target[to] = source[from]; });
      else
        read_runs(at, begin, end, source, target);
    });
  });
}

void index_write(const IndexBlocks& at, void* self, const void* values, bool single, size_t itemsize) {
  visit_width(itemsize, [&]<class T>(T) {
    const T* source = static_cast<const T*>(values);
    T* target = static_cast<T*>(self);
    if (at.run == 1)
      for_each_target(at, [&](int64_t to, int64_t from, int64_t) { target[to] = source[single ? 0 : from]; });
    else if (single)
      for_each_target(at, [&](int64_t to, int64_t, int64_t n) { std::fill_n(target + to, n, *source); });
    else
      for_each_target(
          at, [&](int64_t to, int64_t from, int64_t n) { std::copy_n(source + from, n, target + to); });
  });
}

void index_accumulate(const IndexBlocks& at, void* self, const void* values, bool single, DType dtype) {
  visit_dtype(StorageTypes{}, dtype, "index_put_", [&]<class T>(T) {
    const T* source = static_cast<const T*>(values);
    T* target = static_cast<T*>(self);
    if (at.run == 1 || single)
      for_each_target(at, [&](int64_t to, int64_t from, int64_t n) {
        const T value = source[single ? 0 : from];
        for (int64_t r = 0; r < n; ++r) target[to + r] = plus(target[to + r], value);
      });
    else if (const AddRun add = add_run_kernel(dtype))
      for_each_target(at,
                      [&](int64_t to, int64_t from, int64_t n) { add(target + to, source + from, 1, n); });
    else
      for_each_target(at,
                      [&](int64_t to, int64_t from, int64_t n) { add_run(target + to, source + from, n); });
  });
}

namespace {

using detail::FunctionRef;

int64_t last_size(const Tensor& t) { return t.dim() ? t->sizes.back() : 1; }

// Elements [begin, end) in row-major order, at once or row by row: f(elements, stride, count, index of the
// first one).
template <class T, class F>
void for_each_span(const Tensor& t, int64_t begin, int64_t end, F&& f) {
  if (t.is_contiguous()) return f(static_cast<const T*>(t.data_ptr()) + begin, 1, end - begin, begin);
  const int64_t length = last_size(t), stride = t.dim() ? t->strides.back() : 1;
  int64_t index = begin;
  for_each_row<1>(t.sizes(), {t.strides()}, begin / length, (end + length - 1) / length, [&](const auto& at) {
    const int64_t skip = index % length, count = std::min(length - skip, end - index);
    f(static_cast<const T*>(t.data_ptr()) + at[0] + skip * stride, stride, count, index);
    index += count;
  });
}

template <class T>
bool is_set(T x) {
  if constexpr (std::is_same_v<T, Truth>)
    return x;
  else
    return static_cast<compute_type<T>>(x) != compute_type<T>(0);
}

template <class T>
int64_t count_span(const T* x, int64_t n, int64_t stride) {
  if constexpr (std::is_same_v<T, Truth>)
    if (stride == 1) return count_truths(x, n);
  int64_t count = 0;
  if (stride == 1)
    for (int64_t j = 0; j < n; ++j) count += is_set(x[j]);
  else
    for (int64_t j = 0; j < n; ++j) count += is_set(x[j * stride]);
  return count;
}

// How many elements are set before each piece of kGrainSize elements, and in all of them.
template <class T>
std::vector<int64_t> count_before(const Tensor& t) {
  const int64_t pieces = (t.numel() + kGrainSize - 1) / kGrainSize;
  std::vector<int64_t> before(static_cast<size_t>(pieces) + 1, 0);
  parallel_for(0, pieces, 2, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p)
      for_each_span<T>(
          t, p * kGrainSize, std::min(t.numel(), (p + 1) * kGrainSize),
          [&](const T* x, int64_t stride, int64_t n, int64_t) { before[p + 1] += count_span(x, n, stride); });
  });
  for (int64_t p = 0; p < pieces; ++p) before[p + 1] += before[p];
  return before;
}

// The coordinates of set elements, a column for each dimension, from row k on up to `end`; the row after the
// last. In the last dimension they are written always and kept where set, so that nothing branches.
template <class T>
int64_t write_coordinates(const Tensor& t, const T* x, int64_t stride, int64_t n, int64_t index,
                          int64_t* columns, int64_t rows, int64_t k, int64_t end) {
  const int64_t last = t.dim() - 1, length = t->sizes[last];
  int64_t* column = columns + last * rows;
  Dims at(t.dim());
  for (int64_t d = last; d >= 0; index /= t->sizes[d--]) at[d] = index % t->sizes[d];
  while (n > 0 && k != end) {
    const int64_t first = at[last], count = std::min(n, length - first), before = k;
    for (int64_t j = 0; j < count && k != end; ++j) {
      column[k] = first + j;
      k += is_set(x[j * stride]);
    }
    for (int64_t d = 0; d < last; ++d) std::fill(columns + d * rows + before, columns + d * rows + k, at[d]);
    n -= count, x += count * stride, at[last] = 0;
    for (int64_t d = last - 1; d >= 0 && ++at[d] == t->sizes[d]; --d) at[d] = 0;
  }
  return k;
}

// f(piece, index of its first element, its end, set elements before it, set elements in it)
template <class F>
void for_each_piece(int64_t numel, const std::vector<int64_t>& before, F&& f) {
  parallel_for(0, static_cast<int64_t>(before.size()) - 1, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p)
      if (before[p + 1] > before[p])
        f(p * kGrainSize, std::min(numel, (p + 1) * kGrainSize), before[p], before[p + 1] - before[p]);
  });
}

}  // namespace

int64_t nonzero(const Tensor& t, FunctionRef<int64_t*(int64_t)> make_out) {
  int64_t count = 0;
  visit_dtype(StorageTypes{}, t.dtype(), "nonzero", [&]<class Element>(Element) {
    using T = Stored<Element>;
    const std::vector<int64_t> before = count_before<T>(t);
    count = before.back();
    int64_t* out = make_out(count);
    if (t.dim() == 0) return;  // no coordinates to write
    for_each_piece(t.numel(), before, [&](int64_t begin, int64_t end, int64_t first, int64_t set) {
      int64_t k = first;
      for_each_span<T>(t, begin, end, [&](const T* x, int64_t stride, int64_t n, int64_t index) {
        k = write_coordinates(t, x, stride, n, index, out, count, k, first + set);
      });
    });
  });
  return count;
}

void masked_select(const Tensor& t, const Tensor& mask, FunctionRef<void*(int64_t)> make_out) {
  const std::vector<int64_t> before = count_before<Truth>(mask);
  void* out = make_out(before.back());
  const auto* selected = static_cast<const Truth*>(mask.data_ptr());
  visit_width(t.itemsize(), [&]<class T>(T) {
    const T* x = static_cast<const T*>(t.data_ptr());
    for_each_piece(t.numel(), before, [&](int64_t begin, int64_t end, int64_t first, int64_t set) {
      T* to = static_cast<T*>(out) + first;
      const T* last = to + set;
      for (int64_t i = begin; i < end && to != last; ++i) {
        *to = x[i];
        to += selected[i];
      }
    });
  });
}

int64_t count_true(const Tensor& mask) { return count_before<Truth>(mask).back(); }

void masked_scatter(const Tensor& self, const Tensor& mask, const void* source) {
  if (self.numel() == 0) return;
  const int64_t length = last_size(self), stride = self.dim() ? self->strides.back() : 1,
                mask_stride = mask.dim() ? mask->strides.back() : 1;
  visit_width(self.itemsize(), [&]<class T>(T) {
    const T* next = static_cast<const T*>(source);
    for_each_row<2>(self.sizes(), {self.strides(), mask.strides()}, 0, row_count(self.sizes()),
                    [&](const auto& at) {
                      T* x = static_cast<T*>(self.data_ptr()) + at[0];
                      const auto* m = static_cast<const Truth*>(mask.data_ptr()) + at[1];
                      for (int64_t j = 0; j < length; ++j)
                        if (m[j * mask_stride]) x[j * stride] = *next++;
                    });
  });
}

}  // namespace rushlight::cpu
