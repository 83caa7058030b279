// Eigenvalues and singular values by cuSOLVER.
#include "cuda/solver_session.h"

namespace rushlight::cuda {
namespace {

// All matrices in one call.
void eigh_in_one_call(const Session& s, int mode, int64_t n, void* a, void* values, int32_t* info) {
  const solver::Libraries& all = solver::libraries();
  const int type = solver::data_type(s.dtype), real = solver::data_type(real_dtype(s.dtype));
  size_t bytes = 0, host_bytes = 0;
  check_status(all.syev_batched_size(s.handle, solver::params(), mode, solver::kLower, n, type, a, n, real,
                                     values, type, &bytes, &host_bytes, s.count),
               "XsyevBatched_bufferSize");
  Scratch work(s, bytes, host_bytes);
  s.done(all.syev_batched(s.handle, solver::params(), mode, solver::kLower, n, type, a, n, real, values, type,
                          work.data(), bytes, work.host(), host_bytes, info, s.count),
         "XsyevBatched");
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

}  // namespace

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

// Of any matrix, one after the other. Vectors of real matrices come as real columns.
bool eig(int device, Batch batch, int64_t n, void* a, void* values, void* v, int32_t* info) {
  const Session s(device, batch);
  const solver::Libraries& all = solver::libraries();
  if (!all.geev_size || !all.geev) return false;
  const int type = solver::data_type(s.dtype), value_type = solver::data_type(complex_dtype(s.dtype)),
            mode = v ? solver::kVectors : solver::kValues;
  const bool real = !is_complex(s.dtype);
  const Workspace columns = s.elements(v && real ? n * n : 0);
  size_t bytes = 0, host_bytes = 0;
  check_status(
      all.geev_size(s.handle, solver::params(), solver::kValues, mode, n, type, a, n, value_type, values,
                    type, nullptr, n, type, real ? columns.data() : v, n, type, &bytes, &host_bytes),
      "Xgeev_bufferSize");
  Scratch work(s, bytes, host_bytes);
  for (int64_t i = 0; i < s.count; ++i) {
    void *mine = s.complex_at(values, i, n), *vectors = v ? s.complex_at(v, i, n * n) : nullptr;
    s.done(all.geev(s.handle, solver::params(), solver::kValues, mode, n, type, s.at(a, i, n * n), n,
                    value_type, mine, type, nullptr, n, type, v && real ? columns.data() : vectors, n, type,
                    work.data(), bytes, work.host(), host_bytes, info + i),
           "Xgeev");
    if (v && real) complex_vectors(device, s.dtype, n, mine, columns.data(), vectors);
  }
  return true;
}

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

void svd_of_high(int device, Batch batch, int64_t m, int64_t n, const void* a, void* values, void* u,
                 void* vh, int32_t* info) {
  const Session s(device, batch);
  const int rows = as_int(m), columns = as_int(n), count = as_int(s.count),
            mode = u ? solver::kVectors : solver::kValues;
  const Workspace v = s.elements(s.count * n * n), unused = s.elements(u ? 0 : s.count * m * n);
  void* left = u ? u : unused.data();
  int size = 0;
  check_status(s->gesvda_size(s.handle, mode, columns, rows, columns, a, rows, m * n, values, n, left, rows,
                              m * n, v.data(), columns, n * n, &size, count),
               "gesvdaStridedBatched_bufferSize");
  const Workspace work = s.elements(size);
  s.done(s->gesvda(s.handle, mode, columns, rows, columns, a, rows, m * n, values, n, left, rows, m * n,
                   v.data(), columns, n * n, work.data(), size, info, nullptr, count),
         "gesvdaStridedBatched");
  for (int64_t i = 0; u && i < s.count; ++i)
    adjoint(device, s.dtype, n, n, s.at(v.data(), i, n * n), s.at(vh, i, n * n));
}

}  // namespace rushlight::cuda
