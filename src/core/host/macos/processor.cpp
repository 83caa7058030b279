#include "core/host/processor.h"

#include <sys/sysctl.h>
#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <thread>

#include "core/host/features.h"

namespace rushlight::host {

template <class T>
static T ask(const char* name, T otherwise) {
  T value{};
  size_t size = sizeof value;
  return sysctlbyname(name, &value, &size, nullptr, 0) == 0 && size == sizeof value ? value : otherwise;
}

// Of processors with fast and slow cores the fast ones: work is cut into equal parts.
int usable_cores() {
  const int all = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return std::clamp(ask("hw.perflevel0.logicalcpu", all), 1, all);
}

size_t usable_memory() { return static_cast<size_t>(ask<uint64_t>("hw.memsize", SIZE_MAX)); }

bool system_has_dot_products() { return ask("hw.optional.arm.FEAT_DotProd", 0) == 1; }
bool system_has_checksums() { return ask("hw.optional.armv8_crc32", 0) == 1; }
bool system_gives_tiles() { return false; }

}  // namespace rushlight::host
