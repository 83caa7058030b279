// Steps of optimizers for many parameters in one launch: a block takes a piece of one of them. What happens
// to an element is the host's code (cpu/optimizer_steps.h).
#include <algorithm>

#include "cpu/optimizer_steps.h"
#include "cuda/channels.h"
#include "cuda/layers.h"
#include "cuda/multi_tensor.h"
#include "device/optimizer.h"

namespace rushlight::cuda {
namespace {

using cpu::StepArrays;

constexpr int kMany = 40;
constexpr int64_t kPiece = 8192;

struct Many {
  TensorBlocks<kMany> tensor_blocks;
  struct {
    void *param, *grad, *first, *second, *third;
    int64_t size;
    double factors[3];  // or Adam's corrections
    const float* step;  // Adam's, where it lies on the device
  } each[kMany];
};
static_assert(sizeof(Many) + sizeof(DeviceOptimizer) + 64 <= 4096);

struct Strided {
  int64_t begin, end, step;
};

// Calls work(arrays, elements) in every thread, for the elements of its parameter that are the thread's.
template <class Work>
struct OverMany {
  Many many;
  Work work;
  RL_BOTH void operator()(const Block& block) const {
    const int k = many.tensor_blocks.owner(block.index);
    const auto& e = many.each[k];
    const int64_t start = (block.index - many.tensor_blocks.first_block[k]) * kPiece;
    const int64_t end = start + kPiece < e.size ? start + kPiece : e.size;
    StepArrays arrays{e.param, e.grad,    e.first,      e.second,    e.third,
                      e.size,  e.factors, e.factors[0], e.factors[1]};
    work(arrays, e.step, Strided{start + block.thread, end, block.threads});
  }
};

template <class Work>
void over_many(const Launch& at, std::span<const DeviceStep> params, const Work& work) {
  for (size_t start = 0; start < params.size(); start += kMany) {
    OverMany<Work> kernel{{}, work};
    Many& many = kernel.many;
    for (const DeviceStep& p : params.subspan(start, std::min<size_t>(kMany, params.size() - start))) {
      if (p.arrays.size == 0) continue;
      auto& e = many.each[many.tensor_blocks.count];
      e.param = p.arrays.param, e.grad = p.arrays.grad, e.size = p.arrays.size, e.step = p.step;
      e.first = p.arrays.first, e.second = p.arrays.second, e.third = p.arrays.third;
      std::copy(std::begin(p.factors), std::end(p.factors), e.factors);
      many.tensor_blocks.add((p.arrays.size + kPiece - 1) / kPiece);
    }
    for_each_block(at, many.tensor_blocks.blocks(), kernel);
  }
}

template <class S>
struct Step {
  DeviceOptimizer o;
  RL_BOTH void operator()(StepArrays arrays, const float* step, Strided e) const {
    namespace steps = cpu::steps;
    if (o.found_inf && *o.found_inf != 0) return;
    if (o.grad_scale) steps::unscale<S>(arrays, static_cast<double>(*o.grad_scale), e);
    if (o.kind == DeviceOptimizer::Kind::Sgd) return steps::sgd<S>(arrays, o.sgd, e);
    if (o.kind == DeviceOptimizer::Kind::Adam) {
      if (step) {
        arrays.correction1 = 1 - std::pow(o.adam.beta1, static_cast<double>(*step));
        arrays.correction2 = 1 - std::pow(o.adam.beta2, static_cast<double>(*step));
      }
      return steps::adam<S>(arrays, o.adam, e);
    }
    using Rules = steps::Rules<S, Strided>;
    switch (o.update.rule) {
      case cpu::UpdateRule::Adagrad:
        return Rules::adagrad(arrays, o.update, e);
      case cpu::UpdateRule::RMSprop:
        return Rules::rmsprop(arrays, o.update, e);
      case cpu::UpdateRule::Adadelta:
        return Rules::adadelta(arrays, o.update, e);
      case cpu::UpdateRule::Adamax:
        return Rules::adamax(arrays, o.update, e);
      case cpu::UpdateRule::NAdam:
        return Rules::nadam(arrays, o.update, e);
      case cpu::UpdateRule::RAdam:
        return Rules::radam(arrays, o.update, e);
      case cpu::UpdateRule::ASGD:
        return Rules::asgd(arrays, o.update, e);
      case cpu::UpdateRule::Rprop:
        return Rules::rprop(arrays, o.update, e);
    }
  }
};

template <class S>
struct Unscale {
  const float* inverse;
  float* found_inf;
  RL_BOTH void operator()(const StepArrays& arrays, const float*, Strided e) const {
    using C = ComputeOf<S>;
    S* grad = static_cast<S*>(arrays.grad);
    const C by = static_cast<C>(*inverse);
    bool wrong = false;
    for (int64_t i = e.begin; i < e.end; i += e.step) {
      const C g = number<C>(grad[i]);
      wrong |= !(g - g == C(0));  // infinite, or NaN
      grad[i] = number<S>(by == C(1) ? g : g * by);
    }
    if (wrong) *found_inf = 1;  // all who write it write the same
  }
};

}  // namespace

void optimizer_step(int device, DType dtype, const DeviceOptimizer& options,
                    std::span<const DeviceStep> params) {
  visit_floating(dtype, [&](auto tag) {
    over_many({device, "optimizer"}, params, Step<typename decltype(tag)::type>{options});
  });
}

void unscale(int device, DType dtype, std::span<const DeviceStep> grads, const float* inverse,
             float* found_inf) {
  visit_floating(dtype, [&](auto tag) {
    over_many({device, "unscale"}, grads, Unscale<typename decltype(tag)::type>{inverse, found_inf});
  });
}

}  // namespace rushlight::cuda
