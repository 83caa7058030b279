// A deep convolutional GAN on the digits' 8 x 8 images: dcgan FILE [STEPS]. FILE as in ../digits.
#include <torch/torch.h>

#include <fstream>
#include <iostream>
#include <iterator>

constexpr int64_t kNoise = 32;

struct GeneratorImpl : torch::nn::Module {
  GeneratorImpl()
      : conv1(torch::nn::ConvTranspose2dOptions(kNoise, 64, 2).bias(false)),
        norm1(64),
        conv2(torch::nn::ConvTranspose2dOptions(64, 32, 4).stride(2).padding(1).bias(false)),
        norm2(32),
        conv3(torch::nn::ConvTranspose2dOptions(32, 1, 4).stride(2).padding(1)) {
    register_module("conv1", conv1);
    register_module("norm1", norm1);
    register_module("conv2", conv2);
    register_module("norm2", norm2);
    register_module("conv3", conv3);
  }
  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(norm1(conv1(x)));
    x = torch::relu(norm2(conv2(x)));
    return torch::sigmoid(conv3(x));
  }
  torch::nn::ConvTranspose2d conv1;
  torch::nn::BatchNorm2d norm1;
  torch::nn::ConvTranspose2d conv2;
  torch::nn::BatchNorm2d norm2;
  torch::nn::ConvTranspose2d conv3;
};
TORCH_MODULE(Generator);

torch::Tensor read_images(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  TORCH_CHECK(file, "cannot open ", path);
  std::string bytes(std::istreambuf_iterator<char>(file), {});
  const auto count = static_cast<int64_t>(bytes.size() / 65);
  const torch::Tensor records = torch::from_blob(bytes.data(), {count, 65}, torch::kUInt8);
  return records.narrow(1, 0, 64).reshape({count, 1, 8, 8}).to(torch::kFloat32) / 16;
}

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: dcgan FILE [STEPS]\n";
    return 2;
  }
  torch::manual_seed(0);
  const int steps = argc > 2 ? std::atoi(argv[2]) : 200;
  Generator generator;
  torch::nn::Sequential discriminator(
      torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 32, 4).stride(2).padding(1).bias(false)),
      torch::nn::LeakyReLU(torch::nn::LeakyReLUOptions().negative_slope(0.2)),
      torch::nn::Conv2d(torch::nn::Conv2dOptions(32, 64, 4).stride(2).padding(1).bias(false)),
      torch::nn::BatchNorm2d(64), torch::nn::LeakyReLU(torch::nn::LeakyReLUOptions().negative_slope(0.2)),
      torch::nn::Conv2d(torch::nn::Conv2dOptions(64, 1, 2)), torch::nn::Sigmoid());
  const auto options = torch::optim::AdamOptions(2e-3).betas(std::make_tuple(0.5, 0.999));
  torch::optim::Adam of_generator(generator->parameters(), options);
  torch::optim::Adam of_discriminator(discriminator->parameters(), options);

  auto loader =
      torch::data::make_data_loader(torch::data::datasets::TensorDataset(read_images(argv[1]))
                                        .map(torch::data::transforms::Stack<torch::data::TensorExample>()),
                                    torch::data::DataLoaderOptions(64).workers(2).drop_last(true));
  for (int step = 0; step < steps;) {
    for (auto& batch : *loader) {
      // 1. Real images should be called real.
      discriminator->zero_grad();
      const torch::Tensor real = batch.data;
      const torch::Tensor real_loss = torch::binary_cross_entropy(discriminator->forward(real).reshape(-1),
                                                                  torch::full(real.size(0), 0.9));
      real_loss.backward();
      // 2. Generated ones should not.
      const torch::Tensor noise = torch::randn({real.size(0), kNoise, 1, 1});
      const torch::Tensor fake = generator->forward(noise);
      const torch::Tensor fake_loss = torch::binary_cross_entropy(
          discriminator->forward(fake.detach()).reshape(-1), torch::zeros(real.size(0)));
      fake_loss.backward();
      of_discriminator.step();
      // 3. The generator tries to be believed.
      generator->zero_grad();
      const torch::Tensor g_loss =
          torch::binary_cross_entropy(discriminator->forward(fake).reshape(-1), torch::ones(real.size(0)));
      g_loss.backward();
      of_generator.step();
      if (++step % 20 == 0 || step == steps)
        std::cout << "step " << step << " D " << (real_loss + fake_loss).item<float>() << " G "
                  << g_loss.item<float>() << std::endl;
      if (step == steps) break;
    }
  }
  torch::save(generator, "generator.pt");
}
