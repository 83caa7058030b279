#include "cpu/index.h"

#include <cstring>

#include "core/parallel.h"
#include "cpu/odometer.h"

namespace rushlight::cpu {
namespace {

// Calls f with a value as wide as one element.
template <class F>
void visit_width(size_t itemsize, F&& f) {
  switch (itemsize) {
    case 1:
      return f(uint8_t{});
    case 2:
      return f(uint16_t{});
    case 4:
      return f(uint32_t{});
    case 8:
      return f(uint64_t{});
    default:
      return f(complex128{});
  }
}

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
  for (int64_t i = first; i < last; ++i) {
    const int64_t base = at.before[i / indexed] + at.indexed[i % indexed];
    for (int64_t a = 0; a < after; ++a) f(base + at.after[a], (i * after + a) * at.run);
  }
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
        for_each_run(at, begin, end, [&](int64_t from, int64_t to) {
          std::memcpy(target + to, source + from, at.run * sizeof(T));
        });
    });
  });
}

void index_write(const IndexBlocks& at, void* self, const void* values, bool single, size_t itemsize) {
  const auto blocks = static_cast<int64_t>(at.before.size() * at.indexed.size());
  visit_width(itemsize, [&]<class T>(T) {
    const T* source = static_cast<const T*>(values);
    T* target = static_cast<T*>(self);
    for_each_run(at, 0, blocks, [&](int64_t to, int64_t from) {
      if (single)
        std::fill_n(target + to, at.run, *source);
      else
        std::copy_n(source + from, at.run, target + to);
    });
  });
}

void index_accumulate(const IndexBlocks& at, void* self, const void* values, bool single, DType dtype) {
  const auto blocks = static_cast<int64_t>(at.before.size() * at.indexed.size());
  visit_dtype(Concat<AllTypes, TypeList<complex32>>{}, dtype, "index_put_", [&]<class T>(T) {
    const T* source = static_cast<const T*>(values);
    T* target = static_cast<T*>(self);
    for_each_run(at, 0, blocks, [&](int64_t to, int64_t from) {
      if (single) {
        for (int64_t r = 0; r < at.run; ++r) target[to + r] = plus(target[to + r], *source);
      } else {
        add_run(target + to, source + from, at.run);
      }
    });
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

template <class T, class Combine>
void scatter_rows(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                  Combine&& combine) {
  const LineStrides line = line_strides(self, dim, index, src);
  const Dims outer = strides_without(self, dim);
  T* target = static_cast<T*>(self.data_ptr());
  const T* source = static_cast<const T*>(src.data_ptr());
  const int64_t* positions = index.data<int64_t>();
  // Rows meet in one element unless the last dimension is the indexed one, so only then may they run in
  // parallel.
  const bool independent = dim == index.dim() - 1;
  const int64_t rows = row_count(index.sizes()),
                grain = std::max<int64_t>(1, kGrainSize / std::max<int64_t>(1, line.length));
  parallel_for(0, rows, independent ? grain : rows, [&](int64_t begin, int64_t end) {
    for_each_row<3>(index.sizes(), {IntList(outer), index.strides(), src.strides()}, begin, end,
                    [&](const auto& at) {
                      const int64_t* where = positions + at[1];
                      const T* from = source + at[2];
                      if (line.index == 0) {
                        T* to = target + at[0] + *where * line.indexed;
                        for (int64_t j = 0; j < line.length; ++j)
                          to[j * line.along] = combine(to[j * line.along], from[j * line.other]);
                        return;
                      }
                      for (int64_t j = 0; j < line.length; ++j) {
                        T& to = target[at[0] + j * line.along + where[j * line.index] * line.indexed];
                        to = combine(to, from[j * line.other]);
                      }
                    });
  });
}

}  // namespace

void gather(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& out) {
  if (index.numel() == 0 || self.device().is_meta()) return;
  const LineStrides line = line_strides(self, dim, index, out);
  const Dims outer = strides_without(self, dim);
  const int64_t* positions = index.data<int64_t>();
  visit_width(self.itemsize(), [&]<class T>(T) {
    const T* source = static_cast<const T*>(self.data_ptr());
    T* target = static_cast<T*>(out.data_ptr());
    parallel_for(0, row_count(index.sizes()), std::max<int64_t>(1, kGrainSize / line.length),
                 [&](int64_t begin, int64_t end) {
                   for_each_row<3>(index.sizes(), {IntList(outer), index.strides(), out.strides()}, begin,
                                   end, [&](const auto& at) {
                                     const T* from = source + at[0];
                                     const int64_t* where = positions + at[1];
                                     T* to = target + at[2];
                                     for (int64_t j = 0; j < line.length; ++j)
                                       to[j * line.other] =
                                           from[j * line.along + where[j * line.index] * line.indexed];
                                   });
                 });
  });
}

void scatter(ScatterOp op, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  if (index.numel() == 0 || self.device().is_meta()) return;
  if (op == ScatterOp::Assign) {
    return visit_width(self.itemsize(),
                       [&]<class T>(T) { scatter_rows<T>(self, dim, index, src, [](T, T b) { return b; }); });
  }
  if (op == ScatterOp::Add)
    return visit_dtype(AllTypes{}, self.dtype(), "scatter_add",
                       [&]<class T>(T) { scatter_rows<T>(self, dim, index, src, plus<T>); });
  if (op == ScatterOp::Multiply)
    return visit_dtype(AllTypes{}, self.dtype(), "scatter_reduce",
                       [&]<class T>(T) { scatter_rows<T>(self, dim, index, src, times<T>); });
  using Ordered = Concat<TypeList<bool>, RealTypes>;
  visit_dtype(Ordered{}, self.dtype(), "scatter_reduce", [&]<class T>(T) {
    scatter_rows<T>(self, dim, index, src, op == ScatterOp::Max ? larger<T> : smaller<T>);
  });
}

namespace {

// f(row-major index of the row, pointer to its elements, stride) with elements as T.
template <class T, class F>
void for_each_line(const Tensor& t, F&& f) {
  const int64_t stride = t.dim() ? t->strides.back() : 1;
  int64_t row = 0;
  for_each_row<1>(t.sizes(), {t.strides()}, 0, t.numel() ? row_count(t.sizes()) : 0,
                  [&](const auto& at) { f(row++, static_cast<const T*>(t.data_ptr()) + at[0], stride); });
}

int64_t last_size(const Tensor& t) { return t.dim() ? t->sizes.back() : 1; }

}  // namespace

int64_t count_nonzero(const Tensor& t) {
  int64_t count = 0;
  visit_dtype(StorageTypes{}, t.dtype(), "nonzero", [&]<class T>(T) {
    for_each_line<T>(t, [&](int64_t, const T* x, int64_t stride) {
      for (int64_t j = 0; j < last_size(t); ++j)
        count += static_cast<compute_type<T>>(x[j * stride]) != compute_type<T>(0);
    });
  });
  return count;
}

void nonzero(const Tensor& t, int64_t* out) {
  const int64_t dims = t.dim();
  if (dims == 0) return;  // no coordinates to write
  Dims index(dims);
  visit_dtype(StorageTypes{}, t.dtype(), "nonzero", [&]<class T>(T) {
    for_each_line<T>(t, [&](int64_t, const T* x, int64_t stride) {
      for (int64_t j = 0; j < t->sizes.back(); ++j) {
        if (static_cast<compute_type<T>>(x[j * stride]) == compute_type<T>(0)) continue;
        std::copy_n(index.data(), dims - 1, out);
        out[dims - 1] = j;
        out += dims;
      }
      for (int64_t d = dims - 2; d >= 0 && ++index[d] == t->sizes[d]; --d) index[d] = 0;
    });
  });
}

int64_t count_true(const Tensor& mask) { return count_nonzero(mask); }

void masked_scatter(const Tensor& self, const Tensor& mask, const void* source) {
  if (self.numel() == 0) return;
  const int64_t length = last_size(self), stride = self.dim() ? self->strides.back() : 1,
                mask_stride = mask.dim() ? mask->strides.back() : 1;
  visit_width(self.itemsize(), [&]<class T>(T) {
    const T* next = static_cast<const T*>(source);
    for_each_row<2>(self.sizes(), {self.strides(), mask.strides()}, 0, row_count(self.sizes()),
                    [&](const auto& at) {
                      T* x = static_cast<T*>(self.data_ptr()) + at[0];
                      const bool* m = mask.data<bool>() + at[1];
                      for (int64_t j = 0; j < length; ++j)
                        if (m[j * mask_stride]) x[j * stride] = *next++;
                    });
  });
}

}  // namespace rushlight::cpu
