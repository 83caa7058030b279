#include "cpu/sparse.h"

#include <algorithm>
#include <memory>

#include "core/parallel.h"
#include "cpu/accumulate.h"

namespace rushlight::cpu {
namespace {

template <class T>
struct Sum {
  using type = T;
};
template <>
struct Sum<Half> {
  using type = float;
};
template <>
struct Sum<BFloat16> {
  using type = float;
};

// A row times a vector: several sums, so that none waits for the one before.
template <class T>
T row_times_vector(int64_t begin, int64_t end, const int64_t* columns, const T* values, const T* dense) {
  using S = typename Sum<T>::type;
  S sums[4] = {S(0), S(0), S(0), S(0)};
  const auto product = [&](int64_t i) {
    return static_cast<S>(values[i]) * static_cast<S>(dense[columns[i]]);
  };
  int64_t i = begin;
  for (; i + 4 <= end; i += 4)
    for (int k = 0; k < 4; ++k) sums[k] += product(i + k);
  for (; i < end; ++i) sums[0] += product(i);
  return static_cast<T>((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

// One row of the result, summed in `sums` when T itself is too narrow to sum in, by `add` where there is one.
template <class T>
void row_product(int64_t begin, int64_t end, int64_t width, const int64_t* columns, const T* values,
                 const T* dense, T* out, typename Sum<T>::type* sums, AddRun add) {
  using S = typename Sum<T>::type;
  if (width == 1) {
    *out = row_times_vector(begin, end, columns, values, dense);
    return;
  }
  S* to;
  if constexpr (std::is_same_v<S, T>)
    to = out;
  else
    to = sums;
  std::fill(to, to + width, S(0));
  for (int64_t i = begin; i < end; ++i) {
    const S value = static_cast<S>(values[i]);
    const T* row = dense + columns[i] * width;
    if constexpr (std::is_same_v<S, T> && is_floating_v<T>)
      add(to, row, static_cast<double>(value), width);
    else
      for (int64_t j = 0; j < width; ++j) to[j] += value * static_cast<S>(row[j]);
  }
  if constexpr (!std::is_same_v<S, T>)
    std::transform(to, to + width, out, [](S s) { return static_cast<T>(s); });
}

// The largest (or smallest) product of one row, column by column.
template <class T, bool largest>
void row_extreme(int64_t begin, int64_t end, int64_t width, int64_t none, const int64_t* columns,
                 const T* values, const T* dense, T* out, int64_t* chosen) {
  using S = typename Sum<T>::type;
  if (begin == end) {
    std::fill(out, out + width, T(0));
    std::fill(chosen, chosen + width, none);
    return;
  }
  for (int64_t i = begin; i < end; ++i) {
    const S value = static_cast<S>(values[i]);
    const T* row = dense + columns[i] * width;
    for (int64_t j = 0; j < width; ++j) {
      const T product = static_cast<T>(value * static_cast<S>(row[j]));
      const S x = static_cast<S>(product), best = static_cast<S>(out[j]);
      if (i != begin && (best != best || !(x != x || (largest ? x > best : x < best)))) continue;
      out[j] = product;
      chosen[j] = i;
    }
  }
}

}  // namespace

void sparse_reduce_dense(RowReduce op, DType dtype, int64_t rows, int64_t width, const int64_t* starts,
                         const int64_t* columns, const void* values, const void* dense, void* out,
                         int64_t* chosen) {
  visit_dtype(FloatTypes{}, dtype, "sparse_mm_reduce", [&](auto tag) {
    using T = decltype(tag);
    const auto *v = static_cast<const T*>(values), *d = static_cast<const T*>(dense);
    if (op == RowReduce::Sum || op == RowReduce::Mean) {
      sparse_times_dense(dtype, rows, width, starts, columns, values, dense, out);
      for (int64_t r = 0; op == RowReduce::Mean && r < rows; ++r) {
        auto* row = static_cast<T*>(out) + r * width;
        const auto count = static_cast<compute_type<T>>(std::max<int64_t>(1, starts[r + 1] - starts[r]));
        std::transform(row, row + width, row,
                       [&](T s) { return static_cast<T>(static_cast<compute_type<T>>(s) / count); });
      }
      return;
    }
    const int64_t work = rows == 0 ? 1 : (starts[rows] * width) / rows + 1;
    parallel_for(0, rows, std::max<int64_t>(1, 16384 / work), [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) {
        const auto run = op == RowReduce::Max ? row_extreme<T, true> : row_extreme<T, false>;
        run(starts[r], starts[r + 1], width, starts[rows], columns, v, d, static_cast<T*>(out) + r * width,
            chosen + r * width);
      }
    });
  });
}

bool add_few_times_dense(DType dtype, int64_t count, int64_t height, int64_t depth, int64_t width,
                         const int64_t* rows, const int64_t* columns, const void* values, const void* dense,
                         void* out) {
  if (dtype == DType::Float16 || dtype == DType::BFloat16) return false;
  bool inside = true;
  for (int64_t i = 0; i < count; ++i)
    inside &= (static_cast<uint64_t>(rows[i]) < static_cast<uint64_t>(height)) &
              (static_cast<uint64_t>(columns[i]) < static_cast<uint64_t>(depth));
  if (!inside) return false;
  visit_dtype(NumberTypes{}, dtype, "sparse_mm", [&]<class T>(T) {
    for (int64_t i = 0; i < count; ++i) {
      const T value = static_cast<const T*>(values)[i];
      const T* from = static_cast<const T*>(dense) + columns[i] * width;
      T* to = static_cast<T*>(out) + rows[i] * width;
      for (int64_t j = 0; j < width; ++j) to[j] = static_cast<T>(to[j] + value * from[j]);
    }
  });
  return true;
}

void sparse_times_dense(DType dtype, int64_t rows, int64_t width, const int64_t* starts,
                        const int64_t* columns, const void* values, const void* dense, void* out) {
  visit_dtype(NumberTypes{}, dtype, "sparse_mm", [&](auto tag) {
    using T = decltype(tag);
    using S = typename Sum<T>::type;
    const int64_t work = rows == 0 ? 1 : (starts[rows] * width) / rows + 1;
    const AddRun add = add_run_kernel(dtype);
    parallel_for(0, rows, std::max<int64_t>(1, 16384 / work), [&](int64_t first, int64_t last) {
      auto sums = std::make_unique<S[]>(std::is_same_v<S, T> ? 0 : static_cast<size_t>(width));
      for (int64_t r = first; r < last; ++r)
        row_product<T>(starts[r], starts[r + 1], width, columns, static_cast<const T*>(values),
                       static_cast<const T*>(dense), static_cast<T*>(out) + r * width, sums.get(), add);
    });
  });
}

void sparse_triangular_solve(DType dtype, int64_t rows, int64_t width, const int64_t* starts,
                             const int64_t* columns, const void* values, bool upper, bool unit, void* x) {
  visit_dtype(Concat<TypeList<float, double>, ComplexTypes>{}, dtype, "triangular_solve", [&](auto tag) {
    using T = decltype(tag);
    const auto* v = static_cast<const T*>(values);
    for (int64_t step = 0; step < rows; ++step) {
      const int64_t r = upper ? rows - 1 - step : step;
      T* row = static_cast<T*>(x) + r * width;
      T diagonal(0);
      for (int64_t i = starts[r]; i < starts[r + 1]; ++i) {
        const int64_t c = columns[i];
        if (c == r) diagonal = diagonal + v[i];
        if (upper ? c <= r : c >= r) continue;
        const T* solved = static_cast<const T*>(x) + c * width;
        for (int64_t j = 0; j < width; ++j) row[j] = row[j] - v[i] * solved[j];
      }
      for (int64_t j = 0; !unit && j < width; ++j) row[j] = row[j] / diagonal;
    }
  });
}

}  // namespace rushlight::cpu
