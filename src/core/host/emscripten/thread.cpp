// Built without threads: each worker of a page has a program of its own.
#include "core/host/thread.h"

namespace rushlight::host {

int64_t thread_id() { return 1; }
bool on_main_thread() { return true; }

// Nobody keeps it.
void set_thread_name(const std::string&) {}
std::string thread_name() { return ""; }

}  // namespace rushlight::host
