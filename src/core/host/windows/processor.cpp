#include "core/host/processor.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "core/host/features.h"
#include "core/host/windows/system.h"

namespace rushlight::host {

int usable_cores() {
  const int all = static_cast<int>(GetActiveProcessorCount(ALL_PROCESSOR_GROUPS));
  DWORD_PTR own = 0, there = 0;
  // Zeros: the process has threads in more than one group of processors.
  if (!GetProcessAffinityMask(GetCurrentProcess(), &own, &there) || own == 0) return std::max(1, all);
  return std::popcount(uint64_t{own});
}

size_t usable_memory() {
  MEMORYSTATUSEX status{};
  status.dwLength = sizeof status;
  size_t bytes = GlobalMemoryStatusEx(&status) ? static_cast<size_t>(status.ullTotalPhys) : SIZE_MAX;
  JOBOBJECT_EXTENDED_LIMIT_INFORMATION job{};
  if (QueryInformationJobObject(nullptr, JobObjectExtendedLimitInformation, &job, sizeof job, nullptr)) {
    const DWORD flags = job.BasicLimitInformation.LimitFlags;
    if (flags & JOB_OBJECT_LIMIT_JOB_MEMORY) bytes = std::min<size_t>(bytes, job.JobMemoryLimit);
    if (flags & JOB_OBJECT_LIMIT_PROCESS_MEMORY) bytes = std::min<size_t>(bytes, job.ProcessMemoryLimit);
  }
  return bytes;
}

bool system_has_dot_products() { return IsProcessorFeaturePresent(43) != 0; }  // ARM_V82_DP
bool system_has_checksums() { return IsProcessorFeaturePresent(31) != 0; }     // ARM_V8_CRC32
bool system_gives_tiles() { return false; }

}  // namespace rushlight::host
