#include "core/host/process.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "core/host/posix/restarted.h"

namespace rushlight::host {

void around_fork(void (*before)(), void (*in_parent)(), void (*in_child)()) {
  pthread_atfork(before, in_parent, in_child);
}

int32_t process_id() { return getpid(); }

void set_variable_if_unset(const char* name, const char* value) { setenv(name, value, /*overwrite=*/0); }

void write_to_stderr(std::string_view text) {
  while (!text.empty()) {
    const auto n = restarted([&] { return write(STDERR_FILENO, text.data(), text.size()); });
    if (n <= 0) return;
    text.remove_prefix(static_cast<size_t>(n));
  }
}

void ignore_closed_pipes() { std::signal(SIGPIPE, SIG_IGN); }

void raise_file_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace rushlight::host
