// Factorisations and solvers by cuSOLVER, one matrix after the other; many small ones in one call where
// cuSOLVER or cuBLAS have one for batches. Workspaces are of the current stream's pool.
#include "cuda/solver.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "core/device_backend.h"
#include "cuda/solver_api.h"
#include "cuda/workspace.h"
#include "dispatch/device_linalg.h"

namespace rushlight::cuda {
namespace {

using cpu::Batch;
using solver::check_status;

// Above this size a matrix keeps the device busy, and calls for batches are made for smaller ones.
constexpr int64_t kMostInBatch = 512;

int as_int(int64_t n) {
  RL_CHECK(n <= std::numeric_limits<int>::max(), "linear algebra on CUDA: a dimension of ", n,
           " is more than cuSOLVER can count");
  return static_cast<int>(n);
}

int operation(char op) {
  return op == 'N' ? solver::kPlain : op == 'T' ? solver::kTranspose : solver::kAdjoint;
}
int triangle(bool upper) { return upper ? solver::kUpper : solver::kLower; }

// What the calls for one operator share.
class Session {
 public:
  Session(int device, Batch batch)
      : device(device),
        dtype(batch.dtype),
        element(static_cast<int64_t>(element_size(batch.dtype))),
        count(batch.count),
        scope_(device_backend(DeviceType::CUDA).driver(), device),
        routines_(solver::routines(batch.dtype)),
        handle(solver::solver_on(device)) {}

  const int device;
  const DType dtype;
  const int64_t element, count;

 private:
  const DeviceScope scope_;
  const solver::Routines& routines_;

 public:
  const solver::Handle handle;

  const solver::Routines* operator->() const { return &routines_; }
  solver::Handle blas() const { return solver::blas_on(device); }
  void* at(const void* data, int64_t i, int64_t elements) const {
    return data ? static_cast<char*>(const_cast<void*>(data)) + i * elements * element : nullptr;
  }
  // Singular values and eigenvalues of Hermitian matrices.
  void* real_at(void* data, int64_t i, int64_t elements) const {
    return static_cast<char*>(data) + i * elements * (is_complex(dtype) ? element / 2 : element);
  }
  Workspace elements(int64_t n) const {
    return {static_cast<size_t>(std::max<int64_t>(n, 1) * element), device};
  }
  Workspace integer() const { return {sizeof(int), device}; }
  // `what` was given to the stream: pass an error on, and name it in reports.
  void done(int status, const char* what) const {
    check_status(status, what);
    device_backend(DeviceType::CUDA).launched(device, what);
  }
};

// Pointers to the matrices of a batch, on the device.
struct Pointers : Workspace {
  Pointers(const Session& s, const void* data, int64_t elements)
      : Workspace(static_cast<size_t>(s.count) * sizeof(void*), s.device) {
    point_at(s.device, s.count, const_cast<void*>(data), elements * s.element, list());
  }
  void** list() const { return static_cast<void**>(data()); }
};

bool in_one_call(const Batch& batch, int64_t n) { return batch.count > 1 && n <= kMostInBatch; }
int* info_at(const Workspace& w) { return static_cast<int*>(w.data()); }

void lu_factor(int device, Batch batch, int64_t m, int64_t n, void* a, int32_t* pivots, int32_t* info) {
  const Session s(device, batch);
  const int rows = as_int(m), columns = as_int(n);
  if (m == n && in_one_call(batch, n)) {
    const Pointers list(s, a, n * n);
    return s.done(s->getrf_batched(s.blas(), columns, list.list(), columns, pivots, info, as_int(s.count)),
                  "getrfBatched");
  }
  int size = 0;
  check_status(s->getrf_size(s.handle, rows, columns, a, rows, &size), "getrf_bufferSize");
  const Workspace work = s.elements(size);
  for (int64_t i = 0; i < s.count; ++i)
    s.done(s->getrf(s.handle, rows, columns, s.at(a, i, m * n), rows, work.data(),
                    pivots ? pivots + i * std::min(m, n) : nullptr, info + i),
           "getrf");
}

void lu_solve(int device, Batch batch, int64_t n, int64_t columns, char op, const void* lu,
              const int32_t* pivots, void* b) {
  const Session s(device, batch);
  const int size = as_int(n), k = as_int(columns);
  if (in_one_call(batch, n)) {
    const Pointers left(s, lu, n * n), right(s, b, n * columns);
    int info = 0;
    return s.done(s->getrs_batched(s.blas(), operation(op), size, k, left.list(), size, pivots, right.list(),
                                   size, &info, as_int(s.count)),
                  "getrsBatched");
  }
  const Workspace info = s.integer();
  for (int64_t i = 0; i < s.count; ++i)
    s.done(s->getrs(s.handle, operation(op), size, k, s.at(lu, i, n * n), size, pivots + i * n,
                    s.at(b, i, n * columns), size, info_at(info)),
           "getrs");
}

void cholesky(int device, Batch batch, int64_t n, bool upper, void* a, int32_t* info) {
  const Session s(device, batch);
  const int order = as_int(n);
  if (in_one_call(batch, n)) {
    const Pointers list(s, a, n * n);
    return s.done(
        s->potrf_batched(s.handle, triangle(upper), order, list.list(), order, info, as_int(s.count)),
        "potrfBatched");
  }
  int size = 0;
  check_status(s->potrf_size(s.handle, triangle(upper), order, a, order, &size), "potrf_bufferSize");
  const Workspace work = s.elements(size);
  for (int64_t i = 0; i < s.count; ++i)
    s.done(s->potrf(s.handle, triangle(upper), order, s.at(a, i, n * n), order, work.data(), size, info + i),
           "potrf");
}

void triangular_solve(int device, Batch batch, int64_t n, int64_t columns, bool upper, char op, bool unit,
                      const void* a, void* b) {
  const Session s(device, batch);
  const int size = as_int(n), k = as_int(columns), diagonal = unit ? solver::kUnit : solver::kGiven;
  // One, in the element's type.
  alignas(16) unsigned char one[16] = {};
  const float single = 1;
  const double wide = 1;
  if (real_dtype(s.dtype) == DType::Float32)
    std::copy_n(reinterpret_cast<const unsigned char*>(&single), sizeof single, one);
  else
    std::copy_n(reinterpret_cast<const unsigned char*>(&wide), sizeof wide, one);
  const solver::Handle blas = s.blas();
  if (in_one_call(batch, n)) {
    const Pointers left(s, a, n * n), right(s, b, n * columns);
    return s.done(s->trsm_batched(blas, solver::kLeft, triangle(upper), operation(op), diagonal, size, k, one,
                                  left.list(), size, right.list(), size, as_int(s.count)),
                  "trsmBatched");
  }
  for (int64_t i = 0; i < s.count; ++i)
    s.done(s->trsm(blas, solver::kLeft, triangle(upper), operation(op), diagonal, size, k, one,
                   s.at(a, i, n * n), size, s.at(b, i, n * columns), size),
           "trsm");
}

void geqrf(int device, Batch batch, int64_t m, int64_t n, void* a, void* tau) {
  const Session s(device, batch);
  const int rows = as_int(m), columns = as_int(n);
  const int64_t k = std::min(m, n);
  if (in_one_call(batch, std::max(m, n))) {
    const Pointers list(s, a, m * n), factors(s, tau, k);
    int info = 0;
    return s.done(
        s->geqrf_batched(s.blas(), rows, columns, list.list(), rows, factors.list(), &info, as_int(s.count)),
        "geqrfBatched");
  }
  int size = 0;
  check_status(s->geqrf_size(s.handle, rows, columns, a, rows, &size), "geqrf_bufferSize");
  const Workspace work = s.elements(size), info = s.integer();
  for (int64_t i = 0; i < s.count; ++i)
    s.done(s->geqrf(s.handle, rows, columns, s.at(a, i, m * n), rows, s.at(tau, i, k), work.data(), size,
                    info_at(info)),
           "geqrf");
}

void orgqr(int device, Batch batch, int64_t m, int64_t n, int64_t k, void* a, const void* tau) {
  const Session s(device, batch);
  const int rows = as_int(m), columns = as_int(n), reflectors = as_int(k);
  int size = 0;
  check_status(s->orgqr_size(s.handle, rows, columns, reflectors, a, rows, tau, &size), "orgqr_bufferSize");
  const Workspace work = s.elements(size), info = s.integer();
  for (int64_t i = 0; i < s.count; ++i)
    s.done(s->orgqr(s.handle, rows, columns, reflectors, s.at(a, i, m * n), rows, s.at(tau, i, k),
                    work.data(), size, info_at(info)),
           "orgqr");
}

void ormqr(int device, Batch batch, bool left, bool adjoint, int64_t m, int64_t n, int64_t k, const void* a,
           const void* tau, void* c) {
  const Session s(device, batch);
  const int rows = as_int(m), columns = as_int(n), reflectors = as_int(k), long_side = left ? rows : columns;
  const int side = left ? solver::kLeft : solver::kRight;
  const int op = !adjoint ? solver::kPlain : is_complex(s.dtype) ? solver::kAdjoint : solver::kTranspose;
  int size = 0;
  check_status(
      s->ormqr_size(s.handle, side, op, rows, columns, reflectors, a, long_side, tau, c, rows, &size),
      "ormqr_bufferSize");
  const Workspace work = s.elements(size), info = s.integer();
  for (int64_t i = 0; i < s.count; ++i)
    s.done(s->ormqr(s.handle, side, op, rows, columns, reflectors, s.at(a, i, (left ? m : n) * k), long_side,
                    s.at(tau, i, k), s.at(c, i, m * n), rows, work.data(), size, info_at(info)),
           "ormqr");
}

// All matrices in one call. Its memory on the host, if it wants some, must live until the work is done.
void eigh_in_one_call(const Session& s, int mode, int64_t n, void* a, void* values, int32_t* info) {
  const solver::Libraries& all = solver::libraries();
  const int type = solver::data_type(s.dtype), real = solver::data_type(real_dtype(s.dtype));
  size_t bytes = 0, host_bytes = 0;
  check_status(all.syev_batched_size(s.handle, solver::params(), mode, solver::kLower, n, type, a, n, real,
                                     values, type, &bytes, &host_bytes, s.count),
               "XsyevBatched_bufferSize");
  const Workspace work(bytes, s.device);
  std::vector<char> host(host_bytes);
  s.done(all.syev_batched(s.handle, solver::params(), mode, solver::kLower, n, type, a, n, real, values, type,
                          work.data(), bytes, host.data(), host_bytes, info, s.count),
         "XsyevBatched");
  if (host_bytes) {
    DeviceBackend& backend = device_backend(DeviceType::CUDA);
    backend.synchronize_stream(backend.current_stream(s.device));
  }
}

void eigh(int device, Batch batch, int64_t n, bool vectors, void* a, void* values, int32_t* info) {
  const Session s(device, batch);
  const int order = as_int(n), mode = vectors ? solver::kVectors : solver::kValues;
  // It counts elements in 32 bits.
  if (in_one_call(batch, n) && n * n * batch.count < std::numeric_limits<int>::max())
    return eigh_in_one_call(s, mode, n, a, values, info);
  int size = 0;
  check_status(s->syevd_size(s.handle, mode, solver::kLower, order, a, order, values, &size),
               "syevd_bufferSize");
  const Workspace work = s.elements(size);
  for (int64_t i = 0; i < s.count; ++i)
    s.done(s->syevd(s.handle, mode, solver::kLower, order, s.at(a, i, n * n), order, s.real_at(values, i, n),
                    work.data(), size, info + i),
           "syevd");
}

// The QR algorithm, which cuSOLVER has for matrices that are not wider than high: of others it takes the
// adjoint.
void svd_by_qr(const Session& s, bool full, int64_t m, int64_t n, void* a, void* values, void* u, void* vh,
               int32_t* info) {
  const bool wide = m < n;
  const int64_t high = std::max(m, n), k = std::min(m, n), ku = full ? m : k, kv = full ? n : k;
  const int64_t left = wide ? kv : ku;  // columns of the factor of `high` rows
  const int rows = as_int(high), columns = as_int(k);
  int size = 0;
  check_status(s->gesvd_size(s.handle, rows, columns, &size), "gesvd_bufferSize");
  const signed char job = !u ? 'N' : full ? 'A' : 'S';
  const Workspace work = s.elements(size), real_work = s.elements(k), turned = s.elements(wide ? m * n : 0),
                  first = s.elements(wide ? high * left : 0), second = s.elements(wide ? k * k : 0);
  for (int64_t i = 0; i < s.count; ++i) {
    void *matrix = s.at(a, i, m * n), *mine_u = s.at(u, i, m * ku), *mine_vh = s.at(vh, i, kv * n);
    if (wide) adjoint(s.device, s.dtype, m, n, matrix, turned.data());
    s.done(s->gesvd(s.handle, job, job, rows, columns, wide ? turned.data() : matrix, rows,
                    s.real_at(values, i, k), wide ? first.data() : mine_u, rows,
                    wide ? second.data() : mine_vh, columns, work.data(), size, real_work.data(), info + i),
           "gesvd");
    if (!wide || !u) continue;
    adjoint(s.device, s.dtype, high, left, first.data(), mine_vh);
    adjoint(s.device, s.dtype, k, k, second.data(), mine_u);
  }
}

// The parameters of Jacobi's method, for the time of a call.
struct Jacobi {
  solver::Handle handle = nullptr;
  Jacobi() { check_status(solver::libraries().create_jacobi(&handle), "cusolverDnCreateGesvdjInfo"); }
  ~Jacobi() { solver::libraries().destroy_jacobi(handle); }
  Jacobi(const Jacobi&) = delete;
};

void svd(int device, Batch batch, bool by_qr, bool full, int64_t m, int64_t n, void* a, void* values, void* u,
         void* vh, int32_t* info) {
  const Session s(device, batch);
  if (by_qr) return svd_by_qr(s, full, m, n, a, values, u, vh, info);
  const int64_t k = std::min(m, n), ku = full ? m : k, kv = full ? n : k;
  const int rows = as_int(m), columns = as_int(n), mode = u ? solver::kVectors : solver::kValues;
  const Jacobi jacobi;
  const Workspace v = s.elements(n * kv), unused = s.elements(u ? 0 : m * ku);
  int size = 0;
  check_status(s->gesvdj_size(s.handle, mode, !full, rows, columns, a, rows, values, u ? u : unused.data(),
                              rows, v.data(), columns, &size, jacobi.handle),
               "gesvdj_bufferSize");
  const Workspace work = s.elements(size);
  for (int64_t i = 0; i < s.count; ++i) {
    s.done(s->gesvdj(s.handle, mode, !full, rows, columns, s.at(a, i, m * n), rows, s.real_at(values, i, k),
                     u ? s.at(u, i, m * ku) : unused.data(), rows, v.data(), columns, work.data(), size,
                     info + i, jacobi.handle),
           "gesvdj");
    if (u) adjoint(s.device, s.dtype, n, kv, v.data(), s.at(vh, i, kv * n));
  }
}

}  // namespace

DeviceLinalg linalg() {
  DeviceLinalg all;
  all.lu_factor = lu_factor;
  all.lu_solve = lu_solve;
  all.cholesky = cholesky;
  all.triangular_solve = triangular_solve;
  all.geqrf = geqrf;
  all.orgqr = orgqr;
  all.ormqr = ormqr;
  all.eigh = eigh;
  all.svd = svd;
  all.permutation = permutation;
  return all;
}

}  // namespace rushlight::cuda
