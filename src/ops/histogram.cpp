// Counting into bins: integers, equal bins of numbers, and boxes of points.
#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "core/device_math.h"
#include "core/parallel.h"
#include "cpu/reduce.h"
#include "device/layers.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/index_common.h"
#include "ops/operators.h"
#include "ops/reduction.h"
#include "ops/sort.h"
#include "ops/sort_common.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

// The least and the greatest, in one pass over memory: the second look at a block finds it in the cache.
template <class T>
std::pair<T, T> extremes_of(const Tensor& x, const char* who) {
  constexpr int64_t kBlock = 2048;
  const auto& least = cpu::reduce_kernel(cpu::ReduceOp::Min, x.dtype(), who);
  const auto& greatest = cpu::reduce_kernel(cpu::ReduceOp::Max, x.dtype(), who);
  const int64_t blocks = (x.numel() + kBlock - 1) / kBlock;
  std::vector<T> low(static_cast<size_t>(blocks)), high(low.size());
  for (int64_t b = 0; b < blocks; ++b) {
    const T* from = x.data<T>() + b * kBlock;
    const int64_t n = std::min(kBlock, x.numel() - b * kBlock);
    least.flat(from, n, &low[b], {});
    greatest.flat(from, n, &high[b], {});
  }
  std::pair<T, T> both;
  least.flat(low.data(), blocks, &both.first, {});
  greatest.flat(high.data(), blocks, &both.second, {});
  return both;
}

// The same on a device, one after the other and on the CPU.
Tensor extremes_on_device(const DeviceLayers& layers, const Tensor& x) {
  const Tensor both = empty_tensor({2}, x.dtype(), x.device());
  layers.order.extremes(x.device().index(), x.dtype(), x.data_ptr(), x.numel(), both.data_ptr());
  return to(both, std::nullopt, Device{}, false, false, std::nullopt);
}

// One more than the largest of non-negative integers.
int64_t values_below(const Tensor& at) {
  if (at.numel() == 0) return 0;
  int64_t below = 0;
  const DeviceLayers* layers = device_layers(at);
  const Tensor both = layers ? extremes_on_device(*layers, at) : Tensor();
  visit_dtype(IntegralTypes{}, at.dtype(), "bincount", [&]<class T>(T) {
    const auto [low, high] =
        layers ? std::pair(both.data<T>()[0], both.data<T>()[1]) : extremes_of<T>(at, "bincount");
    RL_CHECK(low >= T(0), "bincount only supports 1-d non-negative integral inputs.");
    RL_CHECK(static_cast<uint64_t>(high) < (uint64_t{1} << 40),
             "maximum value of input overflowed, it should be < ", int64_t{1} << 40, " but got ",
             static_cast<uint64_t>(high));
    below = static_cast<int64_t>(high) + 1;
  });
  return below;
}

// Counts how often `bin_of(i)` names each bin, in tables of which neighbours take different ones: an addition
// does not wait for the one before that wrote to the same place.
template <class BinOf>
void count_bins(int64_t n, int64_t bins, int64_t* counts, BinOf&& bin_of) {
  constexpr int64_t kTables = 4, kFew = 2048;
  int64_t i = 0;
  if (bins <= kFew && n >= 4 * bins) {
    std::vector<int64_t> tables(static_cast<size_t>(kTables * bins));
    for (; i + kTables <= n; i += kTables)
      for (int64_t t = 0; t < kTables; ++t) ++tables[t * bins + bin_of(i + t)];
    for (int64_t t = 0; t < kTables; ++t)
      for (int64_t b = 0; b < bins; ++b) counts[b] += tables[t * bins + b];
  }
  for (; i < n; ++i) ++counts[bin_of(i)];
}

Tensor bincount_kernel(const Call&, const Tensor& self, const Tensor& weights, int64_t minlength) {
  RL_CHECK(minlength >= 0, "minlength should be >= 0");
  RL_CHECK(self.dim() == 1, "bincount only supports 1-d non-negative integral inputs, got ", describe(self));
  if (!is_integral(self.dtype()))
    RL_NOT_IMPLEMENTED("\"bincount_cpu\" not implemented for '", legacy_name(self.dtype()),
                       "': bincount only supports 1-d non-negative integral inputs.");
  RL_CHECK(!weights.defined() || weights.sizes() == self.sizes(),
           "weights should be 1-d and have the same length as input");
  require_data(self, "bincount");
  const Device device = self.device();
  if (self.numel() == 0)  // weights or not, as in PyTorch
    return zeros({minlength}, DType::Int64, std::nullopt, device);
  const DeviceLayers* layers = device_layers(self);
  if (layers && weights.defined() && device_math().deterministic_algorithms) {
    // Devices add weights in any order.
    const auto here = [](const Tensor& t) {
      return to(t, std::nullopt, Device{}, false, false, std::nullopt);
    };
    return to(bincount(here(self), here(weights), minlength), std::nullopt, device, false, false,
              std::nullopt);
  }
  const Tensor at = dense(self);
  const int64_t bins = std::max(minlength, values_below(at));
  const bool single = weights.defined() && weights.dtype() == DType::Float32;
  const DType type = !weights.defined() ? DType::Int64 : single ? DType::Float32 : DType::Float64;
  const Tensor w = weights.defined() ? dense(to_dtype(weights, type)) : Tensor(),
               out = zeros({bins}, type, std::nullopt, device);
  if (layers) {
    DeviceBins plan{.device = device.index(), .dtype = at.dtype(), .in = at.data_ptr(), .n = at.numel()};
    plan.bins = bins, plan.weights = w.defined() ? w.data_ptr() : nullptr;
    plan.counts_dtype = type, plan.counts = out.data_ptr();
    layers->order.count(plan);
    return out;
  }
  visit_dtype(IntegralTypes{}, at.dtype(), "bincount", [&]<class T>(T) {
    const T* p = at.data<T>();
    const int64_t n = at.numel();
    const auto add = [&]<class W>(W* sums, const W* values) {
      for (int64_t i = 0; i < n; ++i) sums[p[i]] += values[i];
    };
    if (!w.defined())
      count_bins(n, bins, out.data<int64_t>(), [p](int64_t i) { return static_cast<int64_t>(p[i]); });
    else if (single)
      add(out.data<float>(), static_cast<const float*>(w.data<float>()));
    else
      add(out.data<double>(), static_cast<const double*>(w.data<double>()));
  });
  return out;
}

// Counts between low and high. In the input's precision, so that elements near an edge fall on the same side
// as in PyTorch; one bin more takes what lies outside.
template <class T>
void count_between(const Tensor& x, double low, double high, int64_t bins, int64_t* counts) {
  const T* v = x.data<T>();
  const T from = static_cast<T>(low), range = static_cast<T>(high) - from, scale = static_cast<T>(bins);
  count_bins(x.numel(), bins + 1, counts, [=](int64_t i) {
    const double value = static_cast<double>(v[i]);
    if (!(value >= low && value <= high)) return bins;
    return std::min(static_cast<int64_t>((v[i] - from) * scale / range), bins - 1);
  });
}

Tensor histc_kernel(const Call&, const Tensor& self, int64_t bins, const Scalar& given_low,
                    const Scalar& given_high) {
  RL_CHECK(bins > 0, "torch.histc(): bins must be > 0, but got ", bins);
  RL_CHECK_AS(NotImplemented, is_floating(self.dtype()) && !is_float8(self.dtype()),
              "\"histogram_cpu\" not implemented for '", legacy_name(self.dtype()), "'");
  if (self.device().is_meta()) return empty_tensor({bins}, self.dtype(), self.device());
  double low = given_low.to_double(), high = given_high.to_double();
  const DType computed = self.dtype() == DType::Float32 ? DType::Float32 : DType::Float64;
  const Tensor x = dense(to_dtype(self, computed));
  const DeviceLayers* layers = device_layers(x);
  visit_dtype(TypeList<float, double>{}, computed, "histc", [&]<class T>(T) {
    if (low != high || x.numel() == 0) return;
    if (layers) {
      const Tensor both = extremes_on_device(*layers, x);
      low = both.data<T>()[0], high = both.data<T>()[1];
    } else {
      std::tie(low, high) = extremes_of<T>(x, "histc");
    }
  });
  if (low == high) low -= 1, high += 1;
  RL_CHECK(std::isfinite(low) && std::isfinite(high), "torch.histc(): range of [", low, ", ", high,
           "] is not finite");
  RL_CHECK(low < high, "torch.histc(): max must be larger than min");
  checked_numel(IntList{bins, 8});
  const Tensor counts = zeros({bins + 1}, DType::Int64, std::nullopt, self.device());
  if (layers) {
    DeviceBins plan{.device = x.device().index(), .dtype = computed, .in = x.data_ptr(), .n = x.numel()};
    plan.bins = bins, plan.between = true, plan.low = low, plan.high = high;
    plan.counts = counts.data_ptr();
    layers->order.count(plan);
    return to_dtype(narrow(counts, 0, 0, bins), self.dtype());
  }
  visit_dtype(TypeList<float, double>{}, computed, "histc",
              [&]<class T>(T) { count_between<T>(x, low, high, bins, counts.data<int64_t>()); });
  return to_dtype(narrow(counts, 0, 0, bins), self.dtype());
}

// The bins of one coordinate: between neighbouring edges, the last one with both of them.
template <class T>
struct Bins {
  const T* edges;
  int64_t count;
  bool equal;  // of equal width, apart from rounding: a division finds the bin, or one beside it

  Bins(const Tensor& t, bool of_equal_width)
      : edges(t.data<T>()), count(t.numel() - 1), equal(of_equal_width) {
    equal = equal && std::isfinite((edges[count] - edges[0]) * static_cast<T>(count));
  }

  // -1 outside.
  int64_t operator()(T v) const {
    const T low = edges[0], high = edges[count];
    if (count == 0 || !(v >= low && v <= high)) return -1;
    if (v == high) return count - 1;
    if (!equal)
      return std::clamp<int64_t>(std::upper_bound(edges, edges + count + 1, v) - edges - 1, 0, count - 1);
    int64_t i = std::min(static_cast<int64_t>((v - low) * static_cast<T>(count) / (high - low)), count - 1);
    while (edges[i] > v) --i;
    while (edges[i + 1] <= v) ++i;
    return i;
  }
};

// The cell of each of some points, `outside` for those in none.
template <class T>
void find_cells(const T* points, int64_t n, std::span<const Bins<T>> axes, int64_t outside, int64_t* cells) {
  std::fill_n(cells, n, 0);
  const auto width = static_cast<int64_t>(axes.size());
  for (int64_t d = 0; d < width; ++d)
    for (int64_t i = 0; i < n; ++i) {
      const int64_t bin = axes[d](points[i * width + d]);
      cells[i] = bin < 0 || cells[i] == outside ? outside : cells[i] * axes[d].count + bin;
    }
}

// Each thread's share has a table of its own; sums are those of the shares in order.
template <class T>
Tensor count_cells(const Tensor& points, std::span<const Bins<T>> axes, int64_t cells, const T* weights) {
  constexpr int64_t kBlock = 1024;
  const int64_t n = points.numel() / static_cast<int64_t>(axes.size());
  const DType type = weights ? DType::Float64 : DType::Int64;
  const int64_t grain = std::max(int64_t{1} << 16, 4 * cells), share = detail::reduction_piece(n, grain);
  const int64_t shares = std::max<int64_t>(1, (n + share - 1) / share);
  const Tensor tables = zeros({shares, cells + 1}, type);
  parallel_for(0, shares, 1, [&](int64_t begin, int64_t end) {
    std::array<int64_t, kBlock> at;
    for (int64_t s = begin; s < end; ++s)
      for (int64_t first = s * share; first < std::min(n, (s + 1) * share); first += kBlock) {
        const int64_t block = std::min({kBlock, n - first, (s + 1) * share - first});
        find_cells<T>(points.data<T>() + first * static_cast<int64_t>(axes.size()), block, axes, cells,
                      at.data());
        if (weights) {
          double* sums = tables.data<double>() + s * (cells + 1);
          for (int64_t i = 0; i < block; ++i) sums[at[i]] += static_cast<double>(weights[first + i]);
        } else {
          int64_t* counts = tables.data<int64_t>() + s * (cells + 1);
          for (int64_t i = 0; i < block; ++i) ++counts[at[i]];
        }
      }
  });
  return narrow(shares == 1 ? select(tables, 0, 0) : sum_dim(tables, IntList{0}, false, {}), 0, 0, cells);
}

Tensor histogram_cells_kernel(const Call&, const Tensor& self, TensorList edges, bool equal,
                              const Tensor& weight) {
  RL_CHECK(self.dim() == 2 && self->sizes[1] == static_cast<int64_t>(edges.size()) && !edges.empty(),
           "_histogram_cells: expected points of ", edges.size(), " coordinates, got ", self.sizes());
  Dims shape;
  for (const Tensor& e : edges) {
    RL_CHECK(e.dim() == 1 && e.numel() > 0 && e.dtype() == self.dtype(),
             "_histogram_cells: expected edges as a vector of the points' dtype, got ", e.sizes());
    shape.push_back(e.numel() - 1);
  }
  RL_CHECK(!weight.defined() || (weight.dtype() == self.dtype() && weight.numel() == self->sizes[0]),
           "_histogram_cells: expected a weight for each point");
  const int64_t cells = checked_numel(shape);
  if (self.device().is_meta()) return empty_tensor(shape, self.dtype(), self.device());
  if (is_reduced_float(self.dtype())) {
    const auto wide = [](const Tensor& t) { return t.defined() ? to_dtype(t, DType::Float32) : t; };
    std::vector<Tensor> wide_edges;
    for (const Tensor& e : edges) wide_edges.push_back(wide(e));
    return to_dtype(histogram_cells(wide(self), wide_edges, equal, wide(weight)), self.dtype());
  }
  const Tensor points = dense(self), weights = weight.defined() ? dense(weight) : Tensor();
  Tensor sums;
  visit_dtype(TypeList<float, double>{}, self.dtype(), "histogram", [&]<class T>(T) {
    std::vector<Tensor> kept;
    std::vector<Bins<T>> axes;
    for (const Tensor& e : edges) axes.emplace_back(kept.emplace_back(dense(e)), equal);
    sums = count_cells<T>(points, axes, cells, weights.defined() ? weights.data<T>() : nullptr);
  });
  return reshape(to_dtype(sums, self.dtype()), shape);
}

// --- histograms of points, [points, coordinates]; their messages are those of torch.histogramdd

using OptFloats = std::optional<FloatList>;
using TwoTensors = std::tuple<Tensor, Tensor>;

Tensor points_of(const Call& call, const Tensor& self) {
  RL_CHECK(self.dim() >= 2, "torch.histogramdd: input tensor should have at least 2 dimensions, but got ",
           self.dim());
  RL_CHECK_AS(NotImplemented, is_floating(self.dtype()), "\"", call.op.name(), "\" not implemented for '",
              legacy_name(self.dtype()), "'");
  return reshape(self, IntList{-1, self.size(-1)});
}

// One for each point, or nothing.
Tensor weights_of(const Tensor& self, IntList sizes, const Tensor& weight) {
  if (!weight.defined()) return weight;
  RL_CHECK(weight.dtype() == self.dtype(),
           "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the "
           "same dtype, but got input(",
           dtype_name(self.dtype()), "), and weight(", dtype_name(weight.dtype()), ")");
  RL_CHECK(
      weight.sizes() == sizes,
      "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor "
      "excluding its innermost dimension, but got input with shape ",
      self.sizes(), " and weight with shape ", weight.sizes());
  return reshape(weight, IntList{-1});
}

void check_edges(const Tensor& points, TensorList edges) {
  RL_CHECK(
      edges.size() == static_cast<size_t>(points.size(1)),
      "torch.histogramdd: The size of bins must be equal to the innermost dimension of the input, but got ",
      edges.size(), " and ", points.size(1));
  for (size_t i = 0; i < edges.size(); ++i) {
    RL_CHECK(
        edges[i].dtype() == points.dtype(),
        "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with "
        "dtype ",
        dtype_name(points.dtype()), " and bins for dimension ", i, " with dtype ",
        dtype_name(edges[i].dtype()));
    RL_CHECK(edges[i].dim() == 1 && edges[i].numel() > 0,
             "torch.histogramdd: bins tensor should have one dimension, but got ", edges[i].dim(),
             " dimensions in the bins tensor for dimension ", i, ", of ", edges[i].numel(), " elements");
  }
}

// Between which numbers the values of one coordinate lie, or are to be counted.
std::pair<double, double> outer_edges(const Tensor& points, int64_t i, const OptFloats& range) {
  double low = 0, high = 1;
  if (range) {
    low = (*range)[2 * i], high = (*range)[2 * i + 1];
  } else if (points.size(0)) {
    const auto [least, greatest] = aminmax(select(points, 1, i), std::nullopt, false);
    low = read_scalar(least).to_double(), high = read_scalar(greatest).to_double();
  }
  RL_CHECK(std::isfinite(low) && std::isfinite(high), "torch.histogramdd: dimension ", i, "'s range [", low,
           ", ", high, "] is not finite");
  RL_CHECK(low <= high, "torch.histogramdd: min should not exceed max, but got min ", low, " max ", high);
  return low == high ? std::pair(low - 0.5, high + 0.5) : std::pair(low, high);
}

std::vector<Tensor> equal_edges(const Tensor& points, IntList bins, const OptFloats& range) {
  const int64_t n = points.size(1);
  RL_CHECK(
      bins.size() == static_cast<size_t>(n),
      "torch.histogramdd: The size of bins must be equal to the innermost dimension of the input, but got ",
      bins.size(), " and ", n, ".");
  for (const int64_t count : bins)
    RL_CHECK(count > 0, "torch.histogramdd(): bins must be > 0, but got ", bins);
  RL_CHECK(!range || range->size() == static_cast<size_t>(2 * n), "torch.histogramdd: for a ", n,
           "-dimensional histogram range should have ", 2 * n, " elements, but got ",
           range ? range->size() : 0);
  const GradMode off(false);  // edges are numbers
  std::vector<Tensor> edges;
  for (int64_t i = 0; i < n; ++i) {
    const auto [low, high] = outer_edges(points, i, range);
    edges.push_back(linspace(Scalar(low), Scalar(high), bins[i] + 1, points.dtype(), std::nullopt,
                             points.device(), std::nullopt));
  }
  return edges;
}

Tensor counts_between(const Tensor& points, TensorList edges, bool equal, const Tensor& weight,
                      bool density) {
  const Tensor hist = histogram_cells(points, edges, equal, weight);
  if (!density) return hist;
  Tensor result = hist / sum(hist, std::nullopt);
  for (size_t i = 0; i < edges.size(); ++i) {
    Dims sizes(edges.size(), 1);
    sizes[i] = -1;
    const Tensor& e = edges[i];
    result = result / view(slice(e, 0, 1, std::nullopt, 1) - slice(e, 0, std::nullopt, -1, 1), sizes);
  }
  return result;
}

std::vector<Tensor> histogramdd_edges_body(const Call& call, const Tensor& self, IntList bins,
                                           const OptFloats& range, const Tensor& weight, bool) {
  const Tensor points = points_of(call, self);
  weights_of(self, self.sizes().slice(0, static_cast<size_t>(self.dim() - 1)), weight);
  return equal_edges(points, bins, range);
}
Tensor histogramdd_counts_body(const Call& call, const Tensor& self, IntList bins, const OptFloats& range,
                               const Tensor& weight, bool density) {
  const Tensor points = points_of(call, self);
  const Tensor w = weights_of(self, self.sizes().slice(0, static_cast<size_t>(self.dim() - 1)), weight);
  return counts_between(points, equal_edges(points, bins, range), true, w, density);
}
Tensor histogramdd_tensors_body(const Call& call, const Tensor& self, TensorList bins, const Tensor& weight,
                                bool density) {
  const Tensor points = points_of(call, self);
  const Tensor w = weights_of(self, self.sizes().slice(0, static_cast<size_t>(self.dim() - 1)), weight);
  check_edges(points, bins);
  return counts_between(points, bins, false, w, density);
}

TwoTensors histogram_body(const Call& call, const Tensor& self, int64_t bins, const OptFloats& range,
                          const Tensor& weight, bool density) {
  const Tensor points = points_of(call, reshape(self, IntList{-1, 1}));
  const Tensor w = weights_of(self, self.sizes(), weight);
  const std::vector<Tensor> edges = equal_edges(points, IntList{bins}, range);
  return {counts_between(points, edges, true, w, density), edges[0]};
}
TwoTensors histogram_tensor_body(const Call& call, const Tensor& self, const Tensor& bins,
                                 const Tensor& weight, bool density) {
  const Tensor points = points_of(call, reshape(self, IntList{-1, 1}));
  const Tensor w = weights_of(self, self.sizes(), weight);
  check_edges(points, {bins});
  return {counts_between(points, {bins}, false, w, density), bins};
}

void register_histograms_of_points(Table& t) {
  t.op(histogram_cells,
       "_histogram_cells(Tensor self, Tensor[] edges, bool equal, Tensor? weight=None) -> Tensor",
       histogram_cells_kernel)
      .absent_in_pytorch()
      .doc("How many points, or weights of points, lie in each box between edges of their coordinates.")
      .function_only()
      .family(Family::Reduction)
      .refused_derivative<"derivative for aten::histogram is not implemented">();
  const char* doc =
      "Counts (or sums of weights) of values in bins, and the bins' edges: equal bins over `range` (or over "
      "the values), or those between the edges in a tensor. With `density` the integral over the bins is 1.";
  t.composite(
       "histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) -> "
       "(Tensor hist, Tensor bin_edges)",
       histogram_tensor_body)
      .out(OutRule::SameType)
      .example_by_example()
      .refused_derivative_of(histogram_cells.op())
      .doc(doc);
  t.composite(
       "histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, bool "
       "density=False) -> (Tensor hist, Tensor bin_edges)",
       histogram_body)
      .out(OutRule::SameType)
      .example_by_example()
      .refused_derivative_of(histogram_cells.op())
      .doc(doc);
  t.composite(
       "_histogramdd_bin_edges(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, bool "
       "density=False) -> Tensor[]",
       histogramdd_edges_body)
      .function_only()
      .example_by_example()
      .doc("The edges of histogramdd's bins.");
  t.composite(
       "_histogramdd_from_bin_cts(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, bool "
       "density=False) -> Tensor",
       histogramdd_counts_body)
      .function_only()
      .example_by_example()
      .refused_derivative_of(histogram_cells.op())
      .doc("Counts of points in equal boxes.");
  t.composite(
       "_histogramdd_from_bin_tensors(Tensor self, Tensor[] bins, *, Tensor? weight=None, bool "
       "density=False) -> Tensor",
       histogramdd_tensors_body)
      .function_only()
      .example_by_example()
      .refused_derivative_of(histogram_cells.op())
      .doc("Counts of points in the boxes between edges.");
}

}  // namespace

void register_histogram_operators(Table& t) {
  register_histograms_of_points(t);
  t.op(bincount, "bincount(Tensor self, Tensor? weights=None, int minlength=0) -> Tensor", bincount_kernel)
      .no_meta("how many elements there are depends on their values")
      .doc("How often each non-negative integer occurs.")
      .family(Family::Reduction)
      .on_devices()
      .data_dependent_shape()
      .batching(Batching::Loop)  // often all examples give as many, and always do where minlength is enough
      .refused_derivative<"derivative for aten::bincount is not implemented">();
  t.op(histc, "histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor", histc_kernel)
      .doc("Counts in equal bins between min and max.")
      .out(OutRule::Disjoint)
      .family(Family::Reduction)
      .on_devices()
      .not_differentiable("counts do not vary smoothly");
}

}  // namespace rushlight
