#include "ops/fft.h"

#include <cmath>

#include "cpu/fft.h"
#include "device/layers.h"
#include "dispatch/table.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/operators.h"
#include "ops/pad.h"
#include "ops/register.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

enum Normalization : int64_t { kNone, kByRoot, kByCount };

// --- kernels

Dims wrapped_dims(const char* who, const Tensor& self, IntList dim) {
  Dims dims;
  for (int64_t d : dim) {
    d = wrap_dim(d, self.dim(), false);
    RL_CHECK(std::ranges::find(dims, d) == dims.end(), who, "(): FFT dims must be unique, but got ", dim);
    dims.push_back(d);
  }
  return dims;
}

double scale_of(int64_t normalization, const cpu::Fft& f) {
  RL_CHECK(normalization >= kNone && normalization <= kByCount, "Unsupported normalization type ",
           normalization);
  double points = 1;
  for (const cpu::FftAxis& a : f.axes) points *= static_cast<double>(a.n);
  return normalization == kNone ? 1 : 1 / (normalization == kByRoot ? std::sqrt(points) : points);
}

// The transform from `in` to `out` along `dims`, of which all others are the batch.
cpu::Fft plan(cpu::FftKind kind, const Tensor& in, const Tensor& out, IntList dims, int64_t normalization) {
  cpu::Fft f;
  f.kind = kind;
  f.double_precision = real_dtype(in.dtype()) == DType::Float64;
  const Tensor& longer = kind == cpu::FftKind::ComplexToReal ? out : in;
  for (int64_t d = 0; d < in.dim(); ++d) {
    const cpu::FftAxis axis{longer->sizes[d], in->strides[d], out->strides[d]};
    if (std::ranges::find(dims, d) == dims.end()) f.batch.push_back(axis);
  }
  for (int64_t d : dims) f.axes.push_back({longer->sizes[d], in->strides[d], out->strides[d]});
  f.scale = scale_of(normalization, f);
  return f;
}

// The libraries want steps forward.
Tensor with_positive_strides(const Tensor& t) {
  for (int64_t d = 0; d < t.dim(); ++d)
    if (t->strides[d] <= 0 && t->sizes[d] > 1) {
      const Tensor copy = empty_tensor(t.sizes(), t.dtype(), t.device());
      copy_result(copy, t, false);
      return copy;
    }
  return t;
}

// --- on devices: along up to three axes at a time, which come last in memory

constexpr size_t kDeviceAxes = 3;

// `dims` of t moved to the end, in their order; the sizes that follow from it.
Dims dims_last(const Tensor& t, IntList dims) {
  Dims order;
  for (int64_t d = 0; d < t.dim(); ++d)
    if (std::ranges::find(dims, d) == dims.end()) order.push_back(d);
  for (int64_t d : dims) order.push_back(d);
  return order;
}

// One call of the device's library. `points`: of the last of `dims` on the longer side.
Tensor device_transform(cpu::FftKind kind, const Tensor& self, IntList dims, int64_t points, bool forward) {
  const Dims order = dims_last(self, dims);
  Tensor in = permute(self, order);
  // What is overwritten must be our own.
  in = kind == cpu::FftKind::ComplexToReal ? clone(in, MemoryFormat::Contiguous) : contiguous(in);
  DeviceFft f;
  f.kind = kind, f.forward = forward;
  f.double_precision = real_dtype(self.dtype()) == DType::Float64;
  f.rank = static_cast<int>(dims.size());
  f.batch = 1;
  const size_t lead = order.size() - dims.size();
  for (size_t d = 0; d < lead; ++d) f.batch *= in->sizes[d];
  for (size_t a = 0; a < dims.size(); ++a) f.sizes[a] = in->sizes[lead + a];
  f.sizes[dims.size() - 1] = points;
  Dims sizes = in->sizes;
  if (kind != cpu::FftKind::Complex)
    sizes.back() = kind == cpu::FftKind::RealToComplex ? points / 2 + 1 : points;
  const bool real = kind == cpu::FftKind::ComplexToReal;
  const Tensor out =
      empty_tensor(sizes, real ? real_dtype(self.dtype()) : complex_dtype(self.dtype()), self.device());
  device_layers(self)->fft(self.device().index(), f, in.data_ptr(), out.data_ptr());
  Dims back(order.size());
  for (size_t i = 0; i < order.size(); ++i) back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return permute(out, back);
}

Tensor scaled(const Tensor& t, double scale) { return scale == 1 ? t : t * Scalar(scale); }

Tensor device_c2c(const Tensor& self, IntList dims, double scale, bool forward) {
  Tensor t = self;
  for (size_t done = 0; done < dims.size(); done += kDeviceAxes) {
    const IntList part = dims.slice(done, std::min(kDeviceAxes, dims.size() - done));
    t = device_transform(cpu::FftKind::Complex, t, part, t->sizes[part.back()], forward);
  }
  return scaled(t, scale);
}

Tensor device_r2c(const Tensor& self, IntList dims, double scale, bool onesided) {
  if (!onesided) return device_c2c(to_dtype(self, complex_dtype(self.dtype())), dims, scale, true);
  const size_t last = std::min(kDeviceAxes, dims.size()), rest = dims.size() - last;
  const int64_t points = self->sizes[dims.back()];
  const Tensor t = device_transform(cpu::FftKind::RealToComplex, self, dims.slice(rest, last), points, true);
  return device_c2c(t, dims.slice(0, rest), scale, true);
}

Tensor device_c2r(const Tensor& self, int64_t dim, double scale, int64_t points) {
  const Tensor used = narrow(self, dim, 0, points / 2 + 1);
  return scaled(device_transform(cpu::FftKind::ComplexToReal, used, IntList(&dim, 1), points, false), scale);
}

void check_precision(const char* who, const Tensor& t) {
  RL_CHECK(real_dtype(t.dtype()) == DType::Float32 || real_dtype(t.dtype()) == DType::Float64,
           "Unsupported dtype ", legacy_name(t.dtype()), " (", who, ")");
}

Tensor copy_of(const Tensor& t) { return clone(t, std::nullopt); }

Tensor c2c_kernel(const Call&, const Tensor& self, IntList dim, int64_t normalization, bool forward) {
  RL_CHECK(is_complex(self.dtype()), "_fft_c2c expects a complex input tensor, but got ",
           legacy_name(self.dtype()));
  check_precision("_fft_c2c", self);
  const Dims dims = wrapped_dims("_fft_c2c", self, dim);
  if (dims.empty()) return copy_of(self);
  // As the operand lies: lines that are read and written with the same steps take a quarter of the time.
  const Tensor out = empty_like_tensor(self, self.dtype());
  if (self.device().is_meta() || out.numel() == 0) return out;
  const Tensor in = with_positive_strides(self);
  cpu::Fft f = plan(cpu::FftKind::Complex, in, out, dims, normalization);
  f.forward = forward;
  if (!self.is_cpu()) return device_c2c(in, dims, f.scale, forward);
  cpu::fft(f, in.data_ptr(), out.data_ptr());
  return out;
}

Tensor r2c_kernel(const Call&, const Tensor& self, IntList dim, int64_t normalization, bool onesided) {
  RL_CHECK(is_floating(self.dtype()), "_fft_r2c expects a real floating point input tensor, but got ",
           legacy_name(self.dtype()));
  check_precision("_fft_r2c", self);
  const Dims dims = wrapped_dims("_fft_r2c", self, dim);
  if (dims.empty()) return to_dtype(self, complex_dtype(self.dtype()));
  Dims sizes = self->sizes;
  if (onesided) sizes[static_cast<size_t>(dims.back())] = self->sizes[dims.back()] / 2 + 1;
  const Tensor out = empty_tensor(sizes, complex_dtype(self.dtype()), self.device());
  if (self.device().is_meta() || self.numel() == 0) return out;
  const Tensor in = with_positive_strides(self);
  const cpu::Fft f = plan(cpu::FftKind::RealToComplex, in, out, dims, normalization);
  if (!self.is_cpu()) return device_r2c(in, dims, f.scale, onesided);
  cpu::fft(f, in.data_ptr(), out.data_ptr());
  if (!onesided) cpu::fft_fill_conjugate(f, out.data_ptr());
  return out;
}

// The inverse transform along `dims`, in rows whatever the steps of `in` are.
Tensor inverse_in_rows(const Tensor& in, IntList dims) {
  const Tensor rows = empty_tensor(in.sizes(), in.dtype(), in.device());
  cpu::Fft f = plan(cpu::FftKind::Complex, in, rows, dims, kNone);
  f.forward = false;
  cpu::fft(f, in.data_ptr(), rows.data_ptr());
  return rows;
}

Tensor c2r_kernel(const Call&, const Tensor& self, IntList dim, int64_t normalization,
                  int64_t last_dim_size) {
  RL_CHECK(is_complex(self.dtype()), "_fft_c2r expects a complex input tensor, but got ",
           legacy_name(self.dtype()));
  check_precision("_fft_c2r", self);
  const Dims dims = wrapped_dims("_fft_c2r", self, dim);
  if (dims.empty()) return copy_of(real(self));
  const int64_t last = dims.back();
  RL_CHECK(last_dim_size >= 1, "Invalid number of data points (", last_dim_size, ") specified");
  RL_CHECK(self->sizes[last] >= last_dim_size / 2 + 1, "_fft_c2r: dimension ", last, " has size ",
           self->sizes[last], ", but ", last_dim_size, " real points need ", last_dim_size / 2 + 1,
           " complex ones");
  Dims sizes = self->sizes;
  sizes[static_cast<size_t>(last)] = last_dim_size;
  const Tensor out = empty_tensor(sizes, real_dtype(self.dtype()), self.device());
  if (self.device().is_meta() || out.numel() == 0) return out;
  Tensor in = with_positive_strides(self);
  const double scale = plan(cpu::FftKind::ComplexToReal, in, out, dims, normalization).scale;
  // Along the other dimensions first: in several at once the result would depend on points that an input
  // without exact symmetry defines twice.
  const IntList others = IntList(dims).slice(0, dims.size() - 1);
  if (!self.is_cpu()) {
    if (!others.empty()) in = fft_c2c(in, others, kNone, false);
    return device_c2r(in, last, scale, last_dim_size);
  }
  if (!others.empty()) in = inverse_in_rows(in, others);
  cpu::Fft f = plan(cpu::FftKind::ComplexToReal, in, out, IntList(&last, 1), kNone);
  f.scale = scale;
  cpu::fft(f, in.data_ptr(), out.data_ptr());
  return out;
}

// --- derivatives

// Multiplies the points of a half spectrum of `n` real points that stand for two by `factor`.
Tensor weigh_doubled(const Tensor& half, int64_t dim, int64_t n, double factor) {
  const int64_t ones = n % 2 == 0 ? 2 : 1, points = half.size(dim);
  if (points <= ones) return half;
  Dims sizes(static_cast<size_t>(half.dim()), 1);
  sizes[static_cast<size_t>(wrap_dim(dim, half.dim(), false))] = points;
  const Tensor weight =
      full(sizes, Scalar(factor), real_dtype(half.dtype()), std::nullopt, half.device(), std::nullopt);
  fill_(narrow(weight, dim, 0, 1), scalar_tensor_of(1.0, weight.dtype(), weight.device()));
  if (ones == 2)
    fill_(narrow(weight, dim, points - 1, 1), scalar_tensor_of(1.0, weight.dtype(), weight.device()));
  return half * weight;
}

Tensor r2c_gradient(const Tensor& g, IntList dim, int64_t normalization, bool onesided, int64_t n) {
  if (dim.empty()) return real(g);
  if (!onesided) return real(fft_c2c(g, dim, normalization, false));
  return fft_c2r(weigh_doubled(g, dim.back(), n, 0.5), dim, normalization, n);
}

Tensor c2r_gradient(const Tensor& g, IntList dim, int64_t normalization, int64_t n, int64_t points) {
  if (dim.empty())
    return complex(g, zeros_like(g, std::nullopt, std::nullopt, std::nullopt, std::nullopt, std::nullopt));
  const Tensor half = weigh_doubled(fft_r2c(g, dim, normalization, true), dim.back(), n, 2);
  if (points == half.size(dim.back())) return half;
  Dims padding(2 * static_cast<size_t>(g.dim()));
  const auto d = static_cast<size_t>(wrap_dim(dim.back(), g.dim(), false));
  padding[2 * (static_cast<size_t>(g.dim()) - 1 - d) + 1] = points - half.size(dim.back());
  return constant_pad_nd(half, padding, Scalar(0));
}

}  // namespace

void register_fft_operators(Table& t) {
  t.op(fft_c2c, "_fft_c2c(Tensor self, int[] dim, int normalization, bool forward) -> Tensor", c2c_kernel)
      .function_only()
      .out()
      .doc("Discrete Fourier transform along dim, from complex numbers to complex numbers.")
      .family(Family::Transform)
      .on_devices()
      .linear()
      .batching(Batching::Dims)
      .derivative([](Grad g, Attr<1, IntList> dim, Attr<2, int64_t> normalization, Attr<3, bool> forward) {
        return fft_c2c(g, *dim, *normalization, !*forward);
      });
  t.op(fft_r2c, "_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor", r2c_kernel)
      .function_only()
      .out()
      .doc(
          "Discrete Fourier transform along dim of real numbers; onesided leaves out the second half of the "
          "last of them.")
      .family(Family::Transform)
      .on_devices()
      .linear()
      .batching(Batching::Dims)
      .derivative([](Grad g, Shape<0> shape, Attr<1, IntList> dim, Attr<2, int64_t> normalization,
                     Attr<3, bool> onesided) {
        const int64_t n = dim->empty() ? 0 : shape.size(dim->back());
        return r2c_gradient(g, *dim, *normalization, *onesided, n);
      });
  t.op(fft_c2r, "_fft_c2r(Tensor self, int[] dim, int normalization, int last_dim_size) -> Tensor",
       c2r_kernel)
      .function_only()
      .out()
      .doc(
          "Inverse discrete Fourier transform of the first half of a spectrum, back to last_dim_size real "
          "numbers.")
      .family(Family::Transform)
      .on_devices()
      .linear()
      .batching(Batching::Dims)
      .derivative([](Grad g, Shape<0> shape, Attr<1, IntList> dim, Attr<2, int64_t> normalization,
                     Attr<3, int64_t> n) {
        const int64_t points = dim->empty() ? 0 : shape.size(dim->back());
        return c2r_gradient(g, *dim, *normalization, *n, points);
      });
  register_fft_functions(t);
}

}  // namespace rushlight
