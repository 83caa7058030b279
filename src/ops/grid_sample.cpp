#include "ops/grid_sample.h"

#include "cpu/grid_sample.h"
#include "device/layers.h"
#include "dispatch/table.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/join.h"
#include "ops/matmul.h"
#include "ops/operators.h"
#include "ops/reduction.h"
#include "ops/reference.h"
#include "ops/register.h"
#include "ops/view.h"

namespace rushlight {

cpu::SamplePlan sample_plan(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding,
                            bool align) {
  RL_CHECK(padding >= 0 && padding <= 2, "grid_sampler(): unknown padding mode ", padding);
  cpu::SamplePlan p;
  p.dtype = input.dtype();
  p.batch = input->sizes[0], p.channels = input->sizes[1];
  p.dims = static_cast<int>(input.dim()) - 2;
  p.points = 1;
  for (int d = 0; d < p.dims; ++d) {
    p.size[static_cast<size_t>(3 - p.dims + d)] = input.size(2 + d);
    p.points *= grid.size(1 + d);
  }
  RL_CHECK(p.plane() < (int64_t{1} << 31), "grid_sampler(): expected fewer than 2^31 pixels, got ",
           input.sizes());
  p.step = {p.size[1] * p.size[2], p.size[2], 1};
  p.channel_step = p.plane(), p.batch_step = p.channels * p.plane();
  p.mode = static_cast<cpu::SampleMode>(mode);
  p.padding = static_cast<cpu::SamplePadding>(padding);
  p.align_corners = align;
  return p;
}

void check_grid(const Tensor& input, const Tensor& grid, int64_t mode) {
  if (!is_floating(input.dtype()))
    RL_NOT_IMPLEMENTED("\"grid_sampler\" not implemented for '", legacy_name(input.dtype()), "'");
  RL_CHECK(input.dtype() == grid.dtype(),
           "grid_sampler(): expected input and grid to have same dtype, but input has ",
           dtype_name(input.dtype()), " and grid has ", dtype_name(grid.dtype()));
  RL_CHECK((input.dim() == 4 || input.dim() == 5) && input.dim() == grid.dim(),
           "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but got input "
           "with sizes ",
           input.sizes(), " and grid with sizes ", grid.sizes());
  RL_CHECK(input->sizes[0] == grid->sizes[0],
           "grid_sampler(): expected grid and input to have same batch size, but got input with sizes ",
           input.sizes(), " and grid with sizes ", grid.sizes());
  RL_CHECK(grid.size(-1) == input.dim() - 2, "grid_sampler(): expected grid to have size ", input.dim() - 2,
           " in last dimension, but got grid with sizes ", grid.sizes());
  for (int64_t d = 2; d < input.dim(); ++d)
    RL_CHECK(input.size(d) > 0,
             "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes ",
             input.sizes(), " with dimension ", d, " being empty");
  RL_CHECK(mode >= 0 && mode <= 2 && !(input.dim() == 5 && mode == 2),
           "grid_sampler(): bicubic interpolation only supports 4D input");
}

namespace {

using namespace ops;
using cpu::SampleMode;
using cpu::SamplePadding;

// Whether an input that is not contiguous is sampled where it lies: its planes are, or few of its pixels are
// read.
bool pays_in_place(const Tensor& input, const cpu::SamplePlan& p) {
  int64_t last = 0, dense = 1;
  bool planes = true;
  for (int64_t d = input.dim(); d-- > 2; dense *= input->sizes[d]) {
    last += (input->sizes[d] - 1) * input->strides[d];
    planes &= input->sizes[d] == 1 || input->strides[d] == dense;
  }
  return planes || (last < (int64_t{1} << 31) && 8 * p.points <= p.plane());
}
void lie_as(const Tensor& input, cpu::SamplePlan& p) {
  p.batch_step = input->strides[0], p.channel_step = input->strides[1];
  for (int64_t d = 0; d < p.dims; ++d) p.step[static_cast<size_t>(3 - p.dims + d)] = input->strides[2 + d];
}

Tensor sampler_kernel(const Call&, const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding,
                      bool align) {
  check_grid(input, grid, mode);
  Dims sizes{input->sizes[0], input->sizes[1]};
  for (int64_t d = 1; d < grid.dim() - 1; ++d) sizes.push_back(grid.size(d));
  Tensor result = empty_tensor(sizes, input.dtype(), input.device());
  cpu::SamplePlan plan = sample_plan(input, grid, mode, padding, align);
  if (result.device().is_meta() || result.numel() == 0) return result;
  const Tensor where = contiguous(grid);
  if (const DeviceLayers* layers = device_layers(result)) {
    const Tensor x = contiguous(input);
    layers->grid_sample(result.device().index(), plan, x.data_ptr(), where.data_ptr(), result.data_ptr());
    return result;
  }
  const bool in_place = !input.is_contiguous() && pays_in_place(input, plan);
  if (in_place) lie_as(input, plan);
  const Tensor x = in_place ? input : contiguous(input);
  cpu::grid_sample(plan, x.data_ptr(), where.data_ptr(), result.data_ptr());
  return result;
}

// --- the reference implementation, in public operators

// One tap of an axis: whole positions in pixels, and weights.
struct Tap {
  Tensor at, weight;
};

Tensor reflected(const Tensor& x, double low, double high) {  // given doubled
  if (low == high) return x * Scalar(0);
  const double start = low / 2, span = (high - low) / 2;
  const Tensor distance = abs(x - Scalar(start));
  const Tensor flips = floor(distance / Scalar(span)), extra = distance - flips * Scalar(span);
  const Tensor even = rushlight::eq(flips - floor(flips / Scalar(2)) * Scalar(2), Scalar(0));
  return rushlight::where(even, extra + Scalar(start), Scalar(span + start) - extra);
}
Tensor padded(const Tensor& x, int64_t size, SamplePadding padding, bool align) {
  const auto last = static_cast<double>(size - 1);
  Tensor y = x;
  if (padding == SamplePadding::Reflection)
    y = align ? reflected(x, 0, 2 * last) : reflected(x, -1, 2 * last + 1);
  if (padding != SamplePadding::Zeros) y = clamp(y, Scalar(0), Scalar(last));
  return y;
}

std::vector<Tap> taps_of(const Tensor& coordinate, int64_t size, SampleMode mode, SamplePadding padding,
                         bool align) {
  const auto n = static_cast<double>(size);
  Tensor x = align ? (coordinate + Scalar(1)) * Scalar((n - 1) / 2)
                   : (coordinate + Scalar(1)) * Scalar(n / 2) - Scalar(0.5);
  std::vector<Tap> taps;
  if (mode == SampleMode::Bicubic) {
    const double a = -0.75;
    const Tensor base = ops::detach(floor(x)), u = x - base, v = Scalar(1) - u;
    const auto inner = [a](const Tensor& t) {
      return (t * Scalar(a + 2) - Scalar(a + 3)) * t * t + Scalar(1);
    };
    const auto outer = [a](const Tensor& t) {
      return ((t * Scalar(a) - Scalar(5 * a)) * t + Scalar(8 * a)) * t - Scalar(4 * a);
    };
    const Tensor weights[] = {outer(u + Scalar(1)), inner(u), inner(v), outer(v + Scalar(1))};
    for (int k = 0; k < 4; ++k)
      taps.push_back({padded(base + Scalar(k - 1), size, padding, align), weights[k]});
    return taps;
  }
  x = padded(x, size, padding, align);
  if (mode == SampleMode::Nearest) return {{ops::detach(round(x)), ones_like(x)}};
  const Tensor base = ops::detach(floor(x)), u = x - base;
  return {{base, Scalar(1) - u}, {base + Scalar(1), u}};
}

Tensor sampler_reference(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding, bool align) {
  const int64_t dims = input.dim() - 2, n = input->sizes[0], channels = input->sizes[1];
  std::vector<std::vector<Tap>> axes;
  int64_t points = 1, pixels = 1;
  for (int64_t d = 0; d < dims; ++d) points *= grid->sizes[1 + d], pixels *= input->sizes[2 + d];
  for (int64_t d = 0; d < dims; ++d)
    axes.push_back(taps_of(reshape(select(grid, -1, dims - 1 - d), IntList{n, 1, points}), input.size(2 + d),
                           static_cast<SampleMode>(mode), static_cast<SamplePadding>(padding), align));
  const Tensor flat = reshape(input, IntList{n, channels, pixels});
  Tensor sum;
  const size_t each = axes[0].size();
  size_t count = 1;
  for (int64_t d = 0; d < dims; ++d) count *= each;
  for (size_t k = 0; k < count; ++k) {
    Tensor weight, index, ok;
    size_t rest = k;
    for (size_t d = 0; d < axes.size(); ++d, rest /= each) {
      const Tap& tap = axes[d][rest % each];
      const auto last = Scalar(input.size(2 + static_cast<int64_t>(d)) - 1);
      const Tensor within = (tap.at >= Scalar(0)) & (tap.at <= last);
      const Tensor at = to_dtype(clamp(tap.at, Scalar(0), last), DType::Int64);
      weight = weight.defined() ? weight * tap.weight : tap.weight;
      index = index.defined() ? index * Scalar(input.size(2 + static_cast<int64_t>(d))) + at : at;
      ok = ok.defined() ? ok & within : within;
    }
    const Tensor values = gather(flat, 2, expand(index, IntList{n, channels, index.size(2)}, false), false);
    const Tensor term = values * (weight * to_dtype(ok, weight.dtype()));
    sum = sum.defined() ? sum + term : term;
  }
  Dims sizes{n, channels};
  for (int64_t d = 1; d < grid.dim() - 1; ++d) sizes.push_back(grid.size(d));
  return reshape(sum, sizes);
}

Tensor sampler_body(const Call&, const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding,
                    bool align) {
  if (!is_quantized(input.dtype())) check_grid(input, grid, mode);  // else the numbers are looked at below
  return input.dim() == 4 ? grid_sampler_2d(input, grid, mode, padding, align)
                          : grid_sampler_3d(input, grid, mode, padding, align);
}

// The points of an image, mapped by affine matrices.
Tensor affine_grid_body(const Call&, const Tensor& theta, IntList size, bool align) {
  RL_CHECK(size.size() == 4 || size.size() == 5,
           "AffineGridGenerator needs 4d (spatial) or 5d (volumetric) size, got ", size);
  const auto n = static_cast<int64_t>(size.size()) - 2;
  RL_CHECK(theta.dim() == 3 && theta->sizes[0] == size[0] && theta->sizes[1] == n && theta->sizes[2] == n + 1,
           "Expected a batch of ", n, "D affine matrices of shape Nx", n, "x", n + 1, " for size ", size,
           ". Got ", theta.sizes());
  Dims shape = size.slice(2).dims();
  std::vector<Tensor> columns;  // in the order x, y, z: the dimensions backwards
  for (int64_t d = n - 1; d >= 0; --d) {
    const int64_t length = shape[static_cast<size_t>(d)];
    const double end =
        length > 1 ? (align ? 1.0 : static_cast<double>(length - 1) / static_cast<double>(length)) : 0;
    Tensor axis = linspace(Scalar(-end), Scalar(end), length, theta.dtype(), std::nullopt, theta.device(),
                           std::nullopt);
    Dims along(static_cast<size_t>(n), 1);
    along[static_cast<size_t>(d)] = length;
    columns.push_back(expand(view(axis, along), shape, false));
  }
  columns.push_back(new_ones(theta, shape));
  const Tensor points = view(stack(columns, -1), IntList{1, -1, n + 1});
  Dims result{size[0]};
  for (int64_t s : shape) result.push_back(s);
  result.push_back(n);
  return view(matmul(expand(points, IntList{size[0], -1, -1}, false), transpose(theta, 1, 2)), result);
}

Grads sampler_gradients(const Tensor& g, const Tensor& x, const Tensor& grid, int64_t mode, int64_t padding,
                        bool align, int64_t wanted) {
  if (derivatives_wanted() || dispatch_state.level) {
    const auto reference = [&](const std::vector<Tensor>& t) {
      return sampler_reference(t[0], t[1], mode, padding, align);
    };
    Grads grads = gradients_of_reference(reference, {x, grid}, g);
    // The nearest pixel does not move with the grid, but the gradient is part of the graph.
    if (wanted & 2 && !grads[1].defined())
      grads[1] = rushlight::where(zeros_like(grid, DType::Bool), grid, zeros_like(grid));
    return grads;
  }
  auto [gx, gg] = grid_sampler_backward(g, x, grid, mode, padding, align, wanted);
  return Grads{gx, gg};
}

template <class F>
OpBuilder add_sampler(Table& t, F& handle, const char* schema) {
  return t.op(handle, schema, sampler_kernel)
      .function_only()
      .doc("input sampled at the points of grid, whose coordinates run from -1 to 1, last dimension first.")
      .derivative([](Grad g, In<0> x, In<1> grid, Attr<2, int64_t> mode, Attr<3, int64_t> padding,
                     Attr<4, bool> align, Needs need) {
        return sampler_gradients(g, x, grid, mode, padding, align, (need[0] ? 1 : 0) | (need[1] ? 2 : 0));
      });
}

}  // namespace

void register_grid_sample_operators(Table& t) {
  add_sampler(t, grid_sampler_2d,
              "grid_sampler_2d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool "
              "align_corners) -> Tensor")
      .family(Family::Window)
      .on_devices()
      .batching(Batching::Batch)
      .autocast(Cast::Float, Cast::None);
  add_sampler(t, grid_sampler_3d,
              "grid_sampler_3d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool "
              "align_corners) -> Tensor")
      .family(Family::Window)
      .on_devices()
      .batching(Batching::Batch)
      .autocast(Cast::Float, Cast::None);
  t.composite(grid_sampler,
              "grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool "
              "align_corners) -> Tensor",
              sampler_body)
      .function_only()
      .doc("grid_sampler_2d or grid_sampler_3d, as the input has dimensions.")
      .autocast(Cast::Float, Cast::Widest);
  t.composite(affine_grid_generator,
              "affine_grid_generator(Tensor theta, int[] size, bool align_corners) -> Tensor",
              affine_grid_body)
      .function_only()
      .doc("The points of an image of this size, mapped by the affine matrices theta, for grid_sampler.");
}

}  // namespace rushlight
