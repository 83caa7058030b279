// A module run on devices of the caller's choice.
#pragma once
#include "torch/names.h"

namespace rushlight::nn::parallel {

// module->forward(input) on a device, with the result on `output_device`. Without `devices` all CUDA devices
// are meant. On several devices replicas would have to share their gradients with the module, which is
// missing.
template <class ModuleType>
Tensor data_parallel(ModuleType module, Tensor input,
                     std::optional<std::vector<Device>> devices = std::nullopt,
                     std::optional<Device> output_device = std::nullopt, [[maybe_unused]] int64_t dim = 0) {
  if (!devices) {
    devices.emplace();
    for (size_t i = 0; i < cuda::device_count(); ++i) devices->emplace_back(kCUDA, static_cast<int>(i));
  }
  RL_CHECK(!devices->empty(), "Expected at least one CUDA device to be available");
  if (devices->size() > 1)
    RL_NOT_IMPLEMENTED("data_parallel: on ", devices->size(),
                       " devices at a time; use one, or DistributedDataParallel in Python");
  const Device device = devices->front();
  module->to(device);
  return module->forward(input.to(device)).to(output_device.value_or(device));
}

}  // namespace rushlight::nn::parallel
