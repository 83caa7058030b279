// vmap of operators that work element by element: examples first, ranks aligned, then plain broadcasting.
#include "ops/comparison.h"
#include "ops/copy.h"
#include "ops/pointwise.h"
#include "ops/view.h"
#include "transform/vmap.h"

namespace rushlight {
namespace {

// Dimensions of size one after that of examples, so that the others line up from the right.
Tensor line_up(const BatchCall& c, const Tensor& t, int64_t rank) {
  Tensor front = c.front(t);
  if (!c.is_batched(t) || t.dim() >= rank) return front;
  Dims sizes{c.size()};
  for (int64_t i = t.dim(); i < rank; ++i) sizes.push_back(1);
  for (int64_t s : t.sizes()) sizes.push_back(s);
  return ops::reshape(front, sizes);
}

bool is_condition(const Op& op, int p) {
  const std::string_view name = op.schema.parameters[p].name;
  return name == "condition" || name == "mask";
}

// A 0-dim operand is weak in type promotion, and must not become strong by its dimension of examples: it is
// cast beforehand to what the operands have in common.
void keep_weak(const BatchCall& c, std::vector<Tensor>& operands, const std::vector<int>& parameters) {
  Promotion logical, physical;
  int counted = 0;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (is_condition(c.op(), parameters[i])) continue;
    logical.add(c.logical(parameters[i]));
    physical.add(operands[i]);
    ++counted;
  }
  if (counted < 2) return;
  const DType want = logical.result();
  if (physical.result() == want) return;
  for (size_t i = 0; i < parameters.size(); ++i)
    if (c.batched(parameters[i]) && c.rank(parameters[i]) == 0 && !is_condition(c.op(), parameters[i]))
      operands[i] = to_dtype(operands[i], want);
}

}  // namespace

void batch_pointwise(BatchCall& c) {
  std::vector<int> parameters;
  int64_t rank = 0;
  for (uint64_t bits = c.op().tensor_parameters; bits; bits &= bits - 1) {
    const int p = __builtin_ctzll(bits);
    if (!c.given(p)) continue;
    parameters.push_back(p);
    rank = std::max(rank, c.rank(p));
  }
  std::vector<Tensor> operands;
  for (int p : parameters) operands.push_back(line_up(c, c.logical(p), rank));
  keep_weak(c, operands, parameters);
  std::vector<Value> args = c.args();
  for (size_t i = 0; i < parameters.size(); ++i) args[parameters[i]] = Value(operands[i]);
  c.call(args.data());
}

namespace {

// What copy_ and fill_ read, lined up with the target.
Tensor source_of_write(const BatchCall& c) {
  const Tensor& given = c.logical(1);
  RL_CHECK(given.dim() <= c.rank(0) || given.numel() <= c.logical(0).numel(), "output with shape ",
           c.logical(0).sizes(), " doesn't match the broadcast shape ", given.sizes());
  return line_up(c, given, c.rank(0));
}

void write_pointwise(BatchCall& c) {
  std::vector<Value> args = c.args();
  const Tensor self = c.front(0);
  Tensor source;
  args[0] = Value(self);
  if (c.arg_count() > 1 && c.given(1)) args[1] = Value(source = source_of_write(c));
  c.call(args.data());
}

// A value for each example is copied: the kernel takes one for all.
void fill_rule(BatchCall& c) {
  if (!c.batched(1)) return write_pointwise(c);
  ops::copy_(c.front(0), source_of_write(c), false);
}

void masked_fill(BatchCall& c) {
  if (!c.batched(2)) return batch_pointwise(c);
  const int64_t rank = std::max(c.rank(0), c.rank(1));
  RL_CHECK(c.rank(2) == 0, "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
           c.rank(2), " dimension(s).");
  const Tensor self = line_up(c, c.logical(0), rank);
  c.result(ops::where(line_up(c, c.logical(1), rank), to_dtype(line_up(c, c.logical(2), rank), self.dtype()),
                      self));
}

}  // namespace

void add_pointwise_rules(BatchTable& t) {
  t.set(ops::masked_fill, masked_fill, "pointwise");
  t.set(ops::copy_, write_pointwise, "pointwise");
  t.set(ops::fill_, fill_rule, "pointwise");
  t.set(ops::zero_, write_pointwise, "pointwise");
}

}  // namespace rushlight
