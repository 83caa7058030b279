// Factorisations and solvers by cuSOLVER, one matrix after the other; many small ones in one call where
// cuSOLVER or cuBLAS have one for batches. Workspaces are of the current stream's pool. solver_spectra.cpp
// has eigenvalues and singular values.
#include "cuda/solver.h"

#include "cuda/solver_session.h"
#include "device/linalg.h"

namespace rushlight::cuda {
namespace {

int operation(char op) {
  return op == 'N' ? solver::kPlain : op == 'T' ? solver::kTranspose : solver::kAdjoint;
}
int triangle(bool upper) { return upper ? solver::kUpper : solver::kLower; }

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

// Complex Hermitian matrices, whose routine counts in 64 bits.
bool hermitian_ldl_factor(const Session& s, int64_t n, void* a, int32_t* pivots, int32_t* info) {
  const solver::Libraries& all = solver::libraries();
  if (!all.hetrf_size || !all.hetrf) return false;
  const int type = solver::data_type(s.dtype);
  const Workspace wide(static_cast<size_t>(s.count * n) * sizeof(int64_t), s.device);
  auto* rows = static_cast<int64_t*>(wide.data());
  size_t bytes = 0, host_bytes = 0;
  check_status(all.hetrf_size(s.handle, solver::params(), solver::kLower, n, type, a, n, rows, type, &bytes,
                              &host_bytes),
               "Xhetrf_bufferSize");
  Scratch work(s, bytes, host_bytes);
  for (int64_t i = 0; i < s.count; ++i)
    s.done(all.hetrf(s.handle, solver::params(), solver::kLower, n, type, s.at(a, i, n * n), n, rows + i * n,
                     type, work.data(), bytes, work.host(), host_bytes, info + i),
           "Xhetrf");
  narrow_pivots(s.device, s.count * n, rows, pivots);
  return true;
}

bool ldl_factor(int device, Batch batch, int64_t n, bool hermitian, void* a, int32_t* pivots, int32_t* info) {
  const Session s(device, batch);
  if (hermitian && is_complex(s.dtype)) return hermitian_ldl_factor(s, n, a, pivots, info);
  const int order = as_int(n);
  int size = 0;
  check_status(s->sytrf_size(s.handle, order, a, order, &size), "sytrf_bufferSize");
  const Workspace work = s.elements(size);
  for (int64_t i = 0; i < s.count; ++i)
    s.done(s->sytrf(s.handle, solver::kLower, order, s.at(a, i, n * n), order, pivots + i * n, work.data(),
                    size, info + i),
           "sytrf");
  return true;
}

bool ldl_solve(int device, Batch batch, int64_t n, int64_t columns, bool hermitian, const void* ld,
               const int32_t* pivots, void* b) {
  const Session s(device, batch);
  const solver::Libraries& all = solver::libraries();
  const bool conjugate = hermitian && is_complex(s.dtype);
  if (conjugate ? !all.hetrs_size || !all.hetrs : !all.sytrs_size || !all.sytrs) return false;
  const int type = solver::data_type(s.dtype), lower = solver::kLower;
  const Workspace wide(static_cast<size_t>(s.count * n) * sizeof(int64_t), device), info = s.integer();
  auto* rows = static_cast<int64_t*>(wide.data());
  widen_pivots(device, s.count * n, n, pivots, rows);
  size_t bytes = 0, host_bytes = 0;
  check_status(conjugate ? all.hetrs_size(s.handle, solver::params(), lower, n, columns, type, ld, n, rows,
                                          type, b, n, &bytes, &host_bytes)
                         : all.sytrs_size(s.handle, lower, n, columns, type, ld, n, rows, type, b, n, &bytes,
                                          &host_bytes),
               conjugate ? "Xhetrs_bufferSize" : "Xsytrs_bufferSize");
  Scratch work(s, bytes, host_bytes);
  for (int64_t i = 0; i < s.count; ++i) {
    void *matrix = s.at(ld, i, n * n), *mine = s.at(b, i, n * columns);
    const int64_t* row = rows + i * n;
    s.done(conjugate ? all.hetrs(s.handle, solver::params(), lower, n, columns, type, matrix, n, row, type,
                                 mine, n, work.data(), bytes, work.host(), host_bytes, info_at(info))
                     : all.sytrs(s.handle, lower, n, columns, type, matrix, n, row, type, mine, n,
                                 work.data(), bytes, work.host(), host_bytes, info_at(info)),
           conjugate ? "Xhetrs" : "Xsytrs");
  }
  return true;
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

}  // namespace

DeviceLinalg linalg() {
  DeviceLinalg all;
  all.lu_factor = lu_factor;
  all.lu_solve = lu_solve;
  all.cholesky = cholesky;
  all.triangular_solve = triangular_solve;
  all.ldl_factor = ldl_factor;
  all.ldl_solve = ldl_solve;
  all.geqrf = geqrf;
  all.orgqr = orgqr;
  all.ormqr = ormqr;
  all.eigh = eigh;
  all.eig = eig;
  all.svd = svd;
  all.svd_of_high = svd_of_high;
  all.permutation = permutation;
  return all;
}

}  // namespace rushlight::cuda
