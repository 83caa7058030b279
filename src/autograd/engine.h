// The engine: runs the backward graph from its roots.
#pragma once
#include "autograd/meta.h"

namespace rushlight {

struct BackwardOptions {
  bool keep_graph = false;    // saved tensors survive the pass
  bool create_graph = false;  // gradients are themselves differentiable
  bool accumulate = true;     // add into the .grad of leaves; off for autograd.grad
};

// Runs from `roots` with the gradients `seeds`. With `inputs`, only the part of the graph that leads to them
// runs, and their gradients are returned in order (undefined where nothing arrived) or, with `accumulate`,
// added to them.
std::vector<Tensor> run_backward(std::span<const Edge> roots, std::vector<Tensor> seeds,
                                 std::span<const Edge> inputs, const BackwardOptions& options);

// torch.autograd.backward and torch.autograd.grad for tensors, with their checks; missing seeds are ones.
void backward(std::span<const Tensor> outputs, std::span<const Tensor> seeds = {},
              BackwardOptions options = {});
std::vector<Tensor> grad(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                         std::span<const Tensor> seeds = {}, bool allow_unused = false,
                         BackwardOptions options = {.accumulate = false});

// Sums to the shape, casts to the dtype and drops the imaginary part as `meta` asks; fails where shapes
// cannot match. `who` names the node that produced the gradient, at result `index`.
void fit_gradient(Tensor& grad, const Edge& to, const Node& who, size_t index);

// A callback for the end of the backward pass now running on this thread.
void queue_backward_callback(std::function<void()> callback);
// The node being executed on this thread, and the number of its pass (-1: none).
Node* current_node();
int64_t current_pass();
// Whether that pass runs `node`; fails outside of a pass.
bool pass_executes(const Node& node);
// Whether the running pass, which is about to execute `node`, needs the gradient that goes along one of its
// edges: always, but for passes that were asked for the gradients of certain inputs only.
bool pass_wants(const Node& node, const Edge& edge);
// Whether saved tensors survive the running pass.
bool pass_keeps_graph();

// Anomaly mode: nodes remember where they were made, and gradients are checked for NaN.
struct AnomalyState {
  bool enabled = false;
  bool check_nan = true;
};
extern AnomalyState anomaly_state;
// Filled by src/python: attaches the current stack to a new node; prints it when the node fails.
extern void (*record_stack)(Node& node);
extern void (*print_stack)(Node& node);

}  // namespace rushlight
