#pragma once

#include <cstddef>
#include <optional>
#include <string>
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

/// cgroup v2 `cpu.max` ("max 100000" or "150000 100000") as a number of cores.
std::optional<double> parse_cpu_max(std::string_view text);
/// cgroup v1 `cpu.cfs_quota_us` and `cpu.cfs_period_us`.
std::optional<double> parse_cfs(std::string_view quota, std::string_view period);
/// The path of this process below the mount point of a controller, from /proc/self/cgroup; v2 has an empty
/// name.
std::optional<std::string> cgroup_path(std::string_view proc_self_cgroup, std::string_view controller);

}  // namespace rushlight::host
