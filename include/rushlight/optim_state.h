// What optimizers keep of each parameter between steps. Entries have the names of Python's state_dict.
#pragma once
#include <deque>

#include "rushlight/serialize.h"

namespace rushlight::optim {

// The base. An optimizer of one's own derives its class of state from OptimizerCloneableParamState, and
// overrides to_dict and from_dict if the state shall be saved with the optimizer.
class OptimizerParamState {
 public:
  virtual ~OptimizerParamState() = default;
  virtual std::unique_ptr<OptimizerParamState> clone() const = 0;
  // As the entries of Python's state[parameter].
  virtual IValue::Dict to_dict() const { return {}; }
  virtual void from_dict(const IValue&) {}
};
template <class Derived>
class OptimizerCloneableParamState : public OptimizerParamState {
 public:
  std::unique_ptr<OptimizerParamState> clone() const override {
    return std::make_unique<Derived>(static_cast<const Derived&>(*this));
  }
};

// Tensors by name: "momentum_buffer", "exp_avg", ...
class ParamState : public OptimizerCloneableParamState<ParamState> {
 public:
  bool contains(const std::string& name) const { return entries_.contains(name); }
  Tensor& operator[](const std::string& name) { return entries_[name]; }
  Tensor& insert(const std::string& name, Tensor value) { return entries_.insert(name, std::move(value)); }
  const OrderedDict<std::string, Tensor>& entries() const { return entries_; }
  IValue::Dict to_dict() const override;
  void from_dict(const IValue& dict) override;
  // The same entries with equal values.
  friend bool operator==(const ParamState& a, const ParamState& b);

 protected:
  Tensor& entry(const char* name) { return contains(name) ? entries_[name] : insert(name, {}); }
  const Tensor& entry(const char* name) const;
  OrderedDict<std::string, Tensor> entries_{"State"};
};

// The same under libtorch's names: state.exp_avg(), state.step().
#define RL_STATE(Name)             \
  class Name : public ParamState { \
   public:                         \
    std::unique_ptr<OptimizerParamState> clone() const override { return std::make_unique<Name>(*this); }
#define RL_STATE_TENSOR(name)                         \
  Tensor& name() { return entry(#name); }             \
  const Tensor& name() const { return entry(#name); } \
  void name(const Tensor& value) { entry(#name) = value; }
#define RL_STATE_STEP()                                 \
  int64_t step() const {                                \
    const Tensor& count = entry("step");                \
    return count.defined() ? count.item<int64_t>() : 0; \
  }                                                     \
  void step(int64_t value) { entry("step") = scalar_tensor(value, kFloat); }

RL_STATE(SGDParamState)
RL_STATE_TENSOR(momentum_buffer)
};
RL_STATE(AdamParamState)
RL_STATE_STEP()
RL_STATE_TENSOR(exp_avg)
RL_STATE_TENSOR(exp_avg_sq)
RL_STATE_TENSOR(max_exp_avg_sq)
}
;
using AdamWParamState = AdamParamState;
RL_STATE(AdagradParamState)
RL_STATE_STEP()
RL_STATE_TENSOR(sum)
}
;
RL_STATE(RMSpropParamState)
RL_STATE_STEP()
RL_STATE_TENSOR(square_avg)
RL_STATE_TENSOR(momentum_buffer)
RL_STATE_TENSOR(grad_avg)
}
;
#undef RL_STATE
#undef RL_STATE_TENSOR
#undef RL_STATE_STEP

// Of all parameters together, kept with the first: the last changes of the gradient (old_dirs) and of the
// position (old_stps), and one over their products (ro): the inverse Hessian, with H_diag on its diagonal.
class LBFGSParamState : public OptimizerCloneableParamState<LBFGSParamState> {
 public:
  TORCH_ARG(int64_t, func_evals) = 0;
  TORCH_ARG(int64_t, n_iter) = 0;
  TORCH_ARG(double, t) = 1;  // how far along d the last step went
  TORCH_ARG(double, prev_loss) = 0;
  TORCH_ARG(Tensor, d);
  TORCH_ARG(Tensor, H_diag);
  TORCH_ARG(Tensor, prev_flat_grad);
  TORCH_ARG(std::deque<Tensor>, old_dirs);
  TORCH_ARG(std::deque<Tensor>, old_stps);
  TORCH_ARG(std::deque<Tensor>, ro);
  TORCH_ARG(std::optional<std::vector<Tensor>>, al) = std::nullopt;  // the last direction's weights

 public:
  IValue::Dict to_dict() const override;
  void from_dict(const IValue& dict) override;
  friend bool operator==(const LBFGSParamState& a, const LBFGSParamState& b);
};

}  // namespace rushlight::optim
