#include "core/host/process.h"

#include <signal.h>
#include <sys/sysctl.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>

namespace rushlight::host {

// One space for all processes.
uint64_t process_space() { return 1; }

static bool describe(int32_t id, kinfo_proc* out) {
  int name[] = {CTL_KERN, KERN_PROC, KERN_PROC_PID, id};
  size_t size = sizeof *out;
  return sysctl(name, 4, out, &size, nullptr, 0) == 0 && size == sizeof *out;
}

static uint64_t start_of(const kinfo_proc& process) {
  const timeval& t = process.kp_proc.p_starttime;
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000 + static_cast<uint64_t>(t.tv_usec);
}

uint64_t process_start(int32_t id) {
  kinfo_proc process{};
  return describe(id, &process) ? start_of(process) : 0;
}

bool process_lives(int32_t id, uint64_t started) {
  if (kill(id, 0) != 0 && errno == ESRCH) return false;
  kinfo_proc process{};
  if (!describe(id, &process)) return true;
  constexpr char kZombie = 5;  // SZOMB
  if (process.kp_proc.p_stat == kZombie) return false;
  return started == 0 || started == start_of(process);
}

// The system has no such signal.
std::error_code signal_at_parents_end(int signal) {
  if (signal == 0) return {};
  return {ENOTSUP, std::generic_category()};
}

// There is no /proc: descriptors are sent through sockets.
bool others_may_look() { return false; }

}  // namespace rushlight::host
