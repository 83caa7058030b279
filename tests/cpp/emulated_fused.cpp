#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <unordered_map>

#include "core/error.h"
#include "cuda/fused_source.h"
#include "cuda/kernels.h"
#include "cuda/nvrtc.h"
#include "emulated_driver.h"

namespace rushlight::emulated {
namespace {

namespace fs = std::filesystem;
using Function = void (*)(const void* arguments, unsigned blocks);

}  // namespace

// For the tests: how many were made.
extern "C" {
int emulated_fused_kernels = 0;
}

namespace {

Function compile(const std::string& source) {
  ++emulated_fused_kernels;
  if (cuda::has_nvrtc()) RL_ASSERT(!cuda::compile_source(source, 90).empty(), "NVRTC gave no code");
  std::string folder = (fs::temp_directory_path() / "rushlight_fused_XXXXXX").string();
  RL_ASSERT(mkdtemp(folder.data()), "no folder to compile in");
  const fs::path text = fs::path(folder) / "fused.cpp", library = fs::path(folder) / "fused.so";
  std::ofstream(text) << source;
  const std::string command =
      str(RL_COMPILER, " -std=c++20 -O1 -w -fPIC -shared -ffp-contract=off -DRL_WHOLE_FORMULAS -I ",
          RL_SOURCES, " -o ", library.string(), " ", text.string());
  const int status = std::system(command.c_str());
  RL_ASSERT(status == 0, "this fused kernel does not compile:\n", source);
  void* const handle = dlopen(library.c_str(), RTLD_NOW);
  fs::remove_all(folder);
  RL_ASSERT(handle, "it does not load: ", dlerror());
  return reinterpret_cast<Function>(dlsym(handle, "fused"));
}

// By what the library knows kernels by, so that two texts under one key show as wrong numbers.
Function find(const std::string& key, const std::function<std::string()>& source) {
  static std::mutex mutex;
  static std::unordered_map<std::string, Function> functions;
  const std::lock_guard guard(mutex);
  Function& function = functions[key];
  if (!function) function = compile(source());
  return function;
}

}  // namespace

bool fused(const cpu::FusedProgram& program, std::span<const Tensor> inputs,
           std::span<const Tensor> outputs) {
  for (const Tensor& t : inputs)
    if (!cuda::loads(t.dtype())) return false;
  if (outputs[0].numel() == 0) return true;
  const cuda::FusedLaunch launch = cuda::fused_launch(program, inputs, outputs);
  const Function function = find(launch.key, [&] { return cuda::fused_source(program, inputs, outputs); });
  enqueue(outputs[0].device().index(), "fused", [=] { function(launch.arguments.data(), launch.blocks); });
  return true;
}

bool fuses() { return true; }

}  // namespace rushlight::emulated
