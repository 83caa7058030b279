#include "core/host/thread.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace rushlight::host {

static constexpr size_t kLongestName = 15;

int64_t thread_id() { return syscall(SYS_gettid); }
// Of a forked child the thread that forked.
bool on_main_thread() { return syscall(SYS_gettid) == getpid(); }

void set_thread_name(const std::string& name) {
  pthread_setname_np(pthread_self(), name.substr(0, kLongestName).c_str());
}

std::string thread_name() {
  char name[kLongestName + 1] = {};
  pthread_getname_np(pthread_self(), name, sizeof name);
  return name;
}

}  // namespace rushlight::host
