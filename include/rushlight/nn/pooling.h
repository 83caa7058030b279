// Pooling, padding, upsampling, folding.
#pragma once
#include "rushlight/nn/module.h"

namespace rushlight::nn {

template <size_t D>
struct MaxPoolOptions {
  MaxPoolOptions(ExpandingArray<D> kernel_size) : kernel_size_(kernel_size), stride_(kernel_size) {}
  TORCH_ARG(ExpandingArray<D>, kernel_size);
  TORCH_ARG(ExpandingArray<D>, stride);
  TORCH_ARG(ExpandingArray<D>, padding) = 0;
  TORCH_ARG(ExpandingArray<D>, dilation) = 1;
  TORCH_ARG(bool, ceil_mode) = false;
};
template <size_t D>
struct AvgPoolOptions {
  AvgPoolOptions(ExpandingArray<D> kernel_size) : kernel_size_(kernel_size), stride_(kernel_size) {}
  TORCH_ARG(ExpandingArray<D>, kernel_size);
  TORCH_ARG(ExpandingArray<D>, stride);
  TORCH_ARG(ExpandingArray<D>, padding) = 0;
  TORCH_ARG(bool, ceil_mode) = false;
  TORCH_ARG(bool, count_include_pad) = true;
  TORCH_ARG(std::optional<int64_t>, divisor_override) = std::nullopt;
};
// Sizes that are left open are the input's.
template <size_t D>
struct AdaptivePoolOptions {
  using Size = std::conditional_t<D == 1, ExpandingArray<1>, ExpandingArrayWithOptionalElem<D>>;
  AdaptivePoolOptions(Size output_size) : output_size_(output_size) {}
  TORCH_ARG(Size, output_size);
};
template <size_t D>
struct LPPoolOptions {
  LPPoolOptions(double norm_type, ExpandingArray<D> kernel_size)
      : norm_type_(norm_type), kernel_size_(kernel_size), stride_(kernel_size) {}
  TORCH_ARG(double, norm_type);
  TORCH_ARG(ExpandingArray<D>, kernel_size);
  TORCH_ARG(ExpandingArray<D>, stride);
  TORCH_ARG(bool, ceil_mode) = false;
};
template <size_t D>
struct PadOptions {
  PadOptions(ExpandingArray<2 * D> padding) : padding_(padding) {}
  TORCH_ARG(ExpandingArray<2 * D>, padding);
};
template <size_t D>
struct ConstantPadOptions {
  ConstantPadOptions(ExpandingArray<2 * D> padding, double value) : padding_(padding), value_(value) {}
  TORCH_ARG(ExpandingArray<2 * D>, padding);
  TORCH_ARG(double, value) = 0;
};

#define RL_POOL(Name, Kind, D, Size)                            \
  using Name##Options = Kind<D>;                                \
  class Name##Impl : public Cloneable<Name##Impl> {             \
   public:                                                      \
    Name##Impl(Size size) : Name##Impl(Name##Options(size)) {}  \
    explicit Name##Impl(const Name##Options& o) : options(o) {} \
    void reset() override {}                                    \
    void pretty_print(std::ostream& stream) const override;     \
    Tensor forward(const Tensor& input);                        \
    RL_POOL_EXTRA                                               \
    Name##Options options;                                      \
  };                                                            \
  TORCH_MODULE(Name)
#define RL_POOL_EXTRA std::tuple<Tensor, Tensor> forward_with_indices(const Tensor& input);
RL_POOL(MaxPool1d, MaxPoolOptions, 1, ExpandingArray<1>);
RL_POOL(MaxPool2d, MaxPoolOptions, 2, ExpandingArray<2>);
RL_POOL(MaxPool3d, MaxPoolOptions, 3, ExpandingArray<3>);
RL_POOL(AdaptiveMaxPool1d, AdaptivePoolOptions, 1, AdaptivePoolOptions<1>::Size);
RL_POOL(AdaptiveMaxPool2d, AdaptivePoolOptions, 2, AdaptivePoolOptions<2>::Size);
RL_POOL(AdaptiveMaxPool3d, AdaptivePoolOptions, 3, AdaptivePoolOptions<3>::Size);
#undef RL_POOL_EXTRA
#define RL_POOL_EXTRA
RL_POOL(AvgPool1d, AvgPoolOptions, 1, ExpandingArray<1>);
RL_POOL(AvgPool2d, AvgPoolOptions, 2, ExpandingArray<2>);
RL_POOL(AvgPool3d, AvgPoolOptions, 3, ExpandingArray<3>);
RL_POOL(AdaptiveAvgPool1d, AdaptivePoolOptions, 1, AdaptivePoolOptions<1>::Size);
RL_POOL(AdaptiveAvgPool2d, AdaptivePoolOptions, 2, AdaptivePoolOptions<2>::Size);
RL_POOL(AdaptiveAvgPool3d, AdaptivePoolOptions, 3, AdaptivePoolOptions<3>::Size);
#undef RL_POOL_EXTRA
#undef RL_POOL

#define RL_LP_POOL(Name, D)                                                                              \
  using Name##Options = LPPoolOptions<D>;                                                                \
  class Name##Impl : public Cloneable<Name##Impl> {                                                      \
   public:                                                                                               \
    Name##Impl(double norm_type, ExpandingArray<D> size) : Name##Impl(Name##Options(norm_type, size)) {} \
    explicit Name##Impl(const Name##Options& o) : options(o) {}                                          \
    void reset() override {}                                                                             \
    void pretty_print(std::ostream& stream) const override;                                              \
    Tensor forward(const Tensor& input);                                                                 \
    Name##Options options;                                                                               \
  };                                                                                                     \
  TORCH_MODULE(Name)
RL_LP_POOL(LPPool1d, 1);
RL_LP_POOL(LPPool2d, 2);
RL_LP_POOL(LPPool3d, 3);
#undef RL_LP_POOL

#define RL_PAD(Name, D)                                                               \
  using Name##Options = PadOptions<D>;                                                \
  class Name##Impl : public Cloneable<Name##Impl> {                                   \
   public:                                                                            \
    Name##Impl(ExpandingArray<2 * D> padding) : Name##Impl(Name##Options(padding)) {} \
    explicit Name##Impl(const Name##Options& o) : options(o) {}                       \
    void reset() override {}                                                          \
    void pretty_print(std::ostream& stream) const override;                           \
    Tensor forward(const Tensor& input);                                              \
    Name##Options options;                                                            \
  };                                                                                  \
  TORCH_MODULE(Name)
RL_PAD(ReflectionPad1d, 1);
RL_PAD(ReflectionPad2d, 2);
RL_PAD(ReflectionPad3d, 3);
RL_PAD(ReplicationPad1d, 1);
RL_PAD(ReplicationPad2d, 2);
RL_PAD(ReplicationPad3d, 3);
RL_PAD(ZeroPad1d, 1);
RL_PAD(ZeroPad2d, 2);
RL_PAD(ZeroPad3d, 3);
#undef RL_PAD

#define RL_CONSTANT_PAD(Name, D)                                                                           \
  using Name##Options = ConstantPadOptions<D>;                                                             \
  class Name##Impl : public Cloneable<Name##Impl> {                                                        \
   public:                                                                                                 \
    Name##Impl(ExpandingArray<2 * D> padding, double value) : Name##Impl(Name##Options(padding, value)) {} \
    explicit Name##Impl(const Name##Options& o) : options(o) {}                                            \
    void reset() override {}                                                                               \
    void pretty_print(std::ostream& stream) const override;                                                \
    Tensor forward(const Tensor& input);                                                                   \
    Name##Options options;                                                                                 \
  };                                                                                                       \
  TORCH_MODULE(Name)
RL_CONSTANT_PAD(ConstantPad1d, 1);
RL_CONSTANT_PAD(ConstantPad2d, 2);
RL_CONSTANT_PAD(ConstantPad3d, 3);
#undef RL_CONSTANT_PAD

struct UpsampleOptions {
  TORCH_ARG(std::optional<std::vector<int64_t>>, size) = std::nullopt;
  TORCH_ARG(std::optional<std::vector<double>>, scale_factor) = std::nullopt;
  TORCH_ARG(Mode, mode) = kNearest;
  TORCH_ARG(std::optional<bool>, align_corners) = std::nullopt;
};
class UpsampleImpl : public Cloneable<UpsampleImpl> {
 public:
  explicit UpsampleImpl(UpsampleOptions o = {}) : options(std::move(o)) {}
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input);
  UpsampleOptions options;
};
TORCH_MODULE(Upsample);

#define RL_PIXELS(Name, factor, function)                                             \
  struct Name##Options {                                                              \
    Name##Options(int64_t factor) : factor##_(factor) {}                              \
    TORCH_ARG(int64_t, factor);                                                       \
  };                                                                                  \
  class Name##Impl : public Cloneable<Name##Impl> {                                   \
   public:                                                                            \
    explicit Name##Impl(const Name##Options& o) : options(o) {}                       \
    void reset() override {}                                                          \
    void pretty_print(std::ostream& stream) const override;                           \
    Tensor forward(const Tensor& input) { return function(input, options.factor()); } \
    Name##Options options;                                                            \
  };                                                                                  \
  TORCH_MODULE(Name)
RL_PIXELS(PixelShuffle, upscale_factor, pixel_shuffle);
RL_PIXELS(PixelUnshuffle, downscale_factor, pixel_unshuffle);
#undef RL_PIXELS

struct FoldOptions {
  FoldOptions(ExpandingArray<2> output_size, ExpandingArray<2> kernel_size)
      : output_size_(output_size), kernel_size_(kernel_size) {}
  TORCH_ARG(ExpandingArray<2>, output_size);
  TORCH_ARG(ExpandingArray<2>, kernel_size);
  TORCH_ARG(ExpandingArray<2>, dilation) = 1;
  TORCH_ARG(ExpandingArray<2>, padding) = 0;
  TORCH_ARG(ExpandingArray<2>, stride) = 1;
};
struct UnfoldOptions {
  UnfoldOptions(ExpandingArray<2> kernel_size) : kernel_size_(kernel_size) {}
  TORCH_ARG(ExpandingArray<2>, kernel_size);
  TORCH_ARG(ExpandingArray<2>, dilation) = 1;
  TORCH_ARG(ExpandingArray<2>, padding) = 0;
  TORCH_ARG(ExpandingArray<2>, stride) = 1;
};
#define RL_BLOCKS(Name)                                         \
  class Name##Impl : public Cloneable<Name##Impl> {             \
   public:                                                      \
    template <class... Sizes>                                   \
      requires std::is_constructible_v<Name##Options, Sizes...> \
    Name##Impl(Sizes... sizes) : options(sizes...) {}           \
    void reset() override {}                                    \
    void pretty_print(std::ostream& stream) const override;     \
    Tensor forward(const Tensor& input);                        \
    Name##Options options;                                      \
  };                                                            \
  TORCH_MODULE(Name)
RL_BLOCKS(Fold);
RL_BLOCKS(Unfold);
#undef RL_BLOCKS

// Max pooling undone: values go back to where the indices say they stood, zero elsewhere.
template <size_t D>
struct MaxUnpoolOptions {
  MaxUnpoolOptions(ExpandingArray<D> kernel_size) : kernel_size_(kernel_size), stride_(kernel_size) {}
  TORCH_ARG(ExpandingArray<D>, kernel_size);
  TORCH_ARG(ExpandingArray<D>, stride);
  TORCH_ARG(ExpandingArray<D>, padding) = 0;
};
#define RL_UNPOOL(Name, D)                                                                 \
  using Name##Options = MaxUnpoolOptions<D>;                                               \
  class Name##Impl : public Cloneable<Name##Impl> {                                        \
   public:                                                                                 \
    Name##Impl(ExpandingArray<D> kernel_size) : Name##Impl(Name##Options(kernel_size)) {}  \
    explicit Name##Impl(const Name##Options& o) : options(o) {}                            \
    void reset() override {}                                                               \
    void pretty_print(std::ostream& stream) const override;                                \
    Tensor forward(const Tensor& input, const Tensor& indices,                             \
                   const std::optional<std::vector<int64_t>>& output_size = std::nullopt); \
    Name##Options options;                                                                 \
  };                                                                                       \
  TORCH_MODULE(Name)
RL_UNPOOL(MaxUnpool1d, 1);
RL_UNPOOL(MaxUnpool2d, 2);
RL_UNPOOL(MaxUnpool3d, 3);
#undef RL_UNPOOL

// Maxima over windows spaced at random (Graham, 2014); the size is given, or as a ratio of the input's.
template <size_t D>
struct FractionalMaxPoolOptions {
  using ExpandingArrayDouble = ExpandingArray<D, double>;
  FractionalMaxPoolOptions(ExpandingArray<D> kernel_size) : kernel_size_(kernel_size) {}
  TORCH_ARG(ExpandingArray<D>, kernel_size);
  TORCH_ARG(std::optional<ExpandingArray<D>>, output_size) = std::nullopt;
  TORCH_ARG(std::optional<ExpandingArrayDouble>, output_ratio) = std::nullopt;
  TORCH_ARG(Tensor, _random_samples) = Tensor();
};
#define RL_FRACTIONAL(Name, D)                                                            \
  using Name##Options = FractionalMaxPoolOptions<D>;                                      \
  class Name##Impl : public Cloneable<Name##Impl> {                                       \
   public:                                                                                \
    Name##Impl(ExpandingArray<D> kernel_size) : Name##Impl(Name##Options(kernel_size)) {} \
    explicit Name##Impl(Name##Options o) : options(std::move(o)) { Name##Impl::reset(); } \
    void reset() override;                                                                \
    void pretty_print(std::ostream& stream) const override;                               \
    Tensor forward(const Tensor& input);                                                  \
    std::tuple<Tensor, Tensor> forward_with_indices(const Tensor& input);                 \
    Name##Options options;                                                                \
  };                                                                                      \
  TORCH_MODULE(Name)
RL_FRACTIONAL(FractionalMaxPool2d, 2);
RL_FRACTIONAL(FractionalMaxPool3d, 3);
#undef RL_FRACTIONAL

}  // namespace rushlight::nn
