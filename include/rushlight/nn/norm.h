// Normalisation and dropout.
#pragma once
#include "dispatch/state.h"
#include "rushlight/nn/module.h"

namespace rushlight::nn {

struct BatchNormOptions {
  BatchNormOptions(int64_t num_features) : num_features_(num_features) {}
  TORCH_ARG(int64_t, num_features);
  TORCH_ARG(double, eps) = 1e-5;
  TORCH_ARG(std::optional<double>, momentum) = 0.1;  // nothing: the mean over all batches
  TORCH_ARG(bool, affine) = true;
  TORCH_ARG(bool, track_running_stats) = true;
};
struct InstanceNormOptions {
  InstanceNormOptions(int64_t num_features) : num_features_(num_features) {}
  TORCH_ARG(int64_t, num_features);
  TORCH_ARG(double, eps) = 1e-5;
  TORCH_ARG(double, momentum) = 0.1;
  TORCH_ARG(bool, affine) = false;
  TORCH_ARG(bool, track_running_stats) = false;
};
using BatchNorm1dOptions = BatchNormOptions;
using BatchNorm2dOptions = BatchNormOptions;
using BatchNorm3dOptions = BatchNormOptions;
using InstanceNorm1dOptions = InstanceNormOptions;
using InstanceNorm2dOptions = InstanceNormOptions;
using InstanceNorm3dOptions = InstanceNormOptions;

// Statistics, weight and bias per channel.
template <class Derived, class Options>
class NormImplBase : public Cloneable<Derived> {
 public:
  explicit NormImplBase(const Options& o) : options(o) { NormImplBase::reset(); }
  void reset() override {
    const Tensor none;
    weight = this->register_parameter("weight", options.affine() ? ones(options.num_features()) : none,
                                      options.affine());
    bias = this->register_parameter("bias", options.affine() ? zeros(options.num_features()) : none,
                                    options.affine());
    const bool track = options.track_running_stats();
    running_mean = this->register_buffer("running_mean", track ? zeros(options.num_features()) : none);
    running_var = this->register_buffer("running_var", track ? ones(options.num_features()) : none);
    num_batches_tracked = this->register_buffer("num_batches_tracked", track ? tensor(0, kLong) : none);
  }
  void reset_running_stats() {
    if (!options.track_running_stats()) return;
    running_mean.zero_(), running_var.fill_(1), num_batches_tracked.zero_();
  }
  void reset_parameters() {
    const GradMode no_grad(false);
    reset_running_stats();
    if (options.affine()) weight.fill_(1), bias.zero_();
  }
  Options options;
  Tensor weight, bias, running_mean, running_var, num_batches_tracked;
};

#define RL_NORM(Name, Kind)                                                                     \
  class Name##Impl : public NormImplBase<Name##Impl, Kind##Options> {                           \
   public:                                                                                      \
    explicit Name##Impl(const Kind##Options& o) : NormImplBase<Name##Impl, Kind##Options>(o) {} \
    void pretty_print(std::ostream& stream) const override;                                     \
    Tensor forward(const Tensor& input);                                                        \
  };                                                                                            \
  TORCH_MODULE(Name)
RL_NORM(BatchNorm1d, BatchNorm);
RL_NORM(BatchNorm2d, BatchNorm);
RL_NORM(BatchNorm3d, BatchNorm);
RL_NORM(InstanceNorm1d, InstanceNorm);
RL_NORM(InstanceNorm2d, InstanceNorm);
RL_NORM(InstanceNorm3d, InstanceNorm);
#undef RL_NORM

struct LayerNormOptions {
  LayerNormOptions(std::vector<int64_t> normalized_shape) : normalized_shape_(std::move(normalized_shape)) {}
  TORCH_ARG(std::vector<int64_t>, normalized_shape);
  TORCH_ARG(double, eps) = 1e-5;
  TORCH_ARG(bool, elementwise_affine) = true;
};
class LayerNormImpl : public Cloneable<LayerNormImpl> {
 public:
  LayerNormImpl(std::vector<int64_t> normalized_shape)
      : LayerNormImpl(LayerNormOptions(std::move(normalized_shape))) {}
  explicit LayerNormImpl(LayerNormOptions o) : options(std::move(o)) { LayerNormImpl::reset(); }
  void reset() override;
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input);
  LayerNormOptions options;
  Tensor weight, bias;
};
TORCH_MODULE(LayerNorm);

struct GroupNormOptions {
  GroupNormOptions(int64_t num_groups, int64_t num_channels)
      : num_groups_(num_groups), num_channels_(num_channels) {}
  TORCH_ARG(int64_t, num_groups);
  TORCH_ARG(int64_t, num_channels);
  TORCH_ARG(double, eps) = 1e-5;
  TORCH_ARG(bool, affine) = true;
};
class GroupNormImpl : public Cloneable<GroupNormImpl> {
 public:
  GroupNormImpl(int64_t num_groups, int64_t num_channels)
      : GroupNormImpl(GroupNormOptions(num_groups, num_channels)) {}
  explicit GroupNormImpl(const GroupNormOptions& o) : options(o) { GroupNormImpl::reset(); }
  void reset() override;
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input);
  GroupNormOptions options;
  Tensor weight, bias;
};
TORCH_MODULE(GroupNorm);

struct LocalResponseNormOptions {
  LocalResponseNormOptions(int64_t size) : size_(size) {}
  TORCH_ARG(int64_t, size);
  TORCH_ARG(double, alpha) = 1e-4;
  TORCH_ARG(double, beta) = 0.75;
  TORCH_ARG(double, k) = 1.;
};
class LocalResponseNormImpl : public Cloneable<LocalResponseNormImpl> {
 public:
  LocalResponseNormImpl(int64_t size) : LocalResponseNormImpl(LocalResponseNormOptions(size)) {}
  explicit LocalResponseNormImpl(const LocalResponseNormOptions& o) : options(o) {}
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input);
  LocalResponseNormOptions options;
};
TORCH_MODULE(LocalResponseNorm);

// As the first convolutional networks normalised across neighbouring channels (Krizhevsky et al., 2012): a
// window of even size reaches less far than LocalResponseNorm's, on both sides alike.
struct CrossMapLRN2dOptions {
  CrossMapLRN2dOptions(int64_t size) : size_(size) {}
  TORCH_ARG(int64_t, size);
  TORCH_ARG(double, alpha) = 1e-4;
  TORCH_ARG(double, beta) = 0.75;
  TORCH_ARG(int64_t, k) = 1;
};
class CrossMapLRN2dImpl : public Cloneable<CrossMapLRN2dImpl> {
 public:
  CrossMapLRN2dImpl(int64_t size) : CrossMapLRN2dImpl(CrossMapLRN2dOptions(size)) {}
  explicit CrossMapLRN2dImpl(const CrossMapLRN2dOptions& o) : options(o) {}
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input);
  CrossMapLRN2dOptions options;
};
TORCH_MODULE(CrossMapLRN2d);

struct DropoutOptions {
  DropoutOptions(double p = 0.5) : p_(p) {}
  TORCH_ARG(double, p);
  TORCH_ARG(bool, inplace) = false;
};
using Dropout1dOptions = DropoutOptions;
using Dropout2dOptions = DropoutOptions;
using Dropout3dOptions = DropoutOptions;
using AlphaDropoutOptions = DropoutOptions;
using FeatureAlphaDropoutOptions = DropoutOptions;
#define RL_DROPOUT(Name)                                                                                    \
  class Name##Impl : public Cloneable<Name##Impl> {                                                         \
   public:                                                                                                  \
    Name##Impl(double p) : Name##Impl(DropoutOptions(p)) {}                                                 \
    explicit Name##Impl(const DropoutOptions& o = {}) : options(o) {                                        \
      RL_CHECK(o.p() >= 0 && o.p() <= 1, "dropout probability has to be between 0 and 1, but got ", o.p()); \
    }                                                                                                       \
    void reset() override {}                                                                                \
    void pretty_print(std::ostream& stream) const override;                                                 \
    Tensor forward(Tensor input);                                                                           \
    DropoutOptions options;                                                                                 \
  };                                                                                                        \
  TORCH_MODULE(Name)
RL_DROPOUT(Dropout);
RL_DROPOUT(Dropout1d);
RL_DROPOUT(Dropout2d);
RL_DROPOUT(Dropout3d);
RL_DROPOUT(AlphaDropout);
RL_DROPOUT(FeatureAlphaDropout);
#undef RL_DROPOUT

}  // namespace rushlight::nn
