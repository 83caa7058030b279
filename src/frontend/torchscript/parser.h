// Reads files of TorchScript code.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/torchscript/syntax.h"

namespace rushlight::jit {

// What one file defines.
struct CodeFile {
  std::vector<std::unique_ptr<ClassType>> classes;
  OrderedDict<std::string, std::unique_ptr<Function>> functions;
};

// `prefix` is the file's place in the program, "__torch__.models"; `constants` are those of the archive, and
// its version says what operators did then.
CodeFile parse_code(std::string_view code, const std::string& file, const std::string& prefix,
                    const std::vector<IValue>& constants, int64_t version);

}  // namespace rushlight::jit
