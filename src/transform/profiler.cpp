#include "transform/profiler.h"

#include <string>
#include <vector>

#include "autograd/node.h"
#include "dispatch/profiler.h"

namespace rushlight {

CallObserver* (*call_observer)() = []() -> CallObserver* { return nullptr; };

namespace {

std::vector<ProfiledOperand> describe_inputs(const Frame& frame) {
  std::vector<ProfiledOperand> inputs;
  for (int i = 0; i < frame.arg_count(); ++i) inputs.push_back(profiled_operand(frame.args[i]));
  return inputs;
}

std::vector<ProfiledOperand> describe_results(const Results& results) {
  std::vector<ProfiledOperand> outputs;
  for (int i = 0; i < results.count; ++i) outputs.push_back(profiled_operand(results.tensors[i]));
  if (!results.list.empty()) outputs.push_back(profiled_operand(results.list));
  return outputs;
}

// "aten::add_": PyTorch's names, by which programs look events up. They live as long as the process.
std::string_view name_of(const Frame& frame) {
  const Op& op = frame.op;
  static std::mutex mutex;
  static std::deque<std::array<std::string, 2>> names;
  const std::lock_guard guard(mutex);
  while (names.size() <= op.id) names.emplace_back();
  std::string& name = names[op.id][frame.inplace];
  if (name.empty()) {
    const std::string_view space = op.schema.space;
    const bool own_space = op.made_in_python != nullptr;
    name = own_space ? str(space, "::") : "aten::";
    if (!own_space && !space.empty() && space != "nn" && !op.name().starts_with('_')) name += str(space, "_");
    name += op.name();
    if (frame.inplace) name += '_';
  }
  return name;
}

class Observed {
 public:
  Observed() : observer_(call_observer()) {
    if (observer_) observer_->enter();
  }
  ~Observed() {
    if (observer_) observer_->leave();
  }
  Observed(const Observed&) = delete;
  void ran(const Frame& frame) const {
    if (observer_) observer_->ran(frame);
  }

 private:
  CallObserver* observer_;
};

void record_event(Frame& frame) {
  const Observed observed;
  ProfilerScope scope = ProfilerScope::lasting(ProfilerEvent::Kind::Operator, name_of(frame));
  if (scope.event()) {
    scope.event()->op = &frame.op;
    const bool recorded = dispatch_state.consider & kAutograd;
    scope.event()->sequence = recorded ? static_cast<int64_t>(Node::next_sequence()) : -1;
    if (scope.wants_shapes()) scope.event()->inputs = describe_inputs(frame);
  }
  frame.proceed();
  if (scope.wants_shapes()) scope.event()->outputs = describe_results(frame.results);
  scope.close();
  observed.ran(frame);
}

}  // namespace

void install_profiler() { set_interceptor(static_cast<TensorFlag>(kProfiled), record_event); }

}  // namespace rushlight
