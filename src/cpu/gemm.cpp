#include "cpu/gemm.h"

#include <limits>
#include <vector>

#include "core/parallel.h"
#include "cpu/blas.h"

namespace rushlight::cpu {
namespace {

constexpr int64_t kSerialWork = 64 * 64 * 64;  // multiplications below which no thread is worth waking

template <class T>
const T* at(const MatrixView& m, int64_t row, int64_t column) {
  return static_cast<const T*>(m.data) + row * m.row_stride + column * m.column_stride;
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

template <class T>
void gemm_blas(int64_t m, int64_t n, int64_t k, const Scalar& alpha, MatrixView a, MatrixView b,
               const Scalar& beta, T* c, int64_t ldc) {
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

// Half types: operands widened to float, one product in float, the result narrowed.
template <class T>
void gemm_reduced(int64_t m, int64_t n, int64_t k, const Scalar& alpha, MatrixView a, MatrixView b,
                  const Scalar& beta, T* c, int64_t ldc) {
  auto widen = [](const MatrixView& v, int64_t rows, int64_t columns) {
    std::vector<float> out(static_cast<size_t>(rows * columns));
    parallel_for(0, rows, std::max<int64_t>(1, kGrainSize / std::max<int64_t>(1, columns)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i)
                     for (int64_t j = 0; j < columns; ++j) out[i * columns + j] = *at<T>(v, i, j);
                 });
    return out;
  };
  const std::vector<float> fa = widen(a, m, k), fb = widen(b, k, n);
  std::vector<float> fc(static_cast<size_t>(m * n));
  gemm(DType::Float32, m, n, k, alpha, {fa.data(), k, 1}, {fb.data(), n, 1}, Scalar(0.0), fc.data(), n);
  const float keep = beta.to<float>();
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      T& out = c[i * ldc + j];
      out = keep == 0 ? fc[i * n + j] : fc[i * n + j] + keep * static_cast<float>(out);
    }
}

template <class T>
void gemm_typed(int64_t m, int64_t n, int64_t k, const Scalar& alpha, MatrixView a, MatrixView b,
                const Scalar& beta, T* c, int64_t ldc) {
#ifdef RL_WITH_BLAS
  if constexpr (has_blas<T>) {
    const bool fits = std::max({m, n, k, ldc, a.row_stride, a.column_stride, b.row_stride,
                                b.column_stride}) <= std::numeric_limits<int>::max();
    if (k > 0 && fits) return gemm_blas<T>(m, n, k, alpha, a, b, beta, c, ldc);
  }
#endif
  if constexpr (is_reduced_v<T>)
    gemm_reduced<T>(m, n, k, alpha, a, b, beta, c, ldc);
  else
    gemm_loops<T>(m, n, k, alpha, a, b, beta, c, ldc);
}

using GemmTypes = NumberTypes;

// A product that only one thread should see runs on the caller; a large one enters the pool for the library's
// threads.
template <class F>
void with_threads(int64_t work, F&& f) {
  if (work <= kSerialWork || in_parallel_region())
    f();
  else
    run_in_pool(f);
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
  if (m == 0 || n == 0) return;
  visit_dtype(GemmTypes{}, dtype, "addmm_impl_cpu_", [&](auto tag) {
    using T = decltype(tag);
    auto run = [&] { gemm_typed<T>(m, n, k, alpha, a, b, beta, static_cast<T*>(c), ldc); };
    if constexpr (has_blas<T>)
      with_threads(m * n * k, run);
    else
      run();
  });
}

void gemm_batch(DType dtype, int64_t batch, int64_t m, int64_t n, int64_t k, const Scalar& alpha,
                MatrixView a, int64_t a_step, MatrixView b, int64_t b_step, const Scalar& beta, void* c,
                int64_t ldc, int64_t c_step) {
  if (batch == 0 || m == 0 || n == 0) return;
  visit_dtype(GemmTypes{}, dtype, "baddbmm_cpu", [&](auto tag) {
    using T = decltype(tag);
    auto one = [&](int64_t i) {
      gemm_typed<T>(m, n, k, alpha,
                    {static_cast<const T*>(a.data) + i * a_step, a.row_stride, a.column_stride},
                    {static_cast<const T*>(b.data) + i * b_step, b.row_stride, b.column_stride}, beta,
                    static_cast<T*>(c) + i * c_step, ldc);
    };
    const int64_t work = m * n * k;
    if (batch >= get_num_threads() || work <= kSerialWork) {  // one thread a product
      parallel_for(0, batch, std::max<int64_t>(1, kSerialWork / std::max<int64_t>(work, 1)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) one(i);
                   });
    } else {
      with_threads(work, [&] {
        for (int64_t i = 0; i < batch; ++i) one(i);
      });
    }
  });
}

void dot(DType dtype, int64_t n, const void* x, int64_t x_stride, const void* y, int64_t y_stride,
         bool conjugate, void* result) {
  visit_dtype(NumberTypes{}, dtype, "dot", [&](auto tag) {
    using T = decltype(tag);
    using C = std::conditional_t<is_reduced_v<T>, float, T>;
    const auto *p = static_cast<const T*>(x), *q = static_cast<const T*>(y);
#ifdef RL_WITH_BLAS
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
      if (n < (int64_t{1} << 31) && x_stride >= 0 && y_stride >= 0) {
        *static_cast<T*>(result) = blas_dot(n, p, x_stride, q, y_stride);
        return;
      }
    }
#endif
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
