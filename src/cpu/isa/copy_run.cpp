#include "cpu/copy_run.h"

#include "cpu/isa/register_inl.h"

namespace rushlight::cpu::RL_ISA {

void copy_lines_variant(char* to, const char* from, size_t n) {
  using Part [[gnu::vector_size(kRegisterBytes)]] = char;
  size_t i = 0;
  for (; i + 2 * sizeof(Part) <= n; i += 2 * sizeof(Part)) {
    Part first, second;
    std::memcpy(&first, from + i, sizeof(Part));
    std::memcpy(&second, from + i + sizeof(Part), sizeof(Part));
    std::memcpy(to + i, &first, sizeof(Part));
    std::memcpy(to + i + sizeof(Part), &second, sizeof(Part));
  }
  std::memcpy(to + i, from + i, n - i);
}

}  // namespace rushlight::cpu::RL_ISA
