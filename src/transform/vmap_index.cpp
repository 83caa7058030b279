// vmap of indexing, gathering and scattering: the example's number is one more index.
#include <algorithm>

#include "ops/comparison.h"
#include "ops/copy.h"
#include "ops/embedding.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/operators.h"
#include "ops/sort.h"
#include "ops/view.h"
#include "transform/vmap.h"

namespace rushlight {
namespace {

// 0, 1, ... for the examples, with `rank` dimensions of size one behind.
Tensor example_numbers(const BatchCall& c, int64_t rank, Device device) {
  Dims sizes{c.size()};
  for (int64_t i = 0; i < rank; ++i) sizes.push_back(1);
  return ops::reshape(ops::arange(Scalar(int64_t{0}), Scalar(c.size()), Scalar(int64_t{1}), DType::Int64,
                                  std::nullopt, device, std::nullopt),
                      sizes);
}

bool is_mask(const Tensor& t) { return t.defined() && (is_bool(t.dtype()) || t.dtype() == DType::UInt8); }

// A list of indices with masks replaced by the positions they pick.
std::vector<Tensor> without_masks(const BatchCall& c, TensorList given) {
  std::vector<Tensor> indices;
  for (const Tensor& t : given) {
    if (!is_mask(t)) {
      indices.push_back(t);
      continue;
    }
    RL_CHECK(!c.is_batched(t),
             "vmap: We do not support batching operators that can support dynamic shape. Attempting to batch "
             "over indexing with a boolean mask.");
    for (Tensor& column : ops::nonzero_numpy(t)) indices.push_back(std::move(column));
  }
  return indices;
}

// The indices of a call one level out, and where their common shape stands in the result.
struct Indices {
  std::vector<Tensor> list;
  int64_t rank = 0;    // of the common shape
  int64_t before = 0;  // dimensions of the result in front of it; 0 where the indices are apart
  bool moved = false;  // one level out it stands in front instead
  bool apart = false;  // not one after the other

  Indices(const BatchCall& c, TensorList given, Device device) {
    const std::vector<Tensor> logical = without_masks(c, given);
    int64_t first = -1, last = -1, count = 0;
    for (size_t i = 0; i < logical.size(); ++i) {
      if (!logical[i].defined()) continue;
      rank = std::max(rank, logical[i].dim());
      if (first < 0) first = static_cast<int64_t>(i);
      last = static_cast<int64_t>(i), ++count;
    }
    const bool adjacent = count == last - first + 1;
    apart = !adjacent;
    before = adjacent ? first : 0;
    moved = adjacent && first > 0;
    list.push_back(example_numbers(c, rank, device));
    for (const Tensor& t : logical) {
      if (!t.defined() || !c.is_batched(t))
        list.push_back(t);
      else
        list.push_back(c.aligned(t, rank));
    }
  }

  // From [examples, common shape, rest...] to the order of the caller, or back.
  Tensor reorder(const Tensor& t, bool back) const {
    if (!moved) return t;
    Dims order{0};
    if (!back) {
      for (int64_t d = 0; d < before; ++d) order.push_back(1 + rank + d);
      for (int64_t d = 0; d < rank; ++d) order.push_back(1 + d);
    } else {
      for (int64_t d = 0; d < rank; ++d) order.push_back(1 + before + d);
      for (int64_t d = 0; d < before; ++d) order.push_back(1 + d);
    }
    for (int64_t d = 1 + rank + before; d < t.dim(); ++d) order.push_back(d);
    return ops::permute(t, order);
  }
};

// Indices that all examples share leave the examples' dimension as it is, and so the result's order in
// memory.
bool index_alike(BatchCall& c) {
  const TensorList given = c.arg(1).tensors();
  if (std::any_of(given.begin(), given.end(),
                  [&](const Tensor& t) { return t.defined() && c.is_batched(t); }))
    return false;
  const Indices at(c, given, c.logical(0).device());
  std::vector<Tensor> list = at.list;
  list[0] = Tensor();
  const Tensor result = ops::index(c.front(0), list);
  c.result(at.apart ? ops::movedim_int(result, at.rank, 0) : result);
  return true;
}

void index_rule(BatchCall& c) {
  if (index_alike(c)) return;
  const Tensor self = c.examples(0);
  const Indices at(c, c.arg(1).tensors(), self.device());
  c.result(at.reorder(ops::index(self, at.list), false));
}

// x[mask] = value writes where the mask says, whatever the example.
bool write_masked(BatchCall& c) {
  const TensorList given = c.arg(1).tensors();
  if (given.size() != 1 || !is_mask(given[0]) || !c.is_batched(given[0])) return false;
  if (c.logical(2).numel() != 1 || c.arg(3).boolean()) return false;
  const int64_t rank = c.rank(0);
  Tensor mask = to_dtype(c.front(given[0]), DType::Bool);
  for (int64_t d = given[0].dim(); d < rank; ++d) mask = ops::unsqueeze(mask, -1);
  Dims one{c.batched(2) ? c.size() : 1};
  for (int64_t d = 0; d < rank; ++d) one.push_back(1);
  const Tensor self = c.front(0);
  const Tensor value = to_dtype(ops::reshape(c.front(2), one), self.dtype());
  ops::copy_(self, ops::where(mask, value, self), false);
  return true;
}

void index_put_rule(BatchCall& c) {
  if (write_masked(c)) return;
  const Tensor self = c.front(0);
  const Indices at(c, c.arg(1).tensors(), self.device());
  const int64_t taken = static_cast<int64_t>(at.list.size()) - 1;
  int64_t defined = 0;
  for (size_t i = 1; i < at.list.size(); ++i) defined += at.list[i].defined();
  const int64_t rank = c.rank(0) - taken + (taken - defined) + at.rank;
  Tensor values = c.logical(2);
  if (c.batched(2) || at.moved) {
    values = c.aligned(values, rank);
    if (at.moved) values = at.reorder(values, true);
  }
  ops::index_put_(self, at.list, values, c.arg(3).boolean());
}

// index repeated along all dimensions but `dim`, as gather and scatter take it.
Tensor spread_index(const Tensor& index, IntList like, int64_t dim) {
  Dims view(like.size(), 1), sizes = like.dims();
  view[0] = index->sizes[0];
  view[dim] = sizes[dim] = index->sizes[1];
  return ops::expand(ops::reshape(index, view), sizes, false);
}

void index_select_rule(BatchCall& c) {
  if (c.rank(0) == 0) return loop_over_examples(c);
  const int64_t dim = wrap_dim(c.arg(1).integer(), c.rank(0)) + 1;
  if (!c.batched(2)) return c.result(ops::index_select(c.front(0), dim, c.logical(2)));
  const Tensor self = c.examples(0);
  const Tensor index = ops::reshape(c.examples(2), IntList{c.size(), c.logical(2).numel()});
  c.result(ops::gather(self, dim, spread_index(index, self.sizes(), dim), false));
}

// Writes `source` where one index says for all examples.
void write_at_index(BatchCall& c, const Tensor& source) {
  std::vector<Value> args = c.args();
  const Tensor self = c.examples(0);
  args[0] = Value(self);
  args[1] = Value(wrap_dim(c.arg(1).integer(), c.rank(0)) + 1);
  args[3] = Value(source);
  c.call(args.data());
}

// index_add, index_copy: one index for all examples, or one each.
void index_write_rule(BatchCall& c) {
  if (c.batched(2) || c.rank(0) == 0 || c.rank(3) == 0) return loop_over_examples(c);
  write_at_index(c, c.examples(3));
}
void index_fill_rule(BatchCall& c) {
  if (c.batched(2) || c.rank(0) == 0 || c.batched(3)) return loop_over_examples(c);
  write_at_index(c, c.logical(3));
}

void take_rule(BatchCall& c) {
  const Tensor flat = ops::reshape(c.examples(0), IntList{c.size(), c.logical(0).numel()});
  const Tensor at = c.batched(1) ? c.front(1) : c.logical(1);
  c.result(ops::index(flat, {example_numbers(c, c.rank(1), flat.device()), at}));
}

// weight [examples, rows, width] or shared; indices likewise.
void embedding_rule(BatchCall& c) {
  if (!c.batched(0)) {
    std::vector<Value> args = c.args();
    const Tensor indices = c.front(1);
    args[1] = Value(indices);
    return c.call(args.data());
  }
  if (c.arg(2).integer() >= 0 || c.arg(3).boolean()) return loop_over_examples(c);
  const Tensor weight = c.front(0);
  c.result(ops::index(weight, {example_numbers(c, c.rank(1), weight.device()), c.front(1)}));
}

// Rows of all examples side by side in one table.
void embedding_backward_rule(BatchCall& c) {
  const int64_t rows = c.arg(2).integer(), padding = c.arg(3).integer();
  const Tensor grad = c.examples(0), indices = c.examples(1);
  Tensor at = to_dtype(indices, DType::Int64);
  const Tensor first = example_numbers(c, c.rank(1), grad.device()) * Scalar(rows);
  Tensor table = ops::embedding_dense_backward(grad, at + first, rows * c.size(), -1, c.arg(4).boolean());
  table = ops::reshape(table, IntList{c.size(), rows, grad->sizes.back()});
  if (padding >= 0) {
    const Tensor keep = rushlight::ne(ops::arange(Scalar(int64_t{0}), Scalar(rows), Scalar(int64_t{1}),
                                                  DType::Int64, std::nullopt, grad.device(), std::nullopt),
                                      Scalar(padding));
    table = table * to_dtype(ops::unsqueeze(keep, -1), table.dtype());
  }
  c.result(std::move(table));
}

// One table for all examples; each example brings its own values.
template <int Values, int Shared>
void lookup_rule(BatchCall& c) {
  if (!c.batched(Values) || (Shared >= 0 && c.batched(Shared))) return loop_over_examples(c);
  std::vector<Value> args = c.args();
  const Tensor values = c.front(Values);
  args[Values] = Value(values);
  c.call(args.data());
}

void one_hot_rule(BatchCall& c) {
  RL_CHECK(c.arg(1).integer() >= 0,
           "vmap: one_hot() needs num_classes: what it would find in the values differs between examples");
  lookup_rule<0, -1>(c);
}

void searchsorted_rule(BatchCall& c) {
  if (c.rank(0) == 1 && !(c.arg_count() > 5 && c.given(5))) return lookup_rule<1, 0>(c);
  loop_over_examples(c);
}

void masked_select_rule(BatchCall& c) {
  RL_CHECK(!c.batched(1),
           "vmap: Attempted to vmap over `mask` in torch.masked_select(self, mask) We cannot support this "
           "because for each batch this would return a differently shaped Tensor. Please file an issue at "
           "https://github.com/pytorch/pytorch/issues if you need this feature.");
  loop_over_examples(c);
}

}  // namespace

void refuse_dynamic_shape(BatchCall& c) {
  RL_FAIL(
      "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over "
      "aten::",
      c.op().name(),
      ". Please file an issue at https://github.com/pytorch/pytorch/issues if you need this feature.");
}

void add_index_rules(BatchTable& t) {
  t.set(ops::index, index_rule, "index");
  t.set(ops::index_put_, index_put_rule, "index");
  t.set(ops::index_select, index_select_rule, "index");
  t.set(ops::index_add, index_write_rule, "index");
  t.set(ops::index_copy, index_write_rule, "index");
  t.set(ops::index_fill, index_fill_rule, "index");
  t.set(ops::masked_select, masked_select_rule, "loop: one mask for all examples");
  t.set(ops::take, take_rule, "index");
  t.set(ops::embedding, embedding_rule, "index");
  t.set(ops::embedding_dense_backward, embedding_backward_rule, "index");
  t.set(ops::bucketize, lookup_rule<0, 1>, "index");
  t.set(ops::isin, lookup_rule<0, 1>, "index");
  t.set(ops::one_hot, one_hot_rule, "index");
  t.set(ops::searchsorted, searchsorted_rule, "index");
}

}  // namespace rushlight
