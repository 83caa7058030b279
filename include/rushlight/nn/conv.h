// Convolutions in one to three dimensions, and their transposes.
#pragma once
#include "rushlight/nn/module.h"

namespace rushlight::nn {

template <size_t D>
struct ConvOptions {
  using Padding = std::variant<ExpandingArray<D>, Mode>;  // torch::kSame, torch::kValid
  ConvOptions(int64_t in_channels, int64_t out_channels, ExpandingArray<D> kernel_size)
      : in_channels_(in_channels), out_channels_(out_channels), kernel_size_(kernel_size) {}
  TORCH_ARG(int64_t, in_channels);
  TORCH_ARG(int64_t, out_channels);
  TORCH_ARG(ExpandingArray<D>, kernel_size);
  TORCH_ARG(ExpandingArray<D>, stride) = 1;

 public:
  auto padding(ExpandingArray<D> p) -> decltype(*this) { return padding_ = p, *this; }
  auto padding(int64_t p) -> decltype(*this) { return padding_ = ExpandingArray<D>(p), *this; }
  auto padding(std::initializer_list<int64_t> p) -> decltype(*this) {
    return padding_ = ExpandingArray<D>(p), *this;
  }
  auto padding(Mode mode) -> decltype(*this) { return padding_ = mode, *this; }
  const Padding& padding() const { return padding_; }

 private:
  Padding padding_ = ExpandingArray<D>(0);
  TORCH_ARG(ExpandingArray<D>, dilation) = 1;
  TORCH_ARG(int64_t, groups) = 1;
  TORCH_ARG(bool, bias) = true;
  TORCH_ARG(Mode, padding_mode) = kZeros;
};
using Conv1dOptions = ConvOptions<1>;
using Conv2dOptions = ConvOptions<2>;
using Conv3dOptions = ConvOptions<3>;

template <size_t D>
struct ConvTransposeOptions {
  ConvTransposeOptions(int64_t in_channels, int64_t out_channels, ExpandingArray<D> kernel_size)
      : in_channels_(in_channels), out_channels_(out_channels), kernel_size_(kernel_size) {}
  TORCH_ARG(int64_t, in_channels);
  TORCH_ARG(int64_t, out_channels);
  TORCH_ARG(ExpandingArray<D>, kernel_size);
  TORCH_ARG(ExpandingArray<D>, stride) = 1;
  TORCH_ARG(ExpandingArray<D>, padding) = 0;
  TORCH_ARG(ExpandingArray<D>, output_padding) = 0;
  TORCH_ARG(int64_t, groups) = 1;
  TORCH_ARG(bool, bias) = true;
  TORCH_ARG(ExpandingArray<D>, dilation) = 1;
  TORCH_ARG(Mode, padding_mode) = kZeros;
};
using ConvTranspose1dOptions = ConvTransposeOptions<1>;
using ConvTranspose2dOptions = ConvTransposeOptions<2>;
using ConvTranspose3dOptions = ConvTransposeOptions<3>;

template <size_t D, class Derived>
class ConvNdImpl : public Cloneable<Derived> {
 public:
  explicit ConvNdImpl(ConvOptions<D> options);
  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input);
  ConvOptions<D> options;
  Tensor weight, bias;
};
template <size_t D, class Derived>
class ConvTransposeNdImpl : public Cloneable<Derived> {
 public:
  explicit ConvTransposeNdImpl(ConvTransposeOptions<D> options);
  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input, const std::optional<IntArrayRef>& output_size = std::nullopt);
  ConvTransposeOptions<D> options;
  Tensor weight, bias;
};

#define RL_CONV(Name, Base, D)                                                                         \
  class Name##Impl : public Base##NdImpl<D, Name##Impl> {                                              \
   public:                                                                                             \
    Name##Impl(int64_t in_channels, int64_t out_channels, ExpandingArray<D> kernel_size)               \
        : Name##Impl(Base##Options<D>(in_channels, out_channels, kernel_size)) {}                      \
    explicit Name##Impl(Base##Options<D> options) : Base##NdImpl<D, Name##Impl>(std::move(options)) {} \
  };                                                                                                   \
  extern template class Base##NdImpl<D, Name##Impl>;                                                   \
  TORCH_MODULE(Name)
RL_CONV(Conv1d, Conv, 1);
RL_CONV(Conv2d, Conv, 2);
RL_CONV(Conv3d, Conv, 3);
RL_CONV(ConvTranspose1d, ConvTranspose, 1);
RL_CONV(ConvTranspose2d, ConvTranspose, 2);
RL_CONV(ConvTranspose3d, ConvTranspose, 3);
#undef RL_CONV

}  // namespace rushlight::nn
