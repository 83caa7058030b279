// Connectionist temporal classification.
#include "cpu/ctc.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/parallel.h"
#include "dispatch/table.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/operators.h"
#include "ops/reduction.h"
#include "ops/register.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

Fn<std::tuple<Tensor, Tensor>(const Tensor& log_probs, const Tensor& targets, IntList input_lengths,
                              IntList target_lengths, int64_t blank, bool zero_infinity)>
    ctc_parts;
Fn<std::tuple<Tensor, Tensor>(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                              const Tensor& target_lengths, int64_t blank, bool zero_infinity)>
    ctc_parts_tensor;
Fn<Tensor(const Tensor& grad, const Tensor& log_probs, const Tensor& targets, IntList input_lengths,
          IntList target_lengths, const Tensor& neg_log_likelihood, const Tensor& log_alpha, int64_t blank,
          bool zero_infinity)>
    ctc_backward;
Fn<Tensor(const Tensor& log_probs, const Tensor& targets, IntList input_lengths, IntList target_lengths,
          int64_t blank, int64_t reduction, bool zero_infinity)>
    ctc_loss;
Fn<Tensor(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
          const Tensor& target_lengths, int64_t blank, int64_t reduction, bool zero_infinity)>
    ctc_loss_tensor;

// The samples of a batch, log_probs being [steps, batch, classes].
struct CtcBatch {
  Tensor log_probs, targets;
  int64_t steps, batch, classes, longest = 0;
  Dims starts;  // of each sample's labels

  cpu::CtcSample sample(int64_t b, IntList input_lengths, IntList target_lengths, int64_t blank,
                        const Tensor& alpha) const {
    cpu::CtcSample s;
    const auto at = static_cast<size_t>(b);
    const auto size = static_cast<int64_t>(log_probs.itemsize());
    s.log_probs = static_cast<const char*>(log_probs.data_ptr()) + b * log_probs.stride(1) * size;
    s.step = log_probs.stride(0), s.class_step = log_probs.stride(2);
    s.steps = input_lengths[at], s.classes = classes;
    s.labels = targets.data<int64_t>() + starts[at];
    s.label_count = target_lengths[at], s.blank = blank;
    s.width = 2 * longest + 1;
    s.alpha = static_cast<char*>(alpha.data_ptr()) + b * steps * s.width * size;
    return s;
  }
};

CtcBatch batch_of(const Tensor& log_probs, const Tensor& targets, IntList input_lengths,
                  IntList target_lengths, int64_t blank) {
  RL_CHECK(log_probs.dim() == 3, "ctc_loss: expected log_probs of [steps, batch, classes], got ",
           describe(log_probs));
  if (log_probs.dtype() != DType::Float32 && log_probs.dtype() != DType::Float64)
    RL_NOT_IMPLEMENTED("\"ctc_loss_cpu\" not implemented for '", legacy_name(log_probs.dtype()), "'");
  RL_CHECK(!is_complex(targets.dtype()), "ctc_loss: expected targets that are class numbers, got ",
           describe(targets), "; pass integers");
  CtcBatch c{log_probs,
             as_contiguous(to_dtype(targets, DType::Int64)),
             log_probs->sizes[0],
             log_probs->sizes[1],
             log_probs->sizes[2],
             0,
             {}};
  RL_CHECK(blank >= 0 && blank < c.classes, "blank must be in label range");
  RL_CHECK(static_cast<int64_t>(input_lengths.size()) == c.batch, "input_lengths must be of size batch_size");
  RL_CHECK(static_cast<int64_t>(target_lengths.size()) == c.batch,
           "target_lengths must be of size batch_size");
  RL_CHECK(targets.dim() == 1 || (targets.dim() == 2 && targets->sizes[0] == c.batch),
           "ctc_loss: expected targets of [batch, labels] or all in one line, got ", describe(targets));
  int64_t total = 0;
  for (size_t b = 0; b < target_lengths.size(); ++b) {
    const int64_t length = target_lengths[b], steps = input_lengths[b];
    RL_CHECK(length >= 0, "Expected target_lengths to have value at least 0, but got value ", length,
             " (while checking arguments for ctc_loss_cpu)");
    RL_CHECK(steps >= 0, "Expected input_lengths to have value at least 0, but got value ", steps,
             " (while checking arguments for ctc_loss_cpu)");
    RL_CHECK(steps <= c.steps, "Expected input_lengths to have value at most ", c.steps, ", but got value ",
             steps, " (while checking arguments for ctc_loss_cpu)");
    c.starts.push_back(targets.dim() == 1 ? total : static_cast<int64_t>(b) * targets->sizes[1]);
    RL_CHECK(targets.dim() == 1 || length <= targets->sizes[1], "Expected tensor to have size at least ",
             length, " at dimension 1, but got size ", targets.dim() == 2 ? targets->sizes[1] : 0,
             " (while checking arguments for ctc_loss_cpu)");
    RL_CHECK(!__builtin_add_overflow(total, length, &total), "ctc_loss: target_lengths are too large");
    c.longest = std::max(c.longest, length);
  }
  RL_CHECK(targets.dim() == 2 || total == targets->sizes[0], "ctc_loss: target_lengths add up to ", total,
           ", but targets has ", targets.numel(), " labels");
  const int64_t* labels = c.targets.data<int64_t>();
  for (size_t b = 0; c.targets.is_cpu() && b < target_lengths.size(); ++b)
    for (int64_t i = 0; i < target_lengths[b]; ++i) {
      const int64_t label = labels[c.starts[b] + i];
      RL_CHECK(label >= 0 && label < c.classes, "ctc_loss: expected labels in [0, ", c.classes, "), got ",
               label);
    }
  return c;
}

int64_t sample_grain(const CtcBatch& c) {
  return std::max<int64_t>(1, kGrainSize / (16 * std::max<int64_t>(1, c.steps * (2 * c.longest + 1))));
}

std::tuple<Tensor, Tensor> ctc_kernel(const Call&, const Tensor& log_probs, const Tensor& targets,
                                      IntList input_lengths, IntList target_lengths, int64_t blank, bool) {
  CtcBatch c = batch_of(log_probs, targets, input_lengths, target_lengths, blank);
  // Of many classes few are read, wherever they lie.
  if (log_probs.stride(2) != 1 && c.classes < 4 * c.longest) c.log_probs = as_contiguous(log_probs);
  Tensor loss = empty_tensor(IntList{c.batch}, log_probs.dtype(), log_probs.device());
  Tensor alpha =
      empty_tensor(IntList{c.batch, c.steps, 2 * c.longest + 1}, log_probs.dtype(), log_probs.device());
  if (!loss.is_cpu()) return {loss, alpha};
  if (alpha.numel()) std::memset(alpha.data_ptr(), 0, alpha.nbytes());  // beyond a sample's own lengths
  parallel_for(0, c.batch, sample_grain(c), [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const double value =
          cpu::ctc_forward(log_probs.dtype(), c.sample(b, input_lengths, target_lengths, blank, alpha));
      if (log_probs.dtype() == DType::Float32)
        loss.data<float>()[b] = static_cast<float>(value);
      else
        loss.data<double>()[b] = value;
    }
  });
  return {loss, alpha};
}

double value_at(const Tensor& t, int64_t i) {
  const int64_t at = i * t->strides[0];
  return t.dtype() == DType::Float32 ? static_cast<double>(t.data<float>()[at]) : t.data<double>()[at];
}

Tensor ctc_backward_kernel(const Call&, const Tensor& grad, const Tensor& log_probs, const Tensor& targets,
                           IntList input_lengths, IntList target_lengths, const Tensor& losses,
                           const Tensor& forward, int64_t blank, bool zero_infinity) {
  const CtcBatch c = batch_of(as_contiguous(log_probs), targets, input_lengths, target_lengths, blank);
  for (const Tensor& each : {grad, losses})
    RL_CHECK(each.sizes() == IntList({c.batch}) && each.dtype() == log_probs.dtype(),
             "ctc_loss_backward: expected a loss of ", log_probs.dtype(), " for each of ", c.batch,
             " samples, got ", describe(each));
  RL_CHECK(forward.sizes() == IntList({c.batch, c.steps, 2 * c.longest + 1}) &&
               forward.dtype() == log_probs.dtype(),
           "ctc_loss_backward: expected log_alpha of [", c.batch, ", ", c.steps, ", ", 2 * c.longest + 1,
           "], got ", describe(forward));
  Tensor result = empty_tensor(log_probs.sizes(), log_probs.dtype(), log_probs.device());
  if (!result.is_cpu()) return result;
  const Tensor alpha = as_contiguous(forward);
  if (result.numel()) std::memset(result.data_ptr(), 0, result.nbytes());
  parallel_for(0, c.batch, sample_grain(c), [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const double loss = value_at(losses, b);
      if (zero_infinity && std::isinf(loss)) continue;
      cpu::ctc_backward(
          log_probs.dtype(), c.sample(b, input_lengths, target_lengths, blank, alpha), loss,
          value_at(grad, b),
          static_cast<char*>(result.data_ptr()) + b * c.classes * static_cast<int64_t>(result.itemsize()));
    }
  });
  return result;
}

Tensor ctc_loss_body(const Call&, const Tensor& given, const Tensor& given_targets, IntList input_lengths,
                     IntList target_lengths, int64_t blank, int64_t reduction, bool zero_infinity) {
  const bool batched = given.dim() == 3;
  const Tensor log_probs = batched ? given : unsqueeze(given, 1);
  const Tensor targets = batched || given_targets.dim() != 1 ? given_targets : unsqueeze(given_targets, 0);
  Tensor loss =
      std::get<0>(ctc_parts(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity));
  if (zero_infinity) {
    const Tensor endless = rushlight::eq(loss, Scalar(std::numeric_limits<double>::infinity()));
    loss = rushlight::masked_fill(loss, endless, Scalar(0));
  }
  if (reduction == 1) {
    Tensor lengths = empty_tensor(IntList{static_cast<int64_t>(target_lengths.size())}, DType::Int64);
    for (size_t b = 0; b < target_lengths.size(); ++b)
      lengths.data<int64_t>()[b] = std::max<int64_t>(1, target_lengths[b]);
    return mean(loss / ops::to_copy(lengths, loss.dtype(), loss.device(), std::nullopt), std::nullopt);
  }
  if (reduction == 2) return sum(loss, std::nullopt);
  return batched ? loss : squeeze_dim(loss, 0);
}

Dims lengths_of(const char* what, const Tensor& t) {
  RL_CHECK(is_integral(t.dtype()), what, " must be integral");
  const Tensor flat = as_contiguous(on_cpu(to_dtype(t, DType::Int64)));
  return Dims(flat.data<int64_t>(), static_cast<size_t>(flat.numel()));
}
std::tuple<Tensor, Tensor> ctc_parts_body(const Call&, const Tensor& log_probs, const Tensor& targets,
                                          const Tensor& input_lengths, const Tensor& target_lengths,
                                          int64_t blank, bool zero_infinity) {
  return ctc_parts(log_probs, targets, lengths_of("input_lengths", input_lengths),
                   lengths_of("target_lengths", target_lengths), blank, zero_infinity);
}
Tensor ctc_loss_tensor_body(const Call&, const Tensor& log_probs, const Tensor& targets,
                            const Tensor& input_lengths, const Tensor& target_lengths, int64_t blank,
                            int64_t reduction, bool zero_infinity) {
  return ctc_loss(log_probs, targets, lengths_of("input_lengths", input_lengths),
                  lengths_of("target_lengths", target_lengths), blank, reduction, zero_infinity);
}

}  // namespace

void register_ctc_operators(Table& t) {
  t.op(ctc_parts,
       "_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, "
       "bool zero_infinity=False) -> (Tensor, Tensor)",
       ctc_kernel)
      .function_only()
      .doc(
          "The negative log likelihood of each sample's targets, and the logarithms of the forward "
          "variables.")
      .family(Family::Loss)
      .derivative([](Grad g, In<0> x, In<1> targets, Attr<2, IntList> steps, Attr<3, IntList> lengths,
                     Attr<4, int64_t> blank, Attr<5, bool> zero_infinity, Out<0> loss, Out<1> alpha) {
        return Grads{ctc_backward(g, x, targets, steps, lengths, loss, alpha, blank, zero_infinity),
                     Tensor()};
      });
  t.op(ctc_backward,
       "_ctc_loss_backward(Tensor grad, Tensor log_probs, Tensor targets, int[] input_lengths, int[] "
       "target_lengths, Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity=False) -> "
       "Tensor",
       ctc_backward_kernel)
      .doc("The gradient of log_probs.")
      .internal()
      .family(Family::Gradient)
      .refused_derivative<"derivative for aten::_ctc_loss_backward is not implemented">();
  t.composite(ctc_parts_tensor,
              "_ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor "
              "target_lengths, int blank=0, bool zero_infinity=False) -> (Tensor, Tensor)",
              ctc_parts_body)
      .function_only()
      .doc("The same with lengths in tensors.");
  t.composite(ctc_loss_tensor,
              "ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor "
              "target_lengths, int blank=0, int reduction=1, bool zero_infinity=False) -> Tensor",
              ctc_loss_tensor_body)
      .doc("ctc_loss with lengths in tensors.")
      .function_only()
      .autocast(Cast::Float, Cast::None);
  t.composite(ctc_loss,
              "ctc_loss.IntList(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, "
              "int blank=0, int reduction=1, bool zero_infinity=False) -> Tensor",
              ctc_loss_body)
      .function_only()
      .doc(
          "Negative log likelihood of targets, summed over their alignments with log_probs of [steps, batch, "
          "classes].")
      .autocast(Cast::Float, Cast::None);
}

}  // namespace rushlight
