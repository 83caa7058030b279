// "CPU threading and TorchScript inference": one module, many threads; loops of one's own.
//   threads MODEL   a module of a matrix [n, 4]
#include <ATen/Parallel.h>
#include <torch/script.h>
#include <torch/torch.h>

#include <thread>

#include "check.h"

int main(int, const char* argv[]) {
  at::set_num_threads(2);
  CHECK(at::get_num_threads() >= 1);
  const torch::jit::Module module = torch::jit::load(argv[1]);
  torch::manual_seed(3);
  std::vector<torch::Tensor> inputs, expected, found(6);
  for (int i = 0; i < 6; ++i) {
    torch::NoGradGuard no_grad;
    inputs.push_back(torch::randn({i + 1, 4}));
    expected.push_back(module.forward({inputs.back()}).toTensor());
  }
  std::vector<std::thread> threads;
  for (size_t i = 0; i < found.size(); ++i)
    threads.emplace_back([&, i] {
      c10::InferenceMode guard;
      for (int round = 0; round < 20; ++round) found[i] = module.forward({inputs[i]}).toTensor();
    });
  for (std::thread& t : threads) t.join();
  for (size_t i = 0; i < found.size(); ++i) CHECK(torch::allclose(found[i], expected[i]));

  torch::Tensor sums = torch::zeros({1000});
  float* to = sums.data_ptr<float>();
  at::parallel_for(0, 1000, /*grain_size=*/10, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = static_cast<float>(i);
  });
  CHECK(sums.sum().item<double>() == 499500);
  return 0;
}
