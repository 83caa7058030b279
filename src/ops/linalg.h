// Factorisations and solvers; what is composed of them in Python is in rushlight/linalg.py.
#pragma once
#include "dispatch/op.h"

namespace rushlight::ops {

inline Fn<Tensor(const Tensor& A)> linalg_det, linalg_inv, det, inverse, logdet;
inline Fn<std::tuple<Tensor, Tensor>(const Tensor& A)> linalg_slogdet, slogdet;
inline Fn<Tensor(const Tensor& A, const Tensor& B)> linalg_solve_left;  // B is [..., n, k]
inline Fn<Tensor(const Tensor& A, const Tensor& B, bool left)> linalg_solve;
inline Fn<Tensor(const Tensor& A, const Tensor& B, bool upper, bool left, bool unitriangular)>
    linalg_solve_triangular;
inline Fn<Tensor(const Tensor& self, bool upper)> linalg_cholesky;
inline Fn<std::tuple<Tensor, Tensor>(const Tensor& A, std::string_view mode)> linalg_qr;
inline Fn<std::tuple<Tensor, Tensor>(const Tensor& A, std::string_view UPLO)> linalg_eigh;
inline Fn<std::tuple<Tensor, Tensor, Tensor>(const Tensor& A, bool full_matrices)> linalg_svd;
inline Fn<Tensor(const Tensor& self, const Tensor& other)> kron;

}  // namespace rushlight::ops
