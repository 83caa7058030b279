// What programs for PyTorch's C++ library do with tensors, through the headers of that name.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <sstream>

#include "core/generator.h"

namespace {

using namespace torch::indexing;

std::string shown(const torch::Tensor& t) {
  std::ostringstream out;
  out << t;
  return out.str();
}
void expect_values(const torch::Tensor& t, std::vector<double> values) {
  const torch::Tensor flat = t.to(torch::kFloat64).contiguous().view(-1);
  ASSERT_EQ(flat.numel(), static_cast<int64_t>(values.size()));
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_DOUBLE_EQ(flat.data_ptr<double>()[i], values[i]) << "at " << i;
}

TEST(ApiTensor, IsMadeOfNestedLists) {
  const torch::Tensor t = torch::tensor({{1, 2}, {3, 4}});
  EXPECT_EQ(t.dtype(), torch::kInt64);
  EXPECT_EQ(t.sizes(), torch::IntArrayRef({2, 2}));
  expect_values(t, {1, 2, 3, 4});
  EXPECT_EQ(torch::tensor(1.5).dtype(), torch::kFloat32);
  EXPECT_EQ(torch::tensor(true).scalar_type(), torch::kBool);
  EXPECT_EQ(torch::tensor(std::vector<double>{1, 2}, torch::kFloat64).dtype(), torch::kFloat64);
  EXPECT_EQ(torch::tensor({1, 2}, torch::dtype(torch::kInt32)).dtype(), torch::kInt32);
  EXPECT_EQ(torch::tensor({1.0, 2.0}, torch::requires_grad()).requires_grad(), true);
  EXPECT_THROW(torch::tensor({{1, 2}, {3}}), rushlight::Error);
}

TEST(ApiTensor, NamesTypesAsLibtorchDoes) {
  EXPECT_EQ(torch::zeros(1, at::ScalarType::Float).scalar_type(), torch::kFloat);
  switch (torch::zeros(1, c10::ScalarType::Long).scalar_type()) {
    case torch::ScalarType::Long:
      break;
    default:
      FAIL() << "expected Long";
  }
}

TEST(ApiTensor, FactoriesTakeOptions) {
  const auto options = torch::TensorOptions().dtype(torch::kFloat64).requires_grad(true);
  EXPECT_TRUE(torch::ones({2, 3}, options).requires_grad());
  EXPECT_EQ(torch::zeros(4, torch::kInt).sizes(), torch::IntArrayRef({4}));
  expect_values(torch::arange(0, 6, 2), {0, 2, 4});
  expect_values(torch::arange(1, 3, torch::kFloat), {1, 2});
  expect_values(torch::full({2}, 7.5), {7.5, 7.5});
  EXPECT_EQ(torch::randint(3, 5, {10}).dtype(), torch::kInt64);
  EXPECT_EQ(torch::empty({2}, torch::kCPU).device(), torch::Device("cpu"));
  EXPECT_EQ(torch::zeros_like(torch::ones(2, torch::kDouble)).dtype(), torch::kDouble);
}

TEST(ApiTensor, HasOperatorsAndMethods) {
  torch::Tensor a = torch::tensor({1.0, 2.0}), b = torch::tensor({3.0, 5.0});
  expect_values(a + b * 2 - 1, {6, 11});
  expect_values(1 / a, {1, 0.5});
  expect_values(-a, {-1, -2});
  expect_values(a == 1, {1, 0});
  expect_values(a != b, {1, 1});
  expect_values((a > 1) & (b < 6), {0, 1});
  expect_values(!(a > 1), {1, 0});
  a += b;
  a *= 2;
  expect_values(a, {8, 14});
  EXPECT_EQ(a.sum().item<int>(), 22);
  EXPECT_EQ(std::get<1>(torch::stack({a, b}).max(0)).sum().item<int64_t>(), 0);
  expect_values(a.add(b, 2), {14, 24});
  expect_values(a.clamp(10, torch::nullopt), {10, 14});
  expect_values(torch::where(a > 10, a, b), {3, 14});
  expect_values(torch::cat({a, b}).pow(2), {64, 196, 9, 25});
  expect_values(a.to(torch::kInt).fmod(3), {2, 2});
  EXPECT_EQ(torch::ones({2, 3}).sum(1).sizes(), torch::IntArrayRef({2}));
  EXPECT_EQ(torch::ones({2, 3, 4}).mean({0, 2}, true).sizes(), torch::IntArrayRef({1, 3, 1}));
  EXPECT_NEAR(torch::tensor({1.0, 3.0}).std().item<double>(), 1.41421356, 1e-6);
  torch::Tensor out;
  EXPECT_THROW(torch::ones({2, 3}).mm(torch::ones({2, 3})), rushlight::Error);
  out = torch::empty({2});
  torch::add_out(out, b, b, 1);
  expect_values(out, {6, 10});
}

TEST(ApiTensor, IsIndexed) {
  torch::Tensor x = torch::arange(24).view({2, 3, 4});
  expect_values(x.index({1, 2, 3}), {23});
  expect_values(x.index({"...", 0}), {0, 4, 8, 12, 16, 20});
  expect_values(x.index({0, Slice(1, None), Slice(None, None, 2)}), {4, 6, 8, 10});
  EXPECT_EQ(x.index({None, Ellipsis, None}).sizes(), torch::IntArrayRef({1, 2, 3, 4, 1}));
  expect_values(x.index({torch::tensor({1, 0}), 2, torch::tensor({3, 0})}), {23, 8});
  expect_values(x.index({x > 21}), {22, 23});
  EXPECT_EQ(x.index({x.sum({1, 2}) > 100}).sizes(), torch::IntArrayRef({1, 3, 4}));
  EXPECT_EQ(x.index({true}).sizes(), torch::IntArrayRef({1, 2, 3, 4}));
  x.index_put_({0, Slice(), 0}, 9);
  x.index_put_({x == 9}, torch::tensor(-1));
  expect_values(x.index({0}).select(1, 0), {-1, -1, -1});
  x[1][0] = torch::tensor({5, 6, 7, 8});
  x[1][1][1] = 100;
  expect_values(x[1].index({Slice(0, 2)}), {5, 6, 7, 8, 16, 100, 18, 19});
  EXPECT_THROW(x.index({0, 0, 0, 0}), rushlight::Error);
  EXPECT_THROW(x.index({2}), rushlight::Error);
  EXPECT_THROW(x.index({Slice(0, 1, 0)}), rushlight::Error);
  EXPECT_THROW(torch::ones(2).index({"x"}), rushlight::Error);
}

TEST(ApiTensor, ShowsItsMemory) {
  torch::Tensor x = torch::arange(6, torch::kFloat).view({2, 3});
  auto a = x.accessor<float, 2>();
  a[1][2] = 50;
  EXPECT_EQ(a.size(1), 3);
  EXPECT_EQ(x[1][2].item<float>(), 50);
  EXPECT_THROW(x.data_ptr<double>(), rushlight::Error);
  EXPECT_THROW((x.accessor<float, 1>()), rushlight::Error);
  EXPECT_THROW(x.item(), rushlight::Error);
  std::vector<float> memory = {1, 2, 3, 4};
  int freed = 0;
  {
    torch::Tensor blob = torch::from_blob(memory.data(), {2, 2}, [&](void*) { ++freed; });
    blob.mul_(2);
    torch::Tensor turned = torch::from_blob(memory.data(), {2, 2}, {1, 2});
    expect_values(turned, {2, 6, 4, 8});
  }
  EXPECT_EQ(freed, 1);
  EXPECT_EQ(memory[3], 8);
}

TEST(ApiTensor, Prints) {
  EXPECT_EQ(shown(torch::tensor({{1, 2}, {3, 40}})), "  1   2\n  3  40\n[ CPULongType{2,2} ]");
  EXPECT_EQ(shown(torch::tensor({0.5, -1.25})), " 0.5000\n-1.2500\n[ CPUFloatType{2} ]");
  EXPECT_EQ(shown(torch::tensor(3)), "3\n[ CPULongType{} ]");
  EXPECT_EQ(shown(torch::tensor({100000.5, 2.0})), " 1.0000e+05\n 2.0000e+00\n[ CPUFloatType{2} ]");
  EXPECT_EQ(shown(torch::ones({2, 1, 1})), "(1,.,.) = \n  1\n\n(2,.,.) = \n  1\n[ CPUFloatType{2,1,1} ]");
  EXPECT_EQ(shown(torch::Tensor()), "[ Tensor (undefined) ]");
  EXPECT_EQ(shown(torch::empty({0, 3})), "[ CPUFloatType{0,3} ]");
  std::ostringstream out;
  out << torch::kFloat << " " << torch::Device("cpu") << " " << torch::ones({2, 3}).sizes();
  EXPECT_EQ(out.str(), "Float cpu [2, 3]");
}

TEST(ApiTensor, DispatchesOnTypes) {
  const torch::Tensor x = torch::ones(3, torch::kDouble);
  const size_t size = AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "size", [&] { return sizeof(scalar_t); });
  EXPECT_EQ(size, sizeof(double));
  const torch::Tensor number = torch::ones(1, torch::kInt);
  EXPECT_THROW(AT_DISPATCH_FLOATING_TYPES(number.scalar_type(), "size", [&] { return sizeof(scalar_t); }),
               rushlight::Error);
  EXPECT_THROW(TORCH_CHECK(false, "value ", 3), rushlight::Error);
}

TEST(ApiTensor, RandomNumbersAreThoseOfPython) {
  torch::manual_seed(0);
  const torch::Tensor x = torch::rand(3);
  EXPECT_FLOAT_EQ(x[0].item<float>(), 0.49625658988952637f);
  EXPECT_FLOAT_EQ(x[1].item<float>(), 0.7682217955589294f);
  const torch::Tensor state = torch::get_rng_state(), first = torch::randn(4);
  torch::set_rng_state(state);
  EXPECT_TRUE(torch::equal(first, torch::randn(4)));
}

TEST(ApiTensor, SeedsDevicesToo) {
  torch::manual_seed(11);
  EXPECT_EQ(rushlight::device_generator(0).initial_seed(), 11u);
  torch::cuda::manual_seed_all(12);
  EXPECT_EQ(rushlight::device_generator(0).initial_seed(), 12u);
  EXPECT_EQ(torch::initial_seed(), 11u);
}

}  // namespace
