// The functions of torch.fft: arguments and conventions over the three transforms of fft.cpp.
#include <numeric>

#include "dispatch/table.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/fft.h"
#include "ops/index.h"
#include "ops/operators.h"
#include "ops/pad.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;
using Norm = std::optional<std::string_view>;
using OptLayout = std::optional<Layout>;
using OptBool = std::optional<bool>;

// --- arguments

// 0 none, 1 by the square root of the number of points, 2 by the number.
int64_t normalization(const Norm& norm, bool forward) {
  if (!norm || *norm == "backward") return forward ? 0 : 2;
  if (*norm == "forward") return forward ? 2 : 0;
  RL_CHECK(*norm == "ortho", "Invalid normalization mode: \"", *norm, "\"");
  return 1;
}

// Integers in the default dtype; the half types have no transform.
Tensor promoted(const Tensor& t, bool want_complex) {
  if (is_complex(t.dtype())) return t;
  const DType type = is_integral_or_bool(t.dtype()) ? get_default_dtype() : t.dtype();
  RL_CHECK(type == DType::Float32 || type == DType::Float64, "Unsupported dtype ", legacy_name(type));
  return to_dtype(t, want_complex ? complex_dtype(type) : type);
}

void check_points(int64_t n) { RL_CHECK(n >= 1, "Invalid number of data points (", n, ") specified"); }

// Cut or padded with zeros to the given sizes; -1 leaves a dimension as it is.
Tensor resized(const Tensor& self, IntList dims, IntList sizes) {
  Tensor t = self;
  Dims padding(2 * static_cast<size_t>(t.dim()));
  bool padded = false;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t d = dims[i], have = t->sizes[d];
    if (sizes[i] == -1 || sizes[i] == have) continue;
    if (sizes[i] < have) {
      t = narrow(t, d, 0, sizes[i]);
    } else {
      padding[2 * static_cast<size_t>(t.dim() - 1 - d) + 1] = sizes[i] - have;
      padded = true;
    }
  }
  return padded ? constant_pad_nd(t, padding, Scalar(0)) : t;
}

// --- one dimension

void check_real(const Call& call, const Tensor& self) {
  RL_CHECK(!is_complex(self.dtype()), call.op.name(), " expects a real input tensor, but got ",
           legacy_name(self.dtype()));
}

Tensor real_to_complex(const Call& call, const Tensor& self, OptInt n, int64_t dim, const Norm& norm,
                       bool forward, bool onesided) {
  check_real(call, self);
  Tensor input = promoted(self, false);
  dim = wrap_dim(dim, input.dim(), false);
  check_points(n.value_or(input.size(dim)));
  if (n) input = resized(input, {dim}, {*n});
  const Tensor y = fft_r2c(input, IntList(&dim, 1), normalization(norm, forward), onesided);
  return forward ? y : conj_of(y);
}

template <bool Forward>
Tensor complex_body(const Call& call, const Tensor& self, OptInt n, int64_t dim, Norm norm) {
  if (!is_complex(self.dtype())) return real_to_complex(call, self, n, dim, norm, Forward, false);
  dim = wrap_dim(dim, self.dim(), false);
  check_points(n.value_or(self.size(dim)));
  const Tensor input = n ? resized(self, {dim}, {*n}) : self;
  return fft_c2c(input, IntList(&dim, 1), normalization(norm, Forward), Forward);
}

template <bool Forward>
Tensor half_body(const Call& call, const Tensor& self, OptInt n, int64_t dim, Norm norm) {
  return real_to_complex(call, self, n, dim, norm, Forward, true);
}

template <bool Forward>
Tensor real_body(const Call&, const Tensor& self, OptInt n, int64_t dim, Norm norm) {
  Tensor input = promoted(self, true);
  dim = wrap_dim(dim, input.dim(), false);
  const int64_t points = n.value_or(2 * (input.size(dim) - 1));
  check_points(points);
  if (n) input = resized(input, {dim}, {points / 2 + 1});
  return fft_c2r(Forward ? conj_of(input) : input, IntList(&dim, 1), normalization(norm, Forward), points);
}

// --- several dimensions

struct Extent {
  Dims dims, sizes;
};

Extent extent_of(const Tensor& self, const OptIntList& s, const OptIntList& dim) {
  Extent e;
  const int64_t n = self.dim();
  if (dim) {
    for (int64_t d : *dim) e.dims.push_back(wrap_dim(d, n, false));
    Dims sorted = e.dims;
    std::ranges::sort(sorted);
    RL_CHECK(std::ranges::adjacent_find(sorted) == sorted.end(), "FFT dims must be unique");
  }
  if (s) {
    RL_CHECK(!dim || dim->size() == s->size(),
             "When given, dim and shape arguments must have the same length");
    const auto count = static_cast<int64_t>(s->size());
    RL_CHECK(count <= n, "Got shape with ", count, " values but input tensor only has ", n, " dimensions.");
    if (!dim)
      for (int64_t d = n - count; d < n; ++d) e.dims.push_back(d);
  } else if (!dim) {
    for (int64_t d = 0; d < n; ++d) e.dims.push_back(d);
  }
  for (size_t i = 0; i < e.dims.size(); ++i) {
    const int64_t own = self->sizes[e.dims[i]];
    e.sizes.push_back(s && (*s)[i] != -1 ? (*s)[i] : own);
    check_points(e.sizes.back());
  }
  return e;
}

void check_some_axis(const Call& call, const Extent& e) {
  RL_CHECK(!e.dims.empty(), call.op.name(), " must transform at least one axis");
}

// As above for the dimensions of a half spectrum: sizes count its points; returns how many real ones result.
int64_t half_extent(const Call& call, const Tensor& self, const OptIntList& s, const OptIntList& dim,
                    Extent& e) {
  e = extent_of(self, s, dim);
  check_some_axis(call, e);
  const bool given = s && s->back() != -1;
  const int64_t points = given ? e.sizes.back() : 2 * (self->sizes[e.dims.back()] - 1);
  check_points(points);
  e.sizes.back() = points / 2 + 1;
  return points;
}

IntList but_last(const Dims& dims) { return IntList(dims).slice(0, dims.size() - 1); }

template <bool Forward>
Tensor complex_nd(const Call&, const Tensor& self, OptIntList s, OptIntList dim, Norm norm) {
  const Extent e = extent_of(self, s, dim);
  const Tensor x = resized(promoted(self, true), e.dims, e.sizes);
  return fft_c2c(x, e.dims, normalization(norm, Forward), Forward);
}

Tensor rfft_nd(const Call& call, const Tensor& self, OptIntList s, OptIntList dim, Norm norm) {
  RL_CHECK(!is_complex(self.dtype()), call.op.name(), " expects a real-valued input tensor, but got ",
           legacy_name(self.dtype()));
  const Extent e = extent_of(self, s, dim);
  check_some_axis(call, e);
  return fft_r2c(resized(promoted(self, false), e.dims, e.sizes), e.dims, normalization(norm, true), true);
}

Tensor irfft_nd(const Call& call, const Tensor& self, OptIntList s, OptIntList dim, Norm norm) {
  Extent e;
  const int64_t points = half_extent(call, self, s, dim, e);
  const Tensor x = resized(promoted(self, true), e.dims, e.sizes);
  return fft_c2r(x, e.dims, normalization(norm, false), points);
}

Tensor hfft_nd(const Call& call, const Tensor& self, OptIntList s, OptIntList dim, Norm norm) {
  Extent e;
  const int64_t points = half_extent(call, self, s, dim, e);
  Tensor x = resized(promoted(self, true), e.dims, e.sizes);
  const int64_t mode = normalization(norm, true), last = e.dims.back();
  if (e.dims.size() > 1) x = fft_c2c(x, but_last(e.dims), mode, true);
  return fft_c2r(conj_of(x), IntList(&last, 1), mode, points);
}

Tensor ihfft_nd(const Call& call, const Tensor& self, OptIntList s, OptIntList dim, Norm norm) {
  const Extent e = extent_of(self, s, dim);
  check_some_axis(call, e);
  RL_CHECK(!is_complex(self.dtype()), call.op.name(), " expects a real-valued input tensor, but got ",
           legacy_name(self.dtype()));
  const int64_t mode = normalization(norm, false), last = e.dims.back();
  const Tensor x = resized(promoted(self, false), e.dims, e.sizes);
  const Tensor y = conj_of(fft_r2c(x, IntList(&last, 1), mode, true));
  return e.dims.size() == 1 ? y : fft_c2c(y, but_last(e.dims), mode, false);
}

// In two dimensions `dim` has a default instead of meaning all.
template <Tensor (*Body)(const Call&, const Tensor&, OptIntList, OptIntList, Norm)>
Tensor in_two(const Call& call, const Tensor& self, OptIntList s, IntList dim, Norm norm) {
  return Body(call, self, s, dim, norm);
}

// --- helpers

// Integers 0, 1, ... of which those from `wrap` on continue at `restart`, times 1 / (n d).
Tensor frequencies(const Call& call, int64_t n, int64_t count, int64_t wrap, double d, OptDType dtype,
                   OptLayout layout, OptDevice device, OptBool pin) {
  if (call.out) {
    RL_CHECK(!dtype || *dtype == call.out->dtype(), "dtype ", legacy_name(*dtype),
             " does not match dtype of out parameter (", legacy_name(call.out->dtype()), ")");
    dtype = call.out->dtype();
    device = call.out->device();
  }
  const DType type = dtype.value_or(get_default_dtype());
  RL_CHECK(is_floating(type) || is_complex(type), call.op.name(),
           " requires a floating point or complex dtype");
  RL_CHECK(count >= 0, "upper bound and lower bound inconsistent with step sign");
  auto range = [&](int64_t from, int64_t to) {
    return arange(Scalar(from), Scalar(to), Scalar(1), type, layout, device, pin);
  };
  Tensor steps = range(0, wrap);
  if (wrap < count) {
    const Tensor whole = empty_tensor(IntList{count}, type, steps.device());
    copy_result(narrow(whole, 0, 0, wrap), steps, false);
    copy_result(narrow(whole, 0, wrap, count - wrap), range(wrap - count, 0), false);
    steps = whole;
  }
  return steps * Scalar(1.0 / (static_cast<double>(n) * d));
}

Tensor fftfreq_kernel(const Call& call, int64_t n, double d, OptDType dtype, OptLayout layout,
                      OptDevice device, OptBool pin) {
  return frequencies(call, n, n, (n + 1) / 2, d, dtype, layout, device, pin);
}
Tensor rfftfreq_kernel(const Call& call, int64_t n, double d, OptDType dtype, OptLayout layout,
                       OptDevice device, OptBool pin) {
  return frequencies(call, n, n / 2 + 1, n / 2 + 1, d, dtype, layout, device, pin);
}

template <bool Inverse>
Tensor shift_body(const Call&, const Tensor& self, OptIntList dim) {
  Dims all(static_cast<size_t>(self.dim()));
  std::iota(all.begin(), all.end(), 0);
  const IntList dims = dim ? *dim : IntList(all);
  Dims shifts;
  for (int64_t d : dims) shifts.push_back((self.size(d) + (Inverse ? 1 : 0)) / 2);
  return dims.empty() ? clone(self, std::nullopt) : roll(self, shifts, dims);
}

}  // namespace

void register_fft_functions(Table& t) {
  auto function = [](OpBuilder r, const char* doc) {
    r.function_only().out(OutRule::SameCategory).autocast(Cast::Float).doc(doc);
  };
#define RL_FFT_1D "(Tensor self, int? n=None, int dim=-1, str? norm=None) -> Tensor"
#define RL_FFT_2D "(Tensor self, int[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor"
#define RL_FFT_ND "(Tensor self, int[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor"
  function(t.composite("fft::fft" RL_FFT_1D, complex_body<true>),
           "Discrete Fourier transform along dim, of n points.");
  function(t.composite("fft::ifft" RL_FFT_1D, complex_body<false>), "Inverse of fft.");
  function(t.composite("fft::rfft" RL_FFT_1D, half_body<true>),
           "The first half of the transform of real numbers; the rest is its mirror image.");
  function(t.composite("fft::irfft" RL_FFT_1D, real_body<false>), "Inverse of rfft: n real numbers.");
  function(t.composite("fft::hfft" RL_FFT_1D, real_body<true>),
           "Transform of a signal that is symmetric up to conjugation, given by its first half.");
  function(t.composite("fft::ihfft" RL_FFT_1D, half_body<false>), "Inverse of hfft.");
  function(t.composite("fft::fftn" RL_FFT_ND, complex_nd<true>),
           "Discrete Fourier transform along several dimensions, by default all.");
  function(t.composite("fft::ifftn" RL_FFT_ND, complex_nd<false>), "Inverse of fftn.");
  function(t.composite("fft::rfftn" RL_FFT_ND, rfft_nd),
           "fftn of real numbers, of which the last dimension keeps its first half.");
  function(t.composite("fft::irfftn" RL_FFT_ND, irfft_nd), "Inverse of rfftn.");
  function(t.composite("fft::hfftn" RL_FFT_ND, hfft_nd),
           "fftn of a signal that is symmetric up to conjugation in the last dimension, given by its half.");
  function(t.composite("fft::ihfftn" RL_FFT_ND, ihfft_nd), "Inverse of hfftn.");
  function(t.composite("fft::fft2" RL_FFT_2D, in_two<complex_nd<true>>), "fftn of the last two dimensions.");
  function(t.composite("fft::ifft2" RL_FFT_2D, in_two<complex_nd<false>>),
           "ifftn of the last two dimensions.");
  function(t.composite("fft::rfft2" RL_FFT_2D, in_two<rfft_nd>), "rfftn of the last two dimensions.");
  function(t.composite("fft::irfft2" RL_FFT_2D, in_two<irfft_nd>), "irfftn of the last two dimensions.");
  function(t.composite("fft::hfft2" RL_FFT_2D, in_two<hfft_nd>), "hfftn of the last two dimensions.");
  function(t.composite("fft::ihfft2" RL_FFT_2D, in_two<ihfft_nd>), "ihfftn of the last two dimensions.");
#undef RL_FFT_1D
#undef RL_FFT_2D
#undef RL_FFT_ND
  t.composite("fft::fftshift(Tensor self, int[1]? dim=None) -> Tensor", shift_body<false>)
      .function_only()
      .doc("Moves frequency 0 from the front to the middle.");
  t.composite("fft::ifftshift(Tensor self, int[1]? dim=None) -> Tensor", shift_body<true>)
      .function_only()
      .doc("Inverse of fftshift.");
#define RL_OPTIONS "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
  auto factory = [](OpBuilder r, const char* doc) {
    r.family(Family::Factory).not_differentiable("made from numbers, not from tensors").out().doc(doc);
  };
  static Fn<Tensor(int64_t, double, OptDType, OptLayout, OptDevice, OptBool)> fftfreq, rfftfreq;
  factory(t.op(fftfreq, "fft::fftfreq(int n, float d=1.0, *, " RL_OPTIONS ") -> Tensor", fftfreq_kernel),
          "The frequencies of fft's points, for samples d apart.");
  factory(t.op(rfftfreq, "fft::rfftfreq(int n, float d=1.0, *, " RL_OPTIONS ") -> Tensor", rfftfreq_kernel),
          "The frequencies of rfft's points, for samples d apart.");
#undef RL_OPTIONS
}

}  // namespace rushlight
