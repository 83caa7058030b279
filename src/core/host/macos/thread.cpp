#include "core/host/thread.h"

#include <pthread.h>

namespace rushlight::host {

static constexpr size_t kLongestName = 63;

int64_t thread_id() {
  uint64_t id = 0;
  pthread_threadid_np(nullptr, &id);
  return static_cast<int64_t>(id);
}

bool on_main_thread() { return pthread_main_np() != 0; }

void set_thread_name(const std::string& name) { pthread_setname_np(name.substr(0, kLongestName).c_str()); }

std::string thread_name() {
  char name[kLongestName + 1] = {};
  pthread_getname_np(pthread_self(), name, sizeof name);
  return name;
}

}  // namespace rushlight::host
