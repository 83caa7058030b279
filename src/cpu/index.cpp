#include "cpu/index.h"

#include <atomic>
#include <cstring>

#include "core/parallel.h"
#include "cpu/accumulate.h"
#include "cpu/copy_run.h"
#include "cpu/odometer.h"
#include "cpu/truth.h"
#include "cpu/width.h"

namespace rushlight::cpu {
namespace {

template <class T>
T plus(T a, T b) {
  if constexpr (std::is_same_v<T, bool>)
    return a || b;
  else
    return static_cast<T>(static_cast<compute_type<T>>(a) + static_cast<compute_type<T>>(b));
}
template <class T>
T times(T a, T b) {
  if constexpr (std::is_same_v<T, bool>)
    return a && b;
  else
    return static_cast<T>(static_cast<compute_type<T>>(a) * static_cast<compute_type<T>>(b));
}
template <class T>
T larger(T a, T b) {
  const auto x = static_cast<compute_type<T>>(a), y = static_cast<compute_type<T>>(b);
  return x != x || x >= y ? a : b;
}
template <class T>
T smaller(T a, T b) {
  const auto x = static_cast<compute_type<T>>(a), y = static_cast<compute_type<T>>(b);
  return x != x || x <= y ? a : b;
}

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
  visit_dtype(Concat<AllTypes, TypeList<complex32>>{}, dtype, "index_put_", [&]<class T>(T) {
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

// One row of gather or scatter along the last dimension: element j sits at j * along + index[j *
// index_stride] * indexed.
struct LineStrides {
  int64_t length, index, along, indexed, other;
};

LineStrides line_strides(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& other) {
  const int64_t n = index.dim();
  if (n == 0) return {1, 1, 0, 1, 1};
  const bool last = dim == n - 1;
  return {index->sizes[n - 1], index->strides[n - 1], last ? 0 : self->strides[n - 1], self->strides[dim],
          other->strides[n - 1]};
}

// Strides of self with none along `dim`, where the index decides.
Dims strides_without(const Tensor& self, int64_t dim) {
  Dims strides = self->strides;
  if (self.dim() > 0) strides[dim] = 0;
  return strides;
}

// A position below 0, or what is left to the last one, has its sign set: several are looked at together.
[[gnu::noinline]] bool within(const int64_t* positions, int64_t n, int64_t size) {
  using Lanes [[gnu::vector_size(16)]] = uint64_t;
  constexpr int64_t kLanes = sizeof(Lanes) / sizeof(uint64_t);
  const auto last = static_cast<uint64_t>(size) - 1;
  Lanes found{};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Lanes at;
    std::memcpy(&at, positions + i, sizeof(at));
    found |= at | (last - at);
  }
  for (; i < n; ++i) {
    const auto at = static_cast<uint64_t>(positions[i]);
    found[0] |= at | (last - at);
  }
  return !((found[0] | found[1]) >> 63);
}

// Calls f(first element, positions, how many) for blocks of elements [begin, end) of a row, whose positions
// then are in cache; with `check` they are looked at before. False where one lies outside.
template <class F>
bool for_each_block(const LineStrides& line, bool check, int64_t size, int64_t begin, int64_t end,
                    const int64_t* where, F&& f) {
  constexpr int64_t kBlock = 1024;
  int64_t packed[kBlock];
  for (int64_t first = begin; first < end; first += kBlock) {
    const int64_t n = std::min(kBlock, end - first);
    const int64_t* at = where + first * line.index;
    if (line.index != 1) {
      for (int64_t j = 0; j < n; ++j) packed[j] = at[j * line.index];
      at = packed;
    }
    if (check && !within(at, n, size)) return false;
    f(first, at, n);
  }
  return true;
}

template <class T, class Combine>
bool scatter_row(const LineStrides& line, bool check, int64_t size, const int64_t* where, const T* from,
                 T* to, AddRun add_run, Combine&& combine) {
  if (line.index == 0) {  // one position for all
    if (check && !within(where, 1, size)) return false;
    to += *where * line.indexed;
    if (line.along == 1 && line.other == 1) {
      if (add_run) {
        add_run(to, from, 1, line.length);
      } else {
        for (int64_t j = 0; j < line.length; ++j) to[j] = combine(to[j], from[j]);
      }
    } else {
      for (int64_t j = 0; j < line.length; ++j)
        to[j * line.along] = combine(to[j * line.along], from[j * line.other]);
    }
    return true;
  }
  return for_each_block(line, check, size, 0, line.length, where,
                        [&](int64_t first, const int64_t* at, int64_t n) {
                          if (line.along == 0 && line.indexed == 1 && line.other == 1) {
                            for (int64_t j = 0; j < n; ++j) to[at[j]] = combine(to[at[j]], from[first + j]);
                          } else {
                            for (int64_t j = 0; j < n; ++j) {
                              T& element = to[(first + j) * line.along + at[j] * line.indexed];
                              element = combine(element, from[(first + j) * line.other]);
                            }
                          }
                        });
}

template <class T, class Combine>
bool scatter_rows(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, bool check,
                  AddRun add_run, Combine&& combine) {
  const LineStrides line = line_strides(self, dim, index, src);
  const Dims outer = strides_without(self, dim);
  T* target = static_cast<T*>(self.data_ptr());
  const T* source = static_cast<const T*>(src.data_ptr());
  const int64_t* positions = index.data<int64_t>();
  const int64_t size = self.dim() ? self->sizes[dim] : 1;
  // Rows meet in one element unless the last dimension is the indexed one, so only then may they run in
  // parallel.
  const bool independent = dim == index.dim() - 1;
  const int64_t rows = row_count(index.sizes()),
                grain = std::max<int64_t>(1, kGrainSize / std::max<int64_t>(1, line.length));
  std::atomic<bool> outside = false;
  parallel_for(0, rows, independent ? grain : rows, [&](int64_t begin, int64_t end) {
    for_each_row<3>(index.sizes(), {IntList(outer), index.strides(), src.strides()}, begin, end,
                    [&](const auto& at) {
                      if (!scatter_row(line, check, size, positions + at[1], source + at[2], target + at[0],
                                       add_run, combine))
                        outside = true;
                    });
  });
  return !outside;
}

// Elements [begin, end) of a row of gather, in blocks whose positions are looked at while they are in cache.
// False where one lies outside.
template <class T>
bool gather_row(const LineStrides& line, int64_t size, int64_t begin, int64_t end, const T* from,
                const int64_t* where, T* to) {
  if (line.index == 0) {
    if (!within(where, 1, size)) return false;
    from += *where * line.indexed;
    if (line.along == 1 && line.other == 1)
      copy_run(to + begin, from + begin, static_cast<size_t>(end - begin) * sizeof(T));
    else
      for (int64_t j = begin; j < end; ++j) to[j * line.other] = from[j * line.along];
    return true;
  }
  return for_each_block(line, true, size, begin, end, where,
                        [&](int64_t first, const int64_t* at, int64_t n) {
                          T* out = to + first * line.other;
                          if (line.along == 0 && line.indexed == 1 && line.other == 1)
                            for (int64_t j = 0; j < n; ++j) out[j] = from[at[j]];
                          else
                            for (int64_t j = 0; j < n; ++j)
                              out[j * line.other] = from[(first + j) * line.along + at[j] * line.indexed];
                        });
}

}  // namespace

bool all_within(const int64_t* positions, int64_t n, int64_t size) {
  std::atomic<bool> outside = false;
  parallel_for(0, n, kGrainSize, [&](int64_t begin, int64_t end) {
    if (!within(positions + begin, end - begin, size)) outside = true;
  });
  return !outside;
}

bool gather(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& out) {
  if (index.numel() == 0 || self.device().is_meta()) return true;
  const LineStrides line = line_strides(self, dim, index, out);
  const Dims outer = strides_without(self, dim);
  const int64_t* positions = index.data<int64_t>();
  const int64_t size = self.dim() ? self->sizes[dim] : 1;
  std::atomic<bool> outside = false;
  visit_width(self.itemsize(), [&]<class T>(T) {
    const T* source = static_cast<const T*>(self.data_ptr());
    T* target = static_cast<T*>(out.data_ptr());
    const auto part_of_row = [&](int64_t begin, int64_t end, const std::array<int64_t, 3>& at) {
      if (!gather_row(line, size, begin, end, source + at[0], positions + at[1], target + at[2]))
        outside = true;
    };
    const int64_t rows = row_count(index.sizes());
    if (rows == 1)
      return parallel_for(0, line.length, kGrainSize,
                          [&](int64_t begin, int64_t end) { part_of_row(begin, end, {}); });
    parallel_for(0, rows, std::max<int64_t>(1, kGrainSize / line.length), [&](int64_t begin, int64_t end) {
      for_each_row<3>(index.sizes(), {IntList(outer), index.strides(), out.strides()}, begin, end,
                      [&](const auto& at) { part_of_row(0, line.length, at); });
    });
  });
  return !outside;
}

bool scatter(ScatterOp op, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
             bool check) {
  if (index.numel() == 0 || self.device().is_meta()) return true;
  bool inside = true;
  const AddRun add_run = op == ScatterOp::Add ? add_run_kernel(self.dtype()) : nullptr;
  const auto run = [&]<class T>(T, auto&& combine) {
    inside = scatter_rows<T>(self, dim, index, src, check, add_run, combine);
  };
  using Ordered = Concat<TypeList<bool>, RealTypes>;
  if (op == ScatterOp::Assign)
    visit_width(self.itemsize(), [&]<class T>(T t) { run(t, [](T, T b) { return b; }); });
  else if (op == ScatterOp::Add)
    visit_dtype(AllTypes{}, self.dtype(), "scatter_add",
                [&]<class T>(T t) { run(t, [](T a, T b) { return plus(a, b); }); });
  else if (op == ScatterOp::Multiply)
    visit_dtype(AllTypes{}, self.dtype(), "scatter_reduce",
                [&]<class T>(T t) { run(t, [](T a, T b) { return times(a, b); }); });
  else
    visit_dtype(Ordered{}, self.dtype(), "scatter_reduce",
                [&]<class T>(T t) { run(t, op == ScatterOp::Max ? larger<T> : smaller<T>); });
  return inside;
}

namespace {

using detail::FunctionRef;

int64_t last_size(const Tensor& t) { return t.dim() ? t->sizes.back() : 1; }

// Elements [begin, end) in row-major order, row by row: f(elements, stride, count, index of the first one).
template <class T, class F>
void for_each_span(const Tensor& t, int64_t begin, int64_t end, F&& f) {
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

// The coordinates of set elements: written always and kept where set, so that nothing branches.
template <class T>
int64_t* write_coordinates(const Tensor& t, const T* x, int64_t stride, int64_t n, int64_t index,
                           int64_t* out, const int64_t* end) {
  const int64_t dims = t.dim(), first = index % t->sizes[dims - 1];
  if (dims == 1) {
    for (int64_t j = 0; j < n && out != end; ++j) {
      *out = first + j;
      out += is_set(x[j * stride]);
    }
    return out;
  }
  Dims outer(dims - 1);
  index /= t->sizes[dims - 1];
  for (int64_t d = dims - 2; d >= 0; index /= t->sizes[d--]) outer[d] = index % t->sizes[d];
  for (int64_t j = 0; j < n && out != end; ++j) {
    for (int64_t d = 0; d < dims - 1; ++d) out[d] = outer[d];
    out[dims - 1] = first + j;
    out += is_set(x[j * stride]) ? dims : 0;
  }
  return out;
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
    const int64_t dims = t.dim();
    if (dims == 0) return;  // no coordinates to write
    for_each_piece(t.numel(), before, [&](int64_t begin, int64_t end, int64_t first, int64_t set) {
      int64_t* to = out + first * dims;
      const int64_t* last = to + set * dims;
      for_each_span<T>(t, begin, end, [&](const T* x, int64_t stride, int64_t n, int64_t index) {
        to = write_coordinates(t, x, stride, n, index, to, last);
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
