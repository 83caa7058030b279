// Factorisations of dense matrices, column by column in memory: LAPACK from MKL where built in, own loops
// elsewhere. For float, double and their complex types; real results (singular values, eigenvalues) in the
// matching real type.
#pragma once
#include "core/dtype.h"

namespace rushlight::cpu {

// a[n, n] = P L U in place; pivots count from 0. Returns the first zero pivot's column + 1, or 0.
int64_t lu(DType dtype, int64_t n, void* a, int32_t* pivots);
// b[n, columns] = A^-1 b from lu's result.
void lu_solve(DType dtype, int64_t n, int64_t columns, const void* lu, const int32_t* pivots, void* b);
// The lower factor in place, zeros above. Returns the order of the first minor that is not positive, or 0.
int64_t cholesky(DType dtype, int64_t n, void* a);
// q[m, k], r[min(k, m), n] from a[m, n], which is overwritten; k is min(m, n), or m for all columns.
void qr(DType dtype, int64_t m, int64_t n, int64_t k, void* a, void* q, void* r);
// Eigenvalues in ascending order; a becomes the eigenvectors. Only the lower triangle is read. False: no
// convergence.
bool eigh(DType dtype, int64_t n, void* a, void* eigenvalues);
// a[m, n] = u[m, ku] diag(s) vh[kv, n]; ku and kv are min(m, n), or all. a is overwritten. False: no
// convergence.
bool svd(DType dtype, int64_t m, int64_t n, bool full, void* a, void* s, void* u, void* vh);
// b[n, columns] = A^-1 b for triangular A.
void triangular_solve(DType dtype, int64_t n, int64_t columns, const void* a, bool upper, bool unit, void* b);

}  // namespace rushlight::cpu
