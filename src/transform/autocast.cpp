#include "transform/autocast.h"

#include <bit>
#include <unordered_map>
#include <vector>

#include "autograd/meta.h"
#include "dispatch/operands.h"
#include "ops/copy.h"

namespace rushlight {

thread_local AutocastState autocast_state;
bool (*autocast_custom_call)(Frame&, DeviceType) = nullptr;

namespace {

// Note [Autocast]
// While a region is active, kAutocast is in dispatch_state.always, and every operator with that bit among its
// intercepted ones comes here first, composites too. It casts the operands as its record says and goes on
// with the bit taken away, so that nothing inside is cast again. Writing forms (in-place, out=) stay as they
// are. Devices have regions and casts of their own; a call belongs to the device of its operands. Which
// operators cast to what is PyTorch's choice, and stands on their records (traits.autocast_cpu,
// autocast_cuda). The casts of leaves made in this region: weights are cast once, not at every use.
struct CachedCast {
  Tensor from, to;
  uint32_t version;
};
thread_local std::unordered_map<const TensorImpl*, CachedCast> casts;

// Fake tensors stand for the CPU's.
DeviceType region_of(const Tensor& t) {
  return t.device().type() == DeviceType::CUDA ? DeviceType::CUDA : DeviceType::CPU;
}

bool is_eligible(const Tensor& t, DeviceType type) {
  return t.defined() && t.device().type() == type && is_floating(t.dtype()) && t.dtype() != DType::Float64 &&
         !t.is_wrapped_number();
}

Tensor cast_to(const Tensor& t, DType dtype, DeviceType type) {
  if (!is_eligible(t, type) || t.dtype() == dtype) return t;
  auto cast = [&] { return ops::to(t, dtype, std::nullopt, false, false, std::nullopt); };
  const bool keep = autocast_state.cache && autocast_state.nesting > 0 && t.dtype() == DType::Float32 &&
                    dtype != DType::Float32 && t.requires_grad_flag() && is_leaf(t) && !t->view_base;
  if (!keep) return cast();
  auto [found, fresh] = casts.try_emplace(t.impl());
  // A cast made without gradients must not serve a call that needs them, nor one from before an update.
  if (fresh || found->second.version != t.version() ||
      (GradMode::enabled() && !found->second.to.requires_grad_flag()))
    found->second = CachedCast{t, cast(), t.version()};
  return found->second.to;
}

// The dtype for this call, or nothing when operands stay as they are.
OptDType chosen_dtype(const Frame& frame, DeviceType type) {
  const Cast cast = frame.op.traits.autocast(type);
  if (cast == Cast::None) return std::nullopt;
  if (cast == Cast::Half) return autocast_state.on(type).dtype;
  if (cast == Cast::Float) return DType::Float32;
  RL_CHECK(
      cast != Cast::Refused,
      "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.\nMany models "
      "use a sigmoid layer right before the binary cross entropy layer.\nIn this case, combine the two "
      "layers using torch.nn.functional.binary_cross_entropy_with_logits\nor torch.nn.BCEWithLogitsLoss. "
      " binary_cross_entropy_with_logits and BCEWithLogits are\nsafe to autocast.");
  bool wide = false, half = false;
  auto look = [&](const Tensor& t) {
    if (!is_eligible(t, type)) return;
    (t.dtype() == DType::Float32 ? wide : half) = true;
  };
  each_operand(frame.op, frame.args, look);
  return wide && half ? OptDType(DType::Float32) : std::nullopt;
}

class AutocastOff {
 public:
  AutocastOff() { dispatch_state.always &= ~kAutocast; }
  ~AutocastOff() { dispatch_state.always |= kAutocast; }
  AutocastOff(const AutocastOff&) = delete;
};
class AutocastOn {
 public:
  AutocastOn() { dispatch_state.always |= kAutocast; }
  ~AutocastOn() { dispatch_state.always &= ~kAutocast; }
  AutocastOn(const AutocastOn&) = delete;
};

// Goes on with operands as they are. What a composite calls is cast, unless the composite itself casts.
void proceed_uncast(Frame& frame, DeviceType type) {
  if (frame.op.family != Family::Composite || frame.op.traits.autocast(type) != Cast::None)
    return frame.proceed();
  const AutocastOn inside;
  frame.proceed();
}

void autocast_call(Frame& frame) {
  const AutocastOff off;
  DeviceType type = DeviceType::CPU;
  each_operand(frame.op, frame.args, [&](const Tensor& t) {
    if (t.defined() && region_of(t) == DeviceType::CUDA) type = DeviceType::CUDA;
  });
  const bool casts_here = autocast_state.on(type).enabled && !frame.out && !frame.op.mutated;
  if (frame.op.made_in_python) {
    if (!casts_here || !autocast_custom_call(frame, type)) proceed_uncast(frame, type);
    return;
  }
  const OptDType dtype = casts_here ? chosen_dtype(frame, type) : std::nullopt;
  if (!dtype) return proceed_uncast(frame, type);
  const auto n = static_cast<size_t>(frame.arg_count());
  std::vector<Value> args(frame.args, frame.args + n);
  std::vector<Tensor> kept;
  std::vector<std::vector<Tensor>> kept_lists;
  kept.reserve(n);
  kept_lists.reserve(n);
  for (uint64_t bits = frame.op.tensor_parameters; bits; bits &= bits - 1) {
    Value& v = args[static_cast<size_t>(std::countr_zero(bits))];
    if (v.tag() == Tag::Tensor) {
      v = Value(kept.emplace_back(cast_to(v.tensor(), *dtype, type)));
    } else if (v.tag() == Tag::TensorList) {
      auto& list = kept_lists.emplace_back();
      for (const Tensor& t : v.tensors()) list.push_back(cast_to(t, *dtype, type));
      v = Value(TensorList(list));
    }
  }
  call_boxed(frame.op, args.data(), frame.results);
}

}  // namespace

void set_autocast_enabled(DeviceType type, bool on) {
  autocast_state.on(type).enabled = on;
  const bool any = autocast_state.cpu.enabled || autocast_state.cuda.enabled;
  dispatch_state.always = any ? dispatch_state.always | kAutocast : dispatch_state.always & ~kAutocast;
}

void clear_autocast_cache() { casts.clear(); }

void install_autocast() { set_interceptor(kAutocast, autocast_call); }

}  // namespace rushlight
