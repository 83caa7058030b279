// vmap of operators that rearrange elements: dimension arguments counted one further, sizes with one more.
#include <deque>

#include "ops/complex.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/join.h"
#include "ops/view.h"
#include "transform/vmap.h"

namespace rushlight {
namespace {

bool one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}
bool is_dim_name(std::string_view name) {
  return one_of(name, {"dim", "dims", "dim0", "dim1", "dim2", "axis0", "axis1", "dimension"});
}
bool is_size_name(std::string_view name) { return one_of(name, {"size", "input_sizes", "sizes"}); }

// What dimension arguments of this call are counted over.
int64_t counted_rank(const BatchCall& c) {
  const int sizes = c.op().schema.index_of("input_sizes");
  if (sizes >= 0) return static_cast<int64_t>(c.arg(sizes).ints().size());
  if (!c.op().tensor_parameters) return 0;
  const int p = __builtin_ctzll(c.op().tensor_parameters);
  int64_t rank = 0;
  if (c.arg(p).tag() == Tag::TensorList) {
    for (const Tensor& t : c.arg(p).tensors())
      if (t.defined()) rank = std::max(rank, t.dim());
  } else {
    rank = c.rank(p);
  }
  return rank;
}

// The arguments of a call, rewritten; owns what they borrow.
struct Rewritten {
  std::vector<Value> args;
  std::deque<Tensor> tensors;
  std::deque<std::vector<Tensor>> tensor_lists;
  std::deque<Dims> lists;

  void put(int p, Tensor t) { args[p] = Value(tensors.emplace_back(std::move(t))); }
  void put(int p, std::vector<Tensor> list) {
    args[p] = Value(TensorList(tensor_lists.emplace_back(std::move(list))));
  }
  void put(int p, Dims list) { args[p] = Value(IntList(lists.emplace_back(std::move(list)))); }
};

// A 0-dim example counts as having one dimension: `scalar` says that this was needed.
Rewritten rewrite(const BatchCall& c, int64_t rank, bool& scalar) {
  Rewritten r{c.args(), {}, {}, {}};
  bool has_dims = false;
  for (int p = 0; p < c.arg_count(); ++p) {
    const Parameter& parameter = c.op().schema.parameters[p];
    if (is_size_name(parameter.name) && c.arg(p).tag() == Tag::IntList) {
      Dims sizes = c.arg(p).ints().dims();
      sizes.insert(0, c.size());
      r.put(p, std::move(sizes));
    } else if (is_dim_name(parameter.name) && c.arg(p).tag() == Tag::Int) {
      r.args[p] = Value(wrap_dim(c.arg(p).integer(), rank) + 1);
      has_dims = true;
    } else if (is_dim_name(parameter.name) && c.arg(p).tag() == Tag::IntList) {
      Dims dims;
      for (int64_t d : c.arg(p).ints()) dims.push_back(wrap_dim(d, rank) + 1);
      has_dims |= !dims.empty();
      r.put(p, std::move(dims));
    }
  }
  scalar = rank == 0 && has_dims;
  if (const int sizes = c.op().schema.index_of("input_sizes"); scalar && sizes >= 0)
    r.put(sizes, Dims{c.size(), 1});
  auto examples = [&](const Tensor& t) {
    return scalar && t.dim() == 0 ? ops::unsqueeze(c.examples(t), 1) : c.examples(t);
  };
  for (uint64_t bits = c.op().tensor_parameters; bits; bits &= bits - 1) {
    const int p = __builtin_ctzll(bits);
    if (c.arg(p).tag() == Tag::TensorList) {
      std::vector<Tensor> list;
      for (const Tensor& t : c.arg(p).tensors()) list.push_back(t.defined() ? examples(t) : t);
      r.put(p, std::move(list));
    } else if (c.given(p)) {
      r.put(p, examples(c.logical(p)));
    }
  }
  return r;
}

// --- views

Dims viewed_sizes(const BatchCall& c) {
  Dims sizes = infer_shape(c.arg(1).ints(), c.logical(0).numel());
  sizes.insert(0, c.size());
  return sizes;
}

void view_rule(BatchCall& c) { c.result(ops::view(c.front(0), viewed_sizes(c))); }
void unsafe_view_rule(BatchCall& c) { c.result(ops::reshape(c.front(0), viewed_sizes(c))); }

void expand_rule(BatchCall& c) {
  const IntList size = c.arg(1).ints();
  const auto n = static_cast<int64_t>(size.size());
  RL_CHECK(n >= c.rank(0), "expand: the number of sizes provided (", n,
           ") must be greater or equal to the number of dimensions in the tensor (", c.rank(0), ")");
  Dims sizes = size.dims();
  sizes.insert(0, c.size());
  c.result(ops::expand(c.aligned(c.logical(0), n), sizes, false));
}

void permute_rule(BatchCall& c) {
  const IntList given = c.arg(1).ints();
  RL_CHECK(static_cast<int64_t>(given.size()) == c.rank(0),
           "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the "
           "desired ordering of dimensions i.e. input.dim() = ",
           c.rank(0), " is not equal to len(dims) = ", given.size());
  Dims dims{0};
  for (int64_t d : given) dims.push_back(wrap_dim(d, c.rank(0)) + 1);
  c.result(ops::permute(c.front(0), dims));
}

void t_rule(BatchCall& c) {
  RL_CHECK(c.rank(0) <= 2, "t() expects a tensor with <= 2 dimensions, but self is ", c.rank(0), "D");
  c.result(c.rank(0) < 2 ? ops::alias(c.front(0)) : ops::transpose(c.front(0), 1, 2));
}

void squeeze_all(BatchCall& c) {
  Dims dims;
  for (int64_t d = 0; d < c.rank(0); ++d)
    if (c.logical(0)->sizes[d] == 1) dims.push_back(d + 1);
  c.result(ops::squeeze_dims(c.front(0), dims));
}

void squeeze_some(BatchCall& c) {
  const Value& v = c.arg(1);
  const Dims given = v.tag() == Tag::Int ? Dims{v.integer()} : v.ints().dims();
  Dims dims;
  for (int64_t d : given) {
    d = wrap_dim(d, c.rank(0));
    if (c.rank(0) > 0) dims.push_back(d + 1);
  }
  c.result(ops::squeeze_dims(c.front(0), dims));
}

void as_strided_rule(BatchCall& c) {
  const Wrapping& w = *wrapping_at(c.logical(0), c.level());
  Dims sizes = c.arg(1).ints().dims(), strides = c.arg(2).ints().dims();
  sizes.insert(0, c.size());
  strides.insert(0, w.inner->strides[w.batch_dim]);
  c.result(ops::as_strided(w.inner, sizes, strides, c.arg(3).as<OptInt>()));
}

void keep_rule(BatchCall& c) {
  std::vector<Value> args = c.args();
  const Tensor self = c.front(0);
  args[0] = Value(self);
  c.call(args.data());
}

// clone, _to_copy, *_like: formats that count four or five dimensions cannot count one more.
void copy_rule(BatchCall& c) {
  std::vector<Value> args = c.args();
  const Tensor self = c.front(0);
  args[0] = Value(self);
  for (Value& v : args)
    if (v.tag() == Tag::MemoryFormat && v.memory_format() != MemoryFormat::Contiguous)
      v = Value(MemoryFormat::Preserve);
  c.call(args.data());
}

void new_rule(BatchCall& c) {
  std::vector<Value> args = c.args();
  const Tensor self = c.front(0);
  args[0] = Value(self);
  Dims sizes = c.arg(1).ints().dims();
  sizes.insert(0, c.size());
  args[1] = Value(IntList(sizes));
  c.call(args.data());
}

void new_strided_rule(BatchCall& c) {
  Dims sizes = c.arg(1).ints().dims();
  sizes.insert(0, c.size());
  c.result(ops::new_empty(c.front(0), sizes, c.arg(3).as<OptDType>(), std::nullopt, c.arg(5).as<OptDevice>(),
                          std::nullopt));
}

void repeat_rule(BatchCall& c) {
  const IntList given = c.arg(1).ints();
  const auto n = static_cast<int64_t>(given.size());
  RL_CHECK(n >= c.rank(0),
           "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
  Dims repeats = given.dims();
  repeats.insert(0, 1);
  c.result(ops::repeat(c.aligned(c.logical(0), n), repeats));
}

void roll_rule(BatchCall& c) {
  if (!c.arg(2).ints().empty()) return shift_dims(c);
  const Tensor self = c.front(0);
  const Tensor flat = ops::reshape(self, IntList{c.size(), c.logical(0).numel()});
  c.result(ops::reshape(ops::roll(flat, c.arg(1).ints(), IntList{1}), self.sizes()));
}

// Unlike stack, cat lets a one-dimensional tensor without elements pass among others.
void cat_rule(BatchCall& c) {
  std::vector<Tensor> list;
  int64_t rank = 0;
  auto skipped = [](const Tensor& t) { return t.dim() == 1 && t.numel() == 0; };
  for (const Tensor& t : c.arg(0).tensors()) rank = std::max(rank, t.dim());
  for (const Tensor& t : c.arg(0).tensors())
    if (rank <= 1 || !skipped(t)) list.push_back(c.examples(t));
  RL_CHECK(rank > 0, "zero-dimensional tensor (at position 0) cannot be concatenated");
  c.result(ops::cat(list, wrap_dim(c.arg(1).integer(), rank) + 1));
}

void shift_dims_of(BatchCall& c, int64_t rank) {
  bool scalar = false;
  const Rewritten r = rewrite(c, rank, scalar);
  c.call(r.args.data());
  if (!scalar) return;
  for (int i = 0; i < c.results.count; ++i)
    if (c.results.tensors[i].dim() > 1) c.results.tensors[i] = ops::squeeze_dim(c.results.tensors[i], 1);
}

// Dimensions are counted in the result, which has one more.
void shift_result_dims(BatchCall& c) { shift_dims_of(c, counted_rank(c) + 1); }

}  // namespace

void shift_dims(BatchCall& c) { shift_dims_of(c, counted_rank(c)); }

void add_shape_rules(BatchTable& t) {
  t.set(ops::stack, shift_result_dims, "dims");
  t.set(ops::unsqueeze, shift_result_dims, "dims");
  t.set(ops::diag_embed, shift_result_dims, "dims");
  t.set(ops::roll, roll_rule, "dims");
  t.set(ops::view, view_rule, "view");
  t.set(ops::view_dtype, shift_dims, "view");
  t.set(ops::unsafe_view, unsafe_view_rule, "view");
  t.set(ops::expand, expand_rule, "view");
  t.set(ops::permute, permute_rule, "view");
  t.set(ops::t, t_rule, "view");
  t.set(ops::squeeze, squeeze_all, "view");
  t.set(ops::squeeze_dim, squeeze_some, "view");
  t.set(ops::squeeze_dims, squeeze_some, "view");
  t.set(ops::as_strided, as_strided_rule, "view");
  t.set(ops::alias, keep_rule, "view");
  t.set(ops::detach, keep_rule, "view");
  t.set(ops::conj_view, keep_rule, "view");
  t.set(ops::neg_view, keep_rule, "view");
  t.set(ops::clone, copy_rule, "pointwise");
  t.set(ops::to_copy, copy_rule, "pointwise");
  t.set(ops::zeros_like, copy_rule, "pointwise");
  t.set(ops::ones_like, copy_rule, "pointwise");
  t.set(ops::full_like, copy_rule, "pointwise");
  t.set(ops::empty_like, copy_rule, "pointwise");
  t.set(ops::new_zeros, new_rule, "factory");
  t.set(ops::new_ones, new_rule, "factory");
  t.set(ops::new_full, new_rule, "factory");
  t.set(ops::new_empty, new_rule, "factory");
  t.set(ops::new_empty_strided, new_strided_rule, "factory");
  t.set(ops::repeat, repeat_rule, "dims");
  t.set(ops::cat, cat_rule, "dims");
}

}  // namespace rushlight
