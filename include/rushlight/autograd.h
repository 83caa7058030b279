// Gradients: backward and grad, functions with derivatives of one's own, modes.
#pragma once
#include <any>
#include <unordered_map>
#include <unordered_set>

#include "dispatch/state.h"
#include "rushlight/ivalue.h"
#include "rushlight/tensor.h"

namespace rushlight {

// Scopes in which nothing is recorded, or (true) all is.
class AutoGradMode {
 public:
  explicit AutoGradMode(bool enabled) : mode_(enabled) {}

 private:
  GradMode mode_;
};
class NoGradGuard : public AutoGradMode {
 public:
  NoGradGuard() : AutoGradMode(false) {}
};
// Tensors made inside can never be part of a graph, and cost less.
class InferenceMode {
 public:
  explicit InferenceMode(bool enabled = true) : previous_(dispatch_state.inference) {
    set_inference_mode(enabled);
  }
  ~InferenceMode() { set_inference_mode(previous_); }
  InferenceMode(const InferenceMode&) = delete;
  static bool is_enabled() { return dispatch_state.inference; }

 private:
  bool previous_;
};

namespace autograd {

using Variable = Tensor;
using variable_list = std::vector<Tensor>;
using rushlight::AutoGradMode;
using rushlight::GradMode;
using rushlight::InferenceMode;

// A leaf on the same memory.
inline Variable make_variable(const Tensor& data, bool requires_grad = false) {
  Variable leaf = data.data();
  leaf.set_requires_grad(requires_grad);
  return leaf;
}

struct Edge {
  std::shared_ptr<Node> function;
  uint32_t input_nr = 0;
  bool is_valid() const { return function != nullptr; }
};

// A node of the graph, to look at.
class Node {
 public:
  explicit Node(std::shared_ptr<void> node) : node_(std::move(node)) {}
  std::string name() const;
  std::vector<Edge> next_edges() const;
  size_t num_inputs() const;
  size_t num_outputs() const { return next_edges().size(); }
  uint64_t sequence_nr() const;

 private:
  std::shared_ptr<void> node_;
};

// Adds the gradients of `tensors` to the leaves, or to `inputs`.
void backward(TensorList tensors, TensorList grad_tensors = {},
              std::optional<bool> retain_graph = std::nullopt, bool create_graph = false,
              TensorList inputs = {});
variable_list grad(TensorList outputs, TensorList inputs, TensorList grad_outputs = {},
                   std::optional<bool> retain_graph = std::nullopt, bool create_graph = false,
                   bool allow_unused = false);

class CustomNode;

// What forward leaves for backward.
class AutogradContext {
 public:
  AutogradContext() = default;
  AutogradContext(const AutogradContext&) = delete;

  // Plain values; tensors go through save_for_backward, which notices later writes to them.
  std::unordered_map<std::string, IValue> saved_data;
  void save_for_backward(variable_list tensors) { to_save_ = std::move(tensors); }
  variable_list get_saved_variables() const;
  void mark_dirty(const variable_list& inputs);
  void mark_non_differentiable(const variable_list& outputs);
  // Whether undefined gradients arrive as zeros (they do by default).
  void set_materialize_grads(bool value) { materialize_ = value; }
  bool needs_input_grad(size_t output_edge) const;

 private:
  friend class CustomNode;
  friend struct FunctionAccess;
  variable_list to_save_;
  std::unordered_set<const TensorImpl*> dirty_, constant_;
  bool materialize_ = true;
  CustomNode* node_ = nullptr;
};

// The part of Function that knows no types.
struct FunctionAccess {
  using Backward = std::function<variable_list(AutogradContext&, variable_list)>;
  // Arguments in order: a tensor, or nothing where another type was given.
  static void record(const char* mangled, std::shared_ptr<AutogradContext> context,
                     const std::vector<std::optional<Tensor>>& arguments, variable_list& outputs,
                     Backward backward);
};

// struct Square : torch::autograd::Function<Square> {
//   static Tensor forward(AutogradContext* ctx, Tensor x) { ctx->save_for_backward({x}); return x * x; }
//   static variable_list backward(AutogradContext* ctx, variable_list grads) { ... }
// };
// Tensor y = Square::apply(x);
// backward gives one gradient for each argument of forward, undefined for what is no tensor; a TensorList
// stands for as many arguments as it has tensors.
template <class T>
struct Function {
  template <class X = T, class... Args>
  static auto apply(Args&&... args) {
    using Result = decltype(X::forward(static_cast<AutogradContext*>(nullptr), args...));
    auto context = std::make_shared<AutogradContext>();
    std::vector<std::optional<Tensor>> arguments;
    (add_argument(arguments, args), ...);
    std::optional<Result> result;
    {
      NoGradGuard no_grad;
      result.emplace(X::forward(context.get(), std::forward<Args>(args)...));
    }
    variable_list outputs = flatten(*result);
    FunctionAccess::record(typeid(T).name(), context, arguments, outputs,
                           [](AutogradContext& ctx, variable_list grads) {
                             return flatten(X::backward(&ctx, std::move(grads)));
                           });
    return rebuild(std::move(*result), outputs);
  }

 private:
  template <class A>
  static void add_argument(std::vector<std::optional<Tensor>>& to, const A& a) {
    if constexpr (std::is_same_v<A, Tensor> || std::is_same_v<A, std::optional<Tensor>>)
      to.push_back(a);
    else if constexpr (std::is_same_v<A, TensorList> || std::is_same_v<A, ArrayRef<Tensor>>)
      to.insert(to.end(), a.begin(), a.end());
    else
      to.push_back(std::nullopt);
  }
  static variable_list flatten(const Tensor& t) { return {t}; }
  static variable_list flatten(const variable_list& l) { return l; }
  template <class... R>
  static variable_list flatten(const std::tuple<R...>& t) {
    return std::apply([](const R&... r) { return variable_list{r...}; }, t);
  }
  static Tensor rebuild(Tensor&&, variable_list& outputs) { return outputs[0]; }
  static variable_list rebuild(variable_list&&, variable_list& outputs) { return outputs; }
  template <class... R>
  static std::tuple<R...> rebuild(std::tuple<R...>&& t, variable_list& outputs) {
    size_t i = 0;
    std::apply([&](R&... r) { ((r = outputs[i++]), ...); }, t);
    return std::move(t);
  }
};

// Looks for gradients that are NaN while it lives.
class DetectAnomalyGuard {
 public:
  explicit DetectAnomalyGuard(bool check_nan = true);
  ~DetectAnomalyGuard();
  DetectAnomalyGuard(const DetectAnomalyGuard&) = delete;

 private:
  bool enabled_, check_nan_;
};

}  // namespace autograd
}  // namespace rushlight
