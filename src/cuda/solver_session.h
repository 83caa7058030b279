// What calls of cuSOLVER and cuBLAS for one operator share: device, types, handles and memory to work in.
#pragma once
#include <algorithm>
#include <limits>
#include <vector>

#include "core/device_backend.h"
#include "cpu/linalg.h"
#include "cuda/solver.h"
#include "cuda/solver_api.h"
#include "cuda/workspace.h"

namespace rushlight::cuda {

using cpu::Batch;
using solver::check_status;

// Above this size a matrix keeps the device busy, and calls for batches are made for smaller ones.
constexpr int64_t kMostInBatch = 512;

inline int as_int(int64_t n) {
  RL_CHECK(n <= std::numeric_limits<int>::max(), "linear algebra on CUDA: a dimension of ", n,
           " is more than cuSOLVER can count");
  return static_cast<int>(n);
}

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
  // Singular values and eigenvalues of Hermitian matrices; eigenvalues of others.
  void* real_at(void* data, int64_t i, int64_t elements) const {
    return static_cast<char*>(data) + i * elements * (is_complex(dtype) ? element / 2 : element);
  }
  void* complex_at(void* data, int64_t i, int64_t elements) const {
    return static_cast<char*>(data) + i * elements * (is_complex(dtype) ? element : 2 * element);
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

// What calls of 64 bits work in. Their memory on the host must live until the work is done.
class Scratch : public Workspace {
 public:
  Scratch(const Session& s, size_t bytes, size_t host_bytes)
      : Workspace(bytes, s.device), device_(s.device), host_(host_bytes) {}
  ~Scratch() {
    if (host_.empty()) return;
    DeviceBackend& backend = device_backend(DeviceType::CUDA);
    backend.synchronize_stream(backend.current_stream(device_));
  }
  void* host() { return host_.data(); }

 private:
  int device_;
  std::vector<char> host_;
};

// Pointers to the matrices of a batch, on the device.
struct Pointers : Workspace {
  Pointers(const Session& s, const void* data, int64_t elements)
      : Workspace(static_cast<size_t>(s.count) * sizeof(void*), s.device) {
    point_at(s.device, s.count, const_cast<void*>(data), elements * s.element, list());
  }
  void** list() const { return static_cast<void**>(data()); }
};

inline bool in_one_call(const Batch& batch, int64_t n) { return batch.count > 1 && n <= kMostInBatch; }
inline int* info_at(const Workspace& w) { return static_cast<int*>(w.data()); }

}  // namespace rushlight::cuda
