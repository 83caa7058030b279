#include "autograd/engine.h"

#include <algorithm>

#include "autograd/accumulate.h"
#include "autograd/engine_state.h"
#include "autograd/gradient_ops.h"
#include "autograd/hooked.h"
#include "autograd/saved.h"
#include "dispatch/profiler.h"

namespace rushlight {

AnomalyState anomaly_state;
void (*record_stack)(Node&) = [](Node&) {};
void (*print_stack)(Node&) = [](Node&) {};

namespace {

class Pass;
struct PassState {  // of the innermost pass on this thread
  Pass* running = nullptr;
  Node* node = nullptr;
  int64_t pass = -1;
  int depth = 0;
  int stacks = 0;  // that wait for this thread's
  std::vector<std::function<void()>>* callbacks = nullptr;
};
thread_local PassState pass_state;
std::atomic<int64_t> pass_counter{0};

// A gradient that only the engine holds may be added into.
bool may_overwrite(const Tensor& t) {
  return !(t->flags & kSpecialElements) && held_alone(t) && is_non_overlapping_and_dense(t);
}

void add_gradient(Tensor& sum, Tensor grad) {
  if (!grad.defined()) return;
  if (!sum.defined()) {
    sum = std::move(grad);
  } else if (!GradMode::enabled() && sum.dtype() == grad.dtype() && sum.sizes() == grad.sizes() &&
             may_overwrite(sum)) {
    leave_base(sum);
    gradient_ops.add_into(sum, grad);
  } else if (!GradMode::enabled() && sum.dtype() == grad.dtype() && sum.sizes() == grad.sizes() &&
             may_overwrite(grad)) {
    leave_base(grad);
    gradient_ops.add_into(grad, sum);
    sum = std::move(grad);
  } else if (sum->sparse) {  // the later gradient first, as PyTorch lists its elements
    sum = gradient_ops.add(grad, sum);
  } else {
    sum = gradient_ops.add(sum, grad);
  }
}

// One backward pass: a numbered plan.
//   1. discover(): count, for every reachable node, the edges that lead to it; with inputs, mark the nodes
//   that lead to one.
//   2. seed(): put the given gradients into the buffers of the roots.
//   3. run(): execute nodes whose edges have all delivered, latest recorded first, until none is ready.
//   4. finish(): call the queued callbacks and hand out the captured gradients.
class Pass {
 public:
  Pass(std::span<const Edge> roots, std::span<const Edge> inputs, const BackwardOptions& options)
      : roots_(roots), inputs_(inputs), options_(options), work_(Workspace::borrow()) {}
  ~Pass() { Workspace::give_back(std::move(work_)); }

  std::vector<Tensor> execute(std::vector<Tensor> seeds) {
    Scope scope(*this);
    GradMode mode(options_.create_graph);
    captured_.resize(inputs_.size());
    discover();
    seed(std::move(seeds));
    run();
    for (size_t i = 0; i < callbacks_.size(); ++i) callbacks_[i]();  // by index: a callback may queue another
    return std::move(captured_);
  }
  bool executes(const Node& node) const {
    RL_CHECK(options_.accumulate || !node.is_accumulate,
             "A leaf node was passed to _will_engine_execute_node but we are currently running "
             "autograd.grad(). This is currently not supported.");
    const int64_t s = work_->find_known(&node);
    if (s < 0) return false;
    const NodeState& state = (*work_)[static_cast<uint32_t>(s)];
    return state.visited && (state.executes || state.capture >= 0);  // an input may be out of reach
  }
  bool captures(const Node& node, uint32_t output) const {
    const int64_t s = inputs_.empty() ? -1 : work_->find_known(&node);
    if (s < 0) return false;
    for (int32_t c = (*work_)[static_cast<uint32_t>(s)].capture; c >= 0; c = work_->captures[c].next)
      if (work_->captures[c].input == output) return true;
    return false;
  }
  bool keeps_graph() const { return options_.keep_graph; }
  bool is_partial() const { return !inputs_.empty(); }
  bool wants(const Edge& edge) const {
    const int64_t s = inputs_.empty() ? -1 : work_->find_known(edge.node.get());
    return s < 0 || (*work_)[static_cast<uint32_t>(s)].reaches;
  }

 private:
  struct Scope {
    explicit Scope(Pass& pass) : previous(pass_state), hooks_active(saved_hooks_active()) {
      if (hooks_active) hooks = saved_hooks_state().stack;
      pass_state.running = &pass;
      pass_state.pass = pass_counter++;
      pass_state.node = nullptr;
      ++pass_state.depth;
      pass_state.callbacks = &pass.callbacks_;
    }
    ~Scope() {
      pass_state = previous;
      if (hooks_active) saved_hooks_state().stack = std::move(hooks);
    }
    PassState previous;
    // Those on saved tensors are afterwards as before, whatever they pushed or removed themselves.
    bool hooks_active;
    std::vector<Ref<SavedTensorHooks>> hooks;
  };

  void discover() {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!inputs_[i].node) continue;
      const uint32_t s = work_->find_or_add(inputs_[i].node.get()).first;
      work_->captures.push_back({inputs_[i].input, static_cast<uint32_t>(i), (*work_)[s].capture});
      (*work_)[s].capture = static_cast<int32_t>(work_->captures.size()) - 1;
      (*work_)[s].reaches = true;
      // Gradients to accumulate run their node, for its hooks' sake, also where it is no leaf's.
      (*work_)[s].executes = options_.accumulate;
    }
    for (const Edge& root : roots_)
      if (root) visit(work_->find_or_add(root.node.get()).first);
  }

  // Depth first without recursion. A node is finished after all it leads to, so that `reaches` is known for
  // those.
  void visit(uint32_t root) {
    auto& stack = work_->stack;
    auto open = [&](uint32_t s) {
      (*work_)[s].visited = true;
      stack.push_back({s, 0});
    };
    if (!(*work_)[root].visited) open(root);
    while (!stack.empty()) {
      auto& [s, next] = stack.back();
      const auto edges = (*work_)[s].node->edges();
      if (next == edges.size()) {
        NodeState& state = (*work_)[s];
        if (inputs_.empty()) state.reaches = state.executes = true;
        state.reaches |= state.executes;
        const bool reaches = state.reaches;
        stack.pop_back();
        if (!stack.empty()) (*work_)[stack.back().state].executes |= reaches;
        continue;
      }
      const Edge& edge = edges[next++];
      if (!edge) continue;
      const uint32_t parent = s;
      const uint32_t child = work_->find_or_add(edge.node.get()).first;
      ++(*work_)[child].pending;
      if (!(*work_)[child].visited)
        open(child);
      else
        (*work_)[parent].executes |= (*work_)[child].reaches;
    }
  }

  void seed(std::vector<Tensor> seeds) {
    for (size_t i = 0; i < roots_.size(); ++i)
      if (roots_[i]) deliver(work_->find(roots_[i].node.get()), roots_[i].input, std::move(seeds[i]));
    for (const Edge& root : roots_) {
      if (!root) continue;
      const uint32_t s = work_->find(root.node.get());
      NodeState& state = (*work_)[s];
      if (state.pending == 0 && state.reaches && !state.queued) work_->push_ready(s);
    }
  }

  void deliver(uint32_t s, uint32_t input, Tensor grad) {
    NodeState& state = (*work_)[s];
    if (state.buffer.size() == 0)
      state.buffer.resize(std::max<size_t>(state.node->outputs().size(), input + 1));
    RL_ASSERT(input < state.buffer.size(), "an edge leads to a gradient that ", state.node->name(),
              " does not have");
    add_gradient(state.buffer[input], std::move(grad));
  }

  void run() {
    while (work_->has_ready()) {
      const uint32_t s = work_->pop_ready();
      Node& node = *(*work_)[s].node;
      pass_state.node = &node;
      Gradients results = process(s, node);
      pass_state.node = nullptr;
      if ((*work_)[s].executes) distribute(node, results);
    }
  }

  Gradients process(uint32_t s, Node& node) {
    Gradients grads = std::move((*work_)[s].buffer);
    if (grads.size() == 0) grads.resize(node.outputs().size());
    if (node.hooks() || node.is_accumulate) node.run_tensor_hooks(grads);
    if (!options_.accumulate)
      for (int32_t c = (*work_)[s].capture; c >= 0; c = work_->captures[c].next)
        captured_[work_->captures[c].result] = grads[work_->captures[c].input];
    if (!(*work_)[s].executes) return {};
    std::optional<ProfilerScope> event;
    if (is_profiled()) [[unlikely]] {
      event.emplace(ProfilerEvent::Kind::Engine,
                    "autograd::engine::evaluate_function: " + profiled_name(node));
      describe(*event, node);
    }
    Gradients results = is_profiled()           ? apply_profiled(node, std::move(grads))
                        : anomaly_state.enabled ? apply_checked(node, std::move(grads))
                                                : apply(node, std::move(grads));
    if (!options_.keep_graph) node.release_saved();
    fit_gradients(results, node);
    return results;
  }

  static void fit_gradients(Gradients& results, const Node& node) {
    const auto edges = node.edges();
    for (size_t i = 0; i < results.size() && i < edges.size(); ++i)
      if (edges[i] && results[i].defined() && edges[i].input < edges[i].node->outputs().size())
        fit_gradient(results[i], edges[i], node, i);
  }

  static Gradients apply(Node& node, Gradients grads) {
    if (!node.hooks()) [[likely]] {
      Gradients results = node.apply(std::move(grads));
      if (node.hooks()) [[unlikely]]
        run_late_hooks(node, results);
      return results;
    }
    NodeHooks* hooks = node.hooks();
    // One by one: a hook may register another.
    auto at = [&](const auto& list, size_t i) {
      std::lock_guard guard(node.lock);
      return i < list.size() ? list[i] : nullptr;
    };
    for (size_t i = 0; const auto hook = at(hooks->before, i); ++i) hook->call(grads);
    if (!at(hooks->after, 0)) {
      Gradients results = node.apply(std::move(grads));
      run_late_hooks(node, results);
      return results;
    }
    const Gradients outputs = grads.clone();
    Gradients results = node.apply(std::move(grads));
    fit_gradients(results, node);  // hooks see gradients of the inputs' shapes
    for (size_t i = 0; const auto hook = at(hooks->after, i); ++i) hook->call(results, outputs);
    return results;
  }

  // Hooks that were registered while the node ran: the gradients of its outputs are gone, they see none.
  static void run_late_hooks(Node& node, Gradients& results) {
    const Gradients gone(node.outputs().size());
    for (size_t i = 0;; ++i) {
      Ref<NodePostHook> hook;
      {
        std::lock_guard guard(node.lock);
        if (i >= node.hooks()->after.size()) return;
        hook = node.hooks()->after[i];
      }
      hook->call(results, gone);
    }
  }

  static Gradients apply_checked(Node& node, Gradients grads) {
    try {
      Gradients results = apply(node, std::move(grads));
      if (anomaly_state.check_nan)
        for (size_t i = 0; i < results.size(); ++i)
          RL_CHECK(!results[i].defined() || !gradient_ops.has_nan(results[i]), "Function '", node.name(),
                   "' returned nan values in its ", i, "th output.");
      return results;
    } catch (...) {
      print_stack(node);
      throw;
    }
  }

  static Gradients apply_profiled(Node& node, Gradients grads) {
    ProfilerScope scope(ProfilerEvent::Kind::Node, profiled_name(node));
    describe(scope, node);
    if (scope.wants_shapes())
      for (size_t i = 0; i < grads.size(); ++i) scope.event()->inputs.push_back(profiled_operand(grads[i]));
    return anomaly_state.enabled ? apply_checked(node, std::move(grads)) : apply(node, std::move(grads));
  }

  static std::string profiled_name(const Node& node) {
    return (node.is_accumulate ? "torch::autograd::" : "") + node.name();
  }
  static void describe(const ProfilerScope& scope, const Node& node) {
    if (scope.event() && node.sequence() != Node::kLast)
      scope.event()->sequence = static_cast<int64_t>(node.sequence());
  }

  void distribute(Node& node, Gradients& results) {
    const auto edges = node.edges();
    for (size_t i = 0; i < edges.size(); ++i) {
      if (!edges[i]) continue;
      const uint32_t s = work_->find(edges[i].node.get());
      NodeState& state = (*work_)[s];
      if (!state.reaches) continue;
      if (i < results.size() && results[i].defined()) deliver(s, edges[i].input, std::move(results[i]));
      if (--state.pending == 0) work_->push_ready(s);
    }
  }

  std::span<const Edge> roots_, inputs_;
  const BackwardOptions& options_;
  std::unique_ptr<Workspace> work_;
  std::vector<Tensor> captured_;
  std::vector<std::function<void()>> callbacks_;
};

// Note [Reentrant backward]
// A hook, a custom function or a checkpoint may run backward inside backward. The inner pass runs on the
// caller's stack; deeper than this, it continues on the fresh stack of another thread, which the caller waits
// for. A hook that runs itself again and again ends in an error before the process has no thread left.
constexpr int kMaxDepth = 60;
constexpr int kMaxStacks = 100;

template <class F>
void on_fresh_stack(F&& f) {
  const int stacks = pass_state.stacks + 1;
  RL_CHECK(
      stacks <= kMaxStacks, "backward: ", kMaxDepth * kMaxStacks,
      " backward passes run one within the other, which a hook or a custom function that calls backward on "
      "its own graph does without end");
  std::exception_ptr error;
  const DispatchState state = dispatch_state;
  const SavedHooksState hooks = saved_hooks_state();
  std::thread([&] {
    dispatch_state = state;
    GradMode::set(state.grad_enabled);
    saved_hooks_state() = hooks;
    pass_state.stacks = stacks;
    try {
      f();
    } catch (...) {
      error = std::current_exception();
    }
  }).join();
  if (error) std::rethrow_exception(error);
}

}  // namespace

std::vector<Tensor> run_backward(std::span<const Edge> roots, std::vector<Tensor> seeds,
                                 std::span<const Edge> inputs, const BackwardOptions& options) {
  RL_ASSERT(roots.size() == seeds.size());
  auto execute = [&] { return Pass(roots, inputs, options).execute(std::move(seeds)); };
  if (pass_state.depth < kMaxDepth) return execute();
  std::vector<Tensor> result;
  on_fresh_stack([&] { result = execute(); });
  return result;
}

void queue_backward_callback(std::function<void()> callback) {
  RL_CHECK(pass_state.callbacks, "Final callbacks can only be installed during backward pass.");
  pass_state.callbacks->push_back(std::move(callback));
}

bool pass_executes(const Node& node) {
  RL_CHECK(pass_state.running, "_get_should_execute_nodes should only be called during the backward pass");
  return pass_state.running->executes(node);
}

bool pass_wants(const Node& node, const Edge& edge) {
  return pass_state.node != &node || pass_state.running->wants(edge);
}

bool is_gradient_watched(Node& node, uint32_t output) {
  if (pass_state.node == &node && pass_state.running->captures(node, output)) return true;
  const NodeHooks* hooks = node.hooks();
  if (!hooks) return false;
  std::lock_guard guard(node.lock);
  const auto is_of = [&](const auto& entry) { return entry.output == output; };
  return std::ranges::any_of(hooks->on_outputs, is_of) || std::ranges::any_of(hooks->retained, is_of);
}

bool pass_is_partial() { return pass_state.running && pass_state.running->is_partial(); }

bool pass_keeps_graph() { return !pass_state.running || pass_state.running->keeps_graph(); }

Node* current_node() { return pass_state.node; }
int64_t current_pass() { return pass_state.pass; }

namespace {

void sum_to_shape(Tensor& grad, const InputMeta& meta, const Node& who, size_t index) {
  const int64_t extra = grad.dim() - static_cast<int64_t>(meta.sizes.size());
  bool fits = extra >= 0;
  Dims dims;
  for (int64_t d = 0; d < grad.dim() && fits; ++d) {
    const int64_t want = d < extra ? 1 : meta.sizes[d - extra], have = grad->sizes[d];
    if (d < extra || (want == 1 && have != 1))
      dims.push_back(d);
    else
      fits = want == have;
  }
  RL_CHECK(fits, "Function ", who.name(), " returned an invalid gradient at index ", index, " - got ",
           grad.sizes(), " but expected shape compatible with ", meta.sizes);
  if (!dims.empty()) grad = gradient_ops.sum_dims(grad, dims);
  if (extra > 0) grad = gradient_ops.reshape(grad, meta.sizes);
}

}  // namespace

void fit_gradient(Tensor& grad, const Edge& to, const Node& who, size_t index) {
  const InputMeta& meta = to.node->outputs()[to.input];
  if (grad.sizes() != IntList(meta.sizes)) sum_to_shape(grad, meta, who, index);
  if (grad.dtype() != meta.dtype && !to.node->any_dtype) {
    if (is_complex(grad.dtype()) && !is_complex(meta.dtype)) grad = gradient_ops.real(grad);
    if (grad.dtype() != meta.dtype) grad = gradient_ops.cast(grad, meta.dtype);
  }
  RL_CHECK(grad.device().type() == meta.device.type(), "Function ", who.name(),
           " returned an invalid gradient at index ", index, " - expected device ", meta.device, " but got ",
           grad.device());
}

namespace {

std::vector<Tensor> make_seeds(std::span<const Tensor> outputs, std::span<const Tensor> seeds) {
  RL_CHECK(seeds.empty() || seeds.size() == outputs.size(), "got ", outputs.size(), " tensors and ",
           seeds.size(), " gradients");
  std::vector<Tensor> result(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& output = outputs[i];
    if (!seeds.empty() && seeds[i].defined()) {
      RL_CHECK(seeds[i].sizes() == output.sizes(), "Mismatch in shape: grad_output[", i, "] has a shape of ",
               seeds[i].sizes(), " and output[", i, "] has a shape of ", output.sizes(), ".");
      result[i] = seeds[i];
    } else if (requires_grad(output)) {
      RL_CHECK(output.numel() == 1, "grad can be implicitly created only for scalar outputs");
      RL_CHECK(is_floating(output.dtype()),
               "grad can be implicitly created only for real scalar outputs but got ",
               dtype_name(output.dtype()));
      result[i] = gradient_ops.ones_like(detach(output));
    }
  }
  return result;
}

std::vector<Edge> edges_of(std::span<const Tensor> outputs) {
  std::vector<Edge> edges;
  for (size_t i = 0; i < outputs.size(); ++i) {
    Edge edge = gradient_edge(outputs[i]);
    RL_CHECK(edge, "element ", i, " of tensors does not require grad and does not have a grad_fn");
    edges.push_back(std::move(edge));
  }
  return edges;
}

}  // namespace

void backward(std::span<const Tensor> outputs, std::span<const Tensor> seeds, BackwardOptions options) {
  options.keep_graph |= options.create_graph;
  const std::vector<Edge> roots = edges_of(outputs);
  run_backward(roots, make_seeds(outputs, seeds), {}, options);
}

std::vector<Tensor> grad(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                         std::span<const Tensor> seeds, bool allow_unused, BackwardOptions options) {
  options.accumulate = false;
  options.keep_graph |= options.create_graph;
  std::vector<Edge> targets;
  for (const Tensor& t : inputs) {
    RL_CHECK(requires_grad(t), "One of the differentiated Tensors does not require grad");
    targets.push_back(gradient_edge(t));
  }
  const std::vector<Edge> roots = edges_of(outputs);
  std::vector<Tensor> result = run_backward(roots, make_seeds(outputs, seeds), targets, options);
  for (size_t i = 0; i < result.size(); ++i)
    RL_CHECK(allow_unused || result[i].defined(), "The differentiated Tensor at index ", i,
             " appears to not have been used "
             "in the graph. Set allow_unused=True if this is the desired behavior.");
  return result;
}

}  // namespace rushlight
