#include "cpu/matrix_vector.h"

#include <algorithm>
#include <array>
#include <complex>
#include <vector>

#include "core/parallel.h"
#include "cpu/buffer.h"
#include "cpu/isa_variant.h"

namespace rushlight::cpu {

// Of `count` rows, or columns, that start `step` elements apart.
RL_DECLARE_VARIANTS(void row_dots(DType dtype, const void* rows, int64_t step, int64_t count, int64_t inner,
                                  const void* x, void* y);
                    void column_sums(DType dtype, const void* columns, int64_t step, int64_t count,
                                     int64_t inner, const void* x, void* y);
                    void complex_products(DType dtype, int64_t n, const void* x, const void* y,
                                          double* sums);)

namespace {

constexpr int64_t kColumns = 256;  // whole cache lines, and enough that each row of them is worth a visit
// Few outputs of long sums are cut along the sums too: by size alone, so that threads do not change results.
constexpr int64_t kManyUnits = 8, kPieceWork = 1 << 18;

template <class C>
void add_pieces(const char* partial, int64_t pieces, int64_t outputs, void* y) {
  const auto* from = reinterpret_cast<const C*>(partial);
  auto* to = static_cast<C*>(y);
  for (int64_t i = 0; i < outputs; ++i) {
    C sum = from[i];
    for (int64_t p = 1; p < pieces; ++p) sum += from[p * outputs + i];
    to[i] = sum;
  }
}

}  // namespace

bool matrix_vector(DType dtype, int64_t outputs, int64_t inner, const MatrixView& matrix, const void* x,
                   void* y) {
  const bool by_rows = matrix.column_stride == 1 || inner == 1;
  if (!by_rows && matrix.row_stride != 1 && outputs != 1) return false;
  const int64_t unit = by_rows ? 1 : kColumns, units = (outputs + unit - 1) / unit;
  const int64_t piece = units >= kManyUnits ? inner : std::min(inner, kPieceWork / outputs + 1);
  const int64_t pieces = (inner + piece - 1) / piece;
  const int64_t grain = std::max<int64_t>(1, kGrainSize / std::max<int64_t>(1, piece * unit));
  const auto item = static_cast<int64_t>(element_size(dtype)), wide = std::max<int64_t>(item, sizeof(float));
  const Buffer partial(pieces > 1 ? pieces * outputs * wide : 0);
  char* to = pieces > 1 ? partial.as<char>() : static_cast<char*>(y);
  parallel_for(0, units * pieces, grain, [&](int64_t begin, int64_t end) {
    while (begin < end) {  // the units of one piece
      const int64_t p = begin / units, last = std::min(end, (p + 1) * units) - p * units;
      const int64_t first = (begin - p * units) * unit, count = std::min(outputs, last * unit) - first;
      const int64_t from = p * piece, length = std::min(piece, inner - from);
      const char* block = static_cast<const char*>(matrix.data) +
                          (first * matrix.row_stride + from * matrix.column_stride) * item;
      const char* factors = static_cast<const char*>(x) + from * wide;
      char* results = to + (p * outputs + first) * wide;
      if (by_rows)
        RL_ISA_VARIANT(row_dots(dtype, block, matrix.row_stride, count, length, factors, results));
      else
        RL_ISA_VARIANT(column_sums(dtype, block, matrix.column_stride, count, length, factors, results));
      begin = p * units + last;
    }
  });
  if (pieces == 1) return true;
  if (dtype == DType::Float64)
    add_pieces<double>(to, pieces, outputs, y);
  else
    add_pieces<float>(to, pieces, outputs, y);
  return true;
}

void listed_dots(DType dtype, int64_t count, int64_t inner, const void* a, const int64_t* rows, const void* b,
                 const int64_t* columns, void* out) {
  const auto item = static_cast<int64_t>(element_size(dtype)), line = inner * item;
  parallel_for(0, count, std::max<int64_t>(1, kGrainSize / inner), [&](int64_t begin, int64_t end) {
    for (int64_t e = begin; e < end; ++e)
      RL_ISA_VARIANT(row_dots(dtype, static_cast<const char*>(b) + columns[e] * line, inner, 1, inner,
                              static_cast<const char*>(a) + rows[e] * line,
                              static_cast<char*>(out) + e * item));
  });
}

void complex_dot(DType dtype, int64_t n, const void* x, const void* y, bool conjugate, void* result) {
  using Sums = std::array<double, 4>;  // of the products of parts: real, imaginary, and two mixed ones
  constexpr int64_t kPiece = 1 << 14;
  const auto item = static_cast<int64_t>(element_size(dtype));
  const int64_t pieces = (n + kPiece - 1) / kPiece;
  std::vector<Sums> partial(static_cast<size_t>(pieces));
  parallel_for(0, pieces, 2, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t from = i * kPiece * item;
      RL_ISA_VARIANT(complex_products(dtype, std::min(kPiece, n - i * kPiece),
                                      static_cast<const char*>(x) + from, static_cast<const char*>(y) + from,
                                      partial[i].data()));
    }
  });
  Sums sums{};
  for (const Sums& piece : partial)
    for (size_t k = 0; k < sums.size(); ++k) sums[k] += piece[k];
  const double sign = conjugate ? -1 : 1;
  const std::complex<double> sum(sums[0] - sign * sums[1], sums[2] + sign * sums[3]);
  if (dtype == DType::Complex64)
    *static_cast<std::complex<float>*>(result) = std::complex<float>(sum);
  else
    *static_cast<std::complex<double>*>(result) = sum;
}

}  // namespace rushlight::cpu
