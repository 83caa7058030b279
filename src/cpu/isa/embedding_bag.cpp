// Bags of rows, for each instruction set.
#include "cpu/embedding_bag.h"

#include <algorithm>

#include "core/parallel.h"
#include "cpu/isa/half_inl.h"

namespace rushlight::cpu::RL_ISA {
namespace {

constexpr int64_t kBlock = 1024;  // columns summed at a time, in the compute type

template <class F>
void for_bags(const BagPlan& p, F&& f) {
  const int64_t work =
      p.bags > 0 ? std::max<int64_t>(1, p.starts[p.bags] - p.starts[0]) * p.width / p.bags : 1;
  parallel_for(0, p.bags, std::max<int64_t>(1, kGrainSize / std::max<int64_t>(work, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t b = begin; b < end; ++b) f(b);
               });
}

// A row to compute with: halves as floats, by blocks, which the compiler does not do.
template <class T, class C>
auto row_as(const T* row, int64_t n, C* wide) {
  if constexpr (std::is_same_v<T, Half>) {
    widen(row, wide, n);
    return static_cast<const C*>(wide);
  } else {
    return row;
  }
}

// kColumns columns of a bag, summed in registers.
template <int64_t kColumns, class T>
void sum_columns(const BagPlan& p, const T* table, T* out, int64_t b, compute_type<T> scale) {
  using C = compute_type<T>;
  const T* factors = static_cast<const T*>(p.factors);
  C sum[kColumns] = {}, wide[kColumns];
  bool first = true;  // which is taken as it is: 0 + x is not -0
  for (int64_t i = p.starts[b]; i < p.starts[b + 1]; ++i) {
    if (p.indices[i] == p.skipped) continue;
    const auto* row = row_as(table + p.indices[i] * p.width, kColumns, wide);
    if (i + 2 < p.starts[p.bags]) __builtin_prefetch(table + p.indices[i + 2] * p.width);
    const C w = factors ? static_cast<C>(factors[i]) : C(1);
    if (first)
      for (int64_t k = 0; k < kColumns; ++k) sum[k] = w * static_cast<C>(row[k]);
    else
      for (int64_t k = 0; k < kColumns; ++k) sum[k] += w * static_cast<C>(row[k]);
    first = false;
  }
  for (int64_t k = 0; k < kColumns; ++k) sum[k] *= scale;
  narrow(sum, out + b * p.width, kColumns);
}

template <class T>
void sum_bag(const BagPlan& p, const T* table, T* out, int64_t b, int64_t count) {
  using C = compute_type<T>;
  const T* factors = static_cast<const T*>(p.factors);
  const C scale = p.mode == BagMode::Mean && count > 0 ? C(1) / static_cast<C>(count) : C(1);
  if (count == 0) {
    std::fill_n(out + b * p.width, p.width, T(C(0)));
    return;
  }
  constexpr int64_t kMany = 64, kFew = 16;
  if (p.width >= kFew && p.width <= kBlock) {
    int64_t from = 0;
    for (; from + kMany <= p.width; from += kMany) sum_columns<kMany>(p, table + from, out + from, b, scale);
    for (; from < p.width; from += kFew) {  // the last ones overlap
      const int64_t at = std::min(from, p.width - kFew);
      sum_columns<kFew>(p, table + at, out + at, b, scale);
    }
    return;
  }
  for (int64_t from = 0; from < p.width; from += kBlock) {
    const int64_t n = std::min(kBlock, p.width - from);
    C sum[kBlock], wide[kBlock];
    bool first = true;  // which is taken as it is
    for (int64_t i = p.starts[b]; i < p.starts[b + 1]; ++i) {
      if (p.indices[i] == p.skipped) continue;
      const auto* row = row_as(table + p.indices[i] * p.width + from, n, wide);
      if (i + 2 < p.starts[p.bags]) __builtin_prefetch(table + p.indices[i + 2] * p.width + from);
      const C w = factors ? static_cast<C>(factors[i]) : C(1);
      if (first)
        for (int64_t k = 0; k < n; ++k) sum[k] = w * static_cast<C>(row[k]);
      else if (factors)
        for (int64_t k = 0; k < n; ++k) sum[k] += w * static_cast<C>(row[k]);
      else
        for (int64_t k = 0; k < n; ++k) sum[k] += static_cast<C>(row[k]);
      first = false;
    }
    if (first) std::fill_n(sum, n, C(0));
    T* to = out + b * p.width + from;
    if constexpr (std::is_same_v<T, Half>) {
      for (int64_t k = 0; k < n; ++k) sum[k] *= scale;
      narrow(sum, to, n);
    } else {
      for (int64_t k = 0; k < n; ++k) to[k] = T(sum[k] * scale);
    }
  }
}

template <class T>
void largest_of_bag(const BagPlan& p, const T* table, T* out, int64_t* largest, int64_t b) {
  using C = compute_type<T>;
  T* to = out + b * p.width;
  int64_t* at = largest + b * p.width;
  for (int64_t k = 0; k < p.width; ++k) to[k] = T(C(0)), at[k] = -1;
  for (int64_t i = p.starts[b]; i < p.starts[b + 1]; ++i) {
    if (p.indices[i] == p.skipped) continue;
    const T* row = table + p.indices[i] * p.width;
    for (int64_t k = 0; k < p.width; ++k) {
      const bool better = at[k] < 0 || static_cast<C>(row[k]) > static_cast<C>(to[k]);
      to[k] = better ? row[k] : to[k];
      at[k] = better ? p.indices[i] : at[k];
    }
  }
}

template <class T>
void add_rows(const BagPlan& p, const T* grad, const int64_t* counts, const int64_t* largest,
              const double* inverse_frequency, T* table, int64_t first, int64_t last) {
  using C = compute_type<T>;
  const T* factors = static_cast<const T*>(p.factors);
  for (int64_t b = 0; b < p.bags; ++b) {
    const T* g = grad + b * p.width;
    if (p.mode == BagMode::Max) {
      for (int64_t k = 0; k < p.width; ++k) {
        const int64_t row = largest[b * p.width + k];
        if (row < first || row >= last) continue;
        T& to = table[row * p.width + k];
        to = T(static_cast<C>(to) + static_cast<C>(g[k]));
      }
      continue;
    }
    const C scale = p.mode == BagMode::Mean && counts[b] > 0 ? C(1) / static_cast<C>(counts[b]) : C(1);
    for (int64_t i = p.starts[b]; i < p.starts[b + 1]; ++i) {
      const int64_t row = p.indices[i];
      if (row == p.skipped || row < first || row >= last) continue;
      C w = factors ? static_cast<C>(factors[i]) : scale;
      if (inverse_frequency) w *= static_cast<C>(inverse_frequency[row]);
      T* __restrict to = table + row * p.width;
      for (int64_t k = 0; k < p.width; ++k) to[k] = T(static_cast<C>(to[k]) + w * static_cast<C>(g[k]));
    }
  }
}

}  // namespace

void embedding_bag(const BagPlan& p, const void* table_data, void* out_data, int64_t* counts,
                   int64_t* largest) {
  visit_dtype(FloatTypes{}, p.dtype, "embedding_bag", [&](auto tag) {
    using T = decltype(tag);
    const T* table = static_cast<const T*>(table_data);
    T* out = static_cast<T*>(out_data);
    for_bags(p, [&](int64_t b) {
      int64_t count = 0;
      for (int64_t i = p.starts[b]; i < p.starts[b + 1]; ++i) count += p.indices[i] != p.skipped;
      counts[b] = count;
      if (p.mode == BagMode::Max)
        largest_of_bag(p, table, out, largest, b);
      else
        sum_bag(p, table, out, b, count);
    });
  });
}

void embedding_bag_backward(const BagPlan& p, const void* grad, const int64_t* counts, const int64_t* largest,
                            const double* inverse_frequency, void* grad_table) {
  visit_dtype(FloatTypes{}, p.dtype, "embedding_bag_backward", [&](auto tag) {
    using T = decltype(tag);
    // Each piece of the table scans all bags: as few pieces as threads.
    const bool small = (p.bags > 0 ? p.starts[p.bags] : 0) * p.width < kGrainSize;
    const int64_t threads = get_num_threads();
    parallel_for(0, p.rows, small ? p.rows : (p.rows + threads - 1) / threads,
                 [&](int64_t first, int64_t last) {
                   add_rows(p, static_cast<const T*>(grad), counts, largest, inverse_frequency,
                            static_cast<T*>(grad_table), first, last);
                 });
  });
}

void embedding_bag_factors(const BagPlan& p, const void* grad_data, const void* table_data,
                           void* grad_factors) {
  visit_dtype(FloatTypes{}, p.dtype, "embedding_bag_backward", [&](auto tag) {
    using T = decltype(tag);
    using C = compute_type<T>;
    for_bags(p, [&](int64_t b) {
      const T* g = static_cast<const T*>(grad_data) + b * p.width;
      for (int64_t i = p.starts[b]; i < p.starts[b + 1]; ++i) {
        C sum = 0;
        const T* row = static_cast<const T*>(table_data) + p.indices[i] * p.width;
        for (int64_t k = 0; p.indices[i] != p.skipped && k < p.width; ++k)
          sum += static_cast<C>(g[k]) * static_cast<C>(row[k]);
        static_cast<T*>(grad_factors)[i] = T(sum);
      }
    });
  });
}

}  // namespace rushlight::cpu::RL_ISA
