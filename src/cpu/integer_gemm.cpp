#include "cpu/integer_gemm.h"

#include <cstring>
#include <vector>

#include "core/parallel.h"
#include "cpu/buffer.h"
#include "cpu/isa_variant.h"

namespace rushlight::cpu {

RL_DECLARE_VARIANTS(IntegerTile integer_tile_variant(size_t word, bool halves);
                    IntegerRow integer_row_variant(size_t size); IntegerDot integer_dot_variant(size_t size);)

IntegerTile integer_tile(size_t word, bool halves) {
  return RL_ISA_VARIANT(integer_tile_variant(word, halves));
}
IntegerRow integer_row(size_t size) { return RL_ISA_VARIANT(integer_row_variant(size)); }
IntegerDot integer_dot(size_t size) { return RL_ISA_VARIANT(integer_dot_variant(size)); }

namespace {

constexpr int64_t kRows = IntegerTile::kRows;

int64_t groups_of(int64_t n, int64_t size) { return (n + size - 1) / size; }

template <class T>
using WordOf =
    std::conditional_t<sizeof(T) == 8, uint64_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>;

// Panels of `columns` columns, one after the other, row by row; zeros fill the last one.
template <class T, class U>
CachedVector<U> packed_columns(MatrixView b, int64_t k, int64_t n, int64_t columns) {
  CachedVector<U> packed(static_cast<size_t>(groups_of(n, columns) * k * columns));
  parallel_for(0, groups_of(n, columns), std::max<int64_t>(1, kGrainSize / (k * columns)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t g = begin; g < end; ++g)
                   for (int64_t p = 0; p < k; ++p) {
                     auto* to = packed.data() + (g * k + p) * columns;
                     const T* from =
                         static_cast<const T*>(b.data) + p * b.row_stride + g * columns * b.column_stride;
                     const int64_t count = std::min(columns, n - g * columns);
                     if (sizeof(T) == sizeof(U) && b.column_stride == 1)
                       std::memcpy(to, from, static_cast<size_t>(count) * sizeof(U));
                     else
                       for (int64_t j = 0; j < count; ++j) to[j] = static_cast<U>(from[j * b.column_stride]);
                     std::fill(to + count, to + columns, U(0));
                   }
               });
  return packed;
}

// Dense rows; zeros fill the last group of kRows.
template <class T, class U>
CachedVector<U> packed_rows(MatrixView a, int64_t m, int64_t k) {
  CachedVector<U> packed(static_cast<size_t>(groups_of(m, kRows) * kRows * k));
  parallel_for(0, m, std::max<int64_t>(1, kGrainSize / k), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* from = static_cast<const T*>(a.data) + i * a.row_stride;
      if (sizeof(T) == sizeof(U) && a.column_stride == 1)
        std::memcpy(packed.data() + i * k, from, static_cast<size_t>(k) * sizeof(U));
      else
        for (int64_t p = 0; p < k; ++p) packed[i * k + p] = static_cast<U>(from[p * a.column_stride]);
    }
  });
  std::fill(packed.begin() + m * k, packed.end(), U(0));
  return packed;
}

// Whether all numbers fit into 32 bits with their sign.
template <class T>
bool are_halves(MatrixView m, int64_t rows, int64_t columns) {
  if (m.row_stride == 1) std::swap(m.row_stride, m.column_stride), std::swap(rows, columns);
  uint64_t beyond = 0;
  for (int64_t i = 0; i < rows && !(beyond >> 32); ++i) {
    const T* from = static_cast<const T*>(m.data) + i * m.row_stride;
    for (int64_t j = 0; j < columns; ++j)
      beyond |= static_cast<uint64_t>(from[j * m.column_stride]) + (uint64_t{1} << 31);
  }
  return !(beyond >> 32);
}

template <class T, class U>
void multiply(int64_t m, int64_t n, int64_t k, int64_t alpha, MatrixView a, MatrixView b, int64_t beta, T* c,
              int64_t ldc) {
  constexpr int64_t kWork = 64 * 64 * 64;
  const bool halves = std::is_same_v<T, int64_t> && are_halves<T>(a, m, k) && are_halves<T>(b, k, n);
  const IntegerTile tile = integer_tile(sizeof(U), halves);
  const auto rows = packed_rows<T, U>(a, m, k), panels = packed_columns<T, U>(b, k, n, tile.columns);
  const int64_t row_groups = groups_of(m, kRows), tiles = row_groups * groups_of(n, tile.columns);
  parallel_for(
      0, tiles, std::max<int64_t>(1, kWork / (kRows * tile.columns * k)), [&](int64_t begin, int64_t end) {
        alignas(64) U sums[768 / sizeof(U)];  // kRows of the widest tile
        for (int64_t t = begin; t < end; ++t) {
          const int64_t panel = t / row_groups, i = t % row_groups * kRows, j = panel * tile.columns;
          tile.run(rows.data() + i * k, panels.data() + panel * k * tile.columns, k, sums);
          for (int64_t r = 0; r < std::min(kRows, m - i); ++r) {
            T* out = c + (i + r) * ldc + j;
            const U* sum = sums + r * tile.columns;
            const int64_t count = std::min(tile.columns, n - j);
            if (sizeof(T) == sizeof(U) && alpha == 1 && beta == 0)
              std::memcpy(out, sum, static_cast<size_t>(count) * sizeof(U));
            else if (alpha == 1 && beta == 0)
              for (int64_t x = 0; x < count; ++x) out[x] = static_cast<T>(sum[x]);
            else
              for (int64_t x = 0; x < count; ++x)
                out[x] =
                    static_cast<T>(static_cast<uint64_t>(alpha) * sum[x] +
                                   (beta ? static_cast<uint64_t>(beta) * static_cast<uint64_t>(out[x]) : 0));
          }
        }
      });
}

// A matrix whose rows are adjacent, times a vector.
template <class T>
void multiply_vector(int64_t m, int64_t k, int64_t alpha, MatrixView a, MatrixView x, int64_t beta, T* c,
                     int64_t ldc) {
  const IntegerDot dot = integer_dot(sizeof(T));
  std::vector<T> gathered(static_cast<size_t>(x.row_stride == 1 ? 0 : k));
  const T* vector = static_cast<const T*>(x.data);
  for (size_t p = 0; p < gathered.size(); ++p) gathered[p] = vector[static_cast<int64_t>(p) * x.row_stride];
  if (!gathered.empty()) vector = gathered.data();
  parallel_for(0, m, std::max<int64_t>(1, kGrainSize / k), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const uint64_t sum = dot(static_cast<const T*>(a.data) + i * a.row_stride, vector, k);
      T& out = c[i * ldc];
      out = static_cast<T>(static_cast<uint64_t>(alpha) * sum +
                           (beta ? static_cast<uint64_t>(beta) * static_cast<uint64_t>(out) : 0));
    }
  });
}

MatrixView turned(MatrixView m) { return {m.data, m.column_stride, m.row_stride}; }

// Rows, one by one, times a matrix whose rows are adjacent.
template <class T>
void multiply_rows(int64_t m, int64_t n, int64_t k, int64_t alpha, MatrixView a, MatrixView b, int64_t beta,
                   T* c, int64_t ldc) {
  const IntegerRow row = integer_row(sizeof(T));
  constexpr int64_t kColumns = IntegerRow::kColumns;
  const int64_t pieces = groups_of(n, kColumns), cost = k * std::min(n, kColumns);
  parallel_for(
      0, m * pieces, std::max<int64_t>(1, kGrainSize / std::max<int64_t>(cost, 1)),
      [&](int64_t begin, int64_t end) {
        std::vector<T> vector(static_cast<size_t>(k));
        T sums[kColumns];
        for (int64_t at = begin; at < end; ++at) {
          const int64_t i = at / pieces, j = at % pieces * kColumns, count = std::min(kColumns, n - j);
          const T* from = static_cast<const T*>(a.data) + i * a.row_stride;
          if (j == 0 || at == begin)
            for (int64_t p = 0; p < k; ++p) vector[static_cast<size_t>(p)] = from[p * a.column_stride];
          T* to = c + i * ldc + j;
          row.run(vector.data(), static_cast<const T*>(b.data) + j, b.row_stride, k, count, sums);
          if (alpha == 1 && beta == 0) {
            std::memcpy(to, sums, static_cast<size_t>(count) * sizeof(T));
            continue;
          }
          for (int64_t x = 0; x < count; ++x) {
            const uint64_t before = beta ? static_cast<uint64_t>(beta) * static_cast<uint64_t>(to[x]) : 0;
            to[x] = static_cast<T>(static_cast<uint64_t>(alpha) * static_cast<uint64_t>(sums[x]) + before);
          }
        }
      });
}

// Whether tiles would be packed and emptied for few terms each, and vectors hold what the rows have.
template <class T>
bool has_few_terms(int64_t n, int64_t k, MatrixView b) {
  constexpr int64_t kFewTerms = 8, kManyColumns = 32;
  return sizeof(T) < 8 && k <= kFewTerms && n >= kManyColumns && b.column_stride == 1;
}

}  // namespace

void integer_gemm(DType dtype, int64_t m, int64_t n, int64_t k, int64_t alpha, MatrixView a, MatrixView b,
                  int64_t beta, void* c, int64_t ldc) {
  visit_dtype(IntegralTypes{}, dtype, "addmm_impl_cpu_", [&]<class T>(T) {
    if (n == 1 && a.column_stride == 1)
      multiply_vector<T>(m, k, alpha, a, b, beta, static_cast<T*>(c), ldc);
    else if (m == 1 && b.row_stride == 1)
      multiply_vector<T>(n, k, alpha, turned(b), turned(a), beta, static_cast<T*>(c), 1);
    else if ((m == 1 && b.column_stride == 1) || has_few_terms<T>(n, k, b))
      multiply_rows<T>(m, n, k, alpha, a, b, beta, static_cast<T*>(c), ldc);
    else
      multiply<T, WordOf<T>>(m, n, k, alpha, a, b, beta, static_cast<T*>(c), ldc);
  });
}

}  // namespace rushlight::cpu
