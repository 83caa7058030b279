#include "transform/autocast.h"

#include <bit>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "autograd/meta.h"
#include "dispatch/operands.h"
#include "dispatch/table.h"
#include "ops/copy.h"
#include "transform/autocast_lists.h"

namespace rushlight {

thread_local AutocastState autocast_state;
bool (*autocast_custom_call)(Frame&, DeviceType) = nullptr;

namespace {

// Note [Autocast]
// While a region is active, kAutocast is in dispatch_state.always, and every operator with that bit among its
// intercepted ones comes here first, composites too. It casts the operands as its list says and goes on with
// the bit taken away, so that nothing inside is cast again. Writing forms (in-place, out=) stay as they are.
// Devices have regions and lists of their own; a call belongs to the device of its operands. The lists are
// PyTorch's: the CPU's here, CUDA's in autocast_cuda.cpp.
const std::unordered_set<std::string> half_operators = {"conv1d",
                                                        "conv2d",
                                                        "conv3d",
                                                        "conv_tbc",
                                                        "conv_transpose1d",
                                                        "conv_transpose2d",
                                                        "conv_transpose3d",
                                                        "bmm",
                                                        "mm",
                                                        "matmul",
                                                        "linalg::vecdot",
                                                        "baddbmm",
                                                        "addmm",
                                                        "addbmm",
                                                        "linear",
                                                        "_lstm_layer",
                                                        "lstm.input",
                                                        "prelu",
                                                        "scaled_dot_product_attention"};
const std::unordered_set<std::string> float_operators = {"avg_pool3d",
                                                         "binary_cross_entropy",
                                                         "grid_sampler",
                                                         "polar",
                                                         "prod",
                                                         "quantile",
                                                         "nanquantile",
                                                         "stft",
                                                         "cdist",
                                                         "trace",
                                                         "view_as_complex",
                                                         "cholesky",
                                                         "cholesky_inverse",
                                                         "cholesky_solve",
                                                         "inverse",
                                                         "lu_solve",
                                                         "orgqr",
                                                         "ormqr",
                                                         "pinverse",
                                                         "max_pool3d",
                                                         "max_unpool2d",
                                                         "max_unpool3d",
                                                         "adaptive_avg_pool3d",
                                                         "reflection_pad1d",
                                                         "reflection_pad2d",
                                                         "replication_pad1d",
                                                         "replication_pad2d",
                                                         "replication_pad3d",
                                                         "mse_loss",
                                                         "cosine_embedding_loss",
                                                         "nll_loss",
                                                         "nll_loss2d",
                                                         "hinge_embedding_loss",
                                                         "poisson_nll_loss",
                                                         "smooth_l1_loss",
                                                         "cross_entropy",
                                                         "l1_loss",
                                                         "huber_loss",
                                                         "margin_ranking_loss",
                                                         "soft_margin_loss",
                                                         "triplet_margin_loss",
                                                         "multi_margin_loss",
                                                         "ctc_loss",
                                                         "kl_div",
                                                         "multilabel_margin_loss",
                                                         "binary_cross_entropy_with_logits",
                                                         "fractional_max_pool2d",
                                                         "fractional_max_pool3d",
                                                         "adaptive_max_pool3d",
                                                         "geqrf",
                                                         "qr",
                                                         "svd",
                                                         "triangular_solve",
                                                         "linalg::cond",
                                                         "linalg::matrix_rank",
                                                         "linalg::solve",
                                                         "linalg::cholesky",
                                                         "linalg::svdvals",
                                                         "linalg::eigvals",
                                                         "linalg::eigvalsh",
                                                         "linalg::inv",
                                                         "linalg::householder_product",
                                                         "linalg::tensorinv",
                                                         "linalg::tensorsolve",
                                                         "linalg::qr",
                                                         "linalg::cholesky_ex",
                                                         "linalg::svd",
                                                         "linalg::eig",
                                                         "linalg::eigh",
                                                         "linalg::lstsq",
                                                         "linalg::inv_ex"};
// The fused cells stand for pointwise operators that promote.
const std::unordered_set<std::string> widening_operators = {"cat", "stack", "index_copy",
                                                            "_thnn_fused_lstm_cell", "_thnn_fused_gru_cell"};

// "matmul", "linalg::inv"; the operators of nn.functional without their space.
std::string list_name(const Op& op) {
  const std::string_view space = op.schema.space;
  return space.empty() || space == "nn" ? std::string(op.name()) : str(space, "::", op.name());
}

// What the lists say of each operator, by its id.
enum class Policy : uint8_t { None, Half, Float, Widest, Refused };
std::vector<Policy> policies, cuda_policies;

Policy listed(const Op& op) {
  const std::string name = list_name(op);
  if (half_operators.contains(name) || half_operators.contains(str(name, ".", op.schema.overload)))
    return Policy::Half;
  if (float_operators.contains(name) || op.schema.space == "fft") return Policy::Float;
  return widening_operators.contains(name) ? Policy::Widest : Policy::None;
}
Policy listed_for_cuda(const Op& op) {
  const std::string name = list_name(op), full = str(name, ".", op.schema.overload);
  const AutocastLists& lists = cuda_autocast_lists();
  auto in = [&](const std::unordered_set<std::string>& list) {
    return list.contains(name) || list.contains(full);
  };
  if (name == "binary_cross_entropy") return Policy::Refused;
  if (in(lists.to_half)) return Policy::Half;
  if (in(lists.to_float) || op.schema.space == "fft") return Policy::Float;
  return in(lists.to_widest) ? Policy::Widest : Policy::None;
}

// The casts of leaves made in this region: weights are cast once, not at every use.
struct Cast {
  Tensor from, to;
  uint32_t version;
};
thread_local std::unordered_map<const TensorImpl*, Cast> casts;

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
    found->second = Cast{t, cast(), t.version()};
  return found->second.to;
}

// The dtype for this call, or nothing when operands stay as they are.
OptDType chosen_dtype(const Frame& frame, DeviceType type) {
  const Policy policy = (type == DeviceType::CPU ? policies : cuda_policies)[frame.op.id];
  if (policy == Policy::None) return std::nullopt;
  if (policy == Policy::Half) return autocast_state.on(type).dtype;
  if (policy == Policy::Float) return DType::Float32;
  RL_CHECK(
      policy != Policy::Refused,
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

// Goes on with operands as they are. What a composite calls is cast, if it is on no list itself.
void proceed_uncast(Frame& frame, DeviceType type) {
  const auto& list = type == DeviceType::CPU ? policies : cuda_policies;
  if (frame.op.family != Family::Composite || (!frame.op.made_in_python && list[frame.op.id] != Policy::None))
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

void install_autocast(Table& table) {
  for (Op& op : table.ops()) {
    policies.push_back(listed(op));
    cuda_policies.push_back(listed_for_cuda(op));
    if (policies.back() == Policy::None && cuda_policies.back() == Policy::None) op.intercepted &= ~kAutocast;
  }
  set_interceptor(kAutocast, autocast_call);
}

}  // namespace rushlight
