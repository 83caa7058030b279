// Complex numbers on the device: those of the toolkit's own standard library, whose functions run there. To
// be included before the formulas.
#pragma once
#include <cuda/std/complex>

#include "core/dtype.h"

namespace rushlight {

template <class P>
using DeviceComplex = ::cuda::std::complex<P>;
template <>
inline constexpr bool is_complex_v<DeviceComplex<float>> = true;
template <>
inline constexpr bool is_complex_v<DeviceComplex<double>> = true;

}  // namespace rushlight

#define RL_COMPLEX_STD ::cuda::std
