// What the CUDA library tells cuDNN about convolutions.
#include <gtest/gtest.h>

#include "cuda/conv_plan.h"

namespace rushlight::cuda {
namespace {

cpu::ConvShape some_shape() {
  cpu::ConvShape s;
  s.batch = 2, s.in_channels = 6, s.out_channels = 8, s.groups = 2;
  s.input = {1, 9, 10}, s.output = {1, 4, 5}, s.kernel = {1, 3, 2};
  s.stride = {1, 2, 2}, s.padding = {0, 0, 1}, s.dilation = {1, 1, 2};
  return s;
}

TEST(CudaConv, DescribesTwoDimensions) {
  const auto p = conv_plan(some_shape());
  ASSERT_TRUE(p);
  EXPECT_EQ(p->rank, 4);
  EXPECT_EQ(p->input, (std::array<int, 5>{2, 6, 9, 10, 0}));
  EXPECT_EQ(p->input_strides, (std::array<int, 5>{540, 90, 10, 1, 0}));
  EXPECT_EQ(p->weight, (std::array<int, 5>{8, 3, 3, 2, 0}));
  EXPECT_EQ(p->output, (std::array<int, 5>{2, 8, 4, 5, 0}));
  EXPECT_EQ(p->output_strides, (std::array<int, 5>{160, 20, 5, 1, 0}));
  EXPECT_EQ(p->padding, (std::array<int, 3>{0, 1, 0}));
  EXPECT_EQ(p->stride, (std::array<int, 3>{2, 2, 0}));
  EXPECT_EQ(p->dilation, (std::array<int, 3>{1, 2, 0}));
  EXPECT_EQ(p->groups, 2);
}

TEST(CudaConv, PutsChannelsLast) {
  cpu::ConvShape s = some_shape();
  s.channels_last = true;
  const auto p = conv_plan(s);
  ASSERT_TRUE(p);
  EXPECT_EQ(p->format, cudnn::kNhwc);
  EXPECT_EQ(p->input, (std::array<int, 5>{2, 6, 9, 10, 0}));
  EXPECT_EQ(p->input_strides, (std::array<int, 5>{540, 1, 60, 6, 0}));
  EXPECT_EQ(p->output_strides, (std::array<int, 5>{160, 1, 40, 8, 0}));
  EXPECT_EQ(p->weight, (std::array<int, 5>{8, 3, 3, 2, 0}));
  EXPECT_NE(conv_key(*p, ConvPass::Forward, 0, false, false, false),
            conv_key(*conv_plan(some_shape()), ConvPass::Forward, 0, false, false, false));
}

TEST(CudaConv, GivesOneDimensionAHeightOfOne) {
  cpu::ConvShape s;
  s.spatial = 1, s.batch = 1, s.in_channels = 1, s.out_channels = 1;
  s.input = {1, 1, 7}, s.output = {1, 1, 5}, s.kernel = {1, 1, 3}, s.padding = {0, 0, 0};
  const auto p = conv_plan(s);
  ASSERT_TRUE(p);
  EXPECT_EQ(p->rank, 4);
  EXPECT_EQ(p->input, (std::array<int, 5>{1, 1, 1, 7, 0}));
  EXPECT_EQ(p->weight, (std::array<int, 5>{1, 1, 1, 3, 0}));
  s.spatial = 3, s.input = {4, 5, 7}, s.output = {3, 3, 5}, s.kernel = {2, 3, 3};
  EXPECT_EQ(conv_plan(s)->rank, 5);
  EXPECT_EQ(conv_plan(s)->input_strides, (std::array<int, 5>{140, 140, 35, 7, 1}));
}

TEST(CudaConv, RefusesWhatCudnnCannotHold) {
  cpu::ConvShape s = some_shape();
  s.dtype = DType::Complex64;
  EXPECT_FALSE(conv_plan(s));
  s = some_shape();
  s.batch = int64_t{1} << 24;  // 2^24 * 540 elements
  EXPECT_FALSE(conv_plan(s));
  s = some_shape();
  s.padding[2] = int64_t{1} << 40;
  EXPECT_FALSE(conv_plan(s));
  s = some_shape();
  s.dtype = DType::BFloat16;
  EXPECT_EQ(conv_plan(s)->data_type, cudnn::kBFloat16);
  EXPECT_EQ(conv_plan(s)->compute_type, cudnn::kFloat);
  s.dtype = DType::Float64;
  EXPECT_EQ(conv_plan(s)->compute_type, cudnn::kDouble);
}

TEST(CudaConv, ChoosesTheFirstThatFits) {
  const cudnn::Performance found[] = {{4, 3000, 1, 0, 1, 0, {}},
                                      {1, 0, 2, 1 << 20, 0, 0, {}},
                                      {6, 0, 3, 1 << 10, 0, 0, {}},
                                      {0, 0, 9, 0, 1, 0, {}}};
  EXPECT_EQ(choose_algorithm(found, 1 << 24, false), 1);
  EXPECT_EQ(choose_algorithm(found, 1 << 12, false), 2);
  EXPECT_EQ(choose_algorithm(found, 1 << 24, true), 3);
  EXPECT_EQ(choose_algorithm({found, 1}, 1 << 24, false), -1);
}

TEST(CudaConv, KeysTellShapesAndSwitchesApart) {
  const ConvPlan p = *conv_plan(some_shape());
  const std::string key = conv_key(p, ConvPass::Forward, 0, false, false, false);
  EXPECT_EQ(key, conv_key(*conv_plan(some_shape()), ConvPass::Forward, 0, false, false, false));
  EXPECT_NE(key, conv_key(p, ConvPass::InputGradient, 0, false, false, false));
  EXPECT_NE(key, conv_key(p, ConvPass::Forward, 1, false, false, false));
  EXPECT_NE(key, conv_key(p, ConvPass::Forward, 0, true, false, false));
  EXPECT_NE(key, conv_key(p, ConvPass::Forward, 0, false, false, true));
  cpu::ConvShape other = some_shape();
  other.dilation[2] = 1;
  EXPECT_NE(key, conv_key(*conv_plan(other), ConvPass::Forward, 0, false, false, false));
}

}  // namespace
}  // namespace rushlight::cuda
