// Trains a small network on scikit-learn's digits, the data of `python -m rushlight demo`.
//   digits FILE [EPOCHS] [INITIAL]
// FILE is rushlight/demo/data/digits.bin.gz, unpacked (gzip -dc): 64 pixels from 0 to 16 and a label for each
// digit. INITIAL is a state_dict to start from, written by Python's torch.save.
#include <torch/torch.h>

#include <fstream>
#include <iostream>
#include <iterator>

struct Net : torch::nn::Module {
  Net() {
    hidden = register_module("hidden", torch::nn::Linear(64, 64));
    output = register_module("output", torch::nn::Linear(64, 10));
  }
  torch::Tensor forward(const torch::Tensor& images) {
    return output(torch::relu(hidden(images.flatten(1))));
  }
  torch::nn::Linear hidden{nullptr}, output{nullptr};
};

class Digits : public torch::data::datasets::Dataset<Digits> {
 public:
  explicit Digits(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    TORCH_CHECK(file, "cannot open ", path);
    std::string bytes(std::istreambuf_iterator<char>(file), {});
    const auto count = static_cast<int64_t>(bytes.size() / 65);
    const torch::Tensor records = torch::from_blob(bytes.data(), {count, 65}, torch::kUInt8);
    images = records.narrow(1, 0, 64).reshape({count, 1, 8, 8}).to(torch::kFloat32) / 16;
    labels = records.select(1, 64).to(torch::kInt64);
  }
  torch::data::Example<> get(size_t i) override {
    const auto at = static_cast<int64_t>(i);
    return {images[at], labels[at]};
  }
  torch::optional<size_t> size() const override { return static_cast<size_t>(images.size(0)); }
  torch::Tensor images, labels;
};

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: digits FILE [EPOCHS] [INITIAL]\n";
    return 2;
  }
  torch::manual_seed(0);
  Digits digits(argv[1]);
  const int epochs = argc > 2 ? std::atoi(argv[2]) : 5;
  auto net = std::make_shared<Net>();
  if (argc > 3) torch::load(net, argv[3]);
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  auto loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      digits.map(torch::data::transforms::Stack<>()),
      torch::data::DataLoaderOptions().batch_size(128).workers(1));
  std::cout.precision(9);
  for (int epoch = 0; epoch < epochs; ++epoch) {
    double total = 0;
    int batches = 0;
    for (auto& batch : *loader) {
      optimizer.zero_grad();
      const torch::Tensor loss = torch::nn::functional::cross_entropy(net->forward(batch.data), batch.target);
      loss.backward();
      optimizer.step();
      total += loss.item<double>();
      ++batches;
    }
    std::cout << "epoch " << epoch + 1 << " loss " << total / batches << "\n";
  }
  torch::NoGradGuard no_grad;
  const torch::Tensor right = net->forward(digits.images).argmax(1) == digits.labels;
  std::cout << "accuracy " << right.to(torch::kFloat).mean().item<float>() << "\n";
  torch::save(net, "digits.pt");
}
