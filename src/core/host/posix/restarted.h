// Calls of the system that a signal interrupted, made again.
#pragma once
#include <cerrno>

namespace rushlight::host {

template <class F>
auto restarted(F call) {
  for (;;)
    if (const auto result = call(); result >= 0 || errno != EINTR) return result;
}

}  // namespace rushlight::host
