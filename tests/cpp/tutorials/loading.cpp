// "Loading a TorchScript Model in C++", and the second half of "Extending TorchScript with Custom C++
// Operators".
//   loading MODEL            prints the first values for an image of ones
//   loading MODEL IN OUT     runs the model on the list of values in one file, and writes what it gives
#include <torch/script.h>
#include <torch/torch.h>

#include <fstream>
#include <iostream>
#include <memory>

int main(int argc, const char* argv[]) {
  if (argc < 2) {
    std::cerr << "usage: loading <path-to-exported-script-module>\n";
    return -1;
  }
  torch::jit::script::Module module;
  try {
    module = torch::jit::load(argv[1]);
  } catch (const c10::Error& e) {
    std::cerr << "error loading the model: " << e.what_without_backtrace() << "\n";
    return -1;
  }
  if (argc == 2) {
    std::vector<torch::jit::IValue> inputs;
    inputs.push_back(torch::ones({1, 3, 32, 32}));
    at::Tensor output = module.forward(inputs).toTensor();
    std::cout << output.slice(/*dim=*/1, /*start=*/0, /*end=*/5) << '\n';
    return 0;
  }
  torch::NoGradGuard no_grad;
  std::ifstream file(argv[2], std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const std::vector<torch::jit::IValue> inputs =
      torch::pickle_load(bytes).to<std::vector<torch::jit::IValue>>();
  module.forward(inputs);
  const std::vector<char> result = torch::pickle_save(module(inputs));
  std::ofstream(argv[3], std::ios::binary).write(result.data(), static_cast<std::streamsize>(result.size()));
  if (argc > 4) module.save(argv[4]);
  return 0;
}
