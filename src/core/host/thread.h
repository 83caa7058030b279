// The calling thread, as the system knows it.
#pragma once
#include <cstdint>
#include <string>

namespace rushlight::host {

/// Its number, as debuggers and profilers show it.
int64_t thread_id();
/// Whether it is the one that the process began with.
bool on_main_thread();
/// Cut to what the system keeps.
void set_thread_name(const std::string& name);
std::string thread_name();

}  // namespace rushlight::host
