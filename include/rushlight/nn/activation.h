// Activations.
#pragma once
#include "rushlight/nn/module.h"

namespace rushlight::nn {

namespace detail {
template <class Options>
void check(const Options&) {}
}  // namespace detail

// One option beside inplace, or none: written once, as all of these look the same.
#define RL_ACTIVATION(Name)                                                                              \
  class Name##Impl : public Cloneable<Name##Impl> {                                                      \
   public:                                                                                               \
    explicit Name##Impl(const Name##Options& options_ = {}) : options(options_) { Name##Impl::reset(); } \
    void reset() override { detail::check(options); }                                                    \
    void pretty_print(std::ostream& stream) const override;                                              \
    Tensor forward(Tensor input);                                                                        \
    Name##Options options;                                                                               \
  };                                                                                                     \
  TORCH_MODULE(Name)
#define RL_INPLACE_OPTIONS(Name)                               \
  struct Name##Options {                                       \
    Name##Options(bool inplace = false) : inplace_(inplace) {} \
    TORCH_ARG(bool, inplace);                                  \
  }
#define RL_NO_OPTIONS(Name) \
  struct Name##Options {}

RL_INPLACE_OPTIONS(ReLU);
RL_INPLACE_OPTIONS(ReLU6);
RL_INPLACE_OPTIONS(SELU);
RL_NO_OPTIONS(SiLU);
RL_NO_OPTIONS(Mish);
RL_NO_OPTIONS(Sigmoid);
RL_NO_OPTIONS(Tanh);
RL_NO_OPTIONS(Softsign);
RL_NO_OPTIONS(Tanhshrink);
RL_NO_OPTIONS(LogSigmoid);
RL_NO_OPTIONS(Hardsigmoid);
RL_NO_OPTIONS(Hardswish);
RL_NO_OPTIONS(Softmax2d);
struct GELUOptions {
  TORCH_ARG(std::string, approximate) = "none";
};
struct ELUOptions {
  TORCH_ARG(double, alpha) = 1.0;
  TORCH_ARG(bool, inplace) = false;
};
struct CELUOptions {
  TORCH_ARG(double, alpha) = 1.0;
  TORCH_ARG(bool, inplace) = false;
};
struct LeakyReLUOptions {
  TORCH_ARG(double, negative_slope) = 1e-2;
  TORCH_ARG(bool, inplace) = false;
};
struct HardtanhOptions {
  TORCH_ARG(double, min_val) = -1.0;
  TORCH_ARG(double, max_val) = 1.0;
  TORCH_ARG(bool, inplace) = false;
};
namespace detail {
inline void check(const HardtanhOptions& o) {
  RL_CHECK_VALUE(o.max_val() > o.min_val(), "max_val must be greater than min_val");
}
}  // namespace detail
struct RReLUOptions {
  TORCH_ARG(double, lower) = 1.0 / 8.0;
  TORCH_ARG(double, upper) = 1.0 / 3.0;
  TORCH_ARG(bool, inplace) = false;
};
struct HardshrinkOptions {
  HardshrinkOptions(double lambda = 0.5) : lambda_(lambda) {}
  TORCH_ARG(double, lambda);
};
struct SoftshrinkOptions {
  SoftshrinkOptions(double lambda = 0.5) : lambda_(lambda) {}
  TORCH_ARG(double, lambda);
};
struct SoftplusOptions {
  TORCH_ARG(double, beta) = 1.0;
  TORCH_ARG(double, threshold) = 20.0;
};
struct GLUOptions {
  GLUOptions(int64_t dim = -1) : dim_(dim) {}
  TORCH_ARG(int64_t, dim);
};
RL_ACTIVATION(ReLU);
RL_ACTIVATION(ReLU6);
RL_ACTIVATION(SELU);
RL_ACTIVATION(SiLU);
RL_ACTIVATION(Mish);
RL_ACTIVATION(Sigmoid);
RL_ACTIVATION(Tanh);
RL_ACTIVATION(Softsign);
RL_ACTIVATION(Tanhshrink);
RL_ACTIVATION(LogSigmoid);
RL_ACTIVATION(Hardsigmoid);
RL_ACTIVATION(Hardswish);
RL_ACTIVATION(Softmax2d);
RL_ACTIVATION(GELU);
RL_ACTIVATION(ELU);
RL_ACTIVATION(CELU);
RL_ACTIVATION(LeakyReLU);
RL_ACTIVATION(Hardtanh);
RL_ACTIVATION(RReLU);
RL_ACTIVATION(Hardshrink);
RL_ACTIVATION(Softshrink);
RL_ACTIVATION(Softplus);
RL_ACTIVATION(GLU);
#undef RL_INPLACE_OPTIONS
#undef RL_NO_OPTIONS
#undef RL_ACTIVATION

#define RL_OVER_DIM(Name)                                                     \
  struct Name##Options {                                                      \
    Name##Options(int64_t dim) : dim_(dim) {}                                 \
    TORCH_ARG(int64_t, dim);                                                  \
  };                                                                          \
  class Name##Impl : public Cloneable<Name##Impl> {                           \
   public:                                                                    \
    explicit Name##Impl(int64_t dim) : Name##Impl(Name##Options(dim)) {}      \
    explicit Name##Impl(const Name##Options& options_) : options(options_) {} \
    void reset() override {}                                                  \
    void pretty_print(std::ostream& stream) const override;                   \
    Tensor forward(const Tensor& input);                                      \
    Name##Options options;                                                    \
  };                                                                          \
  TORCH_MODULE(Name)
RL_OVER_DIM(Softmax);
RL_OVER_DIM(Softmin);
RL_OVER_DIM(LogSoftmax);
#undef RL_OVER_DIM

struct ThresholdOptions {
  ThresholdOptions(double threshold, double value) : threshold_(threshold), value_(value) {}
  TORCH_ARG(double, threshold);
  TORCH_ARG(double, value);
  TORCH_ARG(bool, inplace) = false;
};
class ThresholdImpl : public Cloneable<ThresholdImpl> {
 public:
  ThresholdImpl(double threshold, double value) : ThresholdImpl(ThresholdOptions(threshold, value)) {}
  explicit ThresholdImpl(const ThresholdOptions& o) : options(o) {}
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(Tensor input);
  ThresholdOptions options;
};
TORCH_MODULE(Threshold);

struct PReLUOptions {
  TORCH_ARG(int64_t, num_parameters) = 1;
  TORCH_ARG(double, init) = 0.25;
};
class PReLUImpl : public Cloneable<PReLUImpl> {
 public:
  explicit PReLUImpl(const PReLUOptions& o = {}) : options(o) { PReLUImpl::reset(); }
  void reset() override {
    weight = register_parameter("weight", full(options.num_parameters(), options.init()));
  }
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input) { return prelu(input, weight); }
  PReLUOptions options;
  Tensor weight;
};
TORCH_MODULE(PReLU);

}  // namespace rushlight::nn
