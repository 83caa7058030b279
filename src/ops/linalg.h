// Factorisations, solvers, eigenvalues, norms and products of matrices: torch.linalg and its older names.
#pragma once
#include "dispatch/op.h"

namespace rushlight::ops {

// LU and what is solved with it.
inline Fn<std::tuple<Tensor, Tensor, Tensor>(const Tensor& A, bool pivot, bool check_errors)>
    linalg_lu_factor_ex;
inline Fn<std::tuple<Tensor, Tensor>(const Tensor& A, bool pivot)> linalg_lu_factor;
inline Fn<std::tuple<Tensor, Tensor, Tensor>(const Tensor& LU_data, const Tensor& LU_pivots, bool unpack_data,
                                             bool unpack_pivots)>
    lu_unpack;
inline Fn<Tensor(const Tensor& pivots, int64_t rows)> permutation_of_pivots;
inline Fn<Tensor(const Tensor& LU, const Tensor& pivots, const Tensor& B, bool left, bool adjoint)>
    linalg_lu_solve;
inline Fn<Tensor(const Tensor& A)> linalg_det, linalg_inv, det, inverse, logdet;
// by_rows: the factors are those of the transpose.
inline Fn<std::tuple<Tensor, Tensor, Tensor>(const Tensor& A, bool by_rows)> linalg_det_parts;
inline Fn<std::tuple<Tensor, Tensor, Tensor, Tensor>(const Tensor& A, bool by_rows)> linalg_slogdet_parts;
inline Fn<std::tuple<Tensor, Tensor>(const Tensor& A)> linalg_slogdet, slogdet;
inline Fn<std::tuple<Tensor, Tensor>(const Tensor& A, bool check_errors)> linalg_inv_ex;
inline Fn<Tensor(const Tensor& self, const Scalar& ord, const OptIntList& dim, bool keepdim, OptDType dtype)>
    linalg_powsum;
inline Fn<std::tuple<Tensor, Tensor, Tensor, Tensor>(const Tensor& A, const Tensor& B, bool left,
                                                     bool by_rows)>
    linalg_solve_parts;
inline Fn<std::tuple<Tensor, Tensor>(const Tensor& A, const Tensor& B, bool left, bool check_errors)>
    linalg_solve_ex;
inline Fn<Tensor(const Tensor& A, const Tensor& B, bool left)> linalg_solve;

// Triangles, Cholesky, L D L^T.
inline Fn<Tensor(const Tensor& A, const Tensor& B, bool upper, bool left, bool unitriangular)>
    linalg_solve_triangular;
inline Fn<std::tuple<Tensor, Tensor>(const Tensor& self, const Tensor& A, bool upper, bool transpose,
                                     bool unitriangular)>
    triangular_solve;
inline Fn<std::tuple<Tensor, Tensor>(const Tensor& A, bool upper, bool check_errors)> linalg_cholesky_ex;
inline Fn<Tensor(const Tensor& A, bool upper)> linalg_cholesky, cholesky_inverse;
inline Fn<Tensor(const Tensor& B, const Tensor& L, bool upper)> cholesky_solve;
inline Fn<std::tuple<Tensor, Tensor, Tensor>(const Tensor& A, bool hermitian, bool check_errors)>
    linalg_ldl_factor_ex;
inline Fn<Tensor(const Tensor& LD, const Tensor& pivots, const Tensor& B, bool hermitian)> linalg_ldl_solve;

// Reflectors and QR.
inline Fn<std::tuple<Tensor, Tensor>(const Tensor& A)> geqrf;
inline Fn<Tensor(const Tensor& A, const Tensor& tau)> linalg_householder_product;
inline Fn<Tensor(const Tensor& A, const Tensor& tau, const Tensor& other, bool left, bool transpose)> ormqr;
inline Fn<std::tuple<Tensor, Tensor>(const Tensor& A, std::string_view mode)> linalg_qr;

// Eigenvalues, singular values and what they give.
inline Fn<std::tuple<Tensor, Tensor>(const Tensor& A, std::string_view UPLO, bool compute_v)>
    linalg_eigh_parts;
inline Fn<std::tuple<Tensor, Tensor>(const Tensor& A)> linalg_eig;
inline Fn<Tensor(const Tensor& A)> linalg_eigvals, linalg_eigvals_only;
inline Fn<std::tuple<Tensor, Tensor>(const Tensor& A, std::string_view UPLO)> linalg_eigh;
inline Fn<Tensor(const Tensor& A, std::string_view UPLO)> linalg_eigvalsh;
using OptText = std::optional<std::string_view>;
inline Fn<std::tuple<Tensor, Tensor, Tensor>(const Tensor& A, bool full_matrices, bool compute_uv,
                                             OptText driver)>
    linalg_svd_parts;
inline Fn<std::tuple<Tensor, Tensor, Tensor>(const Tensor& A, bool full_matrices, OptText driver)> linalg_svd;
inline Fn<Tensor(const Tensor& A, OptText driver)> linalg_svdvals;
inline Fn<Tensor(const Tensor& A, const Tensor& atol, const Tensor& rtol, bool hermitian)> linalg_pinv;
inline Fn<std::tuple<Tensor, Tensor, Tensor, Tensor>(const Tensor& A, const Tensor& B,
                                                     std::optional<double> rcond, OptText driver)>
    linalg_lstsq;

// Norms and products.
inline Fn<Tensor(const Tensor& A, const Scalar& ord, IntList dim, bool keepdim, OptDType dtype)>
    linalg_matrix_norm;
inline Fn<Tensor(const Tensor& A, std::string_view ord, IntList dim, bool keepdim, OptDType dtype)>
    linalg_matrix_norm_name;
inline Fn<Tensor(const Tensor& A, int64_t n)> linalg_matrix_power;
inline Fn<Tensor(const Tensor& A)> linalg_matrix_exp;
inline Fn<Tensor(TensorList tensors)> linalg_multi_dot;
inline Fn<Tensor(const Tensor& self, const Tensor& other)> kron;
inline Fn<Tensor(const Tensor& x1, const Tensor& x2, double p, double eps, bool keepdim)> pairwise_distance;

}  // namespace rushlight::ops
