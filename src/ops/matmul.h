// Products of vectors and matrices.
#pragma once
#include "dispatch/op.h"

namespace rushlight::ops {

inline Fn<Tensor(const Tensor& self, const Tensor& mat2)> mm, bmm, mv, dot, vdot, outer, ger, inner, matmul;
inline Fn<Tensor(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                 const Scalar& alpha)>
    addmm, baddbmm, addbmm, addmv, addr;
inline Fn<Tensor(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                 const Scalar& alpha, bool use_gelu)>
    addmm_activation;
inline Fn<Tensor(const Tensor& input, const Tensor& weight, const Tensor& bias)> linear;
inline Fn<Tensor(const Tensor& self, const Tensor& other, IntList dims_self, IntList dims_other)> tensordot;

}  // namespace rushlight::ops
