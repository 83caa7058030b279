// Dense linear algebra on this device, as device/linalg.h names it, and its small kernels.
#pragma once
#include <cstdint>

#include "core/dtype.h"
#include "cpu/linalg.h"

namespace rushlight {
struct DeviceLinalg;
}

namespace rushlight::cuda {

DeviceLinalg linalg();

// Of it what solver_spectra.cpp has.
void eigh(int device, cpu::Batch batch, int64_t n, bool vectors, void* a, void* values, int32_t* info);
bool eig(int device, cpu::Batch batch, int64_t n, void* a, void* values, void* v, int32_t* info);
void svd(int device, cpu::Batch batch, bool by_qr, bool full, int64_t m, int64_t n, void* a, void* values,
         void* u, void* vh, int32_t* info);
void svd_of_high(int device, cpu::Batch batch, int64_t m, int64_t n, const void* a, void* values, void* u,
                 void* vh, int32_t* info);

// pointers[i] = base + i * bytes, on the device.
void point_at(int device, int64_t count, void* base, int64_t bytes, void** pointers);
// out[columns, rows] = the adjoint of in[rows, columns]; both by columns.
void adjoint(int device, DType dtype, int64_t rows, int64_t columns, const void* in, void* out);
// What two real columns stand for where the values of two neighbours are conjugates: vectors[n, n] of
// `dtype`, real, become complex.
void complex_vectors(int device, DType dtype, int64_t n, const void* values, const void* vectors, void* out);
// Pivots of L D L^T for matrices of n rows, checked.
void widen_pivots(int device, int64_t count, int64_t n, const int32_t* pivots, int64_t* out);
void narrow_pivots(int device, int64_t count, const int64_t* pivots, int32_t* out);
void permutation(int device, int64_t count, int64_t k, int64_t size, const int32_t* pivots, int64_t* rows);

}  // namespace rushlight::cuda
