// The kernel of a fused program as text: C++ that NVRTC compiles (fused.cpp), written with fused_kernel.h.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "cpu/fused.h"

namespace rushlight::cuda {

// One launch of a kernel.
struct FusedLaunch {
  std::string key;                  // the same for programs, layouts and sizes of one text
  std::vector<uint64_t> arguments;  // what the text's struct Arguments holds, word by word
  unsigned blocks = 0, threads = 0;
};

// For inputs and outputs as cpu::run_fused takes them, of dtypes that kernels read (cuda/kernels.h). Inputs
// of no dimensions may be on the CPU.
FusedLaunch fused_launch(const cpu::FusedProgram& program, std::span<const Tensor> inputs,
                         std::span<const Tensor> outputs);
std::string fused_source(const cpu::FusedProgram& program, std::span<const Tensor> inputs,
                         std::span<const Tensor> outputs);

}  // namespace rushlight::cuda
