// L-BFGS (Liu and Nocedal, 1989), with a line search for the strong Wolfe conditions.
#include <cmath>

#include "rushlight/autograd.h"
#include "rushlight/optim.h"

namespace rushlight::optim {
namespace {

// A point on the search line: its distance, the loss, the gradient, and the slope along the line.
struct Point {
  double distance, loss;
  Tensor gradient;
  double slope;
};
using Evaluate = std::function<Point(double distance)>;

// Where the cubic through two points with their slopes is least, within bounds; else their middle.
double cubic_minimum(const Point& a, const Point& b, double near, double far) {
  const double d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.distance - b.distance);
  const double square = d1 * d1 - a.slope * b.slope;
  if (!(square >= 0)) return (near + far) / 2;
  const Point &left = a.distance <= b.distance ? a : b, &right = a.distance <= b.distance ? b : a;
  const double d2 = std::sqrt(square);
  const double at = right.distance - (right.distance - left.distance) *
                                         ((right.slope + d2 - d1) / (right.slope - left.slope + 2 * d2));
  return std::min(std::max(at, near), far);
}

// Nocedal and Wright, algorithms 3.5 and 3.6.
class StrongWolfe {
 public:
  StrongWolfe(const Evaluate& evaluate, Point start, double longest)
      : evaluate_(evaluate), start_(std::move(start)), longest_(longest) {}

  // Walks outwards until two points hold a good one between them, then shrinks the bracket.
  Point run(double distance) {
    Point previous = start_, point = at(distance);
    for (int outward = 0; tries_ < kTries; ++outward) {
      if (too_high(point) || (outward > 1 && point.loss >= previous.loss) ||
          (!flat_enough(point) && point.slope >= 0))
        return shrink(previous, point);
      if (flat_enough(point)) return point;
      const double next = cubic_minimum(
          previous, point, point.distance + 0.01 * (point.distance - previous.distance), point.distance * 10);
      previous = std::move(point);
      point = at(next);
    }
    return shrink(start_, point);
  }
  int64_t calls() const { return tries_ + 1; }

 private:
  static constexpr int kTries = 25;

  Point at(double distance) {
    tries_ += started_;
    started_ = true;
    return evaluate_(distance);
  }
  bool too_high(const Point& p) const { return p.loss > start_.loss + 1e-4 * p.distance * start_.slope; }
  bool flat_enough(const Point& p) const { return std::fabs(p.slope) <= -0.9 * start_.slope; }

  Point shrink(Point low, Point high) {
    bool stuck = false;
    if (low.loss > high.loss) std::swap(low, high);
    while (tries_ < kTries) {
      const auto [near, far] = std::minmax(low.distance, high.distance);
      if ((far - near) * longest_ < 1e-9) break;
      Point point = at(inwards(cubic_minimum(low, high, near, far), near, far, stuck));
      if (too_high(point) || point.loss >= low.loss) {
        high = std::move(point);
        if (low.loss > high.loss) std::swap(low, high);
        continue;
      }
      if (flat_enough(point)) return point;
      if (point.slope * (high.distance - low.distance) >= 0) high = low;
      low = std::move(point);
    }
    return low;
  }
  // Two points in a row close to an end of the bracket mean that it hardly shrinks: one step inwards.
  static double inwards(double at, double near, double far, bool& stuck) {
    const double margin = 0.1 * (far - near);
    const bool close = std::min(far - at, at - near) < margin;
    if (close && (stuck || at >= far || at <= near)) {
      stuck = false;
      return std::fabs(at - far) < std::fabs(at - near) ? far - margin : near + margin;
    }
    stuck = close;
    return at;
  }

  const Evaluate& evaluate_;
  const Point start_;
  const double longest_;
  int tries_ = 0;
  bool started_ = false;
};

double largest(const Tensor& t) { return t.abs().max().item<double>(); }

}  // namespace

LBFGS::LBFGS(std::vector<OptimizerParamGroup> groups, LBFGSOptions defaults)
    : Optimizer(std::move(groups), std::make_unique<LBFGSOptions>(defaults)) {
  RL_CHECK(param_groups_.size() == 1, "LBFGS doesn't support per-parameter options (parameter groups)");
  RL_CHECK(!defaults.line_search_fn() || *defaults.line_search_fn() == "strong_wolfe",
           "only 'strong_wolfe' is supported");
}
LBFGS::LBFGS(std::vector<Tensor> params, LBFGSOptions defaults)
    : LBFGS(std::vector<OptimizerParamGroup>{OptimizerParamGroup(std::move(params))}, std::move(defaults)) {}

Tensor LBFGS::gradient() const {
  std::vector<Tensor> parts;
  for (const Tensor& p : parameters())
    parts.push_back((p.grad().defined() ? p.grad() : zeros_like(p)).reshape(-1));
  return cat(parts);
}

void LBFGS::move(double distance, const Tensor& direction) {
  int64_t at = 0;
  for (Tensor p : parameters()) {
    p.add_(direction.narrow(0, at, p.numel()).view_as(p), distance);
    at += p.numel();
  }
}

void LBFGS::remember(const Tensor& change, const Tensor& step) {
  const double product = change.dot(step).item<double>();
  if (product <= 1e-10) return;  // curvature that would make the Hessian indefinite
  const auto most = static_cast<const LBFGSOptions&>(param_groups_[0].options()).history_size();
  LBFGSParamState& m = memory();
  for (auto* history : {&m.old_dirs(), &m.old_stps(), &m.ro()})
    if (static_cast<int64_t>(history->size()) == most) history->erase(history->begin());
  m.old_dirs().push_back(change);
  m.old_stps().push_back(step);
  m.ro().push_back(tensor(1.0 / product, change.options()));
  m.H_diag(tensor(product / change.dot(change).item<double>(), change.options()));
}

// The gradient times the inverse Hessian, by the two-loop recursion.
Tensor LBFGS::next_direction(const Tensor& gradient) {
  LBFGSParamState& m = memory();
  if (++m.n_iter() == 1) return gradient.neg();
  remember(gradient - m.prev_flat_grad(), m.d() * m.t());
  const std::deque<Tensor>&changes = m.old_dirs(), &steps = m.old_stps();
  std::vector<Tensor> weights(changes.size());
  Tensor q = gradient.neg();
  for (size_t i = changes.size(); i-- > 0;) {
    weights[i] = steps[i].dot(q) * m.ro()[i];
    q = q - changes[i] * weights[i];
  }
  Tensor r = m.H_diag().defined() ? q * m.H_diag() : q;
  for (size_t i = 0; i < changes.size(); ++i) r = r + steps[i] * (weights[i] - changes[i].dot(r) * m.ro()[i]);
  m.al(weights);
  return r;
}

// Moves to a point that satisfies the conditions; answers its distance.
double LBFGS::search(const LossClosure& closure, double distance, double& loss, Tensor& gradient_here,
                     int64_t& calls) {
  std::vector<Tensor> before;
  for (const Tensor& p : parameters()) before.push_back(p.clone());
  const Tensor& direction = memory().d();
  const Evaluate evaluate = [&](double t) {
    move(t, direction);
    const double there = run(closure).item<double>();
    const Tensor g = gradient();
    for (size_t i = 0; i < before.size(); ++i) Tensor(parameters()[i]).copy_(before[i]);
    return Point{t, there, g, g.dot(direction).item<double>()};
  };
  StrongWolfe line(evaluate, {0, loss, gradient_here, gradient_here.dot(direction).item<double>()},
                   largest(direction));
  const Point found = line.run(distance);
  calls = line.calls();
  move(found.distance, direction);
  loss = found.loss;
  gradient_here = found.gradient;
  return found.distance;
}

Tensor LBFGS::step(LossClosure closure) {
  RL_CHECK(closure, "LBFGS requires a closure function");
  NoGradGuard no_grad;
  const auto& o = static_cast<const LBFGSOptions&>(param_groups_[0].options());
  const Tensor first_loss = run(closure);
  LBFGSParamState& m = memory();
  double loss = first_loss.item<double>();
  Tensor g = gradient();
  ++m.func_evals();
  if (largest(g) <= o.tolerance_grad()) return first_loss;
  const int64_t most = o.max_eval().value_or(o.max_iter() * 5 / 4);
  int64_t evaluations = 1;
  for (int64_t i = 1; i <= o.max_iter(); ++i) {
    m.d(next_direction(g));
    m.prev_flat_grad(g.clone());
    m.prev_loss(loss);
    m.t(o.lr() * (m.n_iter() == 1 ? std::min(1.0, 1.0 / g.abs().sum().item<double>()) : 1.0));
    if (g.dot(m.d()).item<double>() > -o.tolerance_change()) break;
    int64_t calls = 1;
    if (o.line_search_fn()) {
      m.t(search(closure, m.t(), loss, g, calls));
    } else {
      move(m.t(), m.d());
      if (i == o.max_iter()) break;
      loss = run(closure).item<double>();
      g = gradient();
    }
    evaluations += calls;
    m.func_evals(m.func_evals() + calls);
    if (evaluations >= most || largest(g) <= o.tolerance_grad() ||
        largest(m.d() * m.t()) <= o.tolerance_change() ||
        std::fabs(loss - m.prev_loss()) < o.tolerance_change())
      break;
  }
  return first_loss;
}

}  // namespace rushlight::optim
