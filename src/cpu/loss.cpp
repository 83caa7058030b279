#include "cpu/loss.h"

#include <algorithm>

#include "core/parallel.h"

namespace rushlight::cpu {

namespace {

// Calls f(index of the target, index of its log probability, class) for targets [begin, end) that count.
template <class F>
void for_targets(const NllPlan& p, int64_t begin, int64_t end, F&& f) {
  int64_t n = begin / p.inner, s = begin % p.inner;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t c = p.target[i];
    if (c != p.ignored) f(i, (n * p.classes + c) * p.inner + s, c);
    if (++s == p.inner) s = 0, ++n;
  }
}

template <class T>
double weight_of(const NllPlan& p, int64_t c) {
  return p.weight ? static_cast<double>(static_cast<compute_type<T>>(static_cast<const T*>(p.weight)[c]))
                  : 1.0;
}

// The sums of targets [begin, end) without weights, to four sums, which do not wait for each other. Targets
// that do not count read the first class.
template <class T>
NllSums unweighted_sums(const NllPlan& p, const T* x, int64_t begin, int64_t end) {
  constexpr int64_t kSums = 4;
  double sums[kSums] = {};
  int64_t counted = 0;
  // The score of target i is at scores[i * step + class * inner].
  const auto add_run = [&, ignored = p.ignored, inner = p.inner, target = p.target](
                           const T* scores, int64_t step, int64_t first, int64_t last) {
    const auto add = [&](int64_t i, double& sum) {
      const bool counts = target[i] != ignored;
      const T score = scores[i * step + (counts ? target[i] : 0) * inner];
      sum -= counts ? static_cast<double>(static_cast<compute_type<T>>(score)) : 0.0;
      counted += counts;
    };
    int64_t i = first;
    for (; i + kSums <= last; i += kSums)
      for (int64_t k = 0; k < kSums; ++k) add(i + k, sums[k]);
    for (; i < last; ++i) add(i, sums[0]);
  };
  if (p.inner == 1) {
    add_run(x, p.classes, begin, end);
  } else {
    for (int64_t i = begin; i < end;) {
      const int64_t n = i / p.inner, last = std::min(end, (n + 1) * p.inner);
      add_run(x + n * (p.classes - 1) * p.inner, 1, i, last);
      i = last;
    }
  }
  return {(sums[0] + sums[1]) + (sums[2] + sums[3]), static_cast<double>(counted)};
}

constexpr int64_t kTargetGrain = kGrainSize / 8;

}  // namespace

void check_targets(const NllPlan& p) {
  const auto fits = [&](int64_t c) {
    return (static_cast<uint64_t>(c) < static_cast<uint64_t>(p.classes)) | (c == p.ignored);
  };
  const int64_t *begin = p.target, *end = begin + p.batch * p.inner;
  bool all = true;
  for (const int64_t* c = begin; c != end; ++c) all &= fits(*c);
  if (all) return;
  RL_CHECK_INDEX(false, "Target ", *std::find_if_not(begin, end, fits), " is out of bounds.");
}

void nll_each(const NllPlan& p, DType dtype, const void* log_probabilities, void* losses) {
  visit_dtype(FloatTypes{}, dtype, "nll_loss_out_frame", [&](auto tag) {
    using T = decltype(tag);
    using C = compute_type<T>;
    const T* x = static_cast<const T*>(log_probabilities);
    T* out = static_cast<T*>(losses);
    parallel_for(0, p.batch * p.inner, kTargetGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) out[i] = T(0);
      for_targets(p, begin, end, [&](int64_t i, int64_t at, int64_t c) {
        out[i] = T(-static_cast<C>(x[at]) * static_cast<C>(weight_of<T>(p, c)));
      });
    });
  });
}

NllSums nll_sums(const NllPlan& p, DType dtype, const void* log_probabilities) {
  NllSums sums;
  visit_dtype(FloatTypes{}, dtype, "nll_loss_out_frame", [&](auto tag) {
    using T = decltype(tag);
    const T* x = static_cast<const T*>(log_probabilities);
    auto piece = [&](int64_t begin, int64_t end) {
      if (!p.weight && p.classes > 0) return unweighted_sums(p, x, begin, end);
      NllSums s;
      for_targets(p, begin, end, [&](int64_t, int64_t at, int64_t c) {
        const double w = weight_of<T>(p, c);
        s.loss -= static_cast<double>(static_cast<compute_type<T>>(x[at])) * w;
        s.weight += w;
      });
      return s;
    };
    sums = parallel_reduce(0, p.batch * p.inner, kTargetGrain, NllSums{}, piece, [](NllSums a, NllSums b) {
      return NllSums{a.loss + b.loss, a.weight + b.weight};
    });
  });
  return sums;
}

void nll_backward(const NllPlan& p, DType dtype, const void* grad, bool grad_each, double scale,
                  void* grad_in) {
  visit_dtype(FloatTypes{}, dtype, "nll_loss_backward_out_frame", [&](auto tag) {
    using T = decltype(tag);
    using C = compute_type<T>;
    const T* g = static_cast<const T*>(grad);
    T* out = static_cast<T*>(grad_in);
    parallel_for(0, p.batch * p.inner, kTargetGrain, [&](int64_t begin, int64_t end) {
      for_targets(p, begin, end, [&](int64_t i, int64_t at, int64_t c) {
        out[at] = T(static_cast<C>(-weight_of<T>(p, c) * scale *
                                   static_cast<double>(static_cast<C>(g[grad_each ? i : 0]))));
      });
    });
  });
}

}  // namespace rushlight::cpu
