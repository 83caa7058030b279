// Matrix products by cuBLAS, which is found at run time: beside the program, or in NVIDIA's wheels.
#include <library_types.h>

#include <array>

#include "cuda/check.h"
#include "cuda/kernels.h"
#include "cuda/launch.h"
#include "cuda/library.h"
#include "cuda/operands.h"

namespace rushlight::cuda {
namespace {

// The few declarations of cuBLAS that are needed; its headers are not part of the toolkit's compiler.
using Handle = void*;
constexpr int kNotTransposed = 0, kTransposed = 1, kDefaultAlgorithm = -1;
enum Compute { kCompute32 = 68, kCompute64 = 70, kComputeTf32 = 77 };

struct Cublas {
  Library library{"cuBLAS", {"cu13", "cublas"}, {"libcublas.so.13", "libcublas.so.12"}, "nvidia-cublas"};
  int (*create)(Handle*) = nullptr;
  int (*set_stream)(Handle, cudaStream_t) = nullptr;
  int (*gemm)(Handle, int, int, int, int, int, const void*, const void*, cudaDataType, int, long long,
              const void*, cudaDataType, int, long long, const void*, void*, cudaDataType, int, long long,
              int, int, int) = nullptr;

  Cublas() {
    library.entry("cublasCreate_v2", &create);
    library.entry("cublasSetStream_v2", &set_stream);
    library.entry("cublasGemmStridedBatchedEx", &gemm);
  }
};

const Cublas& library() {
  static const Cublas one;
  one.library.require("matrix products");
  return one;
}

void check_status(int status, const char* what) {
  if (status != 0) throw DeviceError(str("CUDA error: cuBLAS answered ", status, " to ", what), status);
}

// One handle for each device and thread: a handle serves one caller at a time.
Handle handle_of(int device) {
  thread_local std::array<Handle, DeviceBackend::kMaxDevices> handles{};
  Handle& handle = handles[static_cast<size_t>(device)];
  if (!handle) check_status(library().create(&handle), "cublasCreate");
  return handle;
}

cudaDataType type_of(DType t) {
  switch (t) {
    case DType::Float16:
      return CUDA_R_16F;
    case DType::BFloat16:
      return CUDA_R_16BF;
    case DType::Float64:
      return CUDA_R_64F;
    case DType::Complex64:
      return CUDA_C_32F;
    case DType::Complex128:
      return CUDA_C_64F;
    default:
      return CUDA_R_32F;
  }
}

// Row-major matrices are the transposed ones of cuBLAS, which counts by columns.
struct Layout2D {
  int operation, leading;
};
Layout2D operand_of(const View& v) {
  const int64_t item = static_cast<int64_t>(element_size(v.dtype));
  const int64_t row = v.strides[v.rank - 2] / item, column = v.strides[v.rank - 1] / item;
  const int64_t rows = v.sizes[v.rank - 2], columns = v.sizes[v.rank - 1];
  if (column == 1 || columns == 1) return {kNotTransposed, static_cast<int>(std::max(row, columns))};
  return {kTransposed, static_cast<int>(std::max(column, rows))};
}

}  // namespace

bool run_product(const View& out, const View& a, const View& b, double alpha, double beta, bool tf32) {
  if (!is_differentiable(out.dtype)) return false;
  const bool wide = out.dtype == DType::Float64 || out.dtype == DType::Complex128;
  const int compute = wide ? kCompute64 : tf32 && out.dtype == DType::Float32 ? kComputeTf32 : kCompute32;
  const double wide_factors[] = {alpha, 0, beta, 0};
  const float factors[] = {static_cast<float>(alpha), 0, static_cast<float>(beta), 0};
  const void* alpha_at = wide ? static_cast<const void*>(wide_factors) : factors;
  const void* beta_at = wide ? static_cast<const void*>(wide_factors + 2) : factors + 2;
  const int64_t item = static_cast<int64_t>(element_size(out.dtype));
  const auto step = [&](const View& v) { return v.rank == 3 ? v.strides[0] / item : 0; };
  const int m = static_cast<int>(out.sizes[out.rank - 2]), n = static_cast<int>(out.sizes[out.rank - 1]);
  const int k = static_cast<int>(a.sizes[a.rank - 1]),
            batch = out.rank == 3 ? static_cast<int>(out.sizes[0]) : 1;
  const Layout2D left = operand_of(a), right = operand_of(b);
  const cudaDataType type = type_of(out.dtype);
  DeviceBackend& backend = device_backend(DeviceType::CUDA);
  const DeviceScope scope(backend.driver(), out.device);
  const Handle handle = handle_of(out.device);
  const StreamInfo stream = backend.stream(backend.current_stream(out.device));
  check_status(library().set_stream(handle, static_cast<cudaStream_t>(stream.handle)), "cublasSetStream");
  check_status(library().gemm(handle, right.operation, left.operation, n, m, k, alpha_at, b.data, type,
                              right.leading, step(b), a.data, type, left.leading, step(a), beta_at, out.data,
                              type, n, step(out), batch, compute, kDefaultAlgorithm),
               "cublasGemmStridedBatchedEx");
  backend.launched(out.device, "product");
  return true;
}

}  // namespace rushlight::cuda
