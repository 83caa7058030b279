// Searching in sorted sequences, and membership.
#include <algorithm>

#include "core/parallel.h"
#include "cpu/sort.h"
#include "device/layers.h"
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

void search_on_device(const DeviceLayers& layers, const Tensor& boundaries, const Tensor& wanted,
                      const Tensor& sorter, const cpu::SearchLines& lines, bool right, const Tensor& out) {
  const Device device = out.device();
  RL_CHECK(boundaries.device() == device && (!sorter.defined() || sorter.device() == device),
           "torch.searchsorted(): boundaries and input value tensors should have same device type, but got "
           "boundaries tensor device type ",
           boundaries.device().str(), " and input value tensor device type ", device.str());
  const DType dtype = boundaries.dtype();
  RL_CHECK_AS(NotImplemented, !is_complex(dtype) && dtype <= DType::Float64,
              "\"searchsorted_out_cuda\" not implemented for '", legacy_name(dtype), "'");
  const Tensor values = to(wanted, std::nullopt, device, false, false, std::nullopt);  // or a number
  DeviceSearch search{.device = device.index(), .dtype = dtype};
  search.boundaries = boundaries.data_ptr(), search.values = values.data_ptr();
  search.sorter = sorter.defined() ? sorter.data<int64_t>() : nullptr;
  search.lines = lines.lines, search.boundaries_per_line = lines.boundaries_per_line;
  search.values_per_line = lines.values_per_line, search.shared = lines.shared, search.right = right;
  search.narrow = out.dtype() == DType::Int32, search.out = out.data_ptr();
  layers.order.search(search);
}

Tensor search(const Tensor& sequence, const Tensor& values, bool out_int32, bool right,
              const Tensor& given_sorter) {
  const Device device = values.is_wrapped_number() ? sequence.device() : values.device();
  const DeviceLayers* layers = device_layers(device.type());
  const Tensor out = empty_tensor(values.sizes(), layers && out_int32 ? DType::Int32 : DType::Int64, device);
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
  if (out.numel() > 0 && layers) search_on_device(*layers, boundaries, wanted, sorter, lines, right, out);
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

// Membership of whole numbers by a table of marks, where the set spans few: null if it spans many.
Tensor find_in_table(const Tensor& set, const Tensor& x) {
  const Tensor members = dense(to_dtype(set, DType::Int64));
  const int64_t* m = members.data<int64_t>();
  const auto [low, high] = std::minmax_element(m, m + members.numel());
  const int64_t least = *low;
  const uint64_t span = static_cast<uint64_t>(*high) - static_cast<uint64_t>(least);
  if (span / 16 > static_cast<uint64_t>(members.numel() + x.numel())) return {};
  std::vector<uint8_t> marks(span + 1);
  const auto place = [&](int64_t value) {
    return static_cast<uint64_t>(value) - static_cast<uint64_t>(least);
  };
  for (int64_t i = 0; i < members.numel(); ++i) marks[place(m[i])] = 1;
  const Tensor values = dense(to_dtype(x, DType::Int64)), found = empty_tensor(x.sizes(), DType::Bool);
  const int64_t* v = values.data<int64_t>();
  bool* out = found.data<bool>();
  parallel_for(0, x.numel(), kGrainSize, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = place(v[i]) <= span && marks[place(v[i])];
  });
  return found;
}

Tensor isin_kernel(const Call&, const Tensor& elements, const Tensor& tests, bool, bool invert) {
  const DType common = result_type(elements, tests);
  const Tensor set = reshape(to_dtype(tests, common), {-1}), x = to_dtype(elements, common);
  Tensor found;
  if (set.numel() > 0 && set.is_cpu() && is_integral_or_bool(common) && common != DType::UInt64)
    found = find_in_table(set, x);
  if (set.numel() == 0) {
    found = zeros(x.sizes(), DType::Bool, std::nullopt, x.device());
  } else if (!found.defined()) {
    Tensor ordered = std::get<0>(sort(set, 0));
    if (is_floating(common) &&
        !ordered.device().is_meta()) {  // NaN is in no set, and would lead the search astray
      const int64_t numbers = read_scalar(ops::sum(ops::eq(ordered, ordered))).to_int();
      if (numbers == 0) return isin(elements, narrow(set, 0, 0, 0), true, invert);
      ordered = narrow(ordered, 0, 0, numbers);
    }
    const Tensor at = clamp_max(search(ordered, x, false, false, Tensor()), Scalar(ordered.numel() - 1));
    found = ops::eq(reshape(index_select(ordered, 0, reshape(at, {-1})), x.sizes()), x);
  }
  return invert ? logical_not(found) : found;
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
       "str? side=None, Tensor? sorter=None) -> Tensor",
       searchsorted_kernel)
      .doc("Where values would have to be inserted in sorted sequences.")
      .out(OutRule::Disjoint)
      .function_only()
      .family(Family::Scan)
      .on_devices()
      .numbers(Numbers::Mixed)
      .not_differentiable(integer);
  t.op(bucketize,
       "bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> "
       "Tensor",
       bucketize_kernel)
      .doc("The bucket, between sorted boundaries, of each element.")
      .out(OutRule::Disjoint)
      .function_only()
      .family(Family::Scan)
      .on_devices()
      .numbers(Numbers::Mixed)
      .not_differentiable(integer);
  t.op(isin,
       "isin(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> "
       "Tensor",
       isin_kernel)
      .doc("Whether each element is among test_elements.")
      .overload("Tensor_Tensor")
      .out(OutRule::Disjoint)
      .function_only()
      .family(Family::Scan)
      .on_devices()
      .numbers(Numbers::Mixed)
      .not_differentiable("boolean output");
  t.composite(
       "searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool right=False, "
       "str? side=None, Tensor? sorter=None) -> Tensor",
       searchsorted_scalar_body)
      .doc("Where a number would have to be inserted in a sorted sequence.")
      .out(OutRule::Disjoint)
      .function_only()
      .numbers(Numbers::Mixed);
  t.composite(
       "bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> "
       "Tensor",
       bucketize_scalar_body)
      .doc("The bucket, between sorted boundaries, of a number.")
      .out(OutRule::Disjoint)
      .function_only()
      .numbers(Numbers::Mixed);
  t.composite(
       "isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool assume_unique=False, bool "
       "invert=False) -> Tensor",
       isin_tensor_scalar_body)
      .doc("Whether each element equals a number.")
      .out(OutRule::Disjoint)
      .function_only()
      .numbers(Numbers::Mixed);
  t.composite(
       "isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, bool assume_unique=False, bool "
       "invert=False) -> Tensor",
       isin_scalar_tensor_body)
      .doc("Whether a number is among test_elements.")
      .out(OutRule::Disjoint)
      .function_only()
      .numbers(Numbers::Mixed);
}

}  // namespace rushlight
