// The notes "Tensor Creation API", "Tensor Basics", "Tensor Indexing API", "Inference Mode" and the FAQ.
#include <ATen/ATen.h>
#include <torch/torch.h>

#include <numeric>

#include "check.h"

using torch::indexing::None;
using torch::indexing::Slice;

static void creation() {
  torch::Tensor tensor = torch::rand({2, 3});
  CHECK(tensor.sizes() == at::IntArrayRef({2, 3}));
  CHECK(torch::ones(5).dim() == 1);
  tensor = torch::randint(/*high=*/10, {5, 5});
  CHECK(torch::randint(/*low=*/3, /*high=*/10, {5}).min().item<int64_t>() >= 3);
  auto options = torch::TensorOptions()
                     .dtype(torch::kFloat32)
                     .layout(torch::kStrided)
                     .device(torch::kCPU)
                     .requires_grad(true);
  tensor = torch::full({3, 4}, /*value=*/123, options);
  CHECK(tensor.dtype() == torch::kFloat32 && tensor.device().type() == torch::kCPU && tensor.requires_grad());
  CHECK(torch::ones(10, torch::TensorOptions().dtype(torch::kFloat32)).dtype() == torch::kFloat32);
  CHECK(torch::ones(10, torch::kFloat64).dtype() == torch::kFloat64);
  CHECK(torch::ones(10, torch::dtype(torch::kInt32).requires_grad(false)).dtype() == torch::kInt32);
  CHECK(torch::randn({3, 4}, torch::requires_grad()).requires_grad());
  torch::Tensor source = torch::randn({2, 3}, torch::kInt64 == torch::kLong ? torch::kFloat : torch::kDouble);
  CHECK(source.to(torch::kInt32).dtype() == torch::kInt32);
  CHECK(torch::arange(0, 10, 2).numel() == 5);
  CHECK(torch::tensor({{1, 2}, {3, 4}})[1][0].item<int>() == 3);
  CHECK(torch::eye(3).trace().item<double>() == 3);
  CHECK(torch::linspace(0, 1, 5)[1].item<float>() == 0.25f);
}

static void basics() {
  at::Tensor a = at::ones({2, 2}, at::kInt);
  at::Tensor b = at::randn({2, 2});
  auto c = a + b.to(at::kInt);
  CHECK(c.dtype() == at::kInt);

  torch::Tensor foo = torch::rand({12, 12});
  auto foo_a = foo.accessor<float, 2>();
  float trace = 0;
  for (int i = 0; i < foo_a.size(0); i++) trace += foo_a[i][i];
  CHECK(std::abs(trace - foo.trace().item<float>()) < 1e-4);

  float data[] = {1, 2, 3, 4, 5, 6};
  torch::Tensor f = torch::from_blob(data, {2, 3});
  CHECK(f[1][2].item<float>() == 6);
  f[1][2] = 7;
  CHECK(data[5] == 7);
  int deleted = 0;
  {
    torch::from_blob(data, {6}, [&](void*) { ++deleted; });
  }
  CHECK(deleted == 1);

  torch::Tensor two = torch::rand({10, 20});
  two[0][0] += at::Scalar(4.2);
  auto sum = two.sum();
  CHECK(sum.dim() == 0 && sum.item<double>() > 4.2);
  CHECK(at::Tensor().defined() == false);
  CHECK(torch::equal(torch::mm(a.to(at::kFloat), b), a.to(at::kFloat).matmul(b)));
}

static void indexing() {
  torch::Tensor tensor = torch::arange(24).view({2, 3, 4});
  CHECK(torch::equal(tensor.index({None}), tensor.unsqueeze(0)));
  CHECK(torch::equal(tensor.index({"...", 1}), tensor.select(2, 1)));
  CHECK(torch::equal(tensor.index({torch::indexing::Ellipsis}), tensor));
  CHECK(torch::equal(tensor.index({1, 2}), tensor[1][2]));
  CHECK(torch::equal(tensor.index({Slice(), Slice(0, None, 2)}), tensor.slice(1, 0, 3, 2)));
  CHECK(torch::equal(tensor.index({torch::tensor({1, 0})}), tensor.flip(0)));
  CHECK(torch::equal(tensor.index({torch::tensor({false, true})}), tensor.slice(0, 1)));
  tensor.index_put_({Slice(), 1}, 5);
  CHECK(tensor.index({1, 1, 3}).item<int>() == 5);
  tensor.index_put_({"...", Slice({None, None, 2})}, torch::zeros({}, torch::kLong));
  CHECK(tensor.index({0, 0, 2}).item<int>() == 0);
  tensor.index({0}) = 9;
  CHECK(tensor.index({0, 2, 3}).item<int>() == 9);
}

static void inference_mode() {
  torch::Tensor s = torch::ones({1, 2, 3}).set_requires_grad(true);
  torch::Tensor inside;
  {
    c10::InferenceMode guard;
    CHECK(c10::InferenceMode::is_enabled());
    inside = torch::ones({1, 2, 3});
    CHECK(inside.is_inference() && !(s * 2).requires_grad());
    inside.add_(1);
    c10::InferenceMode off(false);
    CHECK(!torch::ones({1}).is_inference());
  }
  CHECK(!c10::InferenceMode::is_enabled());
  CHECK(throws<c10::Error>([&] { inside.add_(1); }));
  CHECK(throws<c10::Error>([&] { inside* s; }));
  CHECK(!inside.clone().is_inference());
}

int main() {
  creation();
  basics();
  indexing();
  inference_mode();
  return 0;
}
