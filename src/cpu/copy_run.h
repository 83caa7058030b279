// Copies of runs of bytes.
#pragma once
#include <cstdint>
#include <cstring>

namespace rushlight::cpu {

// By the processor's widest ordinary loads and stores.
void copy_lines(char* to, const char* from, size_t n);

// memcpy, but for runs of some size: libraries move those by one string instruction, which is slower, and
// where they lie differently in their cache lines takes some processors ten times as long. Very long ones
// bypass the caches there.
[[gnu::always_inline]] inline void copy_run(void* to, const void* from, size_t n) {
  constexpr size_t kLine = 64, kLong = 2048, kVeryLong = size_t{1} << 18;
  const bool alike =
      ((reinterpret_cast<uintptr_t>(to) ^ reinterpret_cast<uintptr_t>(from)) & (kLine - 1)) == 0;
  if (n >= kLong && (n < kVeryLong || !alike))
    copy_lines(static_cast<char*>(to), static_cast<const char*>(from), n);
  else
    std::memcpy(to, from, n);
}

// Asks for a run that is copied soon. Runs that lie anywhere are found late otherwise: each one's first lines
// are waited for, and a processor looks no more than a few runs ahead.
[[gnu::always_inline]] inline void expect_run(const void* from, size_t n) {
  constexpr size_t kLine = 64, kMost = 1024;  // from there on, processors look ahead themselves
  for (size_t i = 0; i < (n < kMost ? n : kMost); i += kLine)
    __builtin_prefetch(static_cast<const char*>(from) + i);
}
inline constexpr int64_t kRunsAhead = 8;

}  // namespace rushlight::cpu
