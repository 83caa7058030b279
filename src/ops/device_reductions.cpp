// Reductions and running sums where their operand is.
#include <utility>
#include <vector>

#include "core/device_backend.h"
#include "cpu/factory.h"
#include "cpu/gemm.h"
#include "cpu/norm.h"
#include "cpu/reduce.h"
#include "cpu/scan.h"
#include "device/layers.h"
#include "ops/device_loops.h"
#include "ops/device_moments.h"
#include "ops/device_multi_tensor.h"

namespace rushlight::loops {
namespace {

const DeviceKernels* kernels_of(const Tensor& t) {
  return t.is_cpu() || t.device().is_meta() ? nullptr : &kernels_on(t);
}

Tensor on_cpu(const Tensor& t) {
  const Tensor moved = empty_tensor(t.sizes(), t.dtype());
  copy(moved, t);
  return moved;
}
Tensor beside(const Tensor& t) { return empty_tensor(t.sizes(), t.dtype()); }

}  // namespace

void reduce(cpu::ReduceOp op, const Tensor& in, uint64_t dims, const Tensor& out,
            const cpu::ReduceParams& params, const char* who) {
  const bool whole = out.numel() == 1 && dims + 1 == uint64_t{1} << in.dim() && !params.centre;
  if (whole && is_dense_from_data(in) && !in.device().is_meta() && !in.is_cpu() &&
      MultiTensorLaunch::hold({op, params.divisor, in, out, who}))
    return;
  const DeviceKernels* kernels = kernels_of(in);
  if (!kernels) return cpu::reduce(op, in, dims, out, params, who);
  if (kernels->reduce && kernels->reduce(op, in, dims, out, params)) return;
  cpu::ReduceParams moved = params;
  const Tensor result = beside(out), centre = empty_tensor(out.sizes(), in.dtype());
  if (params.centre) {
    device_backend(in.device().type())
        .copy(centre.data_ptr(), Device{}, params.centre, in.device(), centre.nbytes(), false);
    moved.centre = centre.data_ptr();
  }
  cpu::reduce(op, on_cpu(in), dims, result, moved, who);
  copy(out, result);
}

bool moments(const Tensor& in, uint64_t dims, const Tensor& mean, const Tensor& variance) {
  const DeviceLayers* layers = in.device().is_meta() ? nullptr : device_layers(in);
  if (!layers || !layers->channel_statistics || !is_floating(in.dtype()) || !in.is_contiguous() ||
      in.numel() == 0)
    return false;
  // What stays is one range of dimensions: the channels.
  cpu::ChannelShape shape{1, 1, 1};
  bool seen = false;
  for (int64_t d = 0; d < in.dim(); ++d) {
    const int64_t size = in.size(d);
    if (size == 1) continue;
    if (dims >> d & 1) {
      (seen ? shape.inner : shape.outer) *= size;
    } else {
      if (shape.inner > 1) return false;
      seen = true, shape.channels *= size;
    }
  }
  if (!seen) shape.inner = std::exchange(shape.outer, 1);
  layers->channel_statistics(in.device().index(), in.dtype(), shape, in.data_ptr(), mean.data_ptr(),
                             variance.data_ptr());
  return true;
}

void arg_extreme(const Tensor& in, int64_t dim, bool largest, const Tensor& values, const Tensor& indices) {
  const DeviceKernels* kernels = kernels_of(in);
  if (!kernels) return cpu::arg_extreme(in, dim, largest, values, indices);
  if (kernels->arg_extreme && kernels->arg_extreme(in, dim, largest, values, indices)) return;
  const Tensor v = beside(values), i = beside(indices);
  cpu::arg_extreme(on_cpu(in), dim, largest, v, i);
  copy(values, v), copy(indices, i);
}

void cumulate(bool product, const Tensor& in, int64_t dim, const Tensor& out) {
  auto on_host = [&](const Tensor& from, const Tensor& to) {
    product ? cpu::cumprod(from, dim, to) : cpu::cumsum(from, dim, to);
  };
  const DeviceKernels* kernels = kernels_of(in);
  if (!kernels) return on_host(in, out);
  if (kernels->cumulate && kernels->cumulate(product, in, dim, out)) return;
  const Tensor result = beside(out);
  on_host(on_cpu(in), result);
  copy(out, result);
}

// Of which a device's library multiplies matrices.
static bool has_products(DType t) { return is_differentiable(t) && !is_float8(t) && t != DType::Complex32; }

void product(const Tensor& out, const Tensor& a, const Tensor& b, const Scalar& alpha, const Scalar& beta) {
  if (out.device().is_meta() || out.numel() == 0) return;
  const bool known = has_products(out.dtype()), real = !alpha.is_complex() && !beta.is_complex();
  const DeviceKernels& kernels = kernels_on(out);
  if (kernels.product && real && known && a.numel() > 0 &&
      kernels.product(out, a, b, alpha.to_double(), beta.to_double()))
    return;
  auto matrix = [](const Tensor& t) {
    return cpu::MatrixView{t.data_ptr(), t->strides[t.dim() - 2], t->strides[t.dim() - 1]};
  };
  const Tensor result = on_cpu(out), x = on_cpu(a), y = on_cpu(b);
  const int64_t m = out.size(-2), n = out.size(-1), k = a.size(-1), batch = out.dim() == 3 ? out.size(0) : 1;
  cpu::gemm_batch(out.dtype(), batch, m, n, k, alpha, matrix(x), m * k, matrix(y), k * n, beta,
                  result.data_ptr(), n, m * n);
  copy(out, result);
}

bool product_bias(const Tensor& out, const Tensor& a, const Tensor& b, const Tensor& bias,
                  DeviceKernels::Activation activation) {
  const DeviceKernels* kernels = out.device().is_cuda() ? kernels_of(out) : nullptr;
  return kernels && kernels->product_bias && is_floating(out.dtype()) && has_products(out.dtype()) &&
         out.numel() > 0 && a.numel() > 0 && kernels->product_bias(out, a, b, bias, activation);
}

void range(const Tensor& out, const Scalar& start, const Scalar& step) {
  if (out.device().is_meta() || out.numel() == 0) return;
  const DeviceKernels* kernels = kernels_of(out);
  if (!kernels) return cpu::fill_range(out, start, step);
  if (kernels->range && kernels->range(out, start, step)) return;
  const Tensor result = beside(out);
  cpu::fill_range(result, start, step);
  copy(out, result);
}

void triangle(const Tensor& out, int64_t diagonal, bool upper) {
  if (out.device().is_meta() || out.numel() == 0) return;
  const DeviceKernels* kernels = kernels_of(out);
  if (!kernels) return cpu::clear_triangle(out, diagonal, upper);
  if (kernels->triangle && kernels->triangle(out, diagonal, upper)) return;
  const Tensor result = on_cpu(out);
  cpu::clear_triangle(result, diagonal, upper);
  copy(out, result);
}

}  // namespace rushlight::loops
