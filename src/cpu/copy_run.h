// Copies of runs of bytes.
#pragma once
#include <cstdint>
#include <cstring>

namespace rushlight::cpu {

// memcpy, but for runs of some size that lie differently in their cache lines: libraries move those by one
// string instruction, which some processors take ten times as long for.
[[gnu::always_inline]] inline void copy_run(void* to, const void* from, size_t n) {
  constexpr size_t kLine = 64, kLong = 2048;
  const bool alike =
      ((reinterpret_cast<uintptr_t>(to) ^ reinterpret_cast<uintptr_t>(from)) & (kLine - 1)) == 0;
  size_t i = 0;
  if (n >= kLong && !alike)
    for (; i + kLine <= n; i += kLine) {
      uint64_t line[kLine / sizeof(uint64_t)];
      __builtin_memcpy(line, static_cast<const char*>(from) + i, kLine);
      __builtin_memcpy(static_cast<char*>(to) + i, line, kLine);
    }
  std::memcpy(static_cast<char*>(to) + i, static_cast<const char*>(from) + i, n - i);
}

}  // namespace rushlight::cpu
