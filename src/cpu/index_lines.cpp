// gather and scatter: for each element of an index tensor, one element of another.
#include <array>
#include <atomic>
#include <cstring>

#include "core/parallel.h"
#include "cpu/accumulate.h"
#include "cpu/combine.h"
#include "cpu/copy_run.h"
#include "cpu/index.h"
#include "cpu/odometer.h"
#include "cpu/width.h"

namespace rushlight::cpu {
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

// How runs of elements meet others: by these kernels where there are any.
struct RunKernels {
  AddRun add = nullptr;
  CombineRun combine = nullptr;

  RunKernels(ScatterOp op, DType dtype) {
    if (op == ScatterOp::Add)
      add = add_run_kernel(dtype);
    else if (op != ScatterOp::Assign)
      combine = combine_run_kernel(op == ScatterOp::Multiply ? RunOp::Multiply
                                   : op == ScatterOp::Max    ? RunOp::Max
                                                             : RunOp::Min,
                                   dtype);
  }
};

// Of one type; everything else about scatter is compiled once.
template <class T, class Combine>
bool scatter_row(const LineStrides& line, bool check, int64_t size, const int64_t* where, const void* source,
                 void* target, const RunKernels& run) {
  const Combine combine;
  const T* from = static_cast<const T*>(source);
  T* to = static_cast<T*>(target);
  if (line.index == 0) {  // one position for all
    if (check && !within(where, 1, size)) return false;
    to += *where * line.indexed;
    if (line.along == 1 && line.other == 1 && (run.add || run.combine)) {
      run.add ? run.add(to, from, 1, line.length) : run.combine(to, from, line.length);
    } else if (line.along == 1 && line.other == 1) {
      for (int64_t j = 0; j < line.length; ++j) to[j] = combine(to[j], from[j]);
    } else if (line.along == 1 && line.other == 0) {
      const T value = *from;
      for (int64_t j = 0; j < line.length; ++j) to[j] = combine(to[j], value);
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

using ScatterRow = bool (*)(const LineStrides& line, bool check, int64_t size, const int64_t* where,
                            const void* source, void* target, const RunKernels& run);

// The dimension whose parts threads take: rows meet in one element along `indexed` alone. The last one in
// parts of whole cache lines; -1 for none.
struct SharedDim {
  int64_t dim = -1, part = 1;
};
SharedDim shared_dim(IntList sizes, int64_t indexed) {
  constexpr int64_t kLine = 16;
  SharedDim found;
  const int64_t threads = get_num_threads(), last = static_cast<int64_t>(sizes.size()) - 1;
  int64_t most = 1;
  for (int64_t d = 0; d <= last; ++d) {
    const int64_t parts = d == last ? sizes[d] / kLine : sizes[d];
    if (d != indexed && parts > most) found.dim = d, most = std::min(parts, threads);
  }
  if (found.dim < 0) return found;
  const int64_t unit = found.dim == last ? kLine : 1;
  found.part = ((sizes[found.dim] + threads - 1) / threads + unit - 1) / unit * unit;
  return found;
}

struct Scatter {
  const Tensor &self, &index, &src;
  int64_t dim;
  bool check;
  RunKernels run;
  ScatterRow scatter_row;
  Dims outer = strides_without(self, dim);
  LineStrides line = line_strides(self, dim, index, src);
  int64_t size = self.dim() ? self->sizes[dim] : 1;
  int64_t item = static_cast<int64_t>(self.itemsize());
  char* target = static_cast<char*>(self.data_ptr());
  const int64_t* positions = index.data<int64_t>();
  const char* source = static_cast<const char*>(src.data_ptr());
  std::atomic<bool> outside = false;

  template <class F>
  void visit_rows(IntList sizes, int64_t begin, int64_t end, F&& f) {
    for_each_row<3>(sizes, {IntList(outer), index.strides(), src.strides()}, begin, end, f);
  }
  // The row whose first elements lie at these offsets in self, index and src.
  bool row(const LineStrides& of, bool checked, const std::array<int64_t, 3>& at) const {
    return scatter_row(of, checked, size, positions + at[1], source + at[2] * item, target + at[0] * item,
                       run);
  }
  void rows(int64_t begin, int64_t end) {
    visit_rows(index.sizes(), begin, end, [&](const auto& at) {
      if (!row(line, check, at)) outside = true;
    });
  }
  // All rows, elements [begin, end) of another dimension.
  void part_of_dim(int64_t d, int64_t begin, int64_t end) {
    Dims sizes = index->sizes;
    LineStrides part = line;
    sizes[d] = end - begin;
    if (d == index.dim() - 1) part.length = end - begin;
    const int64_t to = begin * outer[d], where = begin * index->strides[d], from = begin * src->strides[d];
    visit_rows(sizes, 0, row_count(sizes), [&](const auto& at) {
      if (!row(part, check, {at[0] + to, at[1] + where, at[2] + from})) outside = true;
    });
  }
  // Rows that go as a whole to one of [first, first + extent). Lists first: a branch that nobody can foretell
  // at each row would keep the next ones from starting.
  void rows_to(int64_t first, int64_t extent) {
    constexpr int64_t kList = 512;
    std::array<int64_t, 3> mine[kList + 1];
    int64_t count = 0;
    bool missed = false;
    const auto bytes = static_cast<size_t>(line.length * item);
    const auto work = [&] {
      for (int64_t i = 0; i < count; ++i) {
        if (line.along == 1 && i + kRunsAhead < count) {
          const auto& next = mine[i + kRunsAhead];
          if (extent < size) expect_run(source + next[2] * item, bytes);
          expect_run(target + (next[0] + positions[next[1]] * line.indexed) * item, bytes);
        }
        row(line, false, mine[i]);
      }
      count = 0;
    };
    visit_rows(index.sizes(), 0, row_count(index.sizes()), [&](const auto& at) {
      const int64_t position = positions[at[1]];
      missed |= static_cast<uint64_t>(position) >= static_cast<uint64_t>(size);
      mine[count] = at;
      count += static_cast<uint64_t>(position - first) < static_cast<uint64_t>(extent);
      if (count == kList) work();
    });
    work();
    if (missed) outside = true;
  }

  bool all() {
    const int64_t count = row_count(index.sizes()),
                  threads = in_parallel_region() || index.numel() < 2 * kGrainSize ? 1 : get_num_threads();
    if (dim == index.dim() - 1) {  // no two rows meet
      const int64_t grain = std::max<int64_t>(1, kGrainSize / std::max<int64_t>(1, line.length));
      parallel_for(0, count, grain, [&](int64_t begin, int64_t end) { rows(begin, end); });
    } else if (line.index == 0) {
      const int64_t part = threads == 1 ? size : (size + threads - 1) / threads;
      parallel_for(0, size, part, [&](int64_t begin, int64_t end) { rows_to(begin, end - begin); });
    } else if (const SharedDim shared = shared_dim(index.sizes(), dim); threads > 1 && shared.dim >= 0) {
      parallel_for(0, index->sizes[shared.dim], shared.part,
                   [&](int64_t begin, int64_t end) { part_of_dim(shared.dim, begin, end); });
    } else {
      rows(0, count);
    }
    return !outside;
  }
};

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

// Rows of one element would each be a call: where the index has such, another dimension takes the place of
// the last. That dimension, or -1.
int64_t longer_dim(const Tensor& index) {
  const int64_t last = index.dim() - 1;
  if (last < 1 || index->sizes[last] != 1) return -1;
  const auto longest = std::max_element(index->sizes.begin(), index->sizes.end());
  return *longest > 1 ? longest - index->sizes.begin() : -1;
}
Tensor turned(const Tensor& t, int64_t d) {
  Dims sizes = t->sizes, strides = t->strides;
  std::swap(sizes[d], sizes.back());
  std::swap(strides[d], strides.back());
  return make_view(t, sizes, strides, t.storage_offset(), false);
}
int64_t turned_dim(const Tensor& index, int64_t d, int64_t dim) {
  const int64_t last = index.dim() - 1;
  return dim == d ? last : dim == last ? d : dim;
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
  if (const int64_t d = longer_dim(index); d >= 0)
    return gather(turned(self, d), turned_dim(index, d, dim), turned(index, d), turned(out, d));
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
  if (const int64_t d = longer_dim(index); d >= 0)
    return scatter(op, turned(self, d), turned_dim(index, d, dim), turned(index, d), turned(src, d), check);
  ScatterRow row = nullptr;
  const auto choose = [&]<class T, class Combine>(T, Combine) { row = &scatter_row<T, Combine>; };
  using Ordered = Concat<TypeList<bool>, RealTypes>;
  if (op == ScatterOp::Assign)
    visit_width(self.itemsize(), [&]<class T>(T t) { choose(t, [](T, T b) { return b; }); });
  else if (op == ScatterOp::Add)
    visit_dtype(AllTypes{}, self.dtype(), "scatter_add",
                [&]<class T>(T t) { choose(t, [](T a, T b) { return plus(a, b); }); });
  else if (op == ScatterOp::Multiply)
    visit_dtype(AllTypes{}, self.dtype(), "scatter_reduce",
                [&]<class T>(T t) { choose(t, [](T a, T b) { return times(a, b); }); });
  else if (op == ScatterOp::Max)
    visit_dtype(Ordered{}, self.dtype(), "scatter_reduce",
                [&]<class T>(T t) { choose(t, [](T a, T b) { return larger(a, b); }); });
  else
    visit_dtype(Ordered{}, self.dtype(), "scatter_reduce",
                [&]<class T>(T t) { choose(t, [](T a, T b) { return smaller(a, b); }); });
  return Scatter{self, index, src, dim, check, RunKernels(op, self.dtype()), row}.all();
}

}  // namespace rushlight::cpu
