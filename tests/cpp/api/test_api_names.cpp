// What programs for libtorch name beside tensors: headers, name spaces, checks, warnings, devices.
#include <ATen/Parallel.h>
#include <c10/core/Device.h>
#include <c10/util/irange.h>
#include <gtest/gtest.h>
#include <torch/nn/modules.h>
#include <torch/optim/sgd.h>
#include <torch/torch.h>

// Programs may add to the name spaces, and use several of them at once.
namespace torch {
namespace mine {
Tensor twice(const Tensor& x) { return x * 2; }
}  // namespace mine
}  // namespace torch
namespace at {
inline int64_t answer() { return 42; }
}  // namespace at

namespace {

using namespace torch;
using namespace at;
using namespace torch::indexing;

TEST(ApiNames, SpacesAreOpen) {
  nn::Linear layer(2, 3);
  EXPECT_TRUE(
      torch::mine::twice(at::ones({2})).equal(c10::IntArrayRef({2}).size() == 1 ? full({2}, 2.0) : ones(0)));
  EXPECT_EQ(at::answer(), 42);
  const std::vector<TensorIndex> indices = {None, Ellipsis, 0, true, Slice(1, None, 2), Slice(None, 3, -1)};
  EXPECT_EQ(c10::str(indices), c10::str("(None, ..., 0, true, 1:", INDEX_MAX, ":2, ", INDEX_MAX, ":3:-1)"));
}

TEST(ApiNames, ChecksTakeWhatStreamsTake) {
  const Tensor x = zeros({2, 3});
  try {
    TORCH_CHECK(false, "sizes ", x.sizes(), " of ", x.scalar_type(), " on ", x.device(), ", ", 1.5);
    FAIL();
  } catch (const c10::Error& e) {
    EXPECT_STREQ(e.what_without_backtrace(), "sizes [2, 3] of Float on cpu, 1.5");
    EXPECT_EQ(e.msg(), e.what());
  }
}

TEST(ApiNames, Warnings) {
  testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) TORCH_WARN_ONCE("said once ", i);
  for (int i = 0; i < 2; ++i) TORCH_WARN("said often ", i);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("said once 0"), std::string::npos);
  EXPECT_EQ(said.find("said once 1"), std::string::npos);
  EXPECT_NE(said.find("said often 1"), std::string::npos);
}

TEST(ApiNames, Devices) {
  Device device("cuda:1");
  EXPECT_EQ(device.type(), kCUDA);
  EXPECT_EQ(device.index(), 1);
  EXPECT_TRUE(device.has_index());
  device.set_index(0);
  EXPECT_EQ(device.str(), "cuda:0");
  EXPECT_FALSE(Device(Device::Type::CPU).has_index());
  EXPECT_EQ(TensorOptions("meta").device().type(), kMeta);
  EXPECT_EQ(zeros(3).device().type(), kCPU);
}

TEST(ApiNames, RangesAndThreads) {
  int64_t sum = 0;
  for (const auto i : c10::irange(2, int64_t{5})) sum += i;
  for (const auto i : c10::irange(3)) sum += i;
  for ([[maybe_unused]] const auto i : c10::irange(-2)) sum = -1;
  EXPECT_EQ(sum, 9 + 3);
  std::vector<int> seen(100);
  at::parallel_for(0, 100, 10, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) ++seen[static_cast<size_t>(i)];
  });
  EXPECT_EQ(seen, std::vector<int>(100, 1));
  torch::set_num_interop_threads(2);
  EXPECT_EQ(torch::get_num_interop_threads(), 1);
}

TEST(ApiNames, Slices) {
  const Tensor x = arange(12).view({3, 4});
  EXPECT_TRUE(x.slice(1, 1, 4, 2).equal(x.index({Slice(), Slice(1, 4, 2)})));
  EXPECT_TRUE(x.slice().equal(x));
  EXPECT_TRUE(x.slice(0, -1).equal(x.narrow(0, 2, 1)));
  EXPECT_THROW(x.slice(2, 0, 1), c10::Error);
}

TEST(ApiNames, ComplexNumbers) {
  const std::vector<c10::complex<double>> numbers = {{1, 2}, {3, -4}};
  const Tensor x = torch::tensor(numbers, kComplexDouble);
  EXPECT_EQ(x.data_ptr<c10::complex<double>>()[1], numbers[1]);
}

}  // namespace
