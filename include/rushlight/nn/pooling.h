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
template <size_t D>
struct AdaptivePoolOptions {
  AdaptivePoolOptions(ExpandingArray<D> output_size) : output_size_(output_size) {}
  TORCH_ARG(ExpandingArray<D>, output_size);
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

#define RL_POOL(Name, Kind, D)                                              \
  using Name##Options = Kind<D>;                                            \
  class Name##Impl : public Cloneable<Name##Impl> {                         \
   public:                                                                  \
    Name##Impl(ExpandingArray<D> size) : Name##Impl(Name##Options(size)) {} \
    explicit Name##Impl(const Name##Options& o) : options(o) {}             \
    void reset() override {}                                                \
    void pretty_print(std::ostream& stream) const override;                 \
    Tensor forward(const Tensor& input);                                    \
    RL_POOL_EXTRA                                                           \
    Name##Options options;                                                  \
  };                                                                        \
  TORCH_MODULE(Name)
#define RL_POOL_EXTRA std::tuple<Tensor, Tensor> forward_with_indices(const Tensor& input);
RL_POOL(MaxPool1d, MaxPoolOptions, 1);
RL_POOL(MaxPool2d, MaxPoolOptions, 2);
RL_POOL(MaxPool3d, MaxPoolOptions, 3);
RL_POOL(AdaptiveMaxPool1d, AdaptivePoolOptions, 1);
RL_POOL(AdaptiveMaxPool2d, AdaptivePoolOptions, 2);
RL_POOL(AdaptiveMaxPool3d, AdaptivePoolOptions, 3);
#undef RL_POOL_EXTRA
#define RL_POOL_EXTRA
RL_POOL(AvgPool1d, AvgPoolOptions, 1);
RL_POOL(AvgPool2d, AvgPoolOptions, 2);
RL_POOL(AvgPool3d, AvgPoolOptions, 3);
RL_POOL(AdaptiveAvgPool1d, AdaptivePoolOptions, 1);
RL_POOL(AdaptiveAvgPool2d, AdaptivePoolOptions, 2);
RL_POOL(AdaptiveAvgPool3d, AdaptivePoolOptions, 3);
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

struct PixelShuffleOptions {
  PixelShuffleOptions(int64_t upscale_factor) : upscale_factor_(upscale_factor) {}
  TORCH_ARG(int64_t, upscale_factor);
};
class PixelShuffleImpl : public Cloneable<PixelShuffleImpl> {
 public:
  explicit PixelShuffleImpl(const PixelShuffleOptions& o) : options(o) {}
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input) { return pixel_shuffle(input, options.upscale_factor()); }
  PixelShuffleOptions options;
};
TORCH_MODULE(PixelShuffle);

struct PixelUnshuffleOptions {
  PixelUnshuffleOptions(int64_t downscale_factor) : downscale_factor_(downscale_factor) {}
  TORCH_ARG(int64_t, downscale_factor);
};
class PixelUnshuffleImpl : public Cloneable<PixelUnshuffleImpl> {
 public:
  explicit PixelUnshuffleImpl(const PixelUnshuffleOptions& o) : options(o) {}
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input) { return pixel_unshuffle(input, options.downscale_factor()); }
  PixelUnshuffleOptions options;
};
TORCH_MODULE(PixelUnshuffle);

struct FoldOptions {
  FoldOptions(ExpandingArray<2> output_size, ExpandingArray<2> kernel_size)
      : output_size_(output_size), kernel_size_(kernel_size) {}
  TORCH_ARG(ExpandingArray<2>, output_size);
  TORCH_ARG(ExpandingArray<2>, kernel_size);
  TORCH_ARG(ExpandingArray<2>, dilation) = 1;
  TORCH_ARG(ExpandingArray<2>, padding) = 0;
  TORCH_ARG(ExpandingArray<2>, stride) = 1;
};
class FoldImpl : public Cloneable<FoldImpl> {
 public:
  FoldImpl(ExpandingArray<2> output_size, ExpandingArray<2> kernel_size)
      : FoldImpl(FoldOptions(output_size, kernel_size)) {}
  explicit FoldImpl(const FoldOptions& o) : options(o) {}
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input);
  FoldOptions options;
};
TORCH_MODULE(Fold);

struct UnfoldOptions {
  UnfoldOptions(ExpandingArray<2> kernel_size) : kernel_size_(kernel_size) {}
  TORCH_ARG(ExpandingArray<2>, kernel_size);
  TORCH_ARG(ExpandingArray<2>, dilation) = 1;
  TORCH_ARG(ExpandingArray<2>, padding) = 0;
  TORCH_ARG(ExpandingArray<2>, stride) = 1;
};
class UnfoldImpl : public Cloneable<UnfoldImpl> {
 public:
  UnfoldImpl(ExpandingArray<2> kernel_size) : UnfoldImpl(UnfoldOptions(kernel_size)) {}
  explicit UnfoldImpl(const UnfoldOptions& o) : options(o) {}
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input);
  UnfoldOptions options;
};
TORCH_MODULE(Unfold);

}  // namespace rushlight::nn
