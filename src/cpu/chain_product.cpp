#include "cpu/chain_product.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "core/constant_memory.h"
#include "core/device_math.h"
#include "core/parallel.h"
#include "cpu/buffer.h"
#include "cpu/gemm_batch.h"
#include "cpu/isa_variant.h"
#include "cpu/packed_product.h"
#include "cpu/small_products.h"
#include "cpu/transpose.h"

namespace rushlight::cpu {

RL_DECLARE_VARIANTS(ChainKernels chain_kernels();)

namespace {

constexpr int64_t kSerialWork = 1 << 16;  // multiplications

const ChainKernels& kernels() {
  static const ChainKernels chosen = RL_ISA_VARIANT(chain_kernels());
  return chosen;
}

void multiply_few(const ChainRows& p) {
  const int64_t width = kernels().width(p.dtype), panels = (p.n + width - 1) / width;
  const int64_t each = std::max<int64_t>(1, p.m * p.k * width);
  parallel_for(0, panels, std::max<int64_t>(1, kSerialWork / each),
               [&](int64_t begin, int64_t end) { kernels().multiply(p, begin, end); });
}

// The matrix with its rows' elements adjacent, where they are not: a copy in `space`.
MatrixView with_rows(DType dtype, const MatrixView& a, int64_t rows, int64_t columns, const Buffer& space) {
  const auto item = static_cast<int64_t>(element_size(dtype));
  const auto turn = transpose_tile(static_cast<size_t>(item));
  constexpr int64_t kRows = 64;
  parallel_for(0, (rows + kRows - 1) / kRows, std::max<int64_t>(1, kGrainSize / (kRows * columns)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t block = begin; block < end; ++block) {
                   const int64_t row = block * kRows, count = std::min(kRows, rows - row);
                   char* to = space.as<char>() + row * columns * item;
                   const char* from = static_cast<const char*>(a.data) + row * a.row_stride * item;
                   if (a.row_stride == 1) {
                     turn(to, columns * item, from, a.column_stride * item, count, columns);
                     continue;
                   }
                   for (int64_t i = 0; i < count; ++i)
                     for (int64_t j = 0; j < columns; ++j)
                       std::memcpy(to + (i * columns + j) * item,
                                   from + (i * a.row_stride + j * a.column_stride) * item,
                                   static_cast<size_t>(item));
                 }
               });
  return {space.as<void>(), columns, 1};
}

// c = alpha * sums + beta * c + bias. Compiled without fused operations, so that all sizes round alike.
template <class T>
void combine(int64_t m, int64_t n, T alpha, const T* sums, T beta, const T* bias, T* c, int64_t ldc) {
  parallel_for(0, m, std::max<int64_t>(1, kGrainSize / n), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      for (int64_t j = 0; j < n; ++j) {
        T value = alpha * sums[i * n + j];
        if (beta != 0) value += beta * c[i * ldc + j];
        c[i * ldc + j] = bias ? value + bias[j] : value;
      }
  });
}

// Sums of products into c, whose rows are ldc apart, and the bias in the same pass where that can be had: the
// answer says so.
bool sums_of(DType dtype, int64_t m, int64_t n, int64_t k, const MatrixView& a, const MatrixView& b,
             const void* bias, void* c, int64_t ldc) {
  constexpr int64_t kFewColumns = 8;
  // A chain is the same with its factors swapped.
  if (n < kFewColumns && m > n) {
    const auto turned = [](const MatrixView& m) { return MatrixView{m.data, m.column_stride, m.row_stride}; };
    multiply_few({dtype, n, m, k, turned(b), turned(a), c, 1, ldc});
    return false;
  }
  const bool constant = ConstantMemory::contains(b.data) && ldc == n && k > 0;
  if (m <= ChainRows::kMost && !constant) {
    multiply_few({dtype, m, n, k, a, b, c, ldc, 1});
    return false;
  }
  const auto item = static_cast<int64_t>(element_size(dtype));
  const bool rows = a.column_stride == 1 || k == 1;
  const Buffer own_a(rows ? 0 : m * k * item), own_c(ldc == n ? 0 : m * n * item);
  const MatrixView factors = rows ? a : with_rows(dtype, a, m, k, own_a);
  multiply_in_panels(dtype, m, n, k, factors.data, factors.row_stride, b, bias,
                     ldc == n ? c : own_c.as<void>());
  for (int64_t i = 0; ldc != n && i < m; ++i)
    std::memcpy(static_cast<char*>(c) + i * ldc * item, own_c.as<char>() + i * n * item,
                static_cast<size_t>(n * item));
  return true;
}

template <class T>
void product(int64_t m, int64_t n, int64_t k, T alpha, const MatrixView& a, const MatrixView& b, T beta,
             const T* bias, T* c, int64_t ldc) {
  constexpr DType dtype = dtype_of<T>;
  if (alpha == 1 && beta == 0) {
    if (!sums_of(dtype, m, n, k, a, b, bias, c, ldc) && bias)
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) c[i * ldc + j] += bias[j];
    return;
  }
  const Buffer sums(m * n * static_cast<int64_t>(sizeof(T)));
  sums_of(dtype, m, n, k, a, b, nullptr, sums.as<void>(), n);
  combine<T>(m, n, alpha, sums.as<T>(), beta, bias, c, ldc);
}

}  // namespace

bool batch_invariant() { return device_math().batch_invariant.load(std::memory_order_relaxed); }

bool same_on_any_threads() {
  return batch_invariant() || device_math().deterministic_algorithms.load(std::memory_order_relaxed);
}

bool multiplies_in_chains(DType dtype) {
  return (dtype == DType::Float32 || dtype == DType::Float64) && batch_invariant();
}

void chain_products(const GemmShape& s, const Scalar& alpha, const Scalar& beta, const void* bias, void* c) {
  if (s.batch == 0 || s.m == 0 || s.n == 0) return;
  const SmallProducts small{s, 1, 0, c};
  if (small.are_small() && !bias && alpha == Scalar(1) && beta == Scalar(0))  // they are chains as well
    return for_products(s, kSerialWork,
                        [&](int64_t begin, int64_t end) { small_products(small, begin, end); });
  const auto each = [&](auto tag, int64_t i) {
    using T = decltype(tag);
    product<T>(s.m, s.n, s.k, alpha.to<T>(), step_to<T>(s.a, i * s.a_step), step_to<T>(s.b, i * s.b_step),
               beta.to<T>(), static_cast<const T*>(bias), static_cast<T*>(c) + i * s.c_step, s.ldc);
  };
  each_product(s, kSerialWork,
               [&](int64_t i) { s.dtype == DType::Float32 ? each(float{}, i) : each(double{}, i); });
}

}  // namespace rushlight::cpu
