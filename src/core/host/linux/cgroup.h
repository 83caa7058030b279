// The files in which Linux keeps the limits of a container.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace rushlight::host {

/// Nothing where the text is more or less than one number.
std::optional<long long> parse_integer(std::string_view text);
/// cgroup v2 `cpu.max` ("max 100000" or "150000 100000") as a number of cores.
std::optional<double> parse_cpu_max(std::string_view text);
/// cgroup v1 `cpu.cfs_quota_us` and `cpu.cfs_period_us`.
std::optional<double> parse_cfs(std::string_view quota, std::string_view period);
/// The path of this process below the mount point of a controller, from /proc/self/cgroup; v2 has an empty
/// name.
std::optional<std::string> cgroup_path(std::string_view proc_self_cgroup, std::string_view controller);

}  // namespace rushlight::host
