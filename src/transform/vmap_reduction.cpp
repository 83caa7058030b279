// vmap of reductions, scans and sorts.
#include "ops/reduction.h"
#include "ops/view.h"
#include "transform/vmap.h"

namespace rushlight {

// Reductions over several dimensions: none given means all of them.
void reduce_dims(BatchCall& c) {
  const int p = c.op().schema.index_of("dim");
  const Value& v = c.arg(p);
  const int64_t rank = c.rank(0);
  Dims dims;
  if (v.tag() == Tag::Int) {
    dims.push_back(wrap_dim(v.integer(), rank) + 1);
  } else if (!v.is_none()) {
    for (int64_t d : v.ints()) dims.push_back(wrap_dim(d, rank) + 1);
  }
  if (dims.empty())
    for (int64_t d = 0; d < rank; ++d) dims.push_back(d + 1);
  std::vector<Value> args = c.args();
  Tensor self = c.front(0);
  if (rank == 0) self = ops::unsqueeze(self, 1), dims = Dims{1};
  args[0] = Value(self);
  args[p] = Value(IntList(dims));
  c.call(args.data());
  if (rank > 0) return;
  for (int i = 0; i < c.results.count; ++i)
    if (c.results.tensors[i].dim() > 1) c.results.tensors[i] = ops::squeeze_dim(c.results.tensors[i], 1);
}

namespace {

Tensor flat_examples(const BatchCall& c) {
  return ops::reshape(c.front(0), IntList{c.size(), c.logical(0).numel()});
}

// A reduction to one number, by its form over one dimension.
template <auto& Handle, class... Rest>
void reduce_all(BatchCall& c) {
  const Tensor flat = flat_examples(c);
  if constexpr (requires { Handle(flat, OptIntList(IntList{1}), false, OptDType()); })
    c.result(Handle(flat, OptIntList(IntList{1}), false, c.arg(1).as<OptDType>()));
  else if constexpr (requires { Handle(flat, int64_t{1}, false, OptDType()); })
    c.result(Handle(flat, int64_t{1}, false, c.arg(1).as<OptDType>()));
  else
    c.result(Handle(flat, int64_t{1}, false));
}
template <auto& Handle>
void select_all(BatchCall& c) {
  c.result(std::get<0>(Handle(flat_examples(c), int64_t{1}, false)));
}
// max() and min() share the gradient among equal elements, as amax and amin do.
template <auto& Handle>
void extreme_all(BatchCall& c) {
  c.result(Handle(flat_examples(c), IntList{1}, false));
}

// argmax and its kin: without a dimension the elements count in order.
template <auto& Handle>
void arg_extreme(BatchCall& c) {
  if (!c.arg(1).is_none()) return shift_dims(c);
  Tensor at = Handle(flat_examples(c), OptInt(1), false);
  if (c.arg(2).boolean()) {
    Dims sizes{c.size()};
    for (int64_t d = 0; d < c.rank(0); ++d) sizes.push_back(1);
    at = ops::reshape(at, sizes);
  }
  c.result(std::move(at));
}

void aminmax_rule(BatchCall& c) {
  if (!c.arg(1).is_none()) return shift_dims(c);
  Dims sizes{c.size()};
  if (c.arg(2).boolean())
    for (int64_t d = 0; d < c.rank(0); ++d) sizes.push_back(1);
  auto [low, high] = ops::aminmax(flat_examples(c), OptInt(1), false);
  c.result(ops::reshape(low, sizes));
  c.result(ops::reshape(high, sizes));
}

void count_nonzero_rule(BatchCall& c) {
  if (!c.arg(1).is_none()) return shift_dims(c);
  c.result(ops::count_nonzero(flat_examples(c), OptInt(1)));
}

}  // namespace

void add_reduction_rules(BatchTable& t) {
  t.set(ops::sum, reduce_all<ops::sum_dim>, "reduction");
  t.set(ops::mean, reduce_all<ops::mean_dim>, "reduction");
  t.set(ops::prod, reduce_all<ops::prod_dim>, "reduction");
  t.set(ops::all, reduce_all<ops::all_dim>, "reduction");
  t.set(ops::any, reduce_all<ops::any_dim>, "reduction");
  t.set(ops::max, extreme_all<ops::amax>, "reduction");
  t.set(ops::min, extreme_all<ops::amin>, "reduction");
  t.set(ops::median, select_all<ops::median_dim>, "reduction");
  t.set(ops::nanmedian, select_all<ops::nanmedian_dim>, "reduction");
  t.set(ops::argmax, arg_extreme<ops::argmax>, "reduction");
  t.set(ops::argmin, arg_extreme<ops::argmin>, "reduction");
  t.set(ops::aminmax, aminmax_rule, "reduction");
  t.set(ops::count_nonzero, count_nonzero_rule, "reduction");
}

}  // namespace rushlight
