// Runs functions of TorchScript programs.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "frontend/torchscript/program.h"

namespace rushlight::jit {

using Keywords = std::unordered_map<std::string, IValue>;

// Arguments by position and by name, with the function's defaults; types are checked, as of a program of C++.
std::vector<IValue> bind_arguments(const Function& function, std::vector<IValue> arguments,
                                   const Keywords& keywords);
IValue run(Program& program, const Function& function, std::vector<IValue> arguments);

}  // namespace rushlight::jit
