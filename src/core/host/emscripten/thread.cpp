// A thread is a worker; without them there is one.
#include "core/host/thread.h"

#include <emscripten/threading.h>
#include <pthread.h>

#include <cstdint>

namespace rushlight::host {

int64_t thread_id() { return static_cast<int64_t>(reinterpret_cast<uintptr_t>(pthread_self())); }
bool on_main_thread() { return emscripten_is_main_runtime_thread(); }

// Nobody keeps it.
void set_thread_name(const std::string&) {}
std::string thread_name() { return ""; }

}  // namespace rushlight::host
