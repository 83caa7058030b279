#include "cuda/nvrtc.h"

#include "core/error.h"
#include "core/host/library.h"
#include "cuda/library.h"

namespace rushlight::cuda {
namespace {

using Program = void*;

struct Nvrtc {
  Nvrtc() {
    if (library.found()) load_builtins();
  }

  Library library{"NVRTC", {"cu13", "cuda_nvrtc"}, {"libnvrtc.so.13", "libnvrtc.so.12"}, "nvidia-cuda-nvrtc"};
  Entry<int(Program*, const char* source, const char* name, int headers, const char* const* texts,
            const char* const* names)>
      create{library, "nvrtcCreateProgram"};
  Entry<int(Program, int options, const char* const*)> compile{library, "nvrtcCompileProgram"};
  Entry<int(Program, size_t*)> log_size{library, "nvrtcGetProgramLogSize"};
  Entry<int(Program, char*)> log{library, "nvrtcGetProgramLog"};
  Entry<int(Program, size_t*)> code_size{library, "nvrtcGetCUBINSize"};
  Entry<int(Program, char*)> code{library, "nvrtcGetCUBIN"};
  Entry<int(Program*)> destroy{library, "nvrtcDestroyProgram"};
  Entry<int(int* major, int* minor)> version{library, "nvrtcVersion"};

 private:
  // A library that NVRTC asks for by name alone: 13.0 does not know that it lies in its own folder.
  void load_builtins() {
    int major = 0, minor = 0;
    int (*const function)(int*, int*) = version;
    if (version(&major, &minor) != 0) return;
    const std::string folder = host::folder_of(reinterpret_cast<const void*>(function));
    host::load_library(str(folder, "libnvrtc-builtins.so.", major, ".", minor));
  }
};

const Nvrtc& api() {
  static const Nvrtc one;
  return one;
}

// What a pair of functions gives: how many bytes, and the bytes.
std::vector<char> bytes_of(Program program, int (*size_of)(Program, size_t*), int (*get)(Program, char*),
                           const char* what) {
  size_t size = 0;
  check_status("NVRTC", size_of(program, &size), what);
  std::vector<char> bytes(size);
  check_status("NVRTC", get(program, bytes.data()), what);
  return bytes;
}

}  // namespace

bool has_nvrtc() { return api().library.found(); }

std::vector<char> compile_source(const std::string& source, int capability) {
  const Nvrtc& nvrtc = api();
  nvrtc.library.require("kernels made at run time");
  std::vector<const char*> names, texts;
  for (int i = 0; i < source_header_count; ++i)
    names.push_back(source_headers[i].name), texts.push_back(source_headers[i].text);
  Program program = nullptr;
  check_status(
      "NVRTC",
      nvrtc.create(&program, source.c_str(), "fused.cu", source_header_count, texts.data(), names.data()),
      "nvrtcCreateProgram");
  struct Destroy {
    Program program;
    ~Destroy() { api().destroy(&program); }
  } const destroy{program};
  const std::string architecture = str("--gpu-architecture=sm_", capability);
  const char* options[] = {architecture.c_str(), "--std=c++20", "--device-as-default-execution-space",
                           "--disable-warnings"};
  if (nvrtc.compile(program, std::size(options), options) == 0)
    return bytes_of(program, nvrtc.code_size, nvrtc.code, "nvrtcGetCUBIN");
  const std::vector<char> log = bytes_of(program, nvrtc.log_size, nvrtc.log, "nvrtcGetProgramLog");
  throw Error(ErrorKind::Internal, str("NVRTC could not compile a fused kernel for sm_", capability, ":\n",
                                       log.data(), "\nThe kernel was:\n", source));
}

}  // namespace rushlight::cuda
