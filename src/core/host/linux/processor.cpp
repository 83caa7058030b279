#include "core/host/processor.h"

#include <sched.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <vector>

#include "core/host/features.h"
#include "core/host/linux/cgroup.h"

namespace rushlight::host {

static std::string read_file(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  if (in) text << in.rdbuf();
  return text.str();
}

/// The group's folder and those above it up to the mount point: every level may set a limit. Inside a
/// container the path may not exist below the mount, whose root then is the group itself.
static std::vector<std::string> cgroup_folders(const std::string& controller) {
  const std::string root = "/sys/fs/cgroup" + (controller.empty() ? "" : "/" + controller);
  auto path = cgroup_path(read_file("/proc/self/cgroup"), controller);
  std::vector<std::string> folders;
  for (std::string p = path.value_or(""); p.size() > 1; p.resize(p.rfind('/'))) folders.push_back(root + p);
  folders.push_back(root);
  return folders;
}

static double cpu_quota() {
  double quota = HUGE_VAL;
  auto lower = [&](std::optional<double> q) { quota = std::min(quota, q.value_or(quota)); };
  for (auto& folder : cgroup_folders("")) lower(parse_cpu_max(read_file(folder + "/cpu.max")));
  for (auto& folder : cgroup_folders("cpu"))
    lower(parse_cfs(read_file(folder + "/cpu.cfs_quota_us"), read_file(folder + "/cpu.cfs_period_us")));
  return quota;
}

static int affinity_cores() {
  // The kernel's mask may be wider than cpu_set_t's 1024 bits.
  for (int bits = 1024; bits <= 1 << 20; bits *= 2) {
    cpu_set_t* set = CPU_ALLOC(bits);
    if (!set) break;
    const size_t bytes = CPU_ALLOC_SIZE(bits);
    const bool known = sched_getaffinity(0, bytes, set) == 0;
    const int count = known ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (count > 0) return count;
  }
  return static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
}

int usable_cores() {
  const int cores = affinity_cores();
  return std::max(1, static_cast<int>(std::min<double>(cores, std::ceil(cpu_quota()))));
}

size_t usable_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  size_t bytes = pages > 0 && page > 0 ? static_cast<size_t>(pages) * static_cast<size_t>(page) : SIZE_MAX;
  auto lower = [&](const std::string& file) {
    auto limit = parse_integer(read_file(file));
    if (limit && *limit > 0) bytes = std::min(bytes, static_cast<size_t>(*limit));
  };
  for (auto& folder : cgroup_folders("")) lower(folder + "/memory.max");
  for (auto& folder : cgroup_folders("memory")) lower(folder + "/memory.limit_in_bytes");
  return bytes;
}

static bool has_capability([[maybe_unused]] unsigned long bit) {
#if defined(__aarch64__)
  return (getauxval(AT_HWCAP) & bit) != 0;
#else
  return false;
#endif
}

bool system_has_dot_products() { return has_capability(1ul << 20); }  // HWCAP_ASIMDDP
bool system_has_checksums() { return has_capability(1ul << 7); }      // HWCAP_CRC32

bool system_gives_tiles() {
#if defined(__x86_64__)
  constexpr int kAskForState = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM; older headers lack both
  return syscall(SYS_arch_prctl, kAskForState, kTileData) == 0;
#else
  return false;
#endif
}

}  // namespace rushlight::host
