// The routines of cuSOLVER, and of cuBLAS for batches of small matrices, by element type. Both libraries are
// found at run time; pointers to elements are void here, so that one table of signatures serves all types.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/dtype.h"
#include "cuda/blas_handle.h"

namespace rushlight::cuda::solver {

using Handle = void*;

// Values of the libraries' enumerations.
enum Operation : int { kPlain = 0, kTranspose = 1, kAdjoint = 2 };
enum Triangle : int { kLower = 0, kUpper = 1 };
enum Side : int { kLeft = 0, kRight = 1 };
enum Diagonal : int { kGiven = 0, kUnit = 1 };
enum EigenMode : int { kValues = 0, kVectors = 1 };

struct Libraries {
  Library solver{
      "cuSOLVER", {"cu13", "cusolver"}, {"libcusolver.so.12", "libcusolver.so.11"}, "nvidia-cusolver"};

  Entry<int(Handle*)> create{solver, "cusolverDnCreate"};
  Entry<int(Handle, void*)> set_stream{solver, "cusolverDnSetStream"};
  Entry<int(Handle*)> create_jacobi{solver, "cusolverDnCreateGesvdjInfo"};
  Entry<int(Handle)> destroy_jacobi{solver, "cusolverDnDestroyGesvdjInfo"};
  Entry<int(Handle*)> create_params{solver, "cusolverDnCreateParams"};
  Entry<int(Handle, Handle params, int mode, int triangle, int64_t n, int type, const void* a, int64_t lda,
            int value_type, const void* values, int compute, size_t* bytes, size_t* host_bytes,
            int64_t count)>
      syev_batched_size{solver, "cusolverDnXsyevBatched_bufferSize"};
  Entry<int(Handle, Handle params, int mode, int triangle, int64_t n, int type, void* a, int64_t lda,
            int value_type, void* values, int compute, void* work, size_t bytes, void* host_work,
            size_t host_bytes, int* infos, int64_t count)>
      syev_batched{solver, "cusolverDnXsyevBatched"};

  // Of any matrix: the left vectors are never asked for. Values are complex, vectors of a's type.
  NewerEntry<int(Handle, Handle params, int left, int right, int64_t n, int type, const void* a, int64_t lda,
                 int value_type, const void* values, int left_type, const void* vl, int64_t ldvl,
                 int right_type, const void* vr, int64_t ldvr, int compute, size_t* bytes,
                 size_t* host_bytes)>
      geev_size{solver, "cusolverDnXgeev_bufferSize"};
  NewerEntry<int(Handle, Handle params, int left, int right, int64_t n, int type, void* a, int64_t lda,
                 int value_type, void* values, int left_type, void* vl, int64_t ldvl, int right_type,
                 void* vr, int64_t ldvr, int compute, void* work, size_t bytes, void* host_work,
                 size_t host_bytes, int* info)>
      geev{solver, "cusolverDnXgeev"};

  // L D L^T, and L D L^H of complex matrices.
  NewerEntry<int(Handle, Handle params, int triangle, int64_t n, int type, const void* a, int64_t lda,
                 const int64_t* pivots, int compute, size_t* bytes, size_t* host_bytes)>
      hetrf_size{solver, "cusolverDnXhetrf_bufferSize"};
  NewerEntry<int(Handle, Handle params, int triangle, int64_t n, int type, void* a, int64_t lda,
                 int64_t* pivots, int compute, void* work, size_t bytes, void* host_work, size_t host_bytes,
                 int* info)>
      hetrf{solver, "cusolverDnXhetrf"};
  NewerEntry<int(Handle, int triangle, int64_t n, int64_t columns, int type, const void* a, int64_t lda,
                 const int64_t* pivots, int b_type, void* b, int64_t ldb, size_t* bytes, size_t* host_bytes)>
      sytrs_size{solver, "cusolverDnXsytrs_bufferSize"};
  NewerEntry<int(Handle, int triangle, int64_t n, int64_t columns, int type, const void* a, int64_t lda,
                 const int64_t* pivots, int b_type, void* b, int64_t ldb, void* work, size_t bytes,
                 void* host_work, size_t host_bytes, int* info)>
      sytrs{solver, "cusolverDnXsytrs"};
  // These take parameters too.
  NewerEntry<int(Handle, Handle params, int triangle, int64_t n, int64_t columns, int type, const void* a,
                 int64_t lda, const int64_t* pivots, int b_type, void* b, int64_t ldb, size_t* bytes,
                 size_t* host_bytes)>
      hetrs_size{solver, "cusolverDnXhetrs_bufferSize"};
  NewerEntry<int(Handle, Handle params, int triangle, int64_t n, int64_t columns, int type, const void* a,
                 int64_t lda, const int64_t* pivots, int b_type, void* b, int64_t ldb, void* work,
                 size_t bytes, void* host_work, size_t host_bytes, int* info)>
      hetrs{solver, "cusolverDnXhetrs"};
};
// Fails where one of them is missing.
Libraries& libraries();

// Sizes of workspaces are in elements, infos and pivots on the device unless a name says otherwise.
struct Routines {
  int (*getrf_size)(Handle, int m, int n, void* a, int lda, int* size);
  int (*getrf)(Handle, int m, int n, void* a, int lda, void* work, int* pivots, int* info);
  int (*getrs)(Handle, int op, int n, int columns, const void* lu, int lda, const int* pivots, void* b,
               int ldb, int* info);
  int (*potrf_size)(Handle, int triangle, int n, void* a, int lda, int* size);
  int (*potrf)(Handle, int triangle, int n, void* a, int lda, void* work, int size, int* info);
  int (*potrf_batched)(Handle, int triangle, int n, void** a, int lda, int* infos, int count);
  int (*geqrf_size)(Handle, int m, int n, void* a, int lda, int* size);
  int (*geqrf)(Handle, int m, int n, void* a, int lda, void* tau, void* work, int size, int* info);
  int (*orgqr_size)(Handle, int m, int n, int k, const void* a, int lda, const void* tau, int* size);
  int (*orgqr)(Handle, int m, int n, int k, void* a, int lda, const void* tau, void* work, int size,
               int* info);
  int (*ormqr_size)(Handle, int side, int op, int m, int n, int k, const void* a, int lda, const void* tau,
                    const void* c, int ldc, int* size);
  int (*ormqr)(Handle, int side, int op, int m, int n, int k, const void* a, int lda, const void* tau,
               void* c, int ldc, void* work, int size, int* info);
  int (*syevd_size)(Handle, int mode, int triangle, int n, const void* a, int lda, const void* values,
                    int* size);
  int (*syevd)(Handle, int mode, int triangle, int n, void* a, int lda, void* values, void* work, int size,
               int* info);
  int (*gesvd_size)(Handle, int m, int n, int* size);
  int (*gesvd)(Handle, signed char job_u, signed char job_vh, int m, int n, void* a, int lda, void* s,
               void* u, int ldu, void* vh, int ldvh, void* work, int size, void* real_work, int* info);
  int (*gesvdj_size)(Handle, int mode, int econ, int m, int n, const void* a, int lda, const void* s,
                     const void* u, int ldu, const void* v, int ldv, int* size, Handle jacobi);
  int (*gesvdj)(Handle, int mode, int econ, int m, int n, void* a, int lda, void* s, void* u, int ldu,
                void* v, int ldv, void* work, int size, int* info, Handle jacobi);
  int (*gesvda_size)(Handle, int mode, int rank, int m, int n, const void* a, int lda, long long a_step,
                     const void* s, long long s_step, const void* u, int ldu, long long u_step, const void* v,
                     int ldv, long long v_step, int* size, int count);
  int (*gesvda)(Handle, int mode, int rank, int m, int n, const void* a, int lda, long long a_step, void* s,
                long long s_step, void* u, int ldu, long long u_step, void* v, int ldv, long long v_step,
                void* work, int size, int* infos, double* host_norms, int count);
  int (*sytrf_size)(Handle, int n, void* a, int lda, int* size);
  int (*sytrf)(Handle, int triangle, int n, void* a, int lda, int* pivots, void* work, int size, int* info);
  // Of cuBLAS: arrays of pointers lie on the device, the infos of the last two are single numbers here.
  int (*getrf_batched)(Handle, int n, void* const* a, int lda, int* pivots, int* infos, int count);
  int (*getrs_batched)(Handle, int op, int n, int columns, const void* const* lu, int lda, const int* pivots,
                       void* const* b, int ldb, int* host_info, int count);
  int (*geqrf_batched)(Handle, int m, int n, void* const* a, int lda, void* const* tau, int* host_info,
                       int count);
  int (*trsm)(Handle, int side, int triangle, int op, int diagonal, int m, int n, const void* alpha,
              const void* a, int lda, void* b, int ldb);
  int (*trsm_batched)(Handle, int side, int triangle, int op, int diagonal, int m, int n, const void* alpha,
                      const void* const* a, int lda, void* const* b, int ldb, int count);
};
const Routines& routines(DType dtype);

// cudaDataType_t, and this thread's parameters for the calls that take one.
int data_type(DType dtype);
Handle params();

void check_status(int status, const char* what);

// The handles of this thread, on the current stream of a device, which must be the current one.
Handle solver_on(int device);
Handle blas_on(int device);

}  // namespace rushlight::cuda::solver
