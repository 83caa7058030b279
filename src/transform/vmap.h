// What the batching rules of vmap are written with.
#pragma once
#include <atomic>

#include "dispatch/table.h"
#include "transform/level.h"

namespace rushlight {

// One call at a Vmap level. Rules see operands whose dimension of examples comes first and call operators
// one level further out; their results have it first too.
class BatchCall {
 public:
  BatchCall(Frame& frame, Level& level);

  const Op& op() const { return frame_.op; }
  int64_t size() const { return level_.batch_size; }
  const Value& arg(int p) const { return frame_.args[p]; }
  int arg_count() const { return frame_.arg_count(); }
  Level& level() const { return level_; }
  Frame& frame() const { return frame_; }

  // A Tensor parameter: as the caller's program sees it (logical), and one level out.
  const Tensor& logical(int p) const { return frame_.args[p].tensor(); }
  int64_t rank(int p) const { return logical(p).dim(); }
  bool given(int p) const { return arg(p).tag() == Tag::Tensor && logical(p).defined(); }
  bool batched(int p) const { return given(p) && wrapping_at(logical(p), level_); }
  // Examples first where the operand is batched, the operand itself where it is not.
  Tensor front(int p) const { return front(logical(p)); }
  Tensor front(const Tensor& t) const;
  // Examples first in any case: an operand that all examples share is expanded.
  Tensor examples(int p) const { return examples(logical(p)); }
  Tensor examples(const Tensor& t) const;
  // As examples(), with dimensions of size one put after that of examples up to `rank` others.
  Tensor aligned(const Tensor& t, int64_t rank) const;
  bool is_batched(const Tensor& t) const { return wrapping_at(t, level_); }

  // Calls this operator, or another of the same schema, with other arguments.
  void call(const Value* args) { call_boxed(op(), args, results); }
  std::vector<Value> args() const { return std::vector<Value>(frame_.args, frame_.args + arg_count()); }
  void result(Tensor t) { results.tensors[results.count++] = std::move(t); }

  Results results;
  bool shared = false;  // the results are the same for all examples and have no dimension for them

 private:
  Frame& frame_;
  Level& level_;
};

using BatchRule = void (*)(BatchCall&);

// How an operator behaves under vmap: the rule, and the word that the coverage table shows for it.
struct BatchEntry {
  BatchRule rule = nullptr;
  const char* kind = "loop";
};
const BatchEntry& batch_entry(const Op& op);
extern BatchEntry custom_batch_entry;  // of operators that a program defined; src/python fills it

// The rules of single operators; all others have the one that their records name (traits.batching).
class BatchTable {
 public:
  explicit BatchTable(std::vector<BatchEntry>& entries) : entries_(entries) {}
  template <class Signature>
  void set(const Fn<Signature>& handle, BatchRule rule, const char* kind) {
    entries_[handle.op().id] = {rule, kind};
  }

 private:
  std::vector<BatchEntry>& entries_;
};

void add_pointwise_rules(BatchTable& t);
void add_shape_rules(BatchTable& t);
void add_reduction_rules(BatchTable& t);
void add_index_rules(BatchTable& t);
void add_matmul_rules(BatchTable& t);
void add_nn_rules(BatchTable& t);

// The rules behind Batching, by its names.
void batch_pointwise(BatchCall& c);
// Every operand gets the dimension of examples in front; parameters named like dimensions are shifted, sizes
// get the number of examples in front.
void shift_dims(BatchCall& c);
void reduce_dims(BatchCall& c);
void join_batch(BatchCall& c);
void join_window_batch(BatchCall& c);
void lead_dims(BatchCall& c);
void batch_loss(BatchCall& c);
void draw_numbers(BatchCall& c);
void refuse_dynamic_shape(BatchCall& c);
inline std::atomic<bool> loops_allowed{true};  // false: an operator without a rule is refused instead
// One call per example, results stacked. Right for every operator.
void loop_over_examples(BatchCall& c);

}  // namespace rushlight
