// The vectorised parts of the random kernels, one set per instruction set.
#pragma once
#include <cstdint>

namespace rushlight::cpu {

struct RandomBlocks {
  // Random bits to [from, to). A double takes two words, the high one first.
  void (*uniform_float)(const uint32_t* bits, float* out, int64_t n, float from, float to);
  void (*uniform_double)(const uint32_t* bits, double* out, int64_t n, double from, double to);
  // Box-Muller in place on 16 uniform numbers: the first half gives radii, the second angles.
  void (*normal_float)(float* data, int64_t blocks, float mean, float std);
  void (*normal_double)(double* data, int64_t blocks, double mean, double std);
  // a * b + c, rounded once where PyTorch's build for this instruction set does.
  double (*multiply_add)(double a, double b, double c);
};

}  // namespace rushlight::cpu

namespace rushlight {
namespace baseline {
extern const cpu::RandomBlocks random_blocks;
}
namespace avx2 {
extern const cpu::RandomBlocks random_blocks;
}
namespace avx512 {
extern const cpu::RandomBlocks random_blocks;
}
namespace neon {
extern const cpu::RandomBlocks random_blocks;
}
}  // namespace rushlight
