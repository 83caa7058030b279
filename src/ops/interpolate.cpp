#include "ops/interpolate.h"

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "cpu/resample.h"
#include "device/layers.h"
#include "dispatch/table.h"
#include "ops/copy.h"
#include "ops/device_loops.h"
#include "ops/register.h"

namespace rushlight {
namespace {

using namespace ops;
using cpu::Filter;

cpu::ResamplePlan plan_of(IntList in, IntList out, Filter filter, bool align_corners, FloatList factors,
                          DType dtype, bool channels_last, bool adjoint) {
  const size_t n = in.size() - 2;
  cpu::ResamplePlan p;
  p.batch = in[0] * (channels_last ? 1 : in[1]);
  p.inner = channels_last ? in[1] : 1;
  for (auto& axis : p.axis) axis.index = {0}, axis.weight = {1.0};
  for (size_t i = 0; i < n; ++i) {
    const double factor = i < factors.size() ? factors[i] : 0;
    const std::optional<double> given = factor > 0 ? std::optional(factor) : std::nullopt;
    auto& axis = p.axis[3 - n + i];
    axis = cpu::resample_axis(filter, in[2 + i], out[2 + i], given, align_corners, dtype);
    if (adjoint) axis = cpu::transposed(axis);
  }
  p.copies = !adjoint && filter <= Filter::NearestExact;
  for (const auto& axis : p.axis) p.skip_zeros = p.skip_zeros || (adjoint && axis.is_padded());
  return p;
}

// A plan's tables on a device, kept for the next call of the same shape: they would cost a copy each time,
// and copies from the program's memory have no place in a graph.
struct DeviceTables {
  cpu::ResamplePlan plan;  // without its tables
  Tensor indices[3], weights[3];
};

Tensor sent(const void* data, int64_t count, DType dtype, Device device) {
  const Tensor here = empty_tensor(IntList{count}, dtype);
  std::memcpy(here.data_ptr(), data, here.nbytes());
  const Tensor there = empty_tensor(IntList{count}, dtype, device);
  loops::copy(there, here);
  return there;
}

struct Resampling {
  Filter filter;
  bool align_corners, adjoint, channels_last;
};
using TableKey = std::tuple<int, bool, bool, bool, std::vector<int64_t>, std::vector<int64_t>,
                            std::vector<double>, DType, int>;

std::shared_ptr<const DeviceTables> tables_of(const Resampling& r, IntList in, IntList out, FloatList factors,
                                              DType dtype, Device device) {
  static std::mutex mutex;
  static auto& known = *new std::map<TableKey, std::shared_ptr<const DeviceTables>>;  // outlives all devices
  constexpr size_t kMost = 64;
  const TableKey key{static_cast<int>(r.filter),
                     r.align_corners,
                     r.adjoint,
                     r.channels_last,
                     {in.begin(), in.end()},
                     {out.begin(), out.end()},
                     {factors.begin(), factors.end()},
                     dtype,
                     device.index()};
  const std::lock_guard lock(mutex);
  if (const auto found = known.find(key); found != known.end()) return found->second;
  auto tables = std::make_shared<DeviceTables>();
  tables->plan = plan_of(in, out, r.filter, r.align_corners, factors, dtype, r.channels_last, r.adjoint);
  for (size_t i = 0; i < 3; ++i) {
    cpu::ResampleAxis& axis = tables->plan.axis[i];
    const auto count = static_cast<int64_t>(axis.index.size());
    tables->indices[i] = sent(axis.index.data(), count, DType::Int32, device);
    tables->weights[i] = sent(axis.weight.data(), count, DType::Float64, device);
    axis.index.clear(), axis.weight.clear();
  }
  if (known.size() >= kMost) known.clear();
  known.emplace(key, tables);
  return tables;
}

void resample_on_device(const Resampling& r, IntList in, IntList out, FloatList factors, const Tensor& from,
                        const Tensor& to) {
  const auto tables = tables_of(r, in, out, factors, from.dtype(), from.device());
  DeviceResample plan;
  plan.batch = tables->plan.batch, plan.inner = tables->plan.inner;
  plan.skip_zeros = tables->plan.skip_zeros;
  const bool moves = tables->plan.copies && to.numel() < INT32_MAX;  // by 32-bit indices, without weights
  for (size_t i = 0; i < 3; ++i) {
    const cpu::ResampleAxis& axis = tables->plan.axis[i];
    plan.axis[i] = {axis.in, axis.out, axis.taps, tables->indices[i].data<int32_t>(),
                    moves ? nullptr : tables->weights[i].data<double>()};
  }
  device_layers(from)->resample(from.device().index(), from.dtype(), plan, from.data_ptr(), to.data_ptr());
}

void check_sizes(IntList in, IntList out) {
  bool positive = true;
  for (size_t i = 2; i < in.size(); ++i) positive = positive && in[i] > 0;
  for (int64_t o : out) positive = positive && o > 0;
  RL_CHECK(positive, "Input and output sizes should be greater than 0, but got input ", in.slice(2),
           " output ", out);
  constexpr int64_t kMost = int64_t{1} << 31;
  for (size_t i = 2; i < in.size(); ++i)
    RL_CHECK(in[i] < kMost && out[i - 2] < kMost, "interpolate: sizes must be below 2^31, got input ", in,
             " output ", out);
}

Tensor run(const Tensor& input, IntList size, Filter filter, bool align_corners, FloatList factors) {
  const auto n = static_cast<int64_t>(size.size());
  RL_CHECK(n >= 1 && n <= 3 && input.dim() == n + 2, "It is expected input_size equals to ", n + 2,
           ", but got size ", input.dim());
  check_sizes(input.sizes(), size);
  bool valid = true;
  for (int64_t d = 1; d < n + 2; ++d) valid = valid && input->sizes[static_cast<size_t>(d)] > 0;
  RL_CHECK(valid, "Non-empty ", n + 2, "D data tensor expected but got a tensor with sizes ", input.sizes());
  Dims out{input->sizes[0], input->sizes[1]};
  for (int64_t s : size) out.push_back(s);
  const MemoryFormat format = image_format(input);
  Tensor result = empty_tensor(out, input.dtype(), input.device(), format);
  const bool known = is_floating(input.dtype()) || input.dtype() == DType::UInt8;
  if (!known || is_float8(input.dtype()))
    RL_NOT_IMPLEMENTED("\"upsample\" not implemented for '", legacy_name(input.dtype()), "'");
  if (result.device().is_meta() || result.numel() == 0) return result;
  const Tensor dense = input.is_contiguous(format) ? input : contiguous(input, format);
  const bool last = format != MemoryFormat::Contiguous;
  if (!result.is_cpu())
    resample_on_device({filter, align_corners, false, last}, input.sizes(), out, factors, dense, result);
  else
    cpu::resample(input.dtype(),
                  plan_of(input.sizes(), out, filter, align_corners, factors, input.dtype(), last, false),
                  dense.data_ptr(), result.data_ptr());
  return result;
}

Tensor upsample_by_kernel(const Call&, const Tensor& input, IntList size, int64_t filter, bool align_corners,
                          FloatList factors) {
  return run(input, size, static_cast<Filter>(filter), align_corners, factors);
}

Tensor upsample_by_backward_kernel(const Call&, const Tensor& grad, IntList input_size, int64_t filter,
                                   bool align_corners, FloatList factors) {
  RL_CHECK(grad.dim() >= 3 && grad.dim() <= 5 && static_cast<int64_t>(input_size.size()) == grad.dim() &&
               grad.sizes().slice(0, 2) == input_size.slice(0, 2) &&
               static_cast<int64_t>(factors.size()) == grad.dim() - 2,
           "_upsample_backward: a gradient of shape ", grad.sizes(), " and ", factors.size(),
           " factors do not fit an input of shape ", input_size);
  RL_CHECK(filter >= 0 && filter <= static_cast<int64_t>(Filter::Lanczos),
           "_upsample_backward: no filter has the number ", filter);
  const MemoryFormat format = image_format(grad);
  Tensor result = empty_tensor(input_size, grad.dtype(), grad.device(), format);
  if (result.device().is_meta() || result.numel() == 0) return result;
  const Tensor dense = grad.is_contiguous(format) ? grad : contiguous(grad, format);
  const bool last = format != MemoryFormat::Contiguous;
  const auto by = static_cast<Filter>(filter);
  if (!result.is_cpu())
    resample_on_device({by, align_corners, true, last}, input_size, grad.sizes(), factors, dense, result);
  else
    cpu::resample(grad.dtype(),
                  plan_of(input_size, grad.sizes(), by, align_corners, factors, grad.dtype(), last, true),
                  dense.data_ptr(), result.data_ptr());
  return result;
}

template <Filter filter, class... F>
Tensor plain(const Call&, const Tensor& input, IntList size, F... factor) {
  const double factors[] = {factor.value_or(0)...};
  return run(input, size, filter, false, factors);
}
template <Filter filter, class... F>
Tensor aligned(const Call&, const Tensor& input, IntList size, bool align_corners, F... factor) {
  const double factors[] = {factor.value_or(0)...};
  return run(input, size, filter, align_corners, factors);
}

template <Filter filter, class... F>
Tensor backward(const Tensor& g, IntList input_size, bool align_corners, const F&... factor) {
  const double factors[] = {factor->value_or(0)...};
  return upsample_by_backward(g, input_size, static_cast<int64_t>(filter), align_corners, factors);
}

// The forms that take all factors in one list, or the size from them.
template <Filter filter, int N>
Tensor by_list(const Tensor& input, const OptIntList& size, bool align_corners,
               const std::optional<FloatList>& factors) {
  RL_CHECK(size.has_value() != factors.has_value(),
           "Must specify exactly one of output_size and scale_factors");
  RL_CHECK(input.dim() == N + 2, "It is expected input_size equals to ", N + 2, ", but got size ",
           input.dim());
  RL_CHECK(static_cast<int>(size ? size->size() : factors->size()) == N, "interpolate: expected ", N,
           " sizes or factors, got ", size ? size->size() : factors->size());
  double given[N] = {};
  Dims out;
  for (int i = 0; i < N; ++i) {
    if (factors) given[i] = (*factors)[static_cast<size_t>(i)];
    out.push_back(size ? (*size)[static_cast<size_t>(i)]
                       : static_cast<int64_t>(static_cast<double>(input->sizes[static_cast<size_t>(i) + 2]) *
                                              given[i]));
  }
  const auto factor = [&](int i) { return given[i] > 0 ? Factor(given[i]) : std::nullopt; };
  if constexpr (filter == Filter::Nearest && N == 1) return upsample_nearest1d(input, out, factor(0));
  if constexpr (filter == Filter::Nearest && N == 2)
    return upsample_nearest2d(input, out, factor(0), factor(1));
  if constexpr (filter == Filter::Nearest && N == 3)
    return upsample_nearest3d(input, out, factor(0), factor(1), factor(2));
  if constexpr (filter == Filter::NearestExact && N == 1)
    return upsample_nearest_exact1d(input, out, factor(0));
  if constexpr (filter == Filter::NearestExact && N == 2)
    return upsample_nearest_exact2d(input, out, factor(0), factor(1));
  if constexpr (filter == Filter::NearestExact && N == 3)
    return upsample_nearest_exact3d(input, out, factor(0), factor(1), factor(2));
  if constexpr (filter == Filter::Linear && N == 1)
    return upsample_linear1d(input, out, align_corners, factor(0));
  if constexpr (filter == Filter::Linear && N == 3)
    return upsample_trilinear3d(input, out, align_corners, factor(0), factor(1), factor(2));
  if constexpr (N == 2) {
    constexpr auto& op = filter == Filter::Linear            ? upsample_bilinear2d
                         : filter == Filter::Cubic           ? upsample_bicubic2d
                         : filter == Filter::LinearAntialias ? upsample_bilinear2d_aa
                         : filter == Filter::CubicAntialias  ? upsample_bicubic2d_aa
                                                             : upsample_lanczos2d_aa;
    return op(input, out, align_corners, factor(0), factor(1));
  }
}
template <Filter filter, int N>
Tensor plain_list(const Call&, const Tensor& input, const OptIntList& size,
                  const std::optional<FloatList>& factors) {
  return by_list<filter, N>(input, size, false, factors);
}
template <Filter filter, int N>
Tensor aligned_list(const Call&, const Tensor& input, const OptIntList& size, bool align_corners,
                    const std::optional<FloatList>& factors) {
  return by_list<filter, N>(input, size, align_corners, factors);
}

template <int K>
using FactorOf = Attr<K, Factor>;

template <Filter filter, int N>
auto plain_rule() {
  if constexpr (N == 1)
    return [](Grad g, Shape<0> x, FactorOf<2> a) { return backward<filter>(g, x, false, a); };
  else if constexpr (N == 2)
    return
        [](Grad g, Shape<0> x, FactorOf<2> a, FactorOf<3> b) { return backward<filter>(g, x, false, a, b); };
  else
    return [](Grad g, Shape<0> x, FactorOf<2> a, FactorOf<3> b, FactorOf<4> c) {
      return backward<filter>(g, x, false, a, b, c);
    };
}
template <Filter filter, int N>
auto aligned_rule() {
  using Align = Attr<2, bool>;
  if constexpr (N == 1)
    return [](Grad g, Shape<0> x, Align align, FactorOf<3> a) { return backward<filter>(g, x, align, a); };
  else if constexpr (N == 2)
    return [](Grad g, Shape<0> x, Align align, FactorOf<3> a, FactorOf<4> b) {
      return backward<filter>(g, x, align, a, b);
    };
  else
    return [](Grad g, Shape<0> x, Align align, FactorOf<3> a, FactorOf<4> b, FactorOf<5> c) {
      return backward<filter>(g, x, align, a, b, c);
    };
}

constexpr const char* kScales[] = {"", "float? scales=None", "float? scales_h=None, float? scales_w=None",
                                   "float? scales_d=None, float? scales_h=None, float? scales_w=None"};
constexpr const char* kListDoc = "The same, with the size or all scale factors in a list.";
constexpr const char* kDoc = "Resized to output_size. Shape: [batch, channels, spatial...].";

// Lanczos is ours, and on no list of PyTorch's.
constexpr Cast cast_on_cuda(Filter filter) { return filter == Filter::Lanczos ? Cast::None : Cast::Float; }

template <Filter filter, int N, class F>
void add_plain(Table& t, F& handle, const char* name) {
  t.op(handle,
       kept_schema(str("nn::", name, "(Tensor self, int[", N, "] output_size, ", kScales[N], ") -> Tensor")),
       plain<filter>)
      .out(OutRule::SameType)
      .doc(kDoc)
      .family(Family::Window)
      .on_devices()
      .batching(Batching::Batch)
      .autocast(Cast::None, cast_on_cuda(filter))
      .derivative(plain_rule<filter, N>());
  t.composite(kept_schema(str("nn::", name,
                              ".vec(Tensor input, int[]? output_size, float[]? scale_factors) -> Tensor")),
              plain_list<filter, N>)
      .doc(kListDoc)
      .autocast(Cast::None, cast_on_cuda(filter));
}
template <Filter filter, int N, class F>
void add_aligned(Table& t, F& handle, const char* name) {
  t.op(handle,
       kept_schema(str("nn::", name, "(Tensor self, int[", N, "] output_size, bool align_corners, ",
                       kScales[N], ") -> Tensor")),
       aligned<filter>)
      .out(OutRule::SameType)
      .doc(kDoc)
      .family(Family::Window)
      .on_devices()
      .batching(Batching::Batch)
      .autocast(Cast::None, cast_on_cuda(filter))
      .derivative(aligned_rule<filter, N>());
  t.composite(
       kept_schema(str(
           "nn::", name,
           ".vec(Tensor input, int[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor")),
       aligned_list<filter, N>)
      .doc(kListDoc)
      .autocast(Cast::None, cast_on_cuda(filter));
}

}  // namespace

void register_interpolate_operators(Table& t) {
  add_plain<Filter::Nearest, 1>(t, upsample_nearest1d, "upsample_nearest1d");
  add_plain<Filter::Nearest, 2>(t, upsample_nearest2d, "upsample_nearest2d");
  add_plain<Filter::Nearest, 3>(t, upsample_nearest3d, "upsample_nearest3d");
  add_plain<Filter::NearestExact, 1>(t, upsample_nearest_exact1d, "_upsample_nearest_exact1d");
  add_plain<Filter::NearestExact, 2>(t, upsample_nearest_exact2d, "_upsample_nearest_exact2d");
  add_plain<Filter::NearestExact, 3>(t, upsample_nearest_exact3d, "_upsample_nearest_exact3d");
  add_aligned<Filter::Linear, 1>(t, upsample_linear1d, "upsample_linear1d");
  add_aligned<Filter::Linear, 2>(t, upsample_bilinear2d, "upsample_bilinear2d");
  add_aligned<Filter::Linear, 3>(t, upsample_trilinear3d, "upsample_trilinear3d");
  add_aligned<Filter::Cubic, 2>(t, upsample_bicubic2d, "upsample_bicubic2d");
  add_aligned<Filter::LinearAntialias, 2>(t, upsample_bilinear2d_aa, "_upsample_bilinear2d_aa");
  add_aligned<Filter::CubicAntialias, 2>(t, upsample_bicubic2d_aa, "_upsample_bicubic2d_aa");
  add_aligned<Filter::Lanczos, 2>(t, upsample_lanczos2d_aa, "_upsample_lanczos2d_aa");
  t.op(upsample_by,
       "_upsample(Tensor input, int[] output_size, int filter, bool align_corners, float[] factors) -> "
       "Tensor",
       upsample_by_kernel)
      .absent_in_pytorch()
      .doc("Resizes by the filter of this number.")
      .internal()
      .family(Family::Window)
      .on_devices()
      .batching(Batching::Batch)
      .derivative(
          [](Grad g, Shape<0> x, Attr<2, int64_t> filter, Attr<3, bool> align, Attr<4, FloatList> factors) {
            return upsample_by_backward(g, x, filter, align, factors);
          });
  t.op(upsample_by_backward,
       "_upsample_backward(Tensor grad_output, int[] input_size, int filter, bool align_corners, float[] "
       "factors) -> Tensor",
       upsample_by_backward_kernel)
      .absent_in_pytorch()
      .doc("The adjoint of resizing by the filter of this number.")
      .internal()
      .family(Family::Gradient)
      .on_devices()
      .batching(Batching::Batch)
      .derivative(
          [](Grad g, Shape<0> y, Attr<2, int64_t> filter, Attr<3, bool> align, Attr<4, FloatList> factors) {
            return upsample_by(g, y.sizes().slice(2), filter, align, factors);
          });
}

}  // namespace rushlight
