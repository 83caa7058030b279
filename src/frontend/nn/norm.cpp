#include "rushlight/nn/norm.h"

#include <ostream>

#include "rushlight/nn/functional.h"

namespace rushlight::nn {

namespace F = functional;

namespace {

void check_dims(const char* name, const Tensor& x, int64_t low, int64_t high) {
  RL_CHECK(x.dim() == low || x.dim() == high, name, ": expected ",
           low == high ? str(low) : str(low, "D or ", high), "D input (got ", x.dim(), "D input)");
}

template <class Impl>
void print_statistics(std::ostream& out, const char* name, const Impl& m) {
  out << std::boolalpha << "torch::nn::" << name << "(" << m.options.num_features()
      << ", eps=" << m.options.eps() << ", momentum=";
  if constexpr (requires { m.options.momentum().value(); })
    m.options.momentum() ? out << *m.options.momentum() : out << "None";
  else
    out << m.options.momentum();
  out << ", affine=" << m.options.affine() << ", track_running_stats=" << m.options.track_running_stats()
      << ")";
}

template <class Impl>
Tensor batch_normalized(Impl& m, const Tensor& x) {
  double average = m.options.momentum().value_or(0.0);
  if (m.is_training() && m.num_batches_tracked.defined()) {
    m.num_batches_tracked.add_(1);
    if (!m.options.momentum()) average = 1.0 / m.num_batches_tracked.template item<double>();
  }
  const bool use_batch = m.is_training() || !m.running_mean.defined();
  const bool keep = !m.is_training() || m.options.track_running_stats();
  return F::batch_norm(x, keep ? m.running_mean : Tensor(), keep ? m.running_var : Tensor(), m.weight, m.bias,
                       use_batch, average, m.options.eps());
}

template <class Impl>
Tensor instance_normalized(Impl& m, const Tensor& x, int64_t unbatched) {
  const bool single = x.dim() == unbatched;
  const Tensor y = F::instance_norm(single ? x.unsqueeze(0) : x, m.running_mean, m.running_var, m.weight,
                                    m.bias, m.is_training() || !m.options.track_running_stats(),
                                    m.options.momentum(), m.options.eps());
  return single ? y.squeeze(0) : y;
}

}  // namespace

#define RL_BATCH_NORM(D, low)                                          \
  void BatchNorm##D##dImpl::pretty_print(std::ostream& out) const {    \
    print_statistics(out, "BatchNorm" #D "d", *this);                  \
  }                                                                    \
  Tensor BatchNorm##D##dImpl::forward(const Tensor& x) {               \
    check_dims("BatchNorm" #D "d", x, low, D + 2);                     \
    return batch_normalized(*this, x);                                 \
  }                                                                    \
  void InstanceNorm##D##dImpl::pretty_print(std::ostream& out) const { \
    print_statistics(out, "InstanceNorm" #D "d", *this);               \
  }                                                                    \
  Tensor InstanceNorm##D##dImpl::forward(const Tensor& x) {            \
    check_dims("InstanceNorm" #D "d", x, D + 1, D + 2);                \
    return instance_normalized(*this, x, D + 1);                       \
  }
RL_BATCH_NORM(1, 2)
RL_BATCH_NORM(2, 4)
RL_BATCH_NORM(3, 5)
#undef RL_BATCH_NORM

void LayerNormImpl::reset() {
  const bool affine = options.elementwise_affine();
  weight = register_parameter("weight", affine ? ones(options.normalized_shape()) : Tensor(), affine);
  bias = register_parameter("bias", affine ? zeros(options.normalized_shape()) : Tensor(), affine);
}
void LayerNormImpl::pretty_print(std::ostream& out) const {
  out << std::boolalpha << "torch::nn::LayerNorm(" << IntArrayRef(options.normalized_shape())
      << ", eps=" << options.eps() << ", elementwise_affine=" << options.elementwise_affine() << ")";
}
Tensor LayerNormImpl::forward(const Tensor& x) {
  return F::layer_norm(x, options.normalized_shape(), weight, bias, options.eps());
}

void GroupNormImpl::reset() {
  weight = register_parameter("weight", options.affine() ? ones(options.num_channels()) : Tensor(),
                              options.affine());
  bias = register_parameter("bias", options.affine() ? zeros(options.num_channels()) : Tensor(),
                            options.affine());
}
void GroupNormImpl::pretty_print(std::ostream& out) const {
  out << std::boolalpha << "torch::nn::GroupNorm(" << options.num_groups() << ", " << options.num_channels()
      << ", eps=" << options.eps() << ", affine=" << options.affine() << ")";
}
Tensor GroupNormImpl::forward(const Tensor& x) {
  return F::group_norm(x, options.num_groups(), weight, bias, options.eps());
}

void LocalResponseNormImpl::pretty_print(std::ostream& out) const {
  out << "torch::nn::LocalResponseNorm(" << options.size() << ", alpha=" << options.alpha()
      << ", beta=" << options.beta() << ", k=" << options.k() << ")";
}
Tensor LocalResponseNormImpl::forward(const Tensor& x) {
  return F::local_response_norm(x, options.size(), options.alpha(), options.beta(), options.k());
}

void CrossMapLRN2dImpl::pretty_print(std::ostream& out) const {
  out << "torch::nn::CrossMapLRN2d(" << options.size() << ", alpha=" << options.alpha()
      << ", beta=" << options.beta() << ", k=" << options.k() << ")";
}
Tensor CrossMapLRN2dImpl::forward(const Tensor& x) {
  RL_CHECK(x.dim() == 4, "CrossMapLRN2d: expected [batch, channels, height, width], but got ", x.sizes());
  // The sum of the squares is divided by the size, however many channels the window holds.
  const int64_t window = 2 * ((options.size() - 1) / 2) + 1;
  const double alpha = options.alpha() * static_cast<double>(window) / static_cast<double>(options.size());
  return F::local_response_norm(x, window, alpha, options.beta(), static_cast<double>(options.k()));
}

#define RL_DROPOUT(Name, function)                                                                         \
  void Name##Impl::pretty_print(std::ostream& out) const {                                                 \
    out << std::boolalpha << "torch::nn::" #Name "(p=" << options.p() << ", inplace=" << options.inplace() \
        << ")";                                                                                            \
  }                                                                                                        \
  Tensor Name##Impl::forward(Tensor x) {                                                                   \
    return F::function(std::move(x), options.p(), is_training(), options.inplace());                       \
  }
RL_DROPOUT(Dropout, dropout)
RL_DROPOUT(Dropout1d, dropout1d)
RL_DROPOUT(Dropout2d, dropout2d)
RL_DROPOUT(Dropout3d, dropout3d)
RL_DROPOUT(AlphaDropout, alpha_dropout)
RL_DROPOUT(FeatureAlphaDropout, feature_alpha_dropout)
#undef RL_DROPOUT

}  // namespace rushlight::nn
