// Factorisations and solvers for batches of dense matrices, each by columns without gaps, one after the
// other. For float, double and their complex types; singular values and eigenvalues of Hermitian matrices are
// real. `info` gets LAPACK's status on each matrix, pivots count from 1. See lapack.h.
#pragma once
#include "cpu/lapack.h"

namespace rushlight::cpu {

// What all matrices of a call have in common.
struct Batch {
  DType dtype;
  int64_t count;
};

void lu_factor(Batch, int64_t m, int64_t n, void* a, int32_t* pivots, int32_t* info);
// b[n, columns] = op(A)^-1 b; op is 'N', 'T' or 'C'.
void lu_solve(Batch, int64_t n, int64_t columns, char op, const void* lu, const int32_t* pivots, void* b);
// The inverse in place of lu_factor's result; of singular matrices what solving for the identity gives.
void lu_inverse(Batch, int64_t n, void* lu, const int32_t* pivots, const int32_t* info);
// The lower or upper factor, zeros on the other side.
void cholesky(Batch, int64_t n, bool upper, void* a, int32_t* info);
// The inverses of what `a` holds the factors of, in their place; where info is not 0 there is none.
void cholesky_inverse(Batch, int64_t n, bool upper, void* a, int32_t* info);
void triangular_solve(Batch, int64_t n, int64_t columns, bool upper, char op, bool unit, const void* a,
                      void* b);
void ldl_factor(Batch, int64_t n, bool hermitian, void* a, int32_t* pivots, int32_t* info);
void ldl_solve(Batch, int64_t n, int64_t columns, bool hermitian, const void* ld, const int32_t* pivots,
               void* b);
void geqrf(Batch, int64_t m, int64_t n, void* a, void* tau);
void orgqr(Batch, int64_t m, int64_t n, int64_t k, void* a, const void* tau);
void ormqr(Batch, bool left, bool adjoint, int64_t m, int64_t n, int64_t k, const void* a, const void* tau,
           void* c);
void eigh(Batch, int64_t n, bool vectors, void* a, void* values, int32_t* info);
// values and v are complex; v may be null.
void eig(Batch, int64_t n, void* a, void* values, void* v, int32_t* info);
// u[m, ku], s[k], vh[kv, n] with k = min(m, n); ku and kv are k, or all. u and vh may be null.
void svd(Batch, bool by_qr, bool full, int64_t m, int64_t n, void* a, void* s, void* u, void* vh,
         int32_t* info);
void least_squares(Batch, Driver driver, int64_t m, int64_t n, int64_t columns, double rcond, void* a,
                   void* b, int64_t* rank, void* s, int32_t* info);

}  // namespace rushlight::cpu
