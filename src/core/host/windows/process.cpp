#include "core/host/process.h"

#include <cstdio>
#include <cstdlib>

#include "core/host/windows/system.h"

namespace rushlight::host {

// There is no fork().
void around_fork(void (*)(), void (*)(), void (*)()) {}

int32_t process_id() { return static_cast<int32_t>(GetCurrentProcessId()); }

// One space for all processes.
uint64_t process_space() { return 1; }

static Handle process(int32_t id) {
  return Handle(OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, FALSE, static_cast<DWORD>(id)));
}

static uint64_t start_of(const Handle& process) {
  FILETIME start, ended, kernel, user;
  if (!GetProcessTimes(process.get(), &start, &ended, &kernel, &user)) return 0;
  return uint64_t{start.dwHighDateTime} << 32 | start.dwLowDateTime;
}

uint64_t process_start(int32_t id) {
  const Handle found = process(id);
  return found ? start_of(found) : 0;
}

bool process_lives(int32_t id, uint64_t started) {
  const Handle found = process(id);
  if (!found) return GetLastError() != ERROR_INVALID_PARAMETER;  // else it is there, but another user's
  DWORD status = STILL_ACTIVE;
  if (GetExitCodeProcess(found.get(), &status) && status != STILL_ACTIVE) return false;
  const uint64_t start = start_of(found);
  return started == 0 || start == 0 || started == start;
}

void set_variable_if_unset(const char* name, const char* value) {
  if (!std::getenv(name)) _putenv_s(name, value);
}

void write_to_stderr(std::string_view text) {
  const HANDLE out = GetStdHandle(STD_ERROR_HANDLE);
  while (!text.empty()) {
    DWORD n = 0;
    if (!WriteFile(out, text.data(), static_cast<DWORD>(text.size()), &n, nullptr) || n == 0) return;
    text.remove_prefix(n);
  }
}

// They are errors already.
void ignore_closed_pipes() {}
void raise_file_limit() { _setmaxstdio(8192); }  // sockets have no such limit

// The system has no such signal.
std::error_code signal_at_parents_end(int signal) {
  return signal == 0 ? std::error_code() : std::make_error_code(std::errc::not_supported);
}

bool others_may_look() { return false; }

}  // namespace rushlight::host
