#include "ops/device_multi_tensor.h"

#include <algorithm>
#include <utility>

#include "cpu/reduce.h"
#include "dispatch/profiler.h"
#include "dispatch/state.h"
#include "ops/device_loops.h"

namespace rushlight::loops {

thread_local MultiTensorLaunch* MultiTensorLaunch::current_ = nullptr;

namespace {

using Inputs = std::span<const Tensor* const>;

// So that finding what touches what stays cheap.
constexpr size_t kMostWaiting = 128;

// Whether calls on these tensors come down to loops of this thread, with nothing in between that may look.
bool are_plain(TensorList list) {
  constexpr uint32_t kSeenByOthers = kPythonDispatch | kWrapped | kForwardGrad | kSpecialElements;
  return (dispatch_state.always & ~kProfiled) == 0 &&
         std::all_of(list.begin(), list.end(), [](const Tensor& t) {
           return t.defined() && !t.is_cpu() && !t.device().is_meta() && !(t->flags & kSeenByOthers);
         });
}

void launch_formulas(const std::vector<FormulaCall>& calls) {
  const auto launch_all = kernels_on(calls[0].out).formulas;
  if (calls.size() > 1 && launch_all && launch_all(calls)) return;
  for (const FormulaCall& call : calls)
    call.with_inputs(
        [&](Inputs inputs) { formula(call.formula, call.compute, call.out, inputs, call.parameters()); });
}

void launch_reductions(const std::vector<ReduceCall>& calls) {
  const auto launch_all = kernels_on(calls[0].out).reductions;
  if (calls.size() > 1 && launch_all && launch_all(calls)) return;
  for (const ReduceCall& call : calls) {
    const uint64_t all = (uint64_t{1} << call.in.dim()) - 1;
    loops::reduce(call.op, call.in, all, call.out, {.divisor = call.divisor}, call.who);
  }
}

}  // namespace

MultiTensorLaunch::MultiTensorLaunch(TensorList list)
    : outer_(std::exchange(current_, are_plain(list) ? this : nullptr)) {}

MultiTensorLaunch::~MultiTensorLaunch() {
  current_ = outer_;
  try {
    launch();
  } catch (...) {
  }
}

void MultiTensorLaunch::launch() {
  read_.clear(), written_.clear();
  const auto formulas = std::exchange(formulas_, {});
  const auto reductions = std::exchange(reductions_, {});
  MultiTensorLaunch* const waiting = std::exchange(current_, nullptr);  // these calls must not wait again
  try {
    if (!formulas.empty()) launch_formulas(formulas);
    if (!reductions.empty()) launch_reductions(reductions);
  } catch (...) {
    current_ = waiting;
    throw;
  }
  current_ = waiting;
}

bool MultiTensorLaunch::hold(Formula f, DType compute, const Tensor& out, Inputs inputs,
                             std::span<const Scalar> parameters) {
  if (!current_) return false;
  MultiTensorLaunch& t = *current_;
  const bool same = !t.formulas_.empty() && t.formulas_[0].formula == f &&
                    t.formulas_[0].compute == compute && t.formulas_[0].out.device() == out.device();
  t.make_room(same, out, inputs);
  t.formulas_.emplace_back(f, compute, out, inputs, parameters);
  return true;
}

bool MultiTensorLaunch::hold(const ReduceCall& call) {
  if (!current_) return false;
  MultiTensorLaunch& t = *current_;
  const bool same = !t.reductions_.empty() && t.reductions_[0].op == call.op &&
                    t.reductions_[0].divisor == call.divisor &&
                    t.reductions_[0].in.device() == call.in.device();
  const Tensor* inputs[] = {&call.in};
  t.make_room(same, call.out, inputs);
  t.reductions_.push_back(call);
  return true;
}

void MultiTensorLaunch::make_room(bool same_kind, const Tensor& out, Inputs inputs) {
  auto touches = [](const std::vector<Extent>& those, const Extent& memory) {
    return std::any_of(those.begin(), those.end(), [&](const Extent& e) { return e.overlaps(memory); });
  };
  const Extent target = extent_of(out);
  bool goes =
      same_kind && written_.size() < kMostWaiting && !touches(written_, target) && !touches(read_, target);
  for (const Tensor* t : inputs) goes = goes && (t->is_cpu() || !touches(written_, extent_of(*t)));
  if (!goes) launch();
  written_.push_back(target);
  for (const Tensor* t : inputs)
    if (!t->is_cpu()) read_.push_back(extent_of(*t));
}

MultiTensorLaunch::Extent MultiTensorLaunch::extent_of(const Tensor& t) {
  int64_t first = 0, last = 0;  // elements
  for (size_t d = 0; d < t.sizes().size(); ++d)
    (t->strides[d] < 0 ? first : last) += (t->sizes[d] - 1) * t->strides[d];
  const auto item = static_cast<int64_t>(t.itemsize());
  const char* data = static_cast<const char*>(t.data_ptr());
  return {data + first * item, data + (last + 1) * item};
}

const DeviceKernels& kernels_on(const Tensor& t) {
  MultiTensorLaunch::launch_waiting();
  return device_kernels(t.device().type());
}

}  // namespace rushlight::loops
