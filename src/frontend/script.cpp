#include "rushlight/script.h"

#include "core/error.h"

namespace rushlight::jit {

const runtime::Model& Module::model() const {
  RL_CHECK(model_, "this jit::Module is empty: torch::jit::load gives one that can run");
  return *model_;
}

IValue Module::forward(const std::vector<IValue>& inputs) const {
  std::vector<Tensor> tensors;
  for (const IValue& value : inputs) tensors.push_back(value.toTensor());
  std::vector<Tensor> results = model().run(tensors);
  if (results.size() == 1) return IValue(std::move(results[0]));
  return IValue(IValue::Tuple{IValue::List(results.begin(), results.end())});
}

void Module::train(bool on) {
  RL_CHECK(!on, "a model in a file is for inference: train it before it is exported");
}

void Module::to(Device device, bool) {
  RL_CHECK(device.is_cpu(), "models in files run on the CPU, not on ", device);
}

Module load(const std::string& path, std::optional<Device> device) {
  Module module(runtime::Model::load(path));
  if (device) module.to(*device);
  return module;
}

}  // namespace rushlight::jit
