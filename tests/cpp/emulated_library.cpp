// NVIDIA's libraries as the emulated device finds them: its own functions of the same names. Handles are
// what streams they are on; work is put there and done on the host by src/cpu. Matrices come by columns
// without gaps here, and memory to work in is filled with bytes, so that too little of it shows.
#include <dlfcn.h>

#include <complex>
#include <cstring>
#include <vector>

#include "core/dtype.h"
#include "core/error.h"
#include "cpu/linalg.h"
#include "cuda/library.h"
#include "emulated_driver.h"

namespace rushlight::cuda {

Library::Library(const char* title, std::initializer_list<const char*>, std::initializer_list<const char*>,
                 const char* package)
    : title_(title), package_(package) {
  if (title_ == "NVRTC") {  // the real one, which needs no device
    const char* path = std::getenv("EMULATED_NVRTC");
    handle_ = path ? dlopen(path, RTLD_NOW) : nullptr;
    if (!handle_) failure_ = "NVRTC was not asked for";
    return;
  }
  Dl_info here;
  if (dladdr(reinterpret_cast<const void*>(&emulated::driver), &here))
    handle_ = dlopen(here.dli_fname, RTLD_NOW);
  const char* missing = std::getenv("EMULATED_MISSING_LIBRARY");
  if (missing && title_ == missing) failure_ = str(title_, " was not found: pip install ", package_);
}

void Library::require(const char* wish) const { RL_CHECK(found(), wish, " on CUDA need ", failure_); }

void* Library::address(const char* name) {
  void* found = handle_ ? dlsym(handle_, name) : nullptr;
  RL_ASSERT(found || !handle_, "there is no emulated function ", name);
  return found;
}

void* Library::address_if_there(const char* name) {
  const char* old = std::getenv("EMULATED_OLD_LIBRARY");
  return handle_ && !(old && title_ == old) ? dlsym(handle_, name) : nullptr;
}

}  // namespace rushlight::cuda

namespace {

using namespace rushlight;

struct Handle {
  void* stream = nullptr;
};

enum Status { kSuccess = 0, kInvalidValue = 3 };
enum { kLeft = 0, kUpper = 1, kUnit = 1, kVectors = 1 };

template <class F>
int on_stream(void* handle, F work) {
  emulated::enqueue_when(static_cast<Handle*>(handle)->stream, [] { return true; }, std::move(work));
  return kSuccess;
}
char letter(int op) { return "NTC"[op]; }
// What all sizes of workspaces are, in elements.
constexpr int kWork = 37;
template <class T>
void use(T* work, int size) {
  RL_ASSERT(size == kWork, "a workspace of ", size);
  std::memset(static_cast<void*>(work), 0x7f, kWork * sizeof(T));
}
cpu::Batch one(DType dtype) { return {dtype, 1}; }

// Without exchanges, as cuSOLVER does where pivots are null.
template <class T>
int factor_without_pivots(int m, int n, T* a) {
  int first_zero = 0;
  for (int k = 0; k < std::min(m, n); ++k) {
    const T pivot = a[k + k * m];
    if (pivot == T(0)) {
      if (!first_zero) first_zero = k + 1;
      continue;
    }
    for (int i = k + 1; i < m; ++i) a[i + k * m] /= pivot;
    for (int j = k + 1; j < n; ++j)
      for (int i = k + 1; i < m; ++i) a[i + j * m] -= a[i + k * m] * a[k + j * m];
  }
  return first_zero;
}

template <class T>
int getrf(DType type, void* h, int m, int n, T* a, int lda, T* work, int* pivots, int* info) {
  if (lda != m) return kInvalidValue;
  return on_stream(h, [=] {
    use(work, kWork);
    if (pivots)
      cpu::lu_factor(one(type), m, n, a, pivots, info);
    else
      *info = factor_without_pivots(m, n, a);
  });
}
template <class T>
int getrf_batched(DType type, void* h, int n, T* const* a, int lda, int* pivots, int* infos, int count) {
  if (lda != n) return kInvalidValue;
  return on_stream(h, [=] {
    for (int i = 0; i < count; ++i) {
      if (pivots)
        cpu::lu_factor(one(type), n, n, a[i], pivots + i * n, infos + i);
      else
        infos[i] = factor_without_pivots(n, n, a[i]);
    }
  });
}
template <class T>
int getrs(DType type, void* h, int op, int n, int k, const T* lu, int lda, const int* pivots, T* b, int ldb,
          int* info) {
  if (lda != n || ldb != n) return kInvalidValue;
  return on_stream(h, [=] {
    cpu::lu_solve(one(type), n, k, letter(op), lu, pivots, b);
    *info = 0;
  });
}
template <class T>
int getrs_batched(DType type, void* h, int op, int n, int k, const T* const* lu, int lda, const int* pivots,
                  T* const* b, int ldb, int* info, int count) {
  if (lda != n || ldb != n) return kInvalidValue;
  *info = 0;
  return on_stream(h, [=] {
    for (int i = 0; i < count; ++i) cpu::lu_solve(one(type), n, k, letter(op), lu[i], pivots + i * n, b[i]);
  });
}

// The other triangle stays, unlike on the CPU.
template <class T>
void factor_triangle(DType type, bool upper, int n, T* a, int* info) {
  const std::vector<T> before(a, a + n * n);
  cpu::cholesky(one(type), n, upper, a, info);
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < n; ++i)
      if (upper ? i > j : i < j) a[i + j * n] = before[static_cast<size_t>(i + j * n)];
}
template <class T>
int potrf(DType type, void* h, int triangle, int n, T* a, int lda, T* work, int size, int* info) {
  if (lda != n) return kInvalidValue;
  return on_stream(h, [=] {
    use(work, size);
    factor_triangle(type, triangle == kUpper, n, a, info);
  });
}
template <class T>
int potrf_batched(DType type, void* h, int triangle, int n, T** a, int lda, int* infos, int count) {
  if (lda != n) return kInvalidValue;
  return on_stream(h, [=] {
    for (int i = 0; i < count; ++i) factor_triangle(type, triangle == kUpper, n, a[i], infos + i);
  });
}

template <class T>
int geqrf(DType type, void* h, int m, int n, T* a, int lda, T* tau, T* work, int size, int* info) {
  if (lda != m) return kInvalidValue;
  return on_stream(h, [=] {
    use(work, size);
    cpu::geqrf(one(type), m, n, a, tau);
    *info = 0;
  });
}
template <class T>
int geqrf_batched(DType type, void* h, int m, int n, T* const* a, int lda, T* const* tau, int* info,
                  int count) {
  if (lda != m) return kInvalidValue;
  *info = 0;
  return on_stream(h, [=] {
    for (int i = 0; i < count; ++i) cpu::geqrf(one(type), m, n, a[i], tau[i]);
  });
}
template <class T>
int orgqr(DType type, void* h, int m, int n, int k, T* a, int lda, const T* tau, T* work, int size,
          int* info) {
  if (lda != m || n > m || k > n) return kInvalidValue;
  return on_stream(h, [=] {
    use(work, size);
    cpu::orgqr(one(type), m, n, k, a, tau);
    *info = 0;
  });
}
template <class T>
int ormqr(DType type, void* h, int side, int op, int m, int n, int k, const T* a, int lda, const T* tau, T* c,
          int ldc, T* work, int size, int* info) {
  const bool left = side == kLeft, complex = is_complex(type);
  if (ldc != m || lda != (left ? m : n) || (op && op != (complex ? 2 : 1))) return kInvalidValue;
  return on_stream(h, [=] {
    use(work, size);
    cpu::ormqr(one(type), left, op != 0, m, n, k, a, tau, c);
    *info = 0;
  });
}

template <class T>
int syevd(DType type, void* h, int mode, int triangle, int n, T* a, int lda, cpu::Real<T>* values, T* work,
          int size, int* info) {
  if (lda != n || triangle == kUpper) return kInvalidValue;
  return on_stream(h, [=] {
    use(work, size);
    cpu::eigh(one(type), n, mode == kVectors, a, values, info);
  });
}

template <class T>
int gesvd(DType type, void* h, signed char job_u, signed char job_vh, int m, int n, T* a, int lda,
          cpu::Real<T>* s, T* u, int ldu, T* vh, int ldvh, T* work, int size, cpu::Real<T>* real_work,
          int* info) {
  if (m < n || lda != m || ldu != m || ldvh != n || job_u != job_vh) return kInvalidValue;
  return on_stream(h, [=] {
    use(work, size);
    std::fill_n(real_work, n, cpu::Real<T>(-1));
    const bool wanted = job_u != 'N';
    cpu::svd(one(type), true, job_u == 'A', m, n, a, s, wanted ? u : nullptr, wanted ? vh : nullptr, info);
  });
}
// Gives V where the others give its adjoint. It fails for matrices that begin with 12345.
template <class T>
int gesvdj(DType type, void* h, int mode, int econ, int m, int n, T* a, int lda, cpu::Real<T>* s, T* u,
           int ldu, T* v, int ldv, T* work, int size, int* info, void* jacobi) {
  if (lda != m || ldu != m || ldv != n || !jacobi) return kInvalidValue;
  return on_stream(h, [=] {
    use(work, size);
    const bool wanted = mode == kVectors, fails = a[0] == T(12345);
    const int rows = econ ? std::min(m, n) : n;
    std::vector<T> vh(static_cast<size_t>(rows * n));
    cpu::svd(one(type), false, !econ, m, n, a, s, wanted ? u : nullptr, wanted ? vh.data() : nullptr, info);
    if (fails) *info = n + 1, s[0] = 0;
    for (int i = 0; wanted && i < rows; ++i)
      for (int j = 0; j < n; ++j) v[j + i * n] = cpu::conj_of(vh[static_cast<size_t>(i + j * rows)]);
  });
}

// High matrices, which stay as they are. Gives V too.
template <class T>
int gesvda(DType type, void* h, int mode, int rank, int m, int n, const T* a, int lda, long long a_step,
           cpu::Real<T>* s, long long s_step, T* u, int ldu, long long u_step, T* v, int ldv,
           long long v_step, T* work, int size, int* infos, double* norms, int count) {
  if (m < n || rank != n || lda != m || ldu != m || ldv != n || s_step != n || norms) return kInvalidValue;
  return on_stream(h, [=] {
    use(work, size);
    for (int b = 0; b < count; ++b) {
      std::vector<T> copy(a + b * a_step, a + b * a_step + m * n), vh(static_cast<size_t>(n * n));
      const bool wanted = mode == kVectors;
      cpu::svd(one(type), false, false, m, n, copy.data(), s + b * s_step, wanted ? u + b * u_step : nullptr,
               wanted ? vh.data() : nullptr, infos + b);
      for (int i = 0; wanted && i < n; ++i)
        for (int j = 0; j < n; ++j)
          v[b * v_step + j + i * n] = cpu::conj_of(vh[static_cast<size_t>(i + j * n)]);
    }
  });
}

template <class T>
int sytrf(DType type, void* h, int triangle, int n, T* a, int lda, int* pivots, T* work, int size,
          int* info) {
  if (lda != n || triangle == kUpper) return kInvalidValue;
  return on_stream(h, [=] {
    use(work, size);
    cpu::ldl_factor(one(type), n, false, a, pivots, info);
  });
}

template <class T>
int trsm(DType type, void* h, int side, int triangle, int op, int diagonal, int m, int n, const T* alpha,
         const T* a, int lda, T* b, int ldb) {
  if (side != kLeft || *alpha != T(1) || lda != m || ldb != m) return kInvalidValue;
  return on_stream(h, [=] {
    cpu::triangular_solve(one(type), m, n, triangle == kUpper, letter(op), diagonal == kUnit, a, b);
  });
}
template <class T>
int trsm_batched(DType type, void* h, int side, int triangle, int op, int diagonal, int m, int n,
                 const T* alpha, const T* const* a, int lda, T* const* b, int ldb, int count) {
  if (side != kLeft || *alpha != T(1) || lda != m || ldb != m) return kInvalidValue;
  return on_stream(h, [=] {
    for (int i = 0; i < count; ++i)
      cpu::triangular_solve(one(type), m, n, triangle == kUpper, letter(op), diagonal == kUnit, a[i], b[i]);
  });
}

int create(void** handle) {
  *handle = new Handle;
  return kSuccess;
}
int put_on(void* handle, void* stream) {
  static_cast<Handle*>(handle)->stream = stream;
  return kSuccess;
}
int tell(int* size) {
  *size = kWork;
  return kSuccess;
}

// cudaDataType_t
constexpr DType kTypes[] = {DType::Float32, DType::Float64,   DType::Float32,
                            DType::Float32, DType::Complex64, DType::Complex128};
int tell(size_t* bytes, size_t* host_bytes) {
  *bytes = kWork, *host_bytes = 3;
  return kSuccess;
}

int solve_ldl(void* h, bool hermitian, int triangle, int64_t n, int64_t columns, int type, const void* a,
              int64_t lda, const int64_t* pivots, int b_type, void* b, int64_t ldb, void* work, size_t bytes,
              int* info) {
  if (lda != n || ldb != n || triangle == kUpper || type != b_type) return kInvalidValue;
  return on_stream(h, [=] {
    use(static_cast<char*>(work), static_cast<int>(bytes));
    const std::vector<int32_t> rows(pivots, pivots + n);
    cpu::ldl_solve(one(kTypes[type]), n, columns, hermitian, a, rows.data(), b);
    *info = 0;
  });
}

// Complex vectors of a real matrix as real columns, as LAPACK has them.
template <class R>
void split_pairs(int64_t n, const std::complex<R>* values, const std::complex<R>* v, R* columns) {
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < n; ++i)
      columns[j * n + i] = values[j].imag() < 0 ? v[(j - 1) * n + i].imag() : v[j * n + i].real();
}

}  // namespace

extern "C" {

int cusolverDnXgeev_bufferSize(void*, void* params, int left, int, int64_t, int, const void*, int64_t, int,
                               const void*, int, const void*, int64_t, int, const void*, int64_t, int,
                               size_t* bytes, size_t* host_bytes) {
  return params && !left ? tell(bytes, host_bytes) : kInvalidValue;
}
int cusolverDnXgeev(void* h, void* params, int left, int right, int64_t n, int type, void* a, int64_t lda,
                    int value_type, void* values, int, void*, int64_t, int right_type, void* vr, int64_t ldvr,
                    int compute, void* work, size_t bytes, void* host_work, size_t host_bytes, int* info) {
  if (!params || left || lda != n || ldvr != n || value_type != (type | 4) || right_type != type ||
      compute != type)
    return kInvalidValue;
  return on_stream(h, [=] {
    use(static_cast<char*>(work), static_cast<int>(bytes));
    std::memset(host_work, 1, host_bytes);
    const DType dtype = kTypes[type];
    if (is_complex(dtype) || right != kVectors)
      return cpu::eig(one(dtype), n, a, values, right == kVectors ? vr : nullptr, info);
    auto run = [&](auto zero) {
      using C = std::complex<decltype(zero)>;
      std::vector<C> v(static_cast<size_t>(n * n));
      cpu::eig(one(dtype), n, a, values, v.data(), info);
      split_pairs(n, static_cast<const C*>(values), v.data(), static_cast<decltype(zero)*>(vr));
    };
    dtype == DType::Float32 ? run(0.0f) : run(0.0);
  });
}

int cusolverDnXhetrf_bufferSize(void*, void* params, int, int64_t, int, const void*, int64_t, const int64_t*,
                                int, size_t* bytes, size_t* host_bytes) {
  return params ? tell(bytes, host_bytes) : kInvalidValue;
}
int cusolverDnXhetrf(void* h, void* params, int triangle, int64_t n, int type, void* a, int64_t lda,
                     int64_t* pivots, int compute, void* work, size_t bytes, void*, size_t, int* info) {
  if (!params || lda != n || triangle == kUpper || compute != type) return kInvalidValue;
  return on_stream(h, [=] {
    use(static_cast<char*>(work), static_cast<int>(bytes));
    std::vector<int32_t> rows(static_cast<size_t>(n));
    cpu::ldl_factor(one(kTypes[type]), n, true, a, rows.data(), info);
    std::copy(rows.begin(), rows.end(), pivots);
  });
}
int cusolverDnXsytrs_bufferSize(void*, int, int64_t, int64_t, int, const void*, int64_t, const int64_t*, int,
                                void*, int64_t, size_t* bytes, size_t* host_bytes) {
  return tell(bytes, host_bytes);
}
int cusolverDnXsytrs(void* h, int up, int64_t n, int64_t k, int type, const void* a, int64_t lda,
                     const int64_t* p, int b_type, void* b, int64_t ldb, void* w, size_t bytes, void*, size_t,
                     int* i) {
  return solve_ldl(h, false, up, n, k, type, a, lda, p, b_type, b, ldb, w, bytes, i);
}
int cusolverDnXhetrs_bufferSize(void*, void* params, int, int64_t, int64_t, int type, const void*, int64_t,
                                const int64_t*, int, void*, int64_t, size_t* bytes, size_t* host_bytes) {
  return params && is_complex(kTypes[type]) ? tell(bytes, host_bytes) : kInvalidValue;
}
int cusolverDnXhetrs(void* h, void* params, int up, int64_t n, int64_t k, int type, const void* a,
                     int64_t lda, const int64_t* p, int b_type, void* b, int64_t ldb, void* w, size_t bytes,
                     void*, size_t, int* i) {
  if (!params || !is_complex(kTypes[type])) return kInvalidValue;
  return solve_ldl(h, true, up, n, k, type, a, lda, p, b_type, b, ldb, w, bytes, i);
}

int cusolverDnCreate(void** handle) { return create(handle); }
int cusolverDnCreateParams(void** handle) { return create(handle); }
int cusolverDnCreateGesvdjInfo(void** handle) { return create(handle); }
int cusolverDnDestroyGesvdjInfo(void* handle) {
  delete static_cast<Handle*>(handle);
  return kSuccess;
}
int cusolverDnSetStream(void* handle, void* stream) { return put_on(handle, stream); }
int cublasCreate_v2(void** handle) { return create(handle); }
int cublasSetStream_v2(void* handle, void* stream) { return put_on(handle, stream); }

int cusolverDnXsyevBatched_bufferSize(void*, void* params, int, int, int64_t, int, const void*, int64_t, int,
                                      const void*, int, size_t* bytes, size_t* host_bytes, int64_t) {
  *bytes = kWork, *host_bytes = 0;
  return params ? kSuccess : kInvalidValue;
}
int cusolverDnXsyevBatched(void* h, void* params, int mode, int triangle, int64_t n, int type, void* a,
                           int64_t lda, int value_type, void* values, int compute, void* work, size_t bytes,
                           void*, size_t, int* infos, int64_t count) {
  if (!params || lda != n || triangle == kUpper || compute != type || value_type != type % 4)
    return kInvalidValue;
  return on_stream(h, [=] {
    use(static_cast<char*>(work), static_cast<int>(bytes));
    cpu::eigh({kTypes[type], count}, n, mode == kVectors, a, values, infos);
  });
}

// The functions of one letter; the last three have names of their own for complex types.
#define RL_EMULATE(L, T, R, type, GQR, MQR, EVD)                                                             \
  int cusolverDn##L##getrf_bufferSize(void*, int, int, T*, int, int* n) { return tell(n); }                  \
  int cusolverDn##L##getrf(void* h, int m, int n, T* a, int lda, T* w, int* p, int* i) {                     \
    return getrf(type, h, m, n, a, lda, w, p, i);                                                            \
  }                                                                                                          \
  int cusolverDn##L##getrs(void* h, int op, int n, int k, const T* a, int lda, const int* p, T* b, int ldb,  \
                           int* i) {                                                                         \
    return getrs(type, h, op, n, k, a, lda, p, b, ldb, i);                                                   \
  }                                                                                                          \
  int cusolverDn##L##potrf_bufferSize(void*, int, int, T*, int, int* n) { return tell(n); }                  \
  int cusolverDn##L##potrf(void* h, int up, int n, T* a, int lda, T* w, int size, int* i) {                  \
    return potrf(type, h, up, n, a, lda, w, size, i);                                                        \
  }                                                                                                          \
  int cusolverDn##L##potrfBatched(void* h, int up, int n, T** a, int lda, int* i, int count) {               \
    return potrf_batched(type, h, up, n, a, lda, i, count);                                                  \
  }                                                                                                          \
  int cusolverDn##L##geqrf_bufferSize(void*, int, int, T*, int, int* n) { return tell(n); }                  \
  int cusolverDn##L##geqrf(void* h, int m, int n, T* a, int lda, T* t, T* w, int size, int* i) {             \
    return geqrf(type, h, m, n, a, lda, t, w, size, i);                                                      \
  }                                                                                                          \
  int cusolverDn##L##GQR##_bufferSize(void*, int, int, int, const T*, int, const T*, int* n) {               \
    return tell(n);                                                                                          \
  }                                                                                                          \
  int cusolverDn##L##GQR(void* h, int m, int n, int k, T* a, int lda, const T* t, T* w, int size, int* i) {  \
    return orgqr(type, h, m, n, k, a, lda, t, w, size, i);                                                   \
  }                                                                                                          \
  int cusolverDn##L##MQR##_bufferSize(void*, int, int, int, int, int, const T*, int, const T*, const T*,     \
                                      int, int* n) {                                                         \
    return tell(n);                                                                                          \
  }                                                                                                          \
  int cusolverDn##L##MQR(void* h, int side, int op, int m, int n, int k, const T* a, int lda, const T* t,    \
                         T* c, int ldc, T* w, int size, int* i) {                                            \
    return ormqr(type, h, side, op, m, n, k, a, lda, t, c, ldc, w, size, i);                                 \
  }                                                                                                          \
  int cusolverDn##L##EVD##_bufferSize(void*, int, int, int, const T*, int, const R*, int* n) {               \
    return tell(n);                                                                                          \
  }                                                                                                          \
  int cusolverDn##L##EVD(void* h, int mode, int up, int n, T* a, int lda, R* v, T* w, int size, int* i) {    \
    return syevd(type, h, mode, up, n, a, lda, v, w, size, i);                                               \
  }                                                                                                          \
  int cusolverDn##L##gesvd_bufferSize(void*, int m, int n, int* size) {                                      \
    return m < n ? kInvalidValue : tell(size);                                                               \
  }                                                                                                          \
  int cusolverDn##L##gesvd(void* h, signed char u, signed char v, int m, int n, T* a, int lda, R* s, T* x,   \
                           int ldu, T* y, int ldv, T* w, int size, R* r, int* i) {                           \
    return gesvd(type, h, u, v, m, n, a, lda, s, x, ldu, y, ldv, w, size, r, i);                             \
  }                                                                                                          \
  int cusolverDn##L##gesvdj_bufferSize(void*, int, int, int, int, const T*, int, const R*, const T*, int,    \
                                       const T*, int, int* n, void*) {                                       \
    return tell(n);                                                                                          \
  }                                                                                                          \
  int cusolverDn##L##gesvdj(void* h, int mode, int econ, int m, int n, T* a, int lda, R* s, T* u, int ldu,   \
                            T* v, int ldv, T* w, int size, int* i, void* j) {                                \
    return gesvdj(type, h, mode, econ, m, n, a, lda, s, u, ldu, v, ldv, w, size, i, j);                      \
  }                                                                                                          \
  int cusolverDn##L##gesvdaStridedBatched_bufferSize(void*, int, int, int m, int n, const T*, int,           \
                                                     long long, const R*, long long, const T*, int,          \
                                                     long long, const T*, int, long long, int* size, int) {  \
    return m < n ? kInvalidValue : tell(size);                                                               \
  }                                                                                                          \
  int cusolverDn##L##gesvdaStridedBatched(void* h, int mode, int rank, int m, int n, const T* a, int lda,    \
                                          long long as, R* s, long long ss, T* u, int ldu, long long us,     \
                                          T* v, int ldv, long long vs, T* w, int size, int* i,               \
                                          double* norms, int count) {                                        \
    return gesvda(type, h, mode, rank, m, n, a, lda, as, s, ss, u, ldu, us, v, ldv, vs, w, size, i, norms,   \
                  count);                                                                                    \
  }                                                                                                          \
  int cusolverDn##L##sytrf_bufferSize(void*, int, T*, int, int* n) { return tell(n); }                       \
  int cusolverDn##L##sytrf(void* h, int up, int n, T* a, int lda, int* p, T* w, int size, int* i) {          \
    return sytrf(type, h, up, n, a, lda, p, w, size, i);                                                     \
  }                                                                                                          \
  int cublas##L##getrfBatched(void* h, int n, T* const* a, int lda, int* p, int* i, int count) {             \
    return getrf_batched(type, h, n, a, lda, p, i, count);                                                   \
  }                                                                                                          \
  int cublas##L##getrsBatched(void* h, int op, int n, int k, const T* const* a, int lda, const int* p,       \
                              T* const* b, int ldb, int* i, int count) {                                     \
    return getrs_batched(type, h, op, n, k, a, lda, p, b, ldb, i, count);                                    \
  }                                                                                                          \
  int cublas##L##geqrfBatched(void* h, int m, int n, T* const* a, int lda, T* const* t, int* i, int count) { \
    return geqrf_batched(type, h, m, n, a, lda, t, i, count);                                                \
  }                                                                                                          \
  int cublas##L##trsm_v2(void* h, int side, int up, int op, int unit, int m, int n, const T* one,            \
                         const T* a, int lda, T* b, int ldb) {                                               \
    return trsm(type, h, side, up, op, unit, m, n, one, a, lda, b, ldb);                                     \
  }                                                                                                          \
  int cublas##L##trsmBatched(void* h, int side, int up, int op, int unit, int m, int n, const T* one,        \
                             const T* const* a, int lda, T* const* b, int ldb, int count) {                  \
    return trsm_batched(type, h, side, up, op, unit, m, n, one, a, lda, b, ldb, count);                      \
  }

RL_EMULATE(S, float, float, DType::Float32, orgqr, ormqr, syevd)
RL_EMULATE(D, double, double, DType::Float64, orgqr, ormqr, syevd)
RL_EMULATE(C, std::complex<float>, float, DType::Complex64, ungqr, unmqr, heevd)
RL_EMULATE(Z, std::complex<double>, double, DType::Complex128, ungqr, unmqr, heevd)
}
