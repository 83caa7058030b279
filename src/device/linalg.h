// Factorisations and solvers that a device's library provides: as their counterparts in cpu/linalg.h, on
// memory of `device`, with pivots and `info` there too. Nothing is waited for: what went wrong is read from
// `info`.
#pragma once
#include "core/device.h"
#include "cpu/linalg.h"

namespace rushlight {

class Tensor;

namespace detail {
template <class F>
struct OnDevice;
template <class... Parameters>
struct OnDevice<void(Parameters...)> {
  using type = void (*)(int device, Parameters...);
  using perhaps = bool (*)(int device, Parameters...);
};
}  // namespace detail
template <auto& loop>
using OnDevice = typename detail::OnDevice<std::remove_reference_t<decltype(loop)>>::type;
// False: the library that is installed has no such routine, and nothing was done.
template <auto& loop>
using PerhapsOnDevice = typename detail::OnDevice<std::remove_reference_t<decltype(loop)>>::perhaps;

struct DeviceLinalg {
  // Pivots may be null: no rows are exchanged.
  OnDevice<cpu::lu_factor> lu_factor = nullptr;
  OnDevice<cpu::lu_solve> lu_solve = nullptr;
  OnDevice<cpu::cholesky> cholesky = nullptr;  // what lies on the other side stays
  OnDevice<cpu::triangular_solve> triangular_solve = nullptr;
  OnDevice<cpu::geqrf> geqrf = nullptr;
  OnDevice<cpu::orgqr> orgqr = nullptr;
  OnDevice<cpu::ormqr> ormqr = nullptr;
  OnDevice<cpu::eigh> eigh = nullptr;
  PerhapsOnDevice<cpu::ldl_factor> ldl_factor = nullptr;
  PerhapsOnDevice<cpu::ldl_solve> ldl_solve = nullptr;
  PerhapsOnDevice<cpu::eig> eig = nullptr;
  // By Jacobi's method unless `by_qr`.
  OnDevice<cpu::svd> svd = nullptr;
  // An approximation for matrices of m >= n; the thin factors. u and vh may be null.
  void (*svd_of_high)(int device, cpu::Batch, int64_t m, int64_t n, const void* a, void* s, void* u, void* vh,
                      int32_t* info) = nullptr;
  // rows[count, size]: the order that k exchanges of rows lead to. Pivots out of range stop the kernel.
  void (*permutation)(int device, int64_t count, int64_t k, int64_t size, const int32_t* pivots,
                      int64_t* rows) = nullptr;
};
void register_device_linalg(DeviceType type, const DeviceLinalg* linalg);
const DeviceLinalg& device_linalg(DeviceType type);

}  // namespace rushlight
