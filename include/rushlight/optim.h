// Optimizers with parameter groups, and learning-rate schedulers.
#pragma once
#include "rushlight/optim_state.h"

namespace rushlight::optim {

// The options of one group. They are held by value behind this base, so that groups may differ.
class OptimizerOptions {
 public:
  virtual ~OptimizerOptions() = default;
  virtual std::unique_ptr<OptimizerOptions> clone() const = 0;
  virtual double get_lr() const = 0;
  virtual void set_lr(double lr) = 0;
  // As the entries of Python's param_groups.
  virtual IValue::Dict to_dict() const = 0;
  virtual void from_dict(const IValue& dict) = 0;
};
bool operator==(const OptimizerOptions& a, const OptimizerOptions& b);  // of one class, with equal values

class OptimizerParamGroup {
 public:
  OptimizerParamGroup(std::vector<Tensor> params) : params_(std::move(params)) {}
  OptimizerParamGroup(std::vector<Tensor> params, std::unique_ptr<OptimizerOptions> options)
      : params_(std::move(params)), options_(std::move(options)) {}
  OptimizerParamGroup(const OptimizerParamGroup& o)
      : params_(o.params_), options_(o.options_ ? o.options_->clone() : nullptr) {}
  bool has_options() const { return options_ != nullptr; }
  OptimizerOptions& options() { return *options_; }
  const OptimizerOptions& options() const { return *options_; }
  void set_options(std::unique_ptr<OptimizerOptions> options) { options_ = std::move(options); }
  std::vector<Tensor>& params() { return params_; }
  const std::vector<Tensor>& params() const { return params_; }

 private:
  std::vector<Tensor> params_;
  std::unique_ptr<OptimizerOptions> options_;
};

class Optimizer {
 public:
  using LossClosure = std::function<Tensor()>;
  Optimizer(std::vector<OptimizerParamGroup> groups, std::unique_ptr<OptimizerOptions> defaults);
  Optimizer(const Optimizer&) = delete;
  virtual ~Optimizer() = default;

  void add_param_group(const OptimizerParamGroup& group);
  void zero_grad(bool set_to_none = true);
  virtual Tensor step(LossClosure closure = nullptr) = 0;
  std::vector<OptimizerParamGroup>& param_groups() { return param_groups_; }
  const std::vector<OptimizerParamGroup>& param_groups() const { return param_groups_; }
  const OptimizerOptions& defaults() const { return *defaults_; }
  OptimizerOptions& defaults() { return *defaults_; }
  // By the parameter: *optimizer.state()[parameter.unsafeGetTensorImpl()]
  using State = std::unordered_map<void*, std::unique_ptr<OptimizerParamState>>;
  State& state() { return state_; }
  const State& state() const { return state_; }
  // More parameters of the first group.
  void add_parameters(const std::vector<Tensor>& parameters);
  const std::vector<Tensor>& parameters() const { return param_groups_[0].params(); }
  size_t size() const;
  // Python's optimizer.state_dict(): {"state": {0: {...}}, "param_groups": [...]}.
  virtual void save(serialize::OutputArchive& archive) const;
  virtual void load(serialize::InputArchive& archive);

 protected:
  static Tensor run(const LossClosure& closure);
  // An empty state of this optimizer's own class, for `load`.
  virtual std::unique_ptr<OptimizerParamState> new_state() const;
  // The state of a parameter, made if need be.
  template <class T>
  T& state_of(const Tensor& parameter) {
    auto& slot = state_[parameter.impl()];
    if (!slot) slot = std::make_unique<T>();
    return static_cast<T&>(*slot);
  }
  std::vector<OptimizerParamGroup> param_groups_;
  State state_;
  std::unique_ptr<OptimizerOptions> defaults_;
};
serialize::OutputArchive& operator<<(serialize::OutputArchive& archive, const Optimizer& optimizer);
serialize::InputArchive& operator>>(serialize::InputArchive& archive, Optimizer& optimizer);

// What options of an optimizer of one's own derive from:
// struct MyOptions : OptimizerCloneableOptions<MyOptions> { TORCH_ARG(double, lr) = 0.1; };
template <class Derived>
class OptimizerCloneableOptions : public OptimizerOptions {
 public:
  std::unique_ptr<OptimizerOptions> clone() const override { return std::make_unique<Derived>(self()); }
  double get_lr() const override {
    if constexpr (kHasRate) return self().lr();
    RL_FAIL("get_lr(): these options have no learning rate");
  }
  void set_lr(double lr) override {
    if constexpr (kHasRate)
      static_cast<Derived&>(*this).lr(lr);
    else
      RL_FAIL("set_lr(): these options have no learning rate");
  }
  IValue::Dict to_dict() const override {
    IValue::Dict dict;
    if constexpr (kHasRate) dict.emplace_back(IValue("lr"), IValue(get_lr()));
    return dict;
  }
  void from_dict(const IValue& dict) override {
    if constexpr (kHasRate)
      if (const IValue* lr = dict.find("lr")) set_lr(lr->toDouble());
  }

 private:
  static constexpr bool kHasRate = requires(const Derived& d) { d.lr(); };
  const Derived& self() const { return static_cast<const Derived&>(*this); }
};

// The options of the library's own optimizers, which are saved whole.
template <class Derived>
class CloneableOptions : public OptimizerCloneableOptions<Derived> {
 public:
  IValue::Dict to_dict() const override;
  void from_dict(const IValue& dict) override;
};

struct SGDOptions : CloneableOptions<SGDOptions> {
  SGDOptions(double lr) : lr_(lr) {}
  TORCH_ARG(double, lr);
  TORCH_ARG(double, momentum) = 0;
  TORCH_ARG(double, dampening) = 0;
  TORCH_ARG(double, weight_decay) = 0;
  TORCH_ARG(bool, nesterov) = false;
  TORCH_ARG(bool, maximize) = false;
};
struct AdamOptions : CloneableOptions<AdamOptions> {
  AdamOptions(double lr = 1e-3) : lr_(lr) {}
  using Betas = std::tuple<double, double>;
  TORCH_ARG(double, lr);
  TORCH_ARG(Betas, betas) = std::make_tuple(0.9, 0.999);
  TORCH_ARG(double, eps) = 1e-8;
  TORCH_ARG(double, weight_decay) = 0;
  TORCH_ARG(bool, amsgrad) = false;
  TORCH_ARG(bool, maximize) = false;
};
struct AdamWOptions : CloneableOptions<AdamWOptions> {
  AdamWOptions(double lr = 1e-3) : lr_(lr) {}
  using Betas = std::tuple<double, double>;
  TORCH_ARG(double, lr);
  TORCH_ARG(Betas, betas) = std::make_tuple(0.9, 0.999);
  TORCH_ARG(double, eps) = 1e-8;
  TORCH_ARG(double, weight_decay) = 1e-2;
  TORCH_ARG(bool, amsgrad) = false;
  TORCH_ARG(bool, maximize) = false;
};
struct AdagradOptions : CloneableOptions<AdagradOptions> {
  AdagradOptions(double lr = 1e-2) : lr_(lr) {}
  TORCH_ARG(double, lr);
  TORCH_ARG(double, lr_decay) = 0;
  TORCH_ARG(double, weight_decay) = 0;
  TORCH_ARG(double, initial_accumulator_value) = 0;
  TORCH_ARG(double, eps) = 1e-10;
};
struct RMSpropOptions : CloneableOptions<RMSpropOptions> {
  RMSpropOptions(double lr = 1e-2) : lr_(lr) {}
  TORCH_ARG(double, lr);
  TORCH_ARG(double, alpha) = 0.99;
  TORCH_ARG(double, eps) = 1e-8;
  TORCH_ARG(double, weight_decay) = 0;
  TORCH_ARG(double, momentum) = 0;
  TORCH_ARG(bool, centered) = false;
};
struct LBFGSOptions : CloneableOptions<LBFGSOptions> {
  LBFGSOptions(double lr = 1) : lr_(lr) {}
  TORCH_ARG(double, lr);
  TORCH_ARG(int64_t, max_iter) = 20;
  TORCH_ARG(std::optional<int64_t>, max_eval) = std::nullopt;
  TORCH_ARG(double, tolerance_grad) = 1e-7;
  TORCH_ARG(double, tolerance_change) = 1e-9;
  TORCH_ARG(int64_t, history_size) = 100;
  TORCH_ARG(std::optional<std::string>, line_search_fn) = std::nullopt;  // or "strong_wolfe"
};

#define RL_OPTIMIZER(Name, ...)                                                                \
  class Name : public Optimizer {                                                              \
   public:                                                                                     \
    explicit Name(std::vector<OptimizerParamGroup> groups, Name##Options defaults __VA_ARGS__) \
        : Optimizer(std::move(groups), std::make_unique<Name##Options>(defaults)) {}           \
    explicit Name(std::vector<Tensor> params, Name##Options defaults __VA_ARGS__)              \
        : Name(std::vector<OptimizerParamGroup>{OptimizerParamGroup(std::move(params))},       \
               std::move(defaults)) {}                                                         \
    Tensor step(LossClosure closure = nullptr) override;                                       \
                                                                                               \
   protected:                                                                                  \
    std::unique_ptr<OptimizerParamState> new_state() const override {                          \
      return std::make_unique<Name##ParamState>();                                             \
    }                                                                                          \
  }
RL_OPTIMIZER(SGD);
RL_OPTIMIZER(Adam, = {});
RL_OPTIMIZER(AdamW, = {});
RL_OPTIMIZER(RMSprop, = {});
#undef RL_OPTIMIZER

class Adagrad : public Optimizer {
 public:
  explicit Adagrad(std::vector<OptimizerParamGroup> groups, AdagradOptions defaults = {});
  explicit Adagrad(std::vector<Tensor> params, AdagradOptions defaults = {})
      : Adagrad(std::vector<OptimizerParamGroup>{OptimizerParamGroup(std::move(params))},
                std::move(defaults)) {}
  Tensor step(LossClosure closure = nullptr) override;

 protected:
  std::unique_ptr<OptimizerParamState> new_state() const override {
    return std::make_unique<AdagradParamState>();
  }

 private:
  AdagradParamState& started(const Tensor& parameter, const AdagradOptions& options);
};

// All parameters are one vector; a step takes a closure that evaluates the model again.
class LBFGS : public Optimizer {
 public:
  explicit LBFGS(std::vector<OptimizerParamGroup> groups, LBFGSOptions defaults = {});
  explicit LBFGS(std::vector<Tensor> params, LBFGSOptions defaults = {});
  Tensor step(LossClosure closure) override;

 protected:
  std::unique_ptr<OptimizerParamState> new_state() const override {
    return std::make_unique<LBFGSParamState>();
  }

 private:
  LBFGSParamState& memory() { return state_of<LBFGSParamState>(parameters().at(0)); }
  Tensor gradient() const;
  void move(double distance, const Tensor& direction);
  void remember(const Tensor& change, const Tensor& step);
  Tensor next_direction(const Tensor& gradient);
  double search(const LossClosure& closure, double distance, double& loss, Tensor& gradient, int64_t& calls);
};

class LRScheduler {
 public:
  explicit LRScheduler(Optimizer& optimizer);
  virtual ~LRScheduler() = default;
  void step();

 protected:
  virtual std::vector<double> get_lrs() = 0;
  std::vector<double> get_current_lrs() const;
  Optimizer& optimizer_;
  std::vector<double> base_lrs_;
  unsigned step_count_ = 0;
};
class StepLR : public LRScheduler {
 public:
  StepLR(Optimizer& optimizer, unsigned step_size, double gamma = 0.1)
      : LRScheduler(optimizer), step_size_(step_size), gamma_(gamma) {}

 private:
  std::vector<double> get_lrs() override;
  unsigned step_size_;
  double gamma_;
};
class ExponentialLR : public LRScheduler {
 public:
  ExponentialLR(Optimizer& optimizer, double gamma) : LRScheduler(optimizer), gamma_(gamma) {}

 private:
  std::vector<double> get_lrs() override;
  double gamma_;
};
class CosineAnnealingLR : public LRScheduler {
 public:
  CosineAnnealingLR(Optimizer& optimizer, unsigned t_max, double eta_min = 0)
      : LRScheduler(optimizer), t_max_(t_max), eta_min_(eta_min) {}

 private:
  std::vector<double> get_lrs() override;
  unsigned t_max_;
  double eta_min_;
};
class LambdaLR : public LRScheduler {
 public:
  LambdaLR(Optimizer& optimizer, std::function<double(unsigned)> factor)
      : LRScheduler(optimizer), factor_(std::move(factor)) {}

 private:
  std::vector<double> get_lrs() override;
  std::function<double(unsigned)> factor_;
};

class ReduceLROnPlateauScheduler {
 public:
  enum SchedulerMode { min, max };
  enum ThresholdMode { rel, abs };
  ReduceLROnPlateauScheduler(Optimizer& optimizer, SchedulerMode mode = min, float factor = 0.1f,
                             int patience = 10, double threshold = 1e-4, ThresholdMode threshold_mode = rel,
                             int cooldown = 0, const std::vector<float>& min_lr = {}, double eps = 1e-8,
                             bool verbose = false);
  void step(float metric);

 private:
  bool is_better(float metric) const;
  Optimizer& optimizer_;
  SchedulerMode mode_;
  float factor_;
  int patience_;
  double threshold_;
  ThresholdMode threshold_mode_;
  int cooldown_;
  std::vector<float> min_lr_;
  double eps_;
  float best_;
  int bad_ = 0, cooling_ = 0;
};

}  // namespace rushlight::optim
