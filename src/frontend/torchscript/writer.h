// Writes modules that came from TorchScript archives to archives again.
#pragma once
#include <memory>
#include <string>
#include <unordered_map>

#include "frontend/torchscript/program.h"

namespace rushlight::jit {

std::string write_module(const std::shared_ptr<Instance>& module,
                         const std::unordered_map<std::string, std::string>& extra_files);

}  // namespace rushlight::jit
