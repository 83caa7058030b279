// "Using the PyTorch C++ Frontend": modules, the data loader, training with checkpoints. The generator and
// the discriminator are in examples/cpp/dcgan.
//   frontend FOLDER   a folder for MNIST's files, of which it makes small ones, and for checkpoints
#include <torch/torch.h>

#include <fstream>

#include "check.h"

struct Net : torch::nn::Module {
  Net(int64_t N, int64_t M) : linear(register_module("linear", torch::nn::Linear(N, M))) {
    another_bias = register_parameter("b", torch::randn(M));
  }
  torch::Tensor forward(torch::Tensor input) { return linear(input) + another_bias; }
  torch::nn::Linear linear;
  torch::Tensor another_bias;
};

struct DigitsImpl : torch::nn::Module {
  DigitsImpl()
      : conv(torch::nn::Conv2dOptions(1, 4, 5).stride(2).bias(false)), batch_norm(4), fc(4 * 12 * 12, 10) {
    register_module("conv", conv);
    register_module("batch_norm", batch_norm);
    register_module("fc", fc);
  }
  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(batch_norm(conv(x)));
    x = torch::dropout(x, /*p=*/0.1, /*train=*/is_training());
    return torch::log_softmax(fc(x.flatten(1)), /*dim=*/1);
  }
  torch::nn::Conv2d conv;
  torch::nn::BatchNorm2d batch_norm;
  torch::nn::Linear fc;
};
TORCH_MODULE(Digits);

// 40 images, of which each digit lights a row of its own.
static void write_mnist(const std::string& folder) {
  constexpr uint32_t count = 40;
  const auto numbers = [](std::ofstream& file, std::initializer_list<uint32_t> list) {
    for (const uint32_t n : list)
      for (int shift = 24; shift >= 0; shift -= 8) file.put(static_cast<char>(n >> shift));
  };
  std::ofstream images(folder + "/train-images-idx3-ubyte", std::ios::binary);
  numbers(images, {2051, count, 28, 28});
  std::ofstream labels(folder + "/train-labels-idx1-ubyte", std::ios::binary);
  numbers(labels, {2049, count});
  for (uint32_t i = 0; i < count; ++i) {
    labels.put(static_cast<char>(i % 10));
    for (uint32_t row = 0; row < 28; ++row)
      for (uint32_t column = 0; column < 28; ++column)
        images.put(static_cast<char>(row / 2 == i % 10 ? 255 : 0));
  }
}

static void modules() {
  Net net(4, 5);
  std::string names;
  for (const auto& pair : net.named_parameters()) names += pair.key() + " ";
  CHECK(names == "b linear.weight linear.bias ");
  CHECK(net.parameters().size() == 3);
  CHECK(net.forward(torch::ones({2, 4})).sizes() == at::IntArrayRef({2, 5}));

  torch::nn::Sequential discriminator(
      torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 8, 4).stride(2).padding(1).bias(false)),
      torch::nn::LeakyReLU(torch::nn::LeakyReLUOptions().negative_slope(0.2)), torch::nn::BatchNorm2d(8),
      torch::nn::Conv2d(torch::nn::Conv2dOptions(8, 1, 14).stride(1).padding(0).bias(false)),
      torch::nn::Sigmoid());
  CHECK(discriminator->forward(torch::randn({2, 1, 28, 28})).numel() == 2);
}

int main(int, const char* argv[]) {
  const std::string folder = argv[1];
  torch::manual_seed(0);
  modules();
  write_mnist(folder);

  torch::Device device(torch::kCPU);
  if (torch::cuda::is_available()) device = torch::kCUDA;
  auto dataset = torch::data::datasets::MNIST(folder)
                     .map(torch::data::transforms::Normalize<>(0.5, 0.5))
                     .map(torch::data::transforms::Stack<>());
  auto data_loader = torch::data::make_data_loader(std::move(dataset),
                                                   torch::data::DataLoaderOptions().batch_size(8).workers(2));
  Digits digits;
  digits->to(device);
  torch::optim::Adam optimizer(digits->parameters(),
                               torch::optim::AdamOptions(2e-2).betas(std::make_tuple(0.5, 0.99)));
  double first = 0, last = 0;
  for (int epoch = 0; epoch < 4; ++epoch) {
    last = 0;
    for (torch::data::Example<>& batch : *data_loader) {
      optimizer.zero_grad();
      torch::Tensor loss = torch::nll_loss(digits(batch.data.to(device)), batch.target.to(device));
      CHECK(!std::isnan(loss.template item<float>()));
      loss.backward();
      optimizer.step();
      last += loss.item<double>();
    }
    if (epoch == 0) first = last;
  }
  CHECK(last < first / 4);

  torch::save(digits, folder + "/digits-checkpoint.pt");
  torch::save(optimizer, folder + "/optimizer-checkpoint.pt");
  Digits again;
  torch::load(again, folder + "/digits-checkpoint.pt");
  torch::optim::Adam optimizer_again(again->parameters(), torch::optim::AdamOptions(1e-3));
  torch::load(optimizer_again, folder + "/optimizer-checkpoint.pt");
  digits->eval();
  again->eval();
  const torch::Tensor x = torch::randn({3, 1, 28, 28});
  CHECK(torch::equal(digits(x.to(device)).cpu(), again(x)));
  return 0;
}
