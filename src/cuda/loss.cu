// The negative log likelihood of target classes.
#include "cuda/channels.h"
#include "cuda/layers.h"

namespace rushlight::cuda {
namespace {

// What a target says of the element it points at; `weight` is 0 where it is ignored.
template <class C>
struct Chosen {
  int64_t offset;
  C weight;
};
template <class S, class C>
struct Targets {
  const int64_t* target;
  const S* weights;
  int64_t classes, inner, ignored;
  RL_BOTH Chosen<C> operator()(int64_t at) const {
    const int64_t t = target[at], batch = quotient(at, inner), i = at - batch * inner;
    if (t == ignored) return {-1, C(0)};
    device_assert(t >= 0 && t < classes, "target out of bounds");
    return {(batch * classes + t) * inner + i, weights ? number<C>(weights[t]) : C(1)};
  }
};

template <class S, class C>
struct Each {
  Targets<S, C> targets;
  const S* x;
  S* losses;
  RL_BOTH void operator()(int64_t at) const {
    const Chosen<C> chosen = targets(at);
    losses[at] = number<S>(chosen.offset < 0 ? C(0) : -chosen.weight * number<C>(x[chosen.offset]));
  }
};

// Both sums, of one channel whose elements are the targets.
template <class S, class C>
struct LossSums : ChannelOperation<LossSums<S, C>, Two<C>, AddTwo> {
  Targets<S, C> targets;
  const S* x;
  S *loss, *total_weight;
  bool mean;
  template <int W>
  RL_BOTH Two<C> load(int64_t at, int64_t) const {
    static_assert(W == 1);
    const Chosen<C> chosen = targets(at);
    if (chosen.offset < 0) return {C(0), C(0)};
    return {-chosen.weight * number<C>(x[chosen.offset]), chosen.weight};
  }
  RL_BOTH char context(int64_t, int64_t) const { return 0; }
  RL_BOTH void fold(Two<C>& sums, const Two<C>& item, int, char, int64_t) const {
    sums = AddTwo{}(sums, item);
  }
  RL_BOTH void finish(int64_t, const Two<C>& sums) const {
    *loss = number<S>(mean ? sums.first / sums.second : sums.first);
    *total_weight = number<S>(sums.second);
  }
};

template <class S, class C>
struct LossBackward {
  Targets<S, C> targets;
  const S *grad, *divisor;
  bool each;
  S* grad_in;
  RL_BOTH void operator()(int64_t at) const {
    const Chosen<C> chosen = targets(at);
    if (chosen.offset < 0) return;
    const C flow = -chosen.weight * number<C>(grad[each ? at : 0]);
    grad_in[chosen.offset] = number<S>(divisor ? flow / number<C>(*divisor) : flow);
  }
};

template <class S, class C>
Targets<S, C> targets_of(const cpu::NllPlan& p) {
  return {p.target, static_cast<const S*>(p.weight), p.classes, p.inner, p.ignored};
}

}  // namespace

void nll_each(int device, DType dtype, const cpu::NllPlan& p, const void* x, void* losses) {
  visit_floating(dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    using C = ComputeOf<S>;
    for_each_index({device, "nll_loss"}, p.batch * p.inner,
                   Each<S, C>{targets_of<S, C>(p), static_cast<const S*>(x), static_cast<S*>(losses)});
  });
}

void nll_sum(int device, DType dtype, const cpu::NllPlan& p, const void* x, bool mean, void* loss,
             void* total) {
  visit_floating(dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    using C = ComputeOf<S>;
    LossSums<S, C> sums;
    sums.targets = targets_of<S, C>(p), sums.x = static_cast<const S*>(x);
    sums.loss = static_cast<S*>(loss), sums.total_weight = static_cast<S*>(total), sums.mean = mean;
    Lines line;
    line.columns = 1, line.length = p.batch * p.inner;
    reduce_lines_by<1>({device, "nll_loss"}, line, sums);
  });
}

void nll_backward(int device, DType dtype, const cpu::NllPlan& p, const void* grad, bool grad_each,
                  const void* divisor, void* grad_in) {
  visit_floating(dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    using C = ComputeOf<S>;
    for_each_index({device, "nll_loss_backward"}, p.batch * p.inner,
                   LossBackward<S, C>{targets_of<S, C>(p), static_cast<const S*>(grad),
                                      static_cast<const S*>(divisor), grad_each, static_cast<S*>(grad_in)});
  });
}

}  // namespace rushlight::cuda
