// Steps of optimizers for many parameters in one launch: a block takes a piece of one of them. What happens
// to an element is the host's code (cpu/optimizer_steps.h).
#include <algorithm>

#include "cpu/optimizer_steps.h"
#include "cuda/channels.h"
#include "cuda/layers.h"
#include "cuda/memory.h"
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

// The elements of a thread as packs where all arrays begin at one: reads of 16 bytes keep the memory busy.
template <class S>
struct InPacks : Strided {
  int64_t start;  // of the block's piece
  bool aligned;

  // Moves whole packs for cpu/optimizer_steps.h. The first of the thread's elements that are left.
  template <int kStates, class Move>
  RL_BOTH int64_t in_pairs(const StepArrays& arrays, const Move& moved) const {
    using C = ComputeOf<S>;
    using P = Pack<S, kPack>;
    if (!aligned) return begin;
    const int64_t packs = (end - start) / kPack, thread = begin - start;
    P* const param = reinterpret_cast<P*>(static_cast<S*>(arrays.param) + start);
    const P* const grad = reinterpret_cast<const P*>(static_cast<const S*>(arrays.grad) + start);
    P* const first = reinterpret_cast<P*>(static_cast<S*>(arrays.first) + start);
    P* const second = reinterpret_cast<P*>(static_cast<S*>(arrays.second) + start);
    P* const third = reinterpret_cast<P*>(static_cast<S*>(arrays.third) + start);
    for (int64_t i = thread; i < packs; i += step) {
      P p = param[i], a, b, c;
      const P g = grad[i];
      if constexpr (kStates & 1) a = first[i];
      if constexpr (kStates & 2) b = second[i];
      if constexpr (kStates & 4) c = third[i];
      RL_UNROLL for (int k = 0; k < kPack; ++k) {
        C x{}, y{}, z{};
        if constexpr (kStates & 1) x = number<C>(a.v[k]);
        if constexpr (kStates & 2) y = number<C>(b.v[k]);
        if constexpr (kStates & 4) z = number<C>(c.v[k]);
        p.v[k] = number<S>(moved(number<C>(p.v[k]), number<C>(g.v[k]), x, y, z));
        if constexpr (kStates & 1) a.v[k] = number<S>(x);
        if constexpr (kStates & 2) b.v[k] = number<S>(y);
        if constexpr (kStates & 4) c.v[k] = number<S>(z);
      }
      param[i] = p;
      if constexpr (kStates & 1) first[i] = a;
      if constexpr (kStates & 2) second[i] = b;
      if constexpr (kStates & 4) third[i] = c;
    }
    return start + packs * kPack + thread;
  }
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
RL_BOTH bool begins_packs(const StepArrays& a) {
  uintptr_t bits = 0;
  for (const void* p : {a.param, a.grad, a.first, a.second, a.third}) bits |= reinterpret_cast<uintptr_t>(p);
  return bits % alignof(Pack<S, kPack>) == 0;
}

// Each kind is a kernel of its own: the registers of one would keep threads of another from running.
template <class S, DeviceOptimizer::Kind kind>
struct Step {
  DeviceOptimizer o;
  RL_BOTH void operator()(StepArrays arrays, const float* step, Strided own) const {
    namespace steps = cpu::steps;
    using Kind = DeviceOptimizer::Kind;
    if (o.found_inf && *o.found_inf != 0) return;
    if (o.grad_scale) steps::unscale<S>(arrays, static_cast<double>(*o.grad_scale), own);
    // Unscaling leaves elements to their threads one by one.
    const InPacks<S> e{own, own.begin / kPiece * kPiece, !o.grad_scale && begins_packs<S>(arrays)};
    if constexpr (kind == Kind::Sgd) return steps::sgd<S>(arrays, o.sgd, e);
    if constexpr (kind == Kind::Adam) {
      if (step) {
        arrays.correction1 = 1 - std::pow(o.adam.beta1, static_cast<double>(*step));
        arrays.correction2 = 1 - std::pow(o.adam.beta2, static_cast<double>(*step));
      }
      return steps::adam<S>(arrays, o.adam, e);
    }
    if constexpr (kind == Kind::Update) return update(arrays, e);
  }
  RL_BOTH void update(const StepArrays& arrays, const InPacks<S>& e) const {
    using Rules = cpu::steps::Rules<S, InPacks<S>>;
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
    using S = typename decltype(tag)::type;
    using Kind = DeviceOptimizer::Kind;
    const Launch at{device, "optimizer"};
    if (options.kind == Kind::Sgd) return over_many(at, params, Step<S, Kind::Sgd>{options});
    if (options.kind == Kind::Adam) return over_many(at, params, Step<S, Kind::Adam>{options});
    over_many(at, params, Step<S, Kind::Update>{options});
  });
}

void unscale(int device, DType dtype, std::span<const DeviceStep> grads, const float* inverse,
             float* found_inf) {
  visit_floating(dtype, [&](auto tag) {
    over_many({device, "unscale"}, grads, Unscale<typename decltype(tag)::type>{inverse, found_inf});
  });
}

}  // namespace rushlight::cuda
