// The C++ interface of the engine: backward, grad, hooks, functions with derivatives of one's own.
#include "rushlight/autograd.h"

#include <atomic>
#include <mutex>

#include "autograd/engine.h"
#include "autograd/gradient_ops.h"
#include "autograd/meta.h"
#include "autograd/saved.h"

namespace rushlight {

namespace {

std::span<const Tensor> span_of(TensorList list) { return {list.data(), list.size()}; }

// Hooks by number, so that they can be removed; a hook strikes itself off when its graph goes.
class NumberedHook final : public TensorHook {
 public:
  explicit NumberedHook(std::function<Tensor(const Tensor&)> f) : function_(std::move(f)) {
    std::lock_guard guard(mutex());
    number = next()++;
    living().emplace(number, this);
  }
  ~NumberedHook() override {
    std::lock_guard guard(mutex());
    living().erase(number);
  }
  Tensor call(const Tensor& grad) override { return removed_ ? Tensor() : function_(grad); }
  static void remove(unsigned number) {
    std::lock_guard guard(mutex());
    const auto found = living().find(number);
    if (found != living().end()) found->second->removed_ = true;
  }
  unsigned number;

 private:
  static std::mutex& mutex() {
    static auto* m = new std::mutex;
    return *m;
  }
  static std::unordered_map<unsigned, NumberedHook*>& living() {
    static auto* map = new std::unordered_map<unsigned, NumberedHook*>;
    return *map;
  }
  static unsigned& next() {
    static unsigned n = 0;
    return n;
  }
  std::function<Tensor(const Tensor&)> function_;
  std::atomic<bool> removed_{false};
};

}  // namespace

unsigned Tensor::add_hook(std::function<Tensor(const Tensor&)> hook) const {
  Ref<NumberedHook> numbered = Ref<NumberedHook>::adopt(new NumberedHook(std::move(hook)));
  const unsigned number = numbered->number;
  register_tensor_hook(*this, numbered);
  return number;
}
void Tensor::remove_hook(unsigned position) const { NumberedHook::remove(position); }

std::shared_ptr<autograd::Node> Tensor::grad_fn() const {
  Ref<Node> node = rushlight::grad_fn(*this);
  if (!node) return nullptr;
  return std::make_shared<autograd::Node>(std::shared_ptr<void>(
      node.detach(), [](void* p) { Ref<rushlight::Node>::adopt(static_cast<rushlight::Node*>(p)).reset(); }));
}

namespace autograd {

namespace {

std::shared_ptr<Node> shown(Ref<rushlight::Node> node) {
  if (!node) return nullptr;
  return std::make_shared<Node>(std::shared_ptr<void>(
      node.detach(), [](void* p) { Ref<rushlight::Node>::adopt(static_cast<rushlight::Node*>(p)).reset(); }));
}
rushlight::Node& inner(const std::shared_ptr<void>& p) { return *static_cast<rushlight::Node*>(p.get()); }

}  // namespace

std::string Node::name() const { return inner(node_).name(); }
size_t Node::num_inputs() const { return inner(node_).outputs().size(); }
uint64_t Node::sequence_nr() const { return inner(node_).sequence(); }
std::vector<Edge> Node::next_edges() const {
  std::vector<Edge> list;
  for (const rushlight::Edge& e : inner(node_).edges()) list.push_back({shown(e.node), e.input});
  return list;
}

void backward(TensorList tensors, TensorList grad_tensors, std::optional<bool> retain_graph,
              bool create_graph, TensorList inputs) {
  const BackwardOptions options{.keep_graph = retain_graph.value_or(create_graph),
                                .create_graph = create_graph};
  if (inputs.empty()) return rushlight::backward(span_of(tensors), span_of(grad_tensors), options);
  // Gradients of the chosen leaves alone, added to what they have.
  const auto grads =
      rushlight::grad(span_of(tensors), span_of(inputs), span_of(grad_tensors), true,
                      {.keep_graph = options.keep_graph, .create_graph = create_graph, .accumulate = false});
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i].defined()) continue;
    Tensor& kept = inputs[i].mutable_grad();
    kept = kept.defined() ? kept + grads[i] : grads[i];
  }
}

variable_list grad(TensorList outputs, TensorList inputs, TensorList grad_outputs,
                   std::optional<bool> retain_graph, bool create_graph, bool allow_unused) {
  RL_CHECK(!inputs.empty(), "grad requires non-empty inputs.");
  return rushlight::grad(
      span_of(outputs), span_of(inputs), span_of(grad_outputs), allow_unused,
      {.keep_graph = retain_graph.value_or(create_graph), .create_graph = create_graph, .accumulate = false});
}

// The node of a Function.
class CustomNode final : public PlainNode {
 public:
  CustomNode(const char* mangled, std::shared_ptr<AutogradContext> context, FunctionAccess::Backward backward)
      : mangled_(mangled), context_(std::move(context)), backward_(std::move(backward)) {
    context_->node_ = this;
  }
  ~CustomNode() override { context_->node_ = nullptr; }
  std::string name() const override { return "torch::autograd::CppNode<" + demangle(mangled_) + ">"; }
  Gradients apply(Gradients grads) override {
    variable_list list(grads.size());
    for (size_t i = 0; i < grads.size(); ++i) {
      list[i] = std::move(grads[i]);
      const InputMeta& meta = outputs()[i];
      if (!list[i].defined() && context_->materialize_ && meta.described)
        list[i] = gradient_ops.zeros(meta.sizes, meta.dtype, meta.device);
    }
    return in_order(backward_(*context_, std::move(list)));
  }
  void release_saved() override {
    std::vector<SavedVariable> dead;
    std::lock_guard guard(lock);
    released_ = released_ || !saved_.empty();
    dead.swap(saved_);
  }
  void each_saved(const std::function<void(const SavedVariable&)>& f) const override {
    for (const SavedVariable& s : saved_) f(s);
  }
  void save(const variable_list& tensors) {
    for (const Tensor& t : tensors) {
      const bool own = t.defined() && t->autograd && t->autograd->grad_fn.get() == this;
      saved_.emplace_back(t, own);
    }
  }
  variable_list saved() {
    if (released_) fail_released();
    variable_list list;
    for (const SavedVariable& s : saved_) list.push_back(s.defined() ? s.unpack(*this) : Tensor());
    return list;
  }
  std::vector<bool> is_tensor;  // per argument of forward

 private:
  Gradients in_order(variable_list given) const {
    size_t n = given.size();
    while (n > is_tensor.size() && !given[n - 1].defined()) --n;
    RL_CHECK(n == is_tensor.size(), "function ", name(),
             " returned an incorrect number of gradients (expected ", is_tensor.size(), ", got ",
             given.size(), ")");
    Gradients result(edges().size());
    for (size_t i = 0, edge = 0; i < n; ++i) {
      if (is_tensor[i])
        result[edge++] = std::move(given[i]);
      else
        RL_CHECK(!given[i].defined(), "function ", name(), ": backward returned a gradient at position ",
                 i + 1, ", but that argument of forward is no tensor");
    }
    return result;
  }
  const char* mangled_;
  std::shared_ptr<AutogradContext> context_;
  FunctionAccess::Backward backward_;
  std::vector<SavedVariable> saved_;
  bool released_ = false;
};

variable_list AutogradContext::get_saved_variables() const { return node_ ? node_->saved() : to_save_; }
void AutogradContext::mark_dirty(const variable_list& inputs) {
  for (const Tensor& t : inputs) dirty_.insert(t.impl());
}
void AutogradContext::mark_non_differentiable(const variable_list& outputs) {
  for (const Tensor& t : outputs) constant_.insert(t.impl());
}
bool AutogradContext::needs_input_grad(size_t i) const {
  return node_ && i < node_->edges().size() && node_->edges()[i];
}

void FunctionAccess::record(const char* mangled, std::shared_ptr<AutogradContext> context,
                            const std::vector<std::optional<Tensor>>& arguments, variable_list& outputs,
                            Backward backward) {
  std::unordered_set<const TensorImpl*> inputs;
  bool recorded = false;
  for (const auto& a : arguments)
    if (a && a->defined()) {
      inputs.insert(a->impl());
      recorded = recorded || rushlight::requires_grad(*a);
    }
  recorded = recorded && GradMode::enabled() && !dispatch_state.inference;
  const auto dirty = context->dirty_, constant = context->constant_;
  Ref<CustomNode> node;
  if (recorded) {
    node = Ref<CustomNode>::adopt(new CustomNode(mangled, context, std::move(backward)));
    for (const auto& a : arguments) {
      node->is_tensor.push_back(a.has_value());
      if (a) node->add_edge(a->defined() ? gradient_edge(*a) : rushlight::Edge());
    }
    for (const Tensor& t : outputs)
      t.defined() ? node->add_output(t) : node->add_output(InputMeta{{}, DType::Float32, {}, false});
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    Tensor& t = outputs[i];
    if (!t.defined()) continue;
    const bool is_input = inputs.count(t.impl()), modified = dirty.count(t.impl());
    const bool differentiable = recorded && is_differentiable(t.dtype()) && !constant.count(t.impl());
    if (modified && is_input) {
      check_inplace(t, recorded);
      t.bump_version();
      if (differentiable) rebase_history(t, node, static_cast<uint32_t>(i));
      continue;
    }
    // An input that comes back unchanged has two histories, hence two tensors.
    if (is_input) t = detach(t);
    if (differentiable) set_history(t, node, static_cast<uint32_t>(i));
  }
  if (recorded) {
    node->save(context->to_save_);
    context->to_save_.clear();
  }
}

DetectAnomalyGuard::DetectAnomalyGuard(bool check_nan)
    : enabled_(anomaly_state.enabled), check_nan_(anomaly_state.check_nan) {
  anomaly_state.enabled = true;
  anomaly_state.check_nan = check_nan;
}
DetectAnomalyGuard::~DetectAnomalyGuard() {
  anomaly_state.enabled = enabled_;
  anomaly_state.check_nan = check_nan_;
}

}  // namespace autograd
}  // namespace rushlight
