#include "cpu/double_gemm.h"

#include <algorithm>

#include "core/parallel.h"
#include "cpu/buffer.h"
#include "cpu/isa_variant.h"
#include "cpu/panel.h"

namespace rushlight::cpu {

RL_DECLARE_VARIANTS(DoubleTile double_tile();)

namespace {

// What the caches hold: a panel of B in the first, a block of A in the second, all panels of B in the third.
constexpr int64_t kDepth = 192, kBlockRows = 168, kBlockColumns = 3072;

int64_t groups_of(int64_t n, int64_t size) { return (n + size - 1) / size; }

struct Product {
  int64_t m, n, k;
  double alpha;
  MatrixView a, b;
  double* c;
  int64_t ldc;
  DoubleTile tile;

  const double* a_at(int64_t row, int64_t p) const {
    return static_cast<const double*>(a.data) + row * a.row_stride + p * a.column_stride;
  }
  const double* b_at(int64_t p, int64_t column) const {
    return static_cast<const double*>(b.data) + p * b.row_stride + column * b.column_stride;
  }

  // Rows [row, row + rows) by the panels [first, last) of B, of which `panels` holds all from `column` on.
  void block(int64_t row, int64_t rows, int64_t column, int64_t first, int64_t last, int64_t depth_from,
             int64_t depth, const double* panels, double beta, double* packed) const {
    const int64_t groups = groups_of(rows, tile.rows);
    for (int64_t g = 0; g < groups; ++g)
      pack_panel(sizeof(double), {a_at(row + g * tile.rows, depth_from), a.column_stride, a.row_stride},
                 depth, std::min(tile.rows, rows - g * tile.rows), tile.rows, packed + g * tile.rows * depth);
    alignas(64) double part[DoubleTile::kMost];
    for (int64_t panel = first; panel < last; ++panel) {
      const int64_t j = column + panel * tile.columns, columns = std::min(tile.columns, n - j);
      const double* b_panel = panels + panel * tile.columns * depth;
      for (int64_t g = 0; g < groups; ++g) {
        const int64_t i = row + g * tile.rows, height = std::min(tile.rows, row + rows - i);
        const double* a_panel = packed + g * tile.rows * depth;
        double* to = c + i * ldc + j;
        if (height == tile.rows && columns == tile.columns) {
          tile.run(a_panel, b_panel, depth, alpha, beta, to, ldc);
          continue;
        }
        tile.run(a_panel, b_panel, depth, alpha, 0, part, tile.columns);
        for (int64_t r = 0; r < height; ++r)
          for (int64_t x = 0; x < columns; ++x)
            to[r * ldc + x] = part[r * tile.columns + x] + (beta != 0 ? beta * to[r * ldc + x] : 0);
      }
    }
  }
};

}  // namespace

void double_gemm(int64_t m, int64_t n, int64_t k, double alpha, MatrixView a, MatrixView b, double beta,
                 double* c, int64_t ldc) {
  const Product product{m, n, k, alpha, a, b, c, ldc, RL_ISA_VARIANT(double_tile())};
  const DoubleTile& tile = product.tile;
  const int64_t block_rows = kBlockRows / tile.rows * tile.rows, row_blocks = groups_of(m, block_rows);
  const auto bytes = [](int64_t count) { return count * static_cast<int64_t>(sizeof(double)); };
  const int64_t widest = groups_of(std::min(n, kBlockColumns), tile.columns) * tile.columns;
  const Buffer shared(bytes(widest * std::min(k, kDepth)));
  auto* panels = shared.as<double>();
  for (int64_t column = 0; column < n; column += kBlockColumns) {
    const int64_t width = std::min(kBlockColumns, n - column), count = groups_of(width, tile.columns);
    // Few blocks of rows are cut by columns as well, so that each thread has work.
    const int64_t cuts = std::clamp<int64_t>(groups_of(2 * get_num_threads(), row_blocks), 1,
                                             groups_of(count, 4)),
                  share = get_num_threads() == 1 ? count : groups_of(count, cuts),
                  parts = groups_of(count, share);
    for (int64_t from = 0; from < k; from += kDepth) {
      const int64_t depth = std::min(kDepth, k - from);
      parallel_for(0, count, std::max<int64_t>(1, kGrainSize / (tile.columns * depth)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t p = begin; p < end; ++p)
                       pack_panel(
                           sizeof(double),
                           {product.b_at(from, column + p * tile.columns), b.row_stride, b.column_stride},
                           depth, std::min(tile.columns, width - p * tile.columns), tile.columns,
                           panels + p * tile.columns * depth);
                   });
      parallel_for(0, row_blocks * parts, 1, [&](int64_t begin, int64_t end) {
        const Buffer own(bytes(block_rows * depth));
        for (int64_t i = begin; i < end; ++i) {
          const int64_t row = i / parts * block_rows, first = i % parts * share;
          product.block(row, std::min(block_rows, m - row), column, first, std::min(count, first + share),
                        from, depth, panels, from ? 1 : beta, own.as<double>());
        }
      });
    }
  }
}

}  // namespace rushlight::cpu
