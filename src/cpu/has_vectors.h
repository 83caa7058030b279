// Whether kernels are compiled for vectors worth packing for: the baseline's are those of 2003.
#pragma once
#include "core/host/processor.h"

namespace rushlight::cpu {

inline bool has_vectors() {
#if defined(__wasm_simd128__)
  return true;  // there is no other set
#else
  return host::isa() != host::Isa::kBaseline;
#endif
}

}  // namespace rushlight::cpu
