#include "core/host/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace rushlight::host {
namespace {

struct ProcessState {
  uint64_t start_time = 0;
  bool ended = false;
};

/// From /proc/PID/stat.
ProcessState process_state(int32_t id) {
  char path[40], text[1024];
  std::snprintf(path, sizeof path, "/proc/%d/stat", id);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  const ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  if (n <= 0) return {};
  text[n] = 0;
  const char* p = std::strrchr(text, ')');  // the name may contain anything
  if (!p || p[1] != ' ') return {};
  ProcessState result;
  result.ended = p[2] == 'Z' || p[2] == 'X';
  for (int field = 2; p && field < 22; field++) p = std::strchr(p + 1, ' ');
  if (p) result.start_time = std::strtoull(p, nullptr, 10);
  return result;
}

}  // namespace

uint64_t process_space() {
  struct stat info;
  return stat("/proc/self/ns/pid", &info) == 0 ? info.st_ino : 0;
}

uint64_t process_start(int32_t id) { return process_state(id).start_time; }

bool process_lives(int32_t id, uint64_t started) {
  if (kill(id, 0) != 0 && errno == ESRCH) return false;
  const ProcessState state = process_state(id);
  if (state.ended) return false;
  return started == 0 || state.start_time == 0 || started == state.start_time;
}

std::error_code signal_at_parents_end(int signal) {
  if (prctl(PR_SET_PDEATHSIG, static_cast<unsigned long>(signal)) == 0) return {};
  return {errno, std::generic_category()};
}

bool others_may_look() { return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 1; }

}  // namespace rushlight::host
