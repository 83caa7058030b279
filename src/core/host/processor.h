// The processor and the memory that this process may use, and the kernels chosen for them.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace rushlight::host {

/// Cores this process may use: min(affinity mask, cgroup CPU quota rounded up, cores present); at least 1.
int usable_cores();
/// Bytes this process may use: min(physical memory, cgroup limit).
size_t usable_memory();

/// The best instruction set that this processor and this build have and RUSHLIGHT_CPU_CAPABILITY allows.
enum class Isa { kBaseline, kNeon, kAvx2, kAvx512 };
Isa isa();
/// A value of RUSHLIGHT_CPU_CAPABILITY: the set of our own kernels, and what oneDNN and MKL call theirs;
/// null: no limit.
struct IsaLimit {
  std::string_view name;
  Isa own;
  const char *onednn, *mkl;
};
/// Nothing where the text is no such value, or one of another architecture.
std::optional<IsaLimit> parse_isa_limit(std::string_view text);

/// What not every ARM64 processor has: products of bytes, four at a time (FEAT_DotProd), unless
/// RUSHLIGHT_CPU_CAPABILITY forbids them, and checksums (FEAT_CRC32). False elsewhere.
bool has_dot_products();
bool has_checksums();
/// What not every processor with AVX-512 has: tiles (AMX) of bytes and of bfloat16, which the system gives a
/// process that asks for them, unless RUSHLIGHT_CPU_CAPABILITY forbids them. False elsewhere.
bool has_byte_tiles();
bool has_bfloat16_tiles();
/// The version of AVX10 that the processor says it has, which systems may not list; 0: none.
int avx10_version();
/// One of Intel's: MKL multiplies at the peak there and runs code for AVX2 elsewhere, and some kernels are
/// written for its caches.
bool is_intel();

}  // namespace rushlight::host
