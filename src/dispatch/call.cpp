#include <bit>
#include <cstdio>
#include <utility>

#include "core/device_backend.h"
#include "dispatch/cpu_fallback.h"
#include "dispatch/interceptors.h"
#include "dispatch/operands.h"
#include "dispatch/out_overlap.h"
#include "dispatch/pre_dispatch.h"
#include "dispatch/profiler.h"
#include "dispatch/target_copy.h"

namespace rushlight {

__attribute__((tls_model("initial-exec"))) thread_local DispatchState dispatch_state;

void (*copy_result)(const Tensor&, const Tensor&, bool) = nullptr;
Tensor (*copy_of_target)(const Tensor&) = nullptr;
void (*show_warning)(const std::string&) = [](const std::string& message) {
  std::fprintf(stderr, "Warning: %s\n", message.c_str());
};

static void check_output_type(const Op& op, const Tensor& out, DType from, bool inplace);

namespace {

// Outermost first: what a user wraps around a program comes before what a program does to tensors. Python
// classes and modes come late: they see what really runs, derivatives' calls included.
constexpr uint32_t kOrder[] = {kProfiled, kPreDispatch, kAutocast,       kWrapped,        kForwardGrad,
                               kAutograd, kLowered,     kPythonDispatch, kSpecialElements};
Interceptor interceptors[32] = {};

struct Operands {
  uint32_t flags = 0;
  DeviceType device = DeviceType::CPU;
  const Device* where = nullptr;  // of an operand that is not on the CPU

  void add(const Tensor& t) {
    flags |= detail::flags_of(*t.impl());
    if (t->flags & kNotCpu) device = t->device.type(), where = &t->device;
  }
};

Operands collect(const Op& op, const Value* args) {
  Operands operands;
  each_operand(op, args, [&](const Tensor& t) { operands.add(t); });
  return operands;
}

// Factories name their device instead of showing it in an operand.
Device asked_device(const Op& op, const Value* args) {
  for (size_t i = 0; i < op.schema.parameters.size(); ++i)
    if (args[i].tag() == Tag::Device) return args[i].device();
  return {};
}
DeviceType pick_device(const Op& op, const Value* args, DeviceType from_operands) {
  return from_operands != DeviceType::CPU ? from_operands : asked_device(op, args).type();
}

// Beside tensors without data, what is not computed element by element takes operands from the CPU: the form
// of a result is known from theirs, as PyTorch's functions for `meta` tensors see it.
void check_one_device(const Op& op, const Value* args) {
  const Tensor* first = nullptr;
  const bool form_only = !op.traits.elementwise && collect(op, args).device == DeviceType::Meta;
  auto check = [&](const Tensor& t) {
    if (!t.defined() || (t.is_cpu() && (t.dim() == 0 || form_only))) return;
    if (first && first->device() != t.device() && (first->device().is_meta() || t.device().is_meta()))
      RL_FAIL("Tensor on device ", t.device(), " is not on the expected device ", first->device(),
              "! (when calling ", op.name(), ")");
    RL_CHECK(!first || first->device() == t.device(),
             "Expected all tensors to be on the same device, but found at least two devices, ",
             first->device(), " and ", t.device(), "! (when calling ", op.name(), " with ", describe(*first),
             " and ", describe(t), "; move one with .to())");
    if (!first) first = &t;
  };
  each_operand(op.tensor_parameters & ~op.traits.any_device, args, check);
}

// A composite is differentiated through what it calls, and an operator without a derivative meets no
// autograd: only here is out= with autograd noticed.
void check_out_gradients(const Op& op, const Value* args, const Tensor* out, size_t count) {
  if (!GradMode::enabled()) return;
  uint32_t flags = collect(op, args).flags;
  bool numbers = false;  // integers and truth values have no gradient that could be missed
  for (size_t i = 0; i < count; ++i) {
    flags |= detail::flags_of(out[i]);
    numbers |= is_differentiable(out[i].dtype());
  }
  if (!numbers) return;
  RL_CHECK(!(flags & kAutograd), op.name(),
           "(): functions with out=... arguments don't support automatic differentiation, but one of the "
           "arguments "
           "requires grad.");
}

// Whether a Python class, a mode or a function transform has to see what is written.
bool is_watched(const Tensor& result, const Tensor& target) {
  const uint32_t flags = detail::flags_of(*result.impl()) | detail::flags_of(*target.impl());
  return (dispatch_state.always | (flags & dispatch_state.consider)) & (kPythonDispatch | kWrapped);
}

// `recorded`: by operators, which a tensor that is not memory needs.
void store(const Frame& frame, const Tensor& result, const Tensor& target, bool recorded) {
  if (result.is_same(target)) return;
  if (recorded && !frame.inplace) {
    check_output_type(frame.op, target, result.dtype(), false);
  } else {
    const bool resized = target.sizes() != result.sizes();
    prepare_output(frame.op, target, result.sizes(), result.dtype(), frame.inplace);
    if (resized && is_channels_last(result))  // as a new result would lie in memory
      target->set_layout(result.sizes(), result.strides());
  }
  copy_result(target, result, recorded);
}

// A tensor made under inference mode has no version: outside of it, nobody would notice the write.
void check_inference(const Frame& frame) {
  if (dispatch_state.inference || (!frame.op.mutated && !frame.out)) return;
  auto check = [](const Tensor& t) {
    RL_CHECK(!t.defined() || !(t->flags & kInference),
             "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone "
             "to get a normal tensor "
             "before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details.");
  };
  for (uint64_t bits = frame.op.mutated; bits; bits &= bits - 1) {
    const Value& v = frame.args[std::countr_zero(bits)];
    if (v.tag() == Tag::Tensor) check(v.tensor());
  }
  if (frame.out)
    for (size_t i = 0; i < (frame.inplace ? 1 : frame.op.schema.returns.size()); ++i) check(frame.out[i]);
}

// Writes to and index look-ups in meta tensors take operands of any device: nothing is read.
bool mixes_devices(const Frame& frame, const Operands& operands) {
  const Op& op = frame.op;
  if (operands.device != DeviceType::Meta || op.made_in_python) return operands.device == DeviceType::Meta;
  if (op.family == Family::Index || op.family == Family::Composite) return true;
  if (frame.inplace) return frame.out->device().is_meta();
  return (op.mutated & 1) != 0;
}

// Shapes, dtypes and strides come from the kernel itself, which returns before its loop, or fails in
// TensorImpl::data. Note [Tensors without data]
const void* meta_kernel(const Op& op) {
  if (op.meta_refusal)
    RL_NOT_IMPLEMENTED("Could not run '", op.name(), "' on device meta: ", op.meta_refusal);
  return op.kernel[0];
}

void run_without_data(const void* kernel, const Call& call, const Value* args, Results& results) {
  try {
    call.op.trampoline(kernel, call, args, results);
  } catch (const NoData& e) {
    RL_NOT_IMPLEMENTED("Could not run '", call.op.name(), "' on device meta: it reads its operands (",
                       e.what(), ")");
  }
}

// Names the operator in what a device reports: out of memory, a kernel that failed.
class OnDevice {
 public:
  OnDevice(const Op& op, DeviceType device) : named_(device == DeviceType::CUDA) {
    if (named_) before_ = std::exchange(device_operator, &op.schema.name);
  }
  ~OnDevice() {
    if (named_) device_operator = before_;
  }
  OnDevice(const OnDevice&) = delete;

 private:
  bool named_;
  const std::string_view* before_ = nullptr;
};

void run_kernel(Frame& frame) {
  const Op& op = frame.op;
  const Operands operands = collect(op, frame.args);
  if ((operands.flags & kNotCpu) && !mixes_devices(frame, operands)) check_one_device(op, frame.args);
  const DeviceType device = op.family == Family::Factory || operands.device != DeviceType::CPU
                                ? pick_device(op, frame.args, operands.device)
                                : DeviceType::CPU;
  const OnDevice named(op, device);
  const void* kernel = op.kernel[static_cast<int>(device)];
  const bool meta = device == DeviceType::Meta;
  if (!kernel && meta) kernel = meta_kernel(op);
  const bool composite = op.family == Family::Composite;
  const size_t outputs = op.schema.returns.size();
  if (frame.out) {
    for (size_t i = 0; i < (frame.inplace ? 1 : outputs); ++i) {
      RL_CHECK(frame.out[i].device().type() == device, op.name(), "(): expected out tensor to have device ",
               device_type_name(device), ", but got ", frame.out[i].device(), " instead");
      frame.out[i].check_writable(op.name());
    }
    if (!frame.inplace) {
      check_output_overlap(op, frame.args, frame.out, outputs);
      check_output_dtype(op, frame.args, *frame.out);
    }
    if ((composite || !(op.intercepted & kAutograd)) && !frame.inplace)
      check_out_gradients(op, frame.args, frame.out, outputs);
  }
  for (uint64_t bits = op.mutated; bits; bits &= bits - 1) {
    const Value& v = frame.args[std::countr_zero(bits)];
    if (v.tag() == Tag::Tensor && v.tensor().defined()) v.tensor().check_writable(op.name());
  }
  if ((operands.flags | (frame.out ? frame.out[0]->flags : 0)) & kInference) [[unlikely]]
    check_inference(frame);
  // What a composite saves of its input must survive the write at the end.
  std::vector<Value> replaced;
  Tensor original;
  if (composite && frame.inplace && (operands.flags & (kAutograd | kWrapped)) && GradMode::enabled()) {
    original = copy_of_target(*frame.out);
    replaced.assign(frame.args, frame.args + op.schema.parameters.size());
    replaced[0] = Value(original);
  }
  const Call call{op, composite ? nullptr : frame.out, frame.inplace};
  const Value* args = replaced.empty() ? frame.args : replaced.data();
  if (!kernel)  // Note [Operators that a device lacks]
    run_on_cpu(op, args, frame.results, operands.where ? *operands.where : asked_device(op, args));
  else if (meta && !composite)
    run_without_data(kernel, call, args, frame.results);
  else
    op.trampoline(kernel, call, args, frame.results);
  if (frame.out) {
    const size_t n = frame.inplace ? 1 : outputs;
    for (size_t i = 0; i < n; ++i) {
      const bool recorded =
          composite && (frame.inplace || is_watched(frame.results.tensors[i], frame.out[i]));
      store(frame, frame.results.tensors[i], frame.out[i], recorded);
      if (!recorded) frame.out[i].bump_version(&op.schema.name);  // a recorded copy_ counts itself
      frame.results.tensors[i] = frame.out[i];
    }
  }
  if (op.mutated && !composite) bump_mutated(op, frame.args);
}

}  // namespace

void set_interceptor(TensorFlag bit, Interceptor f) {
  interceptors[std::countr_zero(static_cast<uint32_t>(bit))] = f;
}

void Frame::proceed() {
  for (const uint32_t bit : kOrder) {
    if (!(pending & bit)) continue;
    pending &= ~bit;
    if (Interceptor f = interceptors[std::countr_zero(bit)]) return f(*this);
  }
  run_kernel(*this);
}

void call_boxed(const Op& op, const Value* args, Results& results, const Tensor* out, bool inplace) {
  Operands operands = collect(op, args);
  const DispatchState& s = dispatch_state;
  // The straight path: nothing watches, nothing is written, everything is on the CPU.
  const uint32_t watched = (s.always | (operands.flags & s.consider)) & op.intercepted;
  if (!(watched | (operands.flags & kNotCpu)) && !out && !op.mutated && op.family != Family::Factory)
      [[likely]]
    return op.trampoline(op.kernel[0], Call{op}, args, results);
  if (out)
    for (size_t i = 0; i < (inplace ? 1 : op.schema.returns.size()); ++i)
      operands.flags |= detail::flags_of(out[i]);
  const uint32_t pending = (s.always | (operands.flags & s.consider)) & interceptors_of(op, inplace);
  Frame frame{op, args, out, inplace, pending, results};
  frame.proceed();
}

void bump_mutated(const Op& op, const Value* args) {
  each_operand(op.mutated, args, [&](const Tensor& t) { t.bump_version(&op.schema.name); });
}

static void check_output_type(const Op& op, const Tensor& out, DType from, bool inplace) {
  const OutRule demand = op.traits.out;
  const bool exact = demand == OutRule::SameType || demand == OutRule::Disjoint;
  RL_CHECK(!exact || inplace || from == out.dtype(), "Expected out tensor to have dtype ", cpp_name(from),
           ", but got ", cpp_name(out.dtype()), " instead (", op.name(), ")");
  RL_CHECK(demand != OutRule::SameCategory || category_of(from) == category_of(out.dtype()), op.name(),
           " expects a ", is_complex(from) ? "complex" : "floating point", " output tensor, but got ",
           legacy_name(out.dtype()));
  const bool algebra = op.family == Family::LinearAlgebra || op.schema.space == "linalg";
  RL_CHECK(!algebra || can_cast(from, out.dtype()), op.name(),
           ": Expected result to be safely castable from ", legacy_name(from),
           " dtype, but got result with dtype ", legacy_name(out.dtype()));
  RL_CHECK(can_cast(from, out.dtype()), "result type ", legacy_name(from),
           " can't be cast to the desired output type ", legacy_name(out.dtype()), " (", op.name(), ")");
}

void prepare_output(const Op& op, const Tensor& out, IntList sizes, DType from, bool inplace) {
  check_output_type(op, out, from, inplace);
  if (out.sizes() == sizes) return;
  RL_CHECK(!inplace, "output with shape ", out.sizes(), " doesn't match the broadcast shape ", sizes);
  if (out.numel() != 0)
    show_warning(str("An output with one or more elements was resized since it had shape ", out.sizes(),
                     ", which does not match the required output shape ", sizes,
                     ". This behavior is deprecated, and in a future PyTorch release outputs will not be "
                     "resized unless they have "
                     "zero elements. You can explicitly reuse an out tensor t by resizing it, inplace, to "
                     "zero elements with "
                     "t.resize_(0)."));
  resize_tensor(out, sizes);
}

Tensor Call::output(IntList sizes, DType dtype, Device device) const {
  if (!out || out->dtype() != dtype) return empty_tensor(sizes, dtype, device);
  prepare_output(op, *out, sizes, dtype, inplace);
  return *out;
}

}  // namespace rushlight
