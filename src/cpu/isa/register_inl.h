// How long a vector register is; included by the files of this folder.
#pragma once
#include <cstdint>

namespace rushlight::cpu::RL_ISA {
namespace {

// For vectors of the compiler's: it splits longer ones into their elements more often than into registers.
#if defined(__AVX512F__)
constexpr int64_t kRegisterBytes = 64;
#elif defined(__AVX__)
constexpr int64_t kRegisterBytes = 32;
#else
constexpr int64_t kRegisterBytes = 16;
#endif

}  // namespace
}  // namespace rushlight::cpu::RL_ISA
