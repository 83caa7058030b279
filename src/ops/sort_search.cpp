// Searching in sorted sequences, membership, and counting into bins.
#include <cmath>

#include "cpu/reduce.h"
#include "cpu/sort.h"
#include "dispatch/exact_out.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/index_common.h"
#include "ops/operators.h"
#include "ops/reduction.h"
#include "ops/sort.h"
#include "ops/sort_common.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

Tensor search(const Tensor& sequence, const Tensor& values, bool out_int32, bool right,
              const Tensor& given_sorter) {
  const Tensor out = empty_tensor(values.sizes(), DType::Int64, values.device());
  const DType common = sequence.dtype() == values.dtype() ? values.dtype() : result_type(sequence, values);
  const DType computed = common == DType::Bool ? DType::UInt8 : common;
  const Tensor boundaries = dense(to_dtype(sequence, computed)), wanted = dense(to_dtype(values, computed));
  Tensor sorter;
  if (given_sorter.defined()) sorter = dense(given_sorter);
  const int64_t length = sequence->sizes.back();
  cpu::SearchLines lines{1, length, values.numel(), true};
  if (sequence.dim() > 1)
    lines = {values.numel() / std::max<int64_t>(1, values->sizes.back()), length, values->sizes.back(),
             false};
  if (out.numel() > 0 && out.is_cpu())
    cpu::search_sorted(boundaries, wanted, sorter.defined() ? &sorter : nullptr, lines, right,
                       out.data<int64_t>());
  RL_CHECK(!out_int32 || length < INT32_MAX,
           "torch.searchsorted(): the size of boundaries' last dimension should be less than ", INT32_MAX,
           ", but we got ", length);
  return out_int32 ? to_dtype(out, DType::Int32) : out;
}

Tensor searchsorted_kernel(const Call&, const Tensor& sequence, const Tensor& values, bool out_int32,
                           bool right, std::optional<std::string_view> side, const Tensor& sorter) {
  if (side) {
    RL_CHECK(*side == "left" || *side == "right",
             "torch.searchsorted(): side can only be 'left' or 'right' but got ", *side);
    RL_CHECK(*side == "right" || !right,
             "torch.searchsorted(): side and right can't be set to opposites, got side of left while right "
             "was True");
    right = *side == "right";
  }
  RL_CHECK(sequence.dim() > 0,
           "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, "
           "but boundaries "
           "tensor has no dimension");
  RL_CHECK(values.dim() > 0 || sequence.dim() == 1,
           "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, "
           "but we got boundaries tensor dim(",
           sequence.dim(), ") and input value's dim(", values.dim(), ") numel(", values.numel(), ")");
  const bool lines_match = sequence.dim() == 1 ||
                           (sequence.dim() == values.dim() && sequence.sizes().slice(0, sequence.dim() - 1) ==
                                                                  values.sizes().slice(0, values.dim() - 1));
  RL_CHECK(lines_match,
           "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of "
           "boundaries tensor and "
           "input value tensor must match, but we got boundaries tensor ",
           sequence.sizes(), " and input value tensor ", values.sizes());
  if (sorter.defined()) {
    RL_CHECK(sorter.sizes() == sequence.sizes(),
             "torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor ",
             sequence.sizes(), "and got sorter tensor ", sorter.sizes());
    RL_CHECK(sorter.dtype() == DType::Int64,
             "torch.searchsorted(): sorter must be a tensor of long dtype but got dtype ",
             legacy_name(sorter.dtype()));
    const Tensor order = dense(sorter);
    for (int64_t i = 0; i < order.numel() && order.is_cpu(); ++i)
      RL_CHECK_INDEX(order.data<int64_t>()[i] >= 0 && order.data<int64_t>()[i] < sequence->sizes.back(),
                     "torch.searchsorted(): sorter index out of range");
  }
  return search(sequence, values, out_int32, right, sorter);
}

Tensor bucketize_kernel(const Call&, const Tensor& self, const Tensor& boundaries, bool out_int32,
                        bool right) {
  RL_CHECK(boundaries.dim() == 1, "bucketize: boundaries tensor must be 1 dimension, but got dim(",
           boundaries.dim(), ")");
  return search(boundaries, self, out_int32, right, Tensor());
}

Tensor isin_kernel(const Call&, const Tensor& elements, const Tensor& tests, bool, bool invert) {
  const DType common = result_type(elements, tests);
  const Tensor set = reshape(to_dtype(tests, common), {-1}), x = to_dtype(elements, common);
  Tensor found;
  if (set.numel() == 0) {
    found = zeros(x.sizes(), DType::Bool);
  } else {
    Tensor ordered = std::get<0>(sort(set, 0));
    if (is_floating(common) && ordered.is_cpu()) {  // NaN is in no set, and would lead the search astray
      const int64_t numbers = read_scalar(ops::sum(ops::eq(ordered, ordered))).to_int();
      if (numbers == 0) return isin(elements, narrow(set, 0, 0, 0), true, invert);
      ordered = narrow(ordered, 0, 0, numbers);
    }
    const Tensor at = clamp_max(search(ordered, x, false, false, Tensor()), Scalar(ordered.numel() - 1));
    found = ops::eq(reshape(index_select(ordered, 0, reshape(at, {-1})), x.sizes()), x);
  }
  return invert ? logical_not(found) : found;
}

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
  RL_CHECK(self.dim() == 1 && is_integral(self.dtype()),
           "bincount only supports 1-d non-negative integral inputs.");
  RL_CHECK(!weights.defined() || weights.sizes() == self.sizes(),
           "weights should be 1-d and have the same length as input");
  require_data(self, "bincount");
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

Tensor searchsorted_scalar_body(const Call&, const Tensor& sequence, const Scalar& value, bool out_int32,
                                bool right, std::optional<std::string_view> side, const Tensor& sorter) {
  return searchsorted(sequence, wrapped_number(value), out_int32, right, side, sorter);
}
Tensor bucketize_scalar_body(const Call&, const Scalar& value, const Tensor& boundaries, bool out_int32,
                             bool right) {
  return bucketize(wrapped_number(value), boundaries, out_int32, right);
}
Tensor isin_tensor_scalar_body(const Call&, const Tensor& elements, const Scalar& test, bool unique,
                               bool invert) {
  return isin(elements, wrapped_number(test), unique, invert);
}
Tensor isin_scalar_tensor_body(const Call&, const Scalar& element, const Tensor& tests, bool unique,
                               bool invert) {
  return isin(wrapped_number(element), tests, unique, invert);
}

}  // namespace

void register_search_operators(Table& t) {
  const char* integer = "integer output";
  t.op(searchsorted,
       "searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, "
       "str? side=None, "
       "Tensor? sorter=None) -> Tensor",
       searchsorted_kernel)
      .doc("Where values would have to be inserted in sorted sequences.")
      .out()
      .data(&exact_out)
      .function_only()
      .not_differentiable(integer);
  t.op(bucketize,
       "bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> "
       "Tensor",
       bucketize_kernel)
      .doc("The bucket, between sorted boundaries, of each element.")
      .out()
      .data(&exact_out)
      .function_only()
      .not_differentiable(integer);
  t.op(isin,
       "isin(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> "
       "Tensor",
       isin_kernel)
      .doc("Whether each element is among test_elements.")
      .out()
      .data(&exact_out)
      .function_only()
      .not_differentiable("boolean output");
  t.composite(
       "searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool right=False, "
       "str? side=None, "
       "Tensor? sorter=None) -> Tensor",
       searchsorted_scalar_body)
      .doc("Where a number would have to be inserted in a sorted sequence.")
      .out()
      .data(&exact_out)
      .function_only();
  t.composite(
       "bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> "
       "Tensor",
       bucketize_scalar_body)
      .doc("The bucket, between sorted boundaries, of a number.")
      .out()
      .data(&exact_out)
      .function_only();
  t.composite(
       "isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool assume_unique=False, bool "
       "invert=False) -> Tensor",
       isin_tensor_scalar_body)
      .doc("Whether each element equals a number.")
      .out()
      .data(&exact_out)
      .function_only();
  t.composite(
       "isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, bool assume_unique=False, bool "
       "invert=False) -> Tensor",
       isin_scalar_tensor_body)
      .doc("Whether a number is among test_elements.")
      .out()
      .data(&exact_out)
      .function_only();
  t.op(bincount, "bincount(Tensor self, Tensor? weights=None, int minlength=0) -> Tensor", bincount_kernel)
      .no_meta("how many elements there are depends on their values")
      .doc("How often each non-negative integer occurs.")
      .not_differentiable(integer);
  t.op(histc, "histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor", histc_kernel)
      .doc("Counts in equal bins between min and max.")
      .out()
      .data(&exact_out)
      .not_differentiable("counts do not vary smoothly");
}

}  // namespace rushlight
