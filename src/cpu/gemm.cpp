#include "cpu/gemm.h"

#include <cstring>
#include <limits>
#include <vector>

#include "core/host/processor.h"
#include "core/parallel.h"
#include "cpu/blas.h"
#include "cpu/buffer.h"
#include "cpu/chain_product.h"
#include "cpu/double_gemm.h"
#include "cpu/gemm_batch.h"
#include "cpu/gemm_onednn.h"
#include "cpu/has_vectors.h"
#include "cpu/integer_gemm.h"
#include "cpu/loops.h"
#include "cpu/matrix_vector.h"
#include "cpu/packed_product.h"
#include "cpu/small_products.h"

namespace rushlight::cpu {
namespace {

constexpr int64_t kSerialWork = 64 * 64 * 64;  // multiplications below which no thread is worth waking

template <class T>
const T* at(const MatrixView& m, int64_t row, int64_t column) {
  return static_cast<const T*>(m.data) + row * m.row_stride + column * m.column_stride;
}

GemmShape one_product(DType dtype, int64_t m, int64_t n, int64_t k, MatrixView a, MatrixView b, int64_t ldc) {
  return {.dtype = dtype, .m = m, .n = n, .k = k, .a = a, .b = b, .ldc = ldc};
}

// Own loops, row by row: the inner loop runs along B's rows where it can, so that it vectorises.
template <class T>
void gemm_loops(int64_t m, int64_t n, int64_t k, const Scalar& alpha, MatrixView a, MatrixView b,
                const Scalar& beta, T* c, int64_t ldc) {
  using C = std::conditional_t<is_reduced_v<T>, float, T>;
  const C scale = alpha.to<C>(), keep = beta.to<C>();
  const bool discard = keep == C(0);
  parallel_for(
      0, m, std::max<int64_t>(1, kSerialWork / std::max<int64_t>(1, n * k)), [&](int64_t begin, int64_t end) {
        std::vector<C> row(static_cast<size_t>(n));
        for (int64_t i = begin; i < end; ++i) {
          std::fill(row.begin(), row.end(), C(0));
          for (int64_t p = 0; p < k; ++p) {
            const C factor = static_cast<C>(*at<T>(a, i, p));
            const T* source = at<T>(b, p, 0);
            if (b.column_stride == 1)
              for (int64_t j = 0; j < n; ++j)
                row[j] = static_cast<C>(row[j] + factor * static_cast<C>(source[j]));
            else
              for (int64_t j = 0; j < n; ++j)
                row[j] = static_cast<C>(row[j] + factor * static_cast<C>(source[j * b.column_stride]));
          }
          T* out = c + i * ldc;
          for (int64_t j = 0; j < n; ++j)
            out[j] = static_cast<T>(discard ? static_cast<C>(scale * row[j])
                                            : static_cast<C>(scale * row[j] + keep * static_cast<C>(out[j])));
        }
      });
}

#ifdef RUSHLIGHT_WITH_OPENBLAS
// OpenBLAS would bring threads of its own beside the pool: it gets one, and gemm_blas cuts the products.
[[maybe_unused]] const bool one_thread = (scipy_openblas_set_num_threads(1), true);
#endif

#ifdef RL_WITH_BLAS
struct BlasOperand {
  CBLAS_TRANSPOSE transpose;
  int64_t leading;
};
BlasOperand operand(const MatrixView& m, int64_t rows, int64_t columns) {
  if (m.column_stride == 1 || columns == 1)
    if (m.row_stride >= std::max<int64_t>(1, columns) || rows == 1)
      return {CblasNoTrans, std::max({m.row_stride, columns, int64_t{1}})};
  return {CblasTrans, std::max({m.column_stride, rows, int64_t{1}})};
}

// A product that only one thread should see gets an arena of one slot, since MKL on some processors starts a
// thread for every product it is handed outside of one; a large one enters the pool for the library's
// threads.
template <class F>
void with_threads(int64_t work, F&& f) {
  if (work <= kSerialWork || in_parallel_region())
    run_alone(f);
  else
    run_in_pool(f);
}

// y = alpha * A x + beta * y for complex A [rows, columns]; matrix_vector.h has the others.
template <class T>
void gemv_blas(int64_t rows, int64_t columns, const Scalar& alpha, MatrixView a, const T* x, int64_t step,
               const Scalar& beta, T* y) {
  const auto [order, leading] = operand(a, rows, columns);
  const bool plain = order == CblasNoTrans;
  blas_gemv(order, plain ? rows : columns, plain ? columns : rows, alpha.to<T>(), at<T>(a, 0, 0), leading, x,
            std::max<int64_t>(step, 1), beta.to<T>(), y);
}

template <class T>
void gemm_blas(int64_t m, int64_t n, int64_t k, const Scalar& alpha, MatrixView a, MatrixView b,
               const Scalar& beta, T* c, int64_t ldc) {
  if constexpr (is_complex_v<T>) {
    if (n == 1 && ldc == 1) return gemv_blas<T>(m, k, alpha, a, at<T>(b, 0, 0), b.row_stride, beta, c);
    if (m == 1)
      return gemv_blas<T>(n, k, alpha, {b.data, b.column_stride, b.row_stride}, at<T>(a, 0, 0),
                          a.column_stride, beta, c);
  }
  const auto [ta, lda] = operand(a, m, k);
  const auto [tb, ldb] = operand(b, k, n);
  auto rectangle = [&, ta = ta, lda = lda, tb = tb, ldb = ldb](int64_t row, int64_t rows, int64_t column,
                                                               int64_t columns) {
    blas_gemm(ta, tb, rows, columns, k, alpha.to<T>(), at<T>(a, row, 0), lda, at<T>(b, 0, column), ldb,
              beta.to<T>(), c + row * ldc + column, ldc);
  };
#ifdef RUSHLIGHT_WITH_OPENBLAS
  const bool by_rows = m >= n;
  const int64_t line = std::max<int64_t>(1, (by_rows ? n : m) * k);
  parallel_for(0, by_rows ? m : n, std::max<int64_t>(kSerialWork / line, 16),
               [&](int64_t begin, int64_t end) {
                 if (by_rows)
                   rectangle(begin, end - begin, 0, n);
                 else
                   rectangle(0, m, begin, end - begin);
               });
#else
  rectangle(0, m, 0, n);
#endif
}

template <class T>
constexpr bool has_blas = std::is_same_v<T, float> || std::is_same_v<T, double> || is_complex_v<T>;
#else
template <class T>
constexpr bool has_blas = false;
#endif

// Converts [rows, columns], both dense, or one of them with a leading dimension.
void convert_rows(DType to_type, void* to, int64_t to_step, DType from_type, const void* from,
                  int64_t from_step, int64_t rows, int64_t columns) {
  const auto to_item = static_cast<int64_t>(element_size(to_type)),
             from_item = static_cast<int64_t>(element_size(from_type));
  const CastLoop cast = cast_loop(to_type, from_type);
  parallel_for(0, rows, std::max<int64_t>(1, kGrainSize / std::max<int64_t>(1, columns)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i)
                   cast(static_cast<char*>(to) + i * to_step * to_item, to_item,
                        static_cast<const char*>(from) + i * from_step * from_item, from_item, columns);
               });
}

// An operand as dense float, oriented as it is in memory.
class WideMatrix {
 public:
  WideMatrix(DType dtype, const MatrixView& m, int64_t rows, int64_t columns)
      : by_rows_(m.column_stride == 1 || columns == 1),
        lines_(by_rows_ ? rows : columns),
        length_(by_rows_ ? columns : rows),
        data_(rows * columns * static_cast<int64_t>(sizeof(float))) {
    const int64_t step = by_rows_ ? m.row_stride : m.column_stride;
    convert_rows(DType::Float32, data_.as<float>(), length_, dtype, m.data, step, lines_, length_);
  }
  MatrixView view() const {
    return by_rows_ ? MatrixView{data_.as<float>(), length_, 1} : MatrixView{data_.as<float>(), 1, length_};
  }

 private:
  bool by_rows_;
  int64_t lines_, length_;
  Buffer data_;
};

// A vector as a factor: the matrix is read where it lies. False where it lies otherwise.
template <class T>
bool vector_product(int64_t m, int64_t n, int64_t k, const Scalar& alpha, const MatrixView& a,
                    const MatrixView& b, const Scalar& beta, T* c, int64_t ldc) {
  if (m != 1 && n != 1) return false;
  using C = compute_type<T>;
  const bool is_row = m == 1;
  const int64_t outputs = is_row ? n : m, to_step = is_row ? 1 : ldc;
  const MatrixView matrix = is_row ? MatrixView{b.data, b.column_stride, b.row_stride} : a;
  const int64_t x_step = is_row ? a.column_stride : b.row_stride;
  const void* x = is_row ? a.data : b.data;
  const auto scale = alpha.to<C>(), keep = beta.to<C>();
  const auto item = static_cast<int64_t>(sizeof(T)), wide = static_cast<int64_t>(sizeof(C));
  const bool direct_x = std::is_same_v<T, C> && (x_step == 1 || k == 1),
             direct_y = std::is_same_v<T, C> && to_step == 1 && scale == 1 && keep == 0;
  const Buffer memory(((direct_x ? 0 : k) + (direct_y ? 0 : outputs)) * wide);
  auto* widened = memory.as<C>();
  if (!direct_x)
    cast_loop(dtype_of<C>, dtype_of<T>)(reinterpret_cast<char*>(widened), wide, static_cast<const char*>(x),
                                        x_step * item, k);
  C* y = direct_y ? reinterpret_cast<C*>(c) : widened + (direct_x ? 0 : k);
  if (!matrix_vector(dtype_of<T>, outputs, k, matrix, direct_x ? x : widened, y)) return false;
  for (int64_t i = 0; !direct_y && i < outputs; ++i) {
    T& to = c[i * to_step];
    to = T(keep == 0 ? scale * y[i] : scale * y[i] + keep * static_cast<C>(to));
  }
  return true;
}

// Few rows or columns in a half type, one after another: widening the matrix for all takes longer.
template <class T>
bool few_vector_products(int64_t m, int64_t n, int64_t k, const Scalar& alpha, const MatrixView& a,
                         const MatrixView& b, const Scalar& beta, T* c, int64_t ldc) {
  constexpr int64_t kFew = 3;
  if (std::min(m, n) > kFew) return false;
  const bool by_rows = m <= n;
  for (int64_t i = 0; i < (by_rows ? m : n); ++i)
    if (!(by_rows ? vector_product<T>(1, n, k, alpha, {at<T>(a, i, 0), a.row_stride, a.column_stride}, b,
                                      beta, c + i * ldc, ldc)
                  : vector_product<T>(m, 1, k, alpha, a, {at<T>(b, 0, i), b.row_stride, b.column_stride},
                                      beta, c + i, ldc)))
      return false;  // of the first: whether it can does not depend on which
  return true;
}

// Half types: operands widened to float, one product in float, the result narrowed; by blocks of rows, whose
// floats stay in the second cache.
template <class T>
void gemm_reduced(int64_t m, int64_t n, int64_t k, const Scalar& alpha, MatrixView a, MatrixView b,
                  const Scalar& beta, T* c, int64_t ldc) {
  constexpr int64_t kBlockBytes = 1 << 20, kLeastRows = 512;
  const int64_t floats = (k + n) * static_cast<int64_t>(sizeof(float));
  const int64_t block = std::min(m, std::max(kLeastRows, kBlockBytes / floats));
  const WideMatrix wide_b(dtype_of<T>, b, k, n);
  const Buffer product(block * n * static_cast<int64_t>(sizeof(float)));
  auto* wide_c = product.as<float>();
  for (int64_t row = 0; row < m; row += block) {
    const int64_t rows = std::min(block, m - row);
    const WideMatrix wide_a(dtype_of<T>, {at<T>(a, row, 0), a.row_stride, a.column_stride}, rows, k);
    T* out = c + row * ldc;
    if (beta.to<float>() != 0) convert_rows(DType::Float32, wide_c, n, dtype_of<T>, out, ldc, rows, n);
    gemm(DType::Float32, rows, n, k, alpha, wide_a.view(), wide_b.view(), beta, wide_c, n);
    convert_rows(dtype_of<T>, out, ldc, DType::Float32, wide_c, n, rows, n);
  }
}

// Whether operands in panels repay their packing.
bool packs(int64_t m, int64_t n, int64_t k) {
  return std::min(m, n) >= 16 && k >= 16 && m * n * k > kSerialWork / 4;
}

// Whether a library multiplies doubles faster than double_gemm, whose sums are the same on any threads: MKL
// does on Intel's processors.
bool blas_multiplies_doubles() {
#ifdef RUSHLIGHT_WITH_MKL
  return host::is_intel() && !same_on_any_threads();
#else
  return false;
#endif
}

#ifndef RL_WITH_BLAS
// Without a library: b goes into panels for this call.
void gemm_by_panels(int64_t m, int64_t n, int64_t k, float alpha, MatrixView a, MatrixView b, float beta,
                    float* c, int64_t ldc) {
  constexpr auto kBytes = static_cast<int64_t>(sizeof(float));
  constexpr float kNone = std::numeric_limits<float>::infinity();
  const bool whole = alpha == 1 && beta == 0 && ldc == n;
  const Buffer panels(panel_elements(k, n) * kBytes), sums(whole ? 0 : m * n * kBytes);
  const Buffer rows(a.column_stride == 1 ? 0 : m * k * kBytes);
  pack_panels(DType::Float32, k, n, b, panels.as<void>());
  if (a.column_stride != 1) {
    for (int64_t p = 0; p < k; ++p)
      for (int64_t i = 0; i < m; ++i) rows.as<float>()[i * k + p] = *at<float>(a, i, p);
    a = {rows.as<float>(), k, 1};
  }
  float* to = whole ? c : sums.as<float>();
  packed_product(
      {DType::Float32, m, n, k, a.data, a.row_stride, panels.as<void>(), nullptr, -kNone, kNone, to});
  if (whole) return;
  for (int64_t i = 0; i < m; ++i, c += ldc, to += n)
    for (int64_t j = 0; j < n; ++j) c[j] = beta == 0 ? alpha * to[j] : alpha * to[j] + beta * c[j];
}
#endif

template <class T>
void gemm_typed(int64_t m, int64_t n, int64_t k, const Scalar& alpha, MatrixView a, MatrixView b,
                const Scalar& beta, T* c, int64_t ldc) {
  if constexpr (is_floating_v<T>)
    if (k > 0 && !batch_invariant() && vector_product<T>(m, n, k, alpha, a, b, beta, c, ldc)) return;
  if constexpr (is_reduced_v<T>)
    if (k > 0 && !batch_invariant() && few_vector_products<T>(m, n, k, alpha, a, b, beta, c, ldc)) return;
  if constexpr (std::is_same_v<T, double>)
    if (packs(m, n, k) && !blas_multiplies_doubles())
      return double_gemm(m, n, k, alpha.to<double>(), a, b, beta.to<double>(), c, ldc);
  if constexpr (std::is_same_v<T, float>)
    if (same_on_any_threads())
      return chain_products(one_product(DType::Float32, m, n, k, a, b, ldc), alpha, beta, nullptr, c);
#ifdef RL_WITH_BLAS
  if constexpr (has_blas<T>) {
    const bool fits = std::max({m, n, k, ldc, a.row_stride, a.column_stride, b.row_stride,
                                b.column_stride}) <= std::numeric_limits<int>::max();
    if (k > 0 && fits && !same_on_any_threads())
      return with_threads(m * n * k, [&] { gemm_blas<T>(m, n, k, alpha, a, b, beta, c, ldc); });
  }
#endif
#ifndef RL_WITH_BLAS
  if constexpr (std::is_same_v<T, float>)
    if (has_vectors() && packs(m, n, k))
      return gemm_by_panels(m, n, k, alpha.to<float>(), a, b, beta.to<float>(), c, ldc);
#endif
  if constexpr (std::is_integral_v<T>) {
    const bool vector =
        (n == 1 && a.column_stride == 1) || (m == 1 && (b.row_stride == 1 || b.column_stride == 1));
    if (k > 0 && (vector || (m >= 4 && n >= 8)))
      return integer_gemm(dtype_of<T>, m, n, k, alpha.to<int64_t>(), a, b, beta.to<int64_t>(), c, ldc);
  }
  if constexpr (is_reduced_v<T>)
    gemm_reduced<T>(m, n, k, alpha, a, b, beta, c, ldc);
  else
    gemm_loops<T>(m, n, k, alpha, a, b, beta, c, ldc);
}

using GemmTypes = NumberTypes;

// gemm_batch, in the name of `caller`.
void products(const char* caller, const GemmShape& s, const Scalar& alpha, const Scalar& beta, void* c) {
  if (s.batch == 0 || s.m == 0 || s.n == 0) return;
  if (multiplies_in_chains(s.dtype)) return chain_products(s, alpha, beta, nullptr, c);
  if (!same_on_any_threads() && onednn_multiplies(s))
    return onednn_gemm(s, alpha.to<float>(), beta.to<float>(), c);
  SmallProducts small{s, 1, 0, c};
  const bool is_vector_product = s.batch == 1 && std::min(s.m, s.n) == 1;
  constexpr int64_t kDoubleCall = 48 * 48 * 48;  // multiplications of doubles that pay for calling a library
  const bool calls = s.dtype == DType::Float64 && s.m * s.n * s.k >= kDoubleCall && blas_multiplies_doubles();
  if (small.are_small() && !is_vector_product && !calls) {
    small.alpha = alpha.to<double>(), small.beta = beta.to<double>();
    return for_products(s, kSerialWork,
                        [&](int64_t begin, int64_t end) { small_products(small, begin, end); });
  }
  visit_dtype(GemmTypes{}, s.dtype, caller, [&](auto tag) {
    using T = decltype(tag);
    each_product(s, kSerialWork, [&](int64_t i) {
      gemm_typed<T>(s.m, s.n, s.k, alpha, step_to<T>(s.a, i * s.a_step), step_to<T>(s.b, i * s.b_step), beta,
                    static_cast<T*>(c) + i * s.c_step, s.ldc);
    });
  });
}

}  // namespace

bool gemm_readable(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride) {
  const bool by_rows =
      (column_stride == 1 || columns == 1) && (row_stride >= std::max<int64_t>(1, columns) || rows == 1);
  const bool by_columns =
      (row_stride == 1 || rows == 1) && (column_stride >= std::max<int64_t>(1, rows) || columns == 1);
  return by_rows || by_columns;
}

void gemm(DType dtype, int64_t m, int64_t n, int64_t k, const Scalar& alpha, MatrixView a, MatrixView b,
          const Scalar& beta, void* c, int64_t ldc) {
  if (beta == Scalar(0) && alpha == Scalar(1) && multiply_by_constant(dtype, m, n, k, a, b, nullptr, c, ldc))
    return;
  products("addmm_impl_cpu_", one_product(dtype, m, n, k, a, b, ldc), alpha, beta, c);
}

void gemm_batch(DType dtype, int64_t batch, int64_t m, int64_t n, int64_t k, const Scalar& alpha,
                MatrixView a, int64_t a_step, MatrixView b, int64_t b_step, const Scalar& beta, void* c,
                int64_t ldc, int64_t c_step) {
  products("baddbmm_cpu", {dtype, batch, m, n, k, a, b, a_step, b_step, ldc, c_step}, alpha, beta, c);
}

void gemm_bias(DType dtype, int64_t m, int64_t n, int64_t k, MatrixView a, MatrixView b, const void* bias,
               void* c, int64_t ldc) {
  if (!bias) return gemm(dtype, m, n, k, 1, a, b, 0, c, ldc);
  if (m == 0 || n == 0 || multiply_by_constant(dtype, m, n, k, a, b, bias, c, ldc)) return;
  const GemmShape shape = one_product(dtype, m, n, k, a, b, ldc);
  if (multiplies_in_chains(dtype)) return chain_products(shape, 1, 0, bias, c);
  if (n > 1 && !same_on_any_threads() && onednn_multiplies(shape)) return onednn_gemm(shape, 1, 0, c, bias);
  const auto item = static_cast<int64_t>(element_size(dtype));
  parallel_for(0, m, std::max<int64_t>(1, kGrainSize / n), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      std::memcpy(static_cast<char*>(c) + i * ldc * item, bias, static_cast<size_t>(n * item));
  });
  gemm(dtype, m, n, k, 1, a, b, 1, c, ldc);
}

namespace {

// Halves without gaps by blocks, which stay in the first cache once they are widened. False where there is
// but one, or no such product.
template <class T>
bool dot_by_blocks(int64_t n, const T* x, const T* y, T* result) {
  constexpr int64_t kBlock = 2048;
  if (n <= kBlock) return false;
  float widened[kBlock], sum = 0;
  for (int64_t first = 0; first < n; first += kBlock) {
    const int64_t count = std::min(kBlock, n - first);
    cast_loop(DType::Float32, dtype_of<T>)(reinterpret_cast<char*>(widened), sizeof(float),
                                           reinterpret_cast<const char*>(x + first), sizeof(T), count);
    float part;
    if (!matrix_vector(dtype_of<T>, 1, count, {y + first, count, 1}, widened, &part)) return false;
    sum += part;
  }
  *result = T(sum);
  return true;
}

}  // namespace

void dot(DType dtype, int64_t n, const void* x, int64_t x_stride, const void* y, int64_t y_stride,
         bool conjugate, void* result) {
  visit_dtype(NumberTypes{}, dtype, "dot", [&](auto tag) {
    using T = decltype(tag);
    using C = std::conditional_t<is_reduced_v<T>, float, T>;
    const auto *p = static_cast<const T*>(x), *q = static_cast<const T*>(y);
    if constexpr (is_floating_v<T>) {
      const bool plain = x_stride == 1 && y_stride == 1;  // halves are widened as they lie
      if (batch_invariant() && (plain || multiplies_in_chains(dtype)))
        return gemm(dtype, 1, 1, n, 1, {x, n * x_stride, x_stride}, {y, y_stride, 1}, 0, result, 1);
      if constexpr (is_reduced_v<T>)
        if (plain && dot_by_blocks(n, p, q, static_cast<T*>(result))) return;
      if (n > 0 &&
          vector_product<T>(1, 1, n, 1, {p, 0, x_stride}, {q, y_stride, 0}, 0, static_cast<T*>(result), 1))
        return;
    }
    if constexpr (is_complex_v<T> && !is_reduced_v<T>)
      if (x_stride == 1 && y_stride == 1) return complex_dot(dtype, n, x, y, conjugate, result);
    if constexpr (std::is_integral_v<T>) {
      if (x_stride == 1 && y_stride == 1) {
        *static_cast<T*>(result) = static_cast<T>(integer_dot(sizeof(T))(p, q, n));
        return;
      }
    }
    C sum(0);
    for (int64_t i = 0; i < n; ++i) {
      C left = static_cast<C>(p[i * x_stride]);
      if constexpr (is_complex_v<T>) left = conjugate ? std::conj(left) : left;
      sum = static_cast<C>(sum + left * static_cast<C>(q[i * y_stride]));
    }
    (void)conjugate;
    *static_cast<T*>(result) = static_cast<T>(sum);
  });
}

}  // namespace rushlight::cpu
