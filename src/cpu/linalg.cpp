#include "cpu/linalg.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numeric>
#include <vector>

#if defined(RUSHLIGHT_WITH_MKL)
#define lapack_complex_float std::complex<float>
#define lapack_complex_double std::complex<double>
#include <mkl_lapacke.h>
#endif

namespace rushlight::cpu {
namespace {

using MatrixTypes = Concat<TypeList<float, double>, ComplexTypes>;

template <class T>
struct real_of {
  using type = T;
};
template <class T>
struct real_of<std::complex<T>> {
  using type = T;
};
template <class T>
using Real = typename real_of<T>::type;

template <class T>
T conj_of(T x) {
  if constexpr (is_complex_v<T>)
    return std::conj(x);
  else
    return x;
}

// A matrix stored by columns.
template <class T>
struct Columns {
  T* data;
  int64_t rows;
  T& operator()(int64_t i, int64_t j) const { return data[j * rows + i]; }
  T* column(int64_t j) const { return data + j * rows; }
};

template <class T>
int64_t own_lu(int64_t n, T* data, int32_t* pivots) {
  const Columns<T> a{data, n};
  int64_t singular = 0;
  for (int64_t k = 0; k < n; ++k) {
    int64_t best = k;
    for (int64_t i = k + 1; i < n; ++i)
      if (std::abs(a(i, k)) > std::abs(a(best, k))) best = i;
    pivots[k] = static_cast<int32_t>(best);
    if (best != k)
      for (int64_t j = 0; j < n; ++j) std::swap(a(k, j), a(best, j));
    if (a(k, k) == T(0)) {
      if (!singular) singular = k + 1;
      continue;
    }
    for (int64_t i = k + 1; i < n; ++i) a(i, k) /= a(k, k);
    for (int64_t j = k + 1; j < n; ++j)
      for (int64_t i = k + 1; i < n; ++i) a(i, j) -= a(i, k) * a(k, j);
  }
  return singular;
}

template <class T>
void own_triangular_solve(int64_t n, int64_t columns, const T* data, bool upper, bool unit, T* b) {
  const Columns<const T> a{data, n};
  for (int64_t c = 0; c < columns; ++c) {
    T* x = b + c * n;
    for (int64_t step = 0; step < n; ++step) {
      const int64_t j = upper ? n - 1 - step : step;
      if (!unit) x[j] /= a(j, j);
      for (int64_t i = upper ? 0 : j + 1; i < (upper ? j : n); ++i) x[i] -= a(i, j) * x[j];
    }
  }
}

template <class T>
int64_t own_cholesky(int64_t n, T* data) {
  const Columns<T> a{data, n};
  for (int64_t j = 0; j < n; ++j) {
    Real<T> d = std::real(a(j, j));
    for (int64_t k = 0; k < j; ++k) d -= std::norm(a(j, k));
    if (!(d > 0)) return j + 1;
    a(j, j) = std::sqrt(d);
    for (int64_t i = j + 1; i < n; ++i) {
      T sum = a(i, j);
      for (int64_t k = 0; k < j; ++k) sum -= a(i, k) * conj_of(a(j, k));
      a(i, j) = sum / a(j, j);
    }
  }
  return 0;
}

// Householder reflections; q starts as the identity and collects them.
template <class T>
void own_qr(int64_t m, int64_t n, int64_t k, T* data, T* q_data, T* r_data) {
  const Columns<T> a{data, m}, q{q_data, m};
  const int64_t steps = std::min(m, n);
  std::vector<T> tau(static_cast<size_t>(steps));
  for (int64_t j = 0; j < steps; ++j) {
    Real<T> norm = 0;
    for (int64_t i = j; i < m; ++i) norm += std::norm(a(i, j));
    norm = std::sqrt(norm);
    if (norm == 0) continue;
    const T alpha = a(j, j), phase = alpha == T(0) ? T(1) : alpha / std::abs(alpha), beta = -phase * norm;
    // H = I - tau v v^H with v_j = 1 takes the column to beta.
    tau[static_cast<size_t>(j)] = T(1) - alpha / beta;
    const T head = alpha - beta;
    for (int64_t i = j + 1; i < m; ++i) a(i, j) /= head;
    a(j, j) = beta;
    const T t = std::real(tau[static_cast<size_t>(j)]);
    for (int64_t c = j + 1; c < n; ++c) {
      T dot = a(j, c);
      for (int64_t i = j + 1; i < m; ++i) dot += conj_of(a(i, j)) * a(i, c);
      a(j, c) -= t * dot;
      for (int64_t i = j + 1; i < m; ++i) a(i, c) -= t * dot * a(i, j);
    }
  }
  std::fill_n(q_data, m * k, T(0));
  for (int64_t j = 0; j < std::min(m, k); ++j) q(j, j) = T(1);
  for (int64_t j = steps; j-- > 0;) {
    const T t = std::real(tau[static_cast<size_t>(j)]);
    for (int64_t c = 0; c < k; ++c) {
      T dot = q(j, c);
      for (int64_t i = j + 1; i < m; ++i) dot += conj_of(a(i, j)) * q(i, c);
      q(j, c) -= t * dot;
      for (int64_t i = j + 1; i < m; ++i) q(i, c) -= t * dot * a(i, j);
    }
  }
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < k; ++i) r_data[j * k + i] = i <= j ? a(i, j) : T(0);
}

// One-sided Jacobi: rotates pairs of columns of a (and of v with them) until all are orthogonal. rows >=
// columns is not needed.
template <class T>
bool orthogonalize(int64_t m, int64_t n, T* data, T* v_data) {
  const Columns<T> a{data, m}, v{v_data, n};
  const Real<T> tolerance = std::numeric_limits<Real<T>>::epsilon();
  for (int sweep = 0; sweep < 60; ++sweep) {
    bool rotated = false;
    for (int64_t p = 0; p < n; ++p)
      for (int64_t q = p + 1; q < n; ++q) {
        Real<T> alpha = 0, beta = 0;
        T gamma = 0;
        for (int64_t i = 0; i < m; ++i) {
          alpha += std::norm(a(i, p));
          beta += std::norm(a(i, q));
          gamma += conj_of(a(i, p)) * a(i, q);
        }
        const Real<T> size = std::abs(gamma);
        if (size == 0 || size <= tolerance * std::sqrt(alpha * beta)) continue;
        rotated = true;
        const T phase = gamma / size;
        const Real<T> zeta = (beta - alpha) / (2 * size);
        const Real<T> t = (zeta >= 0 ? 1 : -1) / (std::abs(zeta) + std::sqrt(1 + zeta * zeta)),
                      c = 1 / std::sqrt(1 + t * t), s = c * t;
        auto rotate = [&](const Columns<T>& x, int64_t rows) {
          for (int64_t i = 0; i < rows; ++i) {
            const T left = x(i, p), right = x(i, q) * conj_of(phase);
            x(i, p) = c * left - s * right;
            x(i, q) = s * left + c * right;
          }
        };
        rotate(a, m);
        rotate(v, n);
      }
    if (!rotated) return true;
  }
  return false;
}

template <class T>
std::vector<int64_t> order_of(const std::vector<T>& values, bool descending) {
  std::vector<int64_t> order(values.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t x, int64_t y) {
    const T a = values[static_cast<size_t>(x)], b = values[static_cast<size_t>(y)];
    return descending ? a > b : a < b;
  });
  return order;
}

template <class T>
std::vector<T> identity(int64_t n) {
  std::vector<T> v(static_cast<size_t>(n * n));
  for (int64_t i = 0; i < n; ++i) v[static_cast<size_t>(i * n + i)] = T(1);
  return v;
}

// From orthogonal columns a = u s: fills u with unit columns, completing a basis where s is 0.
template <class T>
bool own_svd_tall(int64_t m, int64_t n, int64_t columns, T* a, Real<T>* s, T* u, T* v_sorted) {
  std::vector<T> v = identity<T>(n);
  if (!orthogonalize(m, n, a, v.data())) return false;
  std::vector<Real<T>> norms(static_cast<size_t>(n));
  for (int64_t j = 0; j < n; ++j) {
    Real<T> sum = 0;
    for (int64_t i = 0; i < m; ++i) sum += std::norm(a[j * m + i]);
    norms[static_cast<size_t>(j)] = std::sqrt(sum);
  }
  const std::vector<int64_t> order = order_of(norms, true);
  const Real<T> tiny = norms.empty() ? 0
                                     : norms[static_cast<size_t>(order[0])] *
                                           std::numeric_limits<Real<T>>::epsilon() * static_cast<Real<T>>(m);
  std::fill_n(u, m * columns, T(0));
  for (int64_t j = 0; j < columns; ++j) {
    const bool have = j < n && norms[static_cast<size_t>(order[static_cast<size_t>(j)])] > tiny;
    T* column = u + j * m;
    if (j < n) {
      const int64_t from = order[static_cast<size_t>(j)];
      s[j] = norms[static_cast<size_t>(from)];
      std::copy_n(v.data() + from * n, n, v_sorted + j * n);
      if (have)
        for (int64_t i = 0; i < m; ++i) column[i] = a[from * m + i] / s[j];
    }
    for (int64_t e = 0; !have && e < m; ++e) {  // the first unit vector that is not in the span yet
      std::fill_n(column, m, T(0));
      column[e] = T(1);
      for (int pass = 0; pass < 2; ++pass)
        for (int64_t k = 0; k < j; ++k) {
          T dot = 0;
          for (int64_t i = 0; i < m; ++i) dot += conj_of(u[k * m + i]) * column[i];
          for (int64_t i = 0; i < m; ++i) column[i] -= dot * u[k * m + i];
        }
      Real<T> norm = 0;
      for (int64_t i = 0; i < m; ++i) norm += std::norm(column[i]);
      norm = std::sqrt(norm);
      if (norm < Real<T>(0.5) / std::sqrt(static_cast<Real<T>>(m))) continue;
      for (int64_t i = 0; i < m; ++i) column[i] /= norm;
      break;
    }
  }
  return true;
}

template <class T>
void adjoint(int64_t rows, int64_t columns, const T* from, T* to) {
  for (int64_t j = 0; j < columns; ++j)
    for (int64_t i = 0; i < rows; ++i) to[i * columns + j] = conj_of(from[j * rows + i]);
}

template <class T>
bool own_svd(int64_t m, int64_t n, bool full, T* a, Real<T>* s, T* u, T* vh) {
  if (m >= n) {
    std::vector<T> v(static_cast<size_t>(n * n));
    if (!own_svd_tall(m, n, full ? m : n, a, s, u, v.data())) return false;
    adjoint(n, n, v.data(), vh);
    return true;
  }
  // A^H = U' S V'^H gives A = V' S U'^H.
  const int64_t columns = full ? n : m;
  std::vector<T> tall(static_cast<size_t>(m * n)), left(static_cast<size_t>(n * columns));
  adjoint(m, n, a, tall.data());
  if (!own_svd_tall(n, m, columns, tall.data(), s, left.data(), u)) return false;
  adjoint(n, columns, left.data(), vh);
  return true;
}

// Two-sided Jacobi rotations on the Hermitian matrix.
template <class T>
bool own_eigh(int64_t n, T* data, Real<T>* values) {
  const Columns<T> a{data, n};
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < j; ++i) a(i, j) = conj_of(a(j, i));
  for (int64_t j = 0; j < n; ++j) a(j, j) = std::real(a(j, j));
  std::vector<T> v_data = identity<T>(n);
  const Columns<T> v{v_data.data(), n};
  bool done = false;
  for (int sweep = 0; sweep < 100 && !done; ++sweep) {
    Real<T> off = 0, all = 0;
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = 0; i < n; ++i) (i == j ? all : off) += std::norm(a(i, j));
    const Real<T> e = std::numeric_limits<Real<T>>::epsilon();
    done = off <= e * e * (all + off);
    for (int64_t p = 0; p < n && !done; ++p)
      for (int64_t q = p + 1; q < n; ++q) {
        const Real<T> size = std::abs(a(p, q));
        if (size == 0) continue;
        const T phase = a(p, q) / size;
        const Real<T> zeta = (std::real(a(q, q)) - std::real(a(p, p))) / (2 * size);
        const Real<T> t = (zeta >= 0 ? 1 : -1) / (std::abs(zeta) + std::sqrt(1 + zeta * zeta)),
                      c = 1 / std::sqrt(1 + t * t), s = c * t;
        auto columns = [&](const Columns<T>& x) {
          for (int64_t i = 0; i < n; ++i) {
            const T left = x(i, p), right = x(i, q) * conj_of(phase);
            x(i, p) = c * left - s * right;
            x(i, q) = s * left + c * right;
          }
        };
        columns(a);
        for (int64_t j = 0; j < n; ++j) {
          const T left = a(p, j), right = a(q, j) * phase;
          a(p, j) = c * left - s * right;
          a(q, j) = s * left + c * right;
        }
        columns(v);
      }
  }
  std::vector<Real<T>> diagonal(static_cast<size_t>(n));
  for (int64_t j = 0; j < n; ++j) diagonal[static_cast<size_t>(j)] = std::real(a(j, j));
  const std::vector<int64_t> order = order_of(diagonal, false);
  for (int64_t j = 0; j < n; ++j) {
    values[j] = diagonal[static_cast<size_t>(order[static_cast<size_t>(j)])];
    std::copy_n(v.column(order[static_cast<size_t>(j)]), n, data + j * n);
  }
  return done || n == 0;
}

#if defined(RUSHLIGHT_WITH_MKL)
int as_int(int64_t n) { return static_cast<int>(n); }
#define RL_LAPACK(T, getrf_, potrf_, geqrf_, orgqr_, syevd_, gesdd_)                                      \
  int lapack_getrf(int64_t n, T* a, int* p) {                                                             \
    return LAPACKE_##getrf_(LAPACK_COL_MAJOR, as_int(n), as_int(n), a, as_int(n), p);                     \
  }                                                                                                       \
  int lapack_potrf(int64_t n, T* a) {                                                                     \
    return LAPACKE_##potrf_(LAPACK_COL_MAJOR, 'L', as_int(n), a, as_int(n));                              \
  }                                                                                                       \
  int lapack_geqrf(int64_t m, int64_t n, T* a, T* tau) {                                                  \
    return LAPACKE_##geqrf_(LAPACK_COL_MAJOR, as_int(m), as_int(n), a, as_int(m), tau);                   \
  }                                                                                                       \
  int lapack_orgqr(int64_t m, int64_t n, int64_t k, T* a, const T* tau) {                                 \
    return LAPACKE_##orgqr_(LAPACK_COL_MAJOR, as_int(m), as_int(n), as_int(k), a, as_int(m), tau);        \
  }                                                                                                       \
  int lapack_syevd(int64_t n, T* a, Real<T>* w) {                                                         \
    return LAPACKE_##syevd_(LAPACK_COL_MAJOR, 'V', 'L', as_int(n), a, as_int(n), w);                      \
  }                                                                                                       \
  int lapack_gesdd(int64_t m, int64_t n, bool full, T* a, Real<T>* s, T* u, T* vh) {                      \
    const int64_t rows = full ? n : std::min(m, n);                                                       \
    return LAPACKE_##gesdd_(LAPACK_COL_MAJOR, full ? 'A' : 'S', as_int(m), as_int(n), a, as_int(m), s, u, \
                            as_int(m), vh, as_int(std::max<int64_t>(rows, 1)));                           \
  }
RL_LAPACK(float, sgetrf, spotrf, sgeqrf, sorgqr, ssyevd, sgesdd)
RL_LAPACK(double, dgetrf, dpotrf, dgeqrf, dorgqr, dsyevd, dgesdd)
RL_LAPACK(complex64, cgetrf, cpotrf, cgeqrf, cungqr, cheevd, cgesdd)
RL_LAPACK(complex128, zgetrf, zpotrf, zgeqrf, zungqr, zheevd, zgesdd)
#undef RL_LAPACK

template <class T>
void lapack_qr(int64_t m, int64_t n, int64_t k, T* a, T* q, T* r) {
  const int64_t steps = std::min(m, n);
  std::vector<T> tau(static_cast<size_t>(std::max<int64_t>(steps, 1)));
  lapack_geqrf(m, n, a, tau.data());
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < k; ++i) r[j * k + i] = i <= j ? a[j * m + i] : T(0);
  std::fill_n(q, m * k, T(0));
  std::copy_n(a, m * steps, q);
  lapack_orgqr(m, k, steps, q, tau.data());
}
#endif

template <class F>
auto visit_matrix(DType dtype, const char* who, F&& f) {
  return visit_dtype(MatrixTypes{}, dtype, who, std::forward<F>(f));
}

}  // namespace

int64_t lu(DType dtype, int64_t n, void* a, int32_t* pivots) {
  return visit_matrix(dtype, "lu", [&](auto tag) -> int64_t {
    using T = decltype(tag);
#if defined(RUSHLIGHT_WITH_MKL)
    const int info = lapack_getrf(n, static_cast<T*>(a), pivots);
    for (int64_t i = 0; i < n; ++i) --pivots[i];
    return info;
#else
    return own_lu(n, static_cast<T*>(a), pivots);
#endif
  });
}

void lu_solve(DType dtype, int64_t n, int64_t columns, const void* lu_data, const int32_t* pivots,
              void* b_data) {
  visit_matrix(dtype, "lu_solve", [&](auto tag) {
    using T = decltype(tag);
    T* b = static_cast<T*>(b_data);
    for (int64_t c = 0; c < columns; ++c)
      for (int64_t k = 0; k < n; ++k) std::swap(b[c * n + k], b[c * n + pivots[k]]);
    own_triangular_solve(n, columns, static_cast<const T*>(lu_data), false, true, b);
    own_triangular_solve(n, columns, static_cast<const T*>(lu_data), true, false, b);
  });
}

int64_t cholesky(DType dtype, int64_t n, void* data) {
  return visit_matrix(dtype, "cholesky", [&](auto tag) -> int64_t {
    using T = decltype(tag);
    T* a = static_cast<T*>(data);
#if defined(RUSHLIGHT_WITH_MKL)
    const int64_t info = lapack_potrf(n, a);
#else
    const int64_t info = own_cholesky(n, a);
#endif
    for (int64_t j = 0; j < n; ++j) std::fill_n(a + j * n, j, T(0));
    return info;
  });
}

void qr(DType dtype, int64_t m, int64_t n, int64_t k, void* a, void* q, void* r) {
  visit_matrix(dtype, "qr", [&](auto tag) {
    using T = decltype(tag);
#if defined(RUSHLIGHT_WITH_MKL)
    if (m && k) return lapack_qr(m, n, k, static_cast<T*>(a), static_cast<T*>(q), static_cast<T*>(r));
#endif
    own_qr(m, n, k, static_cast<T*>(a), static_cast<T*>(q), static_cast<T*>(r));
  });
}

bool eigh(DType dtype, int64_t n, void* a, void* values) {
  return visit_matrix(dtype, "eigh", [&](auto tag) {
    using T = decltype(tag);
#if defined(RUSHLIGHT_WITH_MKL)
    return lapack_syevd(n, static_cast<T*>(a), static_cast<Real<T>*>(values)) == 0;
#else
    return own_eigh(n, static_cast<T*>(a), static_cast<Real<T>*>(values));
#endif
  });
}

bool svd(DType dtype, int64_t m, int64_t n, bool full, void* a, void* s, void* u, void* vh) {
  return visit_matrix(dtype, "svd", [&](auto tag) {
    using T = decltype(tag);
#if defined(RUSHLIGHT_WITH_MKL)
    if (m && n)
      return lapack_gesdd(m, n, full, static_cast<T*>(a), static_cast<Real<T>*>(s), static_cast<T*>(u),
                          static_cast<T*>(vh)) == 0;
#endif
    return own_svd(m, n, full, static_cast<T*>(a), static_cast<Real<T>*>(s), static_cast<T*>(u),
                   static_cast<T*>(vh));
  });
}

void triangular_solve(DType dtype, int64_t n, int64_t columns, const void* a, bool upper, bool unit,
                      void* b) {
  visit_matrix(dtype, "linalg_solve_triangular", [&](auto tag) {
    using T = decltype(tag);
    own_triangular_solve(n, columns, static_cast<const T*>(a), upper, unit, static_cast<T*>(b));
  });
}

}  // namespace rushlight::cpu
