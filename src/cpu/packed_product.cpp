#include "cpu/packed_product.h"

#include <algorithm>
#include <cmath>

#include "core/constant_memory.h"
#include "core/host/processor.h"
#include "core/parallel.h"
#include "cpu/blas.h"
#include "cpu/buffer.h"
#include "cpu/has_vectors.h"
#include "cpu/isa_variant.h"
#include "cpu/small_products.h"

namespace rushlight::cpu {

RL_DECLARE_VARIANTS(PackedKernels packed_kernels(); PackedKernels narrow_packed_kernels();)

namespace {

constexpr int64_t kSerialWork = 1 << 16;  // multiplications

const PackedKernels& kernels() {
  static const PackedKernels chosen = RL_ISA_VARIANT(packed_kernels());
  return chosen;
}

// Of panels of bfloat16 beside float32. Apart, so that the small runtime, where nobody asks for them, has
// none.
const PackedKernels& narrow_kernels() {
  static const PackedKernels chosen = RL_ISA_VARIANT(narrow_packed_kernels());
  return chosen;
}

int64_t panels_of(const PackedKernels& kernels, DType dtype, int64_t n) {
  const int64_t width = kernels.width(dtype);
  return (n + width - 1) / width;
}

void pack_part(const PackedKernels& kernels, DType dtype, int64_t k, int64_t n, const MatrixView& matrix,
               void* panels, int64_t first, int64_t last) {
  const int64_t each = std::max<int64_t>(1, k * kernels.width(dtype));
  parallel_for(first, last, std::max<int64_t>(1, kSerialWork / each),
               [&](int64_t begin, int64_t end) { kernels.pack(dtype, k, n, matrix, panels, begin, end); });
}
void pack_by(const PackedKernels& kernels, DType dtype, int64_t k, int64_t n, const MatrixView& matrix,
             void* panels) {
  pack_part(kernels, dtype, k, n, matrix, panels, 0, panels_of(kernels, dtype, n));
}

// The same of a constant. Columns of which each lies in one piece leave memory when they are packed.
void pack_constant(const PackedKernels& kernels, DType dtype, int64_t k, int64_t n, const MatrixView& matrix,
                   void* panels) {
  constexpr int64_t kPartBytes = 16 << 20;
  const int64_t width = kernels.width(dtype), column = k * static_cast<int64_t>(element_size(dtype));
  const bool apart = matrix.row_stride == 1 && matrix.column_stride == k;
  const int64_t count = panels_of(kernels, dtype, n),
                step = apart ? std::max<int64_t>(1, kPartBytes / (width * column)) : count;
  for (int64_t first = 0; first < count; first += step) {
    const int64_t last = std::min(first + step, count), begin = first * width,
                  end = std::min(last * width, n);
    pack_part(kernels, dtype, k, n, matrix, panels, first, last);
    if (apart && step < count)
      ConstantMemory::have_read(matrix.data, static_cast<size_t>(begin * column),
                                static_cast<size_t>((end - begin) * column));
  }
}

// Threads share panels, or rows where there are more of these. A piece reads all of what is not shared: there
// are two for each thread.
void multiply_by(const PackedKernels& kernels, const PackedProduct& p) {
  if (p.m == 0 || p.n == 0) return;
  const int64_t panels = panels_of(kernels, p.dtype, p.n), row = std::max<int64_t>(1, p.n * p.k);
  const int64_t pieces = 2 * get_num_threads();
  constexpr int64_t kFewRows = 24, kFewPanels = 2;
  if (panels < kFewPanels * pieces && (p.m >= kFewRows * get_num_threads() || p.m >= panels)) {
    const int64_t grain = std::max({kFewRows, kSerialWork / row, (p.m + pieces - 1) / pieces});
    return parallel_for(0, p.m, grain,
                        [&](int64_t begin, int64_t end) { kernels.multiply(p, begin, end, 0, panels); });
  }
  const int64_t least = kSerialWork / std::max<int64_t>(1, row / panels * p.m);
  parallel_for(0, panels, std::max({int64_t{1}, least, (panels + pieces - 1) / pieces}),
               [&](int64_t begin, int64_t end) { kernels.multiply(p, 0, p.m, begin, end); });
}

// The panels of a constant matrix.
struct PackedMatrix final : ConstantMemory::Made {
  PackedMatrix(const PackedKernels& kernels, DType dtype, int64_t k, int64_t n, const MatrixView& matrix)
      : dtype(dtype),
        k(k),
        n(n),
        row_stride(matrix.row_stride),
        bytes(panel_elements(k + k % 2, n) * static_cast<int64_t>(element_size(dtype))),
        data(bytes) {
    pack_constant(kernels, dtype, k, n, matrix, data.as<void>());
  }
  size_t nbytes() const override { return static_cast<size_t>(bytes); }
  bool is(DType type, int64_t rows, int64_t columns, const MatrixView& matrix) const {
    return dtype == type && k == rows && n == columns && row_stride == matrix.row_stride;
  }
  const DType dtype;
  const int64_t k, n, row_stride, bytes;
  const Buffer data;
};

// They are kept where the matrix is constant.
std::shared_ptr<const PackedMatrix> panels_beside(const PackedKernels& kernels, DType dtype, int64_t k,
                                                  int64_t n, const MatrixView& b) {
  const bool constant = ConstantMemory::contains(b.data);
  const auto same = [&](const PackedMatrix& made) { return made.is(dtype, k, n, b); };
  auto packed = constant ? ConstantMemory::find<PackedMatrix>(b.data, same) : nullptr;
  if (packed) return packed;
  packed = std::make_shared<const PackedMatrix>(kernels, dtype, k, n, b);
  if (constant) ConstantMemory::keep(b.data, packed);
  return packed;
}

}  // namespace

void pack_panels(DType dtype, int64_t k, int64_t n, MatrixView matrix, void* panels) {
  pack_by(kernels(), dtype, k, n, matrix, panels);
}

int64_t most_packed_rows(int64_t k, int64_t n) {
  constexpr int64_t kOfSmall = 512;
  if (!has_vectors()) return 0;
  if (std::max(k, n) <= SmallProducts::kMost) return kOfSmall;
#ifdef RL_WITH_BLAS
  // MKL multiplies at the peak there, once it has packed the matrix: for each call.
  constexpr int64_t kOfLongRegisters = 512, kOfShort = 1024;
  if (host::is_intel()) return host::isa() == host::Isa::kAvx512 ? kOfLongRegisters : kOfShort;
#endif
#if defined(RL_WITH_BLAS) || defined(RUSHLIGHT_WITH_ONEDNN)
  constexpr int64_t kOfLarge = 64;
  if (host::isa() == host::Isa::kAvx512) return kOfLarge;
#endif
  return INT64_MAX;
}

void packed_product(const PackedProduct& p) { multiply_by(kernels(), p); }

bool multiply_by_constant(DType dtype, int64_t m, int64_t n, int64_t k, const MatrixView& a,
                          const MatrixView& b, const void* bias, void* c, int64_t ldc) {
  if (!ConstantMemory::contains(b.data) || dtype != DType::Float32 || m < 2 || n < 2 || k < 2 || ldc != n ||
      a.column_stride != 1 || m > most_packed_rows(k, n))
    return false;
  multiply_in_panels(dtype, m, n, k, a.data, a.row_stride, b, bias, c);
  return true;
}

void multiply_rows_apart(int64_t m, int64_t n, int64_t k, const void* a, int64_t a_row, DType b_dtype,
                         const MatrixView& b, const void* bias, void* c) {
  if (m == 0 || n == 0) return;
  const PackedKernels& own = b_dtype == DType::BFloat16 ? narrow_kernels() : kernels();
  const auto packed = panels_beside(own, b_dtype, k, n, b);
  const int64_t pairs = (k + 1) / 2;
  const Buffer rounded(own.round ? m * pairs * 2 * static_cast<int64_t>(sizeof(BFloat16)) : 0);
  if (own.round) {
    parallel_for(0, m, std::max<int64_t>(1, kSerialWork / std::max<int64_t>(1, k)),
                 [&, a](int64_t begin, int64_t end) {
                   own.round(static_cast<const float*>(a), a_row, k, rounded.as<BFloat16>(), begin, end);
                 });
    a = rounded.as<void>();
    a_row = k = pairs;
  }
  multiply_by(own, {.dtype = DType::Float32,
                    .m = m,
                    .n = n,
                    .k = k,
                    .a = a,
                    .a_row = a_row,
                    .panels = packed->data.as<void>(),
                    .bias = bias,
                    .low = -INFINITY,
                    .high = INFINITY,
                    .c = c});
}

void multiply_in_panels(DType dtype, int64_t m, int64_t n, int64_t k, const void* a, int64_t a_row,
                        const MatrixView& b, const void* bias, void* c) {
  const auto packed = panels_beside(kernels(), dtype, k, n, b);
  packed_product({.dtype = dtype,
                  .m = m,
                  .n = n,
                  .k = k,
                  .a = a,
                  .a_row = a_row,
                  .panels = packed->data.as<void>(),
                  .bias = bias,
                  .low = -INFINITY,
                  .high = INFINITY,
                  .c = c});
}

}  // namespace rushlight::cpu
