#include "cpu/copy_run.h"

#include "cpu/isa_variant.h"

namespace rushlight::cpu {

RL_DECLARE_VARIANTS(void copy_lines_variant(char* to, const char* from, size_t n);)

void copy_lines(char* to, const char* from, size_t n) { RL_ISA_VARIANT(copy_lines_variant(to, from, n)); }

}  // namespace rushlight::cpu
