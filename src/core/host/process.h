// This process and others: fork, numbers, limits, signals.
#pragma once
#include <cstdint>
#include <string_view>
#include <system_error>

namespace rushlight::host {

/// Functions that fork() calls, or nullptr: in the parent before, in the reverse order of registration, then
/// in parent and child in that order. Where there is no fork() nothing ever calls them.
void around_fork(void (*before)(), void (*in_parent)(), void (*in_child)());

int32_t process_id();
/// Which numbers of processes mean the same: processes of other containers count for themselves.
uint64_t process_space();
/// When a process started, in units of the system's; 0: unknown. Tells it from a later one of its number.
/// Allocates nothing: a forked child asks, too.
uint64_t process_start(int32_t id);
/// Whether a process of this space lives that started then (0: at any time).
bool process_lives(int32_t id, uint64_t started);

void set_variable_if_unset(const char* name, const char* value);
/// Lost if nobody takes it: a full disk or a closed pipe is no error.
void write_to_stderr(std::string_view text);
/// Writing to a pipe or a connection that the other side closed is an error like others.
void ignore_closed_pipes();
/// As many files and connections as this process may ever have open.
void raise_file_limit();
/// Which signal this process gets when the thread ends that started it; 0: none.
std::error_code signal_at_parents_end(int signal);
/// Whether other processes of this user may look at this one's files.
bool others_may_look();

}  // namespace rushlight::host
