// Distinct values and slices. One plan serves all: an order of the slices, and where a slice differs from the
// one before.
#include <memory>
#include <numeric>

#include "core/parallel.h"
#include "cpu/sort.h"
#include "device/layers.h"
#include "ops/comparison.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/index_common.h"
#include "ops/join.h"
#include "ops/operators.h"
#include "ops/reduction.h"
#include "ops/scan.h"
#include "ops/sort.h"
#include "ops/sort_common.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

using UniqueResult = std::tuple<Tensor, Tensor, Tensor>;

// Whether one slice comes before another; NaN is passed over.
template <class T>
bool precedes(const T* a, const T* b, int64_t width) {
  using A = compute_type<T>;
  for (int64_t i = 0; i < width; ++i) {
    const A x = static_cast<A>(a[i]), y = static_cast<A>(b[i]);
    if (x < y) return true;
    if (x > y) return false;
  }
  return false;
}

// Slices of `rows` ([n, width], contiguous): whether they are the same; NaN equals nothing.
template <class T>
bool equal(const T* a, const T* b, int64_t width) {
  using A = compute_type<T>;
  for (int64_t i = 0; i < width; ++i)
    if (!(static_cast<A>(a[i]) == static_cast<A>(b[i]))) return false;
  return true;
}

std::vector<int64_t> sorted_rows(const Tensor& rows, int64_t width) {
  std::vector<int64_t> order(static_cast<size_t>(rows.size(0)));
  std::iota(order.begin(), order.end(), 0);
  visit_dtype(Concat<TypeList<bool>, RealTypes>{}, rows.dtype(), "unique_dim", [&]<class T>(T) {
    const T* x = rows.data<T>();
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return precedes(x + a * width, x + b * width, width); });
  });
  return order;
}

std::vector<bool> starts_of_groups(const Tensor& rows, const std::vector<int64_t>& order, int64_t width) {
  std::vector<bool> starts(order.size());
  visit_dtype(Concat<TypeList<bool>, RealTypes>{}, rows.dtype(), "unique", [&]<class T>(T) {
    const T* x = rows.data<T>();
    for (size_t i = 0; i < order.size(); ++i)
      starts[i] = i == 0 || !equal(x + order[i - 1] * width, x + order[i] * width, width);
  });
  return starts;
}

// Where each group's first slice is, the group of each slice, and the sizes of the groups.
UniqueResult grouped(const std::vector<int64_t>& order, const std::vector<bool>& starts, bool want_inverse,
                     bool want_counts) {
  const auto n = static_cast<int64_t>(order.size()),
             groups = static_cast<int64_t>(std::count(starts.begin(), starts.end(), true));
  const Tensor first = empty_tensor({groups}, DType::Int64),
               inverse = empty_tensor({want_inverse ? n : 0}, DType::Int64);
  const Tensor counts = zeros({want_counts ? groups : 0}, DType::Int64);
  int64_t group = -1;
  for (int64_t i = 0; i < n; ++i) {
    if (starts[i]) first.data<int64_t>()[++group] = order[i];
    if (want_inverse) inverse.data<int64_t>()[order[i]] = group;
    if (want_counts) ++counts.data<int64_t>()[group];
  }
  return {first, inverse, counts};
}

std::vector<int64_t> natural_order(int64_t n) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

// The values alone, in parts that threads count and write apart: written always, to be written over where no
// group starts, so that there is no branch. What is left over of the memory is given back where it is much.
template <class T, class Starts>
Tensor distinct_values(const Tensor& sorted, Starts&& starts) {
  const int64_t n = sorted.numel();
  const Tensor room = empty_tensor({n}, sorted.dtype());
  const int64_t parts = n < 2 * kGrainSize || in_parallel_region() ? 1 : get_num_threads(),
                part = (n + parts - 1) / parts;
  std::vector<int64_t> first(static_cast<size_t>(parts) + 1);  // group that starts in each part
  const auto for_each_part = [&](auto&& f) {
    parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) f(p, std::min(n, p * part), std::min(n, (p + 1) * part));
    });
  };
  if (parts > 1)
    for_each_part([&](int64_t p, int64_t begin, int64_t end) {
      int64_t count = begin == 0;
      for (int64_t i = std::max<int64_t>(begin, 1); i < end; ++i) count += starts(i);
      first[static_cast<size_t>(p) + 1] = count;
    });
  std::partial_sum(first.begin(), first.end(), first.begin());
  for_each_part([&](int64_t p, int64_t begin, int64_t end) {
    const T* x = sorted.data<T>();
    T* value = room.data<T>() + first[static_cast<size_t>(p)];
    if (begin == 0 && end > 0) *value++ = x[begin++];
    while (end > begin && !starts(end - 1)) --end;  // the slot behind is another part's
    constexpr int64_t kBlock = 16;  // long runs pass by blocks; no branch depends on one element
    for (int64_t i = begin; i < end; i += kBlock) {
      const int64_t next = std::min(i + kBlock, end);
      bool any = next - i < kBlock;
      if (!any)
        for (int64_t j = i; j < i + kBlock; ++j) any |= starts(j);
      for (int64_t j = i; any && j < next; ++j) {
        *value = x[j];
        value += starts(j);
      }
    }
    if (parts == 1) first.back() = value - room.data<T>();
  });
  const int64_t groups = first.back();
  const Tensor values = make_view(room, {groups}, {1}, 0, false);
  return groups < n / 2 ? clone(values) : values;
}

// The distinct of `sorted` values; `order` tells where each comes from, null: from its own place.
template <class T>
UniqueResult distinct(const Tensor& sorted, const int64_t* order, bool want_inverse, bool want_counts) {
  const int64_t n = sorted.numel();
  const T* x = sorted.data<T>();
  const auto starts = [&](int64_t i) {
    using A = compute_type<T>;
    return !(static_cast<A>(x[i]) == static_cast<A>(x[i - 1]));  // NaN equals nothing
  };
  if (!want_inverse && !want_counts)
    return {distinct_values<T>(sorted, starts), empty_tensor({0}, DType::Int64),
            empty_tensor({0}, DType::Int64)};
  // Where each group begins: the next one's place is written always, so that no branch depends on an element.
  const std::unique_ptr<int64_t[]> begins(new int64_t[static_cast<size_t>(n) + 1]);
  const Tensor inverse = empty_tensor({want_inverse ? n : 0}, DType::Int64);
  int64_t *begin = begins.get(), *group_of = inverse.data<int64_t>(), groups = 0;
  for (int64_t i = 0; i < n; ++i) {
    begin[groups] = i;
    groups += i == 0 || starts(i);
    if (want_inverse) group_of[order ? order[i] : i] = groups - 1;
  }
  begin[groups] = n;
  const Tensor values = empty_tensor({groups}, sorted.dtype()),
               counts = empty_tensor({want_counts ? groups : 0}, DType::Int64);
  T* value = values.data<T>();
  int64_t* count = counts.data<int64_t>();
  for (int64_t g = 0; g < groups; ++g) {
    value[g] = x[begin[g]];
    if (want_counts) count[g] = begin[g + 1] - begin[g];
  }
  return {values, inverse, counts};
}

Tensor whole_numbers(int64_t n, const Tensor& like) { return empty_tensor({n}, DType::Int64, like.device()); }

UniqueResult unique_elements_on_device(const DeviceLayers& layers, const Tensor& flat, bool consecutive,
                                       bool want_inverse, bool want_counts) {
  const int64_t n = flat.numel();
  const int device = flat.device().index();
  RL_CHECK_AS(NotImplemented, !is_complex(flat.dtype()) && flat.dtype() <= DType::Float64,
              "\"unique\" not implemented for '", legacy_name(flat.dtype()), "'");
  if (n == 0) return {flat, whole_numbers(0, flat), whole_numbers(0, flat)};
  Tensor sorted = flat, order;
  if (!consecutive) {
    sorted = empty_tensor({n}, flat.dtype(), flat.device());
    if (want_inverse) order = whole_numbers(n, flat);
    layers.order.sort({device, flat.dtype(), flat.data_ptr(), 1, n}, false, sorted.data_ptr(),
                      want_inverse ? order.data<int64_t>() : nullptr);
  }
  const Tensor starts = whole_numbers(flag_parts(n) + 1, flat);
  const DeviceFlags flags{device, flat.dtype(), sorted.data_ptr(), n, starts.data<int64_t>()};
  layers.order.count_flags(flags, true);
  const int64_t count = read_scalar(starts, starts.numel() - 1).to_int();
  const Tensor values = empty_tensor({count}, flat.dtype(), flat.device()),
               inverse = whole_numbers(want_inverse ? n : 0, flat),
               counts = whole_numbers(want_counts ? count : 0, flat),
               begins = whole_numbers(want_counts ? count : 0, flat);
  DeviceGroups groups{.order = order.defined() ? order.data<int64_t>() : nullptr,
                      .values = values.data_ptr()};
  if (want_inverse) groups.inverse = inverse.data<int64_t>();
  if (want_counts) groups.counts = counts.data<int64_t>(), groups.begins = begins.data<int64_t>();
  layers.order.groups(flags, count, groups);
  return {values, inverse, counts};
}

UniqueResult unique_elements(const Tensor& self, bool consecutive, bool want_inverse, bool want_counts) {
  require_data(self, "unique");
  const Tensor flat = dense(reshape(self, {-1}));
  if (const DeviceLayers* layers = device_layers(flat)) {
    auto [values, inverse, counts] =
        unique_elements_on_device(*layers, flat, consecutive, want_inverse, want_counts);
    return {values, want_inverse ? reshape(inverse, self.sizes()) : inverse, counts};
  }
  Tensor sorted = flat, order;
  if (!consecutive && want_inverse) {
    std::tie(sorted, order) = sort_stable(flat, true, 0, false);
  } else if (!consecutive) {
    sorted = empty_tensor(flat.sizes(), flat.dtype());
    cpu::sort_values(flat, sorted);
  }
  const int64_t* places = order.defined() ? order.data<int64_t>() : nullptr;
  return visit_dtype(Concat<TypeList<bool>, RealTypes>{}, flat.dtype(), "unique", [&]<class T>(T) {
    auto [values, inverse, counts] = distinct<T>(sorted, places, want_inverse, want_counts);
    return UniqueResult(values, want_inverse ? reshape(inverse, self.sizes()) : inverse, counts);
  });
}

// On a device by its operators: rows are sorted by one column after the other, the first one last.
// The slices of `self` that are chosen among its rows, each in one piece of memory, as PyTorch lays them out.
Tensor chosen_slices(const Tensor& self, int64_t dim, const Tensor& rows, const Tensor& chosen) {
  const Tensor picked = index_select(rows, 0, chosen);
  Dims sizes = movedim_int(self, dim, 0)->sizes;
  sizes[0] = chosen.numel();
  const Tensor moved = movedim_int(view(picked, sizes), 0, dim);
  picked->set_layout(moved.sizes(), moved.strides());
  return picked;
}

UniqueResult unique_rows_on_device(const Tensor& self, int64_t dim, const Tensor& rows, bool consecutive,
                                   bool want_inverse, bool want_counts) {
  const int64_t n = rows.size(0);
  Tensor order, sorted = rows;
  for (int64_t c = rows.size(1) - 1; c >= 0 && !consecutive; --c) {
    const Tensor next = argsort_stable(select(sorted, 1, c), true, 0, false);
    order = order.defined() ? index_select(order, 0, next) : next;
    sorted = index_select(rows, 0, order);
  }
  const Tensor changes =
      ops::any_dim(ops::ne(narrow(sorted, 0, 1, n - 1), narrow(sorted, 0, 0, n - 1)), 1, false);
  const Tensor starts = cat({ones({1}, DType::Bool, std::nullopt, self.device()), changes});
  const Tensor begins = reshape(nonzero(starts), IntList{-1});
  const Tensor first = order.defined() ? index_select(order, 0, begins) : begins;
  Tensor inverse = whole_numbers(0, self), counts = whole_numbers(0, self);
  if (want_inverse) {
    inverse = cumsum(starts, 0, DType::Int64) - Scalar(int64_t{1});
    if (order.defined()) inverse = scatter_src(empty_like_tensor(inverse, DType::Int64), 0, order, inverse);
  }
  if (want_counts) {
    const Tensor ends = cat({narrow(begins, 0, 1, begins.numel() - 1),
                             full({1}, Scalar(n), DType::Int64, std::nullopt, self.device())});
    counts = ends - begins;
  }
  return {chosen_slices(self, dim, rows, first), inverse, counts};
}

UniqueResult unique_slices(const Tensor& self, int64_t given_dim, bool consecutive, bool want_inverse,
                           bool want_counts) {
  const int64_t dim = wrap_dim(given_dim, self.dim());
  if (self.dim() == 0) return unique_elements(self, consecutive, want_inverse, want_counts);
  const int64_t n = self->sizes[dim];
  if (self.numel() == 0) {
    RL_CHECK(n == 0 && std::count(self.sizes().begin(), self.sizes().end(), 0) == 1,
             "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied");
    return {empty_like_tensor(self, self.dtype()), whole_numbers(want_inverse ? n : 0, self),
            whole_numbers(0, self)};
  }
  require_data(self, "unique");
  const Tensor rows = dense(reshape(movedim_int(self, dim, 0), {n, -1}));
  if (!self.is_cpu()) return unique_rows_on_device(self, dim, rows, consecutive, want_inverse, want_counts);
  const int64_t width = rows.size(1);
  const std::vector<int64_t> order = consecutive ? natural_order(n) : sorted_rows(rows, width);
  auto [first, inverse, counts] =
      grouped(order, starts_of_groups(rows, order, width), want_inverse, want_counts);
  return {chosen_slices(self, dim, rows, first), inverse, counts};
}

UniqueResult unique2_kernel(const Call&, const Tensor& self, bool, bool return_inverse, bool return_counts) {
  return unique_elements(self, false, return_inverse, return_counts);
}
UniqueResult unique_dim_kernel(const Call&, const Tensor& self, int64_t dim, bool, bool return_inverse,
                               bool return_counts) {
  RL_CHECK_INDEX(self.dim() > 0, "Dimension specified as ", dim, " but tensor has no dimensions");
  return unique_slices(self, dim, false, return_inverse, return_counts);
}
UniqueResult unique_consecutive_kernel(const Call&, const Tensor& self, bool return_inverse,
                                       bool return_counts, OptInt dim) {
  RL_CHECK_INDEX(!dim || self.dim() > 0, "Dimension specified as ", *dim, " but tensor has no dimensions");
  return dim ? unique_slices(self, *dim, true, return_inverse, return_counts)
             : unique_elements(self, true, return_inverse, return_counts);
}

}  // namespace

void register_unique_operators(Table& t) {
  t.op(unique2,
       "_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> "
       "(Tensor, Tensor, Tensor)",
       unique2_kernel)
      .doc("Distinct elements, the place of each input element among them, and their counts.")
      .no_meta("how many elements there are depends on their values")
      .function_only()
      .family(Family::Scan)
      .on_devices()
      .data_dependent_shape()
      .refused_derivative<"the derivative for '_unique2' is not implemented.">();
  t.op(unique_dim,
       "unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool "
       "return_counts=False) -> (Tensor, Tensor, Tensor)",
       unique_dim_kernel)
      .doc("Distinct slices along a dimension.")
      .no_meta("how many elements there are depends on their values")
      .function_only()
      .family(Family::Scan)
      .on_devices()
      .data_dependent_shape()
      .refused_derivative<"the derivative for 'unique_dim' is not implemented.">();
  t.op(unique_consecutive,
       "unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) "
       "-> (Tensor, Tensor, Tensor)",
       unique_consecutive_kernel)
      .doc("Elements or slices that differ from the one before.")
      .no_meta("how many elements there are depends on their values")
      .function_only()
      .family(Family::Scan)
      .on_devices()
      .data_dependent_shape()
      .refused_derivative<"the derivative for 'unique_consecutive' is not implemented.">();
}

}  // namespace rushlight
