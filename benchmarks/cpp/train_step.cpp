// One training step of a small network: forward, loss, backward, SGD with momentum. The same source is built
// against this library and against libtorch; docs/cpp.md has the ratio.
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <vector>

int main() {
  torch::manual_seed(0);
  torch::nn::Sequential net(torch::nn::Linear(16, 32), torch::nn::ReLU(), torch::nn::Linear(32, 32),
                            torch::nn::ReLU(), torch::nn::Linear(32, 4));
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9));
  const torch::Tensor x = torch::randn({8, 16}), y = torch::randint(4, {8}, torch::kLong);
  auto step = [&] {
    optimizer.zero_grad();
    torch::Tensor loss = torch::nn::functional::cross_entropy(net->forward(x), y);
    loss.backward();
    optimizer.step();
    return loss;
  };
  for (int i = 0; i < 500; ++i) step();
  std::vector<double> times;
  for (int round = 0; round < 30; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 200; ++i) step();
    times.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() / 200);
  }
  std::sort(times.begin(), times.end());
  std::cout << "us/step: min " << times.front() << " median " << times[times.size() / 2] << "  loss "
            << step().item<float>() << std::endl;
}
