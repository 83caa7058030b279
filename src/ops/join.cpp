#include "ops/join.h"

#include <algorithm>
#include <limits>

#include "core/deferred_layout.h"
#include "core/long_work.h"
#include "cpu/cat.h"
#include "device/layers.h"
#include "ops/copy.h"
#include "ops/device_loops.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/index_common.h"
#include "ops/plain.h"
#include "ops/register.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

// An empty one-dimensional tensor joins with anything, for the sake of old programs.
bool is_skipped(IntList sizes) { return sizes.size() == 1 && sizes[0] == 0; }

struct JoinPlan {
  Dims sizes;  // of the result
  int64_t dim;
  DType dtype;
  bool channels_last;
};

void check_fits(const Tensor& t, const Dims& first, int64_t dim, size_t position) {
  RL_CHECK(t.sizes().size() == first.size(), "Tensors must have same number of dimensions: got ",
           first.size(), " and ", t.dim());
  for (size_t d = 0; d < first.size(); ++d)
    RL_CHECK(static_cast<int64_t>(d) == dim || t->sizes[d] == first[d],
             "Sizes of tensors must match except in dimension ", dim, ". Expected size ", first[d],
             " but got size ", t->sizes[d], " for tensor number ", position, " in the list.");
}

DType common_dtype(TensorList tensors) {
  Promotion promotion;
  for (const Tensor& t : tensors) promotion.add(t);
  return promotion.result();
}

JoinPlan plan_cat(TensorList tensors, int64_t dim) {
  RL_CHECK_VALUE(!tensors.empty(), "torch.cat(): expected a non-empty list of Tensors");
  JoinPlan plan;
  const Tensor* first = nullptr;
  plan.channels_last = true;
  bool same_dtype = true;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    RL_CHECK(t.dim() > 0, "zero-dimensional tensor (at position ", i, ") cannot be concatenated");
    same_dtype = same_dtype && t.dtype() == tensors[0].dtype();
    if (is_skipped(t.sizes())) continue;
    if (!first) {
      first = &t;
      plan.sizes = t->sizes;
      plan.dim = wrap_dim(dim, t.dim());
    } else {
      check_fits(t, (*first)->sizes, plan.dim, i);
      RL_CHECK(!__builtin_add_overflow(plan.sizes[plan.dim], t->sizes[plan.dim], &plan.sizes[plan.dim]),
               "cat: the size of dimension ", dim, " overflows");
    }
    plan.channels_last = plan.channels_last && !t.is_contiguous() && is_channels_last(t);
  }
  if (!first) plan.sizes = Dims{0}, plan.dim = 0, plan.channels_last = false;
  plan.dtype = same_dtype ? tensors[0].dtype() : common_dtype(tensors);
  return plan;
}

constexpr size_t kFewTensors = 16;

// On a device a copy each is as good for few large tensors.
bool may_join(const Tensor& t, size_t count) {
  constexpr size_t kFew = 4, kSmall = size_t{1} << 20;  // bytes
  const DeviceLayers* on = device_layers(t);
  return !on || (on->join && (count > kFew || t.nbytes() <= kSmall));
}

// Inputs whose single elements alternate in the result, contiguous: written there one by one, strided ones
// would take longer than these copies. Empty if there is nothing to copy, or more than elements to weave.
std::vector<Tensor> to_weave(TensorList tensors, DType dtype, int64_t rows) {
  bool contiguous = true;
  for (const Tensor& t : tensors) {
    if (t.numel() != rows || !t.is_cpu() || t.dtype() != dtype || t.itemsize() > 8) return {};
    contiguous = contiguous && t.is_contiguous();
  }
  std::vector<Tensor> copies;
  if (contiguous || rows < 2 || tensors.size() < 2) return copies;
  for (const Tensor& t : tensors) copies.push_back(as_contiguous(t));
  return copies;
}

// All inputs contiguous and of the result's type: `rows` times a piece of each, one after the other.
bool join_bytes(TensorList tensors, DType dtype, int64_t rows, const Tensor& out) {
  if (const std::vector<Tensor> copies = to_weave(tensors, dtype, rows); !copies.empty())
    return join_bytes(copies, dtype, rows, out);
  for (const Tensor& t : tensors)
    if (!t.is_contiguous() || t.dtype() != dtype || t.device() != out.device() ||
        !may_join(t, tensors.size()))
      return false;
  if (out.numel() == 0 || out.device().is_meta()) return true;
  for (const Tensor& t : tensors) require_data(t, "cat");
  cpu::CatPiece few[kFewTensors];
  std::vector<cpu::CatPiece> many(tensors.size() > kFewTensors ? tensors.size() : 0);
  cpu::CatPiece* pieces = many.empty() ? few : many.data();
  size_t count = 0;
  for (const Tensor& t : tensors)
    if (t.numel() > 0)
      pieces[count++] = {static_cast<const std::byte*>(t.data_ptr()),
                         static_cast<int64_t>(t.nbytes()) / rows};
  if (const DeviceLayers* on = device_layers(out)) {
    if (count) on->join(out.device().index(), {pieces, count}, rows, out.data_ptr());
  } else {
    cpu::cat({pieces, count}, rows, static_cast<std::byte*>(out.data_ptr()));
  }
  return true;
}

int64_t rows_before(IntList sizes, int64_t dim) {
  int64_t rows = 1;
  for (int64_t d = 0; d < dim; ++d) rows *= sizes[d];
  return rows;
}

void cat_strided(TensorList tensors, int64_t dim, const Tensor& out) {
  int64_t start = 0;
  for (const Tensor& t : tensors) {
    if (is_skipped(t.sizes())) continue;
    copy_result(
        make_view(out, t.sizes(), out.strides(), out.storage_offset() + start * out->strides[dim], false), t,
        false);
    start += t->sizes[dim];
  }
}

// The operands as they lie, if all have a deferred layout. Note [Deferred layout conversion]
std::vector<Tensor> images_of(TensorList tensors) {
  std::vector<Tensor> images;
  for (const Tensor& t : tensors) {
    if (t.has_data() || !has_deferred_layout(t)) return {};
    images.push_back(image_of(t));
  }
  return images;
}

Tensor cat_kernel(const Call& call, TensorList tensors, int64_t dim) {
  const JoinPlan plan = plan_cat(tensors, dim);
  for (size_t i = 0; call.out && i < tensors.size(); ++i)
    RL_CHECK(memory_overlap(*call.out, tensors[i]) == Overlap::No,
             "unsupported operation: the input tensors cannot refer to any of the output memory locations. "
             "Found overlap in input "
             "tensor ",
             i);
  RL_CHECK_TYPE(!call.out || can_cast(plan.dtype, call.out->dtype()),
                "torch.cat(): input types can't be cast to the desired output type ",
                call.out ? legacy_name(call.out->dtype()) : "");
  checked_numel(plan.sizes);
  const Device device = tensors[0].device();
  if (const std::vector<Tensor> images = images_of(tensors); !images.empty() && plan.sizes.size() == 4) {
    const Tensor out = empty_tensor(plan.sizes, plan.dtype, device, MemoryFormat::ChannelsLast);
    cat_strided(images, plan.dim, out);
    return defer_layout(out);
  }
  if (plan.channels_last) {
    const auto format = plan.sizes.size() == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
    const Tensor out = empty_tensor(plan.sizes, plan.dtype, device, format);
    cat_strided(tensors, plan.dim, out);
    return out;
  }
  const Tensor out = empty_tensor(plan.sizes, plan.dtype, device);
  if (!join_bytes(tensors, plan.dtype, rows_before(plan.sizes, plan.dim), out))
    cat_strided(tensors, plan.dim, out);
  return out;
}

Tensor stack_kernel(const Call&, TensorList tensors, int64_t dim) {
  RL_CHECK(!tensors.empty(), "stack expects a non-empty TensorList");
  const IntList sizes = tensors[0].sizes();
  const auto at = static_cast<size_t>(wrap_dim(dim, tensors[0].dim() + 1));
  JoinPlan plan{sizes.dims(), static_cast<int64_t>(at), tensors[0].dtype(), false};
  bool same_dtype = true;
  for (size_t i = 0; i < tensors.size(); ++i) {
    RL_CHECK(tensors[i].sizes() == sizes, "stack expects each tensor to be equal size, but got ", sizes,
             " at entry 0 and ", tensors[i].sizes(), " at entry ", i);
    if (tensors[i].dtype() != plan.dtype) same_dtype = false;
  }
  if (!same_dtype) plan.dtype = common_dtype(tensors);
  plan.sizes.insert(at, static_cast<int64_t>(tensors.size()));
  checked_numel(plan.sizes);
  const Tensor out = empty_tensor(plan.sizes, plan.dtype, tensors[0].device());
  if (join_bytes(tensors, plan.dtype, rows_before(plan.sizes, plan.dim), out)) return out;
  std::vector<Tensor> lines;
  for (const Tensor& t : tensors) {
    Dims line_sizes = t->sizes, strides = t->strides;
    line_sizes.insert(at, 1);
    strides.insert(at, at < strides.size() ? t->strides[at] * t->sizes[at] : 1);
    lines.push_back(make_view(t, line_sizes, strides, t.storage_offset(), false));
  }
  cat_strided(lines, plan.dim, out);
  return out;
}

template <const Fn<Tensor(TensorList, int64_t)>& target>
Tensor alias_body(const Call&, TensorList tensors, int64_t dim) {
  return target(tensors, dim);
}

// --- composites ---

std::vector<Tensor> at_least(TensorList tensors, int64_t n) {
  std::vector<Tensor> result;
  for (const Tensor& t : tensors) {
    Tensor v = t;
    if (v.dim() == 0) v = reshape(v, {1});
    if (n >= 2 && v.dim() == 1) v = unsqueeze(v, 0);
    if (n >= 3 && v.dim() == 2) v = unsqueeze(v, 2);
    result.push_back(v);
  }
  return result;
}

Tensor hstack_body(const Call&, TensorList tensors) {
  RL_CHECK(!tensors.empty(), "hstack expects a non-empty TensorList");
  const auto list = at_least(tensors, 1);
  return cat(list, list[0].dim() == 1 ? 0 : 1);
}
Tensor vstack_body(const Call&, TensorList tensors) {
  RL_CHECK(!tensors.empty(), "vstack expects a non-empty TensorList");
  return cat(at_least(tensors, 2), 0);
}
Tensor dstack_body(const Call&, TensorList tensors) {
  RL_CHECK(!tensors.empty(), "dstack expects a non-empty TensorList");
  return cat(at_least(tensors, 3), 2);
}
Tensor column_stack_body(const Call&, TensorList tensors) {
  RL_CHECK(!tensors.empty(), "column_stack expects a non-empty TensorList");
  std::vector<Tensor> columns;
  for (const Tensor& t : tensors) columns.push_back(t.dim() <= 1 ? reshape(t, {t.numel(), 1}) : t);
  return cat(columns, 1);
}

Tensor block_diag_body(const Call&, TensorList tensors) {
  if (tensors.empty()) return empty({1, 0});
  Promotion promotion;
  std::vector<Tensor> blocks;
  int64_t width = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    RL_CHECK(tensors[i].dim() <= 2, "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input ",
             i, " has ", tensors[i].dim(), " dimensions");
    promotion.add(tensors[i]);
    blocks.push_back(at_least({tensors[i]}, 2)[0]);
    width += blocks.back().size(1);
  }
  int64_t left = 0;
  if (std::all_of(blocks.begin(), blocks.end(), is_plain)) {  // each block once
    int64_t height = 0;
    for (const Tensor& b : blocks) height += b.size(0);
    const Tensor result = zeros({height, width}, promotion.result(), std::nullopt, blocks[0].device());
    int64_t top = 0;
    for (const Tensor& b : blocks) {
      loops::copy(narrow(narrow(result, 0, top, b.size(0)), 1, left, b.size(1)), b);
      top += b.size(0), left += b.size(1);
    }
    return result;
  }
  std::vector<Tensor> rows;
  for (const Tensor& b : blocks) {
    const int64_t height = b.size(0), right = width - left - b.size(1);
    const auto blank = [&](int64_t columns) {
      return zeros({height, columns}, promotion.result(), std::nullopt, b.device());
    };
    rows.push_back(cat({blank(left), b, blank(right)}, 1));
    left += b.size(1);
  }
  return cat(rows, 0);
}

Tensor cartesian_prod_body(const Call&, TensorList tensors) {
  RL_CHECK(!tensors.empty(), "cartesian_prod: expected at least one tensor");
  Dims shape;
  for (const Tensor& t : tensors) {
    RL_CHECK(t.dim() == 1, "Expect a 1D vector, but got shape ", t.sizes());
    RL_CHECK(t.dtype() == tensors[0].dtype(), "cartesian_prod: expected tensors of one dtype, got ",
             dtype_name(tensors[0].dtype()), " and ", dtype_name(t.dtype()));
    shape.push_back(t.numel());
  }
  if (tensors.size() == 1) return tensors[0];
  std::vector<Tensor> columns;
  for (size_t i = 0; i < tensors.size(); ++i) {
    Dims own(tensors.size(), 1);
    own[i] = shape[i];
    columns.push_back(reshape(expand(reshape(tensors[i], own), shape), {-1}));
  }
  return stack(columns, 1);
}

// How many r-subsets (or multisets) n things have; as many as no memory holds count as the largest number.
int64_t combination_count(int64_t n, int64_t r, bool with_replacement) {
  constexpr int64_t kMany = std::numeric_limits<int64_t>::max();
  if (n == 0 || (!with_replacement && r > n)) return 0;
  const int64_t steps = with_replacement ? std::min(r, n - 1) : std::min(r, n - r);
  const __int128 things = with_replacement ? static_cast<__int128>(n) + r - 1 : n;
  __int128 count = 1;
  for (int64_t i = 1; i <= steps; ++i) {
    count = count * (things - steps + i) / i;
    if (count > kMany) return kMany;
  }
  return static_cast<int64_t>(count);
}

// Positions of all of them in lexicographic order, one after the other.
Tensor combination_positions(int64_t n, int64_t r, bool with_replacement, int64_t count) {
  check_memory_for(count, sizeof(int64_t));
  check_memory_for(r, count * static_cast<int64_t>(sizeof(int64_t)));
  const Tensor positions = empty_tensor({count * r}, DType::Int64);
  int64_t* pick = positions.data<int64_t>();
  for (int64_t i = 0; i < r; ++i) pick[i] = with_replacement ? 0 : i;
  const auto last_of = [&](int64_t i) { return with_replacement ? n - 1 : n - r + i; };
  InterruptPoll poll;
  for (int64_t k = 1; k < count; ++k, pick += r) {
    poll();
    int64_t* next = std::copy(pick, pick + r, pick + r) - r;
    int64_t i = r - 1;
    while (next[i] == last_of(i)) --i;
    ++next[i];
    for (int64_t j = i + 1; j < r; ++j) next[j] = with_replacement ? next[i] : next[j - 1] + 1;
  }
  return positions;
}

Tensor combinations_body(const Call&, const Tensor& self, int64_t r, bool with_replacement) {
  RL_CHECK(self.dim() == 1, "Expect a 1D vector, but got shape ", self.sizes());
  RL_CHECK(r >= 0, "Expect a non-negative number, but got ", r);
  if (r == 0) return empty({0}, self.dtype(), std::nullopt, self.device());
  const int64_t count = combination_count(self.numel(), r, with_replacement);
  const Tensor positions = count ? combination_positions(self.numel(), r, with_replacement, count)
                                 : empty_tensor({0}, DType::Int64);
  const Tensor there = ops::to(positions, std::nullopt, self.device(), false, false, std::nullopt);
  return reshape(index_select(self, 0, there), {count, r});
}

// --- derivatives ---

Grads cat_backward(const Tensor& grad, const std::vector<InputMeta>& inputs, int64_t dim) {
  std::vector<Tensor> grads;
  dim = wrap_dim(dim, grad.dim());
  int64_t start = 0;
  for (const InputMeta& in : inputs) {
    if (is_skipped(in.sizes)) {
      grads.push_back(zeros({0}, grad.dtype(), std::nullopt, grad.device()));
      continue;
    }
    grads.push_back(narrow(grad, dim, start, in.sizes[dim]));
    start += in.sizes[dim];
  }
  return grads;
}

}  // namespace

void register_join_operators(Table& t) {
  t.op(cat, "cat(Tensor[] tensors, int dim=0) -> Tensor", cat_kernel)
      .doc("Joins tensors along an existing dimension.")
      .out()
      .function_only()
      .family(Family::Join)
      .examples(kFirst)  // where others than the first dimension are joined
      .on_devices()
      .linear()
      .autocast(Cast::Widest)
      .derivative(
          [](Grad g, ShapeList<0> inputs, Attr<1, int64_t> dim) { return cat_backward(g, inputs, dim); });
  t.composite(concat, "concat(Tensor[] tensors, int dim=0) -> Tensor", alias_body<cat>)
      .doc("Another name of cat.")
      .out()
      .function_only();
  t.composite(concatenate, "concatenate(Tensor[] tensors, int dim=0) -> Tensor", alias_body<cat>)
      .doc("Another name of cat.")
      .out()
      .function_only();
  t.op(stack, "stack(Tensor[] tensors, int dim=0) -> Tensor", stack_kernel)
      .doc("Joins tensors of one shape along a new dimension.")
      .out()
      .function_only()
      .family(Family::Join)
      .on_devices()
      .linear()
      .autocast(Cast::Widest)
      .out_strictly_apart(kAllOperands)
      .derivative([](Grad g, Attr<1, int64_t> dim) { return Grads(unbind(g, dim)); });
  t.composite(hstack, "hstack(Tensor[] tensors) -> Tensor", hstack_body)
      .doc("Joins tensors side by side.")
      .out()
      .function_only()
      .out_apart(kAllOperands);
  t.composite(vstack, "vstack(Tensor[] tensors) -> Tensor", vstack_body)
      .doc("Joins tensors one below the other.")
      .out()
      .function_only()
      .out_apart(kAllOperands);
  t.composite(row_stack, "row_stack(Tensor[] tensors) -> Tensor", vstack_body)
      .doc("Another name of vstack.")
      .out()
      .function_only()
      .out_apart(kAllOperands);
  t.composite(dstack, "dstack(Tensor[] tensors) -> Tensor", dstack_body)
      .doc("Joins tensors along the third dimension.")
      .out()
      .function_only()
      .out_apart(kAllOperands);
  t.composite(column_stack, "column_stack(Tensor[] tensors) -> Tensor", column_stack_body)
      .doc("Joins vectors as columns, and matrices side by side.")
      .out()
      .function_only()
      .out_apart(kAllOperands);
  t.composite(block_diag, "block_diag(Tensor[] tensors) -> Tensor", block_diag_body)
      .variadic()
      .doc("A matrix with the given ones along its diagonal.")
      .function_only()
      .one_node();
  t.composite(cartesian_prod, "cartesian_prod(Tensor[] tensors) -> Tensor", cartesian_prod_body)
      .variadic()
      .doc("All combinations of elements, one of each vector.")
      .function_only();
  t.composite(combinations, "combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor",
              combinations_body)
      .no_meta("how many elements there are depends on their values")
      .doc("All combinations of r elements of a vector.")
      .function_only();
}

}  // namespace rushlight
