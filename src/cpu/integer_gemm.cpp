#include "cpu/integer_gemm.h"

#include <vector>

#include "core/parallel.h"
#include "cpu/isa_variant.h"

namespace rushlight::cpu {

RL_DECLARE_VARIANTS(IntegerTile integer_tile_variant(size_t word);
                    IntegerDot integer_dot_variant(size_t size);)

IntegerTile integer_tile(size_t word) { return RL_ISA_VARIANT(integer_tile_variant(word)); }
IntegerDot integer_dot(size_t size) { return RL_ISA_VARIANT(integer_dot_variant(size)); }

namespace {

constexpr int64_t kRows = IntegerTile::kRows;

int64_t groups_of(int64_t n, int64_t size) { return (n + size - 1) / size; }

template <class T>
using WordOf =
    std::conditional_t<sizeof(T) == 8, uint64_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>;

// Panels of `columns` columns, one after the other, row by row; zeros fill the last one.
template <class T, class U>
std::vector<U> packed_columns(MatrixView b, int64_t k, int64_t n, int64_t columns) {
  std::vector<U> packed(static_cast<size_t>(groups_of(n, columns) * k * columns));
  parallel_for(0, groups_of(n, columns), std::max<int64_t>(1, kGrainSize / (k * columns)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t g = begin; g < end; ++g)
                   for (int64_t p = 0; p < k; ++p) {
                     auto* to = packed.data() + (g * k + p) * columns;
                     const T* from =
                         static_cast<const T*>(b.data) + p * b.row_stride + g * columns * b.column_stride;
                     const int64_t count = std::min(columns, n - g * columns);
                     for (int64_t j = 0; j < count; ++j) to[j] = static_cast<U>(from[j * b.column_stride]);
                   }
               });
  return packed;
}

// Dense rows; zeros fill the last group of kRows.
template <class T, class U>
std::vector<U> packed_rows(MatrixView a, int64_t m, int64_t k) {
  std::vector<U> packed(static_cast<size_t>(groups_of(m, kRows) * kRows * k));
  parallel_for(0, m, std::max<int64_t>(1, kGrainSize / k), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* from = static_cast<const T*>(a.data) + i * a.row_stride;
      for (int64_t p = 0; p < k; ++p) packed[i * k + p] = static_cast<U>(from[p * a.column_stride]);
    }
  });
  return packed;
}

template <class T, class U>
void multiply(int64_t m, int64_t n, int64_t k, int64_t alpha, MatrixView a, MatrixView b, int64_t beta, T* c,
              int64_t ldc) {
  constexpr int64_t kWork = 64 * 64 * 64;
  const IntegerTile tile = integer_tile(sizeof(U));
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

}  // namespace

void integer_gemm(DType dtype, int64_t m, int64_t n, int64_t k, int64_t alpha, MatrixView a, MatrixView b,
                  int64_t beta, void* c, int64_t ldc) {
  visit_dtype(IntegralTypes{}, dtype, "addmm_impl_cpu_", [&]<class T>(T) {
    if (n == 1 && a.column_stride == 1)
      multiply_vector<T>(m, k, alpha, a, b, beta, static_cast<T*>(c), ldc);
    else
      multiply<T, WordOf<T>>(m, n, k, alpha, a, b, beta, static_cast<T*>(c), ldc);
  });
}

}  // namespace rushlight::cpu
