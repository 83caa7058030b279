// The routines of LAPACK that linear algebra is made of, by element type (float, double and their complex
// types). lapack_library.cpp calls the library that is built in, lapack_own.cpp and lapack_own_eigen.cpp do
// without one. Matrices lie by columns without gaps, and no size is 0. Pivots count from 1, as LAPACK's do; a
// result is its `info`: 0, or where the routine gave up.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/dtype.h"

#if defined(RUSHLIGHT_WITH_MKL) || defined(RUSHLIGHT_WITH_OPENBLAS)
#define RL_WITH_LAPACK 1
#endif

namespace rushlight::cpu {

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

// Memory to work in, kept from one matrix to the next of the same shape.
template <class T>
struct Scratch {
  std::vector<T> work;
  std::vector<Real<T>> real;
  std::vector<int> integers;
};

enum class Driver : uint8_t { Gels, Gelsy, Gelsd, Gelss };

template <class T>
struct Lapack {
  using R = Real<T>;
  using C = std::complex<R>;

  // a[m, n] = P L U.
  static int getrf(int m, int n, T* a, int* pivots);
  // b[n, columns] = op(A)^-1 b, op as `trans` says: N, T or C.
  static void getrs(char trans, int n, int columns, const T* lu, const int* pivots, T* b);
  // The inverse in place of the factors.
  static int getri(int n, T* lu, const int* pivots, Scratch<T>& s);
  static void trsm(bool upper, char trans, bool unit, int n, int columns, const T* a, T* b);
  // The lower or upper factor; what lies on the other side of the diagonal stays.
  static int potrf(bool upper, int n, T* a);
  // The inverse of what it is the factor of, in the factor's triangle.
  static int potri(bool upper, int n, T* factor);
  // Bunch and Kaufman's L D L^T, or L D L^H, of the lower triangle.
  static int sytrf(bool hermitian, int n, T* a, int* pivots, Scratch<T>& s);
  static void sytrs(bool hermitian, int n, int columns, const T* ld, const int* pivots, T* b);
  // R over the reflectors that make up Q; tau[min(m, n)].
  static void geqrf(int m, int n, T* a, T* tau, Scratch<T>& s);
  // The first n columns of the product of k reflectors, in place of them.
  static void orgqr(int m, int n, int k, T* a, const T* tau, Scratch<T>& s);
  // c[m, n] = Q c, or c Q, or with Q^H.
  static void ormqr(bool left, bool adjoint, int m, int n, int k, const T* a, const T* tau, T* c,
                    Scratch<T>& s);
  // Eigenvalues in ascending order of the lower triangle; a becomes the vectors if they are wanted.
  static int heevd(bool vectors, int n, T* a, R* values, Scratch<T>& s);
  // v is null when no vectors are wanted.
  static int geev(int n, T* a, C* values, C* v, Scratch<T>& s);
  // a[m, n] = u diag(s) vh, all columns of u and rows of vh or the first min(m, n); null: not wanted. `by_qr`
  // takes the QR algorithm instead of divide and conquer.
  static int gesvd(bool by_qr, bool full, int m, int n, T* a, R* s, T* u, T* vh, Scratch<T>& scratch);
  // b[max(m, n), columns] becomes the least squares solution of a x = b. Gels fills no rank, only Gelsd and
  // Gelss fill s[min(m, n)].
  static int gels(Driver driver, int m, int n, int columns, T* a, T* b, R rcond, int* rank, R* s,
                  Scratch<T>& scratch);
};

}  // namespace rushlight::cpu
