// How long and how many the vector registers are; included by the files of this folder.
#pragma once

namespace rushlight::cpu::RL_ISA {
namespace {

// For vectors of the compiler's: it splits longer ones into their elements more often than into registers.
#if defined(__AVX512F__)
constexpr int kRegisterBytes = 64, kRegisters = 32;
#elif defined(__AVX2__)
constexpr int kRegisterBytes = 32, kRegisters = 16;
#elif defined(__aarch64__)
constexpr int kRegisterBytes = 16, kRegisters = 32;
#else
constexpr int kRegisterBytes = 16, kRegisters = 16;
#endif

}  // namespace
}  // namespace rushlight::cpu::RL_ISA
