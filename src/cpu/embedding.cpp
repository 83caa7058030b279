#include "cpu/embedding.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "core/parallel.h"
#include "cpu/accumulate.h"
#include "cpu/copy_run.h"

namespace rushlight::cpu {

namespace {

void check_index(int64_t index, int64_t rows) {
  RL_CHECK_INDEX(index >= 0 && index < rows, "index out of range in self (index ", index, " of a table of ",
                 rows, " rows)");
}

std::vector<int64_t> frequencies(const int64_t* indices, int64_t count, int64_t rows) {
  std::vector<int64_t> counts(static_cast<size_t>(rows));
  for (int64_t i = 0; i < count; ++i) ++counts[static_cast<size_t>(indices[i])];
  return counts;
}

}  // namespace

void take_rows(const void* table, int64_t rows, int64_t row_bytes, const int64_t* indices, int64_t count,
               void* out) {
  const char* const from = static_cast<const char*>(table);
  const auto size = static_cast<size_t>(row_bytes);
  parallel_for(0, count, std::max<int64_t>(1, 4 * kGrainSize / std::max<int64_t>(row_bytes, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   check_index(indices[i], rows);
                   if (i + kRunsAhead < end) expect_run(from + indices[i + kRunsAhead] * row_bytes, size);
                   copy_run(static_cast<char*>(out) + i * row_bytes, from + indices[i] * row_bytes, size);
                 }
               });
}

void add_rows(DType dtype, const void* grad_data, int64_t width, const int64_t* indices, int64_t count,
              int64_t rows, int64_t skipped, bool by_frequency, void* out_data) {
  for (int64_t i = 0; i < count; ++i) check_index(indices[i], rows);
  const std::vector<int64_t> counts =
      by_frequency ? frequencies(indices, count, rows) : std::vector<int64_t>();
  visit_dtype(FloatTypes{}, dtype, "embedding_dense_backward", [&](auto tag) {
    using T = decltype(tag);
    using C = compute_type<T>;
    const T* grad = static_cast<const T*>(grad_data);
    T* out = static_cast<T*>(out_data);
    const AddRun run = add_run_kernel(dtype);
    auto add = [&](int64_t first, int64_t last) {
      for (int64_t i = 0; i < count; ++i) {
        const int64_t row = indices[i];
        if (row < first || row >= last || row == skipped) continue;
        const C scale = by_frequency ? C(1) / static_cast<C>(counts[static_cast<size_t>(row)]) : C(1);
        run(out + row * width, grad + i * width, static_cast<double>(scale), width);
      }
    };
    // Each piece of the table scans all indices: as few pieces as threads.
    const bool small = count * width < kGrainSize;
    parallel_for(0, rows, small ? rows : (rows + get_num_threads() - 1) / get_num_threads(), add);
  });
}

void bound_rows(DType dtype, void* table, int64_t rows, int64_t width, const int64_t* indices, int64_t count,
                double max_norm, double p) {
  for (int64_t i = 0; i < count; ++i) check_index(indices[i], rows);
  std::vector<bool> done(static_cast<size_t>(rows));
  visit_dtype(FloatTypes{}, dtype, "embedding_renorm_", [&](auto tag) {
    using T = decltype(tag);
    using C = compute_type<T>;
    for (int64_t i = 0; i < count; ++i) {
      if (done[static_cast<size_t>(indices[i])]) continue;
      done[static_cast<size_t>(indices[i])] = true;
      T* row = static_cast<T*>(table) + indices[i] * width;
      double norm = 0;
      for (int64_t k = 0; k < width; ++k) {
        const double v = std::abs(static_cast<double>(static_cast<C>(row[k])));
        norm = std::isinf(p) ? std::max(norm, v) : norm + std::pow(v, p);
      }
      if (!std::isinf(p)) norm = std::pow(norm, 1 / p);
      if (norm <= max_norm) continue;
      const C scale = static_cast<C>(max_norm / (norm + 1e-7));
      for (int64_t k = 0; k < width; ++k) row[k] = T(static_cast<C>(row[k]) * scale);
    }
  });
}

}  // namespace rushlight::cpu
