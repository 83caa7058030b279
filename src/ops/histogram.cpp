// Counting into bins: integers, equal bins of numbers, and boxes of points.
#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "core/parallel.h"
#include "cpu/reduce.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/index_common.h"
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

// One more than the largest of non-negative integers.
int64_t values_below(const Tensor& at) {
  if (at.numel() == 0) return 0;
  int64_t below = 0;
  visit_dtype(IntegralTypes{}, at.dtype(), "bincount", [&]<class T>(T) {
    const auto [low, high] = extremes_of<T>(at, "bincount");
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
  if (self.numel() == 0) return zeros({minlength}, DType::Int64);  // weights or not, as in PyTorch
  const Tensor at = dense(self);
  const int64_t bins = std::max(minlength, values_below(at));
  const bool single = weights.defined() && weights.dtype() == DType::Float32;
  const DType type = !weights.defined() ? DType::Int64 : single ? DType::Float32 : DType::Float64;
  const Tensor w = weights.defined() ? dense(to_dtype(weights, type)) : Tensor(), out = zeros({bins}, type);
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
  RL_CHECK_AS(NotImplemented, is_floating(self.dtype()), "\"histogram_cpu\" not implemented for '",
              legacy_name(self.dtype()), "'");
  if (self.device().is_meta()) return empty_tensor({bins}, self.dtype(), self.device());
  double low = given_low.to_double(), high = given_high.to_double();
  const DType computed = self.dtype() == DType::Float32 ? DType::Float32 : DType::Float64;
  const Tensor x = dense(to_dtype(self, computed));
  visit_dtype(TypeList<float, double>{}, computed, "histc", [&]<class T>(T) {
    if (low == high && x.numel() > 0) std::tie(low, high) = extremes_of<T>(x, "histc");
  });
  if (low == high) low -= 1, high += 1;
  RL_CHECK(std::isfinite(low) && std::isfinite(high), "torch.histc(): range of [", low, ", ", high,
           "] is not finite");
  RL_CHECK(low < high, "torch.histc(): max must be larger than min");
  checked_numel(IntList{bins, 8});
  const Tensor counts = zeros({bins + 1}, DType::Int64);
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

}  // namespace

void register_histogram_operators(Table& t) {
  const char* integer = "integer output";
  t.op(bincount, "bincount(Tensor self, Tensor? weights=None, int minlength=0) -> Tensor", bincount_kernel)
      .no_meta("how many elements there are depends on their values")
      .doc("How often each non-negative integer occurs.")
      .family(Family::Reduction)
      .data_dependent_shape()
      .not_differentiable(integer);
  t.op(histc, "histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor", histc_kernel)
      .doc("Counts in equal bins between min and max.")
      .out(OutRule::Disjoint)
      .family(Family::Reduction)
      .not_differentiable("counts do not vary smoothly");
  t.op(histogram_cells,
       "_histogram_cells(Tensor self, Tensor[] edges, bool equal, Tensor? weight=None) -> Tensor",
       histogram_cells_kernel)
      .doc("How many points, or weights of points, lie in each box between edges of their coordinates.")
      .function_only()
      .family(Family::Reduction)
      .not_differentiable("counts do not vary smoothly");
}

}  // namespace rushlight
