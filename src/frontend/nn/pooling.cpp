#include "rushlight/nn/pooling.h"

#include <ostream>

#include "rushlight/nn/functional.h"

namespace rushlight::nn {

namespace F = functional;

#define RL_MAX(Name, function)                                                                  \
  void Name##Impl::pretty_print(std::ostream& out) const {                                      \
    out << std::boolalpha << "torch::nn::" #Name "(kernel_size=" << options.kernel_size()       \
        << ", stride=" << options.stride() << ", padding=" << options.padding()                 \
        << ", dilation=" << options.dilation() << ", ceil_mode=" << options.ceil_mode() << ")"; \
  }                                                                                             \
  Tensor Name##Impl::forward(const Tensor& x) { return F::function(x, options); }               \
  std::tuple<Tensor, Tensor> Name##Impl::forward_with_indices(const Tensor& x) {                \
    return F::function##_with_indices(x, options);                                              \
  }
RL_MAX(MaxPool1d, max_pool1d)
RL_MAX(MaxPool2d, max_pool2d)
RL_MAX(MaxPool3d, max_pool3d)
#undef RL_MAX
#define RL_AVERAGE(Name, function)                                                                         \
  void Name##Impl::pretty_print(std::ostream& out) const {                                                 \
    out << "torch::nn::" #Name "(kernel_size=" << options.kernel_size() << ", stride=" << options.stride() \
        << ", padding=" << options.padding() << ")";                                                       \
  }                                                                                                        \
  Tensor Name##Impl::forward(const Tensor& x) { return F::function(x, options); }
RL_AVERAGE(AvgPool1d, avg_pool1d)
RL_AVERAGE(AvgPool2d, avg_pool2d)
RL_AVERAGE(AvgPool3d, avg_pool3d)
#undef RL_AVERAGE
#define RL_ADAPTIVE(Name, function)                                             \
  void Name##Impl::pretty_print(std::ostream& out) const {                      \
    out << "torch::nn::" #Name "(output_size=" << options.output_size() << ")"; \
  }                                                                             \
  Tensor Name##Impl::forward(const Tensor& x) { return F::function(x, options); }
#define RL_ADAPTIVE_MAX(Name, function)                                          \
  RL_ADAPTIVE(Name, function)                                                    \
  std::tuple<Tensor, Tensor> Name##Impl::forward_with_indices(const Tensor& x) { \
    return F::function##_with_indices(x, options);                               \
  }
RL_ADAPTIVE(AdaptiveAvgPool1d, adaptive_avg_pool1d)
RL_ADAPTIVE(AdaptiveAvgPool2d, adaptive_avg_pool2d)
RL_ADAPTIVE(AdaptiveAvgPool3d, adaptive_avg_pool3d)
RL_ADAPTIVE_MAX(AdaptiveMaxPool1d, adaptive_max_pool1d)
RL_ADAPTIVE_MAX(AdaptiveMaxPool2d, adaptive_max_pool2d)
RL_ADAPTIVE_MAX(AdaptiveMaxPool3d, adaptive_max_pool3d)
#undef RL_ADAPTIVE
#undef RL_ADAPTIVE_MAX
#define RL_LP(Name, function)                                                           \
  void Name##Impl::pretty_print(std::ostream& out) const {                              \
    out << std::boolalpha << "torch::nn::" #Name "(norm_type=" << options.norm_type()   \
        << ", kernel_size=" << options.kernel_size() << ", stride=" << options.stride() \
        << ", ceil_mode=" << options.ceil_mode() << ")";                                \
  }                                                                                     \
  Tensor Name##Impl::forward(const Tensor& x) { return F::function(x, options); }
RL_LP(LPPool1d, lp_pool1d)
RL_LP(LPPool2d, lp_pool2d)
RL_LP(LPPool3d, lp_pool3d)
#undef RL_LP

#define RL_PAD(Name, mode, value, shown)                                         \
  void Name##Impl::pretty_print(std::ostream& out) const {                       \
    out << "torch::nn::" #Name "(padding=" << options.padding() << shown << ")"; \
  }                                                                              \
  Tensor Name##Impl::forward(const Tensor& x) { return F::pad(x, *options.padding(), mode, value); }
#define RL_PADS(D)                                            \
  RL_PAD(ReflectionPad##D##d, "reflect", std::nullopt, "")    \
  RL_PAD(ReplicationPad##D##d, "replicate", std::nullopt, "") \
  RL_PAD(ZeroPad##D##d, "constant", 0.0, "")                  \
  RL_PAD(ConstantPad##D##d, "constant", options.value(), ", value=" << options.value())
RL_PADS(1)
RL_PADS(2)
RL_PADS(3)
#undef RL_PADS
#undef RL_PAD

void UpsampleImpl::pretty_print(std::ostream& out) const {
  out << "torch::nn::Upsample(";
  if (options.scale_factor())
    out << "scale_factor=" << ArrayRef<double>(*options.scale_factor());
  else if (options.size())
    out << "size=" << IntArrayRef(*options.size());
  out << ", mode=" << options.mode().enumerator() << ")";
}
Tensor UpsampleImpl::forward(const Tensor& x) {
  return F::interpolate(x, F::InterpolateFuncOptions()
                               .size(options.size())
                               .scale_factor(options.scale_factor())
                               .mode(options.mode())
                               .align_corners(options.align_corners()));
}
void PixelShuffleImpl::pretty_print(std::ostream& out) const {
  out << "torch::nn::PixelShuffle(upscale_factor=" << options.upscale_factor() << ")";
}
void PixelUnshuffleImpl::pretty_print(std::ostream& out) const {
  out << "torch::nn::PixelUnshuffle(downscale_factor=" << options.downscale_factor() << ")";
}
void FoldImpl::pretty_print(std::ostream& out) const {
  out << "torch::nn::Fold(output_size=" << options.output_size() << ", kernel_size=" << options.kernel_size()
      << ", dilation=" << options.dilation() << ", padding=" << options.padding()
      << ", stride=" << options.stride() << ")";
}
Tensor FoldImpl::forward(const Tensor& x) { return F::fold(x, options); }
void UnfoldImpl::pretty_print(std::ostream& out) const {
  out << "torch::nn::Unfold(kernel_size=" << options.kernel_size() << ", dilation=" << options.dilation()
      << ", padding=" << options.padding() << ", stride=" << options.stride() << ")";
}
Tensor UnfoldImpl::forward(const Tensor& x) { return F::unfold(x, options); }

#define RL_UNPOOL(Name, function)                                                                          \
  void Name##Impl::pretty_print(std::ostream& out) const {                                                 \
    out << "torch::nn::" #Name "(kernel_size=" << options.kernel_size() << ", stride=" << options.stride() \
        << ", padding=" << options.padding() << ")";                                                       \
  }                                                                                                        \
  Tensor Name##Impl::forward(const Tensor& x, const Tensor& indices,                                       \
                             const std::optional<std::vector<int64_t>>& output_size) {                     \
    return F::function(x, indices,                                                                         \
                       F::Name##FuncOptions(options.kernel_size())                                         \
                           .stride(options.stride())                                                       \
                           .padding(options.padding())                                                     \
                           .output_size(output_size));                                                     \
  }
RL_UNPOOL(MaxUnpool1d, max_unpool1d)
RL_UNPOOL(MaxUnpool2d, max_unpool2d)
RL_UNPOOL(MaxUnpool3d, max_unpool3d)
#undef RL_UNPOOL

#define RL_FRACTIONAL(Name, function)                                                                       \
  void Name##Impl::reset() {                                                                                \
    RL_CHECK(options.output_size().has_value() != options.output_ratio().has_value(),                       \
             #Name ": give one of output_size and output_ratio");                                           \
    if (options._random_samples().defined()) register_buffer("_random_samples", options._random_samples()); \
  }                                                                                                         \
  void Name##Impl::pretty_print(std::ostream& out) const { out << "torch::nn::" #Name "()"; }               \
  Tensor Name##Impl::forward(const Tensor& x) { return std::get<0>(forward_with_indices(x)); }              \
  std::tuple<Tensor, Tensor> Name##Impl::forward_with_indices(const Tensor& x) {                            \
    return F::function##_with_indices(x, options);                                                          \
  }
RL_FRACTIONAL(FractionalMaxPool2d, fractional_max_pool2d)
RL_FRACTIONAL(FractionalMaxPool3d, fractional_max_pool3d)
#undef RL_FRACTIONAL

}  // namespace rushlight::nn
