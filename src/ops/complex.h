// Parts of complex numbers.
#pragma once
#include "dispatch/op.h"

namespace rushlight::ops {

inline Fn<Tensor(const Tensor& self)> real, imag, angle, conj, conj_physical, view_as_real, view_as_complex;
// Views whose conjugation or sign is pending; only the whole library has them. core/pending.h
inline Fn<Tensor(const Tensor& self)> conj_view, neg_view;
inline Fn<Tensor(const Tensor& real, const Tensor& imag)> complex;
inline Fn<Tensor(const Tensor& abs, const Tensor& angle)> polar;

}  // namespace rushlight::ops

namespace rushlight {
// The conjugate for complex tensors, the tensor itself for others: what derivatives multiply with.
inline Tensor conj_of(const Tensor& t) { return is_complex(t.dtype()) ? ops::conj_physical(t) : t; }
}  // namespace rushlight
