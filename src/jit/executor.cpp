#include "jit/executor.h"

#include <algorithm>
#include <deque>

#include "core/constant_memory.h"
#include "core/lazy_clone.h"
#include "jit/passes.h"
#include "jit/step.h"
#include "ops/copy.h"

namespace rushlight::jit {
namespace {

constexpr size_t kMaxPlans = 16;   // programs whose sizes ever change must not grow without end
constexpr size_t kMaxFrames = 16;  // kept for later runs

void check_type(const Tensor& t, const Type& type, std::string_view what) {
  RL_CHECK_VALUE(t.defined() && t.dtype() == type.dtype, what, " must have the dtype ", type.dtype,
                 ", but got ", t.defined() ? describe(t) : std::string("None"));
}

bool is_size(const Size& size, int64_t n) { return !size.known || (size.symbol < 0 && size.offset == n); }

Graph prepared(Graph graph, const ExecutorOptions& options) {
  if (options.mapped_constants) {
    fuse_convolutions(graph);
    fuse_quantized_sums(graph);
    leave_out_positions(graph);
  }
  return graph;
}

}  // namespace

Executor::Executor(Graph graph, Constants constants, ExecutorOptions options)
    : graph_(prepared(std::move(graph), options)), constants_(std::move(constants)), options_(options) {
  compile();
  for (const auto& [name, tensor] : constants_)
    if (options_.mapped_constants && tensor.nbytes() && tensor->storage->read_only() &&
        !is_lazy_clone(*tensor->storage))
      pinned_.push_back(tensor);
  for (const Tensor& t : pinned_) ConstantMemory::add(t.data_ptr(), t.nbytes(), options_.constants_in_file);
}

Executor::~Executor() {
  for (const Tensor& t : pinned_) ConstantMemory::remove(t.data_ptr());
}

// --- preparation

void Executor::compile() {
  states_ = graph_.states();
  std::vector<uint32_t> last(graph_.values.size(), 0);  // 1 + the step that uses a value last
  for (uint32_t i = 0; i < graph_.nodes.size(); ++i) {
    const Node& node = graph_.nodes[i];
    for (const Argument& a : node.arguments) each_use(a, [&](const Use& use) { last[use.id] = i + 1; });
    for (const ValueId id : node.results)
      if (id != kNoValue) last[id] = i + 1;
  }
  for (const Output& out : graph_.outputs) last[out.value] = UINT32_MAX;
  steps_.resize(graph_.nodes.size());
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Node& node = graph_.nodes[i];
    Step& step = steps_[i];
    step.node = &node;
    step.prepare(graph_);
    if (node.is_state()) add_state(node);
    if (!node.is_constant()) continue;
    const auto found = constants_.find(node.constant);
    RL_CHECK_VALUE(found != constants_.end() && found->second.defined(), "there is no constant '",
                   node.constant, "', which the graph reads");
    if (node.results.empty() || node.results[0] == kNoValue) continue;
    const Type& type = graph_.values[node.results[0]].type;
    if (!type.has_sizes) continue;
    check_type(found->second, type, str("the constant '", node.constant, "'"));
    RL_CHECK_VALUE(std::ranges::equal(type.sizes, found->second.sizes(), is_size), "the constant '",
                   node.constant, "' must be ", graph_.type_text(type), ", but is ", describe(found->second));
  }
  for (const Node& node : graph_.nodes)  // constants stay
    if (node.is_constant() && !node.results.empty() && node.results[0] != kNoValue) last[node.results[0]] = 0;
  for (ValueId id = 0; id < last.size(); ++id)
    if (last[id] != 0 && last[id] != UINT32_MAX) steps_[last[id] - 1].dying.push_back(id);
  for (Step& step : steps_) step.find_reuse(graph_);
  slices_ = find_slices(graph_);
  fixed_ = std::ranges::all_of(graph_.inputs, [&](ValueId id) {
    const Type& type = graph_.values[id].type;
    return type.has_sizes && std::ranges::all_of(type.sizes, &Size::is_number);
  });
  held_ = graph_.inputs;
  for (const Output& out : graph_.outputs) held_.push_back(out.value);
  for (const Node& node : graph_.nodes)
    if (node.is_constant() && !node.results.empty()) std::erase(held_, node.results[0]);
  for (const StateUse& use : state_uses_) held_.push_back(use.value);
}

void Executor::add_state(const Node& node) {
  if (node.results.empty() || node.results[0] == kNoValue) return;
  const Type& type = graph_.values[node.results[0]].type;
  RL_CHECK_VALUE(type.has_sizes && std::ranges::all_of(type.sizes, &Size::is_number), "the state '",
                 node.constant, "' must have sizes that are numbers");
  const auto at = std::ranges::find(states_, node.constant) - states_.begin();
  state_uses_.push_back({static_cast<size_t>(at), node.results[0]});
}

// --- inputs

std::string Executor::expected_inputs() const {
  std::string text;
  for (const ValueId id : graph_.inputs) {
    const ValueInfo& v = graph_.values[id];
    text += str(text.empty() ? "" : "\n", "  ", v.name, ": ", graph_.type_text(v.type));
  }
  for (const Symbol& s : graph_.symbols)
    text += str("\n  where ", s.name, " is from ", s.lower, " to ",
                s.upper == INT64_MAX ? std::string("any number") : str(s.upper));
  return text;
}

void Executor::refuse_input(const std::string& what) const {
  RL_FAIL_AS(Value, what, ". The model expects\n", expected_inputs());
}

// Fails unless the inputs are of the graph's types. Gives all sizes in one list, by which plans are found.
Executor::Sizes Executor::check_inputs(std::span<const Tensor> inputs) const {
  if (inputs.size() != graph_.inputs.size())
    refuse_input(str("expected ", graph_.inputs.size(), " inputs, but got ", inputs.size()));
  Sizes sizes;
  std::vector<int64_t> symbols(graph_.symbols.size(), -1);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ValueInfo& v = graph_.values[graph_.inputs[i]];
    const Tensor& t = inputs[i];
    if (!t.defined()) refuse_input(str("the input '", v.name, "' is missing"));
    auto refuse = [&](const std::string& why) {
      refuse_input(str("the input '", v.name, "' is ", describe(t), ": ", why));
    };
    if (t.dtype() != v.type.dtype) refuse(str("its dtype must be ", v.type.dtype));
    if (v.type.has_sizes && v.type.sizes.size() != t.sizes().size())
      refuse(str("it must have ", v.type.sizes.size(), " dimensions"));
    for (size_t d = 0; d < t.sizes().size(); ++d) {
      const int64_t n = t.sizes()[d];
      if (!fixed_) sizes.push_back(n);
      if (!v.type.has_sizes || !v.type.sizes[d].known) continue;
      const Size& expected = v.type.sizes[d];
      if (expected.symbol < 0) {
        if (n != expected.offset) refuse(str("its size ", d, " must be ", expected.offset));
        continue;
      }
      const Symbol& symbol = graph_.symbols[static_cast<size_t>(expected.symbol)];
      int64_t& known = symbols[static_cast<size_t>(expected.symbol)];
      const int64_t rest = n - expected.offset;  // both are at least zero, or the offset is small
      const int64_t value = rest / expected.factor;
      if (rest < 0 || rest % expected.factor || value < symbol.lower || value > symbol.upper)
        refuse(str("its size ", d, " must be ", graph_.size_text(expected)));
      if (known >= 0 && known != value)
        refuse(str("its size ", d, " must be ", graph_.size_text(expected), ", where ", symbol.name, " is ",
                   known, " elsewhere"));
      known = value;
    }
    if (!fixed_) sizes.push_back(-1);
  }
  return sizes;
}

void Executor::check_state(std::span<const Tensor> state, bool any_rows) const {
  RL_CHECK_VALUE(state.size() == states_.size(), "the graph has ", states_.size(),
                 " tensors of state, but got ", state.size(), ": run it in a session");
  for (const StateUse& use : state_uses_) {
    const Type& type = graph_.values[use.value].type;
    const Tensor& t = state[use.index];
    check_type(t, type, str("the state '", states_[use.index], "'"));
    const bool fits =
        std::ranges::equal(type.sizes, t.sizes(), [&, first = any_rows](const Size& size, int64_t n) mutable {
          return std::exchange(first, false) || is_size(size, n);
        });
    RL_CHECK_VALUE(fits, "the state '", states_[use.index], "' must be ", graph_.type_text(type), ", but is ",
                   describe(t));
  }
}

// --- runs

std::vector<Tensor> Executor::run(std::vector<Tensor> inputs, std::span<const Tensor> state, bool any_rows) {
  Sizes sizes = check_inputs(inputs);
  check_state(state, any_rows);
  const GradMode no_grad(false);
  std::shared_ptr<const MemoryPlan> plan;
  std::unique_ptr<Frame> frame = take_frame(sizes, plan);
  if (plan && plan->slots.empty()) {  // all that such a run asks for is small
    frame->ran_planned = true;
    execute(*frame, inputs, state);
  } else if (plan) {
    const UseStorageSource planned(frame->planned(*plan));
    execute(*frame, inputs, state);
  } else if (options_.plan_memory) {
    MemoryRecorder recorder;
    {
      const UseStorageSource recorded(&recorder);
      execute(*frame, inputs, state);
    }
    add_plan(std::move(sizes), std::make_shared<const MemoryPlan>(plan_memory(recorder.finish())));
  } else {
    execute(*frame, inputs, state);
  }
  std::vector<Tensor> outputs;
  outputs.reserve(graph_.outputs.size());
  for (const Output& out : graph_.outputs) outputs.push_back(output_of(*frame, out.value, state));
  give_frame(std::move(frame));
  return outputs;
}

Tensor Executor::output_of(const Frame& frame, ValueId id, std::span<const Tensor> state) const {
  const Tensor& value = frame.tensors[id];
  RL_CHECK(value.defined(), "the output ", graph_.values[id].name, " was not computed");
  const bool shared =
      std::ranges::any_of(state, [&](const Tensor& s) { return value->storage == s->storage; });
  return shared ? ops::clone(value, std::nullopt) : value;  // later runs write to the state
}

void Executor::execute(Frame& frame, std::vector<Tensor>& inputs, std::span<const Tensor> state) {
  for (size_t i = 0; i < inputs.size(); ++i) frame.tensors[graph_.inputs[i]] = std::move(inputs[i]);
  for (const StateUse& use : state_uses_) frame.tensors[use.value] = state[use.index];
  size_t next = 0;
  for (const Slices& slices : slices_) {
    for (; next < slices.begin; ++next) steps_[next].run(frame);
    slices.run(steps_, frame);
    next = slices.end;
  }
  for (; next < steps_.size(); ++next) steps_[next].run(frame);
}

// --- frames and plans

// A frame for a run, and the plan of its sizes if there is one.
std::unique_ptr<Frame> Executor::take_frame(const Sizes& sizes, std::shared_ptr<const MemoryPlan>& plan) {
  {
    std::lock_guard lock(mutex_);
    if (options_.plan_memory) plan = find_plan(sizes);
    if (!idle_.empty()) {
      std::unique_ptr<Frame> frame = std::move(idle_.back());
      idle_.pop_back();
      return frame;
    }
  }
  auto frame = std::make_unique<Frame>();
  frame->tensors.resize(graph_.values.size());
  frame->numbers.resize(graph_.values.size());
  for (const Node& node : graph_.nodes)
    if (node.is_constant() && !node.results.empty() && node.results[0] != kNoValue)
      frame->tensors[node.results[0]] = constants_.at(node.constant);
  return frame;
}

// A frame that an error left is dropped with all it holds.
void Executor::give_frame(std::unique_ptr<Frame> frame) {
  for (const ValueId id : held_) frame->tensors[id].reset();
  std::lock_guard lock(mutex_);
  ++statistics_.runs;
  statistics_.planned_runs += std::exchange(frame->ran_planned, false);
  statistics_.reused_operands += std::exchange(frame->reused, 0);
  if (idle_.size() < kMaxFrames) idle_.push_back(std::move(frame));
}

// Under the lock.
std::shared_ptr<const MemoryPlan> Executor::find_plan(const Sizes& sizes) {
  const auto found = std::ranges::find(plans_, sizes, &Planned::sizes);
  if (found == plans_.end()) return nullptr;
  plans_.splice(plans_.begin(), plans_, found);
  return found->plan;
}

void Executor::add_plan(Sizes sizes, std::shared_ptr<const MemoryPlan> plan) {
  std::lock_guard lock(mutex_);
  statistics_.arena_bytes = std::max(statistics_.arena_bytes, plan->arena_bytes);
  plans_.push_front({std::move(sizes), std::move(plan)});
  if (plans_.size() > kMaxPlans) plans_.pop_back();
}

ExecutorStatistics Executor::statistics() const {
  std::lock_guard lock(mutex_);
  return statistics_;
}

}  // namespace rushlight::jit
