#include "cpu/blas.h"
#include "cpu/lapack.h"
#include "cpu/lapack_small.h"

#ifdef RL_WITH_LAPACK

#if defined(RUSHLIGHT_WITH_MKL)
#define RL_FORTRAN(name) name##_
#else
#define RL_FORTRAN(name) scipy_##name##_
#endif

namespace rushlight::cpu {
namespace lapack {

// Fortran passes everything by address, and the lengths of texts after all else.
using In = const int*;
using Text = const char*;
using Out = int*;
using Array = void*;
using Input = const void*;
using Length = size_t;

template <class T>
constexpr auto choose(auto s, auto d, auto c, auto z) {
  if constexpr (std::is_same_v<T, float>)
    return s;
  else if constexpr (std::is_same_v<T, double>)
    return d;
  else if constexpr (std::is_same_v<T, complex64>)
    return c;
  else
    return z;
}

// The table: one routine of four types a line, or two lines where the complex one has other parameters.
#define RL_ROUTINE(name, real, complex, ...) \
  extern "C" {                               \
  void RL_FORTRAN(s##real)(__VA_ARGS__);     \
  void RL_FORTRAN(d##real)(__VA_ARGS__);     \
  void RL_FORTRAN(c##complex)(__VA_ARGS__);  \
  void RL_FORTRAN(z##complex)(__VA_ARGS__);  \
  }                                          \
  template <class T>                         \
  constexpr auto name =                      \
      choose<T>(RL_FORTRAN(s##real), RL_FORTRAN(d##real), RL_FORTRAN(c##complex), RL_FORTRAN(z##complex));
#define RL_REAL_ROUTINE(name, routine, ...) \
  extern "C" {                              \
  void RL_FORTRAN(s##routine)(__VA_ARGS__); \
  void RL_FORTRAN(d##routine)(__VA_ARGS__); \
  }                                         \
  template <class T>                        \
  constexpr auto name = choose<T>(RL_FORTRAN(s##routine), RL_FORTRAN(d##routine), nullptr, nullptr);
#define RL_COMPLEX_ROUTINE(name, routine, ...) \
  extern "C" {                                 \
  void RL_FORTRAN(c##routine)(__VA_ARGS__);    \
  void RL_FORTRAN(z##routine)(__VA_ARGS__);    \
  }                                            \
  template <class T>                           \
  constexpr auto name = choose<T>(nullptr, nullptr, RL_FORTRAN(c##routine), RL_FORTRAN(z##routine));

// clang-format off
RL_ROUTINE(getrf_, getrf, getrf, In m, In n, Array a, In lda, Out pivots, Out info)
RL_ROUTINE(getrs_, getrs, getrs, Text trans, In n, In columns, Input a, In lda, In pivots, Array b, In ldb, Out info, Length)
RL_ROUTINE(getri_, getri, getri, In n, Array a, In lda, In pivots, Array work, In lwork, Out info)
RL_ROUTINE(trsm_, trsm, trsm, Text side, Text uplo, Text trans, Text diag, In m, In n, Input alpha, Input a, In lda, Array b, In ldb, Length, Length, Length, Length)
RL_ROUTINE(potrf_, potrf, potrf, Text uplo, In n, Array a, In lda, Out info, Length)
RL_ROUTINE(potri_, potri, potri, Text uplo, In n, Array a, In lda, Out info, Length)
RL_ROUTINE(sytrf_, sytrf, sytrf, Text uplo, In n, Array a, In lda, Out pivots, Array work, In lwork, Out info, Length)
RL_ROUTINE(sytrs_, sytrs, sytrs, Text uplo, In n, In columns, Input a, In lda, In pivots, Array b, In ldb, Out info, Length)
RL_COMPLEX_ROUTINE(complex_hetrf, hetrf, Text uplo, In n, Array a, In lda, Out pivots, Array work, In lwork, Out info, Length)
RL_COMPLEX_ROUTINE(complex_hetrs, hetrs, Text uplo, In n, In columns, Input a, In lda, In pivots, Array b, In ldb, Out info, Length)
RL_ROUTINE(geqrf_, geqrf, geqrf, In m, In n, Array a, In lda, Array tau, Array work, In lwork, Out info)
RL_ROUTINE(orgqr_, orgqr, ungqr, In m, In n, In k, Array a, In lda, Input tau, Array work, In lwork, Out info)
RL_ROUTINE(ormqr_, ormqr, unmqr, Text side, Text trans, In m, In n, In k, Input a, In lda, Input tau, Array c, In ldc, Array work, In lwork, Out info, Length, Length)
RL_REAL_ROUTINE(real_syevd, syevd, Text jobz, Text uplo, In n, Array a, In lda, Array w, Array work, In lwork, Out iwork, In liwork, Out info, Length, Length)
RL_COMPLEX_ROUTINE(complex_heevd, heevd, Text jobz, Text uplo, In n, Array a, In lda, Array w, Array work, In lwork, Array rwork, In lrwork, Out iwork, In liwork, Out info, Length, Length)
RL_REAL_ROUTINE(real_geev, geev, Text left, Text right, In n, Array a, In lda, Array wr, Array wi, Array vl, In ldvl, Array vr, In ldvr, Array work, In lwork, Out info, Length, Length)
RL_COMPLEX_ROUTINE(complex_geev, geev, Text left, Text right, In n, Array a, In lda, Array w, Array vl, In ldvl, Array vr, In ldvr, Array work, In lwork, Array rwork, Out info, Length, Length)
RL_REAL_ROUTINE(real_gesdd, gesdd, Text job, In m, In n, Array a, In lda, Array s, Array u, In ldu, Array vt, In ldvt, Array work, In lwork, Out iwork, Out info, Length)
RL_COMPLEX_ROUTINE(complex_gesdd, gesdd, Text job, In m, In n, Array a, In lda, Array s, Array u, In ldu, Array vt, In ldvt, Array work, In lwork, Array rwork, Out iwork, Out info, Length)
RL_REAL_ROUTINE(real_gesvd, gesvd, Text jobu, Text jobv, In m, In n, Array a, In lda, Array s, Array u, In ldu, Array vt, In ldvt, Array work, In lwork, Out info, Length, Length)
RL_COMPLEX_ROUTINE(complex_gesvd, gesvd, Text jobu, Text jobv, In m, In n, Array a, In lda, Array s, Array u, In ldu, Array vt, In ldvt, Array work, In lwork, Array rwork, Out info, Length, Length)
RL_ROUTINE(gels_, gels, gels, Text trans, In m, In n, In columns, Array a, In lda, Array b, In ldb, Array work, In lwork, Out info, Length)
RL_REAL_ROUTINE(real_gelsy, gelsy, In m, In n, In columns, Array a, In lda, Array b, In ldb, Out jpvt, Input rcond, Out rank, Array work, In lwork, Out info)
RL_COMPLEX_ROUTINE(complex_gelsy, gelsy, In m, In n, In columns, Array a, In lda, Array b, In ldb, Out jpvt, Input rcond, Out rank, Array work, In lwork, Array rwork, Out info)
RL_REAL_ROUTINE(real_gelsd, gelsd, In m, In n, In columns, Array a, In lda, Array b, In ldb, Array s, Input rcond, Out rank, Array work, In lwork, Out iwork, Out info)
RL_COMPLEX_ROUTINE(complex_gelsd, gelsd, In m, In n, In columns, Array a, In lda, Array b, In ldb, Array s, Input rcond, Out rank, Array work, In lwork, Array rwork, Out iwork, Out info)
RL_REAL_ROUTINE(real_gelss, gelss, In m, In n, In columns, Array a, In lda, Array b, In ldb, Array s, Input rcond, Out rank, Array work, In lwork, Out info)
RL_COMPLEX_ROUTINE(complex_gelss, gelss, In m, In n, In columns, Array a, In lda, Array b, In ldb, Array s, Input rcond, Out rank, Array work, In lwork, Array rwork, Out info)
// clang-format on

}  // namespace lapack

namespace {

using namespace lapack;

template <class V>
void at_least(V& v, int64_t n) {
  if (static_cast<int64_t>(v.size()) < n) v.resize(static_cast<size_t>(n));
}

// Asks a routine once how much memory it works best in, then runs it. The answers for other arrays than
// `work` are in their first elements.
template <class T, class F>
void with_work(Scratch<T>& s, F&& run) {
  if (s.work.empty()) {
    T best{};
    const int ask = -1;
    at_least(s.integers, 1);
    at_least(s.real, 1);
    s.integers[0] = 0, s.real[0] = 0;
    run(&best, &ask);
    // A float may have rounded the answer down.
    s.work.resize(static_cast<size_t>(std::real(best) * (1 + Real<T>(1e-6))) + 1);
    at_least(s.integers, s.integers[0]);
    at_least(s.real, static_cast<int64_t>(s.real[0] * (1 + Real<T>(1e-6))) + 1);
  }
  const int size = static_cast<int>(s.work.size());
  run(s.work.data(), &size);
}

// MKL takes memory of its own, and reports numbers far below those of arguments where there is none.
int reported(int info) {
  if (info <= -1000) throw std::bad_alloc();
  return info;
}

}  // namespace

template <class T>
int Lapack<T>::getrf(int m, int n, T* a, int* pivots) {
  if (std::max(m, n) <= small::kMost) return small::getrf(m, n, a, pivots);
  int info = 0;
  getrf_<T>(&m, &n, a, &m, pivots, &info);
  return reported(info);
}

template <class T>
void Lapack<T>::getrs(char trans, int n, int columns, const T* lu, const int* pivots, T* b) {
  if (trans == 'N' && n <= small::kMost && columns <= small::kMost)
    return small::getrs(n, columns, lu, pivots, b);
  int info = 0;
  getrs_<T>(&trans, &n, &columns, lu, &n, pivots, b, &n, &info, 1);
  reported(info);
}

template <class T>
int Lapack<T>::getri(int n, T* lu, const int* pivots, Scratch<T>& s) {
  if (n <= small::kMost) return small::getri(n, lu, pivots);
  int info = 0;
  with_work(s, [&](T* work, In lwork) { getri_<T>(&n, lu, &n, pivots, work, lwork, &info); });
  return reported(info);
}

template <class T>
void Lapack<T>::trsm(bool upper, char trans, bool unit, int n, int columns, const T* a, T* b) {
  const T one(1);
  trsm_<T>("L", upper ? "U" : "L", &trans, unit ? "U" : "N", &n, &columns, &one, a, &n, b, &n, 1, 1, 1, 1);
}

namespace {

// What the factor's rows (or columns) [first, first + width) take off the rest of the triangle, in squares:
// of those on the diagonal the other side changes too. To CBLAS, columns are the rows of the transposed
// matrix.
template <class T>
void take_off(bool upper, int n, int first, int width, T* a) {
  const auto at = [&](int64_t i, int64_t j) { return a + j * n + i; };
  const int begin = first + width;
  for (int j = begin; j < n; j += width) {
    const int side = std::min(width, n - j);
    if (upper)
      blas_gemm(CblasNoTrans, CblasConjTrans, side, j + side - begin, width, T(-1), at(first, j), n,
                at(first, begin), n, T(1), at(begin, j), n);
    else
      blas_gemm(CblasConjTrans, CblasNoTrans, side, n - j, width, T(-1), at(j, first), n, at(j, first), n,
                T(1), at(j, j), n);
  }
}

}  // namespace

template <class T>
int Lapack<T>::potri(bool upper, int n, T* factor) {
  int info = 0;
  potri_<T>(upper ? "U" : "L", &n, factor, &n, &info, 1);
  return reported(info);
}

// By blocks with products and triangular solves, which libraries do well at sizes where their own
// factorisation does not.
template <class T>
int Lapack<T>::potrf(bool upper, int n, T* a) {
  constexpr int kBlock = 64;
  const T one(1);
  for (int first = 0; first < n; first += kBlock) {
    const int width = std::min(kBlock, n - first), rest = n - first - width;
    T* diagonal = a + int64_t{first} * n + first;
    int info = 0;
    potrf_<T>(upper ? "U" : "L", &width, diagonal, &n, &info, 1);
    if (reported(info) != 0) return first + info;
    if (rest == 0) return 0;
    if (upper)
      trsm_<T>("L", "U", "C", "N", &width, &rest, &one, diagonal, &n, diagonal + int64_t{width} * n, &n, 1, 1,
               1, 1);
    else
      trsm_<T>("R", "L", "C", "N", &rest, &width, &one, diagonal, &n, diagonal + width, &n, 1, 1, 1, 1);
    take_off(upper, n, first, width, a);
  }
  return 0;
}

template <class T>
int Lapack<T>::sytrf(bool hermitian, int n, T* a, int* pivots, Scratch<T>& s) {
  int info = 0;
  with_work(s, [&](T* work, In lwork) {
    if constexpr (is_complex_v<T>)
      if (hermitian) return complex_hetrf<T>("L", &n, a, &n, pivots, work, lwork, &info, 1);
    sytrf_<T>("L", &n, a, &n, pivots, work, lwork, &info, 1);
  });
  return reported(info);
}

template <class T>
void Lapack<T>::sytrs(bool hermitian, int n, int columns, const T* ld, const int* pivots, T* b) {
  int info = 0;
  if constexpr (is_complex_v<T>)
    if (hermitian) return complex_hetrs<T>("L", &n, &columns, ld, &n, pivots, b, &n, &info, 1);
  sytrs_<T>("L", &n, &columns, ld, &n, pivots, b, &n, &info, 1);
  reported(info);
}

template <class T>
void Lapack<T>::geqrf(int m, int n, T* a, T* tau, Scratch<T>& s) {
  int info = 0;
  with_work(s, [&](T* work, In lwork) { geqrf_<T>(&m, &n, a, &m, tau, work, lwork, &info); });
  reported(info);
}

template <class T>
void Lapack<T>::orgqr(int m, int n, int k, T* a, const T* tau, Scratch<T>& s) {
  int info = 0;
  with_work(s, [&](T* work, In lwork) { orgqr_<T>(&m, &n, &k, a, &m, tau, work, lwork, &info); });
  reported(info);
}

template <class T>
void Lapack<T>::ormqr(bool left, bool adjoint, int m, int n, int k, const T* a, const T* tau, T* c,
                      Scratch<T>& s) {
  int info = 0;
  const int lda = left ? m : n;
  const char* trans = !adjoint ? "N" : is_complex_v<T> ? "C" : "T";
  with_work(s, [&](T* work, In lwork) {
    ormqr_<T>(left ? "L" : "R", trans, &m, &n, &k, a, &lda, tau, c, &m, work, lwork, &info, 1, 1);
  });
  reported(info);
}

template <class T>
int Lapack<T>::heevd(bool vectors, int n, T* a, R* values, Scratch<T>& s) {
  int info = 0;
  const char* job = vectors ? "V" : "N";
  with_work(s, [&](T* work, In lwork) {
    const int liwork = *lwork == -1 ? -1 : static_cast<int>(s.integers.size()),
              lrwork = *lwork == -1 ? -1 : static_cast<int>(s.real.size());
    if constexpr (is_complex_v<T>)
      complex_heevd<T>(job, "L", &n, a, &n, values, work, lwork, s.real.data(), &lrwork, s.integers.data(),
                       &liwork, &info, 1, 1);
    else
      real_syevd<T>(job, "L", &n, a, &n, values, work, lwork, s.integers.data(), &liwork, &info, 1, 1);
  });
  return reported(info);
}

template <class T>
int Lapack<T>::geev(int n, T* a, C* values, C* v, Scratch<T>& s) {
  int info = 0;
  const int one = 1;
  const char* job = v ? "V" : "N";
  if constexpr (is_complex_v<T>) {
    at_least(s.real, 2 * n);
    with_work(s, [&](T* work, In lwork) {
      complex_geev<T>("N", job, &n, a, &n, values, nullptr, &one, v, &n, work, lwork, s.real.data(), &info, 1,
                      1);
    });
  } else {
    // A conjugate pair of vectors comes as two real columns: real and imaginary part.
    at_least(s.real, 2 * n + (v ? int64_t{n} * n : 0));
    R *wr = s.real.data(), *wi = wr + n, *packed = wi + n;
    with_work(s, [&](T* work, In lwork) {
      real_geev<T>("N", job, &n, a, &n, wr, wi, nullptr, &one, packed, &n, work, lwork, &info, 1, 1);
    });
    for (int j = 0; j < n; ++j) values[j] = C(wr[j], wi[j]);
    for (int j = 0; v && j < n; ++j) {
      const R *re = packed + int64_t{j} * n, *im = re + n;
      const bool pair = wi[j] != 0 && j + 1 < n;
      for (int i = 0; i < n; ++i) v[int64_t{j} * n + i] = pair ? C(re[i], im[i]) : C(re[i]);
      if (!pair) continue;
      for (int i = 0; i < n; ++i) v[int64_t{j + 1} * n + i] = C(re[i], -im[i]);
      ++j;
    }
  }
  return reported(info);
}

template <class T>
int Lapack<T>::gesvd(bool by_qr, bool full, int m, int n, T* a, R* s, T* u, T* vh, Scratch<T>& scratch) {
  int info = 0;
  const char* job = !u ? "N" : full ? "A" : "S";
  const int64_t k = std::min(m, n), most = std::max(m, n);
  const int ldvh = static_cast<int>(full ? n : k);
  at_least(scratch.integers, 8 * k);
  if constexpr (is_complex_v<T>)
    at_least(scratch.real, u && !by_qr ? std::max(5 * k * k + 5 * k, 2 * most * k + 2 * k * k + k) : 7 * k);
  with_work(scratch, [&](T* work, In lwork) {
    [[maybe_unused]] R* rwork = scratch.real.data();
    if constexpr (is_complex_v<T>) {
      if (by_qr)
        complex_gesvd<T>(job, job, &m, &n, a, &m, s, u, &m, vh, &ldvh, work, lwork, rwork, &info, 1, 1);
      else
        complex_gesdd<T>(job, &m, &n, a, &m, s, u, &m, vh, &ldvh, work, lwork, rwork, scratch.integers.data(),
                         &info, 1);
    } else {
      if (by_qr)
        real_gesvd<T>(job, job, &m, &n, a, &m, s, u, &m, vh, &ldvh, work, lwork, &info, 1, 1);
      else
        real_gesdd<T>(job, &m, &n, a, &m, s, u, &m, vh, &ldvh, work, lwork, scratch.integers.data(), &info,
                      1);
    }
  });
  return reported(info);
}

template <class T>
int Lapack<T>::gels(Driver driver, int m, int n, int columns, T* a, T* b, R rcond, int* rank, R* s,
                    Scratch<T>& scratch) {
  int info = 0;
  const int ldb = std::max(m, n), k = std::min(m, n);
  at_least(scratch.integers, n);
  at_least(scratch.real, std::max(2 * n, 5 * k));
  if (driver == Driver::Gelsy) std::fill_n(scratch.integers.data(), n, 0);  // all columns may be exchanged
  with_work(scratch, [&](T* work, In lwork) {
    if (driver == Driver::Gels) return gels_<T>("N", &m, &n, &columns, a, &m, b, &ldb, work, lwork, &info, 1);
    int* iwork = scratch.integers.data();
    [[maybe_unused]] R* rwork = scratch.real.data();
    if constexpr (is_complex_v<T>) {
      if (driver == Driver::Gelsy)
        complex_gelsy<T>(&m, &n, &columns, a, &m, b, &ldb, iwork, &rcond, rank, work, lwork, rwork, &info);
      else if (driver == Driver::Gelsd)
        complex_gelsd<T>(&m, &n, &columns, a, &m, b, &ldb, s, &rcond, rank, work, lwork, rwork, iwork, &info);
      else
        complex_gelss<T>(&m, &n, &columns, a, &m, b, &ldb, s, &rcond, rank, work, lwork, rwork, &info);
    } else {
      if (driver == Driver::Gelsy)
        real_gelsy<T>(&m, &n, &columns, a, &m, b, &ldb, iwork, &rcond, rank, work, lwork, &info);
      else if (driver == Driver::Gelsd)
        real_gelsd<T>(&m, &n, &columns, a, &m, b, &ldb, s, &rcond, rank, work, lwork, iwork, &info);
      else
        real_gelss<T>(&m, &n, &columns, a, &m, b, &ldb, s, &rcond, rank, work, lwork, &info);
    }
  });
  return reported(info);
}

template struct Lapack<float>;
template struct Lapack<double>;
template struct Lapack<complex64>;
template struct Lapack<complex128>;

}  // namespace rushlight::cpu
#endif
