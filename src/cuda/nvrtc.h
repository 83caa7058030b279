// NVRTC, NVIDIA's compiler as a library, which is found at run time.
#pragma once
#include <string>
#include <vector>

namespace rushlight::cuda {

// Whether it was found.
bool has_nvrtc();
// A source with includes of this library's headers (cmake/Cuda.cmake lists them), as machine code for devices
// of a compute capability, such as 90. Fails with what is missing, or with the compiler's own words.
std::vector<char> compile_source(const std::string& source, int capability);

// The headers that sources may include, by name.
struct SourceHeader {
  const char *name, *text;
};
extern const SourceHeader source_headers[];
extern const int source_header_count;

}  // namespace rushlight::cuda
