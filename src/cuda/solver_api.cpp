#include "cuda/solver_api.h"

#include <array>
#include <string>

#include "core/device_backend.h"

namespace rushlight::cuda::solver {
namespace {

// The letter that a type has in the names of LAPACK's routines.
char letter_of(DType dtype) {
  switch (dtype) {
    case DType::Float32:
      return 'S';
    case DType::Float64:
      return 'D';
    case DType::Complex64:
      return 'C';
    default:
      return 'Z';
  }
}

// By the names of real routines: complex ones are called otherwise where Q is unitary or A Hermitian.
std::string name_of(const char* prefix, DType dtype, std::string routine) {
  if (is_complex(dtype)) {
    if (routine.starts_with("or")) routine.replace(0, 2, "un");
    if (routine.starts_with("syevd")) routine.replace(0, 2, "he");
  }
  return prefix + (letter_of(dtype) + routine);
}

Routines load(Libraries& from, DType dtype) {
  Routines r{};
  auto solver = [&](const char* routine, auto** out) {
    from.solver.entry(name_of("cusolverDn", dtype, routine).c_str(), out);
  };
  auto blas = [&](const char* routine, auto** out) {
    cublas_library().entry(name_of("cublas", dtype, routine).c_str(), out);
  };
  solver("getrf_bufferSize", &r.getrf_size), solver("getrf", &r.getrf), solver("getrs", &r.getrs);
  solver("potrf_bufferSize", &r.potrf_size), solver("potrf", &r.potrf);
  solver("potrfBatched", &r.potrf_batched);
  solver("geqrf_bufferSize", &r.geqrf_size), solver("geqrf", &r.geqrf);
  solver("orgqr_bufferSize", &r.orgqr_size), solver("orgqr", &r.orgqr);
  solver("ormqr_bufferSize", &r.ormqr_size), solver("ormqr", &r.ormqr);
  solver("syevd_bufferSize", &r.syevd_size), solver("syevd", &r.syevd);
  solver("gesvd_bufferSize", &r.gesvd_size), solver("gesvd", &r.gesvd);
  solver("gesvdj_bufferSize", &r.gesvdj_size), solver("gesvdj", &r.gesvdj);
  solver("gesvdaStridedBatched_bufferSize", &r.gesvda_size);
  solver("gesvdaStridedBatched", &r.gesvda);
  solver("sytrf_bufferSize", &r.sytrf_size), solver("sytrf", &r.sytrf);
  blas("getrfBatched", &r.getrf_batched), blas("getrsBatched", &r.getrs_batched);
  blas("geqrfBatched", &r.geqrf_batched);
  blas("trsm_v2", &r.trsm), blas("trsmBatched", &r.trsm_batched);
  return r;
}

constexpr const char* kWish = "linear algebra routines";

}  // namespace

Libraries& libraries() {
  static Libraries all;
  all.solver.require(kWish);
  cublas_library().require(kWish);
  return all;
}

const Routines& routines(DType dtype) {
  static constexpr DType kTypes[] = {DType::Float32, DType::Float64, DType::Complex64, DType::Complex128};
  static const std::array<Routines, 4> all = [] {
    std::array<Routines, 4> made{};
    for (size_t i = 0; i < made.size(); ++i) made[i] = load(libraries(), kTypes[i]);
    return made;
  }();
  libraries();  // names a routine that was not found
  for (size_t i = 0; i < all.size(); ++i)
    if (kTypes[i] == dtype) return all[i];
  RL_FAIL("linear algebra on CUDA: no routines for ", dtype_name(dtype));
}

int data_type(DType dtype) {
  const int real = real_dtype(dtype) == DType::Float32 ? 0 : 1;
  return is_complex(dtype) ? real + 4 : real;
}

Handle params() {
  thread_local Handle one = nullptr;
  if (!one) check_status(libraries().create_params(&one), "cusolverDnCreateParams");
  return one;
}

void check_status(int status, const char* what) { cuda::check_status("NVIDIA's library", status, what); }

Handle solver_on(int device) {
  // A handle serves one caller at a time.
  thread_local std::array<Handle, DeviceBackend::kMaxDevices> handles{};
  Handle& handle = handles[static_cast<size_t>(device)];
  if (!handle) check_status(libraries().create(&handle), "cusolverDnCreate");
  DeviceBackend& backend = device_backend(DeviceType::CUDA);
  check_status(libraries().set_stream(handle, backend.stream(backend.current_stream(device)).handle),
               "cusolverDnSetStream");
  return handle;
}

Handle blas_on(int device) { return blas_handle(device, kWish); }

}  // namespace rushlight::cuda::solver
