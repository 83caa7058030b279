// Factorisations and solvers without a library: plain loops along columns.
#include "cpu/lapack_fallback.h"

#ifndef RL_WITH_LAPACK

namespace rushlight::cpu {

template <class T>
int Lapack<T>::getrf(int m, int n, T* data, int* pivots) {
  const Columns<T> a{data, m};
  int singular = 0;
  for (int k = 0; k < std::min(m, n); ++k) {
    int best = k;
    for (int i = k + 1; i < m; ++i)
      if (std::abs(a(i, k)) > std::abs(a(best, k))) best = i;
    pivots[k] = best + 1;
    if (best != k)
      for (int j = 0; j < n; ++j) std::swap(a(k, j), a(best, j));
    if (a(k, k) == T(0)) {
      if (!singular) singular = k + 1;
      continue;
    }
    for (int i = k + 1; i < m; ++i) a(i, k) /= a(k, k);
    for (int j = k + 1; j < n; ++j) add_scaled(m - k - 1, -a(k, j), &a(k, k) + 1, &a(k, j) + 1);
  }
  return singular;
}

template <class T>
void Lapack<T>::trsm(bool upper, char trans, bool unit, int n, int columns, const T* data, T* b) {
  const Columns<const T> a{data, n};
  auto element = [&](T value) { return trans == 'C' ? conj_of(value) : value; };
  const bool forward = upper == (trans != 'N');
  for (int c = 0; c < columns; ++c) {
    T* x = b + int64_t{c} * n;
    for (int step = 0; step < n; ++step) {
      const int j = forward ? step : n - 1 - step, from = upper ? 0 : j + 1, to = upper ? j : n;
      if (trans == 'N') {  // what x_j contributes to the rest
        if (!unit) x[j] /= a(j, j);
        add_scaled(to - from, -x[j], a.column(j) + from, x + from);
      } else {
        for (int i = from; i < to; ++i) x[j] -= element(a(i, j)) * x[i];
        if (!unit) x[j] /= element(a(j, j));
      }
    }
  }
}

template <class T>
void Lapack<T>::getrs(char trans, int n, int columns, const T* lu, const int* pivots, T* b) {
  auto exchange = [&](bool forward) {
    for (int c = 0; c < columns; ++c)
      for (int step = 0; step < n; ++step) {
        const int k = forward ? step : n - 1 - step;
        std::swap(b[int64_t{c} * n + k], b[int64_t{c} * n + pivots[k] - 1]);
      }
  };
  if (trans == 'N') exchange(true);
  trsm(trans != 'N', trans, trans == 'N', n, columns, lu, b);
  trsm(trans == 'N', trans, trans != 'N', n, columns, lu, b);
  if (trans != 'N') exchange(false);
}

template <class T>
int Lapack<T>::getri(int n, T* lu, const int* pivots, Scratch<T>&) {
  std::vector<T> inverse(static_cast<size_t>(int64_t{n} * n));
  for (int j = 0; j < n; ++j) inverse[int64_t{j} * n + j] = T(1);
  getrs('N', n, n, lu, pivots, inverse.data());
  std::copy(inverse.begin(), inverse.end(), lu);
  return 0;
}

template <class T>
int Lapack<T>::potrf(bool upper, int n, T* data) {
  const Columns<T> a{data, n};
  if (upper) {  // U^H is the lower factor
    std::vector<T> turned(static_cast<size_t>(int64_t{n} * n));
    const Columns<T> l{turned.data(), n};
    for (int j = 0; j < n; ++j)
      for (int i = j; i < n; ++i) l(i, j) = conj_of(a(j, i));
    const int info = potrf(false, n, turned.data());
    for (int j = 0; j < n; ++j)
      for (int i = j; i < n; ++i) a(j, i) = conj_of(l(i, j));
    return info;
  }
  for (int j = 0; j < n; ++j) {
    const R d = std::real(a(j, j));
    if (!(d > 0)) return j + 1;
    a(j, j) = std::sqrt(d);
    for (int i = j + 1; i < n; ++i) a(i, j) /= a(j, j);
    for (int k = j + 1; k < n; ++k) {
      add_scaled(n - k, -conj_of(a(k, j)), &a(k, j), &a(k, k));
      a(k, k) = std::real(a(k, k));
    }
  }
  return 0;
}

template <class T>
int Lapack<T>::potri(bool upper, int n, T* factor) {
  std::vector<T> inverse(static_cast<size_t>(int64_t{n} * n));
  for (int j = 0; j < n; ++j) {
    if (factor[int64_t{j} * n + j] == T(0)) return j + 1;
    inverse[int64_t{j} * n + j] = T(1);
  }
  trsm(upper, upper ? 'C' : 'N', false, n, n, factor, inverse.data());
  trsm(upper, upper ? 'N' : 'C', false, n, n, factor, inverse.data());
  std::copy(inverse.begin(), inverse.end(), factor);
  return 0;
}

// Bunch and Kaufman, "Some stable methods for calculating inertia and solving symmetric linear systems"
// (1977), in LAPACK's storage: pivots of a 2x2 block are negative, twice the same.
template <class T>
int Lapack<T>::sytrf(bool hermitian, int n, T* data, int* pivots, Scratch<T>&) {
  const Columns<T> a{data, n};
  const R alpha = (1 + std::sqrt(R(17))) / 8;
  auto adjoint = [&](T x) { return hermitian ? conj_of(x) : x; };
  auto size = [&](int i, int j) {
    return hermitian && i == j ? std::abs(std::real(a(i, j))) : std::abs(a(i, j));
  };
  int singular = 0;
  for (int k = 0, step; k < n; k += step) {
    step = 1;
    int best = k, other = k;
    R below = 0;
    for (int i = k + 1; i < n; ++i)
      if (size(i, k) > below) below = size(i, k), best = i;
    if (std::max(size(k, k), below) == 0) {
      if (!singular) singular = k + 1;
      pivots[k] = k + 1;
      continue;
    }
    if (size(k, k) < alpha * below) {
      R row = 0;
      for (int j = k; j < best; ++j) row = std::max(row, size(best, j));
      for (int i = best + 1; i < n; ++i) row = std::max(row, size(i, best));
      if (size(k, k) < alpha * below * (below / row)) {
        other = best;
        if (size(best, best) < alpha * row) step = 2;
      }
    }
    const int at = k + step - 1;
    if (other !=
        at) {  // rows and columns `at` and `other` of what is left, of which the lower triangle is kept
      for (int i = other + 1; i < n; ++i) std::swap(a(i, at), a(i, other));
      for (int j = at + 1; j < other; ++j) {
        const T up = adjoint(a(j, at));
        a(j, at) = adjoint(a(other, j));
        a(other, j) = up;
      }
      a(other, at) = adjoint(a(other, at));
      std::swap(a(at, at), a(other, other));
      if (step == 2) std::swap(a(k + 1, k), a(other, k));
    }
    if (hermitian)
      for (int i = k; i < k + step; ++i) a(i, i) = std::real(a(i, i));
    pivots[k] = pivots[at] = step == 1 ? other + 1 : -(other + 1);
    // W = L D: the columns as they are; L = W D^-1; the rest loses L W^H.
    std::vector<T> w(a.column(k), a.column(k) + int64_t{step} * n);
    const Columns<T> wide{w.data(), n};
    const T determinant =
        step == 1 ? a(k, k) : a(k, k) * a(k + 1, k + 1) - a(k + 1, k) * adjoint(a(k + 1, k));
    for (int i = k + step; i < n; ++i) {
      if (step == 1) {
        a(i, k) = wide(i, 0) / determinant;
      } else {
        a(i, k) = (wide(i, 0) * wide(k + 1, 1) - wide(i, 1) * wide(k + 1, 0)) / determinant;
        a(i, k + 1) = (wide(i, 1) * wide(k, 0) - wide(i, 0) * adjoint(wide(k + 1, 0))) / determinant;
      }
    }
    for (int j = k + step; j < n; ++j)
      for (int c = 0; c < step; ++c) add_scaled(n - j, -adjoint(wide(j, c)), &a(j, k + c), &a(j, j));
    if (hermitian)
      for (int j = k + step; j < n; ++j) a(j, j) = std::real(a(j, j));
  }
  return singular;
}

template <class T>
void Lapack<T>::sytrs(bool hermitian, int n, int columns, const T* data, const int* pivots, T* b) {
  const Columns<const T> a{data, n};
  auto adjoint = [&](T x) { return hermitian ? conj_of(x) : x; };
  for (int c = 0; c < columns; ++c) {
    T* x = b + int64_t{c} * n;
    for (int k = 0; k < n; ++k) {  // L D
      const bool pair = pivots[k] < 0;
      const int at = pair ? k + 1 : k, other = std::abs(pivots[k]) - 1;
      std::swap(x[at], x[other]);
      for (int i = at + 1; i < n; ++i) x[i] -= a(i, k) * x[k] + (pair ? a(i, k + 1) * x[k + 1] : T(0));
      if (pair) {
        const T p = a(k, k), q = a(k + 1, k), r = a(k + 1, k + 1), d = p * r - q * adjoint(q);
        const T first = (x[k] * r - adjoint(q) * x[k + 1]) / d;
        x[k + 1] = (p * x[k + 1] - q * x[k]) / d;
        x[k] = first;
      } else {
        x[k] /= a(k, k);
      }
      k = at;
    }
    for (int k = n - 1; k >= 0; --k) {  // L^T or L^H
      const bool pair = pivots[k] < 0;
      const int from = k + 1, first = pair ? k - 1 : k;
      for (int j = first; j <= k; ++j)
        for (int i = from; i < n; ++i) x[j] -= adjoint(a(i, j)) * x[i];
      std::swap(x[k], x[std::abs(pivots[k]) - 1]);
      k = first;
    }
  }
}

// H = I - tau v v^H with v_0 = 1 takes x to (beta, 0, ...): x becomes (beta, v_1, ...).
template <class T>
static T reflect(int n, T* x) {
  const Real<T> norm = norm_of(n, x);
  if (norm == 0 || (n == 1 && std::imag(x[0]) == 0)) return T(0);
  const Real<T> beta = std::real(x[0]) > 0 ? -norm : norm;
  const T tau = (T(beta) - x[0]) / beta, head = x[0] - beta;
  for (int i = 1; i < n; ++i) x[i] /= head;
  x[0] = beta;
  return tau;
}

// y[n] loses tau v v^H y; v_0 = 1 is not stored.
template <class T>
static void apply_reflector(int n, T tau, const T* v, T* y) {
  const T factor = tau * (y[0] + dot(n - 1, v + 1, y + 1));
  y[0] -= factor;
  add_scaled(n - 1, -factor, v + 1, y + 1);
}

template <class T>
void Lapack<T>::geqrf(int m, int n, T* data, T* tau, Scratch<T>&) {
  const Columns<T> a{data, m};
  for (int j = 0; j < std::min(m, n); ++j) {
    tau[j] = reflect(m - j, &a(j, j));
    for (int c = j + 1; c < n; ++c) apply_reflector(m - j, conj_of(tau[j]), &a(j, j), &a(j, c));
  }
}

template <class T>
void Lapack<T>::orgqr(int m, int n, int k, T* data, const T* tau, Scratch<T>& s) {
  const std::vector<T> reflectors(data, data + int64_t{m} * k);
  std::fill_n(data, int64_t{m} * n, T(0));
  for (int j = 0; j < n; ++j) data[int64_t{j} * m + j] = T(1);
  ormqr(true, false, m, n, k, reflectors.data(), tau, data, s);
}

template <class T>
void Lapack<T>::ormqr(bool left, bool adjoint, int m, int n, int k, const T* data, const T* tau, T* c,
                      Scratch<T>&) {
  // c Q = (Q^H c^H)^H.
  const int rows = left ? m : n, columns = left ? n : m;
  std::vector<T> turned;
  if (!left) {
    turned.resize(static_cast<size_t>(int64_t{m} * n));
    for (int j = 0; j < n; ++j)
      for (int i = 0; i < m; ++i) turned[int64_t{i} * n + j] = conj_of(c[int64_t{j} * m + i]);
    adjoint = !adjoint;
  }
  T* target = left ? c : turned.data();
  for (int step = 0; step < k; ++step) {
    const int j = adjoint ? step : k - 1 - step;
    const T t = adjoint ? conj_of(tau[j]) : tau[j];
    for (int column = 0; column < columns; ++column)
      apply_reflector(rows - j, t, data + int64_t{j} * rows + j, target + int64_t{column} * rows + j);
  }
  if (!left)
    for (int j = 0; j < n; ++j)
      for (int i = 0; i < m; ++i) c[int64_t{j} * m + i] = conj_of(turned[int64_t{i} * n + j]);
}

// The shortest of the vectors nearest to b, from the singular value decomposition; full rank is left to QR.
template <class T>
int Lapack<T>::gels(Driver driver, int m, int n, int columns, T* a, T* b, R rcond, int* rank, R* s,
                    Scratch<T>& scratch) {
  const int k = std::min(m, n), most = std::max(m, n);
  std::vector<R> values(static_cast<size_t>(k));
  std::vector<T> u(static_cast<size_t>(int64_t{m} * k)), vh(static_cast<size_t>(int64_t{k} * n));
  if (const int info = gesvd(false, false, m, n, a, values.data(), u.data(), vh.data(), scratch)) return info;
  const bool any_rank = driver != Driver::Gels;
  if (any_rank && rcond < 0) rcond = std::numeric_limits<R>::epsilon();
  const R least = any_rank ? rcond * values[0] : 0;
  int found = 0;
  while (found < k && values[found] > least) ++found;
  if (!any_rank && found < k) return found + 1;
  for (int c = 0; c < columns; ++c) {
    T* x = b + int64_t{c} * most;
    std::vector<T> in_u(static_cast<size_t>(found)), solution(static_cast<size_t>(n));
    for (int j = 0; j < found; ++j) in_u[j] = dot(m, u.data() + int64_t{j} * m, x) / values[j];
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < found; ++j) solution[i] += conj_of(vh[int64_t{i} * k + j]) * in_u[j];
    // As LAPACK leaves it, the rest holds what the residual is made of.
    if (m > n) {
      R rest = 0;
      std::vector<T> left(x, x + m);
      for (int j = 0; j < k; ++j) {
        const T part = dot(m, u.data() + int64_t{j} * m, x);
        add_scaled(m, -part, u.data() + int64_t{j} * m, left.data());
      }
      rest = norm_of(m, left.data());
      std::fill(x + n, x + m, T(0));
      x[n] = rest;
    }
    std::copy(solution.begin(), solution.end(), x);
  }
  if (rank) *rank = found;
  if (s) std::copy(values.begin(), values.end(), s);
  return 0;
}

#define RL_INSTANTIATE(T)                                                                         \
  template int Lapack<T>::getrf(int, int, T*, int*);                                              \
  template void Lapack<T>::getrs(char, int, int, const T*, const int*, T*);                       \
  template void Lapack<T>::trsm(bool, char, bool, int, int, const T*, T*);                        \
  template int Lapack<T>::getri(int, T*, const int*, Scratch<T>&);                                \
  template int Lapack<T>::potrf(bool, int, T*);                                                   \
  template int Lapack<T>::potri(bool, int, T*);                                                   \
  template int Lapack<T>::sytrf(bool, int, T*, int*, Scratch<T>&);                                \
  template void Lapack<T>::sytrs(bool, int, int, const T*, const int*, T*);                       \
  template void Lapack<T>::geqrf(int, int, T*, T*, Scratch<T>&);                                  \
  template void Lapack<T>::orgqr(int, int, int, T*, const T*, Scratch<T>&);                       \
  template void Lapack<T>::ormqr(bool, bool, int, int, int, const T*, const T*, T*, Scratch<T>&); \
  template int Lapack<T>::gels(Driver, int, int, int, T*, T*, Real<T>, int*, Real<T>*, Scratch<T>&);
RL_INSTANTIATE(float)
RL_INSTANTIATE(double)
RL_INSTANTIATE(complex64)
RL_INSTANTIATE(complex128)
#undef RL_INSTANTIATE

}  // namespace rushlight::cpu
#endif
