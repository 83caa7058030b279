// The loops of the emulated device (emulated_driver.h): formulas are the CPU's, everything else is the CUDA
// library's own kernels (src/cuda/*.cu), compiled for the host and called index by index.
#include <functional>
#include <memory>
#include <vector>

#include "core/device_backend.h"
#include "core/tensor.h"
#include "cpu/copy.h"
#include "cpu/fft.h"
#include "cpu/gemm.h"
#include "cpu/pointwise.h"
#include "cuda/kernels.h"
#include "cuda/launch.h"
#include "cuda/layers.h"
#include "cuda/operands.h"
#include "cuda/solver.h"
#include "device/kernels.h"
#include "device/layers.h"
#include "device/linalg.h"
#include "device/moves.h"
#include "emulated_driver.h"

namespace rushlight {
namespace {

// The same elements, seen from the host.
Tensor seen(const Tensor& t) {
  // A number of the host's is read now, the device's memory when the work runs.
  if (t.is_cpu()) {
    const Tensor kept = empty_tensor(t.sizes(), t.dtype());
    cpu::copy(kept, t);
    return kept;
  }
  const Storage& storage = t->storage;
  auto impl = Ref<TensorImpl>::adopt(
      new TensorImpl(StorageImpl::wrap(storage->data(), storage->nbytes(), Device{}, nullptr, nullptr),
                     t.storage_offset(), t.dtype(), Device{}));
  impl->set_layout(t.sizes(), t.strides());
  return Tensor(std::move(impl));
}

void check_one_device(const Tensor& out, const Tensor& input) {
  RL_ASSERT(input.device() == out.device() || (input.is_cpu() && input.dim() == 0),
            "an input on another device");
}

bool formula(Formula f, DType compute, const Tensor& out, std::span<const Tensor* const> inputs,
             std::span<const Scalar> parameters) {
  if (is_complex(compute)) return false;  // so that the way round is tested too
  std::vector<Tensor> operands;
  for (const Tensor* t : inputs) check_one_device(out, *t), operands.push_back(seen(*t));
  std::vector<Scalar> numbers(parameters.begin(), parameters.end());
  emulated::enqueue(out.device().index(), "formula", [=, result = seen(out)] {
    std::vector<const Tensor*> pointers;
    for (const Tensor& t : operands) pointers.push_back(&t);
    cpu::run_formula(f, compute, result, pointers, numbers);
  });
  return true;
}

bool formulas(std::span<const FormulaCall> calls) {
  if (is_complex(calls[0].compute)) return false;
  std::vector<std::function<void()>> work;
  for (const FormulaCall& call : calls) {
    std::vector<Tensor> operands;
    for (const Tensor& t : call.inputs()) check_one_device(call.out, t), operands.push_back(seen(t));
    work.push_back([=, f = call.formula, compute = call.compute, result = seen(call.out),
                    numbers = std::vector<Scalar>(call.parameters().begin(), call.parameters().end())] {
      std::vector<const Tensor*> pointers;
      for (const Tensor& t : operands) pointers.push_back(&t);
      cpu::run_formula(f, compute, result, pointers, numbers);
    });
  }
  // None depends on another, so any order will do.
  emulated::enqueue(calls[0].out.device().index(), "formulas", [work = std::move(work)] {
    for (auto it = work.rbegin(); it != work.rend(); ++it) (*it)();
  });
  return true;
}

bool product(const Tensor& out, const Tensor& a, const Tensor& b, double alpha, double beta) {
  auto matrix = [](const Tensor& t) {
    return cpu::MatrixView{t.data_ptr(), t->strides[t.dim() - 2], t->strides[t.dim() - 1]};
  };
  const int64_t batch = out.dim() == 3 ? out.size(0) : 1, m = out.size(-2), n = out.size(-1), k = a.size(-1);
  auto step = [](const Tensor& t) { return t.dim() == 3 ? t->strides[0] : 0; };
  emulated::enqueue(
      out.device().index(), "product",
      [=, x = matrix(a), y = matrix(b), to = out.data_ptr(), dtype = out.dtype(), xs = step(a),
       ys = step(b)] { cpu::gemm_batch(dtype, batch, m, n, k, alpha, x, xs, y, ys, beta, to, n, m * n); });
  return true;
}

// cuBLASLt's, which takes most products but not all.
bool product_bias(const Tensor& out, const Tensor& a, const Tensor& b, const Tensor& bias,
                  DeviceKernels::Activation activation) {
  if (a.size(-1) % 2) return false;
  const Tensor to = seen(out), left = seen(a), right = seen(b), row = seen(bias);
  emulated::enqueue(out.device().index(), "product_bias", [=] {
    const int64_t n = to.size(1);
    cpu::gemm_bias(
        to.dtype(), to.size(0), n, left.size(1), {left.data_ptr(), left->strides[0], left->strides[1]},
        {right.data_ptr(), right->strides[0], right->strides[1]}, row.data_ptr(), to.data_ptr(), n);
    if (activation == DeviceKernels::Activation::None) return;
    const bool gelu = activation == DeviceKernels::Activation::Gelu;
    cpu::run_formula(gelu ? Formula::GeluTanh : Formula::Relu, compute_dtype(to.dtype()), to,
                     std::array<const Tensor*, 1>{&to}, {});
  });
  return true;
}

// cuFFT's: contiguous operands, no scale.
void fft(int device, const DeviceFft& f, void* in, void* out) {
  cpu::Fft all;
  all.kind = f.kind, all.double_precision = f.double_precision, all.forward = f.forward;
  int64_t in_points = 1, out_points = 1;
  std::vector<cpu::FftAxis> axes;
  for (int a = f.rank - 1; a >= 0; --a) {
    const bool half = a == f.rank - 1 && f.kind != cpu::FftKind::Complex;
    axes.insert(axes.begin(), {f.sizes[a], in_points, out_points});
    const int64_t n = f.sizes[a], few = n / 2 + 1;
    in_points *= half && f.kind == cpu::FftKind::ComplexToReal ? few : n;
    out_points *= half && f.kind == cpu::FftKind::RealToComplex ? few : n;
  }
  all.axes = axes;
  all.batch = {{f.batch, in_points, out_points}};
  emulated::enqueue(device, "fft", [=] { cpu::fft(all, in, out); });
}

const bool registered = [] {
  static DeviceKernels kernels = cuda::kernels();
  kernels.formula = formula;
  kernels.formulas = formulas;
  kernels.product = product;
  kernels.product_bias = product_bias;
  kernels.fused = emulated::fused;
  kernels.fuses = emulated::fuses;
  register_device_driver(DeviceType::CUDA, &emulated::driver());
  register_device_kernels(DeviceType::CUDA, &kernels);
  static const DeviceMoves moves = cuda::moves();
  register_device_moves(DeviceType::CUDA, &moves);
  static DeviceLayers layers = cuda::layers();
  layers.fft = fft;
  layers.convolve = emulated::convolve;
  register_device_layers(DeviceType::CUDA, &layers);
  static const DeviceLinalg linalg = cuda::linalg();
  register_device_linalg(DeviceType::CUDA, &linalg);
  return true;
}();

}  // namespace

void cuda::enqueue_on_host(const Launch& at, std::function<void()> work) {
  emulated::enqueue(at.device, at.name, std::move(work));
}

}  // namespace rushlight
