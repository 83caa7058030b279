// Eigenvalues and singular values without a library: Jacobi's rotations, and the QR algorithm for matrices
// without symmetry.
#include <numeric>

#include "cpu/lapack_fallback.h"

#ifndef RL_WITH_LAPACK

namespace rushlight::cpu {
namespace {

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

// A = Q H Q^H with H zero below its first subdiagonal, by reflections; z becomes Q.
template <class T>
void reduce_to_hessenberg(int n, const Columns<T>& a, const Columns<T>& z) {
  std::vector<T> v(static_cast<size_t>(n));
  for (int k = 0; k + 2 < n; ++k) {
    const int rows = n - k - 1;
    std::copy_n(&a(k + 1, k), rows, v.data());
    const Real<T> norm = norm_of(rows, v.data());
    if (norm == 0) continue;
    v[0] += v[0] == T(0) ? T(norm) : v[0] / std::abs(v[0]) * norm;
    const Real<T> length = norm_of(rows, v.data());
    for (int i = 0; i < rows; ++i) v[i] /= length;
    for (int j = k; j < n; ++j)
      add_scaled(rows, T(-2) * dot(rows, v.data(), &a(k + 1, j)), v.data(), &a(k + 1, j));
    auto from_right = [&](const Columns<T>& m) {
      for (int i = 0; i < n; ++i) {
        T sum(0);
        for (int j = 0; j < rows; ++j) sum += m(i, k + 1 + j) * v[j];
        for (int j = 0; j < rows; ++j) m(i, k + 1 + j) -= T(2) * sum * conj_of(v[j]);
      }
    };
    from_right(a);
    from_right(z);
  }
}

// The QR algorithm with Wilkinson's shifts takes the complex Hessenberg matrix a to triangular form, in z the
// basis.
template <class C>
bool reduce_to_triangle(int n, const Columns<C>& a, const Columns<C>& z) {
  using R = Real<C>;
  const R epsilon = std::numeric_limits<R>::epsilon();
  int steps = 0;
  for (int last = n - 1; last > 0;) {
    int first = last;
    for (; first > 0; --first) {
      const R size = std::abs(a(first, first)) + std::abs(a(first - 1, first - 1));
      if (std::abs(a(first, first - 1)) <= epsilon * size) break;
    }
    if (first > 0) a(first, first - 1) = C(0);
    if (first == last) {
      --last, steps = 0;
      continue;
    }
    if (++steps > 60) return false;
    // The eigenvalue of the last 2x2 block that is nearer to its corner; something else when that goes in
    // circles.
    const C p = a(last - 1, last - 1), q = a(last, last), bc = a(last, last - 1) * a(last - 1, last);
    const C half = (p - q) / R(2), root = std::sqrt(half * half + bc);
    const C away = std::abs(half + root) > std::abs(half - root) ? half + root : half - root;
    C shift = away == C(0) ? q : q - bc / away;
    if (steps % 10 == 0) shift = q + C(std::abs(a(last, last - 1)));
    for (int i = first; i <= last; ++i) a(i, i) -= shift;
    // A - s I = Q R by rotations of neighbouring rows; then R Q + s I.
    std::vector<std::pair<R, C>> rotations;
    for (int k = first; k < last; ++k) {
      const C x = a(k, k), y = a(k + 1, k);
      const R length = std::hypot(std::abs(x), std::abs(y)), c = length == 0 ? R(1) : std::abs(x) / length;
      const C phase = x == C(0) ? C(1) : x / std::abs(x),
              s = length == 0 ? C(0) : phase * std::conj(y) / length;
      rotations.emplace_back(c, s);
      for (int j = k; j < n; ++j) {
        const C up = a(k, j), low = a(k + 1, j);
        a(k, j) = c * up + s * low;
        a(k + 1, j) = c * low - std::conj(s) * up;
      }
    }
    auto from_right = [&](const Columns<C>& m, int k, int rows) {
      const auto [c, s] = rotations[static_cast<size_t>(k - first)];
      for (int i = 0; i < rows; ++i) {
        const C left = m(i, k), right = m(i, k + 1);
        m(i, k) = c * left + std::conj(s) * right;
        m(i, k + 1) = c * right - s * left;
      }
    };
    for (int k = first; k < last; ++k) {
      from_right(a, k, k + 2);
      from_right(z, k, n);
    }
    for (int i = first; i <= last; ++i) a(i, i) += shift;
  }
  return true;
}

// Eigenvectors of the triangle t by substitution, taken to the original basis z; of length 1, the largest
// entry real.
template <class C>
void vectors_of_triangle(int n, const Columns<C>& t, const Columns<C>& z, C* v) {
  using R = Real<C>;
  const R tiny = std::max(norm_of(int64_t{n} * n, t.data) * std::numeric_limits<R>::epsilon(),
                          std::numeric_limits<R>::min());
  std::vector<C> x(static_cast<size_t>(n));
  for (int j = 0; j < n; ++j) {
    std::fill(x.begin(), x.end(), C(0));
    x[j] = C(1);
    for (int i = j - 1; i >= 0; --i) {
      C sum = t(i, j);
      for (int k = i + 1; k < j; ++k) sum += t(i, k) * x[k];
      C gap = t(j, j) - t(i, i);
      if (std::abs(gap) < tiny) gap = C(tiny);
      x[i] = sum / gap;
    }
    C* y = v + int64_t{j} * n;
    std::fill_n(y, n, C(0));
    for (int k = 0; k <= j; ++k) add_scaled(n, x[k], z.column(k), y);
    const C top = *std::max_element(y, y + n, [](C p, C q) { return std::abs(p) < std::abs(q); });
    const C scale = std::conj(top) / std::abs(top) / norm_of(n, y);
    for (int i = 0; i < n; ++i) y[i] *= scale;
  }
}

}  // namespace

template <class T>
int Lapack<T>::heevd(bool, int n, T* a, R* values, Scratch<T>&) {
  return own_eigh(n, a, values) ? 0 : n;
}

template <class T>
int Lapack<T>::geev(int n, T* data, C* values, C* v, Scratch<T>&) {
  std::vector<C> a(data, data + int64_t{n} * n), z = identity<C>(n);
  const Columns<C> t{a.data(), n}, basis{z.data(), n};
  reduce_to_hessenberg(n, t, basis);
  if (!reduce_to_triangle(n, t, basis)) return n;
  for (int j = 0; j < n; ++j) values[j] = t(j, j);
  if (v) vectors_of_triangle(n, t, basis, v);
  return 0;
}

template <class T>
int Lapack<T>::gesvd(bool, bool full, int m, int n, T* a, R* s, T* u, T* vh, Scratch<T>&) {
  const int64_t k = std::min(m, n);
  std::vector<T> left, right;
  if (!u) {
    left.resize(static_cast<size_t>(m * k));
    right.resize(static_cast<size_t>(k * n));
    return own_svd(m, n, false, a, s, left.data(), right.data()) ? 0 : static_cast<int>(k);
  }
  return own_svd(m, n, full, a, s, u, vh) ? 0 : static_cast<int>(k);
}

#define RL_INSTANTIATE(T)                                              \
  template int Lapack<T>::heevd(bool, int, T*, Real<T>*, Scratch<T>&); \
  template int Lapack<T>::geev(int, T*, C*, C*, Scratch<T>&);          \
  template int Lapack<T>::gesvd(bool, bool, int, int, T*, Real<T>*, T*, T*, Scratch<T>&);
RL_INSTANTIATE(float)
RL_INSTANTIATE(double)
RL_INSTANTIATE(complex64)
RL_INSTANTIATE(complex128)
#undef RL_INSTANTIATE

}  // namespace rushlight::cpu
#endif
