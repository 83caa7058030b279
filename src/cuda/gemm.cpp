// Matrix products by cuBLAS, which is found at run time: beside the program, or in NVIDIA's wheels.
#include <library_types.h>

#include <cstring>

#include "core/half.h"
#include "cuda/blas_handle.h"
#include "cuda/check.h"
#include "cuda/gemm_plan.h"
#include "cuda/kernels.h"
#include "cuda/launch.h"
#include "cuda/operands.h"

namespace rushlight::cuda {
namespace {

// The few declarations of cuBLAS that are needed; its headers are not part of the toolkit's compiler.
using Handle = void*;

struct Cublas {
  int (*set_math)(Handle, int) = nullptr;
  int (*gemm)(Handle, int, int, int, int, int, const void*, const void*, int, int, long long, const void*,
              int, int, long long, const void*, void*, int, int, long long, int, int, int) = nullptr;

  Cublas() {
    cublas_library().entry("cublasSetMathMode", &set_math);
    cublas_library().entry("cublasGemmStridedBatchedEx", &gemm);
  }
};

constexpr const char* kWish = "matrix products";

const Cublas& library() {
  static const Cublas one;
  cublas_library().require(kWish);
  return one;
}

// A factor in the type that cuBLAS reads it in.
struct Factor {
  alignas(16) unsigned char bytes[16] = {};
  Factor(double value, const GemmPlan& p) {
    const double wide = value;
    const auto narrow = static_cast<float>(value);
    const Half half(narrow);
    if (p.wide)
      std::memcpy(bytes, &wide, sizeof wide);
    else if (p.scale_type == cublas::kReal16)
      std::memcpy(bytes, &half, sizeof half);
    else
      std::memcpy(bytes, &narrow, sizeof narrow);
  }
};

}  // namespace

bool run_product(const View& out, const View& a, const View& b, double alpha, double beta,
                 const GemmSwitches& allowed) {
  if (!is_differentiable(out.dtype)) return false;
  const GemmPlan p = gemm_plan(out, a, b, allowed);
  const Factor by(alpha, p), plus(beta, p);
  DeviceBackend& backend = device_backend(DeviceType::CUDA);
  const DeviceScope scope(backend.driver(), out.device);
  const Handle handle = blas_handle(out.device, kWish);
  check_status("cuBLAS",
               library().set_math(handle, p.exact_sums ? cublas::kNoReducedSums : cublas::kDefaultMath),
               "cublasSetMathMode");
  check_status(
      "cuBLAS",
      library().gemm(handle, p.right_operation, p.left_operation, p.n, p.m, p.k, by.bytes, b.data, p.type,
                     p.right_leading, p.right_step, a.data, p.type, p.left_leading, p.left_step, plus.bytes,
                     out.data, p.type, p.n, p.out_step, p.batch, p.compute, cublas::kDefaultAlgorithm),
      "cublasGemmStridedBatchedEx");
  backend.launched(out.device, "product");
  return true;
}

}  // namespace rushlight::cuda
