// Models in one file behind the interface of libtorch's script modules: programs that load one and run it
// compile unchanged. Files are made by rushlight.export.save_file (docs/one_file.md), not by torch.jit.save.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "rushlight/ivalue.h"
#include "rushlight/runtime.h"

namespace rushlight::jit {

class Module {
 public:
  Module() = default;
  explicit Module(runtime::Model model) : model_(std::move(model)) {}

  // Tensors in the order of the model's inputs. One output is a tensor, several are a tuple.
  IValue forward(const std::vector<IValue>& inputs) const;
  IValue operator()(const std::vector<IValue>& inputs) const { return forward(inputs); }

  // A file holds what a model computes for inference, on the CPU: these only check.
  void eval() {}
  void train(bool on = true);
  bool is_training() const { return false; }
  void to(Device device, bool non_blocking = false);

  const runtime::Model& model() const;

 private:
  std::optional<runtime::Model> model_;
};

Module load(const std::string& path, std::optional<Device> device = std::nullopt);

namespace script {
using jit::Module;
}  // namespace script

}  // namespace rushlight::jit
