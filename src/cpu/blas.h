// One overloaded interface for MKL's and OpenBLAS's CBLAS. RL_WITH_BLAS is defined where either is built in.
#pragma once
#include <complex>
#include <cstdint>

#if defined(RUSHLIGHT_WITH_MKL)
#include <mkl_cblas.h>
#define RL_WITH_BLAS 1
#define RL_CBLAS(name) cblas_##name
#elif defined(RUSHLIGHT_WITH_OPENBLAS)
#include <cblas.h>
#define RL_WITH_BLAS 1
#define RL_CBLAS(name) scipy_cblas_##name
#endif

#ifdef RL_WITH_BLAS
namespace rushlight::cpu {

inline int blas_int(int64_t n) { return static_cast<int>(n); }

#define RL_REAL_GEMM(T, letter)                                                                           \
  inline void blas_gemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int64_t m, int64_t n, int64_t k, T alpha, \
                        const T* a, int64_t lda, const T* b, int64_t ldb, T beta, T* c, int64_t ldc) {    \
    RL_CBLAS(letter##gemm)                                                                                \
    (CblasRowMajor, ta, tb, blas_int(m), blas_int(n), blas_int(k), alpha, a, blas_int(lda), b,            \
     blas_int(ldb), beta, c, blas_int(ldc));                                                              \
  }
RL_REAL_GEMM(float, s)
RL_REAL_GEMM(double, d)
#undef RL_REAL_GEMM

#define RL_COMPLEX_GEMM(T, letter)                                                                           \
  inline void blas_gemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int64_t m, int64_t n, int64_t k, T alpha,    \
                        const T* a, int64_t lda, const T* b, int64_t ldb, T beta, T* c, int64_t ldc) {       \
    RL_CBLAS(letter##gemm)                                                                                   \
    (CblasRowMajor, ta, tb, blas_int(m), blas_int(n), blas_int(k), &alpha, a, blas_int(lda), b,              \
     blas_int(ldb), &beta, c, blas_int(ldc));                                                                \
  }                                                                                                          \
  inline void blas_gemv(CBLAS_TRANSPOSE ta, int64_t rows, int64_t columns, T alpha, const T* a, int64_t lda, \
                        const T* x, int64_t incx, T beta, T* y) {                                            \
    RL_CBLAS(letter##gemv)                                                                                   \
    (CblasRowMajor, ta, blas_int(rows), blas_int(columns), &alpha, a, blas_int(lda), x, blas_int(incx),      \
     &beta, y, 1);                                                                                           \
  }
RL_COMPLEX_GEMM(std::complex<float>, c)
RL_COMPLEX_GEMM(std::complex<double>, z)
#undef RL_COMPLEX_GEMM

}  // namespace rushlight::cpu
#endif
