// Discrete Fourier transforms. `normalization`: 0 none, 1 by the square root of the number of points, 2 by
// it.
#pragma once
#include "dispatch/op.h"

namespace rushlight::ops {

inline Fn<Tensor(const Tensor& self, IntList dim, int64_t normalization, bool forward)> fft_c2c;
inline Fn<Tensor(const Tensor& self, IntList dim, int64_t normalization, bool onesided)> fft_r2c;
inline Fn<Tensor(const Tensor& self, IntList dim, int64_t normalization, int64_t last_dim_size)> fft_c2r;

}  // namespace rushlight::ops

namespace rushlight {
class Table;
void register_fft_functions(Table& t);
}  // namespace rushlight
