#include "cpu/margin_loss.h"

#include <algorithm>
#include <span>
#include <vector>

#include "core/parallel.h"

namespace rushlight::cpu {
namespace {

// One row after the other, in memory that they share.
template <class T>
struct Row {
  using C = compute_type<T>;

  explicit Row(const MarginPlan& p) : plan(p), classes(p.classes), margin(static_cast<C>(p.margin)) {
    for (auto* numbers : {&values, &others, &slopes}) numbers->resize(static_cast<size_t>(classes));
  }

  void load(const T* scores, int64_t row) {
    const int64_t* first = plan.target + row * (plan.listed ? classes : 1);
    targets = {first, plan.listed ? std::find_if(first, first + classes, [](int64_t t) { return t < 0; })
                                  : first + 1};
    for (int64_t c = 0; c < classes; ++c)
      values[static_cast<size_t>(c)] = static_cast<C>(scores[row * classes + c]);
    std::fill(others.begin(), others.end(), C(1));
    for (const int64_t t : targets) others[static_cast<size_t>(t)] = C(0);
    scale = C(1) / static_cast<C>(classes);
    if (plan.weight) scale *= static_cast<C>(static_cast<const T*>(plan.weight)[*first]);
  }

  // How far class c's score, raised by the margin, is above the target's. NaN counts as not above.
  C excess(C target_score, int64_t c) const {
    const C z = margin - target_score + values[static_cast<size_t>(c)];
    return z > 0 ? z : C(0);
  }

  // Sums side by side, in an order that depends on nothing.
  static constexpr int64_t kLanes = 8;
  struct Sums {
    C at[kLanes] = {};
    C total() {
      for (int64_t n = kLanes / 2; n > 0; n /= 2)
        for (int64_t i = 0; i < n; ++i) at[i] += at[i + n];
      return at[0];
    }
  };
  // Calls f(class, its sum) for all classes, in blocks of known size.
  template <class F>
  void for_classes(F&& f) const {
    int64_t c = 0;
    for (; c + kLanes <= classes; c += kLanes)
#pragma GCC ivdep
      for (int64_t l = 0; l < kLanes; ++l) f(c + l, l);
    for (int64_t l = 0; c + l < classes; ++l) f(c + l, l);
  }

  template <bool kSquared>
  C loss() const {
    Sums sums;
    for (const int64_t t : targets) {
      const C score = values[static_cast<size_t>(t)];
      for_classes([&](int64_t c, int64_t l) {
        const C z = excess(score, c);
        sums.at[l] += others[static_cast<size_t>(c)] * (kSquared ? z * z : z);
      });
    }
    return sums.total() * scale;
  }

  template <bool kSquared>
  void backward(C grad) {
    std::fill(slopes.begin(), slopes.end(), C(0));
    for (const int64_t t : targets) {
      const C score = values[static_cast<size_t>(t)];
      Sums back;
      for_classes([&](int64_t c, int64_t l) {
        const C z = excess(score, c);
        const C slope = others[static_cast<size_t>(c)] *
                        (kSquared ? 2 * z
                         : z > 0  ? C(1)
                                  : C(0)) *
                        scale * grad;
        slopes[static_cast<size_t>(c)] += slope, back.at[l] += slope;
      });
      slopes[static_cast<size_t>(t)] -= back.total();
    }
  }

  const MarginPlan& plan;
  int64_t classes;
  C margin, scale = 0;
  std::span<const int64_t> targets;
  std::vector<C> values, others, slopes;  // others: 1 for classes that are no targets
};

// Calls f(loaded row, its number) for each.
template <class T, class F>
void for_each_row(const MarginPlan& plan, const void* scores, F&& f) {
  const int64_t grain = std::max<int64_t>(1, kGrainSize / 4 / std::max<int64_t>(1, plan.classes));
  parallel_for(0, plan.rows, grain, [&](int64_t begin, int64_t end) {
    Row<T> loaded(plan);
    for (int64_t row = begin; row < end; ++row)
      loaded.load(static_cast<const T*>(scores), row), f(loaded, row);
  });
}

}  // namespace

void check_margin_targets(const MarginPlan& plan) {
  const int64_t each = plan.listed ? plan.classes : 1;
  for (int64_t i = 0; i < plan.rows * each; ++i) {
    const int64_t least = plan.listed ? -1 : 0;
    RL_CHECK_INDEX(plan.target[i] >= least && plan.target[i] < plan.classes,
                   "target out of range: expected classes from ", least, " to ", plan.classes - 1, ", got ",
                   plan.target[i]);
  }
}

void margin_loss(const MarginPlan& plan, DType dtype, const void* scores, void* losses) {
  visit_dtype(FloatTypes{}, dtype, "margin_loss", [&]<class T>(T) {
    for_each_row<T>(plan, scores, [&](const Row<T>& loaded, int64_t row) {
      static_cast<T*>(losses)[row] =
          static_cast<T>(plan.squared ? loaded.template loss<true>() : loaded.template loss<false>());
    });
  });
}

void margin_loss_backward(const MarginPlan& plan, DType dtype, const void* grad_losses, const void* scores,
                          void* grad_scores) {
  visit_dtype(FloatTypes{}, dtype, "margin_loss", [&]<class T>(T) {
    for_each_row<T>(plan, scores, [&](Row<T>& loaded, int64_t row) {
      const auto grad = static_cast<compute_type<T>>(static_cast<const T*>(grad_losses)[row]);
      plan.squared ? loaded.template backward<true>(grad) : loaded.template backward<false>(grad);
      T* to = static_cast<T*>(grad_scores) + row * plan.classes;
      for (int64_t c = 0; c < plan.classes; ++c)
        to[c] = static_cast<T>(loaded.slopes[static_cast<size_t>(c)]);
    });
  });
}

}  // namespace rushlight::cpu
